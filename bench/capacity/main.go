// Command capacity measures how long a capacity provider with managed scaling takes from zero to ten GPU tasks and back. It
// measures from UpdateService, or RunTask, on an empty group to the first container RUNNING and to all ten, and from a desired
// count of 0 to the end of the last machine. The machines are agents on this one, in each mode of --reaction.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	autoscalingtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// wanted is how many tasks are started, with one GPU each. RunTask starts at most this many at a time.
const wanted = 10

func main() {
	binary := flag.String("pintle", "bin/pintle", "the binary to measure")
	reactions := flag.String("reaction", "fast,faithful", "the modes to measure")
	instanceTypes := flag.String("type", "g4dn.xlarge,p3.8xlarge", "the instance types to measure")
	rounds := flag.Int("rounds", 3, "how often each is measured")
	back := flag.Bool("back", true, "measure the way back, too: minutes in the mode fast, twenty in the mode faithful")
	flag.Parse()
	for _, reaction := range strings.Split(*reactions, ",") {
		for _, instanceType := range strings.Split(*instanceTypes, ",") {
			if err := measure(*binary, reaction, instanceType, *rounds, *back); err != nil {
				fmt.Fprintln(os.Stderr, "capacity:", err)
				os.Exit(1)
			}
		}
	}
}

// figures are measured times by name.
type figures struct {
	names []string
	took  map[string][]time.Duration
}

func (f *figures) add(name string, d time.Duration) {
	if f.took == nil {
		f.took = map[string][]time.Duration{}
	}
	if f.took[name] == nil {
		f.names = append(f.names, name)
	}
	f.took[name] = append(f.took[name], d)
}

// spread returns the minimum, the median and the maximum.
func spread(d []time.Duration) string {
	slices.Sort(d)
	var out []string
	for _, i := range []int{0, len(d) / 2, len(d) - 1} {
		out = append(out, d[i].Round(10*time.Millisecond).String())
	}
	return strings.Join(out, " … ")
}

// measure goes from zero to ten tasks several times, alternating between a service and RunTask, and back the last time. Between
// rounds it empties the group itself, so that each round begins without machines.
func measure(binary, reaction, instanceType string, rounds int, back bool) error {
	w, err := start(binary, reaction, instanceType)
	if err != nil {
		return err
	}
	defer w.stop()
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	defer cancel()
	if err := w.prepare(ctx, instanceType); err != nil {
		return err
	}
	var f figures
	for i := range 2 * rounds {
		service := i%2 == 1
		if err := w.up(ctx, service, &f); err != nil {
			return err
		}
		down := time.Now()
		if err := w.stopTasks(ctx, service); err != nil {
			return err
		}
		last := i == 2*rounds-1
		if !last || !back {
			if err := w.empty(ctx); err != nil {
				return err
			}
		}
		if err := w.until(ctx, w.noMachines); err != nil {
			return err
		}
		if last && back {
			f.add("UpdateService to 0 until the last machine is gone", time.Since(down))
		}
	}
	for _, name := range f.names {
		fmt.Printf("%-8s  %-11s  %-50s %s\n", reaction, instanceType, name, spread(f.took[name]))
	}
	return nil
}

// world is a control plane with an empty group, and its clients.
type world struct {
	cmd *exec.Cmd
	dir string
	ecs *ecs.Client
	ec2 *ec2.Client
	asg *autoscaling.Client
}

func start(binary, reaction, instanceType string) (*world, error) {
	dir, err := os.MkdirTemp("", "pintle-capacity-")
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := l.Addr().String()
	l.Close() //nolint:errcheck // only its address was needed
	cmd := exec.Command(binary, "up", "--listen", address, "--data", filepath.Join(dir, "data"), "--fleet", "local",
		"--runtime", "process", "--reaction", reaction, "--settle", "1s", "--metrics=")
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	config := aws.Config{
		Region:       "us-east-1",
		BaseEndpoint: aws.String("http://" + address),
		Credentials:  credentials.NewStaticCredentialsProvider("k", "s", ""),
	}
	return &world{
		cmd: cmd,
		dir: dir,
		ecs: ecs.NewFromConfig(config),
		ec2: ec2.NewFromConfig(config),
		asg: autoscaling.NewFromConfig(config),
	}, nil
}

func (w *world) stop() {
	w.cmd.Process.Signal(syscall.SIGINT) //nolint:errcheck // it may have ended
	w.cmd.Wait()                         //nolint:errcheck // it was told to
	os.RemoveAll(w.dir)                  //nolint:errcheck // it's temporary
}

// prepare creates the group, its capacity provider, the task definition and a service with a desired count of 0.
func (w *world) prepare(ctx context.Context, instanceType string) error {
	definition := &ecs.RegisterTaskDefinitionInput{
		Family: aws.String("job"),
		ContainerDefinitions: []types.ContainerDefinition{{
			Name:                 aws.String("main"),
			Image:                aws.String("job"),
			Memory:               aws.Int32(64),
			StopTimeout:          aws.Int32(2),
			Command:              []string{"sleep", "3600"},
			ResourceRequirements: []types.ResourceRequirement{{Type: types.ResourceTypeGpu, Value: aws.String("1")}},
		}},
	}
	up := func() bool { _, err := w.ecs.RegisterTaskDefinition(ctx, definition); return err == nil }
	if err := w.until(ctx, up); err != nil {
		return err
	}
	_, err := w.ec2.CreateLaunchTemplate(ctx, &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("gpu"),
		LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
			ImageId:      aws.String("ami-00000000"),
			InstanceType: ec2types.InstanceType(instanceType),
		},
	})
	if err != nil {
		return err
	}
	_, err = w.asg.CreateAutoScalingGroup(ctx, &autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: aws.String("gpu"),
		LaunchTemplate:       &autoscalingtypes.LaunchTemplateSpecification{LaunchTemplateName: aws.String("gpu")},
		MinSize:              aws.Int32(0),
		MaxSize:              aws.Int32(wanted),
		AvailabilityZones:    []string{"us-east-1a"},
	})
	if err != nil {
		return err
	}
	_, err = w.ecs.CreateCapacityProvider(ctx, &ecs.CreateCapacityProviderInput{
		Name: aws.String("gpu"),
		AutoScalingGroupProvider: &types.AutoScalingGroupProvider{
			AutoScalingGroupArn: aws.String("gpu"),
			ManagedScaling:      &types.ManagedScaling{Status: types.ManagedScalingStatusEnabled, InstanceWarmupPeriod: aws.Int32(0)},
		},
	})
	if err != nil {
		return err
	}
	strategy := []types.CapacityProviderStrategyItem{{CapacityProvider: aws.String("gpu"), Weight: 1}}
	if _, err := w.ecs.PutClusterCapacityProviders(ctx, &ecs.PutClusterCapacityProvidersInput{
		Cluster:                         aws.String("default"),
		CapacityProviders:               []string{"gpu"},
		DefaultCapacityProviderStrategy: strategy,
	}); err != nil {
		return err
	}
	_, err = w.ecs.CreateService(ctx, &ecs.CreateServiceInput{
		ServiceName:    aws.String("job"),
		TaskDefinition: aws.String("job"),
		DesiredCount:   aws.Int32(0),
	})
	return err
}

// up starts the tasks, and measures when the first runs and when all do.
func (w *world) up(ctx context.Context, service bool, f *figures) (err error) {
	since := time.Now()
	name := "RunTask"
	if service {
		name = "UpdateService"
		_, err = w.ecs.UpdateService(ctx, &ecs.UpdateServiceInput{Service: aws.String("job"), DesiredCount: aws.Int32(wanted)})
	} else {
		_, err = w.ecs.RunTask(ctx, &ecs.RunTaskInput{TaskDefinition: aws.String("job"), Count: aws.Int32(wanted)})
	}
	if err != nil {
		return err
	}
	if err := w.until(ctx, func() bool { return w.countRunning(ctx) > 0 }); err != nil {
		return err
	}
	f.add(name+" to the first container RUNNING", time.Since(since))
	if err := w.until(ctx, func() bool { return w.countRunning(ctx) == wanted }); err != nil {
		return err
	}
	f.add(fmt.Sprintf("%s to all %d RUNNING", name, wanted), time.Since(since))
	return nil
}

// countRunning returns how many tasks are RUNNING, or -1 if that's unknown.
func (w *world) countRunning(ctx context.Context) int {
	out, err := w.ecs.DescribeClusters(ctx, &ecs.DescribeClustersInput{})
	if err != nil || len(out.Clusters) != 1 {
		return -1
	}
	return int(out.Clusters[0].RunningTasksCount)
}

// stopTasks stops the tasks.
func (w *world) stopTasks(ctx context.Context, service bool) error {
	if service {
		_, err := w.ecs.UpdateService(ctx, &ecs.UpdateServiceInput{Service: aws.String("job"), DesiredCount: aws.Int32(0)})
		return err
	}
	out, err := w.ecs.ListTasks(ctx, &ecs.ListTasksInput{})
	if err != nil {
		return err
	}
	for _, arn := range out.TaskArns {
		if _, err := w.ecs.StopTask(ctx, &ecs.StopTaskInput{Task: &arn}); err != nil {
			return err
		}
	}
	return nil
}

// empty terminates the machines once their tasks have ended, without waiting for managed scaling.
func (w *world) empty(ctx context.Context) error {
	if err := w.until(ctx, func() bool { return w.countRunning(ctx) == 0 }); err != nil {
		return err
	}
	_, err := w.asg.SetDesiredCapacity(ctx, &autoscaling.SetDesiredCapacityInput{
		AutoScalingGroupName: aws.String("gpu"),
		DesiredCapacity:      aws.Int32(0),
	})
	return err
}

// noMachines reports whether no machine is left.
func (w *world) noMachines() bool {
	left, err := os.ReadDir(filepath.Join(w.dir, "data", "fleet"))
	return errors.Is(err, os.ErrNotExist) || err == nil && len(left) == 0
}

func (w *world) until(ctx context.Context, ok func() bool) error {
	for !ok() {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}
