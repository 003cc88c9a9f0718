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

func (c *metricsCmd) define(f flags) {
	f.StringVar(&c.URL, "url", "http://localhost:9400/metrics", "The dcgm-exporter's URL.")
	f.env("url", "DCGM_EXPORTER_URL")
	f.StringVar(&c.Namespace, "namespace", "ECS/ContainerInsights/Prometheus", "CloudWatch namespace.")
	f.DurationVar(
		&c.Interval, "interval", 10*time.Second,
		"How often to read the metrics, 1s at least; below a minute they have high resolution.",
	)
	f.list(
		&c.Metric, "metric", "NAME,...", "DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_GPU_TEMP,DCGM_FI_DEV_POWER_USAGE,DCGM_FI_DEV_FB_USED",
		"Metrics to put.",
	)
	f.list(
		&c.By, "by", "task|gpu", "", "Put them also by task (dimensions ClusterName and TaskId) or by GPU (ClusterName and UUID).",
		"task", "gpu",
	)
	f.list(
		&c.GPU, "gpu", "UUID", "",
		"GPUs to publish, or all for all of the exporter's; default those that are pinned to the task, from DescribeTasks.",
	)
	f.StringVar(&c.Cluster, "cluster", "", "Name of the cluster; default from the task metadata endpoint.")
	f.StringVar(&c.Service, "service", "", "Name of the service; default from the task metadata endpoint.")
	f.BoolVar(&c.DryRun, "dry-run", false, "Read the metrics once, and print what would be put.")
}

func (c *metricsCmd) verb() *cobra.Command {
	cmd := newVerb(
		"metrics [flags]", "Put the metrics of a task's GPUs into CloudWatch, as a sidecar on Pintle or AWS.", noArguments, c.Run,
	)
	c.define(flags{cmd.Flags()})
	return cmd
}

// Run publishes the metrics of the task's GPUs until it's stopped.
func (c *metricsCmd) Run(ctx context.Context) error {
	if c.Interval < time.Second {
		return fmt.Errorf("--interval %s: it must be 1s or more, CloudWatch's highest resolution", c.Interval)
	}
	task, err := c.task(ctx)
	if err != nil {
		return err
	}
	cfg, err := sidecarConfig(task.Region)
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
		Read:       c.read,
		CloudWatch: cloudwatch.NewFromConfig(cfg),
		Namespace:  c.Namespace,
		Selection:  s,
		Interval:   c.Interval,
		Log:        newLogger(os.Stderr, slog.LevelInfo),
	}).Run(ctx)
	return nil
}

func (c *metricsCmd) read(ctx context.Context) ([]sidecar.Sample, error) {
	return sidecar.Scrape(ctx, c.URL)
}

// task returns the task whose metrics to publish.
func (c *metricsCmd) task(ctx context.Context) (sidecar.Task, error) {
	t, err := ownTask(ctx, c.Cluster, c.Service)
	switch {
	case err != nil:
		return t, err
	case t.Cluster == "":
		return t, errors.New(
			"this is not an ECS container: ECS_CONTAINER_METADATA_URI_V4 is not set. " +
				"Say whose metrics they are with --cluster and --service",
		)
	case t.Service == "":
		return t, errors.New("the task belongs to no service: say whose metrics they are with --service")
	case t.ID == "" && slices.Contains(c.By, "task"):
		return t, errors.New("--by task: there is no task outside ECS")
	}
	return t, nil
}

// gpus lists the GPUs to publish; none means all.
func (c *metricsCmd) gpus(ctx context.Context, ecs *awsecs.Client, t sidecar.Task) ([]string, error) {
	if len(c.GPU) > 0 || t.Arn == "" {
		return slices.DeleteFunc(c.GPU, func(id string) bool { return id == "all" }), nil
	}
	out, err := ecs.DescribeTasks(ctx, &awsecs.DescribeTasksInput{Cluster: &t.Cluster, Tasks: []string{t.Arn}})
	if err != nil {
		return nil, fmt.Errorf("find the task's GPUs: %w (its role may lack ecs:DescribeTasks; --gpu all publishes all)", err)
	}
	var ids []string
	for _, task := range out.Tasks {
		for _, container := range task.Containers {
			ids = append(ids, container.GpuIds...)
		}
	}
	if len(ids) == 0 { // publishing all would count other tasks' load as this service's
		return nil, errors.New("no GPU is pinned to the task; --gpu all publishes all of the exporter's")
	}
	return ids, nil
}

func (c *metricsCmd) print(ctx context.Context, s sidecar.Selection) error {
	samples, err := c.read(ctx)
	if err != nil {
		return err
	}
	for _, m := range sidecar.Data(samples, s, time.Now(), c.Interval < time.Minute) {
		fmt.Println(c.Namespace, sidecar.String(m))
	}
	return nil
}

// ownTask returns the task that this process runs in, with the given names instead of its own. Outside ECS it has only the given names.
func ownTask(ctx context.Context, cluster, service string) (t sidecar.Task, err error) {
	if uri := os.Getenv("ECS_CONTAINER_METADATA_URI_V4"); uri != "" {
		asking, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		t, err = sidecar.ReadTask(asking, uri)
	}
	t.Cluster = cmp.Or(cluster, t.Cluster)
	t.Service = cmp.Or(service, t.Service)
	return t, err
}
