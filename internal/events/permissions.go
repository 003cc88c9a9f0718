package events

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"

	"github.com/pintle/pintle/internal/iam/policy"
	"github.com/pintle/pintle/internal/state"
)

// maxPolicy is the most bytes of a bus's policy.
const maxPolicy = 10 << 10

// document is a bus's policy, as PutPermission writes it. Who may do what by it is decided before a call gets here.
type document struct {
	Version   string
	Statement []json.RawMessage
}

// statement is a statement that PutPermission makes.
type statement struct {
	Sid       string
	Effect    string
	Principal any
	Action    string
	Resource  string
	Condition map[string]map[string]string `json:",omitempty"`
}

// PutPermission adds a statement to a bus's policy, or replaces all of it.
func (s *Service) PutPermission(ctx context.Context, in *eventbridge.PutPermissionInput) (*eventbridge.PutPermissionOutput, error) {
	err := s.updateBus(ctx, in.EventBusName, func(b *state.EventBus) error {
		text := aws.ToString(in.Policy)
		if text == "" {
			one, err := permission(b.ARN, in)
			if err != nil {
				return err
			}
			d := read(b.Policy)
			d.Statement = append(slices.DeleteFunc(d.Statement, isNamed(one.Sid)), marshal(one))
			text = string(marshal(d))
		}
		b.Policy = text
		return checkPolicy(text)
	})
	return &eventbridge.PutPermissionOutput{}, err
}

// permission returns the statement that a call describes.
func permission(bus string, in *eventbridge.PutPermissionInput) (statement, error) {
	one := statement{
		Sid:       aws.ToString(in.StatementId),
		Effect:    "Allow",
		Principal: "*",
		Action:    aws.ToString(in.Action),
		Resource:  bus,
	}
	switch {
	case one.Sid == "" || one.Action == "" || in.Principal == nil:
		return one, invalid("Parameters StatementId, Action and Principal are required unless there is a Policy.")
	case one.Action != "events:PutEvents":
		return one, invalid("Provided value in parameter 'action' is not supported.")
	case *in.Principal != "*":
		one.Principal = map[string]string{"AWS": "arn:aws:iam::" + *in.Principal + ":root"}
	}
	if c := in.Condition; c != nil {
		one.Condition = map[string]map[string]string{aws.ToString(c.Type): {aws.ToString(c.Key): aws.ToString(c.Value)}}
	}
	return one, nil
}

// checkPolicy refuses a policy that can't be evaluated.
func checkPolicy(text string) error {
	if len(text) > maxPolicy {
		return refuse("PolicyLengthExceededException", "The policy has %d bytes, and can have %d.", len(text), maxPolicy)
	}
	_, err := policy.Check(policy.Resource, text)
	if malformed, ok := errors.AsType[*policy.Malformed](err); ok {
		return invalid("Parameter Policy is not valid. Reason: %s", malformed.Message)
	}
	return err
}

// RemovePermission removes a statement from a bus's policy, or all of it.
func (s *Service) RemovePermission(ctx context.Context, in *eventbridge.RemovePermissionInput) (*eventbridge.RemovePermissionOutput, error) {
	err := s.updateBus(ctx, in.EventBusName, func(b *state.EventBus) error {
		if in.RemoveAllPermissions {
			b.Policy = ""
			return nil
		}
		d := read(b.Policy)
		left := slices.DeleteFunc(slices.Clone(d.Statement), isNamed(aws.ToString(in.StatementId)))
		if len(left) == len(d.Statement) {
			return refuse("ResourceNotFoundException", "Statement with the provided id does not exist.")
		}
		b.Policy = ""
		if d.Statement = left; len(left) > 0 {
			b.Policy = string(marshal(d))
		}
		return nil
	})
	return &eventbridge.RemovePermissionOutput{}, err
}

// read returns a policy that was checked. A single statement needs no list.
func read(text string) document {
	var p struct {
		Version   string
		Statement json.RawMessage
	}
	d := document{Version: "2012-10-17"}
	if text == "" || json.Unmarshal([]byte(text), &p) != nil {
		return d
	}
	if p.Version != "" {
		d.Version = p.Version
	}
	if json.Unmarshal(p.Statement, &d.Statement) != nil {
		d.Statement = []json.RawMessage{p.Statement}
	}
	return d
}

func isNamed(sid string) func(json.RawMessage) bool {
	return func(one json.RawMessage) bool {
		var s struct{ Sid string }
		return json.Unmarshal(one, &s) == nil && s.Sid == sid
	}
}

func marshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // it has texts only
	}
	return b
}
