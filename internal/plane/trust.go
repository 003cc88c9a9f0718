package plane

import (
	"slices"

	"github.com/pintle/pintle/internal/wire/call"
)

// ofNodes are the operations of ECS that nodes call. Tasks and sessions of roles may call none of them, whatever the role.
var ofNodes = []string{
	"DeregisterContainerInstance",
	"DiscoverPollEndpoint",
	"RegisterContainerInstance",
	"SubmitAttachmentStateChanges",
	"SubmitContainerStateChange",
	"SubmitTaskStateChange",
	"UpdateContainerAgent",
}

// nodesMay are the operations that a node's key may call, by service. They are those of AWS's policy for container instances,
// AmazonEC2ContainerServiceforEC2Role, as far as agents need them here. The web sockets aren't operations.
var nodesMay = map[string][]string{
	"ecs": {
		"DeregisterContainerInstance",
		"DiscoverPollEndpoint",
		"ListTagsForResource",
		"RegisterContainerInstance",
		"SubmitAttachmentStateChanges",
		"SubmitContainerStateChange",
		"SubmitTaskStateChange",
		"UpdateContainerInstancesState",
	},
	"ecr":  {"BatchCheckLayerAvailability", "BatchGetImage", "GetAuthorizationToken", "GetDownloadUrlForLayer"},
	"logs": {"CreateLogGroup", "CreateLogStream", "PutLogEvents"},
	"sts":  {"GetCallerIdentity"},
}

// isAllowed reports whether the caller may call the operation at all. What it may do it to is the service's to decide.
func isAllowed(c call.Call) bool {
	switch {
	case c.Node:
		return slices.Contains(nodesMay[c.Service], c.Operation)
	case c.Task != "" || c.Role != "":
		return c.Service != "ecs" || !slices.Contains(ofNodes, c.Operation)
	}
	return true
}

// standing returns what must stay as it is for the registry's tokens of a caller to stay good: the unique id of its role. It reports whether the
// caller is still there: its task, its role, its key.
func (p *Plane) standing(by call.Call) (string, bool) {
	switch {
	case by.Node:
		_, _, ok := p.enrollment.Lookup(by.AccessKeyID)
		return "", ok
	case by.Task != "" && hasEnded(p.State.View().Tasks.Get(by.Task)):
		return "", false
	case by.Role != "":
		return p.IAM.RoleID(by.Role), true
	case by.User() != "":
		_, _, ok := p.IAM.Secret(by.AccessKeyID)
		return "", ok
	}
	return "", by.Principal == "" || by.AccessKeyID == p.options.AccessKeyID // where nothing is checked, or the owner
}
