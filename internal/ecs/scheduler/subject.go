package scheduler

import (
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ecs/placement"
	"github.com/pintle/pintle/internal/ecs/query"
	"github.com/pintle/pintle/internal/state"
)

// Subject presents a container instance to the cluster query language.
func Subject(v *state.View, row *state.ContainerInstance) query.Subject { return subject{v, row} }

// Suits reports whether a container instance has the attributes that a definition's tasks need, and meets the constraints of the kind memberOf.
func Suits(v *state.View, row *state.ContainerInstance, td *state.TaskDefinition, constraints []types.PlacementConstraint) bool {
	for _, a := range td.RequiredAttributes() {
		value, ok := subject{v, row}.Attribute(*a.Name)
		if !ok || a.Value != nil && value != *a.Value {
			return false
		}
	}
	w := state.Waiting{Constraints: constraints}
	return !slices.ContainsFunc(w.MemberOf(td), func(expression string) bool {
		q, err := query.Parse(expression)
		return err != nil || !q.Eval(subject{v, row})
	})
}

type subject struct {
	view *state.View
	row  *state.ContainerInstance
}

func (s subject) AgentConnected() bool    { return s.row.AgentConnected }
func (s subject) EC2InstanceID() string   { return aws.ToString(s.row.Ec2InstanceId) }
func (s subject) RegisteredAt() time.Time { return aws.ToTime(s.row.RegisteredAt) }

func (s subject) AgentVersion() string {
	if s.row.VersionInfo == nil {
		return ""
	}
	return aws.ToString(s.row.VersionInfo.AgentVersion)
}

func (s subject) Attribute(name string) (string, bool) {
	for _, a := range s.row.Attributes {
		if aws.ToString(a.Name) == name {
			return aws.ToString(a.Value), true
		}
	}
	return "", false
}

func (s subject) RunningTasksCount() int {
	n := 0
	for t := range s.view.Tasks.By(state.TasksByInstance, *s.row.ContainerInstanceArn) {
		if t.Holds() && aws.ToString(t.LastStatus) == "RUNNING" {
			n++
		}
	}
	return n
}

func (s subject) TaskGroup(group string) bool {
	for t := range s.view.Tasks.By(state.TasksByInstance, *s.row.ContainerInstanceArn) {
		if t.Holds() && aws.ToString(t.Group) == group {
			return true
		}
	}
	return false
}

// placed is a subject during placement. Its node has already counted the groups.
type placed struct {
	subject
	node *placement.Node
}

func (p placed) TaskGroup(group string) bool { return p.node.HasGroup(group) }

func attributes(row *state.ContainerInstance) map[string]string {
	m := make(map[string]string, len(row.Attributes))
	for _, a := range row.Attributes {
		m[aws.ToString(a.Name)] = aws.ToString(a.Value)
	}
	if p := aws.ToString(row.CapacityProviderName); p != "" {
		m[memberOfProvider(p)] = ""
	}
	return m
}

// memberOfProvider returns the placement attribute that all instances of a capacity provider have. Its blanks keep it
// apart from the attributes that instances register with, which can't have any in their names.
func memberOfProvider(name string) string { return "capacity provider " + name }
