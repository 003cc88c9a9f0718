package test

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/node/network"
	"github.com/pintle/pintle/internal/node/runtime/oci"
	"github.com/pintle/pintle/internal/sdkhttp"
)

var (
	chaosTasks = flag.Int("chaos.tasks", 120, "tasks that run while processes are killed")
	chaosKills = flag.Int("chaos.kills", 8, "how often something is killed")
)

// daemon is a Pintle process that the tests kill and restart.
type daemon struct {
	t    *testing.T
	args []string
	env  []string // what its environment has besides
	cmd  *exec.Cmd
	log  *os.File // what it and those before it said
}

func (d *daemon) start() {
	d.t.Helper()
	d.cmd = exec.Command(bin(d.t, "pintle"), d.args...)
	d.cmd.Env = append(os.Environ(), "AWS_REGION=us-east-1", "AWS_ACCESS_KEY_ID=k", "AWS_SECRET_ACCESS_KEY=s")
	d.cmd.Env = append(d.cmd.Env, d.env...)
	d.cmd.Stdout, d.cmd.Stderr = d.said(), d.said()
	if err := d.cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
}

// said is the file with all that it says, whose end is shown if the test fails.
func (d *daemon) said() *os.File {
	if d.log != nil {
		return d.log
	}
	log, err := os.Create(filepath.Join(d.t.TempDir(), "said"))
	if err != nil {
		d.t.Fatal(err)
	}
	d.log = log
	d.t.Cleanup(func() {
		defer log.Close() //nolint:errcheck // it is read by now
		if b, err := os.ReadFile(log.Name()); d.t.Failed() {
			d.t.Logf("%v (%v) said at last:\n%s", d.args, err, b[max(0, len(b)-32<<10):])
		}
	})
	return log
}

func (d *daemon) kill() {
	d.cmd.Process.Kill() //nolint:errcheck // it may have ended
	d.cmd.Wait()         //nolint:errcheck // it was killed
}

// TestKills kills the control plane, the agents, or both, at random, while clients run and stop tasks that hold GPUs. No
// acknowledged task is lost, no container starts twice, no GPU has two owners, and running tasks keep running.
func TestKills(t *testing.T) {
	t.Parallel()
	testKills(t, *chaosTasks, *chaosKills, "i", "process")
}

// TestKillsWithRunc is TestKills with real containers, each with its own network. It runs fewer, because they take longer to
// start.
func TestKillsWithRunc(t *testing.T) {
	t.Parallel()
	testKills(t, *chaosTasks/5, *chaosKills/2, "rootfs:"+rootfs(t), "oci")
}

func testKills(t *testing.T, number, kills int, image, runtime string) {
	address := freeAddress(t)
	data, marks := t.TempDir(), t.TempDir()
	plane := &daemon{t: t, args: []string{"serve", "--listen", address, "--data", filepath.Join(data, "plane")}}
	daemons := []*daemon{plane}
	const nodes = 4
	for i := range nodes {
		name := fmt.Sprintf("n%d", i)
		daemons = append(daemons, &daemon{
			t: t,
			args: []string{"agent", "--endpoint", "http://" + address,
				"--data", filepath.Join(data, name), "--name", name, "--instance-type", "p3.16xlarge", "--runtime", runtime, "--metrics="},
		})
	}
	if runtime == "oci" {
		t.Cleanup(func() { removeContainers(t, data) })
	}
	for _, d := range daemons {
		d.start()
	}
	client := ecs.New(ecs.Options{
		Region:           "us-east-1",
		BaseEndpoint:     aws.String("http://" + address),
		RetryMaxAttempts: 60,
		HTTPClient:       sdkhttp.New(),
		Credentials:      credentials.NewStaticCredentialsProvider("k", "s", ""),
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	t.Cleanup(func() { endAll(t, client, daemons) })
	Eventually(t, "every node's connection", func() bool { return countConnected(ctx, client) == nodes })

	// Each container appends a mark each time it starts.
	for _, gpus := range []string{"", "1"} {
		d := types.ContainerDefinition{
			Name:        aws.String("main"),
			Image:       &image,
			Cpu:         64,
			Memory:      aws.Int32(64),
			StopTimeout: aws.Int32(2),
			Command:     []string{"/bin/sh", "-c", "echo started >> $MARKS/$ID; exec sleep 3600"},
			Environment: []types.KeyValuePair{{Name: aws.String("MARKS"), Value: &marks}},
			MountPoints: []types.MountPoint{{SourceVolume: aws.String("marks"), ContainerPath: &marks}},
		}
		if gpus != "" {
			d.ResourceRequirements = []types.ResourceRequirement{{Type: types.ResourceTypeGpu, Value: &gpus}}
		}
		if _, err := client.RegisterTaskDefinition(ctx, &ecs.RegisterTaskDefinitionInput{
			Family:               aws.String("sleep" + gpus),
			ContainerDefinitions: []types.ContainerDefinition{d},
			Volumes:              []types.Volume{{Name: aws.String("marks"), Host: &types.HostVolumeProperties{SourcePath: &marks}}},
		}); err != nil {
			t.Fatal(err)
		}
	}
	tasks := make([]string, number) // ARN by number, once acknowledged
	var load sync.WaitGroup
	load.Go(func() {
		for i := range tasks {
			tasks[i] = runMarked(ctx, t, client, i)
		}
	})
	for range kills {
		time.Sleep(time.Duration(300+rand.IntN(700)) * time.Millisecond)
		victims := pickVictims(daemons)
		for _, d := range victims {
			d.kill()
		}
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		for _, d := range victims {
			d.start()
		}
	}
	load.Wait()

	Eventually(t, "every task RUNNING", func() bool {
		for _, task := range describe(ctx, t, client, types.DesiredStatusStopped) {
			t.Fatalf("%s has stopped: %s, %s", *task.TaskArn, aws.ToString(task.StoppedReason), aws.ToString(task.Containers[0].Reason))
		}
		return countRunning(ctx, t, client) == len(tasks)
	})
	checkOwners(ctx, t, client, tasks)
	Eventually(t, "every container's own process", func() bool { return countContainers(marks) == len(tasks) }) // and no others
	started := func(i int) int {
		b, _ := os.ReadFile(filepath.Join(marks, fmt.Sprint(i))) // the file may not exist yet
		return strings.Count(string(b), "started")
	}
	for i := range tasks {
		Eventually(t, fmt.Sprint("the mark of task ", i), func() bool { return started(i) > 0 })
	}
	for i, arn := range tasks {
		if n := started(i); n != 1 {
			t.Errorf("task %d, %s, was started %d times", i, arn, n)
		}
	}
	// Whichever processes run now must still be able to stop all tasks.
	for _, arn := range tasks {
		if _, err := client.StopTask(ctx, &ecs.StopTaskInput{Task: &arn}); err != nil {
			t.Fatal(err)
		}
	}
	Eventually(t, "every task STOPPED", func() bool { return countStopped(ctx, t, client) == len(tasks) && countContainers(marks) == 0 })
}

// runMarked runs the i-th task. The client token keeps it one task, even if the call has to be repeated because the control
// plane was killed.
func runMarked(ctx context.Context, t *testing.T, c *ecs.Client, i int) string {
	definition := "sleep"
	if i%20 == 0 { // five in a hundred tasks take one of the 32 GPUs
		definition = "sleep1"
	}
	in := &ecs.RunTaskInput{
		TaskDefinition: &definition, ClientToken: aws.String(fmt.Sprintf("task-%d", i)),
		Overrides: &types.TaskOverride{ContainerOverrides: []types.ContainerOverride{{
			Name:        aws.String("main"),
			Environment: []types.KeyValuePair{{Name: aws.String("ID"), Value: aws.String(fmt.Sprint(i))}},
		}}},
	}
	for {
		out, err := c.RunTask(ctx, in)
		if err == nil && len(out.Tasks) == 1 {
			return *out.Tasks[0].TaskArn
		}
		if ctx.Err() != nil {
			t.Errorf("task %d: %v", i, ctx.Err())
			return ""
		}
		// Nobody answered, or all nodes are disconnected right now.
		time.Sleep(50 * time.Millisecond)
	}
}

// pickVictims picks the control plane, one node, or the control plane and all nodes.
func pickVictims(all []*daemon) []*daemon {
	switch rand.IntN(3) {
	case 0:
		return all[:1]
	case 1:
		i := 1 + rand.IntN(len(all)-1)
		return all[i : i+1]
	}
	return all
}

func countConnected(ctx context.Context, c *ecs.Client) int {
	out, err := c.ListContainerInstances(ctx, &ecs.ListContainerInstancesInput{Filter: aws.String("agentConnected == true")})
	if err != nil {
		return 0
	}
	return len(out.ContainerInstanceArns)
}

// describeAll describes all tasks whose desired status is RUNNING.
func describeAll(ctx context.Context, t *testing.T, c *ecs.Client) []types.Task {
	return describe(ctx, t, c, types.DesiredStatusRunning)
}

func describe(ctx context.Context, t *testing.T, c *ecs.Client, wanted types.DesiredStatus) []types.Task {
	var out []types.Task
	for pages := ecs.NewListTasksPaginator(c, &ecs.ListTasksInput{DesiredStatus: wanted}); pages.HasMorePages(); {
		p, err := pages.NextPage(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if len(p.TaskArns) == 0 {
			continue
		}
		d, err := c.DescribeTasks(ctx, &ecs.DescribeTasksInput{Tasks: p.TaskArns})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, d.Tasks...)
	}
	return out
}

func countRunning(ctx context.Context, t *testing.T, c *ecs.Client) int {
	n := 0
	for _, task := range describeAll(ctx, t, c) {
		if *task.LastStatus == "RUNNING" {
			n++
		}
	}
	return n
}

func countStopped(ctx context.Context, t *testing.T, c *ecs.Client) int {
	n := 0
	for _, task := range describe(ctx, t, c, types.DesiredStatusStopped) {
		if *task.LastStatus == "STOPPED" {
			n++
		}
	}
	return n
}

// checkOwners fails the test for lost tasks, tasks that nobody asked for, and GPUs with two owners.
func checkOwners(ctx context.Context, t *testing.T, c *ecs.Client, want []string) {
	owner, there := map[string]string{}, map[string]bool{}
	for _, task := range describeAll(ctx, t, c) {
		there[*task.TaskArn] = true
		for _, id := range task.Containers[0].GpuIds {
			if owner[id] != "" {
				t.Errorf("GPU %s has two owners: %s and %s", id, owner[id], *task.TaskArn)
			}
			owner[id] = *task.TaskArn
		}
	}
	for i, arn := range want {
		if !there[arn] {
			t.Errorf("task %d, %s, was acknowledged and is lost", i, arn)
		}
	}
	if len(there) != len(want) {
		t.Errorf("%d tasks run, %d were asked for", len(there), len(want))
	}
}

// countContainers counts the containers' processes by the marks directory in their environment.
func countContainers(marks string) int {
	n := 0
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, p := range paths {
		if b, err := os.ReadFile(p); err == nil && strings.Contains(string(b), "MARKS="+marks) {
			n++
		}
	}
	return n
}

// removeContainers removes what a failed test left on the machine.
func removeContainers(t *testing.T, data string) {
	ctx := context.Background()
	nodes, err := filepath.Glob(data + "/n*")
	if err != nil {
		t.Error(err)
	}
	for _, dir := range nodes {
		networks, err := network.OpenBridge(ctx, filepath.Join(dir, "networks"), netip.MustParsePrefix("10.213.0.0/16"))
		if err != nil {
			t.Error(err)
			continue
		}
		rt, err := oci.New(oci.Options{Dir: dir, Networks: networks})
		if err != nil {
			t.Error(err)
			continue
		}
		containers, _ := filepath.Glob(dir + "/containers/*")
		for _, c := range containers {
			rt.Stop(ctx, filepath.Base(c), 0) //nolint:errcheck // Remove reports the error
			if err := rt.Remove(ctx, filepath.Base(c)); err != nil {
				t.Error(err)
			}
		}
	}
}

// endAll stops all running tasks, then ends the daemons. If the test has failed, they end with what their goroutines were at.
func endAll(t *testing.T, c *ecs.Client, daemons []*daemon) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defer func() {
		signal := syscall.SIGTERM
		if t.Failed() {
			signal = syscall.SIGQUIT
		}
		for _, d := range daemons {
			d.cmd.Process.Signal(signal) //nolint:errcheck // it may have ended
			d.cmd.Wait()                 //nolint:errcheck // it was told to
		}
	}()
	for _, task := range describeAll(ctx, t, c) {
		c.StopTask(ctx, &ecs.StopTaskInput{Task: task.TaskArn}) //nolint:errcheck // the next check notices
	}
	Eventually(t, "the end of all tasks", func() bool { return countRunning(ctx, t, c) == 0 })
}

// TestKillsWithServices kills the control plane, the agents, or both, and containers, at random, while a service is updated
// repeatedly. At the end exactly the wanted number of containers of the last update run, and no others.
func TestKillsWithServices(t *testing.T) {
	t.Parallel()
	address := freeAddress(t)
	data := t.TempDir()
	daemons := []*daemon{{t: t, args: []string{"serve", "--listen", address, "--data", filepath.Join(data, "plane"), "--settle", "1s"}}}
	for i := range 3 {
		name := fmt.Sprintf("n%d", i)
		daemons = append(daemons, &daemon{
			t: t,
			args: []string{"agent", "--endpoint", "http://" + address,
				"--data", filepath.Join(data, name), "--name", name, "--instance-type", "c5.2xlarge", "--runtime", "process"},
		})
	}
	for _, d := range daemons {
		d.start()
	}
	client := ecs.New(ecs.Options{
		Region:           "us-east-1",
		BaseEndpoint:     aws.String("http://" + address),
		RetryMaxAttempts: 60,
		HTTPClient:       sdkhttp.New(),
		Credentials:      credentials.NewStaticCredentialsProvider("k", "s", ""),
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	t.Cleanup(func() { endAll(t, client, daemons) })
	Eventually(t, "every node's connection", func() bool { return countConnected(ctx, client) == len(daemons)-1 })

	base := newMark()
	mark := func(version int) string { return fmt.Sprintf("%s%04d", base, version) }
	const wanted = 6
	define := func(version int) *string {
		out, err := client.RegisterTaskDefinition(ctx, &ecs.RegisterTaskDefinitionInput{
			Family: aws.String("web"),
			ContainerDefinitions: []types.ContainerDefinition{{
				Name:        aws.String("main"),
				Image:       aws.String("i"),
				Cpu:         64,
				Memory:      aws.Int32(64),
				StopTimeout: aws.Int32(2),
				Command:     []string{"sleep", mark(version)},
			}},
		})
		if err != nil {
			t.Fatal(err)
		}
		return out.TaskDefinition.TaskDefinitionArn
	}
	if _, err := client.CreateService(ctx, &ecs.CreateServiceInput{
		ServiceName:    aws.String("web"),
		TaskDefinition: define(0),
		DesiredCount:   aws.Int32(wanted),
		ClientToken:    aws.String("once"),
	}); err != nil {
		t.Fatal(err)
	}
	for version := 1; version <= *chaosKills; version++ {
		update := &ecs.UpdateServiceInput{Service: aws.String("web"), TaskDefinition: define(version)}
		if _, err := client.UpdateService(ctx, update); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(1500)) * time.Millisecond)
		for _, pid := range processes(mark(rand.IntN(version + 1))) {
			syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
		}
		victims := pickVictims(daemons)
		for _, d := range victims {
			d.kill()
		}
		time.Sleep(time.Duration(rand.IntN(300)) * time.Millisecond)
		for _, d := range victims {
			d.start()
		}
	}
	last := mark(*chaosKills)
	Eventually(t, "the last update's end", func() bool {
		out, err := client.DescribeServices(ctx, &ecs.DescribeServicesInput{Services: []string{"web"}})
		if err != nil {
			return false
		}
		s := out.Services[0]
		return len(s.Deployments) == 1 && s.Deployments[0].RolloutState == types.DeploymentRolloutStateCompleted && s.RunningCount == wanted
	})
	Eventually(t, "the end of all other containers", func() bool {
		others := 0
		for version := range *chaosKills {
			others += len(processes(mark(version)))
		}
		return others == 0 && len(processes(last)) == wanted
	})
	if _, err := client.DeleteService(ctx, &ecs.DeleteServiceInput{Service: aws.String("web"), Force: aws.Bool(true)}); err != nil {
		t.Fatal(err)
	}
	Eventually(t, "the end of the service's containers", func() bool { return len(processes(last)) == 0 })
}
