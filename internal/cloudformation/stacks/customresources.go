package stacks

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"maps"
	"net/http"
	"strings"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/vault"
)

// CustomPath begins the URLs at which custom resources' functions answer. They are ENDPOINT, CustomPath, the request's id and its signature:
// whoever has one may answer, as with a presigned one on AWS.
const CustomPath = "/pintle/customresource/"

// MaxAnswer is the most bytes of an answer.
const MaxAnswer = 16 << 10

func purposeOfRequest(id string) string { return vault.Purpose("custom resource request", id) }

func (l *Loop) responseURL(id string) string {
	signature := base64.RawURLEncoding.EncodeToString(l.opts.Vault.Encrypt("", purposeOfRequest(id)))
	return l.opts.Endpoint + CustomPath + id + "?" + Signature + "=" + signature
}

// ask asks the function of a custom resource, unless it has been asked, and returns its answer or that there is none yet. The question is
// durable before it's sent, so that a process that is killed asks the same again, and an answer finds its question.
func (l *Loop) ask(ctx context.Context, operation string, row *state.StackResource, q resources.Question) (*resources.Answer, error) {
	about, err := json.Marshal(q.About)
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(append([]byte(operation+" "), about...))
	digest := hex.EncodeToString(sum[:])
	asked := l.rows.View().CustomRequests.Get(row.Key())
	if asked == nil || asked.Digest != digest {
		asked = &state.CustomRequest{Resource: row.Key(), ID: state.NewUUID(), Digest: digest, At: l.opts.Account.Now()}
		err := l.rows.Update(ctx, func(tx *state.Tx) error {
			tx.CustomRequests.Put(asked)
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	if asked.Answer != nil {
		return l.answerOf(asked)
	}
	if l.opts.Account.Now().Sub(asked.At) >= q.Within {
		return nil, template.Errorf("CloudFormation did not receive a response from your Custom Resource. Please check your logs for requestId [%s]. "+
			"If you are using the Python cfn-response module, you may need to update your Lambda function code so that CloudFormation can attach the "+
			"updated version.", asked.ID)
	}
	if _, sent := l.sent.LoadOrStore(asked.ID, true); sent {
		return nil, resources.ErrPending
	}
	request := maps.Clone(q.About)
	request["RequestId"] = asked.ID
	request["ResponseURL"] = l.responseURL(asked.ID)
	body, err := json.Marshal(request)
	if err != nil {
		return nil, err
	}
	if err := q.Send(ctx, string(body)); err != nil {
		l.sent.Delete(asked.ID)
		return nil, err
	}
	return nil, resources.ErrPending
}

func (l *Loop) answerOf(asked *state.CustomRequest) (*resources.Answer, error) {
	text, err := l.opts.Vault.Decrypt(asked.Answer, purposeOfRequest(asked.ID))
	if err != nil {
		return nil, err
	}
	a := new(resources.Answer)
	return a, json.Unmarshal([]byte(text), a)
}

// answered returns the last answer about a resource, or nil.
func (l *Loop) answered(row *state.StackResource) (*resources.Answer, error) {
	asked := l.rows.View().CustomRequests.Get(row.Key())
	if asked == nil || asked.Answer == nil {
		return nil, nil
	}
	return l.answerOf(asked)
}

// failedID returns the physical ID of a custom resource that couldn't be made, and whether its function was asked to: then it's asked to delete
// it, too.
func (l *Loop) failedID(row *state.StackResource) (id string, asked bool) {
	question := l.rows.View().CustomRequests.Get(row.Key())
	if question == nil {
		return "", false
	}
	if a, err := l.answered(row); err == nil && a != nil && a.PhysicalResourceID != "" {
		return a.PhysicalResourceID, true
	}
	return question.ID, true
}

// AnswerCustom notes the answer that was sent to the URL of a request. The first one counts.
func (l *Loop) AnswerCustom(ctx context.Context, id, signature string, body []byte) error {
	denied := account.RefuseWith(http.StatusForbidden, "AccessDenied", "Access Denied")
	sealed, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil {
		return denied
	}
	if _, err := l.opts.Vault.Decrypt(sealed, purposeOfRequest(id)); err != nil {
		return denied
	}
	var a resources.Answer
	if err := json.Unmarshal(body, &a); err != nil {
		a = resources.Answer{Status: "FAILED", Reason: "Invalid response: it's no JSON object (" + strings.TrimSpace(err.Error()) + ")"}
	}
	a.RequestID = id
	text, err := json.Marshal(a)
	if err != nil {
		return err
	}
	return l.rows.Update(ctx, func(tx *state.Tx) error {
		old := tx.CustomRequestWith(id)
		if old == nil || old.Answer != nil {
			return nil // nobody waits for it any more
		}
		row := *old
		row.Answer = l.opts.Vault.Encrypt(string(text), purposeOfRequest(id))
		tx.CustomRequests.Put(&row)
		return nil
	})
}
