package tmds

import (
	"context"
	"encoding/json"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/engine"
)

// The shapes of version 4; version 3 is a part of it.
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/task-metadata-endpoint-v4-response.html

type containerMetadata struct {
	DockerID      string `json:"DockerId"`
	Name          string
	DockerName    string
	Image         string
	ImageID       string
	Ports         []portMetadata `json:",omitempty"`
	Labels        map[string]string
	DesiredStatus string
	KnownStatus   string
	ExitCode      *int `json:",omitempty"`
	Limits        limits
	CreatedAt     *time.Time `json:",omitempty"`
	StartedAt     *time.Time `json:",omitempty"`
	FinishedAt    *time.Time `json:",omitempty"`
	Type          string
	Health        *healthMetadata   `json:"Health,omitempty"`
	Volumes       []volumeMetadata  `json:",omitempty"`
	LogDriver     string            `json:",omitempty"`
	LogOptions    map[string]string `json:",omitempty"`
	ContainerARN  string            `json:",omitempty"`
	Networks      []networkMetadata
	RestartCount  *int `json:",omitempty"`
}

type limits struct {
	CPU    float64
	Memory int64
}

type portMetadata struct {
	ContainerPort int64
	Protocol      string
	HostPort      int64
	HostIP        string `json:"HostIp"`
}

type healthMetadata struct {
	Status      string     `json:"status"`
	StatusSince *time.Time `json:"statusSince,omitempty"`
}

type volumeMetadata struct {
	DockerName  string `json:",omitempty"`
	Source      string `json:",omitempty"`
	Destination string
}

type networkMetadata struct {
	NetworkMode   string
	IPv4Addresses []string
	MACAddress    string `json:",omitempty"`
}

type taskMetadata struct {
	Cluster               string
	TaskARN               string
	Family                string
	Revision              string
	DesiredStatus         string
	KnownStatus           string
	Limits                *limits    `json:",omitempty"`
	PullStartedAt         *time.Time `json:",omitempty"`
	PullStoppedAt         *time.Time `json:",omitempty"`
	ExecutionStoppedAt    *time.Time `json:",omitempty"`
	AvailabilityZone      string
	LaunchType            string
	ServiceName           string `json:",omitempty"`
	Containers            []containerMetadata
	TaskTags              map[string]string `json:",omitempty"`
	ContainerInstanceTags map[string]string `json:",omitempty"`
	FaultInjectionEnabled bool
}

func (s *Server) container(_ context.Context, a asker) (any, error) {
	return describe(a.record, a.name), nil
}

func (s *Server) task(_ context.Context, a asker) (any, error) { return s.describeTask(a.record), nil }

func (s *Server) taskWithTags(ctx context.Context, a asker) (any, error) {
	m := s.describeTask(a.record)
	m.TaskTags = s.tags(ctx, a.record.Task.Arn)
	m.ContainerInstanceTags = s.tags(ctx, s.opts.Instance())
	return m, nil
}

// tags are a resource's. Where they cannot be had, the rest of the answer is worth giving.
func (s *Server) tags(ctx context.Context, arn string) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := s.opts.ECS.ListTagsForResource(ctx, &ecs.ListTagsForResourceInput{ResourceArn: &arn})
	if err != nil {
		s.opts.Log.Warn("cannot list tags", "resource", arn, "error", err)
		return nil
	}
	return byKey(out.Tags)
}

func byKey(tags []types.Tag) map[string]string {
	m := map[string]string{}
	for _, t := range tags {
		m[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return m
}

func (s *Server) describeTask(r *engine.Record) *taskMetadata {
	m := &taskMetadata{
		Cluster: r.Task.TaskClusterArn, TaskARN: r.Task.Arn, Family: r.Task.Family, Revision: r.Task.Version,
		DesiredStatus: desired(r), KnownStatus: known(r), AvailabilityZone: s.opts.Zone, LaunchType: r.Task.LaunchType,
		ServiceName: r.Task.ServiceName, PullStartedAt: given(r.PullStartedAt), PullStoppedAt: given(r.PullStoppedAt),
		ExecutionStoppedAt: given(r.ExecutionStoppedAt),
	}
	if r.Task.CPU > 0 || r.Task.Memory > 0 {
		m.Limits = &limits{r.Task.CPU, r.Task.Memory}
	}
	for _, c := range r.Task.Containers {
		m.Containers = append(m.Containers, describe(r, c.Name))
	}
	return m
}

func describe(r *engine.Record, name string) containerMetadata {
	c, d := r.Containers[name], definition(r, name)
	id := r.ContainerID(name)
	m := containerMetadata{
		DockerID: id, Name: name, DockerName: "ecs-" + r.Task.Family + "-" + r.Task.Version + "-" + id, Image: d.Image, ImageID: c.Digest,
		Labels: labels(r, name), DesiredStatus: desired(r), KnownStatus: string(c.Status), ExitCode: c.ExitCode,
		Limits: limits{float64(d.CPU), d.Memory}, CreatedAt: given(c.CreatedAt), StartedAt: given(c.StartedAt), FinishedAt: given(c.FinishedAt),
		Type: "NORMAL", ContainerARN: d.ContainerArn, Networks: []networkMetadata{network(r)}, Volumes: volumes(r, d),
	}
	if m.KnownStatus == "" {
		m.KnownStatus = "NONE"
	}
	for _, p := range c.Ports {
		m.Ports = append(m.Ports, portMetadata{p.Container, p.Protocol, p.Host, "0.0.0.0"})
	}
	if c.Health != "" {
		m.Health = &healthMetadata{string(c.Health), given(c.HealthSince)}
	}
	if d.RestartPolicy != nil && d.RestartPolicy.Enabled {
		m.RestartCount = &c.Restarts
	}
	if l := logConfig(d); l != nil {
		m.LogDriver, m.LogOptions = l.Type, l.Config
	}
	return m
}

func definition(r *engine.Record, name string) *acs.Container {
	for i := range r.Task.Containers {
		if r.Task.Containers[i].Name == name {
			return &r.Task.Containers[i]
		}
	}
	return &acs.Container{}
}

func logConfig(d *acs.Container) *acs.LogConfig {
	var h acs.HostConfig
	if json.Unmarshal([]byte(d.DockerConfig.HostConfig), &h) != nil {
		return nil
	}
	return h.LogConfig
}

func labels(r *engine.Record, name string) map[string]string {
	return map[string]string{
		"com.amazonaws.ecs.cluster":                 r.Task.TaskClusterArn,
		"com.amazonaws.ecs.container-name":          name,
		"com.amazonaws.ecs.task-arn":                r.Task.Arn,
		"com.amazonaws.ecs.task-definition-family":  r.Task.Family,
		"com.amazonaws.ecs.task-definition-version": r.Task.Version,
	}
}

func network(r *engine.Record) networkMetadata {
	n := networkMetadata{NetworkMode: r.Task.NetworkMode, IPv4Addresses: []string{""}}
	if r.Network != nil {
		n.IPv4Addresses, n.MACAddress = []string{r.Network.IP}, r.Network.MAC
	}
	return n
}

func volumes(r *engine.Record, d *acs.Container) []volumeMetadata {
	var out []volumeMetadata
	for _, m := range d.MountPoints {
		v := volumeMetadata{DockerName: m.SourceVolume, Destination: m.ContainerPath}
		for _, t := range r.Task.Volumes {
			if t.Name == m.SourceVolume && t.Host != nil && t.Host.SourcePath != "" {
				v.DockerName, v.Source = "", t.Host.SourcePath
			}
		}
		out = append(out, v)
	}
	return out
}

func desired(r *engine.Record) string {
	if r.Halting() {
		return "STOPPED"
	}
	return "RUNNING"
}

// known is the earliest state that any of the task's containers is in, which is the task's.
func known(r *engine.Record) string {
	order := []engine.Status{engine.Waiting, engine.Created, engine.Running, engine.Stopped}
	names := []string{"PENDING", "CREATED", "RUNNING", "STOPPED"}
	for i, st := range order {
		for _, c := range r.Containers {
			if c.Status == st {
				return names[i]
			}
		}
	}
	return "PENDING"
}

func given(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
