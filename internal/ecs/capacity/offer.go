package capacity

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ecs/query"
)

// Kind is what a provider gets with one more instance of a type.
type Kind struct {
	Size
	// Seen are the attributes that such an instance has registered, or nil if none has so far.
	Seen []types.Attribute
	// Type is the instance type, and Zones are where it may be launched; empty if that isn't known.
	Type  string
	Zones []string
}

// NewKind returns what instances of a type with so many vCPUs have, in any of the zones.
func NewKind(name string, zones []string, vcpus int, memoryMiB int64, gpus int, seen []types.Attribute) Kind {
	return Kind{
		Size:  Size{CPU: int64(vcpus) * 1024, MemoryMiB: memoryMiB, GPUs: gpus},
		Seen:  seen,
		Type:  name,
		Zones: zones,
	}
}

// Task is what a task needs of an instance.
type Task struct {
	Size
	Attributes []types.Attribute
	MemberOf   []*query.Expression
}

// NewTask returns what a task needs. The expressions have been validated.
func NewTask(size Size, attributes []types.Attribute, memberOf []string) Task {
	t := Task{Size: size, Attributes: attributes}
	for _, text := range memberOf {
		if e, err := query.Parse(text); err == nil {
			t.MemberOf = append(t.MemberOf, e)
		}
	}
	return t
}

// Refusal says why no instance that a provider could launch would ever take a task: with ECS's reason, and what exactly is missing.
// The reason is "" if one may take it, or if nothing is known of the provider's instances.
func Refusal(kinds []Kind, t Task) (reason, detail string) {
	if len(kinds) == 0 {
		return "", ""
	}
	var least []string // the fewest attributes that a kind with room lacks
	room, unmet := false, ""
	for _, k := range kinds {
		if !k.holds(t.Size) {
			continue
		}
		lacks := k.lacks(t)
		if len(lacks) == 0 {
			if unmet = k.unmet(t.MemberOf, false); unmet == "" {
				return "", ""
			}
		}
		if !room || len(lacks) < len(least) {
			least = lacks
		}
		room = true
	}
	switch {
	case unmet != "":
		return UnmetConstraint, "No instance of its capacity provider meets " + unmet + "."
	case !room:
		return shortage(kinds, t.Size)
	}
	return "ATTRIBUTE", MissingAttributes(least)
}

// UnmetConstraint is ECS's reason where no instance meets a task's memberOf constraints.
const UnmetConstraint = "MemberOf placement constraint unsatisfied."

// MissingAttributes names missing attributes in a sentence.
func MissingAttributes(names []string) string {
	if len(names) == 1 {
		return "Missing attribute: " + names[0] + "."
	}
	return "Missing attributes: " + strings.Join(names, ", ") + "."
}

// Takes reports whether a new instance of the kind may take the task. It has no tasks yet, so it's none of those that have tasks of a group.
func (k Kind) Takes(t Task) bool {
	return k.holds(t.Size) && len(k.lacks(t)) == 0 && k.unmet(t.MemberOf, true) == ""
}

// unmet returns an expression that no instance of the kind could ever meet, in whichever zone it is launched, or "". Idle asks only
// whether one could as long as it has no tasks.
func (k Kind) unmet(expressions []*query.Expression, idle bool) (unmet string) {
	for _, zone := range k.zones() {
		i := slices.IndexFunc(expressions, func(e *query.Expression) bool {
			may, _ := k.outcomes(e, zone, idle)
			return !may
		})
		if i < 0 {
			return ""
		}
		unmet = expressions[i].String()
	}
	return unmet
}

// zones returns where the kind may be launched, with "" for an unknown zone.
func (k Kind) zones() []string {
	if len(k.Zones) == 0 {
		return []string{""}
	}
	return k.Zones
}

// outcomes reports whether an instance in a zone, idle or with any tasks, may meet an expression, and whether it must.
func (k Kind) outcomes(e *query.Expression, zone string, idle bool) (may, must bool) {
	return e.Outcomes(query.Known{Idle: idle, Attribute: func(name string) (string, bool, bool) {
		switch {
		case name == "ecs.availability-zone":
			return zone, true, zone != ""
		case name == "ecs.instance-type" && k.Type != "":
			return k.Type, true, true
		}
		value, has := k.seen(name)
		if at, ok := k.seen("ecs.availability-zone"); name == "ecs.subnet-id" && ok && at != zone {
			return "", false, false // another zone has other subnets
		}
		return value, has, has || k.Seen != nil
	}})
}

// seen returns the value of an attribute that an instance of the kind has registered.
func (k Kind) seen(name string) (value string, has bool) {
	i := slices.IndexFunc(k.Seen, func(a types.Attribute) bool { return *a.Name == name })
	if i < 0 {
		return "", false
	}
	return aws.ToString(k.Seen[i].Value), true
}

// isCertain reports whether every new instance of the kind meets all expressions.
func (k Kind) isCertain(expressions []*query.Expression) bool {
	for _, zone := range k.zones() {
		for _, e := range expressions {
			if _, must := k.outcomes(e, zone, true); !must {
				return false
			}
		}
	}
	return true
}

// lacks returns the attributes that the task needs and instances of the kind were seen without.
func (k Kind) lacks(t Task) (names []string) {
	if k.Seen == nil {
		return nil
	}
	for _, a := range t.Attributes {
		has := slices.ContainsFunc(k.Seen, func(s types.Attribute) bool {
			return *s.Name == *a.Name && (a.Value == nil || aws.ToString(s.Value) == *a.Value)
		})
		switch {
		case has:
		case a.Value == nil:
			names = append(names, *a.Name)
		default:
			names = append(names, *a.Name+"="+*a.Value)
		}
	}
	return names
}

// shortage says which resource of a task no kind has enough of.
func shortage(kinds []Kind, need Size) (reason, detail string) {
	var most Size
	for _, k := range kinds {
		most = Size{CPU: max(most.CPU, k.CPU), MemoryMiB: max(most.MemoryMiB, k.MemoryMiB), GPUs: max(most.GPUs, k.GPUs)}
	}
	const says = "The task needs %d %s, and an instance of its capacity provider has at most %d."
	switch {
	case need.GPUs > most.GPUs:
		return "RESOURCE:GPU", fmt.Sprintf(says, need.GPUs, "GPUs", most.GPUs)
	case need.CPU > most.CPU:
		return "RESOURCE:CPU", fmt.Sprintf(says, need.CPU, "CPU units", most.CPU)
	case need.MemoryMiB > most.MemoryMiB:
		return "RESOURCE:MEMORY", fmt.Sprintf(says, need.MemoryMiB, "MiB of memory", most.MemoryMiB)
	}
	return "RESOURCE:*", "No instance type of the task's capacity provider has enough GPUs, CPU and memory together."
}

// ordinary are the attributes that agents have as they come, Amazon's and Pintle's.
var ordinary = []string{
	"com.amazonaws.ecs.capability.logging-driver.awslogs", "com.amazonaws.ecs.capability.logging-driver.json-file",
	"com.amazonaws.ecs.capability.logging-driver.none", "com.amazonaws.ecs.capability.privileged-container",
	"com.amazonaws.ecs.capability.task-iam-role", "com.amazonaws.ecs.capability.task-iam-role-network-host",
	"ecs.capability.container-health-check", "ecs.capability.container-ordering", "ecs.capability.container-restart-policy",
	"ecs.capability.docker-plugin.local", "ecs.capability.docker-plugin.pintle-lambda", "ecs.capability.execution-role-awslogs", "ecs.capability.pid-ipc-namespace-sharing",
	"ecs.capability.task-eni", "ecs.cpu-architecture", "ecs.os-type",
}

// IsTrial reports whether only an instance can tell if one would take the task: the task needs something out of the ordinary, and no
// instance was seen of any kind that may take it.
func IsTrial(kinds []Kind, t Task) bool {
	if len(kinds) == 0 {
		return false
	}
	for _, k := range kinds {
		if k.Seen != nil && k.Takes(t) {
			return false
		}
	}
	if slices.ContainsFunc(kinds, func(k Kind) bool { return k.Seen == nil && k.Takes(t) && !k.isCertain(t.MemberOf) }) {
		return true
	}
	return slices.ContainsFunc(t.Attributes, func(a types.Attribute) bool { return !slices.Contains(ordinary, *a.Name) })
}
