package events

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/events/eventpattern"
	"github.com/pintle/pintle/internal/state"
)

// maxEntries is the most bytes of a call's entries together: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-putevents.html
const maxEntries = 256 << 10

// envelope is an event, as targets get it.
type envelope struct {
	Version    string          `json:"version"`
	ID         string          `json:"id"`
	DetailType string          `json:"detail-type"`
	Source     string          `json:"source"`
	Account    string          `json:"account"`
	Time       string          `json:"time"`
	Region     string          `json:"region"`
	Resources  []string        `json:"resources"`
	Detail     json.RawMessage `json:"detail"`
}

const seconds = "2006-01-02T15:04:05Z"

// envelope returns an event that happens here.
func (s *Service) envelope(source, detailType string, resources []string, at time.Time, detail json.RawMessage) envelope {
	return envelope{
		Version:    "0",
		ID:         state.NewUUID(),
		DetailType: detailType,
		Source:     source,
		Account:    s.opts.ID,
		Time:       at.UTC().Format(seconds),
		Region:     s.opts.Region,
		Resources:  append([]string{}, resources...),
		Detail:     detail,
	}
}

// errFull is the refusal of events for which there is no room.
var errFull = account.RefuseWith(429, "ThrottlingException", "%d MB of events wait for their targets already.", state.Room>>20)

// PutEvents puts events on buses. What rules match is owed to their targets before it answers.
func (s *Service) PutEvents(ctx context.Context, in *eventbridge.PutEventsInput) (*eventbridge.PutEventsOutput, error) {
	if aws.ToString(in.EndpointId) != "" {
		return nil, unsupported("EndpointId", "Pintle has no global endpoints.")
	}
	whole := 0
	for i := range in.Entries {
		whole += size(&in.Entries[i])
	}
	if whole > maxEntries {
		return nil, invalid("Total size of the entries in the request is over the limit.")
	}
	out := &eventbridge.PutEventsOutput{}
	v := s.store.View()
	var all []match
	for i := range in.Entries {
		result := types.PutEventsResultEntry{}
		if code, why := checkEntry(&in.Entries[i]); code != "" {
			result.ErrorCode, result.ErrorMessage = &code, &why
			out.FailedEntryCount++
		} else {
			e := s.entry(&in.Entries[i])
			result.EventId = &e.ID
			if name, err := s.busName(in.Entries[i].EventBusName); err == nil { // an event for a bus that isn't there is nobody's, as on AWS
				all = append(all, s.matches(v, name, &event{text: string(encoded(e))})...)
			}
		}
		out.Entries = append(out.Entries, result)
	}
	if err := s.route(ctx, all, s.isFull, nil); err != nil {
		return nil, err
	}
	return out, nil
}

// isFull refuses events while there is no room for them. It's for transactions.
func (s *Service) isFull(*state.Tx) error {
	if s.store.Undelivered.IsFull() {
		return errFull
	}
	return nil
}

// size returns the bytes of an entry, as EventBridge counts them.
func size(e *types.PutEventsRequestEntry) int {
	n := len(aws.ToString(e.Source)) + len(aws.ToString(e.DetailType)) + len(aws.ToString(e.Detail))
	if e.Time != nil {
		n += 14
	}
	for _, r := range e.Resources {
		n += len(r)
	}
	return n
}

// checkEntry returns the code and the message with which an entry fails, or nothing.
func checkEntry(e *types.PutEventsRequestEntry) (code, why string) {
	for _, required := range []struct {
		name  string
		value *string
	}{{"Source", e.Source}, {"DetailType", e.DetailType}, {"Detail", e.Detail}} {
		if aws.ToString(required.value) == "" {
			return "InvalidArgument", "Parameter " + required.name + " is not valid. Reason: " + required.name + " is a required argument."
		}
	}
	if strings.HasPrefix(*e.Source, "aws.") {
		return "NotAuthorizedForSource", "Not authorized for the source."
	}
	value, err := eventpattern.Decode(*e.Detail)
	if _, isObject := value.(map[string]any); err != nil || !isObject {
		return "MalformedDetail", "Detail is malformed."
	}
	return "", ""
}

// entry returns the event of an entry.
func (s *Service) entry(e *types.PutEventsRequestEntry) envelope {
	at := s.now()
	if e.Time != nil {
		at = *e.Time
	}
	return s.envelope(*e.Source, *e.DetailType, e.Resources, at, json.RawMessage(*e.Detail))
}
