package test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

// scaled is an Auto Scaling group of one test. The test changes it with the AWS CLI and reads it with the SDK, which is faster.
type scaled struct {
	*Pintle
	t      *testing.T
	name   string
	client *autoscaling.Client
}

// createGroup creates a group of 0 to 3 small instances.
func (p *Pintle) createGroup(t *testing.T, name string, args ...string) *scaled {
	t.Helper()
	own := *p
	own.t = t
	g := &scaled{
		Pintle: &own,
		t:      t,
		name:   name,
		client: autoscaling.New(autoscaling.Options{
			Region:       "us-east-1",
			BaseEndpoint: &p.Endpoint,
			Credentials:  credentials.NewStaticCredentialsProvider(p.key, p.secret, ""),
		}),
	}
	g.call("create-auto-scaling-group", append([]string{"--launch-template", "LaunchTemplateName=small", "--min-size", "0",
		"--max-size", "3", "--availability-zones", "us-east-1a", "--default-instance-warmup", "0"}, args...)...)
	return g
}

// call calls an operation on the group.
func (g *scaled) call(operation string, args ...string) string {
	g.t.Helper()
	return g.AWS(append([]string{"autoscaling", operation, "--auto-scaling-group-name", g.name, "--output", "text"}, args...)...)
}

// checkRefused calls an operation on the group and checks that it is refused.
func (g *scaled) checkRefused(code, says, operation string, args ...string) {
	g.t.Helper()
	out, err := g.TryAWS(append([]string{"autoscaling", operation, "--auto-scaling-group-name", g.name}, args...)...)
	if err == nil || !strings.Contains(out, "("+code+")") || !strings.Contains(out, says) {
		g.t.Errorf("%s %v: %v %s, want %s naming %q", operation, args, err, out, code, says)
	}
}

// now describes the group. It returns nil once the group is gone.
func (g *scaled) now() *types.AutoScalingGroup {
	g.t.Helper()
	out, err := g.client.DescribeAutoScalingGroups(g.t.Context(),
		&autoscaling.DescribeAutoScalingGroupsInput{AutoScalingGroupNames: []string{g.name}})
	if err != nil {
		g.t.Fatal(err)
	}
	if len(out.AutoScalingGroups) == 0 {
		return nil
	}
	return &out.AutoScalingGroups[0]
}

// await waits until the group's instances are in the given states. It returns their ids in the order of the states.
func (g *scaled) await(states ...types.LifecycleState) (ids []string) {
	g.t.Helper()
	var got []types.LifecycleState
	defer func() {
		if g.t.Failed() {
			g.t.Logf("the instances of %s are %v, and the activities %s", g.name, got, strings.Join(g.activities(), "\n"))
		}
	}()
	Eventually(g.t, fmt.Sprintf("%s with instances %v", g.name, states), func() bool {
		all := g.now().Instances
		order := func(i types.Instance) int { return slices.Index(states, i.LifecycleState) }
		slices.SortFunc(all, func(a, b types.Instance) int { return order(a) - order(b) })
		got = nil
		ids = nil
		for _, i := range all {
			got = append(got, i.LifecycleState)
			ids = append(ids, *i.InstanceId)
		}
		return slices.Equal(got, states)
	})
	return ids
}

// activities returns the group's activities, the newest first: status, description and cause.
func (g *scaled) activities() (out []string) {
	g.t.Helper()
	answer, err := g.client.DescribeScalingActivities(g.t.Context(),
		&autoscaling.DescribeScalingActivitiesInput{AutoScalingGroupName: &g.name})
	if err != nil {
		g.t.Fatal(err)
	}
	for _, a := range answer.Activities {
		out = append(out, fmt.Sprintf("%s: %s. %s", a.StatusCode, *a.Description, *a.Cause))
	}
	return out
}

// checkActivity checks that an activity starts with the first part and contains the others in this order.
func (g *scaled) checkActivity(parts ...string) {
	g.t.Helper()
	all := g.activities()
	has := func(a string) bool {
		rest, ok := strings.CutPrefix(a, parts[0])
		for _, p := range parts[1:] {
			var found bool
			_, rest, found = strings.Cut(rest, p)
			ok = ok && found
		}
		return ok
	}
	if !slices.ContainsFunc(all, has) {
		g.t.Errorf("no activity of %s is %q, but these are there:\n%s", g.name, parts, strings.Join(all, "\n"))
	}
}

const (
	inService = types.LifecycleStateInService
	standby   = types.LifecycleStateStandby
)

// TestGroups exercises everything that Auto Scaling groups can do, in parallel on one local fleet.
func TestGroups(t *testing.T) {
	t.Parallel()
	p := UpWithFleet(t)
	p.AWS("ec2", "create-launch-template", "--launch-template-name", "small", "--launch-template-data",
		`{"ImageId":"ami-00000000","InstanceType":"c5.large"}`)
	for _, c := range []struct {
		name string
		run  func(*testing.T, *Pintle)
	}{
		{"Schedule", groupSchedule}, {"Refresh", groupRefresh}, {"Moves", groupMoves}, {"Lifecycle", groupLifecycle}, {"Hooks", groupHooks},
		{"Policies", groupPolicies}, {"HooksTimeOut", groupHooksTimeOut}, {"TargetTracking", groupTargetTracking}, {"CPU", groupCPU},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.run(t, p)
		})
	}
}

// groupSchedule changes a group with scheduled actions.
func groupSchedule(t *testing.T, p *Pintle) {
	g := p.createGroup(t, "schedule")
	g.checkRefused("ValidationError", "Recurrence", "put-scheduled-update-group-action", "--scheduled-action-name", "bad",
		"--recurrence", "0 25 * * *", "--desired-capacity", "1")
	g.checkRefused("ValidationError", "in the past", "put-scheduled-update-group-action", "--scheduled-action-name", "bad",
		"--start-time", "2020-01-01T00:00:00Z", "--desired-capacity", "1")
	begun := time.Now()
	g.call("put-scheduled-update-group-action", "--scheduled-action-name", "nights", "--recurrence", "30 2 * * MON-FRI",
		"--time-zone", "Europe/Zurich", "--desired-capacity", "0")
	g.call("put-scheduled-update-group-action", "--scheduled-action-name", "soon",
		"--start-time", begun.Add(time.Hour).UTC().Format(time.RFC3339), "--min-size", "1", "--max-size", "2", "--desired-capacity", "1")
	got := g.call("describe-scheduled-actions", "--query", "ScheduledUpdateGroupActions[].[ScheduledActionName,Recurrence,MinSize]")
	if got != "nights\t30 2 * * MON-FRI\tNone\nsoon\tNone\t1" {
		t.Errorf("the actions are %s", got)
	}
	next, err := time.Parse(time.RFC3339, g.call("describe-scheduled-actions", "--scheduled-action-names", "nights",
		"--query", "ScheduledUpdateGroupActions[0].StartTime"))
	zurich, zoneErr := time.LoadLocation("Europe/Zurich")
	at := next.In(zurich)
	if err != nil || zoneErr != nil || at.Format("15:04") != "02:30" || at.Weekday() == time.Saturday || at.Weekday() == time.Sunday ||
		!next.After(begun) {
		t.Errorf("the next night is at %s, %v", next, err)
	}
	// with the SDK: the CLI is so slow that the start would be in the past
	_, err = g.client.PutScheduledUpdateGroupAction(t.Context(), &autoscaling.PutScheduledUpdateGroupActionInput{
		AutoScalingGroupName: &g.name,
		ScheduledActionName:  aws.String("soon"),
		StartTime:            aws.Time(time.Now().Add(2 * time.Second)),
		MinSize:              aws.Int32(1),
		MaxSize:              aws.Int32(2),
		DesiredCapacity:      aws.Int32(1),
	})
	if err != nil {
		t.Fatal(err)
	}
	g.await(inService)
	if now := g.now(); *now.MinSize != 1 || *now.MaxSize != 2 || *now.DesiredCapacity != 1 {
		t.Errorf("the group has min %d, max %d, desired %d", *now.MinSize, *now.MaxSize, *now.DesiredCapacity)
	}
	Eventually(t, "the launch", func() bool { return strings.HasPrefix(g.activities()[0], "Successful") })
	g.checkActivity("Successful: Launching a new EC2 instance: i-",
		"a scheduled action update of AutoScalingGroup constraints to min: 1, max: 2, desired: 1 "+
			"changing the desired capacity from 0 to 1.  At ",
		"an instance was started in response to a difference between desired and actual capacity, increasing the capacity from 0 to 1.")
	if got := g.call("describe-scheduled-actions", "--query", "ScheduledUpdateGroupActions[].ScheduledActionName"); got != "nights" {
		t.Errorf("the actions are %s", got)
	}
}

// groupHooksTimeOut lets lifecycle hooks time out, so that the default result decides.
func groupHooksTimeOut(t *testing.T, p *Pintle) {
	const hook = "LifecycleHookName=up,LifecycleTransition=autoscaling:EC2_INSTANCE_LAUNCHING,HeartbeatTimeout=30,DefaultResult="
	easy := p.createGroup(t, "continues", "--desired-capacity", "1", "--lifecycle-hook-specification-list", hook+"CONTINUE")
	g := p.createGroup(t, "abandons", "--desired-capacity", "1", "--lifecycle-hook-specification-list", hook+"ABANDON")
	begun := time.Now()
	second := easy.await(types.LifecycleStatePendingWait)[0]
	first := g.await(types.LifecycleStatePendingWait)[0]
	time.Sleep(5 * time.Second)
	g.call("record-lifecycle-action-heartbeat", "--lifecycle-hook-name", "up", "--instance-id", first)
	Eventually(t, "the end of the first instance", func() bool {
		return !slices.ContainsFunc(g.now().Instances, func(i types.Instance) bool {
			return *i.InstanceId == first && i.LifecycleState == types.LifecycleStatePendingWait
		})
	})
	if waited := time.Since(begun); waited < 35*time.Second {
		t.Errorf("the heartbeat gave no more time: it took %s", waited)
	}
	g.checkActivity("Cancelled: Launching a new EC2 instance: "+first+
		".  Status Reason: Instance failed to complete user's Lifecycle Action: Lifecycle Action with token ",
		" was abandoned: Heartbeat Timeout")
	if got := easy.await(inService)[0]; got != second {
		t.Errorf("%s is in service, and not %s", got, second)
	}
}

// hookMessage is a lifecycle hook's notification.
type hookMessage struct {
	Event                string
	Service              string
	AccountId            string
	AutoScalingGroupName string
	AutoScalingGroupARN  string
	LifecycleHookName    string
	LifecycleTransition  string
	LifecycleActionToken string
	EC2InstanceId        string
	NotificationMetadata string
	Origin               string
	Destination          string
	Time                 string
	RequestId            string
}

// groupHooks completes lifecycle actions that a queue is notified of.
func groupHooks(t *testing.T, p *Pintle) {
	g := p.createGroup(t, "hooks")
	// long enough that no message is received twice
	url := g.AWS("sqs", "create-queue", "--queue-name", "hooks", "--attributes", "VisibilityTimeout=43200", "--query", "QueueUrl",
		"--output", "text")
	nextMessage := func() (m hookMessage) {
		t.Helper()
		body := "None"
		Eventually(t, "a message", func() bool {
			body = g.AWS("sqs", "receive-message", "--queue-url", url, "--wait-time-seconds", "20", "--query", "Messages[0].Body",
				"--output", "text")
			return body != "None"
		})
		if err := json.Unmarshal([]byte(body), &m); err != nil {
			t.Fatalf("%v: %s", err, body)
		}
		return m
	}
	const role = "arn:aws:iam::000000000000:role/hooks"
	hook := []string{"--lifecycle-transition", "autoscaling:EC2_INSTANCE_LAUNCHING", "--notification-metadata", "blue",
		"--lifecycle-hook-name"}
	g.checkRefused("ValidationError", "RoleARN", "put-lifecycle-hook",
		append(hook, "up", "--notification-target-arn", "arn:aws:sqs:us-east-1:000000000000:hooks")...)
	g.checkRefused("ValidationError",
		"Unable to publish test message to notification target arn:aws:sqs:us-east-1:000000000000:none using IAM role "+role,
		"put-lifecycle-hook",
		append(hook, "up", "--notification-target-arn", "arn:aws:sqs:us-east-1:000000000000:none", "--role-arn", role)...)
	g.call("put-lifecycle-hook", append(hook, "up", "--notification-target-arn", "arn:aws:sqs:us-east-1:000000000000:hooks",
		"--role-arn", role)...)
	if m := nextMessage(); m.Event != "autoscaling:TEST_NOTIFICATION" || m.AutoScalingGroupName != "hooks" ||
		m.Service != "AWS Auto Scaling" ||
		m.AccountId != "000000000000" ||
		!strings.HasSuffix(m.AutoScalingGroupARN, ":autoScalingGroupName/hooks") || m.Time == "" || m.RequestId == "" {
		t.Errorf("the test message is %+v", m)
	}

	g.call("set-desired-capacity", "--desired-capacity", "1")
	first := g.await(types.LifecycleStatePendingWait)[0]
	m := nextMessage()
	if m.EC2InstanceId != first || m.LifecycleHookName != "up" || m.LifecycleTransition != "autoscaling:EC2_INSTANCE_LAUNCHING" ||
		m.NotificationMetadata != "blue" ||
		m.Origin != "EC2" || m.Destination != "AutoScalingGroup" || m.LifecycleActionToken == "" || m.Event != "" {
		t.Errorf("the message is %+v", m)
	}
	g.checkActivity("MidLifecycleAction: Launching a new EC2 instance: " + first)
	g.call("complete-lifecycle-action", "--lifecycle-hook-name", "up", "--lifecycle-action-token", m.LifecycleActionToken,
		"--lifecycle-action-result", "ABANDON")
	m = nextMessage()
	if m.EC2InstanceId == first {
		t.Errorf("the message is %+v", m)
	}
	g.checkActivity("Cancelled: Launching a new EC2 instance: "+first+
		".  Status Reason: Instance failed to complete user's Lifecycle Action: Lifecycle Action with token ",
		" was abandoned: Lifecycle Action Completed with ABANDON Result")
	g.checkRefused("ValidationError", "No active Lifecycle Action found with instance ID "+first, "complete-lifecycle-action",
		"--lifecycle-hook-name", "up", "--instance-id", first, "--lifecycle-action-result", "CONTINUE")
	g.call("complete-lifecycle-action", "--lifecycle-hook-name", "up", "--instance-id", m.EC2InstanceId,
		"--lifecycle-action-result", "CONTINUE")
	g.await(inService)

	g.call("put-lifecycle-hook", "--lifecycle-hook-name", "down", "--lifecycle-transition", "autoscaling:EC2_INSTANCE_TERMINATING",
		"--notification-target-arn", "arn:aws:sqs:us-east-1:000000000000:hooks", "--role-arn", role)
	nextMessage() // the test message
	g.call("set-desired-capacity", "--desired-capacity", "0")
	g.await(types.LifecycleStateTerminatingWait)
	last := nextMessage()
	if last.LifecycleTransition != "autoscaling:EC2_INSTANCE_TERMINATING" || last.EC2InstanceId != m.EC2InstanceId ||
		last.Origin != "AutoScalingGroup" || last.Destination != "EC2" {
		t.Errorf("the message is %+v", last)
	}
	g.call("complete-lifecycle-action", "--lifecycle-hook-name", "down", "--lifecycle-action-token", last.LifecycleActionToken,
		"--lifecycle-action-result", "CONTINUE")
	g.await()
	g.checkActivity("Successful: Terminating EC2 instance: "+m.EC2InstanceId,
		"a user request explicitly set group desired capacity changing the desired capacity from 1 to 0.  At ",
		"an instance was taken out of service in response to a difference between desired and actual capacity, shrinking the capacity "+
			"from 1 to 0.  At ", "instance "+m.EC2InstanceId+" was selected for termination.")
}

// groupTargetTracking scales out and in on a custom metric.
func groupTargetTracking(t *testing.T, p *Pintle) {
	g := p.createGroup(t, "tracking", "--desired-capacity", "1")
	alarms := g.call("put-scaling-policy", "--policy-name", "load", "--policy-type", "TargetTrackingScaling",
		"--query", "Alarms[].AlarmName", "--target-tracking-configuration",
		`{"TargetValue":10,"CustomizedMetricSpecification":{"Namespace":"Groups","MetricName":"Load","Statistic":"Average"}}`)
	if !strings.HasPrefix(alarms, "TargetTracking-tracking-AlarmHigh-") ||
		!strings.Contains(alarms, "\tTargetTracking-tracking-AlarmLow-") {
		t.Errorf("the alarms are %s", alarms)
	}
	client := g.cloudWatch()
	desired := func(load float64, want int32) {
		t.Helper()
		Eventually(t, fmt.Sprintf("%d instances at a load of %v", want, load), func() bool {
			_, err := client.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{
				Namespace: aws.String("Groups"),
				MetricData: []cloudwatchtypes.MetricDatum{
					{MetricName: aws.String("Load"), Value: &load, StorageResolution: aws.Int32(1)},
				},
			})
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			return *g.now().DesiredCapacity == want
		})
	}
	g.await(inService)
	desired(25, 3)
	g.await(inService, inService, inService)
	g.checkActivity("Successful: Launching a new EC2 instance: i-", "a monitor alarm TargetTracking-tracking-AlarmHigh-",
		" in state ALARM triggered policy load changing the desired capacity from 1 to 3.")
	desired(2, 1)
	g.await(inService)
	g.checkActivity("Successful: Terminating EC2 instance: i-", "a monitor alarm TargetTracking-tracking-AlarmLow-",
		" in state ALARM triggered policy load changing the desired capacity from 3 to ")
	g.AWS("autoscaling", "delete-policy", "--auto-scaling-group-name", g.name, "--policy-name", "load")
	got := g.AWS("cloudwatch", "describe-alarms", "--alarm-name-prefix", "TargetTracking-tracking-", "--query", "length(MetricAlarms)")
	if got != "0" {
		t.Errorf("%s alarms are left", got)
	}
}

// groupCPU scales on the CPU that a container uses of the group's machine.
func groupCPU(t *testing.T, p *Pintle) {
	g := p.createGroup(t, "cpu", "--min-size", "1", "--max-size", "2")
	g.checkRefused("ValidationError", "ASGAverageNetworkIn", "put-scaling-policy", "--policy-name", "net",
		"--policy-type", "TargetTrackingScaling", "--target-tracking-configuration",
		`{"TargetValue":5,"PredefinedMetricSpecification":{"PredefinedMetricType":"ASGAverageNetworkIn"}}`)
	g.call("put-scaling-policy", "--policy-name", "cpu", "--policy-type", "TargetTrackingScaling", "--target-tracking-configuration",
		`{"TargetValue":3,"PredefinedMetricSpecification":{"PredefinedMetricType":"ASGAverageCPUUtilization"}}`)
	machine := g.await(inService)[0]
	g.AWS("ecs", "register-task-definition", "--family", "busy", "--container-definitions",
		`[{"name":"main","image":"none","memory":16,"command":["sh","-c","while :; do i=0; while [ $i -lt 50000 ]; do i=$((i+1)); `+
			`done; sleep 0.1; done"]}]`)
	Eventually(t, "a node", func() bool { return len(g.list("list-container-instances", "--query", "containerInstanceArns[]")) > 0 })
	var task string
	Eventually(t, "a task on the machine", func() bool {
		task = g.AWS("ecs", "run-task", "--task-definition", "busy", "--placement-constraints",
			"type=memberOf,expression=ec2InstanceId == "+machine, "--query", "tasks[0].taskArn", "--output", "text")
		return task != "None"
	})
	g.await(inService, inService)
	g.checkActivity("Successful: Launching a new EC2 instance: i-", "a monitor alarm TargetTracking-cpu-AlarmHigh-",
		" in state ALARM triggered policy cpu changing the desired capacity from 1 to 2.")
	for dimension, value := range map[string]string{"InstanceId": machine, "AutoScalingGroupName": g.name} {
		got := g.AWS("cloudwatch", "list-metrics", "--namespace", "AWS/EC2", "--metric-name", "CPUUtilization",
			"--dimensions", "Name="+dimension+",Value="+value, "--query", "length(Metrics)")
		if got != "1" {
			t.Errorf("there are %s metrics of the %s %s", got, dimension, value)
		}
	}
	g.AWS("ecs", "stop-task", "--task", task)
	Eventually(t, "one instance", func() bool { return *g.now().DesiredCapacity == 1 })
	g.await(inService)
	g.checkActivity("Successful: Terminating EC2 instance: i-", "a monitor alarm TargetTracking-cpu-AlarmLow-",
		" in state ALARM triggered policy cpu changing the desired capacity from 2 to 1.")
}

// groupPolicies checks simple and step policies, with their cooldown and warmup.
func groupPolicies(t *testing.T, p *Pintle) {
	simple := p.createGroup(t, "simple", "--default-cooldown", "300")
	arn := simple.call("put-scaling-policy", "--policy-name", "one", "--adjustment-type", "ChangeInCapacity", "--scaling-adjustment", "1",
		"--query", "PolicyARN")
	alarm := func(name, metric, policy string) {
		t.Helper()
		simple.AWS("cloudwatch", "put-metric-alarm", "--alarm-name", name, "--namespace", "Groups", "--metric-name", metric,
			"--statistic", "Maximum", "--period", "10", "--evaluation-periods", "1",
			"--comparison-operator", "GreaterThanOrEqualToThreshold", "--threshold", "10", "--alarm-actions", policy)
	}
	alarm("simple", "Simple", arn)
	steps := p.createGroup(t, "steps", "--default-instance-warmup", "300")
	arn = steps.call("put-scaling-policy", "--policy-name", "steps", "--policy-type", "StepScaling",
		"--adjustment-type", "ChangeInCapacity", "--query", "PolicyARN",
		"--step-adjustments", "MetricIntervalLowerBound=0,MetricIntervalUpperBound=50,ScalingAdjustment=1",
		"MetricIntervalLowerBound=50,ScalingAdjustment=2")
	alarm("steps", "Steps", arn)
	client := simple.cloudWatch()
	put := func(metric string, value float64) {
		t.Helper()
		_, err := client.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{
			Namespace: aws.String("Groups"),
			MetricData: []cloudwatchtypes.MetricDatum{
				{MetricName: &metric, Value: &value, StorageResolution: aws.Int32(1)},
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
	}
	Eventually(t, "the first step of both", func() bool {
		put("Simple", 20)
		put("Steps", 20)
		return *simple.now().DesiredCapacity == 1 && *steps.now().DesiredCapacity == 1
	})
	simple.await(inService)
	steps.await(inService)
	for range 8 { // the alarms act again every ten seconds
		put("Simple", 20)
		put("Steps", 20)
	}
	if a, b := *simple.now().DesiredCapacity, *steps.now().DesiredCapacity; a != 1 || b != 1 {
		t.Errorf("within the cool-down and the warm-up %d and %d are desired", a, b)
	}
	simple.checkActivity("Successful: Launching a new EC2 instance: i-",
		"a monitor alarm simple in state ALARM triggered policy one changing the desired capacity from 0 to 1.")
	Eventually(t, "the larger step", func() bool { put("Steps", 80); return *steps.now().DesiredCapacity == 2 })
	simple.checkRefused("ScalingActivityInProgress", "cooldown", "execute-policy", "--policy-name", "one", "--honor-cooldown")
	simple.checkRefused("ScalingActivityInProgress", "cooldown", "set-desired-capacity", "--desired-capacity", "0", "--honor-cooldown")
	simple.call("execute-policy", "--policy-name", "one")
	simple.await(inService, inService)
	simple.checkActivity("Successful: Launching", "a user request executed policy one changing the desired capacity from 1 to 2.")
	steps.checkRefused("ValidationError", "BreachThreshold", "execute-policy", "--policy-name", "steps")
	steps.call("execute-policy", "--policy-name", "steps", "--metric-value", "70", "--breach-threshold", "10")
	steps.await(inService, inService, inService) // the step adds two, but the group's maximum is three
}

// groupLifecycle checks which instances stay, which are terminated, and how new ones are configured.
func groupLifecycle(t *testing.T, p *Pintle) {
	g := p.createGroup(t, "life", "--tags", "Key=team,Value=ml,PropagateAtLaunch=true", "Key=owner,Value=me,PropagateAtLaunch=false",
		"--termination-policies", "NewestInstance")
	var ids []string // the oldest first
	for n := range 3 {
		g.call("set-desired-capacity", "--desired-capacity", fmt.Sprint(n+1))
		for _, id := range g.await(slices.Repeat([]types.LifecycleState{inService}, n+1)...) {
			if !slices.Contains(ids, id) {
				ids = append(ids, id)
			}
		}
	}
	one, two, three := ids[0], ids[1], ids[2]
	got := g.AWS("ec2", "describe-tags", "--filters", "Name=resource-id,Values="+one,
		"--query", "Tags[?Key=='team' || Key=='owner' || Key=='aws:autoscaling:groupName'].[Key,Value]", "--output", "text")
	if got != "aws:autoscaling:groupName\tlife\nteam\tml" {
		t.Errorf("the instance's tags are %s", got)
	}
	g.call("set-desired-capacity", "--desired-capacity", "2")
	if left := g.await(inService, inService); slices.Contains(left, three) {
		t.Errorf("the newest instance was to go, but %v are left of %v", left, ids)
	}
	g.AWS("autoscaling", "set-instance-protection", "--auto-scaling-group-name", g.name, "--instance-ids", one, "--protected-from-scale-in")
	g.call("update-auto-scaling-group", "--termination-policies", "OldestInstance", "--min-size", "0", "--desired-capacity", "0")
	if left := g.await(inService); left[0] != one {
		t.Errorf("the protected instance was to stay, but %v are left of %v", left, ids)
	}
	g.checkActivity("Successful: Terminating EC2 instance: "+two,
		"a user request update of AutoScalingGroup constraints to min: 0, max: 3, desired: 0 changing the desired capacity from "+
			"2 to 0.  At ", "instance "+two+" was selected for termination.")
	g.call("set-desired-capacity", "--desired-capacity", "1")

	g.AWS("autoscaling", "set-instance-health", "--instance-id", one, "--health-status", "Unhealthy")
	Eventually(t, "the replacement", func() bool {
		now := g.now().Instances
		return len(now) == 1 && *now[0].InstanceId != one && now[0].LifecycleState == inService
	})
	four := g.await(inService)[0]
	g.checkActivity("Successful: Terminating EC2 instance: "+one,
		"an instance was taken out of service in response to a user health-check.")
	g.checkActivity("Successful: Launching a new EC2 instance: "+four, "At ",
		"an instance was launched in response to an unhealthy instance needing to be replaced.")

	g.AWS("ec2", "create-launch-template-version", "--launch-template-name", "small", "--source-version", "1", "--launch-template-data",
		`{"InstanceType":"c5.xlarge"}`)
	g.checkRefused("ValidationError", "version 7", "update-auto-scaling-group", "--launch-template", "LaunchTemplateName=small,Version=7")
	g.call("update-auto-scaling-group", "--launch-template", "LaunchTemplateName=small,Version=2")
	g.call("suspend-processes", "--scaling-processes", "Launch")
	terminate := func(id, how string) string {
		return g.AWS("autoscaling", "terminate-instance-in-auto-scaling-group", "--instance-id", id, how,
			"--query", "Activity.[StatusCode,Description,Cause]", "--output", "text")
	}
	got = terminate(four, "--no-should-decrement-desired-capacity")
	if !strings.HasPrefix(got, "InProgress\tTerminating EC2 instance: "+four+"\tAt ") ||
		!strings.HasSuffix(got, "instance "+four+" was taken out of service in response to a user request.") {
		t.Errorf("the activity is %s", got)
	}
	g.await()
	time.Sleep(1500 * time.Millisecond)
	if now := g.now(); len(now.Instances) != 0 || *now.DesiredCapacity != 1 || *now.SuspendedProcesses[0].ProcessName != "Launch" {
		t.Errorf("with Launch suspended the group is %+v", now)
	}
	g.call("resume-processes", "--scaling-processes", "Launch")
	five := g.await(inService)[0]
	if i := g.now().Instances[0]; *i.InstanceType != "c5.xlarge" || *i.LaunchTemplate.Version != "2" {
		t.Errorf("the instance is %s of version %s", *i.InstanceType, *i.LaunchTemplate.Version)
	}
	g.checkActivity("Successful: Launching a new EC2 instance: "+five,
		"an instance was started in response to a difference between desired and actual capacity, increasing the capacity from 0 to 1.")
	got = terminate(five, "--should-decrement-desired-capacity")
	if !strings.HasSuffix(got, "in response to a user request, shrinking the capacity from 1 to 0.") {
		t.Errorf("the activity is %s", got)
	}
	g.await()
	g.call("set-desired-capacity", "--desired-capacity", "1")
	g.await(inService)
	g.checkRefused("ResourceInUse", "You cannot delete an AutoScalingGroup while there are instances", "delete-auto-scaling-group")
	g.call("delete-auto-scaling-group", "--force-delete")
	Eventually(t, "the group's end", func() bool { return g.now() == nil })
	got = g.AWS("ec2", "describe-instances", "--filters", "Name=tag:team,Values=ml", "Name=instance-state-name,Values=pending,running",
		"--query", "length(Reservations)")
	if got != "0" {
		t.Errorf("%s instances are left", got)
	}
	empty := p.createGroup(t, "empty")
	empty.call("delete-auto-scaling-group")
	if empty.now() != nil {
		t.Error("an empty group is there still")
	}
}

// groupMoves moves instances to standby and back, detaches them, and attaches them again.
func groupMoves(t *testing.T, p *Pintle) {
	g := p.createGroup(t, "moves", "--desired-capacity", "1")
	one := g.await(inService)[0]
	const fields = "Activities[0].[StatusCode,Progress,Description,Cause]"
	got := g.call("enter-standby", "--instance-ids", one, "--should-decrement-desired-capacity", "--query", fields)
	if !strings.HasPrefix(got, "InProgress\t50\tMoving EC2 instance to Standby: "+one+"\tAt ") ||
		!strings.HasSuffix(got, "instance "+one+
			" was moved to standby in response to a user request, shrinking the capacity from 1 to 0.") {
		t.Errorf("the activity is %s", got)
	}
	g.await(standby)
	g.checkRefused("ValidationError", "is not in InService", "enter-standby", "--instance-ids", one,
		"--no-should-decrement-desired-capacity")
	got = g.call("exit-standby", "--instance-ids", one, "--query", fields)
	if !strings.HasPrefix(got, "PreInService\t30\tMoving EC2 instance out of Standby: "+one+"\tAt ") ||
		!strings.HasSuffix(got, "was moved out of standby in response to a user request, increasing the capacity from 0 to 1.") {
		t.Errorf("the activity is %s", got)
	}
	g.await(inService)
	g.call("enter-standby", "--instance-ids", one, "--no-should-decrement-desired-capacity")
	if ids := g.await(inService, standby); ids[1] != one {
		t.Errorf("%v, and %s should stand by", ids, one)
	}
	g.call("update-auto-scaling-group", "--max-size", "1")
	g.checkRefused("ValidationError",
		"has min-size=0, max-size=1, and desired-size=1. To move out of standby 1 instance, please update the AutoScalingGroup sizes "+
			"appropriately.", "exit-standby", "--instance-ids", one)
	g.call("update-auto-scaling-group", "--max-size", "3")
	two := g.await(inService, standby)[0]
	got = g.call("detach-instances", "--instance-ids", two, "--should-decrement-desired-capacity", "--query", fields)
	if !strings.HasPrefix(got, "InProgress\t50\tDetaching EC2 instance: "+two+"\tAt ") ||
		!strings.HasSuffix(got, "was detached in response to a user request, shrinking the capacity from 1 to 0.") {
		t.Errorf("the activity is %s", got)
	}
	g.await(standby)
	got = g.AWS("ec2", "describe-instances", "--instance-ids", two,
		"--query", "Reservations[0].Instances[0].[State.Name,Tags[?Key=='aws:autoscaling:groupName']]", "--output", "text")
	if got != "running" {
		t.Errorf("the detached instance is %s", got)
	}
	g.call("attach-instances", "--instance-ids", two)
	if ids := g.await(inService, standby); ids[0] != two || *g.now().DesiredCapacity != 1 {
		t.Errorf("%v, and %s should be in service", ids, two)
	}
	g.checkActivity("Successful: Attaching an existing EC2 instance: "+two,
		"an instance was added in response to user request. Keeping the capacity at the new 1.")
	g.checkRefused("ValidationError", "is already part of AutoScalingGroup:moves", "attach-instances", "--instance-ids", two)
	g.call("delete-auto-scaling-group", "--force-delete")
	Eventually(t, "the group's end", func() bool { return g.now() == nil })
}

// groupRefresh replaces a group's instances, a few at a time.
func groupRefresh(t *testing.T, p *Pintle) {
	g := p.createGroup(t, "refresh", "--desired-capacity", "2")
	old := g.await(inService, inService)
	status := func() string {
		return g.call("describe-instance-refreshes", "--query", "InstanceRefreshes[0].[Status,PercentageComplete,InstancesToUpdate]")
	}
	g.checkRefused("ActiveInstanceRefreshNotFound", "refresh", "cancel-instance-refresh")
	g.AWS("autoscaling", "set-instance-protection", "--auto-scaling-group-name", g.name, "--instance-ids", old[0],
		"--protected-from-scale-in")
	g.call("start-instance-refresh", "--preferences", "MinHealthyPercentage=100,MaxHealthyPercentage=150,InstanceWarmup=3")
	g.checkRefused("InstanceRefreshInProgress", "already in progress", "start-instance-refresh")
	fewest, most := 3, 0
	count := func(n int) bool {
		healthy, there := 0, 0
		now := g.now().Instances
		for _, i := range now {
			if i.LifecycleState == inService {
				healthy++
			}
			if !strings.HasPrefix(string(i.LifecycleState), "Terminating") {
				there++
			}
		}
		fewest = min(fewest, healthy)
		most = max(most, there)
		return healthy == 2 && len(now) == 2 && n == len(slices.DeleteFunc(slices.Clone(now), func(i types.Instance) bool {
			return slices.Contains(old, *i.InstanceId)
		}))
	}
	Eventually(t, "one new instance", func() bool { return count(1) && most == 3 })
	Eventually(t, "half of the refresh, while it waits for a protected instance", func() bool { return status() == "InProgress\t50\t1" })
	g.AWS("autoscaling", "set-instance-protection", "--auto-scaling-group-name", g.name, "--instance-ids", old[0],
		"--no-protected-from-scale-in")
	Eventually(t, "two new instances", func() bool { return count(2) })
	Eventually(t, "the end of the refresh", func() bool { return status() == "Successful\t100\t0" })
	if fewest != 2 || most != 3 {
		t.Errorf("there were %d in service, and %d in all", fewest, most)
	}
	g.checkActivity("Successful: Terminating EC2 instance: "+old[1],
		"an instance was taken out of service in response to an instance refresh.  At ",
		"instance "+old[1]+" was selected for termination.")
	g.checkActivity("Successful: Launching a new EC2 instance: i-", "an instance was launched in response to an instance refresh.")
	g.call("suspend-processes", "--scaling-processes", "InstanceRefresh")
	g.call("start-instance-refresh")
	g.call("cancel-instance-refresh")
	Eventually(t, "the refresh is cancelled", func() bool { return strings.HasPrefix(status(), "Cancelled\t") })
}
