// Package sidecar runs in a container beside a GPU workload. It reads the task's GPU metrics from a dcgm-exporter and publishes them to
// CloudWatch by cluster and service, for policies of Application Auto Scaling. It uses only AWS's public APIs, so it runs on AWS as it
// does on Pintle. pintle metrics runs it.
package sidecar

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

// CloudWatch is the part of the CloudWatch client that the sidecar uses.
type CloudWatch interface {
	PutMetricData(context.Context, *cloudwatch.PutMetricDataInput, ...func(*cloudwatch.Options)) (*cloudwatch.PutMetricDataOutput, error)
}

// Options configure a publisher.
type Options struct {
	// Read reads the exporter's current samples.
	Read       func(context.Context) ([]Sample, error)
	CloudWatch CloudWatch
	Namespace  string
	Selection  Selection
	Interval   time.Duration
	Log        *slog.Logger
}

// Limits of reading and publishing. What can't be published goes with the next call. One PutMetricData takes 1,000 data; older ones are
// dropped.
const (
	readTime   = 5 * time.Second
	putTime    = 10 * time.Second
	maxPending = 1000
)

// Publisher reads samples and publishes them.
type Publisher struct {
	opts    Options
	pending []types.MetricDatum // not published yet
}

// New returns a publisher. Run starts it.
func New(o Options) *Publisher { return &Publisher{opts: o} }

// Run publishes at every interval until ctx ends, and then once more.
func (p *Publisher) Run(ctx context.Context) {
	tick := time.NewTicker(p.opts.Interval)
	defer tick.Stop()
	for {
		p.publish(ctx)
		select {
		case <-ctx.Done():
			p.publish(context.WithoutCancel(ctx))
			return
		case <-tick.C:
		}
	}
}

// publish reads samples once, and publishes them with what is left from before.
func (p *Publisher) publish(ctx context.Context) {
	reading, cancel := context.WithTimeout(ctx, readTime)
	defer cancel()
	samples, err := p.opts.Read(reading)
	if err != nil && ctx.Err() == nil {
		p.opts.Log.Warn("cannot read the GPUs' metrics", "error", err)
	}
	p.pending = append(p.pending, Data(samples, p.opts.Selection, time.Now(), p.opts.Interval < time.Minute)...)
	if over := len(p.pending) - maxPending; over > 0 {
		p.opts.Log.Warn("metrics are dropped, since CloudWatch does not take them", "data", over)
		p.pending = slices.Delete(p.pending, 0, over)
	}
	if len(p.pending) == 0 {
		return
	}
	putting, cancel := context.WithTimeout(ctx, putTime)
	defer cancel()
	p.pending = p.put(putting, p.pending)
}

// put publishes data, and returns what to retry later. It drops data that CloudWatch rejects, which would hold up everything after them.
// It finds them by halving.
func (p *Publisher) put(ctx context.Context, data []types.MetricDatum) []types.MetricDatum {
	_, err := p.opts.CloudWatch.PutMetricData(ctx, &cloudwatch.PutMetricDataInput{Namespace: &p.opts.Namespace, MetricData: data})
	switch {
	case err == nil:
		return nil
	case isInvalid(err) && len(data) > 1:
		half := len(data) / 2
		return append(p.put(ctx, data[:half:half]), p.put(ctx, data[half:])...)
	case isInvalid(err):
		p.opts.Log.Warn("a metric is dropped, since CloudWatch refuses it", "metric", aws.ToString(data[0].MetricName), "error", err)
		return nil
	case ctx.Err() != context.Canceled:
		p.opts.Log.Warn("cannot put metrics; they come with the next", "error", err)
	}
	return data
}

// isInvalid reports whether a call was refused for its content, so that a retry would be too.
func isInvalid(err error) bool {
	var value *types.InvalidParameterValueException
	var combination *types.InvalidParameterCombinationException
	var missing *types.MissingRequiredParameterException
	return errors.As(err, &value) || errors.As(err, &combination) || errors.As(err, &missing)
}
