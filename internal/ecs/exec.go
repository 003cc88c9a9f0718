package ecs

import (
	"cmp"
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/ecs/sessions"
	"github.com/pintle/pintle/internal/shellword"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// maxCommand is the most bytes of a command, which nodes get in one message.
const maxCommand = 64 << 10

// ExecuteCommand begins a session with a command at a terminal in a container, and says where its client connects.
func (s *Service) ExecuteCommand(ctx context.Context, in *ecs.ExecuteCommandInput) (*ecs.ExecuteCommandOutput, error) {
	command, err := checkCommand(in)
	if err != nil {
		return nil, err
	}
	v := s.store.View()
	c, err := s.activeCluster(v, in.Cluster)
	if err != nil {
		return nil, err
	}
	t := s.findTask(v, *c.ClusterArn, *in.Task)
	if t == nil {
		return nil, invalidParameter("The referenced task was not found.")
	}
	container, err := executable(t, aws.ToString(in.Container))
	if err != nil {
		return nil, err
	}
	td := v.TaskDefinitions.Get(*t.TaskDefinitionArn)
	if td == nil {
		return nil, invalidParameter("The task's definition is gone.")
	}
	who := call.From(ctx)
	if err := checkPassed(who, &td.TaskDefinition, t.Overrides); err != nil { // who is in a container has its roles
		return nil, err
	}
	log, err := sessionLog(c, td, *container.Name)
	if err != nil {
		return nil, err
	}
	id, token, err := s.opts.Sessions.Begin(ctx, t, &acs.PintleExecute{ContainerName: *container.Name, Command: command, Log: log})
	if err != nil {
		return nil, notConnected(err)
	}
	// Who came in is told also where only warnings are.
	s.opts.Log.Warn("an execute-command session begins", "session", id, "task", *t.TaskArn, "container", *container.Name,
		"command", *in.Command, "caller", cmp.Or(who.Principal, s.opts.Root()), "from", who.Peer)
	return &ecs.ExecuteCommandOutput{
		ClusterArn:    c.ClusterArn,
		ContainerArn:  container.ContainerArn,
		ContainerName: container.Name,
		Interactive:   true,
		Session:       &types.Session{SessionId: &id, StreamUrl: new(sessions.URL(who.Endpoint, id)), TokenValue: &token},
		TaskArn:       t.TaskArn,
	}, nil
}

// checkCommand returns the words of a call's command.
func checkCommand(in *ecs.ExecuteCommandInput) ([]string, error) {
	if aws.ToString(in.Task) == "" {
		return nil, invalidParameter("taskId can not be null or empty.")
	}
	if err := checkTaskID(*in.Task); err != nil {
		return nil, err
	}
	if !in.Interactive {
		return nil, invalidParameter("Interactive is the only mode supported currently.")
	}
	if len(aws.ToString(in.Command)) > maxCommand {
		return nil, invalidParameter("command has %d bytes, at most %d are allowed.", len(*in.Command), maxCommand)
	}
	words, err := shellword.Split(aws.ToString(in.Command))
	if err != nil {
		return nil, invalidParameter("command: %s", err)
	}
	if len(words) == 0 {
		return nil, invalidParameter("command must not be empty.")
	}
	return words, nil
}

// executable returns the container of a task in which a command can be executed now: the named one, or the only one.
func executable(t *state.Task, name string) (*types.Container, error) {
	var found *types.Container
	for i := range t.Containers {
		if c := &t.Containers[i]; name == "" && len(t.Containers) == 1 || name == *c.Name {
			found = c
		}
	}
	switch {
	case *t.LastStatus == "STOPPED" || *t.DesiredStatus == "STOPPED":
		return nil, invalidParameter("The execute command failed because the task is stopped or stopping.")
	case found == nil && name == "":
		return nil, invalidParameter("The task has %d containers. Name one of them as container.", len(t.Containers))
	case found == nil:
		return nil, invalidParameter("The task has no container %s.", name)
	case !t.EnableExecuteCommand || !isAgentRunning(found):
		return nil, invalidParameter("The execute command failed because execute command was not enabled when the task was run or the execute " +
			"command agent isn’t running. Wait and try again or run a new task with execute command enabled and try again.")
	}
	return found, nil
}

// isAgentRunning reports whether a container's node executes commands in it.
func isAgentRunning(c *types.Container) bool {
	for _, a := range c.ManagedAgents {
		if a.Name == types.ManagedAgentNameExecuteCommandAgent && aws.ToString(a.LastStatus) == "RUNNING" {
			return true
		}
	}
	return false
}

// notConnected returns the error of a session that can't begin.
func notConnected(err error) error {
	switch {
	case errors.Is(err, sessions.ErrAway):
		return &types.TargetNotConnectedException{Message: aws.String("The execute command failed due to an internal error. Try again later.")}
	case errors.Is(err, sessions.ErrTooMany):
		return clientError("The execute command failed because there are too many sessions. End some, and try again.")
	}
	return err
}

// sessionLog returns where a session's transcript is to be kept, as the cluster's configuration says; nil for nowhere. What it asks for and
// isn't there is refused here, where somebody relies on it.
func sessionLog(c *state.Cluster, td *state.TaskDefinition, container string) (*acs.SessionLog, error) {
	if c.Configuration == nil || c.Configuration.ExecuteCommandConfiguration == nil {
		return defaultLog(td, container), nil
	}
	e := c.Configuration.ExecuteCommandConfiguration
	if e.KmsKeyId != nil {
		return nil, invalidParameter("The cluster's executeCommandConfiguration has a kmsKeyId, and Pintle has no AWS KMS. " +
			"Sessions are encrypted by TLS where Pintle is started with --tls.")
	}
	switch e.Logging {
	case types.ExecuteCommandLoggingNone:
		return nil, nil
	case types.ExecuteCommandLoggingOverride:
		return overrideLog(e.LogConfiguration)
	}
	return defaultLog(td, container), nil
}

// overrideLog is where a cluster with logging OVERRIDE has transcripts.
func overrideLog(l *types.ExecuteCommandLogConfiguration) (*acs.SessionLog, error) {
	if l == nil {
		return nil, nil
	}
	if l.CloudWatchEncryptionEnabled {
		return nil, invalidParameter("The cluster's executeCommandConfiguration has cloudWatchEncryptionEnabled, and Pintle has no AWS KMS by which " +
			"log groups are encrypted.")
	}
	out := &acs.SessionLog{Group: aws.ToString(l.CloudWatchLogGroupName), Bucket: aws.ToString(l.S3BucketName), Prefix: aws.ToString(l.S3KeyPrefix)}
	if out.Group == "" && out.Bucket == "" {
		return nil, nil
	}
	return out, nil
}

// defaultLog is the log group that a container logs to with awslogs; nil if it doesn't.
func defaultLog(td *state.TaskDefinition, container string) *acs.SessionLog {
	if td == nil {
		return nil
	}
	for _, d := range td.ContainerDefinitions {
		if l := d.LogConfiguration; *d.Name == container && l != nil && l.LogDriver == types.LogDriverAwslogs {
			return &acs.SessionLog{Group: l.Options["awslogs-group"]}
		}
	}
	return nil
}
