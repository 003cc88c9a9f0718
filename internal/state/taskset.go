package state

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// TaskSet is a task set of a service with the deployment controller EXTERNAL. In the SDK's struct, task counts and what
// depends on them are left empty.
type TaskSet struct {
	types.TaskSet
	// FailedTasks, NotBefore, FailedAt and Unplaced mean the same as in Deployment.
	FailedTasks int32 `json:",omitzero"`
	NotBefore   *time.Time
	FailedAt    *time.Time
	Unplaced    bool `json:",omitzero"`
}

// The states of a task set. A deleted one is DRAINING until its tasks have stopped, and is then removed.
const (
	TaskSetPrimary  = "PRIMARY"
	TaskSetActive   = "ACTIVE"
	TaskSetDraining = "DRAINING"
)

// TaskSet returns the task set with an id or ARN, or nil. It may be changed as long as the row hasn't been stored.
func (s *Service) TaskSet(name string) *TaskSet {
	for i := range s.TaskSets {
		if set := &s.TaskSets[i]; aws.ToString(set.Id) == name || aws.ToString(set.TaskSetArn) == name {
			return set
		}
	}
	return nil
}

// IsExternal reports whether an external controller deploys the service, by task sets.
func (s *Service) IsExternal() bool {
	return s.DeploymentController != nil && s.DeploymentController.Type == types.DeploymentControllerTypeExternal
}
