package cloudformation

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/state"
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

// TestPoliciesOfFunctions: what becomes of a resource may depend on parameters with the transform alone.
func TestPoliciesOfFunctions(t *testing.T) {
	const text = `
Parameters: {Keep: {Type: String, Default: 'no'}, Policy: {Type: String, Default: Retain}}
Conditions: {IsKept: !Equals [!Ref Keep, 'yes']}
Mappings: {M: {k: {v: Delete}}}
Resources:
  C: {Type: AWS::ECS::Cluster, DeletionPolicy: !If [IsKept, !Ref Policy, !FindInMap [M, k, v]], UpdateReplacePolicy: !Ref Policy}
`
	w := newWorld(t, nil)
	in := &cloudformation.CreateStackInput{StackName: aws.String("s"), TemplateBody: aws.String(text), Capabilities: acknowledgedAll}
	_, err := w.CreateStack(t.Context(), in)
	check(t, "without the transform", err, "Template format error: Every DeletionPolicy member must be a string.")
	in.TemplateBody = aws.String(strings.Replace(text, "DeletionPolicy: !If [IsKept, !Ref Policy, !FindInMap [M, k, v]], ", "", 1))
	_, err = w.CreateStack(t.Context(), in)
	check(t, "without the transform", err, "Template format error: Every UpdateReplacePolicy member must be a string.")
	const extended = "Transform: AWS::LanguageExtensions" + text
	in.TemplateBody = aws.String(extended)
	for value, want := range map[string]string{"Keep": "Template format error: Unrecognized UpdateReplacePolicy Keep for resource C", "Retain": ""} {
		in.Parameters = []types.Parameter{{ParameterKey: aws.String("Policy"), ParameterValue: &value}}
		_, err = w.CreateStack(t.Context(), in)
		check(t, value, err, want)
	}
	w.settle()
	row := func() *state.StackResource {
		for r := range w.store.View().StackResources.All() {
			return r
		}
		return nil
	}
	if r := row(); r.DeletionPolicy != "Delete" || r.UpdateReplacePolicy != "Retain" {
		t.Errorf("the policies are %s and %s", r.DeletionPolicy, r.UpdateReplacePolicy)
	}
	_, err = w.UpdateStack(t.Context(), &cloudformation.UpdateStackInput{
		StackName: in.StackName, UsePreviousTemplate: aws.Bool(true), Capabilities: acknowledgedAll,
		Parameters: []types.Parameter{{ParameterKey: aws.String("Keep"), ParameterValue: aws.String("yes")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.settle()
	if r := row(); r.DeletionPolicy != "Retain" {
		t.Errorf("after the update the policy is %s", r.DeletionPolicy)
	}
	w.remove("s")
	if n := w.store.View().Clusters.Len(); n != 1 {
		t.Errorf("%d clusters are left", n)
	}
}
