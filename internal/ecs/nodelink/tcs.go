package nodelink

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/pintle/pintle/internal/acs"
)

// Telemetry is the newest that a node said of its load. It is kept while the node's TCS socket is open.
type Telemetry struct {
	At    time.Time
	GPUs  []acs.GPULoad
	Tasks []acs.TaskMetric
}

// maxBatch bounds the tasks of one batch of metrics. A batch comes in several frames.
const maxBatch = 1000

// reporter is one node's TCS connection.
type reporter struct {
	*socket
	link    *Link
	request *http.Request // every frame is signed for its address
	batch   []acs.TaskMetric
}

// Telemetry returns the newest that the node said of its load.
func (l *Link) Telemetry(instanceArn string) (Telemetry, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, ok := l.telemetry[instanceArn]
	return t, ok
}

// serveTCS hears a node's telemetry for as long as its web socket is open.
func (l *Link) serveTCS(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	row := l.admit(w, r, q.Get("cluster"), q.Get("containerInstance"))
	if row == nil {
		return
	}
	l.serve(w, r, address{kindTCS, *row.ContainerInstanceArn}, func(ctx context.Context, s *socket) error {
		t := &reporter{socket: s, link: l, request: r}
		return s.run(ctx, t.tell, t.hear)
	})
}

// tell sends heartbeats, for a node that has nothing to report gets no acknowledgements.
func (t *reporter) tell(ctx context.Context) error {
	beat := time.NewTicker(t.link.opts.Heartbeat)
	defer beat.Stop()
	for {
		if err := t.send(ctx, &acs.HeartbeatMessage{Healthy: true}); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-beat.C:
		}
	}
}

// hear takes one frame from the node.
func (t *reporter) hear(ctx context.Context, b []byte) error {
	h, body, err := acs.DecodeSigned(b)
	if err != nil {
		return err
	}
	if err := t.link.verify(t.request, h, body); err != nil {
		return fmt.Errorf("%w: %w", errUnsigned, err)
	}
	m, err := acs.Decode(body)
	if err != nil {
		t.link.opts.Log.Warn("ignored a message", "container_instance", t.instance, "error", err)
		return nil
	}
	switch m := m.(type) {
	case *acs.PublishMetricsRequest:
		t.metrics(m)
		return t.send(ctx, &acs.AckPublishMetric{Message: "ok"})
	case *acs.PublishHealthRequest:
		if err := t.health(ctx, m.Tasks); err != nil {
			return err
		}
		return t.send(ctx, &acs.AckPublishHealth{Message: "ok"})
	case *acs.PublishInstanceStatusRequest:
		if err := t.instanceStatus(ctx, m.Statuses); err != nil {
			return err
		}
		return t.send(ctx, &acs.AckPublishInstanceStatus{Message: "ok"})
	case *acs.PintleGPUTelemetry:
		t.keep(m, func(n *Telemetry) { n.GPUs = m.GPUs })
	}
	return nil
}

// metrics collects a batch, and keeps it once it is whole.
func (t *reporter) metrics(m *acs.PublishMetricsRequest) {
	if len(t.batch)+len(m.TaskMetrics) <= maxBatch {
		t.batch = append(t.batch, m.TaskMetrics...)
	}
	t.keep(m, func(n *Telemetry) {
		if m.Metadata.Fin || m.Metadata.Idle {
			n.Tasks, t.batch = t.batch, nil
		}
	})
}

// keep changes what is known of the node's load, and passes the message on.
func (t *reporter) keep(m acs.Message, change func(*Telemetry)) {
	t.link.mu.Lock()
	if t.link.sockets[t.address] == t.socket {
		n := t.link.telemetry[t.instance]
		n.At = t.link.opts.Now()
		change(&n)
		t.link.telemetry[t.instance] = n
	}
	t.link.mu.Unlock()
	if t.link.opts.Observe != nil {
		t.link.opts.Observe(t.instance, m)
	}
}
