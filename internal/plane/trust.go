package plane

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"

	"github.com/pintle/pintle/internal/iam/authorize"
	"github.com/pintle/pintle/internal/state"
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
	case c.Task != "" && c.Service == "iam":
		return onlyReads(c.Operation)
	case c.Task != "" || c.Role != "":
		return c.Service != "ecs" || !slices.Contains(ofNodes, c.Operation)
	}
	return true
}

// onlyReads reports whether an operation of IAM changes nothing. A task mustn't: a user, a role or a key of its making would be bound by none of
// a task's limits, and wouldn't end with it.
func onlyReads(operation string) bool {
	return slices.ContainsFunc([]string{"Get", "List", "Simulate"}, func(verb string) bool { return strings.HasPrefix(operation, verb) })
}

// handsOut returns why a task in a role may not make a call that gives others more than the task has, or "".
func handsOut(v *state.View, role string, in any) string {
	return cmp.Or(toInstances(v, in), ofNodesFiles(in), toFunctions(v, role, in), toTargets(role, in), toLoopback(in))
}

// ofNodesFiles returns why a task may not have a function run an image that is in a node's own files.
func ofNodesFiles(in any) string {
	var image *string
	switch in := in.(type) {
	case *lambda.CreateFunctionInput:
		if in.Code != nil {
			image = in.Code.ImageUri
		}
	case *lambda.UpdateFunctionCodeInput:
		image = in.ImageUri
	}
	if name := aws.ToString(image); strings.HasPrefix(name, "rootfs:") || strings.HasPrefix(name, "oci-layout:") {
		return "a task can have no function of an image in the nodes' files"
	}
	return ""
}

// toFunctions returns why a task may not make a call that has a function run code as another role than the task's.
func toFunctions(v *state.View, role string, in any) string {
	var roles []*string
	of := func(function *string) {
		for f := range v.VersionsOf(authorize.FunctionName(aws.ToString(function))) {
			roles = append(roles, f.Role)
		}
	}
	switch in := in.(type) {
	case *lambda.CreateFunctionInput:
		roles = append(roles, in.Role)
	case *lambda.UpdateFunctionConfigurationInput:
		roles = append(roles, in.Role)
		of(in.FunctionName)
	case *lambda.UpdateFunctionCodeInput:
		of(in.FunctionName)
	}
	return unlessOwn(role, roles)
}

// toTargets returns why a task may not make a call that has EventBridge or its Scheduler call targets as another role than the task's, or run
// tasks: they'd be run by somebody who is no task.
func toTargets(role string, in any) string {
	var roles []*string
	runs := false
	switch in := in.(type) {
	case *eventbridge.PutRuleInput:
		roles = append(roles, in.RoleArn)
	case *eventbridge.PutTargetsInput:
		for _, t := range in.Targets {
			roles = append(roles, t.RoleArn)
			runs = runs || t.EcsParameters != nil
		}
	case *scheduler.CreateScheduleInput:
		roles, runs = ofSchedule(in.Target)
	case *scheduler.UpdateScheduleInput:
		roles, runs = ofSchedule(in.Target)
	}
	if runs {
		return "a task can have no tasks run by rules and schedules"
	}
	return unlessOwn(role, roles)
}

func ofSchedule(t *schedulertypes.Target) (roles []*string, runs bool) {
	if t == nil {
		return nil, false
	}
	return []*string{t.RoleArn}, t.EcsParameters != nil
}

func unlessOwn(role string, roles []*string) string {
	if slices.ContainsFunc(roles, func(r *string) bool { return aws.ToString(r) != "" && *r != role }) {
		return "a task can pass its own role only"
	}
	return ""
}

// toLoopback returns why a task may not make a call that has a load balancer carry requests to what only the balancer's machine reaches.
func toLoopback(in any) string {
	register, is := in.(*elasticloadbalancingv2.RegisterTargetsInput)
	if !is {
		return ""
	}
	for _, t := range register.Targets {
		if ip, err := netip.ParseAddr(aws.ToString(t.Id)); err == nil && ip.Unmap().IsLoopback() {
			return "a task can have no target at a load balancer's own machine"
		}
	}
	return ""
}

// toInstances returns why a task may not make a call that gives instances more than the task has: a role, whose credentials an instance has for
// itself, or user data, which instances may run as root. It's "" for a call that gives neither. What a launch template of others has counts
// where the call changes the rest of it, such as the image. A group may use the template as it is.
func toInstances(v *state.View, in any) string {
	var g gift
	switch in := in.(type) {
	case *ec2.RunInstancesInput:
		g = gift{in.IamInstanceProfile != nil, in.UserData != nil}
		if t := in.LaunchTemplate; t != nil {
			g = g.and(inTemplate(v, t.LaunchTemplateId, t.LaunchTemplateName))
		}
	case *ec2.CreateLaunchTemplateInput:
		g = inData(in.LaunchTemplateData)
	case *ec2.CreateLaunchTemplateVersionInput:
		g = inData(in.LaunchTemplateData)
		if in.SourceVersion != nil {
			g = g.and(inTemplate(v, in.LaunchTemplateId, in.LaunchTemplateName))
		}
	case *autoscaling.CreateLaunchConfigurationInput:
		g = gift{in.IamInstanceProfile != nil || in.InstanceId != nil, in.UserData != nil}
	}
	switch {
	case g.role:
		return "a task can give no role to instances"
	case g.userData:
		return "a task can give no user data to instances, which may run it"
	}
	return ""
}

// gift is what instances get besides what they are.
type gift struct{ role, userData bool }

func (g gift) and(other gift) gift { return gift{g.role || other.role, g.userData || other.userData} }

// inData returns what a launch template's data give.
func inData(data *ec2types.RequestLaunchTemplateData) gift {
	if data == nil {
		return gift{}
	}
	return gift{data.IamInstanceProfile != nil, data.UserData != nil}
}

// inTemplate returns what any version of a launch template gives.
func inTemplate(v *state.View, id, name *string) (g gift) {
	t := v.FindLaunchTemplate(aws.ToString(id), aws.ToString(name))
	if t == nil {
		return g
	}
	for _, version := range t.Versions {
		if data := version.LaunchTemplateData; data != nil {
			g = g.and(gift{data.IamInstanceProfile != nil, data.UserData != nil})
		}
	}
	return g
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
