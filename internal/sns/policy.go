package sns

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/pintle/pintle/internal/iam/policy"
	"github.com/pintle/pintle/internal/pattern"
	"github.com/pintle/pintle/internal/state"
)

// document has the parts of a topic's policy that AddPermission changes. Who may do what by it is decided before a call gets here.
type document struct {
	Version   string `json:",omitempty"`
	ID        string `json:"Id,omitempty"`
	Statement []json.RawMessage
}

// statement is a statement that AddPermission makes, or the default one.
type statement struct {
	Sid       string
	Effect    string
	Principal map[string]any
	Action    any
	Resource  string
	Condition map[string]map[string]string `json:",omitempty"`
}

// permitted are the actions that a topic's policy may be about: "Amazon SNS API permissions" in the developer guide.
var permitted = []string{
	"GetTopicAttributes", "SetTopicAttributes", "AddPermission", "RemovePermission", "DeleteTopic", "Subscribe",
	"ListSubscriptionsByTopic", "Publish",
}

// defaultPolicy is the policy of a topic that has been given none: services act on it for the account that owns the topic.
func defaultPolicy(arn string) string {
	actions := make([]string, len(permitted))
	for i, a := range permitted {
		actions[i] = "SNS:" + a
	}
	account := strings.Split(arn, ":")[4]
	return encode(document{
		Version: "2008-10-17",
		ID:      "__default_policy_ID",
		Statement: []json.RawMessage{json.RawMessage(encode(statement{
			Sid:       "__default_statement_ID",
			Effect:    "Allow",
			Principal: map[string]any{"AWS": "*"},
			Action:    actions,
			Resource:  arn,
			Condition: map[string]map[string]string{"StringEquals": {"AWS:SourceOwner": account}},
		}))},
	})
}

// maxPolicy is the most bytes of a topic's policy.
const maxPolicy = 30720

// checkPolicy refuses a policy that can't be evaluated, or that is about anything but topics.
func (s *Service) checkPolicy(text string) error {
	if text == "" {
		return nil
	}
	if len(text) > maxPolicy {
		return invalid("Policy Error: the policy has %d bytes, and can have %d", len(text), maxPolicy)
	}
	_, err := policy.Check(policy.Resource, text)
	if malformed, ok := errors.AsType[*policy.Malformed](err); ok {
		return invalid("Policy Error: %s", malformed.Message)
	}
	if err != nil {
		return err
	}
	d, err := readDocument(text)
	if err != nil {
		return invalid("Policy Error: %s", err)
	}
	for _, one := range d.Statement {
		if err := checkActions(one); err != nil {
			return err
		}
	}
	return nil
}

// checkActions refuses a statement about actions of other services.
func checkActions(one json.RawMessage) error {
	var s struct{ Action, NotAction any }
	if err := json.Unmarshal(one, &s); err != nil {
		return invalid("Policy Error: %s", err)
	}
	for _, actions := range []any{s.Action, s.NotAction} {
		list, isList := actions.([]any)
		if !isList {
			list = []any{actions}
		}
		for _, a := range list {
			text, isText := a.(string)
			service, _, _ := strings.Cut(text, ":")
			if isText && text != "*" && !strings.EqualFold(service, "sns") {
				return invalid("Policy statement action out of service scope!")
			}
		}
	}
	return nil
}

// readDocument reads a policy. A single statement needs no list.
func readDocument(text string) (d document, err error) {
	var p struct {
		Version   string
		ID        string `json:"Id"`
		Statement json.RawMessage
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return d, err
	}
	d = document{Version: p.Version, ID: p.ID}
	if json.Unmarshal(p.Statement, &d.Statement) != nil {
		d.Statement = []json.RawMessage{p.Statement}
	}
	return d, nil
}

// indexOf returns the place of the statement with an Sid, or -1.
func (d document) indexOf(sid string) int {
	return slices.IndexFunc(d.Statement, func(one json.RawMessage) bool {
		var s struct{ Sid string }
		return json.Unmarshal(one, &s) == nil && s.Sid == sid
	})
}

var (
	label     = pattern.New(`^[A-Za-z0-9_-]+$`, 256)
	accountID = regexp.MustCompile(`^[0-9]{12}$`)
)

// AddPermission adds a statement to a topic's policy.
func (s *Service) AddPermission(ctx context.Context, in *sns.AddPermissionInput) (*sns.AddPermissionOutput, error) {
	if err := checkPermission(in); err != nil {
		return nil, err
	}
	var principals, actions []string
	for _, a := range in.AWSAccountId {
		principals = append(principals, "arn:aws:iam::"+a+":root")
	}
	for _, a := range in.ActionName {
		actions = append(actions, "SNS:"+a)
	}
	err := s.updatePolicy(ctx, in.TopicArn, func(d *document) error {
		if d.indexOf(*in.Label) >= 0 {
			return invalid("Statement already exists")
		}
		d.Statement = append(d.Statement, json.RawMessage(encode(statement{
			Sid:       *in.Label,
			Effect:    "Allow",
			Principal: map[string]any{"AWS": oneOrList(principals)},
			Action:    oneOrList(actions),
			Resource:  *in.TopicArn,
		})))
		return nil
	})
	return &sns.AddPermissionOutput{}, err
}

func checkPermission(in *sns.AddPermissionInput) error {
	if !label.MatchString(valueOf(in.Label)) {
		return invalid("Label")
	}
	if len(in.AWSAccountId) == 0 {
		return invalid("AWSAccountId")
	}
	for _, a := range in.AWSAccountId {
		if !accountID.MatchString(a) {
			return invalid("AWSAccountId Reason: %s is not the id of an account", a)
		}
	}
	for _, a := range in.ActionName {
		if !slices.Contains(permitted, a) {
			return invalid("Policy statement action out of service scope!")
		}
	}
	if len(in.ActionName) == 0 {
		return invalid("ActionName")
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

// RemovePermission removes a statement from a topic's policy. One that isn't there counts as removed.
func (s *Service) RemovePermission(ctx context.Context, in *sns.RemovePermissionInput) (*sns.RemovePermissionOutput, error) {
	err := s.updatePolicy(ctx, in.TopicArn, func(d *document) error {
		if i := d.indexOf(valueOf(in.Label)); i >= 0 {
			d.Statement = slices.Delete(d.Statement, i, i+1)
		}
		return nil
	})
	return &sns.RemovePermissionOutput{}, err
}

// updatePolicy changes a topic's policy. The last statement stays: a topic without a policy has the default one, which may allow more.
func (s *Service) updatePolicy(ctx context.Context, arn *string, change func(*document) error) error {
	return s.updateTopic(ctx, arn, func(_ *state.Tx, t *state.Topic) error {
		d, err := readDocument(attributeOf(t, "Policy"))
		if err != nil {
			return err
		}
		if err := change(&d); err != nil {
			return err
		}
		if len(d.Statement) == 0 {
			return invalid("Policy Error: the policy's last statement can't be removed; set the attribute Policy instead")
		}
		t.Attributes = maps.Clone(t.Attributes)
		return s.setTopicAttribute(t, "Policy", encode(d))
	})
}
