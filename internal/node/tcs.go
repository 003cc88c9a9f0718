package node

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/acs"
)

// How often the node publishes its state.
const (
	telemetryEvery = time.Second // its GPUs' load
	healthEvery    = 5 * time.Second
	metricsEvery   = 20 * time.Second
)

// tasksPerFrame is the most tasks whose metrics go into one frame.
const tasksPerFrame = 10

// connectTCS keeps up the connection over which the node publishes its state.
func (a *Agent) connectTCS(ctx context.Context) error {
	return a.reconnect(ctx, "TCS", func(ctx context.Context) error {
		e, err := a.endpoints(ctx)
		if err != nil {
			return err
		}
		s, err := a.dial(ctx, aws.ToString(e.TelemetryEndpoint), url.Values{
			"agentHash":         {"pintle"},
			"agentVersion":      {a.config.Version},
			"cluster":           {a.config.Cluster},
			"containerInstance": {a.Instance()},
			"dockerVersion":     {a.config.Runtime.Name()},
		})
		if err != nil {
			return err
		}
		defer s.close()
		t := &tcsSession{socket: s, sampler: a.sampler}
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error { return t.readAll(ctx) })
		g.Go(func() error { return t.publish(ctx) })
		return g.Wait()
	})
}

// tcsSession is one TCS connection.
type tcsSession struct {
	*socket
	sampler *sampler
	status  acs.InstanceStatus // as last published
	sent    int64
}

// readAll reads and drops acknowledgements and heartbeats, which only show that the control plane is alive.
func (t *tcsSession) readAll(ctx context.Context) error {
	for {
		if _, err := t.read(ctx); err != nil {
			return err
		}
	}
}

// publish sends the GPUs' load every second, and containers' health with it if that has changed: a container may end soon after. It sends all
// health and usage less often, and the node's own status when a heartbeat asks for it.
func (t *tcsSession) publish(ctx context.Context) error {
	telemetry, health, metrics := time.NewTicker(telemetryEvery), time.NewTicker(healthEvery), time.NewTicker(metricsEvery)
	defer telemetry.Stop()
	defer health.Stop()
	defer metrics.Stop()
	if err := t.sendMetrics(ctx); err != nil { // announces the node
		return err
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-telemetry.C:
			if err = t.sendTelemetry(ctx); err == nil && t.agent.engine.TakeHealthNews() {
				err = t.sendHealth(ctx)
			}
		case <-health.C:
			err = t.sendHealth(ctx)
		case <-metrics.C:
			err = t.sendMetrics(ctx)
		case <-t.agent.beats:
			err = t.sendInstanceStatus(ctx)
		}
		if err != nil {
			return err
		}
	}
}

func (t *tcsSession) sendTelemetry(ctx context.Context) error {
	load := t.sampler.takeLoad()
	if len(load) == 0 {
		return nil
	}
	return t.sendSigned(ctx, &acs.PintleGPUTelemetry{GPUs: load})
}

func (t *tcsSession) sendHealth(ctx context.Context) error {
	tasks := t.agent.engine.Health()
	for len(tasks) > 0 {
		n := min(len(tasks), tasksPerFrame)
		m := &acs.PublishHealthRequest{Metadata: t.metadata(n == len(tasks)), Tasks: tasks[:n], Timestamp: seconds(time.Now())}
		if err := t.sendSigned(ctx, m); err != nil {
			return err
		}
		tasks = tasks[n:]
	}
	return nil
}

// sendMetrics publishes what the tasks used since the last call.
func (t *tcsSession) sendMetrics(ctx context.Context) error {
	tasks := withUsage(t.sampler.collect(), t.agent.connect.Usage(ctx))
	if len(tasks) == 0 {
		m := &acs.PublishMetricsRequest{Metadata: t.metadata(true), Timestamp: seconds(time.Now())}
		m.Metadata.Idle = true
		return t.sendSigned(ctx, m)
	}
	for len(tasks) > 0 {
		n := min(len(tasks), tasksPerFrame)
		m := &acs.PublishMetricsRequest{Metadata: t.metadata(n == len(tasks)), TaskMetrics: tasks[:n], Timestamp: seconds(time.Now())}
		if err := t.sendSigned(ctx, m); err != nil {
			return err
		}
		tasks = tasks[n:]
	}
	return nil
}

// sendInstanceStatus publishes whether the node's runtime answers.
func (t *tcsSession) sendInstanceStatus(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, healthEvery)
	defer cancel()
	status := acs.InstanceStatus{Type: "ContainerRuntime", Status: "OK", LastUpdated: seconds(time.Now())}
	if _, err := t.agent.config.Runtime.List(asking, t.agent.identity.Load().Owner); err != nil {
		t.agent.log.Error("the container runtime does not answer", "error", err)
		status.Status = "IMPAIRED"
	}
	status.LastStatusChange = t.status.LastStatusChange
	if status.Status != t.status.Status {
		status.LastStatusChange = status.LastUpdated
	}
	t.status = status
	return t.sendSigned(ctx, &acs.PublishInstanceStatusRequest{
		Metadata:  t.metadata(true),
		Statuses:  []acs.InstanceStatus{status},
		Timestamp: status.LastUpdated,
	})
}

// metadata says which node a message is from, and marks the last message of a batch.
func (t *tcsSession) metadata(last bool) acs.MetricsMetadata {
	t.sent++
	return acs.MetricsMetadata{
		Cluster:           t.agent.config.Cluster,
		ContainerInstance: t.agent.Instance(),
		Fin:               last,
		MessageID:         strconv.FormatInt(time.Now().UnixNano(), 36) + "-" + strconv.FormatInt(t.sent, 36),
	}
}

func seconds(at time.Time) float64 { return float64(at.UnixMilli()) / 1000 }
