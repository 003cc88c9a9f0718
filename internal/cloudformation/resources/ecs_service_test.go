package resources

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// oneService answers DescribeServices with a service that has one task and one deployment.
type oneService struct {
	state          types.DeploymentRolloutState
	taskDefinition string
}

func (s oneService) Call(context.Context, any) (any, error) {
	return &ecs.DescribeServicesOutput{Services: []types.Service{{
		Status:       aws.String("ACTIVE"),
		DesiredCount: 1,
		RunningCount: 1,
		Deployments: []types.Deployment{{
			Status:         aws.String("PRIMARY"),
			RolloutState:   s.state,
			TaskDefinition: aws.String("arn:aws:ecs:us-east-1:000000000000:task-definition/" + s.taskDefinition),
		}},
	}}}, nil
}

// TestIsSteady: a service is complete once its deployment is, and fails with it, also if ECS has rolled back to the revision before.
func TestIsSteady(t *testing.T) {
	const completed, failed, begun = types.DeploymentRolloutStateCompleted, types.DeploymentRolloutStateFailed, types.DeploymentRolloutStateInProgress
	const arn = "arn:aws:ecs:us-east-1:000000000000:task-definition/shop:2"
	for _, c := range []struct {
		name          string
		is            oneService
		wanted        string
		steady, fails bool
	}{
		{name: "complete", is: oneService{completed, "shop:2"}, wanted: arn, steady: true},
		{name: "complete, by family and revision", is: oneService{completed, "shop:2"}, wanted: "shop:2", steady: true},
		{name: "complete, by family", is: oneService{completed, "shop:2"}, wanted: "shop", steady: true},
		{name: "begun", is: oneService{begun, "shop:2"}, wanted: arn},
		{name: "failed", is: oneService{failed, "shop:2"}, wanted: arn, fails: true},
		{name: "rolled back", is: oneService{completed, "shop:1"}, wanted: arn, fails: true},
		{name: "rolling back", is: oneService{begun, "shop:1"}, wanted: arn, fails: true},
		{name: "without a definition", is: oneService{completed, ""}, wanted: "", steady: true},
	} {
		steady, err := isSteady(t.Context(), Step{Services: c.is}, "arn", &service{TaskDefinition: &c.wanted})
		if steady != c.steady || (err != nil) != c.fails {
			t.Errorf("%s: %v, %v", c.name, steady, err)
		}
	}
}
