package tmds

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/engine"
)

// These are the shapes of version 4, of which version 3 is a subset:
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

func (s *Server) container(ctx context.Context, c caller) (any, error) {
	return s.describe(ctx, c.record, c.name), nil
}

func (s *Server) task(ctx context.Context, c caller) (any, error) {
	return s.describeTask(ctx, c.record), nil
}

func (s *Server) taskWithTags(ctx context.Context, c caller) (any, error) {
	m := s.describeTask(ctx, c.record)
	m.TaskTags = s.tags(ctx, c.record.Task.Arn)
	m.ContainerInstanceTags = s.tags(ctx, s.opts.Instance())
	return m, nil
}

// tags lists a resource's tags. If that fails, it returns none, since the rest of the answer is still useful.
func (s *Server) tags(ctx context.Context, arn string) map[string]string {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	out, err := s.opts.ECS.ListTagsForResource(ctx, &ecs.ListTagsForResourceInput{ResourceArn: &arn})
	if err != nil {
		s.opts.Log.Warn("cannot list tags", "resource", arn, "error", err)
		return nil
	}
	return tagMap(out.Tags)
}

func tagMap(tags []types.Tag) map[string]string {
	m := map[string]string{}
	for _, t := range tags {
		m[aws.ToString(t.Key)] = aws.ToString(t.Value)
	}
	return m
}

func (s *Server) describeTask(ctx context.Context, r *engine.Record) *taskMetadata {
	m := &taskMetadata{
		Cluster:            r.Task.TaskClusterArn,
		TaskARN:            r.Task.Arn,
		Family:             r.Task.Family,
		Revision:           r.Task.Version,
		DesiredStatus:      desiredStatus(r),
		KnownStatus:        knownStatus(r),
		AvailabilityZone:   s.opts.Zone,
		LaunchType:         r.Task.LaunchType,
		ServiceName:        r.Task.ServiceName,
		PullStartedAt:      timeOrNil(r.PullStartedAt),
		PullStoppedAt:      timeOrNil(r.PullStoppedAt),
		ExecutionStoppedAt: timeOrNil(r.ExecutionStoppedAt),
	}
	if r.Task.CPU > 0 || r.Task.Memory > 0 {
		m.Limits = &limits{r.Task.CPU, r.Task.Memory}
	}
	for _, c := range r.Task.Containers {
		m.Containers = append(m.Containers, s.describe(ctx, r, c.Name))
	}
	return m
}

func (s *Server) describe(ctx context.Context, r *engine.Record, name string) containerMetadata {
	c, d := r.Containers[name], definition(r, name)
	m := containerMetadata{
		DockerID:      r.RuntimeID(name),
		Name:          name,
		DockerName:    dockerName(r, name),
		Image:         d.Image,
		ImageID:       cmp.Or(c.ImageID, c.Digest),
		Labels:        labels(r, d),
		DesiredStatus: desiredStatus(r),
		KnownStatus:   string(c.Status),
		ExitCode:      c.ExitCode,
		Limits:        limits{float64(d.CPU), d.Memory},
		CreatedAt:     timeOrNil(c.CreatedAt),
		StartedAt:     timeOrNil(c.StartedAt),
		FinishedAt:    timeOrNil(c.FinishedAt),
		Type:          "NORMAL",
		ContainerARN:  d.ContainerArn,
		Networks:      []networkMetadata{s.network(ctx, r, name)},
		Volumes:       volumes(r, d),
	}
	if m.KnownStatus == "" {
		m.KnownStatus = "NONE"
	}
	for _, p := range c.Ports {
		m.Ports = append(m.Ports, portMetadata{p.Container, p.Protocol, p.Host, "0.0.0.0"})
	}
	if c.Health != "" {
		m.Health = &healthMetadata{string(c.Health), timeOrNil(c.HealthSince)}
	}
	if d.RestartPolicy != nil && d.RestartPolicy.Enabled {
		m.RestartCount = &c.Restarts
	}
	if l := logConfig(d); l != nil {
		m.LogDriver = l.Type
		m.LogOptions = l.Config
	}
	return m
}

// dockerName returns the name that Docker has for a container, which is the agent's id of it. Without Docker it looks like Amazon's agent's.
func dockerName(r *engine.Record, name string) string {
	if r.Containers[name].RuntimeID != "" {
		return r.ContainerID(name)
	}
	return "ecs-" + r.Task.Family + "-" + r.Task.Version + "-" + r.ContainerID(name)
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

// labels returns the labels that Amazon's agent sets, and the container's own.
func labels(r *engine.Record, d *acs.Container) map[string]string {
	out := map[string]string{
		"com.amazonaws.ecs.cluster":                 r.Task.TaskClusterArn,
		"com.amazonaws.ecs.container-name":          d.Name,
		"com.amazonaws.ecs.task-arn":                r.Task.Arn,
		"com.amazonaws.ecs.task-definition-family":  r.Task.Family,
		"com.amazonaws.ecs.task-definition-version": r.Task.Version,
	}
	var own acs.Config
	json.Unmarshal([]byte(d.DockerConfig.Config), &own) //nolint:errcheck // the control plane wrote it
	maps.Copy(out, own.Labels)
	return out
}

// addressed is a runtime that knows its containers' addresses.
type addressed interface {
	// Address returns the address of a container in mode bridge.
	Address(ctx context.Context, id string) (string, error)
}

// network returns the network of a container. One without an address of its own has an empty one, as with Amazon's agent.
func (s *Server) network(ctx context.Context, r *engine.Record, name string) networkMetadata {
	n := networkMetadata{NetworkMode: r.Task.NetworkMode, IPv4Addresses: []string{""}}
	rt, ok := s.opts.Runtime.(addressed)
	switch {
	case r.Network != nil:
		n.IPv4Addresses = []string{r.Network.IP}
		n.MACAddress = r.Network.MAC
	case ok && n.NetworkMode == "bridge" && r.Containers[name].Status == engine.Running:
		if ip, err := rt.Address(ctx, r.ContainerID(name)); err == nil { // an error means that it has just ended
			n.IPv4Addresses = []string{ip}
		}
	}
	return n
}

func volumes(r *engine.Record, d *acs.Container) []volumeMetadata {
	var out []volumeMetadata
	for _, m := range d.MountPoints {
		v := volumeMetadata{DockerName: m.SourceVolume, Destination: m.ContainerPath}
		for _, t := range r.Task.Volumes {
			if t.Name == m.SourceVolume && t.Host != nil && t.Host.SourcePath != "" {
				v.DockerName = ""
				v.Source = t.Host.SourcePath
			}
		}
		out = append(out, v)
	}
	return out
}

func desiredStatus(r *engine.Record) string {
	if r.Halting() {
		return "STOPPED"
	}
	return "RUNNING"
}

// knownStatus returns the task's status, which is the earliest that any of its containers is in.
func knownStatus(r *engine.Record) string {
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

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
