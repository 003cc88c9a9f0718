package sqs

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/pintle/pintle/internal/pattern"
	"github.com/pintle/pintle/internal/sqs/queues"
)

// policy has the parts of a queue's policy that we read. Who may do what by them is decided before a call gets
// here.
type policy struct {
	Version   string          `json:"Version,omitempty"`
	ID        string          `json:"Id,omitempty"`
	Statement json.RawMessage `json:"Statement"`
}

// statement is one statement of a policy.
type statement struct {
	Sid       string `json:"Sid,omitempty"`
	Effect    string
	Principal any `json:"Principal,omitempty"`
	Action    any `json:"Action,omitempty"`
	Resource  any `json:"Resource,omitempty"`

	whole json.RawMessage // the statement as it was written
}

var errPolicy = errors.New("the policy makes no sense")

// parsePolicy returns a policy's statements. An empty policy has none.
func parsePolicy(value string) ([]statement, error) {
	if value == "" {
		return nil, nil
	}
	var p policy
	if err := json.Unmarshal([]byte(value), &p); err != nil {
		return nil, err
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(p.Statement, &parts); err != nil {
		parts = []json.RawMessage{p.Statement} // a single statement needs no list
	}
	var out []statement
	for _, part := range parts {
		s := statement{whole: part}
		if err := json.Unmarshal(part, &s); err != nil {
			return nil, err
		}
		if s.Effect != "Allow" && s.Effect != "Deny" {
			return nil, errPolicy
		}
		out = append(out, s)
	}
	if len(out) == 0 {
		return nil, errPolicy
	}
	return out, nil
}

var (
	label    = pattern.New(`^[A-Za-z0-9_-]+$`, 80)
	accounts = regexp.MustCompile(`^[0-9]{12}$`)
)

// permitted lists the actions that AddPermission accepts: "Overview of managing access in Amazon SQS" in the developer guide.
var permitted = []string{
	"*", "ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "GetQueueUrl", "ListDeadLetterSourceQueues", "PurgeQueue",
	"ReceiveMessage", "SendMessage",
}

// maxActions is the most actions in a statement that AddPermission makes: API_AddPermission.
const maxActions = 7

// AddPermission adds a statement to a queue's policy.
func (s *Service) AddPermission(_ context.Context, in *sqs.AddPermissionInput) (*sqs.AddPermissionOutput, error) {
	if err := checkPermission(in); err != nil {
		return nil, err
	}
	err := s.update(in.QueueUrl, func(q *queues.Queue) error {
		statements, err := parsePolicy(q.Attributes["Policy"])
		if err != nil {
			return err
		}
		if slices.ContainsFunc(statements, func(st statement) bool { return st.Sid == *in.Label }) {
			return invalidValue(*in.Label, "Label", "Already exists.")
		}
		var principals, actions []string
		for _, a := range in.AWSAccountIds {
			principals = append(principals, "arn:aws:iam::"+a+":root")
		}
		for _, a := range in.Actions {
			actions = append(actions, "SQS:"+a)
		}
		added, err := json.Marshal(statement{
			Sid:       *in.Label,
			Effect:    "Allow",
			Principal: map[string]any{"AWS": oneOrList(principals)},
			Action:    oneOrList(actions),
			Resource:  s.queueArn(q.Name),
		})
		if err != nil {
			return err
		}
		return s.setStatements(q, append(statements, statement{whole: added}))
	})
	if err != nil {
		return nil, err
	}
	return &sqs.AddPermissionOutput{}, nil
}

func checkPermission(in *sqs.AddPermissionInput) error {
	switch {
	case aws.ToString(in.Label) == "":
		return missing("Label")
	case !label.MatchString(*in.Label):
		return invalidValue(*in.Label, "Label", "Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length.")
	case len(in.AWSAccountIds) == 0:
		return missing("AWSAccountIds")
	case len(in.Actions) == 0:
		return missing("Actions")
	case len(in.Actions) > maxActions:
		return refuse("OverLimit", "%d Actions were found, maximum allowed is %d.", len(in.Actions), maxActions)
	}
	for _, a := range in.AWSAccountIds {
		if !accounts.MatchString(a) {
			return invalidValue(a, "PrincipalId", "Unable to verify.")
		}
	}
	for _, a := range in.Actions {
		if !slices.Contains(permitted, a) {
			return invalidValue("SQS:"+a, "ActionName", "Please refer to the appropriate WSDL for a list of valid actions.")
		}
	}
	return nil
}

// oneOrList returns values as a policy holds them: a single value needs no list.
func oneOrList(values []string) any {
	if len(values) == 1 {
		return values[0]
	}
	return values
}

// RemovePermission removes a statement from a queue's policy.
func (s *Service) RemovePermission(_ context.Context, in *sqs.RemovePermissionInput) (*sqs.RemovePermissionOutput, error) {
	if aws.ToString(in.Label) == "" {
		return nil, missing("Label")
	}
	err := s.update(in.QueueUrl, func(q *queues.Queue) error {
		statements, err := parsePolicy(q.Attributes["Policy"])
		if err != nil {
			return err
		}
		i := slices.IndexFunc(statements, func(st statement) bool { return st.Sid == *in.Label })
		if i < 0 {
			return invalidValue(*in.Label, "Label", "can't find label.")
		}
		return s.setStatements(q, slices.Delete(statements, i, i+1))
	})
	if err != nil {
		return nil, err
	}
	return &sqs.RemovePermissionOutput{}, nil
}

// setStatements replaces the statements in a queue's policy, and keeps the rest of the policy.
func (s *Service) setStatements(q *queues.Queue, statements []statement) error {
	if len(statements) == 0 {
		q.Attributes["Policy"] = ""
		return nil
	}
	p := policy{Version: "2008-10-17", ID: s.queueArn(q.Name) + "/SQSDefaultPolicy"}
	if before := q.Attributes["Policy"]; before != "" {
		if err := json.Unmarshal([]byte(before), &p); err != nil {
			return err
		}
	}
	parts := make([]json.RawMessage, len(statements))
	for i, st := range statements {
		parts[i] = st.whole
	}
	var err error
	if p.Statement, err = json.Marshal(parts); err != nil {
		return err
	}
	b, err := json.Marshal(p)
	if err == nil && len(b) > maxPolicy {
		return refuse("OverLimit", "The policy would have %d bytes, and can have %d.", len(b), maxPolicy)
	}
	q.Attributes["Policy"] = string(b)
	return err
}
