package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/spf13/cobra"

	"github.com/pintle/pintle/internal/sidecar"
)

type metricsCmd struct {
	URL       string
	Namespace string
	Interval  time.Duration
	Metric    []string
	By        []string
	GPU       []string
	Cluster   string
	Service   string
	DryRun    bool
}

// define defines the flags.
func (c *metricsCmd) define(f flags) {
	f.StringVar(&c.URL, "url", "http://localhost:9400/metrics", "Where the dcgm-exporter answers.")
	f.env("url", "DCGM_EXPORTER_URL")
	f.StringVar(&c.Namespace, "namespace", "ECS/ContainerInsights/Prometheus", "CloudWatch namespace.")
	f.DurationVar(&c.Interval, "interval", 10*time.Second, "From one look to the next, 1s at least; below a minute the metrics are of high resolution.")
	f.list(&c.Metric, "metric", "NAME,...", "DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_GPU_TEMP,DCGM_FI_DEV_POWER_USAGE,DCGM_FI_DEV_FB_USED", "Metrics to put.")
	f.list(&c.By, "by", "task|gpu", "", "Put them also by task (dimensions ClusterName and TaskId) or by GPU (ClusterName and UUID).", "task", "gpu")
	f.list(&c.GPU, "gpu", "UUID", "", "GPUs to look at, or all of the exporter's; default those that are pinned to the task, as DescribeTasks says.")
	f.StringVar(&c.Cluster, "cluster", "", "Name of the cluster; default what the task metadata endpoint says.")
	f.StringVar(&c.Service, "service", "", "Name of the service; default what the task metadata endpoint says.")
	f.BoolVar(&c.DryRun, "dry-run", false, "Look once, and print what would be put.")
}

// verb is the command line of the verb.
func (c *metricsCmd) verb() *cobra.Command {
	cmd := newVerb("metrics [flags]", "Put the metrics of a task's GPUs into CloudWatch: a sidecar, on Pintle and on AWS.", noArguments, c.Run)
	c.define(flags{cmd.Flags()})
	return cmd
}

// Run is a sidecar in a task: it puts the metrics of the task's GPUs until it is stopped.
func (c *metricsCmd) Run(ctx context.Context) error {
	if c.Interval < time.Second {
		return fmt.Errorf("--interval %s: it must be 1s or more, CloudWatch's highest resolution", c.Interval)
	}
	task, err := c.task(ctx)
	if err != nil {
		return err
	}
	cfg, err := sidecarConfig(ctx, task.Region)
	if err != nil {
		return err
	}
	s := sidecar.Selection{Task: task, Metrics: c.Metric, ByTask: slices.Contains(c.By, "task"), ByGPU: slices.Contains(c.By, "gpu")}
	if s.GPUs, err = c.gpus(ctx, awsecs.NewFromConfig(cfg), task); err != nil {
		return err
	}
	if c.DryRun {
		return c.print(ctx, s)
	}
	sidecar.New(sidecar.Options{
		Look: c.look, CloudWatch: cloudwatch.NewFromConfig(cfg), Namespace: c.Namespace, Selection: s, Interval: c.Interval,
		Log: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	}).Run(ctx)
	return nil
}

func (c *metricsCmd) look(ctx context.Context) ([]sidecar.Sample, error) {
	return sidecar.Scrape(ctx, c.URL)
}

// task is the one whose GPUs are looked at.
func (c *metricsCmd) task(ctx context.Context) (sidecar.Task, error) {
	t, err := ownTask(ctx, c.Cluster, c.Service)
	switch {
	case err != nil:
		return t, err
	case t.Cluster == "":
		return t, errors.New("this is no container of ECS's: there is no ECS_CONTAINER_METADATA_URI_V4. Say whose metrics they are with --cluster and --service")
	case t.Service == "":
		return t, errors.New("the task belongs to no service: say whose metrics they are with --service")
	case t.ID == "" && slices.Contains(c.By, "task"):
		return t, errors.New("--by task: there is no task outside ECS")
	}
	return t, nil
}

// gpus are those to look at, none for all.
func (c *metricsCmd) gpus(ctx context.Context, ecs *awsecs.Client, t sidecar.Task) ([]string, error) {
	if len(c.GPU) > 0 || t.Arn == "" {
		return slices.DeleteFunc(c.GPU, func(id string) bool { return id == "all" }), nil
	}
	out, err := ecs.DescribeTasks(ctx, &awsecs.DescribeTasksInput{Cluster: &t.Cluster, Tasks: []string{t.Arn}})
	if err != nil {
		return nil, fmt.Errorf("which GPUs are the task's: %w (its role may lack ecs:DescribeTasks; --gpu all looks at all)", err)
	}
	var ids []string
	for _, task := range out.Tasks {
		for _, container := range task.Containers {
			ids = append(ids, container.GpuIds...)
		}
	}
	if len(ids) == 0 { // not that the others' load counts as this service's
		return nil, errors.New("no GPU is pinned to the task; --gpu all looks at all of the exporter's")
	}
	return ids, nil
}

func (c *metricsCmd) print(ctx context.Context, s sidecar.Selection) error {
	samples, err := c.look(ctx)
	if err != nil {
		return err
	}
	for _, m := range sidecar.Data(samples, s, time.Now(), c.Interval < time.Minute) {
		fmt.Println(c.Namespace, sidecar.String(m))
	}
	return nil
}

// ownTask is the task that this runs in, but for the names that are given; outside ECS it has only those.
func ownTask(ctx context.Context, cluster, service string) (t sidecar.Task, err error) {
	if uri := os.Getenv("ECS_CONTAINER_METADATA_URI_V4"); uri != "" {
		asking, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		t, err = sidecar.ReadTask(asking, uri)
	}
	t.Cluster, t.Service = cmp.Or(cluster, t.Cluster), cmp.Or(service, t.Service)
	return t, err
}

// sidecarConfig is the SDK's configuration as it finds it in a container, the task role's credentials with
// it. A task without a role can still call a control plane that takes any.
func sidecarConfig(ctx context.Context, region string) (aws.Config, error) {
	if os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") == "" && os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI") == "" && os.Getenv("AWS_ENDPOINT_URL") != "" {
		return awsConfig(ctx, os.Getenv("AWS_ENDPOINT_URL"))
	}
	return config.LoadDefaultConfig(ctx, config.WithDefaultRegion(region))
}
