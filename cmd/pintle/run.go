package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

type runCmd struct {
	clientFlags
	GPUs    int
	CPU     int32
	Memory  int32
	Env     map[string]string
	Name    string
	Image   string
	Exec    bool
	Command []string
}

func (c *runCmd) define(f flags) {
	c.clientFlags.define(f)
	f.count(&c.GPUs, "gpus", "How many GPUs to pin to the container.")
	f.Int32Var(&c.CPU, "cpu", 1024, "CPU units, 1024 per core.")
	f.Int32Var(&c.Memory, "memory", 512, "Memory in MiB.")
	pairs(f, &c.Env, "env", "e", "NAME=VALUE", "Environment variable, NAME=VALUE; repeat for more.", asIs)
	f.BoolVar(&c.Exec, "exec", false, "Let pintle exec and aws ecs execute-command run commands in the container.")
	f.StringVar(&c.Name, "name", "", "Family of the task definition; default derived from the image.")
}

func (c *runCmd) verb() *cobra.Command {
	cmd := newVerb("run [flags] IMAGE [command…]", "Run a container, show its logs, and exit with its code.", c.arguments, c.Run)
	cmd.Long = "The process runtime ignores the image."
	f := flags{cmd.Flags()}
	f.SetInterspersed(false) // flags after the command belong to it
	c.define(f)
	return cmd
}

// arguments takes the image and the command. Flags of pintle run may also follow the image.
func (c *runCmd) arguments(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("expected an image")
	}
	c.Image = args[0]
	c.Command = args[1:]
	if len(c.Command) == 0 || !isFlag(cmd.Flags(), c.Command[0]) {
		return nil
	}
	if err := cmd.Flags().Parse(c.Command); err != nil {
		return err
	}
	c.Command = cmd.Flags().Args()
	if help, err := cmd.Flags().GetBool("help"); help || err != nil {
		return pflag.ErrHelp // cobra looked for it before we parsed these flags
	}
	return nil
}

// isFlag reports whether an argument is one of the flags.
func isFlag(f *pflag.FlagSet, arg string) bool {
	if name, long := strings.CutPrefix(arg, "--"); long {
		name, _, _ = strings.Cut(name, "=")
		return name != "" && f.Lookup(name) != nil
	}
	return len(arg) > 1 && arg[0] == '-' && f.ShorthandLookup(arg[1:2]) != nil
}

// Run registers a task definition, runs it, shows its logs and exits with its code.
func (c *runCmd) Run(ctx context.Context) error {
	if len(c.Command) > 0 && c.Command[0] == "--" {
		c.Command = c.Command[1:]
	}
	cl, err := c.clients(ctx)
	if err != nil {
		return err
	}
	td, err := cl.ecs.RegisterTaskDefinition(ctx, c.definition(cl.ecs.Options().Region))
	if err != nil {
		return err
	}
	out, err := cl.ecs.RunTask(ctx, &awsecs.RunTaskInput{
		Cluster:        &c.Cluster,
		TaskDefinition: td.TaskDefinition.TaskDefinitionArn,
		StartedBy:      aws.String("pintle run"),

		EnableExecuteCommand: c.Exec,
	})
	if err != nil {
		return err
	}
	if len(out.Failures) > 0 {
		return c.notPlaced(ctx, cl, out.Failures)
	}
	task := out.Tasks[0]
	fmt.Fprintf(os.Stderr, "task %s on node %s%s\n", lastPart(task.TaskArn), lastPart(task.ContainerInstanceArn), gpuNote(task))
	t, err := cl.show(ctx, c.Cluster, *task.TaskArn, "main", true, plainWriter{os.Stdout})
	if ctx.Err() != nil {
		return cl.interrupt(c.Cluster, *task.TaskArn)
	}
	if err != nil {
		return lostTask{lastPart(task.TaskArn), err}
	}
	return outcome(plainWriter{os.Stderr}, t)
}

// lostTask is the error of a verb that can't see what becomes of the task that it has started.
type lostTask struct {
	id string
	error
}

func (e lostTask) Error() string {
	return fmt.Sprintf("lost sight of the task, which may go on (pintle logs -f %s shows it): %v", e.id, e.error)
}

func (e lostTask) Unwrap() error { return e.error }

// outcome returns the verb's error, which carries the container's exit code, or says why there is none. It writes what the code doesn't tell.
func outcome(to io.Writer, t types.Task) error {
	code := t.Containers[0].ExitCode
	if code == nil {
		return fmt.Errorf("the task stopped: %s", aws.ToString(t.StoppedReason))
	}
	if t.StopCode != types.TaskStopCodeEssentialContainerExited { // such as because its GPU broke
		fmt.Fprintln(to, "pintle: the task was stopped:", aws.ToString(t.StoppedReason))
	}
	if r := aws.ToString(t.Containers[0].Reason); r != "" {
		fmt.Fprintln(to, "pintle:", r)
	}
	if *code != 0 {
		return exitCode(*code)
	}
	return nil
}

// interrupt stops the task after ctrl-C.
func (cl clients) interrupt(cluster, task string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second) // the verb's context has ended
	defer cancel()
	fmt.Fprintln(os.Stderr, "stopping the task …")
	_, err := cl.ecs.StopTask(ctx, &awsecs.StopTaskInput{Cluster: &cluster, Task: &task, Reason: aws.String("pintle run was interrupted")})
	return errors.Join(err, exitCode(130))
}

// notPlaced says why no node took the task, once for each reason.
func (c *runCmd) notPlaced(ctx context.Context, cl clients, failures []types.Failure) error {
	if most, err := cl.mostResources(ctx, c.Cluster); err == nil {
		for _, asked := range []struct {
			resource, text string
			amount         int
		}{
			{"GPU", counted(c.GPUs, "GPU"), c.GPUs},
			{"CPU", counted(int(c.CPU), "CPU unit"), int(c.CPU)},
			{"MEMORY", fmt.Sprintf("%d MiB of memory", c.Memory), int(c.Memory)},
		} {
			if has := most[asked.resource]; asked.amount > has {
				return fmt.Errorf("no node takes the task: it asks for %s, and the most that one node has is %d", asked.text, has)
			}
		}
	}
	count := map[string]int{}
	for _, f := range failures {
		count[strings.TrimSpace(aws.ToString(f.Reason)+" "+aws.ToString(f.Detail))]++
	}
	var parts []string
	for _, reason := range slices.Sorted(maps.Keys(count)) {
		parts = append(parts, fmt.Sprintf("%s (%s)", strings.TrimSuffix(reason, "."), counted(count[reason], "node")))
	}
	return fmt.Errorf("no node takes the task: %s. pintle gpus shows which GPUs are free, pintle ps what runs", strings.Join(parts, ", "))
}

// mostResources returns the most that one node has registered of each resource: CPU units, MiB of memory, GPUs.
func (cl clients) mostResources(ctx context.Context, cluster string) (map[string]int, error) {
	most := map[string]int{}
	pages := awsecs.NewListContainerInstancesPaginator(cl.ecs, &awsecs.ListContainerInstancesInput{Cluster: &cluster})
	for pages.HasMorePages() {
		p, err := pages.NextPage(ctx)
		if err != nil || len(p.ContainerInstanceArns) == 0 {
			return most, err
		}
		d, err := cl.ecs.DescribeContainerInstances(ctx, &awsecs.DescribeContainerInstancesInput{
			Cluster:            &cluster,
			ContainerInstances: p.ContainerInstanceArns,
		})
		if err != nil {
			return nil, err
		}
		for _, node := range d.ContainerInstances {
			for _, r := range node.RegisteredResources {
				name := aws.ToString(r.Name)
				most[name] = max(most[name], int(r.IntegerValue), len(r.StringSetValue))
			}
		}
	}
	return most, nil
}

var notInNames = regexp.MustCompile(`[^a-zA-Z0-9_-]+`)

func (c *runCmd) definition(region string) *awsecs.RegisterTaskDefinitionInput {
	family := c.Name
	if family == "" {
		family = "run-" + strings.Trim(notInNames.ReplaceAllString(c.Image[strings.LastIndexByte(c.Image, '/')+1:], "-"), "-")
	}
	d := types.ContainerDefinition{
		Name:      aws.String("main"),
		Image:     &c.Image,
		Command:   c.Command,
		Cpu:       c.CPU,
		Memory:    &c.Memory,
		Essential: aws.Bool(true),
		LogConfiguration: &types.LogConfiguration{LogDriver: types.LogDriverAwslogs, Options: map[string]string{
			"awslogs-group":         "/pintle/run",
			"awslogs-region":        region,
			"awslogs-stream-prefix": family,
			"awslogs-create-group":  "true",
		}},
	}
	for k, v := range c.Env {
		d.Environment = append(d.Environment, types.KeyValuePair{Name: &k, Value: &v})
	}
	if c.GPUs > 0 {
		d.ResourceRequirements = []types.ResourceRequirement{{Type: types.ResourceTypeGpu, Value: aws.String(strconv.Itoa(c.GPUs))}}
	}
	return &awsecs.RegisterTaskDefinitionInput{Family: &family, ContainerDefinitions: []types.ContainerDefinition{d}}
}

func gpuNote(t types.Task) string {
	var ids []string
	for _, c := range t.Containers {
		ids = append(ids, c.GpuIds...)
	}
	if len(ids) == 0 {
		return ""
	}
	return ", GPUs " + strings.Join(ids, " ")
}
