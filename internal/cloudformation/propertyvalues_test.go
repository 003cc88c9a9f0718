package cloudformation

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

// TestPropertyValues: a change set shows the values of what changes when it's asked, and no secrets.
func TestPropertyValues(t *testing.T) {
	const text = `
Parameters: {Secret: {Type: String, NoEcho: true, Default: hidden}, Word: {Type: String, Default: one}}
Resources:
  C:
    Type: AWS::ECS::Cluster
    DeletionPolicy: Delete
    Properties: {ClusterName: c, Tags: [{Key: a, Value: !Ref Word}], ClusterSettings: [{Name: containerInsights, Value: disabled}]}
  P: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: !Ref Secret, Description: before}}
  R: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: r}}
`
	w := newWorld(t, nil)
	w.create("s", text)
	next := strings.NewReplacer("Value: disabled", "Value: enabled", ", Description: before", "", "  R:", "  S:", "Value: r}", "Value: !GetAtt P.Value}").Replace(text)
	in := &cloudformation.CreateChangeSetInput{
		StackName: aws.String("s"), ChangeSetName: aws.String("c"), TemplateBody: &next,
		Parameters: []types.Parameter{{ParameterKey: aws.String("Secret"), ParameterValue: aws.String("other")}, {ParameterKey: aws.String("Word"), ParameterValue: aws.String("two")}},
	}
	if _, err := w.CreateChangeSet(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	describe := func(values bool) []types.Change {
		set, err := w.DescribeChangeSet(t.Context(), &cloudformation.DescribeChangeSetInput{
			StackName: in.StackName, ChangeSetName: in.ChangeSetName, IncludePropertyValues: &values,
		})
		if err != nil || len(set.Changes) != 4 {
			t.Fatalf("got %+v, %v", set, err)
		}
		return set.Changes
	}
	for _, c := range describe(false) {
		if r := c.ResourceChange; r.BeforeContext != nil || r.AfterContext != nil || len(r.Details) > 0 && r.Details[0].Target.Path != nil {
			t.Errorf("without being asked it shows %+v", r)
		}
	}
	var lines []string
	for _, c := range describe(true) {
		r := c.ResourceChange
		lines = append(lines, *r.LogicalResourceId+" before "+aws.ToString(r.BeforeContext), *r.LogicalResourceId+" after "+aws.ToString(r.AfterContext))
		for _, d := range r.Details {
			lines = append(lines, strings.Join([]string{
				string(d.Target.AttributeChangeType), *d.Target.Path, aws.ToString(d.Target.BeforeValue), aws.ToString(d.Target.AfterValue),
			}, " "))
		}
	}
	want := `C before {"Properties":{"ClusterName":"c","ClusterSettings":[{"Name":"containerInsights","Value":"disabled"}],"Tags":[{"Key":"a","Value":"one"}]},"DeletionPolicy":"Delete"}
C after {"Properties":{"ClusterName":"c","ClusterSettings":[{"Name":"containerInsights","Value":"enabled"}],"Tags":[{"Key":"a","Value":"two"}]},"DeletionPolicy":"Delete"}
Modify /Properties/ClusterSettings/0/Value disabled enabled
Modify /Properties/Tags/0/Value one two
Modify /Properties/Tags/0/Value one two
P before {"Properties":{"Description":"before","Type":"String","Value":"****"}}
P after {"Properties":{"Type":"String","Value":"****"}}
Modify /Properties/Value` + "  " + `
Modify /Properties/Value` + "  " + `
Remove /Properties/Description before` + " " + `
R before {"Properties":{"Type":"String","Value":"r"}}
R after` + " " + `
S before` + " " + `
S after {"Properties":{"Type":"String","Value":"{{changeSet:KNOWN_AFTER_APPLY}}"}}`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
