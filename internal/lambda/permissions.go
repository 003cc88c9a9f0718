package lambda

import (
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"github.com/pintle/pintle/internal/state"
)

// document is a function's policy. Who may do what by it is decided before a call gets here.
type document struct {
	Version   string
	ID        string `json:"Id"`
	Statement []statement
}

type statement struct {
	Sid       string
	Effect    string
	Principal any
	Action    string
	Resource  string
	Condition map[string]map[string]string `json:",omitempty"`
}

// maxPolicy is the most bytes of a function's policy.
const maxPolicy = 20 << 10

var accountID = regexp.MustCompile(`^[0-9]{12}$`)

// principal returns a principal as policies have it: a service, everybody, or somebody of an account.
func principal(given string) any {
	switch {
	case given == "*":
		return "*"
	case strings.HasSuffix(given, ".amazonaws.com"):
		return map[string]string{"Service": given}
	case accountID.MatchString(given):
		return map[string]string{"AWS": "arn:aws:iam::" + given + ":root"}
	}
	return map[string]string{"AWS": given}
}

// statementOf returns the statement that a call asks for.
func statementOf(in *lambda.AddPermissionInput, arn string) (statement, error) {
	p := statement{Sid: *in.StatementId, Effect: "Allow", Principal: principal(*in.Principal), Action: *in.Action, Resource: arn}
	condition := func(operator, key string, value *string) {
		if value == nil {
			return
		}
		if p.Condition == nil {
			p.Condition = map[string]map[string]string{}
		}
		if p.Condition[operator] == nil {
			p.Condition[operator] = map[string]string{}
		}
		p.Condition[operator][key] = *value
	}
	condition("StringEquals", "AWS:SourceAccount", in.SourceAccount)
	condition("ArnLike", "AWS:SourceArn", in.SourceArn)
	condition("StringEquals", "aws:PrincipalOrgID", in.PrincipalOrgID)
	condition("StringEquals", "lambda:EventSourceToken", in.EventSourceToken)
	switch text, isText := p.Principal.(string); {
	case in.FunctionUrlAuthType != "" || in.InvokedViaFunctionUrl != nil:
		return p, invalid("FunctionUrlAuthType: Pintle has no function URLs.")
	case isText && text == "*", strings.Contains(*in.Principal, ":"), accountID.MatchString(*in.Principal),
		strings.HasSuffix(*in.Principal, ".amazonaws.com"):
		return p, nil
	}
	return p, invalid("The provided principal was invalid. Please check the principal and try again.")
}

// AddPermission lets somebody invoke a function.
func (s *Service) AddPermission(ctx context.Context, in *lambda.AddPermissionInput) (*lambda.AddPermissionOutput, error) {
	name, qualifier, err := s.target(in.FunctionName, in.Qualifier)
	if err != nil {
		return nil, err
	}
	if qualifier == state.Latest {
		return nil, invalid("We currently do not support adding policies for $LATEST.")
	}
	made, err := statementOf(in, s.functionARN(name, qualifier))
	if err != nil {
		return nil, err
	}
	err = s.changePolicy(ctx, name, qualifier, in.RevisionId, func(d *document) error {
		if slices.ContainsFunc(d.Statement, func(other statement) bool { return other.Sid == made.Sid }) {
			return conflict("The statement id (%s) provided already exists. Please provide a new statement id, or remove the existing statement.",
				made.Sid)
		}
		d.Statement = append(d.Statement, made)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &lambda.AddPermissionOutput{Statement: aws.String(encode(made))}, nil
}

func encode(v any) string {
	b, _ := json.Marshal(v) //nolint:errcheck // texts alone
	return string(b)
}

// changePolicy changes the policy of a function, or of what a qualifier stands for.
func (s *Service) changePolicy(ctx context.Context, name, qualifier string, revision *string, change func(*document) error) error {
	_, err := s.update(ctx, &name, func(tx *state.Tx, f *state.Function, _ *state.FunctionVersion) error {
		if _, err := s.version(tx.View, name, qualifier); err != nil {
			return err
		}
		old, there := f.Policies[qualifier]
		d := document{Version: "2012-10-17", ID: "default"}
		if there {
			if err := json.Unmarshal([]byte(old.Document), &d); err != nil {
				return err
			}
			if err := checkRevision(revision, &old.RevisionID); err != nil {
				return err
			}
		}
		if err := change(&d); err != nil {
			return err
		}
		f.Policies = maps.Clone(f.Policies)
		if f.Policies == nil {
			f.Policies = map[string]state.FunctionPolicy{}
		}
		text := encode(d)
		switch {
		case len(d.Statement) == 0:
			delete(f.Policies, qualifier)
		case len(text) > maxPolicy:
			return policyTooLong()
		default:
			f.Policies[qualifier] = state.FunctionPolicy{Document: text, RevisionID: state.NewUUID()}
		}
		return nil
	})
	return err
}

// RemovePermission takes a permission back.
func (s *Service) RemovePermission(ctx context.Context, in *lambda.RemovePermissionInput) (*lambda.RemovePermissionOutput, error) {
	name, qualifier, err := s.target(in.FunctionName, in.Qualifier)
	if err != nil {
		return nil, err
	}
	err = s.changePolicy(ctx, name, qualifier, in.RevisionId, func(d *document) error {
		before := len(d.Statement)
		d.Statement = slices.DeleteFunc(d.Statement, func(p statement) bool { return p.Sid == *in.StatementId })
		if len(d.Statement) == before {
			return notFound("Statement %s is not found in resource policy.", *in.StatementId)
		}
		return nil
	})
	return &lambda.RemovePermissionOutput{}, err
}

// errNoPolicy is Lambda's error for a function without a policy, and for one that isn't there.
var errNoPolicy = notFound("The resource you requested does not exist.")

// GetPolicy returns a function's policy.
func (s *Service) GetPolicy(_ context.Context, in *lambda.GetPolicyInput) (*lambda.GetPolicyOutput, error) {
	name, qualifier, err := s.target(in.FunctionName, in.Qualifier)
	if err != nil {
		return nil, err
	}
	f := s.store.View().Functions.Get(name)
	if f == nil {
		return nil, errNoPolicy
	}
	p, there := f.Policies[qualifier]
	if !there {
		return nil, errNoPolicy
	}
	return &lambda.GetPolicyOutput{Policy: &p.Document, RevisionId: &p.RevisionID}, nil
}
