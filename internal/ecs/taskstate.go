package ecs

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
)

// Reports from nodes. They may come twice or late: applying one again changes nothing, and a STOPPED task stays STOPPED.

// SubmitTaskStateChange applies a node's report on a task and its containers.
func (s *Service) SubmitTaskStateChange(ctx context.Context, in *ecs.SubmitTaskStateChangeInput) (*ecs.SubmitTaskStateChangeOutput, error) {
	status := aws.ToString(in.Status)
	if err := checkReport(in); err != nil {
		return nil, err
	}
	var started, failed *state.Task
	err := s.changeTask(ctx, in.Cluster, in.Task, func(t *state.Task, td *state.TaskDefinition) *state.Task {
		for _, c := range in.Containers {
			applyContainer(t, c)
		}
		for _, a := range in.Attachments {
			applyAttachment(t, a)
		}
		for _, m := range in.ManagedAgents {
			applyManagedAgent(t, m, s.now())
		}
		t.PullStartedAt = cmp.Or(t.PullStartedAt, in.PullStartedAt)
		t.PullStoppedAt = cmp.Or(t.PullStoppedAt, in.PullStoppedAt)
		t.ExecutionStoppedAt = cmp.Or(t.ExecutionStoppedAt, in.ExecutionStoppedAt)
		switch status {
		case "RUNNING":
			isNew := t.StartedAt == nil
			if t = t.Running(*s.now()); isNew && t.StartedAt != nil {
				started = t
			}
			return t
		case "STOPPED":
			code, reason := stopCodeAndReason(t, td, aws.ToString(in.Reason))
			if t = t.Stopped(code, reason, *s.now()); t.StartedAt == nil {
				failed = t
			}
		}
		return t
	})
	if err != nil {
		return nil, err
	}
	if started != nil {
		s.opts.Started(started)
	}
	if failed != nil {
		s.opts.Failed(failed)
	}
	return &ecs.SubmitTaskStateChangeOutput{Acknowledgment: aws.String("ACK")}, nil
}

// reportable are the statuses that a node may report for a task or a container, and attachable those for an attachment.
var (
	reportable = []string{"PENDING", "CREATED", "RUNNING", "STOPPED", "NONE", "MANIFEST_PULLED", "PULLED", "RESOURCES_PROVISIONED"}
	attachable = []string{"PRECREATED", "CREATED", "ATTACHING", "ATTACHED", "DETACHING", "DETACHED", "DELETED", "FAILED"}
)

// checkReport checks the statuses of a report on a task, its containers and its attachments.
func checkReport(in *ecs.SubmitTaskStateChangeInput) error {
	if err := checkStatus("status", in.Status, reportable); err != nil {
		return err
	}
	for _, c := range in.Containers {
		if err := checkStatus("containers.status", c.Status, reportable); err != nil {
			return err
		}
	}
	return checkAttachments(in.Attachments)
}

func checkAttachments(changes []types.AttachmentStateChange) error {
	for _, a := range changes {
		if err := checkStatus("attachments.status", a.Status, attachable); err != nil {
			return err
		}
	}
	return nil
}

// checkStatus checks a status that a node reports. It may be missing.
func checkStatus(field string, status *string, known []string) error {
	if s := aws.ToString(status); s != "" && !slices.Contains(known, s) {
		return invalidParameter("%s must be one of %v, not %q.", field, known, s)
	}
	return nil
}

// SubmitContainerStateChange applies a node's report on one container.
func (s *Service) SubmitContainerStateChange(
	ctx context.Context, in *ecs.SubmitContainerStateChangeInput,
) (*ecs.SubmitContainerStateChangeOutput, error) {
	if err := checkStatus("status", in.Status, reportable); err != nil {
		return nil, err
	}
	err := s.changeTask(ctx, in.Cluster, in.Task, func(t *state.Task, _ *state.TaskDefinition) *state.Task {
		applyContainer(t, types.ContainerStateChange{
			ContainerName:   in.ContainerName,
			ExitCode:        in.ExitCode,
			NetworkBindings: in.NetworkBindings,
			Reason:          in.Reason,
			RuntimeId:       in.RuntimeId,
			Status:          in.Status,
		})
		return t
	})
	if err != nil {
		return nil, err
	}
	return &ecs.SubmitContainerStateChangeOutput{Acknowledgment: aws.String("ACK")}, nil
}

// SubmitAttachmentStateChanges applies a node's report on network interfaces.
func (s *Service) SubmitAttachmentStateChanges(
	ctx context.Context, in *ecs.SubmitAttachmentStateChangesInput,
) (*ecs.SubmitAttachmentStateChangesOutput, error) {
	if err := checkAttachments(in.Attachments); err != nil {
		return nil, err
	}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		c, err := s.activeCluster(tx.View, in.Cluster)
		if err != nil {
			return err
		}
		for _, a := range in.Attachments {
			old := findAttached(tx.View, *c.ClusterArn, a)
			if old == nil {
				continue
			}
			if err := checkOwnTask(ctx, old); err != nil {
				return err
			}
			t, _ := clone(old)
			applyAttachment(t, a)
			tx.Tasks.Put(t)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecs.SubmitAttachmentStateChangesOutput{Acknowledgment: aws.String("ACK")}, nil
}

// findAttached finds the task of an attachment, also one that is stopping, or returns nil.
func findAttached(v *state.View, clusterArn string, a types.AttachmentStateChange) *state.Task {
	for _, desired := range []string{"RUNNING", "STOPPED"} {
		for t := range v.Tasks.By(state.TasksByCluster, state.ClusterStatus(clusterArn, desired)) {
			if *t.LastStatus != "STOPPED" && hasAttachment(t, a) {
				return t
			}
		}
	}
	return nil
}

// changeTask applies a report to a task that is not STOPPED. change gets a copy whose containers and attachments it may modify, and the task's
// definition, or nil.
func (s *Service) changeTask(
	ctx context.Context, cluster, task *string, change func(*state.Task, *state.TaskDefinition) *state.Task,
) error {
	if aws.ToString(task) == "" {
		return invalidParameter("task must not be empty.")
	}
	return s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.reportedTask(tx.View, cluster, *task)
		if err != nil {
			return err
		}
		if err := checkOwnTask(ctx, old); err != nil {
			return err
		}
		if *old.LastStatus == "STOPPED" {
			return nil
		}
		t, _ := clone(old)
		t.Containers = slices.Clone(t.Containers)
		t.Attachments = slices.Clone(t.Attachments)
		td := tx.TaskDefinitions.Get(*t.TaskDefinitionArn)
		t = change(t, td)
		if td != nil && !bindsPorts(td.NetworkMode) {
			for i := range t.Containers {
				t.Containers[i].NetworkBindings = []types.NetworkBinding{}
			}
		}
		tx.Tasks.Put(t)
		tx.ForgetUnmade(t)
		resolveImages(tx, t, td)
		return nil
	})
}

// reportedTask returns the task that a node tells of. Its cluster may have been deleted while it stops on an instance of another one, and Amazon's
// agent names the cluster of its instance.
func (s *Service) reportedTask(v *state.View, cluster *string, task string) (*state.Task, error) {
	if t := v.Tasks.Get(task); t != nil && slices.Contains([]string{*t.ClusterArn, t.Home()}, s.clusterArn(cluster)) {
		return t, nil
	}
	c, err := s.activeCluster(v, cluster)
	if err != nil {
		return nil, err
	}
	if t := s.findTask(v, *c.ClusterArn, task); t != nil {
		return t, nil
	}
	return nil, invalidParameter("The task %q was not found in cluster %s.", task, *c.ClusterName)
}

// resolveImages notes the digests of the images that the first task of a service revision found by their tags. Later tasks of the revision run
// the same images: https://docs.aws.amazon.com/AmazonECS/latest/developerguide/deployment-type-ecs.html
func resolveImages(tx *state.Tx, t *state.Task, td *state.TaskDefinition) {
	old := tx.RevisionOf(t)
	if old == nil || td == nil {
		return
	}
	r := *old
	r.ContainerImages = slices.Clone(old.ContainerImages)
	resolved := false
	for i := range r.ContainerImages {
		image := &r.ContainerImages[i]
		if image.ImageDigest != nil || !resolves(td, *image.ContainerName) {
			continue
		}
		if image.ImageDigest = digestOf(t, *image.ContainerName); image.ImageDigest != nil {
			resolved = true
		}
	}
	if resolved {
		tx.ServiceRevisions.Put(&r)
	}
}

// resolves reports whether a container's image is in a registry under a tag that stands for the image it had first: versionConsistency, which is
// enabled by default.
func resolves(td *state.TaskDefinition, container string) bool {
	return slices.ContainsFunc(td.ContainerDefinitions, func(c types.ContainerDefinition) bool {
		image := aws.ToString(c.Image)
		return aws.ToString(c.Name) == container && c.VersionConsistency != types.VersionConsistencyDisabled &&
			!strings.Contains(image, "@") &&
			!slices.ContainsFunc(imagesOfNode, func(prefix string) bool { return strings.HasPrefix(image, prefix) })
	})
}

func digestOf(t *state.Task, container string) *string {
	for _, c := range t.Containers {
		if *c.Name == container {
			return c.ImageDigest
		}
	}
	return nil
}

// bindsPorts reports whether ports of containers become other ones of the node, which networkBindings show.
func bindsPorts(mode types.NetworkMode) bool { return mode == "" || mode == types.NetworkModeBridge }

func applyContainer(t *state.Task, in types.ContainerStateChange) {
	for i := range t.Containers {
		c := &t.Containers[i]
		if *c.Name != aws.ToString(in.ContainerName) || *c.LastStatus == "STOPPED" {
			continue
		}
		if st := aws.ToString(in.Status); st == "RUNNING" || st == "STOPPED" {
			c.LastStatus = &st
		}
		c.ExitCode = cmp.Or(in.ExitCode, c.ExitCode)
		c.ImageDigest = cmp.Or(in.ImageDigest, c.ImageDigest)
		c.Reason = cmp.Or(in.Reason, c.Reason)
		c.RuntimeId = cmp.Or(in.RuntimeId, c.RuntimeId)
		if in.NetworkBindings != nil {
			c.NetworkBindings = in.NetworkBindings
		}
	}
}

func hasAttachment(t *state.Task, in types.AttachmentStateChange) bool {
	return slices.ContainsFunc(t.Attachments, func(a types.Attachment) bool {
		return aws.ToString(a.Id) == state.NameOf(aws.ToString(in.AttachmentArn))
	})
}

func applyAttachment(t *state.Task, in types.AttachmentStateChange) {
	t.Attachments = slices.Clone(t.Attachments)
	for i, a := range t.Attachments {
		if aws.ToString(a.Id) == state.NameOf(aws.ToString(in.AttachmentArn)) {
			t.Attachments[i].Status = in.Status
		}
	}
}

func applyManagedAgent(t *state.Task, in types.ManagedAgentStateChange, now *time.Time) {
	for i := range t.Containers {
		c := &t.Containers[i]
		if *c.Name != aws.ToString(in.ContainerName) {
			continue
		}
		agent := types.ManagedAgent{Name: in.ManagedAgentName}
		agents := slices.DeleteFunc(slices.Clone(c.ManagedAgents), func(m types.ManagedAgent) bool {
			if m.Name != in.ManagedAgentName {
				return false
			}
			agent = m
			return true
		})
		if aws.ToString(in.Status) == "RUNNING" && aws.ToString(agent.LastStatus) != "RUNNING" {
			agent.LastStartedAt = now
		}
		agent.LastStatus = in.Status
		agent.Reason = in.Reason
		c.ManagedAgents = append(agents, agent)
	}
}

// stopCodeAndReason tells a task whose essential container exited from one that failed to start, though others of its containers may have
// done their work by then.
func stopCodeAndReason(t *state.Task, td *state.TaskDefinition, reason string) (types.TaskStopCode, string) {
	failure := ""
	for _, c := range t.Containers {
		if c.ExitCode != nil && isEssential(td, *c.Name) {
			return types.TaskStopCodeEssentialContainerExited, "Essential container in task exited"
		}
		failure = cmp.Or(failure, aws.ToString(c.Reason))
	}
	if t.StartedAt != nil {
		return types.TaskStopCodeEssentialContainerExited, cmp.Or(reason, failure, "Essential container in task exited")
	}
	return types.TaskStopCodeTaskFailedToStart, cmp.Or(reason, failure, "Task failed to start")
}

// isEssential reports whether a task ends with a container, as it also does where nobody knows its definition any more.
func isEssential(td *state.TaskDefinition, container string) bool {
	if td == nil {
		return true
	}
	return slices.ContainsFunc(td.ContainerDefinitions, func(c types.ContainerDefinition) bool {
		return aws.ToString(c.Name) == container && (c.Essential == nil || *c.Essential)
	})
}

// UpdateContainerAgent is for instances whose agent ECS updates. Pintle doesn't update agents, so there is never an update.
func (s *Service) UpdateContainerAgent(_ context.Context, in *ecs.UpdateContainerAgentInput) (*ecs.UpdateContainerAgentOutput, error) {
	v := s.store.View()
	c, err := s.activeCluster(v, in.Cluster)
	if err != nil {
		return nil, err
	}
	if s.findInstance(v, *c.ClusterArn, aws.ToString(in.ContainerInstance)) == nil {
		return nil, invalidParameter("The container instance %q was not found in cluster %s.",
			aws.ToString(in.ContainerInstance), *c.ClusterName)
	}
	return nil, &types.NoUpdateAvailableException{
		Message: aws.String("There is no update available for your container agent: update the pintle binary on the node."),
	}
}
