package stacks

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/vault"
)

// The URL of a wait condition's handle is ENDPOINT, HandlePath, the handle's name and its signature. Whoever has it may signal.
const (
	HandlePath = "/pintle/waitcondition/"
	Signature  = "X-Pintle-Signature"
)

// What a handle keeps at most, in bytes. A signal's data are as long as AWS lets cfn-signal send.
const (
	MaxSignal   = 16 << 10 // of a signal as it's sent
	maxData     = 4096
	maxOfHandle = 256 << 10
)

// handleURL returns the URL of a handle. Its signature is what only the vault can make, for this handle alone.
func (l *Loop) handleURL(row *state.StackResource) string {
	handle := row.Stack + "/" + row.Token + "/" + row.Name
	signature := base64.RawURLEncoding.EncodeToString(l.opts.Vault.Encrypt("", purposeOf(handle)))
	return l.opts.Endpoint + HandlePath + handle + "?" + Signature + "=" + signature
}

func purposeOf(handle string) string { return vault.Purpose("wait condition handle", handle) }

// handleOf returns the handle with a name, if the signature is its own and it's still there; otherwise nil.
func (l *Loop) handleOf(v *state.View, handle, signature string) *state.StackResource {
	sealed, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil {
		return nil
	}
	if _, err := l.opts.Vault.Decrypt(sealed, purposeOf(handle)); err != nil {
		return nil
	}
	rest, name := cutLast(handle)
	stack, token := cutLast(rest)
	row := v.StackResources.Get((&state.StackResource{Stack: stack, Name: name, Token: token}).Key())
	if row == nil || row.Type != resources.WaitConditionHandle || isGone(row) {
		return nil
	}
	return row
}

// cutLast cuts what is after the last slash off.
func cutLast(s string) (before, after string) {
	i := strings.LastIndexByte(s, '/')
	return s[:max(i, 0)], s[i+1:]
}

// SignalHandle notes a signal that was sent to the URL of a handle with this name and signature. One with the ID of an earlier one is the
// same signal, sent again.
func (l *Loop) SignalHandle(ctx context.Context, handle, signature string, body []byte) error {
	signal, err := readSignal(body)
	if err != nil {
		return err
	}
	return l.rows.Update(ctx, func(tx *state.Tx) error {
		row := l.handleOf(tx.View, handle, signature)
		if row == nil {
			return account.RefuseWith(http.StatusForbidden, "AccessDenied", "Access Denied")
		}
		if slices.ContainsFunc(row.Heard, func(s state.WaitSignal) bool { return s.UniqueID == signal.UniqueID }) {
			return nil
		}
		next := *row
		next.Heard = append(slices.Clone(row.Heard), signal)
		if sizeOf(next.Heard) > maxOfHandle {
			return account.Refuse("EntityTooLarge", "The signals of a wait condition handle can be at most %d bytes together", maxOfHandle)
		}
		tx.StackResources.Put(&next)
		return nil
	})
}

// readSignal reads a signal as cfn-signal sends it.
func readSignal(body []byte) (s state.WaitSignal, err error) {
	if err := json.Unmarshal(body, &s); err != nil {
		return s, account.Refuse("InvalidRequest", "A signal is a JSON object with Status, UniqueId, Reason and Data, which are strings: %v", err)
	}
	switch {
	case s.Status != types.ResourceSignalStatusSuccess && s.Status != types.ResourceSignalStatusFailure:
		return s, account.Refuse("InvalidRequest", "Status must be SUCCESS or FAILURE")
	case s.UniqueID == "":
		return s, account.Refuse("InvalidRequest", "UniqueId must not be empty")
	case len(s.Data) > maxData:
		return s, account.Refuse("EntityTooLarge", "Data can be at most %d bytes", maxData)
	}
	return s, nil
}

func sizeOf(signals []state.WaitSignal) (size int) {
	for _, s := range signals {
		size += len(s.Status) + len(s.UniqueID) + len(s.Reason) + len(s.Data)
	}
	return size
}

// heard returns the signals for a wait condition: those that were sent to its handle's URL, then those by SignalResource.
func (l *Loop) heard(row *state.StackResource, handle string) ([]state.WaitSignal, error) {
	var from *state.StackResource
	if u, err := url.Parse(handle); err == nil {
		from = l.handleOf(l.rows.View(), strings.TrimPrefix(u.Path, HandlePath), u.Query().Get(Signature))
	}
	if from == nil {
		return nil, template.Errorf("The Handle of wait condition %s is no AWS::CloudFormation::WaitConditionHandle", row.Name)
	}
	signals := slices.Clone(from.Heard)
	for _, id := range slices.Sorted(maps.Keys(row.Signals)) {
		if !slices.ContainsFunc(signals, func(s state.WaitSignal) bool { return s.UniqueID == id }) {
			signals = append(signals, state.WaitSignal{Status: row.Signals[id], UniqueID: id})
		}
	}
	return signals, nil
}
