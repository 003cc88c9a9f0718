package cloudformation

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"
)

const looping = `Transform: AWS::LanguageExtensions
Parameters: {Names: {Type: CommaDelimitedList}}
Resources:
  Fn::ForEach::Clusters: [Name, !Ref Names, {'C${Name}': {Type: AWS::ECS::Cluster, Properties: {ClusterName: !Sub 'x-${Name}'}}}]
Outputs:
  Clusters: {Value: {'Fn::ToJsonString': [!Ref Ca, !Ref Cb]}}
`

// TestLanguageExtensions: a stack of a template with loops has what they stand for, and shows both templates.
func TestLanguageExtensions(t *testing.T) {
	w := newWorld(t, nil)
	in := &cloudformation.CreateStackInput{
		StackName:    aws.String("s"),
		TemplateBody: aws.String(looping),
		Parameters:   []types.Parameter{{ParameterKey: aws.String("Names"), ParameterValue: aws.String("a,b")}},
	}
	_, err := w.CreateStack(t.Context(), in)
	if refused, ok := err.(smithy.APIError); !ok || refused.ErrorMessage() != "Requires capabilities : [CAPABILITY_AUTO_EXPAND]" { //nolint:errorlint // it isn't wrapped
		t.Errorf("without capability: %v", err)
	}
	in.Capabilities = []types.Capability{types.CapabilityCapabilityAutoExpand}
	if _, err := w.CreateStack(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	w.settle()
	s := find(w.store.View(), "s")
	if s.StackStatus != types.StackStatusCreateComplete || *s.Outputs[0].OutputValue != `["x-a","x-b"]` {
		t.Fatalf("the stack is %s: %s", s.StackStatus, aws.ToString(s.StackStatusReason))
	}
	for stage, want := range map[types.TemplateStage]string{
		types.TemplateStageOriginal:  looping,
		types.TemplateStageProcessed: `"Ca":{"Type":"AWS::ECS::Cluster","Properties":{"ClusterName":"x-a"}}`,
	} {
		out, err := w.GetTemplate(t.Context(), &cloudformation.GetTemplateInput{StackName: in.StackName, TemplateStage: stage})
		if err != nil || !strings.Contains(*out.TemplateBody, want) {
			t.Errorf("%s: got %v, %v", stage, out, err)
		}
	}
	valid, err := w.ValidateTemplate(t.Context(), &cloudformation.ValidateTemplateInput{TemplateBody: in.TemplateBody})
	if err != nil || len(valid.Parameters) != 1 || len(valid.DeclaredTransforms) != 1 || len(valid.Capabilities) != 1 {
		t.Errorf("validated: %+v, %v", valid, err)
	}
}
