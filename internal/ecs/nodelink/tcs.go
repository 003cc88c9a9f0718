package nodelink

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/pintle/pintle/internal/acs"
)

// Telemetry is the latest load that a node reported. It's kept while the node's TCS socket is open.
type Telemetry struct {
	At    time.Time
	GPUs  []acs.GPULoad
	Tasks []acs.TaskMetric
}

// Loads returns the load of each GPU, by its id.
func (t Telemetry) Loads() map[string]acs.GPULoad {
	loads := make(map[string]acs.GPULoad, len(t.GPUs))
	for _, l := range t.GPUs {
		loads[l.ID] = l
	}
	return loads
}

// maxBatch bounds the tasks of one batch of metrics. A batch arrives in several frames.
const maxBatch = 1000

// reporter is one node's TCS connection.
type reporter struct {
	*socket
	link    *Link
	request *http.Request // every frame is signed for its address
	batch   []acs.TaskMetric
}

// Telemetry returns the latest load that the node reported.
func (l *Link) Telemetry(instanceArn string) (Telemetry, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t, ok := l.telemetry[instanceArn]
	return t, ok
}

// serveTCS receives a node's telemetry for as long as its web socket is open.
func (l *Link) serveTCS(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	row, _ := l.admit(w, r, q.Get("cluster"), q.Get("containerInstance"))
	if row == nil {
		return
	}
	l.serve(w, r, address{kindTCS, *row.ContainerInstanceArn}, func(ctx context.Context, s *socket) error {
		t := &reporter{socket: s, link: l, request: r}
		return s.run(ctx, t.sendHeartbeats, t.receive)
	})
}

// sendHeartbeats sends heartbeats, since a node with nothing to report gets no acknowledgements.
func (t *reporter) sendHeartbeats(ctx context.Context) error {
	beat := time.NewTicker(t.link.opts.Heartbeat)
	defer beat.Stop()
	for {
		if err := t.send(ctx, t.link.heartbeat()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-beat.C:
		}
	}
}

// receive handles one frame from the node.
func (t *reporter) receive(ctx context.Context, b []byte) error {
	h, body, err := acs.DecodeSigned(b)
	if err != nil {
		return err
	}
	if _, err := t.link.verify(t.request, h, body, t.instance); err != nil {
		return fmt.Errorf("%w: %w", errUnsigned, err)
	}
	m, err := acs.Decode(body)
	if err != nil {
		t.link.opts.Log.Warn("ignored a message", "container_instance", t.instance, "error", err)
		return nil
	}
	switch m := m.(type) {
	case *acs.PublishMetricsRequest:
		t.addMetrics(m)
		return t.send(ctx, &acs.AckPublishMetric{Message: "ok"})
	case *acs.PublishHealthRequest:
		if err := t.recordHealth(ctx, m.Tasks); err != nil {
			return err
		}
		return t.send(ctx, &acs.AckPublishHealth{Message: "ok"})
	case *acs.PublishInstanceStatusRequest:
		if err := t.recordInstanceStatus(ctx, m.Statuses); err != nil {
			return err
		}
		return t.send(ctx, &acs.AckPublishInstanceStatus{Message: "ok"})
	case *acs.PintleGPUTelemetry:
		t.updateTelemetry(m, func(n *Telemetry) { n.GPUs = m.GPUs })
	}
	return nil
}

// addMetrics collects a batch, and keeps it once it's complete.
func (t *reporter) addMetrics(m *acs.PublishMetricsRequest) {
	if len(t.batch)+len(m.TaskMetrics) <= maxBatch {
		t.batch = append(t.batch, m.TaskMetrics...)
	}
	t.updateTelemetry(m, func(n *Telemetry) {
		if m.Metadata.Fin || m.Metadata.Idle {
			n.Tasks, t.batch = t.batch, nil
		}
	})
}

// updateTelemetry changes the node's telemetry, and passes the message to Observe.
func (t *reporter) updateTelemetry(m acs.Message, change func(*Telemetry)) {
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
