package plane

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"

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

// handsOut returns why a task may not make a call that gives instances more than the task has: a role, whose credentials an instance has for
// itself, or user data, which instances may run as root. It's "" for a call that gives neither. What a launch template of others has counts
// where the call changes the rest of it, such as the image. A group may use the template as it is.
func handsOut(v *state.View, in any) string {
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

// functionOf returns why a task may not have a function made or changed: it would run as another role than the task's, or of a node's own files.
// That a policy lets a task pass roles is checked elsewhere; a task whose role is a name alone is bound by no policy.
func (g gate) functionOf(c call.Call, in any) string {
	role, image := "", ""
	given := func(name *string) string {
		out, err := g.plane.Lambda.GetFunctionConfiguration(context.Background(), &awslambda.GetFunctionConfigurationInput{FunctionName: name})
		if err != nil {
			return "" // there's no such function
		}
		return aws.ToString(out.Role)
	}
	switch in := in.(type) {
	case *awslambda.CreateFunctionInput:
		if role = aws.ToString(in.Role); in.Code != nil {
			image = aws.ToString(in.Code.ImageUri)
		}
	case *awslambda.UpdateFunctionCodeInput:
		role, image = given(in.FunctionName), aws.ToString(in.ImageUri)
	case *awslambda.UpdateFunctionConfigurationInput:
		role = cmp.Or(aws.ToString(in.Role), given(in.FunctionName))
	default:
		return ""
	}
	switch {
	case strings.HasPrefix(image, "rootfs:") || strings.HasPrefix(image, "oci-layout:"):
		return "a task can have no function of an image in the nodes' files"
	case role != "" && role != c.Role && g.plane.IAM.PermissionsOf(c.Identity).Unlimited:
		return "a task can pass its own role only"
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
