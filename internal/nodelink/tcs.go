package nodelink

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/coder/websocket"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// serveTCS hears a node's telemetry until its web socket ends.
func (l *Link) serveTCS(w http.ResponseWriter, r *http.Request) {
	if !l.verify(w, r) {
		return
	}
	instance := r.URL.Query().Get("containerInstance")
	if l.store.View().ContainerInstances.Get(instance) == nil {
		refuse(w, http.StatusBadRequest, "InvalidInstanceException", "The container instance "+instance+" is not registered.")
		return
	}
	conn, err := accept(w, r)
	if err != nil {
		return // accept has answered
	}
	defer conn.CloseNow()
	t := &telemetry{link: l, conn: conn, request: r, instance: instance}
	if err := t.run(r.Context()); err != nil {
		l.opts.Log.Debug("telemetry ended", "container_instance", instance, "reason", err)
	}
}

// telemetry is one node's TCS connection.
type telemetry struct {
	link     *Link
	conn     *websocket.Conn
	request  *http.Request
	instance string
}

func (t *telemetry) run(ctx context.Context) error {
	for {
		b, err := read(ctx, t.conn)
		if err != nil {
			return err
		}
		h, body, err := acs.DecodeSigned(b)
		if err != nil {
			return err
		}
		if verify := t.link.opts.Verify; verify != nil {
			r := t.request
			if err := verify(ctx, r.Method, r.URL.EscapedPath(), r.URL.RawQuery, r.Host, h, body); err != nil {
				return err
			}
		}
		m, err := acs.Decode(body)
		if err != nil {
			t.link.opts.Log.Warn("ignored a message", "container_instance", t.instance, "error", err)
			continue
		}
		answer, err := t.heard(ctx, m)
		if err != nil {
			return err
		}
		if answer == nil {
			continue
		}
		frame, err := acs.Encode(answer)
		if err != nil {
			return err
		}
		if err := t.conn.Write(ctx, websocket.MessageText, frame); err != nil {
			return err
		}
	}
}

func (t *telemetry) heard(ctx context.Context, m acs.Message) (acs.Message, error) {
	switch m := m.(type) {
	case *acs.PublishMetricsRequest:
		return &acs.AckPublishMetric{Message: "ok"}, nil
	case *acs.PublishHealthRequest:
		for _, task := range m.Tasks {
			if err := t.health(ctx, task); err != nil {
				return nil, err
			}
		}
		return &acs.AckPublishHealth{Message: "ok"}, nil
	case *acs.PublishInstanceStatusRequest:
		return &acs.AckPublishInstanceStatus{Message: "ok"}, t.instanceStatus(ctx, m.Statuses)
	case *acs.PintleGPUTelemetry:
		t.link.mu.Lock()
		t.link.telemetry[t.instance] = Telemetry{At: t.link.opts.Now(), GPUs: m.GPUs}
		t.link.mu.Unlock()
		return &acs.HeartbeatMessage{Healthy: true}, nil
	}
	return nil, nil
}

// health writes containers' health into their task's row, where it has changed.
func (t *telemetry) health(ctx context.Context, h acs.TaskHealth) error {
	old := t.link.store.View().Tasks.Get(h.TaskArn)
	if old == nil || !healthDiffers(old, h) {
		return nil
	}
	return t.link.store.Update(ctx, func(tx *state.Tx) error {
		old := tx.Tasks.Get(h.TaskArn)
		if old == nil || !old.Holds() || *old.ContainerInstanceArn != t.instance {
			return nil
		}
		row := *old
		row.Containers = slices.Clone(row.Containers)
		for i := range row.Containers {
			for _, c := range h.Containers {
				if c.ContainerName == *row.Containers[i].Name {
					row.Containers[i].HealthStatus = types.HealthStatus(c.HealthStatus)
				}
			}
		}
		row.HealthStatus = taskHealth(&row, tx.TaskDefinitions.Get(*row.TaskDefinitionArn))
		row.Version++
		tx.Tasks.Put(&row)
		return nil
	})
}

func healthDiffers(t *state.Task, h acs.TaskHealth) bool {
	for _, c := range t.Containers {
		for _, n := range h.Containers {
			if n.ContainerName == *c.Name && string(c.HealthStatus) != n.HealthStatus {
				return true
			}
		}
	}
	return false
}

// taskHealth sums up essential containers that have a check, as ECS does: one UNHEALTHY makes the
// task so, all HEALTHY make it so, else it is UNKNOWN. API_Task, healthStatus.
func taskHealth(t *state.Task, td *state.TaskDefinition) types.HealthStatus {
	if td == nil {
		return types.HealthStatusUnknown
	}
	checked, healthy := 0, 0
	for i, c := range td.ContainerDefinitions {
		if c.HealthCheck == nil || !aws.ToBool(c.Essential) || i >= len(t.Containers) {
			continue
		}
		checked++
		switch t.Containers[i].HealthStatus {
		case types.HealthStatusUnhealthy:
			return types.HealthStatusUnhealthy
		case types.HealthStatusHealthy:
			healthy++
		}
	}
	if checked > 0 && healthy == checked {
		return types.HealthStatusHealthy
	}
	return types.HealthStatusUnknown
}

// instanceStatus writes what the agent thinks of its machine, where that has changed.
func (t *telemetry) instanceStatus(ctx context.Context, statuses []acs.InstanceStatus) error {
	health := &types.ContainerInstanceHealthStatus{OverallStatus: types.InstanceHealthCheckStateOk}
	for _, s := range statuses {
		st := types.InstanceHealthCheckState(s.Status)
		health.Details = append(health.Details, types.InstanceHealthCheckResult{
			Type: types.InstanceHealthCheckTypeContainerRuntime, Status: st, LastUpdated: seconds(s.LastUpdated), LastStatusChange: seconds(s.LastStatusChange),
		})
		if st != types.InstanceHealthCheckStateOk {
			health.OverallStatus = st
		}
	}
	row := t.link.store.View().ContainerInstances.Get(t.instance)
	if row == nil || row.HealthStatus != nil && row.HealthStatus.OverallStatus == health.OverallStatus {
		return nil
	}
	return t.link.store.Update(ctx, func(tx *state.Tx) error {
		old := tx.ContainerInstances.Get(t.instance)
		if old == nil {
			return nil
		}
		row := *old
		row.HealthStatus = health
		row.Version++
		tx.ContainerInstances.Put(&row)
		return nil
	})
}

func seconds(s float64) *time.Time {
	at := time.UnixMilli(int64(s * 1000)).UTC()
	return &at
}
