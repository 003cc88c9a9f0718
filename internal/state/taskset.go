package state

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// TaskSet is a task set of a service with the deployment controller EXTERNAL. Counts of tasks, and what
// depends on them, are left empty in the SDK's struct.
type TaskSet struct {
	types.TaskSet
	// FailedTasks, NotBefore, FailedAt and Unplaced are what Deployment has of the same names.
	FailedTasks int32 `json:",omitzero"`
	NotBefore   *time.Time
	FailedAt    *time.Time
	Unplaced    bool `json:",omitzero"`
}

// The states of a task set. A deleted one is DRAINING until its tasks have stopped, and gone then.
const (
	TaskSetPrimary  = "PRIMARY"
	TaskSetActive   = "ACTIVE"
	TaskSetDraining = "DRAINING"
)

// TaskSet finds a task set by its id or its ARN, or nil. It may be changed while the row is not put yet.
func (s *Service) TaskSet(name string) *TaskSet {
	for i := range s.TaskSets {
		if set := &s.TaskSets[i]; aws.ToString(set.Id) == name || aws.ToString(set.TaskSetArn) == name {
			return set
		}
	}
	return nil
}

// IsExternal says whether somebody else deploys the service, by task sets.
func (s *Service) IsExternal() bool {
	return s.DeploymentController != nil && s.DeploymentController.Type == types.DeploymentControllerTypeExternal
}
