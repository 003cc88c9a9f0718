package cloudformation

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pintle/pintle/internal/wire/call"
)

// withObjects are services of which S3 has the texts of a bucket.
type withObjects struct {
	call.Caller
	texts bucket
}

func (c withObjects) Call(ctx context.Context, in any) (any, error) {
	if get, ok := in.(*s3.GetObjectInput); ok {
		return c.texts.GetObject(ctx, get)
	}
	return c.Caller.Call(ctx, in)
}

const including = `
Parameters: {Key: {Type: String, Default: part.yml}}
Resources:
  A: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: a}}
  Fn::Transform: {Name: AWS::Include, Parameters: {Location: !Sub 's3://b/${Key}'}}
`

const partText = "B: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: {Ref: A}}}"

// TestInclude: a stack has what its template includes, as it was when the stack was last made or updated.
func TestInclude(t *testing.T) {
	w := newWorld(t, nil)
	w.texts["b part.yml"] = strings.Replace(partText, "{Ref: A}", "one", 1)
	in := &cloudformation.CreateStackInput{StackName: aws.String("s"), TemplateBody: aws.String(including)}
	_, err := w.CreateStack(t.Context(), in)
	if err == nil || !strings.Contains(err.Error(), "Requires capabilities : [CAPABILITY_AUTO_EXPAND]") {
		t.Errorf("without capability: %v", err)
	}
	w.create("s", including)
	w.expect(types.StackStatusCreateComplete)
	if got := w.parameters(); got != "a, one" {
		t.Fatalf("there are %s", got)
	}
	for stage, want := range map[types.TemplateStage]string{
		types.TemplateStageOriginal:  including,
		types.TemplateStageProcessed: `{"Type":"AWS::SSM::Parameter","Properties":{"Type":"String","Value":"one"}}`,
	} {
		out, err := w.GetTemplate(t.Context(), &cloudformation.GetTemplateInput{StackName: in.StackName, TemplateStage: stage})
		if err != nil || !strings.Contains(*out.TemplateBody, want) {
			t.Errorf("%s: got %v, %v", stage, out, err)
		}
	}
	w.texts["b part.yml"] = strings.Replace(partText, "{Ref: A}", "two", 1)
	w.become("s", including)
	if got := w.parameters(); got != "a, two" {
		t.Errorf("after an update of the same template there are %s", got)
	}
	delete(w.texts, "b part.yml")
	w.texts["b other.yml"] = strings.Replace(partText, "{Ref: A}", "three", 1)
	_, err = w.UpdateStack(t.Context(), &cloudformation.UpdateStackInput{
		StackName: in.StackName, UsePreviousTemplate: aws.Bool(true), Capabilities: acknowledgedAll,
		Parameters: []types.Parameter{{ParameterKey: aws.String("Key"), ParameterValue: aws.String("other.yml")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.settle()
	if got := w.parameters(); got != "a, three" {
		t.Errorf("after an update of the previous template there are %s", got)
	}
	w.remove("s")
	w.expect(types.StackStatusDeleteComplete)
}

// TestIncludeByChangeSet: a change set needs no acknowledgement, and shows what is included when it is made.
func TestIncludeByChangeSet(t *testing.T) {
	w := newWorld(t, nil)
	w.texts["b part.yml"] = partText
	in := &cloudformation.CreateChangeSetInput{
		StackName: aws.String("s"), ChangeSetName: aws.String("c"), ChangeSetType: types.ChangeSetTypeCreate, TemplateBody: aws.String(including),
	}
	if _, err := w.CreateChangeSet(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	set, err := w.DescribeChangeSet(t.Context(), &cloudformation.DescribeChangeSetInput{StackName: in.StackName, ChangeSetName: in.ChangeSetName})
	if err != nil || len(set.Changes) != 2 {
		t.Fatalf("got %+v, %v", set, err)
	}
	delete(w.texts, "b part.yml")
	w.executes()
	w.expect(types.StackStatusCreateComplete)
	in.ChangeSetName, in.ChangeSetType = aws.String("d"), types.ChangeSetTypeUpdate
	_, err = w.CreateChangeSet(t.Context(), in)
	check(t, "a part that isn't there", err, "Transform AWS::Include failed with: The specified key does not exist.")
}

// TestIncludeSummary: a template's parameters are known without what it includes.
func TestIncludeSummary(t *testing.T) {
	w := newWorld(t, nil)
	out, err := w.GetTemplateSummary(t.Context(), &cloudformation.GetTemplateSummaryInput{TemplateBody: aws.String(including)})
	if err != nil || len(out.Parameters) != 1 || out.ResourceTypes != nil || len(out.DeclaredTransforms) != 1 ||
		out.DeclaredTransforms[0] != "AWS::Include" || out.Capabilities[0] != types.CapabilityCapabilityAutoExpand {
		t.Errorf("got %+v, %v", out, err)
	}
	w.texts["b part.yml"] = partText
	w.create("s", including)
	out, err = w.GetTemplateSummary(t.Context(), &cloudformation.GetTemplateSummaryInput{StackName: aws.String("s")})
	if err != nil || len(out.Parameters) != 1 {
		t.Errorf("of the stack: %+v, %v", out, err)
	}
}
