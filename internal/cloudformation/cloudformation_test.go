package cloudformation

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/smithy-go"
)

// bucket has templates by their bucket and key.
type bucket map[string]string

func (b bucket) GetObject(_ context.Context, in *s3.GetObjectInput, _ ...func(*s3.Options)) (*s3.GetObjectOutput, error) {
	text, there := b[*in.Bucket+" "+*in.Key]
	if !there {
		return nil, &s3types.NoSuchKey{Message: aws.String("The specified key does not exist.")}
	}
	return &s3.GetObjectOutput{Body: io.NopCloser(strings.NewReader(text)), ContentLength: aws.Int64(int64(len(text)))}, nil
}

const queue = "Description: d\nMetadata: {b: 1, a: [x]}\nResources: {Q: {Type: AWS::SQS::Queue}}"

func TestTemplateURL(t *testing.T) {
	s := New(nil, nil, Options{Objects: bucket{"b x/y.yml": queue, "b big": "#" + strings.Repeat(" ", maxObject)}})
	for _, c := range []struct{ location, want string }{
		{"https://s3.amazonaws.com/b/x/y.yml", ""},
		{"https://s3.us-east-1.amazonaws.com/b/x/y.yml", ""},
		{"https://b.s3.amazonaws.com/x/y.yml", ""},
		{"https://b.s3.us-east-1.amazonaws.com/x/y.yml", ""},
		{"http://127.0.0.1:4566/b/x%2Fy.yml", ""},
		{"http://127.0.0.1:4566/b/nope", "S3 error: The specified key does not exist."},
		{"http://127.0.0.1:4566/b/big", "Template may not exceed 1048576 bytes in size."},
		{"http://127.0.0.1:4566/b", "TemplateURL must be a supported URL."},
		{"file:///etc/passwd", "TemplateURL must be a supported URL."},
		{"://", "TemplateURL must be a supported URL."},
	} {
		_, err := s.ValidateTemplate(t.Context(), &cloudformation.ValidateTemplateInput{TemplateURL: &c.location})
		check(t, c.location, err, c.want)
	}
}

// check compares an error's message. Each must be a ValidationError.
func check(t *testing.T, what string, err error, want string) {
	t.Helper()
	var refused smithy.APIError
	if errors.As(err, &refused) && refused.ErrorCode() == "ValidationError" && refused.ErrorMessage() == want {
		return
	}
	if err != nil || want != "" {
		t.Errorf("%s: got %v, want %q", what, err, want)
	}
}

func TestOneTemplate(t *testing.T) {
	s := New(nil, nil, Options{})
	for _, c := range []struct {
		in   cloudformation.ValidateTemplateInput
		want string
	}{
		{cloudformation.ValidateTemplateInput{}, "Either Template URL or Template Body must be specified."},
		{
			cloudformation.ValidateTemplateInput{TemplateBody: aws.String(queue), TemplateURL: aws.String("x")},
			"You cannot specify both TemplateBody and TemplateURL",
		},
		{
			cloudformation.ValidateTemplateInput{TemplateBody: aws.String(strings.Repeat(" ", maxBody+1))},
			"1 validation error detected: Value at 'templateBody' failed to satisfy constraint: Member must have length less than or equal to 51200",
		},
		{cloudformation.ValidateTemplateInput{TemplateBody: aws.String("{")}, "Template format error: JSON not well-formed. (line 1, column 2)"},
	} {
		_, err := s.ValidateTemplate(t.Context(), &c.in)
		check(t, c.want, err, c.want)
	}
}

func TestEstimate(t *testing.T) {
	s := newWorld(t, nil)
	const named = `{"Parameters": {"Days": {"Type": "Number", "MaxValue": 14}}, "Resources": {
		"R": {"Type": "AWS::IAM::Role", "Properties": {"RoleName": {"Ref": "Days"}, "AssumeRolePolicyDocument": {}}}}}`
	for what, c := range map[string]struct{ body, days, want string }{
		"nothing is made, so nothing is acknowledged": {named, "7", ""},
		"a value out of bounds":                       {named, "15", "Parameter 'Days' must be a number not greater than 14"},
		"no value":                                    {named, "", "Parameters: [Days] must have values"},
		"a type that isn't there":                     {`{"Resources": {"R": {"Type": "A::B::C"}}}`, "", "Template format error: Unrecognized resource types: [A::B::C]"},
	} {
		in := &cloudformation.EstimateTemplateCostInput{TemplateBody: &c.body}
		if c.days != "" {
			in.Parameters = []types.Parameter{{ParameterKey: aws.String("Days"), ParameterValue: &c.days}}
		}
		out, err := s.EstimateTemplateCost(t.Context(), in)
		check(t, what, err, c.want)
		if err == nil && aws.ToString(out.Url) == "" {
			t.Errorf("%s: no URL", what)
		}
	}
}

func TestSummary(t *testing.T) {
	s := newWorld(t, nil)
	out, err := s.GetTemplateSummary(t.Context(), &cloudformation.GetTemplateSummaryInput{TemplateBody: aws.String(queue)})
	if err != nil || *out.Metadata != `{"b":1,"a":["x"]}` || *out.Description != "d" || out.Version != nil || out.Capabilities != nil || out.Parameters == nil {
		t.Errorf("got %+v, %v", out, err)
	}
	_, err = s.GetTemplateSummary(t.Context(), &cloudformation.GetTemplateSummaryInput{StackName: aws.String("s")})
	check(t, "a stack", err, "Stack with id s does not exist")
	_, err = s.GetTemplateSummary(t.Context(), &cloudformation.GetTemplateSummaryInput{StackSetName: aws.String("s")})
	if missing := (*types.StackSetNotFoundException)(nil); !errors.As(err, &missing) {
		t.Errorf("a set of stacks: %v", err)
	}
}
