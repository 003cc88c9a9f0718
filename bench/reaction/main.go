// Command reaction measures how long it takes from a step of a service's load until its desired count has grown, and until the
// new task is RUNNING. A task makes its simulated GPU busy, its node reports that, and target tracking decides. All of it runs
// on this machine, in each mode of --reaction. With -queue, the command measures the way from the first object in a bucket to a
// running container, on a fleet without machines.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
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
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	autoscalingtypes "github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

func main() {
	binary := flag.String("pintle", "bin/pintle", "the binary to measure")
	reactions := flag.String("reaction", "fast,faithful", "the modes to measure")
	rounds := flag.Int("rounds", 3, "how often each is measured")
	queue := flag.Bool("queue", false, "measure the way from an object over its queue to a machine and its container")
	flag.Parse()
	for _, reaction := range strings.Split(*reactions, ",") {
		if *queue {
			if err := printQueue(*binary, reaction, *rounds); err != nil {
				fmt.Fprintln(os.Stderr, "reaction:", err)
				os.Exit(1)
			}
			continue
		}
		var decided, running []time.Duration
		for range *rounds {
			d, r, err := measure(*binary, reaction)
			if err != nil {
				fmt.Fprintln(os.Stderr, "reaction:", err)
				os.Exit(1)
			}
			decided = append(decided, d)
			running = append(running, r)
		}
		fmt.Printf("%-8s  from the load step to the desired count %s, to the new task RUNNING %s\n",
			reaction, spread(decided), spread(running))
	}
}

// spread returns the minimum, the median and the maximum.
func spread(d []time.Duration) string {
	slices.Sort(d)
	var out []string
	for _, i := range []int{0, len(d) / 2, len(d) - 1} {
		out = append(out, fmt.Sprintf("%.2fs", d[i].Seconds()))
	}
	return strings.Join(out, " … ")
}

// load keeps its task's GPU busy while a file exists, by keeping the processor busy.
const load = `trap 'exit 0' TERM; while :; do ` +
	`if [ -e %[1]s ]; then timeout 0.3 sh -c 'while :; do :; done'; sleep 0.7; else sleep 0.1; fi; done`

// measure runs a service whose load steps up once.
func measure(binary, reaction string) (decided, running time.Duration, err error) {
	dir, err := os.MkdirTemp("", "pintle-reaction-")
	if err != nil {
		return 0, 0, err
	}
	defer os.RemoveAll(dir)
	config, stop, err := up(binary, dir, "--reaction", reaction, "--instances", "g4dn.xlarge=2")
	if err != nil {
		return 0, 0, err
	}
	defer stop()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	c := ecs.NewFromConfig(config)
	stress := filepath.Join(dir, "stress")
	if err := prepare(ctx, c, applicationautoscaling.NewFromConfig(config), stress); err != nil {
		return 0, 0, err
	}
	// By now the metric has been low for a while, and the step comes at a random moment of a period.
	time.Sleep(15*time.Second + time.Duration(rand.Int64N(int64(10*time.Second))))
	if err := os.WriteFile(stress, nil, 0o600); err != nil {
		return 0, 0, err
	}
	step := time.Now()
	if err := until(ctx, c, func(s types.Service) bool { return s.DesiredCount > 1 }); err != nil {
		return 0, 0, err
	}
	decided = time.Since(step)
	err = until(ctx, c, func(s types.Service) bool { return s.RunningCount > 1 })
	return decided, time.Since(step), err
}

// up starts pintle up, which runs until stop is called.
func up(binary, dir string, args ...string) (config aws.Config, stop func(), err error) {
	address, err := freeAddress()
	if err != nil {
		return config, nil, err
	}
	cmd := exec.Command(binary, append([]string{"up", "--listen", address, "--data", filepath.Join(dir, "data"), "--runtime", "process",
		"--settle", "1s", "--metrics", "127.0.0.1:0"}, args...)...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return config, nil, err
	}
	config = aws.Config{
		Region:       "us-east-1",
		BaseEndpoint: aws.String("http://" + address),
		Credentials:  credentials.NewStaticCredentialsProvider("k", "s", ""),
	}
	return config, func() {
		cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
		cmd.Wait()                          //nolint:errcheck // it was told to
	}, nil
}

// prepare creates the service and its policy, and waits until its task runs.
func prepare(ctx context.Context, c *ecs.Client, scaling *applicationautoscaling.Client, stress string) error {
	definition := &ecs.RegisterTaskDefinitionInput{
		Family: aws.String("load"),
		ContainerDefinitions: []types.ContainerDefinition{{
			Name:                 aws.String("main"),
			Image:                aws.String("load"),
			Cpu:                  128,
			Memory:               aws.Int32(64),
			StopTimeout:          aws.Int32(2),
			Command:              []string{"sh", "-c", fmt.Sprintf(load, stress)},
			ResourceRequirements: []types.ResourceRequirement{{Type: types.ResourceTypeGpu, Value: aws.String("1")}},
		}},
	}
	for { // until pintle is up
		_, err := c.RegisterTaskDefinition(ctx, definition)
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return err
		}
	}
	if _, err := c.CreateService(ctx, &ecs.CreateServiceInput{
		ServiceName:    aws.String("load"),
		TaskDefinition: aws.String("load"),
		DesiredCount:   aws.Int32(1),
	}); err != nil {
		return err
	}
	target := &applicationautoscaling.RegisterScalableTargetInput{
		ServiceNamespace:  autoscalingtypes.ServiceNamespaceEcs,
		ScalableDimension: autoscalingtypes.ScalableDimensionECSServiceDesiredCount,
		ResourceId:        aws.String("service/default/load"),
		MinCapacity:       aws.Int32(1),
		MaxCapacity:       aws.Int32(2),
	}
	if _, err := scaling.RegisterScalableTarget(ctx, target); err != nil {
		return err
	}
	_, err := scaling.PutScalingPolicy(ctx, &applicationautoscaling.PutScalingPolicyInput{
		ServiceNamespace:  target.ServiceNamespace,
		ScalableDimension: target.ScalableDimension,
		ResourceId:        target.ResourceId,
		PolicyName:        aws.String("gpu"),
		PolicyType:        autoscalingtypes.PolicyTypeTargetTrackingScaling,
		TargetTrackingScalingPolicyConfiguration: &autoscalingtypes.TargetTrackingScalingPolicyConfiguration{
			TargetValue: aws.Float64(75),
			CustomizedMetricSpecification: &autoscalingtypes.CustomizedMetricSpecification{
				Namespace:  aws.String("ECS/ContainerInsights/Prometheus"),
				MetricName: aws.String("DCGM_FI_DEV_GPU_UTIL"),
				Statistic:  autoscalingtypes.MetricStatisticAverage,
				Dimensions: []autoscalingtypes.MetricDimension{
					{Name: aws.String("ClusterName"), Value: aws.String("default")},
					{Name: aws.String("ServiceName"), Value: aws.String("load")},
				},
			},
		},
	})
	if err != nil {
		return err
	}
	return until(ctx, c, func(s types.Service) bool { return s.RunningCount == 1 })
}

// until waits until ok accepts the service.
func until(ctx context.Context, c *ecs.Client, ok func(types.Service) bool) error {
	for {
		out, err := c.DescribeServices(ctx, &ecs.DescribeServicesInput{Services: []string{"load"}})
		if err != nil {
			return err
		}
		if len(out.Services) == 1 && ok(out.Services[0]) {
			return nil
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
}
