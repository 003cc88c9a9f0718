package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	logstypes "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/spf13/cobra"

	"github.com/pintle/pintle/internal/acs"
)

type logsCmd struct {
	clientFlags
	Follow    bool
	Raw       bool
	Container string
	Task      string
}

func (c *logsCmd) define(f flags) {
	c.clientFlags.define(f)
	f.BoolVarP(&c.Follow, "follow", "f", false, "Continue until the task has stopped.")
	f.BoolVar(&c.Raw, "raw", false, "Write the logs as they are: by default, what would command a terminal is shown as \\x1b and the like.")
	f.StringVar(&c.Container, "container", "", "The container, if the task has several.")
}

func (c *logsCmd) verb() *cobra.Command {
	cmd := newVerb("logs [flags] TASK", "Show a task's logs.", argument(&c.Task, "a task, by id or ARN"), c.Run)
	c.define(flags{cmd.Flags()})
	return cmd
}

// Run shows a task's logs.
func (c *logsCmd) Run(ctx context.Context) error {
	cl, err := c.clients(ctx)
	if err != nil {
		return err
	}
	var out io.Writer = plainWriter{os.Stdout}
	if c.Raw {
		out = os.Stdout
	}
	_, err = cl.show(ctx, c.Cluster, c.Task, c.Container, c.Follow, out)
	return err
}

// pollInterval is how often a followed log is read.
const pollInterval = 200 * time.Millisecond

// show writes a container's logs, until the task stops when following, and returns the task's last description.
func (cl clients) show(ctx context.Context, cluster, task, container string, follow bool, out io.Writer) (types.Task, error) {
	t, err := cl.describe(ctx, cluster, task)
	if err != nil {
		return t, err
	}
	group, stream, err := cl.logStream(ctx, t, container)
	if err != nil {
		return t, err
	}
	in := &cloudwatchlogs.GetLogEventsInput{LogGroupName: &group, LogStreamName: &stream, StartFromHead: aws.Bool(true)}
	notes := startNotes{began: time.Now(), next: firstNote}
	for {
		if t, err = cl.describe(ctx, cluster, task); err != nil { // before reading, so that we miss nothing written before its end
			return t, err
		}
		n, err := cl.copy(ctx, in, out)
		if err != nil {
			return t, err
		}
		if n > 0 {
			continue
		}
		if !follow || aws.ToString(t.LastStatus) == "STOPPED" {
			return t, nil
		}
		notes.tell(os.Stderr, aws.ToString(t.LastStatus), time.Now())
		select {
		case <-ctx.Done():
			return t, ctx.Err()
		case <-time.After(pollInterval):
		}
	}
}

// When it's told that a followed task hasn't started yet, and how often after that.
const (
	firstNote = 3 * time.Second
	noteEvery = 30 * time.Second
)

// startNotes tells of a task that takes long to start, as while a large image is pulled.
type startNotes struct {
	began time.Time
	next  time.Duration // since began
}

func (n *startNotes) tell(to io.Writer, status string, now time.Time) {
	why := map[string]string{"PROVISIONING": "it waits for capacity", "PENDING": "its node may be pulling an image"}[status]
	waited := now.Sub(n.began)
	if why == "" || waited < n.next {
		return
	}
	n.next = waited + noteEvery
	fmt.Fprintf(to, "the task has been %s for %v: %s\n", status, waited.Round(time.Second), why)
}

// copy writes the next page, and advances in past it.
func (cl clients) copy(ctx context.Context, in *cloudwatchlogs.GetLogEventsInput, out io.Writer) (int, error) {
	page, err := cl.logs.GetLogEvents(ctx, in)
	var missing *logstypes.ResourceNotFoundException
	if errors.As(err, &missing) {
		return 0, nil // nothing has been written yet
	}
	if err != nil {
		return 0, err
	}
	for _, e := range page.Events {
		fmt.Fprintln(out, aws.ToString(e.Message))
	}
	in.NextToken = page.NextForwardToken
	return len(page.Events), nil
}

// checkTaskID says where to find a task's id if this can't be one.
func checkTaskID(task string) error {
	if n := len(lastPart(&task)); n != 32 && n != 36 {
		return fmt.Errorf("%q is neither a task's whole id nor its ARN: pintle ps -a lists the ids", task)
	}
	return nil
}

func (cl clients) describe(ctx context.Context, cluster, task string) (types.Task, error) {
	if err := checkTaskID(task); err != nil {
		return types.Task{}, err
	}
	d, err := cl.ecs.DescribeTasks(ctx, &awsecs.DescribeTasksInput{Cluster: &cluster, Tasks: []string{task}})
	if err != nil {
		return types.Task{}, err
	}
	if len(d.Tasks) == 0 {
		return types.Task{}, noTask{cluster, task}
	}
	return d.Tasks[0], nil
}

// noTask is the error for a task that a cluster doesn't have.
type noTask struct{ cluster, task string }

func (e noTask) Error() string {
	return fmt.Sprintf("there is no task %s in cluster %s: pintle ps -a lists them", e.task, e.cluster)
}

// logStream returns where a container's awslogs go. Without a container, it's the task's first that has some.
func (cl clients) logStream(ctx context.Context, t types.Task, container string) (group, stream string, err error) {
	d, err := cl.ecs.DescribeTaskDefinition(ctx, &awsecs.DescribeTaskDefinitionInput{TaskDefinition: t.TaskDefinitionArn})
	if err != nil {
		return "", "", err
	}
	id := lastPart(t.TaskArn)
	var names []string
	for _, c := range d.TaskDefinition.ContainerDefinitions {
		names = append(names, *c.Name)
		if container != "" && container != *c.Name {
			continue
		}
		if l := c.LogConfiguration; l != nil && l.LogDriver == types.LogDriverAwslogs {
			return l.Options["awslogs-group"], acs.LogStream(l.Options, id+"-"+*c.Name, *c.Name, id), nil
		}
		if container != "" {
			return "", "", fmt.Errorf("container %s of task %s has no logs to show: its log driver is not awslogs", container, id)
		}
	}
	if container != "" {
		return "", "", fmt.Errorf("task %s has no container %s: it has %s", id, container, strings.Join(names, ", "))
	}
	return "", "", fmt.Errorf("task %s has no logs to show: no container's log driver is awslogs", id)
}
