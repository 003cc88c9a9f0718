package cloudformation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

const caused = `
Parameters: {P: {Type: String, Default: one}, Q: {Type: String, Default: same}}
Resources:
  A: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: !Sub '${P} and ${Q}', Description: plain, Tags: {k: !Ref P}}}
  C: {Type: AWS::ECS::Cluster, UpdateReplacePolicy: Retain, Properties: {ClusterName: !Sub 'c-${P}'}}
  S: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: !Ref C, Description: !GetAtt A.Value}}
  M: {Type: AWS::SSM::Parameter, Metadata: {a: b}, Properties: {Type: String, Value: m}}
  Kept: {Type: AWS::SSM::Parameter, DeletionPolicy: Retain, Properties: {Type: String, Value: kept}}
  Gone: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: gone}}
`

// TestCauses: a change set says what each change comes from, how surely, and what becomes of what goes.
func TestCauses(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", caused)
	was, _, _ := strings.Cut(caused, "  Kept:")
	next := strings.NewReplacer("plain", "edited", "{a: b}", "{a: c}", "M: {", "M: {DeletionPolicy: Retain, ").Replace(was)
	_, err := w.CreateChangeSet(t.Context(), &cloudformation.CreateChangeSetInput{
		StackName: aws.String("s"), ChangeSetName: aws.String("c"), TemplateBody: &next,
		Parameters: []types.Parameter{{ParameterKey: aws.String("P"), ParameterValue: aws.String("two")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	set, err := w.DescribeChangeSet(t.Context(), &cloudformation.DescribeChangeSetInput{StackName: aws.String("s"), ChangeSetName: aws.String("c")})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, c := range set.Changes {
		r := c.ResourceChange
		lines = append(lines, fmt.Sprint(*r.LogicalResourceId, " ", r.Action, " ", r.Replacement, " ", r.PolicyAction, " ", r.Scope))
		for _, d := range r.Details {
			lines = append(lines, fmt.Sprint(*r.LogicalResourceId, ": ", d.Target.Attribute, " ", aws.ToString(d.Target.Name), " ", d.ChangeSource, " ",
				d.Evaluation, " ", aws.ToString(d.CausingEntity), " ", d.Target.RequiresRecreation))
		}
	}
	slices.Sort(lines)
	want := `A Modify False  [Properties Tags]
A: Properties Description DirectModification Static  Never
A: Properties Value DirectModification Dynamic  Never
A: Properties Value ParameterReference Static P Never
A: Tags  DirectModification Dynamic  Never
A: Tags  ParameterReference Static P Never
C Modify True ReplaceAndRetain [Properties]
C: Properties ClusterName DirectModification Dynamic  Always
C: Properties ClusterName ParameterReference Static P Always
Gone Remove  Delete []
Kept Remove  Retain []
M Modify False  [Metadata DeletionPolicy]
M: DeletionPolicy  DirectModification Static  Never
M: Metadata  DirectModification Static  Never
S Modify False  [Properties]
S: Properties Description ResourceAttribute Dynamic A.Value Never
S: Properties Value ResourceReference Dynamic C Never`
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	w.executes()
	w.expect(types.StackStatusUpdateComplete)
}
