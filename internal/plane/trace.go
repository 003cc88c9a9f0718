package plane

import (
	"cmp"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/trace"
)

// newTracer returns what takes spans, or nil if nothing is to be traced.
func (p *Plane) newTracer() (*trace.Tracer, error) {
	o := p.options.Trace
	o.Service = cmp.Or(o.Service, "pintle")
	o.Version = p.options.Version
	o.Log = p.log
	t, err := trace.New(o)
	if err != nil {
		return nil, fmt.Errorf("--otlp-endpoint: %w", err)
	}
	return t, nil
}

// traceTask adds the spans of a traced task that runs now, or has ended before it did: the whole way there, and its parts, by its node's clock.
func (p *Plane) traceTask(t *state.Task) {
	end := cmp.Or(t.StartedAt, t.StoppedAt)
	if t.Trace == "" || t.CreatedAt == nil || end == nil {
		return
	}
	whole := trace.Span{
		Name: "task", Under: t.Trace, ID: trace.IDOf(*t.TaskArn), Start: *t.CreatedAt, End: *end,
		Attributes: []trace.Attribute{
			{Name: "aws.ecs.task.arn", Value: *t.TaskArn},
			{Name: "aws.ecs.cluster.arn", Value: *t.ClusterArn},
			{Name: "aws.ecs.task.definition", Value: aws.ToString(t.TaskDefinitionArn)},
			{Name: "aws.ecs.container_instance.arn", Value: aws.ToString(t.ContainerInstanceArn)},
			{Name: "aws.ecs.service.arn", Value: t.ServiceArn},
		},
	}
	if t.StartedAt == nil {
		whole.Error = aws.ToString(t.StoppedReason)
	}
	p.tracer.Add(whole)
	under := trace.Join(t.Trace, whole.ID)
	if t.PullStartedAt == nil || t.PullStoppedAt == nil {
		return
	}
	p.tracer.Add(trace.Span{Name: "image pull", Under: under, Start: *t.PullStartedAt, End: *t.PullStoppedAt})
	if t.StartedAt != nil {
		p.tracer.Add(trace.Span{Name: "container start", Under: under, Start: *t.PullStoppedAt, End: *t.StartedAt})
	}
}

// traceAcceptance adds the span of a node's taking a task on.
func (p *Plane) traceAcceptance(arn string, sent, acknowledged time.Time) {
	if p.tracer == nil {
		return
	}
	if t := p.State.View().Tasks.Get(arn); t != nil {
		p.tracer.Add(trace.Span{Name: "node accepts", Under: trace.Join(t.Trace, trace.IDOf(arn)), Start: sent, End: acknowledged})
	}
}
