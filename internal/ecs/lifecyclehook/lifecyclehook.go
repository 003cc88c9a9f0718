// Package lifecyclehook is what ECS and the functions of deployments' lifecycle hooks tell each other: the event that a function gets, and what
// its answer says. It is pure. The rollout loop owes an invocation when a deployment comes to a hook, and package ecs makes it:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/lambda-lifecycle-hooks.html
package lifecyclehook

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// Call is an invocation that a deployment owes to a function.
type Call struct {
	Service  string // the ARN of the service
	Function string // the ARN of the function, perhaps of a version or an alias
	Role     string // the ARN of the role as which ECS invokes it
	Event    Event
}

// Event is what a function gets.
type Event struct {
	ExecutionID      string           `json:"executionId"`    // the hook's id
	LifecycleStage   string           `json:"lifecycleStage"` // such as POST_SCALE_UP
	ResourceARN      string           `json:"resourceArn"`    // of the service deployment
	ExecutionDetails ExecutionDetails `json:"executionDetails"`
	HookDetails      json.RawMessage  `json:"hookDetails,omitempty"`
}

// ExecutionDetails tell of the deployment. The weights are in percent, by the ARNs of service revisions.
type ExecutionDetails struct {
	ServiceARN               string             `json:"serviceArn"`
	TargetServiceRevisionARN string             `json:"targetServiceRevisionArn"`
	TestTrafficWeights       map[string]float64 `json:"testTrafficWeights"`
	ProductionTrafficWeights map[string]float64 `json:"productionTrafficWeights"`
}

// Text returns the call as the outbox keeps it.
func (c Call) Text() string {
	b, err := json.Marshal(c)
	if err != nil {
		panic(err) // its details are JSON already
	}
	return string(b)
}

// Parse reads what Text has written.
func Parse(text string) (c Call, err error) {
	err = json.Unmarshal([]byte(text), &c)
	return c, err
}

// Payload returns the event as the function gets it.
func (c Call) Payload() []byte {
	b, err := json.Marshal(c.Event)
	if err != nil {
		panic(err)
	}
	return b
}

// defaultDelay is when a function is invoked again that doesn't say, and minDelay the least that one may say.
const (
	defaultDelay = 30 * time.Second
	minDelay     = time.Second
)

// MaxDetails is how many bytes of details a hook may have.
const MaxDetails = 256 << 10

// Answer is what a function says.
type Answer struct {
	Status  types.DeploymentLifecycleHookStatus // SUCCEEDED, FAILED or IN_PROGRESS
	Delay   time.Duration                       // after which it's invoked again, if it's IN_PROGRESS
	Details json.RawMessage                     // for the next invocation, or nil
}

var errNoStatus = errors.New("the function returned no hookStatus of SUCCEEDED, FAILED or IN_PROGRESS")

// Read reads what a function returned.
func Read(payload []byte) (Answer, error) {
	var said struct {
		HookStatus    types.DeploymentLifecycleHookStatus
		CallBackDelay *float64
		HookDetails   json.RawMessage
	}
	if json.Unmarshal(payload, &said) != nil {
		return Answer{}, errNoStatus
	}
	a := Answer{Status: said.HookStatus, Delay: defaultDelay}
	switch a.Status {
	case types.DeploymentLifecycleHookStatusSucceeded, types.DeploymentLifecycleHookStatusFailed:
		return a, nil
	case types.DeploymentLifecycleHookStatusInProgress:
	default:
		return Answer{}, errNoStatus
	}
	if d := said.CallBackDelay; d != nil {
		most := 24 * time.Hour // no hook lasts longer
		a.Delay = max(minDelay, time.Duration(min(*d, most.Seconds())*float64(time.Second)))
	}
	if string(said.HookDetails) != "null" {
		a.Details = said.HookDetails
	}
	return a, nil
}

// Merge returns the details for the next invocation: the members that a function returned take the place of those that it was given.
func Merge(given, returned json.RawMessage) (json.RawMessage, error) {
	var all, more map[string]json.RawMessage
	merged := returned
	if json.Unmarshal(given, &all) == nil && json.Unmarshal(returned, &more) == nil {
		maps.Copy(all, more)
		b, err := json.Marshal(all)
		if err != nil {
			return nil, err
		}
		merged = b
	}
	if len(merged) > MaxDetails {
		return nil, fmt.Errorf("the function's hookDetails have more than %d bytes", MaxDetails)
	}
	return merged, nil
}
