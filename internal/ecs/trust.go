package ecs

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/ecs/taskvolume"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// What a call may do depends on who signed it. The account's owner may do everything. A node acts for its own container
// instance and the tasks on it. A task can't give another task more than it has itself. Which operations nodes and tasks may
// call at all is decided before a call gets here.

// denied refuses a call of something that its caller has no business with.
func denied(c call.Call, resource, why string) error {
	return &types.AccessDeniedException{
		Message: aws.String(account.NotAuthorized(c.Principal, "ecs:"+c.Operation, resource, why)),
	}
}

// checkOwnInstance refuses a node that acts for another container instance than its own.
func checkOwnInstance(ctx context.Context, arn string) error {
	if c := call.From(ctx); c.Node && c.Instance != arn {
		return denied(c, arn, "the key is of another container instance")
	}
	return nil
}

// checkOwnTask refuses a node that acts for a task of another container instance.
func checkOwnTask(ctx context.Context, t *state.Task) error {
	if c := call.From(ctx); c.Node && c.Instance != aws.ToString(t.ContainerInstanceArn) {
		return denied(c, *t.TaskArn, "the task is not on the key's container instance")
	}
	return nil
}

// checkPassed refuses a task that would give another task a role or rights on a node that it doesn't have itself. On AWS,
// that takes iam:PassRole.
func checkPassed(c call.Call, td *types.TaskDefinition, o *types.TaskOverride, volumes ...taskvolume.Configuration) error {
	if c.Task == "" {
		return nil
	}
	roles := []*string{td.TaskRoleArn, td.ExecutionRoleArn}
	if o != nil {
		roles = append(roles, o.TaskRoleArn, o.ExecutionRoleArn)
	}
	for _, v := range volumes {
		roles = append(roles, v.EBS.RoleArn)
	}
	for _, role := range roles {
		if r := aws.ToString(role); r != "" && r != c.Role {
			return &types.AccessDeniedException{
				Message: aws.String(account.NotAuthorized(c.Principal, "iam:PassRole", r, "a task can pass its own role only")),
			}
		}
	}
	if what := rightsOnNode(td); what != "" {
		return denied(c, *td.Family, "a task can start none with "+what)
	}
	return nil
}

// imagesOfNode begin images that a node makes of its own files.
var imagesOfNode = []string{"rootfs:", "oci-layout:"}

// checkImages refuses a task that would have a node's files unpacked for it. Definitions of others have the images that they chose.
func checkImages(c call.Call, td *types.TaskDefinition) error {
	if c.Task == "" {
		return nil
	}
	for _, d := range td.ContainerDefinitions {
		if slices.ContainsFunc(imagesOfNode, func(prefix string) bool { return strings.HasPrefix(aws.ToString(d.Image), prefix) }) {
			return denied(c, *td.Family, "a task can register none with an image in the node's files")
		}
	}
	return nil
}

// rightsOnNode names what a definition asks for that reaches out of its containers to the node, or returns "". In the node's network a
// container sees what its neighbours send, and all that listens on loopback.
func rightsOnNode(td *types.TaskDefinition) string {
	if slices.ContainsFunc(td.Volumes, reachesNode) {
		return "a directory, a device or a volume driver of the node"
	}
	if td.PidMode == types.PidModeHost || td.IpcMode == types.IpcModeHost || td.NetworkMode == types.NetworkModeHost {
		return "the node's processes, memory or network"
	}
	for _, c := range td.ContainerDefinitions {
		l := c.LinuxParameters
		if aws.ToBool(c.Privileged) || l != nil && len(l.Devices) > 0 || l != nil && l.Capabilities != nil && len(l.Capabilities.Add) > 0 {
			return "privileged containers, devices or capabilities"
		}
		if slices.ContainsFunc(c.DockerSecurityOptions, loosens) {
			return "dockerSecurityOptions other than no-new-privileges"
		}
	}
	return ""
}

// reachesNode reports whether a volume could show a directory or a device of the node: by its path, by the options of Docker's driver
// local, or as another driver likes. What a task's own role may read in S3 isn't the node's.
func reachesNode(v types.Volume) bool {
	if v.Host != nil && aws.ToString(v.Host.SourcePath) != "" {
		return true
	}
	d := v.DockerVolumeConfiguration
	return d != nil && !isDataSet(d) && (len(d.DriverOpts) > 0 || cmp.Or(aws.ToString(d.Driver), "local") != "local")
}

// loosens reports whether an option of Docker's may give a container more rights than it has without.
func loosens(option string) bool {
	return option != "no-new-privileges" && option != "no-new-privileges:true"
}
