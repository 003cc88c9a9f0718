package cloudformation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

// BenchmarkPlan plans the change of one of a stack's 500 resources: the template is read and checked, its values are evaluated and compared
// with what there is.
func BenchmarkPlan(b *testing.B) {
	text := func(changed string) *string {
		var t strings.Builder
		t.WriteString("Resources:\n")
		for i := range 500 {
			value := "!Sub '${AWS::StackName}'"
			switch {
			case i == 250:
				value = changed
			case i%2 == 1:
				value = fmt.Sprintf("!Ref R%d", i-1)
			}
			fmt.Fprintf(&t, "  R%d: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: %s}}\n", i, value)
		}
		return aws.String(t.String())
	}
	w := newWorld(b, nil)
	w.create("s", *text("before"))
	after := text("after")
	b.ReportAllocs()
	for b.Loop() {
		in := &cloudformation.CreateChangeSetInput{StackName: aws.String("s"), ChangeSetName: aws.String("c"), TemplateBody: after}
		if _, err := w.CreateChangeSet(b.Context(), in); err != nil {
			b.Fatal(err)
		}
		b.StopTimer()
		made, err := w.DescribeChangeSet(b.Context(), &cloudformation.DescribeChangeSetInput{StackName: in.StackName, ChangeSetName: in.ChangeSetName})
		if err != nil || made.Status != types.ChangeSetStatusCreateComplete || len(made.Changes) != 1 {
			b.Fatal(made, err)
		}
		if _, err := w.DeleteChangeSet(b.Context(), &cloudformation.DeleteChangeSetInput{StackName: in.StackName, ChangeSetName: in.ChangeSetName}); err != nil {
			b.Fatal(err)
		}
		b.StartTimer()
	}
}
