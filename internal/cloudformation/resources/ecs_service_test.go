package resources

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/account/accounttest"
)

// oneService answers DescribeServices with a service that has one task and one deployment, which an alarm has ended if it's rolled back. Tasks of
// a deployment that has failed, of another revision, may still be there.
type oneService struct {
	state          types.DeploymentRolloutState
	taskDefinition string
	failed         string
}

func (s oneService) Call(_ context.Context, in any) (any, error) {
	if _, ok := in.(*ecs.ListServiceDeploymentsInput); ok {
		return &ecs.ListServiceDeploymentsOutput{ServiceDeployments: []types.ServiceDeploymentBrief{
			{StatusReason: aws.String("ECS deployment alarms: alarm detected.")}, {StatusReason: aws.String("an older one's")},
		}}, nil
	}
	deployments := []types.Deployment{deploymentOf("PRIMARY", s.state, s.taskDefinition)}
	if s.failed != "" {
		deployments = append(deployments, deploymentOf("ACTIVE", types.DeploymentRolloutStateFailed, s.failed))
	}
	return &ecs.DescribeServicesOutput{Services: []types.Service{{
		Status:       aws.String("ACTIVE"),
		DesiredCount: 1,
		RunningCount: 1,
		Deployments:  deployments,
	}}}, nil
}

func deploymentOf(status string, state types.DeploymentRolloutState, taskDefinition string) types.Deployment {
	return types.Deployment{
		Status:             &status,
		RolloutState:       state,
		RolloutStateReason: aws.String("ECS deployment: " + string(state)),
		TaskDefinition:     aws.String("arn:aws:ecs:us-east-1:000000000000:task-definition/" + taskDefinition),
	}
}

// TestIsSteady: a service is complete once its deployment is, and fails with it, also if ECS has rolled back to the revision before.
func TestIsSteady(t *testing.T) {
	const completed, failed, begun = types.DeploymentRolloutStateCompleted, types.DeploymentRolloutStateFailed, types.DeploymentRolloutStateInProgress
	const arn = "arn:aws:ecs:us-east-1:000000000000:task-definition/shop:2"
	for _, c := range []struct {
		name   string
		is     oneService
		wanted string
		back   bool
		steady bool
		fails  string
	}{
		{name: "complete", is: oneService{state: completed, taskDefinition: "shop:2"}, wanted: arn, steady: true},
		{name: "complete, by family and revision", is: oneService{state: completed, taskDefinition: "shop:2"}, wanted: "shop:2", steady: true},
		{name: "complete, by family", is: oneService{state: completed, taskDefinition: "shop:2"}, wanted: "shop", steady: true},
		{name: "begun", is: oneService{state: begun, taskDefinition: "shop:2"}, wanted: arn},
		{name: "failed", is: oneService{state: failed, taskDefinition: "shop:2"}, wanted: arn, fails: "ECS deployment: FAILED"},
		{name: "rolled back", is: oneService{state: completed, taskDefinition: "shop:1"}, wanted: arn, fails: "ECS deployment alarms: alarm detected."},
		{name: "rolling back", is: oneService{state: begun, taskDefinition: "shop:1"}, wanted: arn, fails: "ECS deployment alarms: alarm detected."},
		{name: "rolling back to the same revision", is: oneService{begun, "shop:2", "shop:2"}, wanted: arn, fails: "ECS deployment: FAILED"},
		{name: "rolling back, by family", is: oneService{begun, "shop:1", "shop:2"}, wanted: "shop", fails: "ECS deployment: FAILED"},
		{name: "begun after another one failed", is: oneService{begun, "shop:2", "shop:1"}, wanted: arn},
		{name: "back, and what failed still there", is: oneService{begun, "shop:2", "shop:3"}, wanted: arn, back: true},
		{name: "back, and what failed of the same revision", is: oneService{begun, "shop:2", "shop:2"}, wanted: arn, back: true},
		{name: "back, and failed", is: oneService{failed, "shop:2", "shop:3"}, wanted: arn, back: true, fails: "ECS deployment: FAILED"},
		{name: "without a definition", is: oneService{state: completed}, wanted: "", steady: true},
	} {
		steady, err := isSteady(t.Context(), Step{Services: c.is, Back: c.back}, "arn", &service{TaskDefinition: &c.wanted})
		if steady != c.steady || (err != nil) != (c.fails != "") || err != nil && !strings.HasSuffix(err.Error(), c.fails) {
			t.Errorf("%s: %v, %v", c.name, steady, err)
		}
	}
}

// TestServiceThatShiftsTraffic: what a service's template says of blue/green deployments gets to ECS.
func TestServiceThatShiftsTraffic(t *testing.T) {
	v := &service{}
	faults := decode(parse(t, `{
		"DeploymentConfiguration": {"Strategy": "CANARY", "BakeTimeInMinutes": "5",
			"CanaryConfiguration": {"CanaryPercent": "2.5", "CanaryBakeTimeInMinutes": 3},
			"LifecycleHooks": [{"TargetType": "PAUSE", "LifecycleStages": ["POST_SCALE_UP"], "TimeoutConfiguration": {"TimeoutInMinutes": 7, "Action": "CONTINUE"}}]},
		"LoadBalancers": [{"ContainerName": "main", "ContainerPort": 80, "TargetGroupArn": "blue", "AdvancedConfiguration": {
			"AlternateTargetGroupArn": "green", "ProductionListenerRule": "rule", "TestListenerRule": "test", "RoleArn": "role"}}]
	}`), reflect.ValueOf(v).Elem())
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	c, a := v.DeploymentConfiguration, v.LoadBalancers[0].AdvancedConfiguration
	if c.Strategy != types.DeploymentStrategyCanary || *c.BakeTimeInMinutes != 5 || *c.CanaryConfiguration.CanaryPercent != 2.5 ||
		*c.CanaryConfiguration.CanaryBakeTimeInMinutes != 3 || c.LifecycleHooks[0].LifecycleStages[0] != types.DeploymentLifecycleHookStagePostScaleUp ||
		*c.LifecycleHooks[0].TimeoutConfiguration.TimeoutInMinutes != 7 {
		t.Errorf("%+v", c)
	}
	if *a.AlternateTargetGroupArn != "green" || *a.ProductionListenerRule != "rule" || *a.TestListenerRule != "test" || *a.RoleArn != "role" {
		t.Errorf("%+v", a)
	}
	for _, details := range []string{`"{}"`, `{"a":12345678901234567890,"b":[true,null]}`} {
		properties := parse(t, `{"DeploymentConfiguration": {"LifecycleHooks": [{"HookTargetArn": "f", "RoleArn": "r", "HookDetails": `+details+`}]}}`)
		v := &service{}
		if faults := decode(properties, reflect.ValueOf(v).Elem()); len(faults) > 0 {
			t.Fatal(faults)
		}
		given, err := v.DeploymentConfiguration.LifecycleHooks[0].HookDetails.MarshalSmithyDocument()
		if err != nil || string(given) != details {
			t.Errorf("ECS gets %s, %v, want %s", given, err, details)
		}
		if back := encode(reflect.ValueOf(v).Elem(), properties).(map[string]any)["DeploymentConfiguration"]; !reflect.DeepEqual(
			back.(map[string]any)["LifecycleHooks"], properties["DeploymentConfiguration"].(map[string]any)["LifecycleHooks"]) {
			t.Errorf("%s is read back as %v", details, back)
		}
	}
}

// busyCluster refuses to let go of its capacity providers, since a task that stops has one.
type busyCluster struct{}

func (busyCluster) Call(context.Context, any) (any, error) {
	return nil, &types.ResourceInUseException{Message: aws.String("The specified capacity provider is in use and cannot be removed.")}
}

// TestInUseIsTriedAgain: what can't be deleted since something that is on its way out uses it is deleted later, but not tried forever.
func TestInUseIsTriedAgain(t *testing.T) {
	const name = "AWS::ECS::ClusterCapacityProviderAssociations"
	now := time.Now()
	for since, want := range map[time.Time]bool{now: true, now.Add(-time.Hour): false} {
		s := Step{Services: busyCluster{}, Account: accounttest.New(func() time.Time { return now }), Since: since}
		if err := Lookup(name).Delete(t.Context(), s, "c", map[string]any{"Cluster": "c"}); errors.Is(err, ErrPending) != want {
			t.Errorf("after %s: %v", now.Sub(since), err)
		}
	}
}
