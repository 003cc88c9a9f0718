package cloudformation

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// failures are the reasons of the resources that failed.
func (w *world) failures() string {
	var all []string
	v := w.store.View()
	for s := range v.Stacks.All() {
		for e := range v.EventsOf(*s.StackId) {
			if strings.HasSuffix(string(e.ResourceStatus), "_FAILED") && *e.PhysicalResourceId != *s.StackId {
				all = append(all, *e.LogicalResourceId+": "+aws.ToString(e.ResourceStatusReason))
			}
		}
	}
	return strings.Join(all, "; ")
}

// TestLateTypes: a value that only another resource knows is checked like one that the template says.
func TestLateTypes(t *testing.T) {
	const first = "Resources:\n  B: {Type: AWS::SQS::Queue}\n"
	for properties, want := range map[string]string{
		"VisibilityTimeout: !GetAtt B.QueueName": "#/VisibilityTimeout: expected type: Integer, found: String",
		"DelaySeconds: !Sub 'x${B.Arn}'":         "#/DelaySeconds: expected type: Integer, found: String",
		"FifoQueue: !Ref B":                      "#/FifoQueue: expected type: Boolean, found: String",
	} {
		w := withStores(t)
		w.create("s", first+"  A: {Type: AWS::SQS::Queue, Properties: {"+properties+"}}\n")
		w.expect(types.StackStatusRollbackComplete)
		if got := w.failures(); !strings.Contains(got, "A: Properties validation failed for resource A with message:\n"+want) {
			t.Errorf("%s: %s", properties, got)
		}
		w = withStores(t)
		w.create("s", "Resources:\n  A: {Type: AWS::SQS::Queue}\n")
		if strings.HasPrefix(properties, "Fifo") {
			continue // that would be another queue
		}
		w.become("s", first+"  A: {Type: AWS::SQS::Queue, Properties: {"+properties+"}}\n")
		w.expect(types.StackStatusUpdateRollbackComplete)
		if got := w.failures(); !strings.Contains(got, "A: Properties validation failed for resource A with message:\n"+want) {
			t.Errorf("an update to %s: %s", properties, got)
		}
	}
}

// TestQueueOfSomebodyElse: a stack doesn't take a queue that is there for its own, and so its rollback doesn't delete it.
func TestQueueOfSomebodyElse(t *testing.T) {
	w := withStores(t)
	call1[sqs.CreateQueueOutput](w, &sqs.CreateQueueInput{QueueName: aws.String("taken")})
	const text = "Resources:\n  A: {Type: AWS::SQS::Queue, Properties: {QueueName: %}}\n"
	w.create("s", strings.Replace(text, "%", "taken", 1))
	w.expect(types.StackStatusRollbackComplete)
	w.remove("s")
	w.hasQueues(t, 1)

	w = withStores(t)
	call1[sqs.CreateQueueOutput](w, &sqs.CreateQueueInput{QueueName: aws.String("taken")})
	w.create("s", strings.Replace(text, "%", "free", 1))
	w.become("s", strings.Replace(text, "%", "taken", 1))
	w.expect(types.StackStatusUpdateRollbackComplete)
	w.hasQueues(t, 2)
}

// hasQueues checks how many queues there are after a stack couldn't have one.
func (w *world) hasQueues(t *testing.T, n int) {
	t.Helper()
	if got := w.failures(); !strings.Contains(got, "with identifier 'taken' already exists.\" (HandlerErrorCode: AlreadyExists)") {
		t.Error(got)
	}
	if got := call1[sqs.ListQueuesOutput](w, &sqs.ListQueuesInput{}).QueueUrls; len(got) != n {
		t.Errorf("the queues are %v", got)
	}
}

// TestHalfALogGroup: a group whose retention is refused is not left behind.
func TestHalfALogGroup(t *testing.T) {
	w := withStores(t)
	w.create("s", "Resources:\n  G: {Type: AWS::Logs::LogGroup, Properties: {LogGroupName: /half, RetentionInDays: 4}}\n")
	w.expect(types.StackStatusRollbackComplete)
	if got := call1[cloudwatchlogs.DescribeLogGroupsOutput](w, &cloudwatchlogs.DescribeLogGroupsInput{}).LogGroups; len(got) > 0 {
		t.Errorf("%s is left", *got[0].LogGroupName)
	}
}

// TestSecureReferences: a SecureString's value comes into no property that its service would show.
func TestSecureReferences(t *testing.T) {
	w := withStores(t)
	text := `Resources: {Q: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: "a{{resolve:ssm-secure:/s:1}}", Tags: {a: "{{resolve:ssm-secure:/s}}"}}}}`
	_, err := w.CreateStack(t.Context(), &cloudformation.CreateStackInput{StackName: aws.String("s"), TemplateBody: &text})
	check(t, text, err, "SSM Secure reference is not supported in: [AWS::SSM::Parameter/Properties/Tags/a,AWS::SSM::Parameter/Properties/Value]")
	w.isEmpty(t)
}

// TestTemplateInReview: a stack that only has change sets has an empty template, for which the CDK asks.
func TestTemplateInReview(t *testing.T) {
	w := withStores(t)
	w.changeSet(t.Context(), types.ChangeSetTypeCreate, "Resources: {Q: {Type: AWS::SQS::Queue}}", "Q Add ")
	for _, stage := range []types.TemplateStage{"", types.TemplateStageOriginal, types.TemplateStageProcessed} {
		out, err := w.GetTemplate(t.Context(), &cloudformation.GetTemplateInput{StackName: aws.String("s"), TemplateStage: stage})
		if err != nil || *out.TemplateBody != "" {
			t.Errorf("%s: %v, %v", stage, out, err)
		}
	}
}

// TestTypeThatIsNotMade: a template may have types that there are none of where a condition says that nothing is made of them, such as the
// keys of the CDK's bootstrap.
func TestTypeThatIsNotMade(t *testing.T) {
	const text = `
Parameters: {Own: {Type: String, Default: 'no'}}
Conditions: {IsOwn: !Equals [!Ref Own, 'yes']}
Resources:
  Key: {Type: AWS::Nothing::Key, Condition: IsOwn}
  Alias: {Type: AWS::Nothing::Alias, Condition: IsOwn, Properties: {Target: !GetAtt Key.Arn}}
  Name: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: !If [IsOwn, !GetAtt Key.Arn, none]}}
`
	w := withStores(t)
	w.create("s", text)
	w.expect(types.StackStatusCreateComplete)
	yes := []types.Parameter{{ParameterKey: aws.String("Own"), ParameterValue: aws.String("yes")}}
	_, err := w.UpdateStack(t.Context(), &cloudformation.UpdateStackInput{StackName: aws.String("s"), TemplateBody: aws.String(text), Parameters: yes})
	check(t, "a key is to be made", err, "Template format error: Unrecognized resource types: [AWS::Nothing::Key]")
}
