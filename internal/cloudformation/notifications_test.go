package cloudformation

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// anyTopic takes messages to all topics but one.
type anyTopic struct{}

func (anyTopic) Publish(_ context.Context, in *sns.PublishInput, _ ...func(*sns.Options)) (*sns.PublishOutput, error) {
	if strings.HasSuffix(*in.TopicArn, ":gone") {
		return nil, &smithy.GenericAPIError{Code: "NotFound"}
	}
	return &sns.PublishOutput{}, nil
}

// TestNotifications: each event of a stack is owed to the topics that the stack names, in order and as AWS words it. An update that names
// others changes who is told, and one that names none doesn't.
func TestNotifications(t *testing.T) {
	w := newWorld(t, nil)
	const one, two = "arn:aws:sns:us-east-1:000000000000:one", "arn:aws:sns:us-east-1:000000000000:two"
	statetest.Update(t, w.store, func(tx *state.Tx) {
		tx.Topics.Put(&state.Topic{ARN: one})
		tx.Topics.Put(&state.Topic{ARN: two})
		tx.Topics.Put(&state.Topic{ARN: one + ".fifo", FIFO: true})
	})
	const body = "Resources: {C: {Type: AWS::ECS::Cluster, Properties: {ClusterName: c}}, W: {Type: AWS::CloudFormation::WaitConditionHandle}}"
	create := func(topics ...string) error {
		_, err := w.CreateStack(t.Context(), &cloudformation.CreateStackInput{
			StackName: aws.String("s"), TemplateBody: aws.String(body), NotificationARNs: topics, ClientRequestToken: aws.String("token"),
		})
		return err
	}
	for _, bad := range []string{one + "-gone", "nonsense", one + ".fifo"} {
		if err := create(bad); err == nil || !strings.Contains(err.Error(), bad) || w.store.View().Stacks.Len() != 0 {
			t.Errorf("%s: %v", bad, err)
		}
	}
	if err := create(one); err != nil {
		t.Fatal(err)
	}
	w.settle()
	told := func(topic string) (all []string) {
		for d := range w.store.View().Deliveries.All() {
			if d.Destination == topic {
				all = append(all, d.Body)
			}
		}
		return all
	}
	events := func() int {
		return len(call1[cloudformation.DescribeStackEventsOutput](w, &cloudformation.DescribeStackEventsInput{StackName: aws.String("s")}).StackEvents)
	}
	got := told(one)
	if len(got) != events() || len(got) < 6 {
		t.Fatalf("%d events were told of %d", len(got), events())
	}
	stack := w.store.View().StackNamed("s")
	last := got[len(got)-1]
	for _, line := range []string{
		"StackId='" + *stack.StackId + "'\n", "LogicalResourceId='s'\n", "Namespace='000000000000'\n", "PhysicalResourceId='" + *stack.StackId + "'\n",
		"ResourceProperties='null'\n", "ResourceStatus='CREATE_COMPLETE'\n", "ResourceStatusReason=''\n", "ResourceType='AWS::CloudFormation::Stack'\n",
		"StackName='s'\n", "ClientRequestToken='token'\n", "Timestamp='20",
	} {
		if !strings.Contains(last, line) {
			t.Errorf("the last message has no %q:\n%s", line, last)
		}
	}
	if !slices.ContainsFunc(got, func(m string) bool {
		return strings.Contains(m, `ResourceProperties='{"ClusterName":"c"}'`) && strings.Contains(m, "ResourceStatus='CREATE_COMPLETE'")
	}) {
		t.Errorf("no message tells the cluster's properties:\n%s", strings.Join(got, "\n"))
	}
	update := func(body string, topics ...string) error {
		_, err := w.UpdateStack(t.Context(), &cloudformation.UpdateStackInput{StackName: aws.String("s"), TemplateBody: &body, NotificationARNs: topics})
		w.settle()
		return err
	}
	more := strings.Replace(body, "{C:", "{V: {Type: AWS::CloudFormation::WaitConditionHandle}, C:", 1)
	before := events()
	if err := cmp.Or(update(more), update(more, two)); err != nil || len(told(one)) <= before || len(told(two)) == 0 {
		t.Errorf("%v: %d and %d were told", err, len(told(one)), len(told(two)))
	}
	if got := call1[cloudformation.DescribeStacksOutput](w, &cloudformation.DescribeStacksInput{}).Stacks[0]; !slices.Equal(got.NotificationARNs, []string{two}) || got.StackStatus != types.StackStatusUpdateComplete {
		t.Errorf("the stack is %s with %q", got.StackStatus, got.NotificationARNs)
	}
	w.remove("s")
	if got := told(two); !strings.Contains(got[len(got)-1], "ResourceStatus='DELETE_COMPLETE'") {
		t.Errorf("the last is %s", got[len(got)-1])
	}
}
