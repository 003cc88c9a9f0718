package cloudformation

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	watch "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

const (
	guarded = `Resources:
  Kept: {Type: AWS::SSM::Parameter, Properties: {Name: kept, Type: String, Value: a}}
  Free: {Type: AWS::SSM::Parameter, Properties: {Name: free, Type: String, Value: a}}
`
	keeps = `{"Statement": [
  {"Effect": "Allow", "Action": "Update:*", "Principal": "*", "Resource": "*"},
  {"Effect": "Deny", "Action": "Update:*", "Principal": "*", "Resource": "LogicalResourceId/Kept"}
]}`
	opens = `{"Statement": {"Effect": "Allow", "Action": "Update:*", "Principal": "*", "Resource": "*"}}`
)

// updateWith updates the stack s, and expects how that ends.
func (w *world) updateWith(in cloudformation.UpdateStackInput, want types.StackStatus) {
	w.t.Helper()
	in.StackName = aws.String("s")
	if _, err := w.UpdateStack(w.t.Context(), &in); err != nil {
		w.t.Fatal(err)
	}
	w.settle()
	w.expect(want)
}

// TestStackPolicy: an update that the stack policy doesn't allow is rolled back, whatever else it would do.
func TestStackPolicy(t *testing.T) {
	for name, text := range map[string]string{
		"modified": strings.ReplaceAll(guarded, "Value: a", "Value: b"),
		"replaced": strings.Replace(guarded, "Name: kept", "Name: other", 1),
		"deleted":  strings.Replace(strings.Replace(guarded, "Kept:", "Other:", 1), "Name: kept", "Name: other", 1),
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.create("s", guarded)
			set := &cloudformation.SetStackPolicyInput{StackName: aws.String("s"), StackPolicyBody: aws.String(keeps)}
			if _, err := w.SetStackPolicy(t.Context(), set); err != nil {
				t.Fatal(err)
			}
			was, rows := w.standing(), map[string]types.ResourceStatus{}
			v := w.store.View()
			for r := range v.StackResources.All() {
				rows[r.Name] = r.Status
			}
			w.updateWith(cloudformation.UpdateStackInput{TemplateBody: &text}, types.StackStatusUpdateRollbackComplete)
			if got := w.standing(); got != was {
				t.Errorf("got:\n%s\nwas:\n%s", got, was)
			}
			if !w.says("Action denied by stack policy: Statement [#2] does not allow [Update:") {
				t.Error("no event tells why")
			}
			for r := range v.StackResources.All() {
				if r.Status != rows[r.Name] {
					t.Errorf("the row of %s changed under a reader's eyes", r.Name)
				}
			}
			for r := range w.store.View().StackResources.All() {
				if r.Status == types.ResourceStatusUpdateFailed {
					t.Errorf("%s is %s after the rollback", r.Name, r.Status)
				}
			}
			w.updateWith(cloudformation.UpdateStackInput{TemplateBody: &text, StackPolicyDuringUpdateBody: aws.String(opens)}, types.StackStatusUpdateComplete)
			out, err := w.GetStackPolicy(t.Context(), &cloudformation.GetStackPolicyInput{StackName: aws.String("s")})
			if err != nil || *out.StackPolicyBody != keeps {
				t.Errorf("the policy of one update stayed: %v %v", out, err)
			}
		})
	}
}

// TestStackPolicyIsReplaced: an update's own policy is the next one's.
func TestStackPolicyIsReplaced(t *testing.T) {
	w := newWorld(t, nil)
	in := &cloudformation.CreateStackInput{StackName: aws.String("s"), TemplateBody: aws.String(guarded), StackPolicyBody: aws.String(keeps)}
	if _, err := w.CreateStack(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	w.settle()
	kept, free := strings.Replace(guarded, "Value: a", "Value: b", 1), strings.Replace(guarded, "free, Type: String, Value: a", "free, Type: String, Value: b", 1)
	w.updateWith(cloudformation.UpdateStackInput{TemplateBody: &kept, StackPolicyBody: aws.String(opens)}, types.StackStatusUpdateRollbackComplete)
	w.updateWith(cloudformation.UpdateStackInput{TemplateBody: &free, StackPolicyBody: aws.String(opens)}, types.StackStatusUpdateComplete)
	w.updateWith(cloudformation.UpdateStackInput{TemplateBody: &kept}, types.StackStatusUpdateComplete)
}

func TestStackPolicyRefused(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", guarded)
	for _, c := range []struct {
		body, url *string
		want      string
	}{
		{nil, nil, "Either StackPolicyBody or StackPolicyURL must be specified."},
		{aws.String(opens), aws.String("https://b.s3.amazonaws.com/p"), "You cannot specify both StackPolicyURL and StackPolicyBody"},
		{aws.String(strings.Replace(opens, "Update:*", "s3:*", 1)), nil, `Error validating stack policy: statement [#1]: unknown action "s3:*": there are Update:Modify, Update:Replace, Update:Delete and Update:*`},
		{aws.String(opens + strings.Repeat(" ", maxPolicy)), nil, "Error validating stack policy: it must have at most 16384 bytes"},
	} {
		_, err := w.SetStackPolicy(t.Context(), &cloudformation.SetStackPolicyInput{StackName: aws.String("s"), StackPolicyBody: c.body, StackPolicyURL: c.url})
		check(t, c.want, err, c.want)
	}
	out, err := w.GetStackPolicy(t.Context(), &cloudformation.GetStackPolicyInput{StackName: aws.String("s")})
	if err != nil || out.StackPolicyBody != nil {
		t.Errorf("a stack without a policy: %v %v", out, err)
	}
}

// alarm makes an alarm, in a state, and returns a configuration that rolls back by it.
func (w *world) alarm(name string, value watch.StateValue, minutes int32) *types.RollbackConfiguration {
	w.t.Helper()
	call1[cloudwatch.PutMetricAlarmOutput](w, &cloudwatch.PutMetricAlarmInput{
		AlarmName: &name, Namespace: aws.String("N"), MetricName: aws.String("M"), Period: aws.Int32(60), EvaluationPeriods: aws.Int32(1),
		Threshold: aws.Float64(1), ComparisonOperator: watch.ComparisonOperatorGreaterThanThreshold, Statistic: watch.StatisticSum,
	})
	w.ring(name, value)
	arn := "arn:aws:cloudwatch:us-east-1:000000000000:alarm:" + name
	return &types.RollbackConfiguration{
		MonitoringTimeInMinutes: &minutes,
		RollbackTriggers:        []types.RollbackTrigger{{Arn: &arn, Type: aws.String("AWS::CloudWatch::Alarm")}},
	}
}

func (w *world) ring(name string, value watch.StateValue) {
	w.t.Helper()
	call1[cloudwatch.SetAlarmStateOutput](w, &cloudwatch.SetAlarmStateInput{AlarmName: &name, StateValue: value, StateReason: aws.String("test")})
}

// TestRollbackTriggers: an alarm rolls an operation back, also while that only waits. What no alarm stops ends after its time.
func TestRollbackTriggers(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", guarded)
	was := w.standing()
	next := strings.ReplaceAll(guarded, "Value: a", "Value: b")
	rings := w.alarm("a", watch.StateValueOk, 5)
	w.updateWith(cloudformation.UpdateStackInput{TemplateBody: &next, RollbackConfiguration: rings}, types.StackStatusUpdateInProgress)
	w.later = 4 * time.Minute
	w.settle()
	w.expect(types.StackStatusUpdateInProgress)
	w.ring("a", watch.StateValueAlarm)
	w.settle()
	w.expect(types.StackStatusUpdateRollbackComplete)
	if got := w.standing(); got != was {
		t.Errorf("got:\n%s\nwas:\n%s", got, was)
	}
	if !w.says("Rollback trigger arn:aws:cloudwatch:us-east-1:000000000000:alarm:a is in ALARM state.") {
		t.Error("no event tells why")
	}
	w.updateWith(cloudformation.UpdateStackInput{TemplateBody: &next}, types.StackStatusUpdateRollbackComplete)
	w.ring("a", watch.StateValueInsufficientData)
	w.updateWith(cloudformation.UpdateStackInput{TemplateBody: &next}, types.StackStatusUpdateInProgress)
	w.later += 5 * time.Minute
	w.settle()
	w.expect(types.StackStatusUpdateComplete)
}

// TestNewStackWithTriggers: a new stack is deleted for an alarm, also for one that isn't there; without alarms it doesn't wait.
func TestNewStackWithTriggers(t *testing.T) {
	w := newWorld(t, nil)
	create := func(name string, r *types.RollbackConfiguration) {
		t.Helper()
		text := strings.ReplaceAll(guarded, "Name: ", "Name: "+name)
		in := &cloudformation.CreateStackInput{StackName: &name, TemplateBody: &text, RollbackConfiguration: r}
		if _, err := w.CreateStack(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		w.settle()
	}
	status := func(name string) types.StackStatus { return w.store.View().StackNamed(name).StackStatus }
	create("rings", w.alarm("a", watch.StateValueAlarm, 0))
	create("nobody", &types.RollbackConfiguration{RollbackTriggers: []types.RollbackTrigger{
		{Arn: aws.String("arn:aws:cloudwatch:us-east-1:000000000000:alarm:nope"), Type: aws.String("AWS::CloudWatch::Alarm")},
	}})
	create("alone", &types.RollbackConfiguration{MonitoringTimeInMinutes: aws.Int32(5)})
	w.ring("a", watch.StateValueOk)
	waits := w.alarm("b", watch.StateValueOk, 5)
	create("waits", waits)
	for name, want := range map[string]types.StackStatus{
		"rings": types.StackStatusRollbackComplete, "nobody": types.StackStatusRollbackComplete,
		"alone": types.StackStatusCreateComplete, "waits": types.StackStatusCreateInProgress,
	} {
		if got := status(name); got != want {
			t.Errorf("%s is %s, not %s", name, got, want)
		}
	}
	w.later = 5 * time.Minute
	w.settle()
	if got := status("waits"); got != types.StackStatusCreateComplete {
		t.Errorf("after its time it's %s", got)
	}
	wrong := &types.RollbackConfiguration{RollbackTriggers: []types.RollbackTrigger{{Arn: waits.RollbackTriggers[0].Arn, Type: aws.String("AWS::SNS::Topic")}}}
	_, err := w.CreateStack(t.Context(), &cloudformation.CreateStackInput{StackName: aws.String("x"), TemplateBody: aws.String(guarded), RollbackConfiguration: wrong})
	check(t, "a type", err, "Rollback Trigger Type not supported")
	wrong.RollbackTriggers[0] = types.RollbackTrigger{Arn: aws.String("arn:aws:cloudwatch:us-east-1:000000000000:a"), Type: aws.String("AWS::CloudWatch::Alarm")}
	_, err = w.CreateStack(t.Context(), &cloudformation.CreateStackInput{StackName: aws.String("x"), TemplateBody: aws.String(guarded), RollbackConfiguration: wrong})
	check(t, "no alarm", err, "RelativeId of a Rollback Trigger's ARN is incorrect")
}

// TestStackPolicyOfWhatWasNeverMade: the stack policy keeps what there is, not what an update failed to make.
func TestStackPolicyOfWhatWasNeverMade(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", guarded)
	set := &cloudformation.SetStackPolicyInput{StackName: aws.String("s"), StackPolicyBody: aws.String(strings.ReplaceAll(keeps, "Kept", "Bad"))}
	if _, err := w.SetStackPolicy(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	w.becomeKeeping(guarded + "  Bad: {Type: AWS::SSM::Parameter, Properties: {Name: kept, Type: String, Value: a}}\n")
	w.expect(types.StackStatusUpdateFailed)
	w.becomeKeeping(guarded)
	w.expect(types.StackStatusUpdateComplete)
}
