package nodelink

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	ecs "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/servicediscovery/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// putEndpoint puts an endpoint with one task, and with an instance that somebody else has registered.
func (w *world) putEndpoint() {
	w.t.Helper()
	w.update(func(tx *state.Tx) {
		tx.Namespaces.Put(&state.Namespace{ID: "ns-1", Name: "corp", Type: types.NamespaceTypeHttp})
		tx.DiscoveryServices.Put(&state.DiscoveryService{ID: "srv-1", Name: "web", NamespaceID: "ns-1", Endpoint: &state.Endpoint{
			Owner:          "arn:aws:ecs:us-east-1:000000000000:service/poc/w",
			Protocol:       "http",
			Aliases:        []state.EndpointAlias{{Name: "www", Port: 80}},
			RequestSeconds: new(int32(3)),
		}})
		for id, task := range map[string]string{"t": taskArn("t"), "x": ""} {
			tx.PutInstance(&state.DiscoveryInstance{Service: "srv-1", ID: id, Task: task, Health: types.CustomHealthStatusUnhealthy, Attributes: map[string]string{
				"AWS_INSTANCE_IPV4": "10.0.0.1", "AWS_INSTANCE_PORT": "80",
			}})
		}
	})
}

// TestEndpointsAreTold: a node is told where the tasks of endpoints are, before the tasks that reach them.
func TestEndpointsAreTold(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	w.putEndpoint()
	task := taskRow("one", "RUNNING", "PENDING")
	task.ServiceArn = "arn:aws:ecs:us-east-1:000000000000:service/poc/w"
	task.Connect = &state.TaskConnect{Reaches: []string{"srv-1", "srv-gone"}, Log: &ecs.LogConfiguration{
		LogDriver: "awslogs",
		Options:   map[string]string{"awslogs-group": "/mesh", "awslogs-stream-prefix": "proxy"},
	}}
	w.put(task)
	a := w.connectOwn()
	m := next[*acs.PintleNames](a)
	want := []acs.NamedService{{ID: "srv-1", Name: "web.corp", Records: map[string]uint32{}, Instances: []acs.NamedInstance{
		{ID: "t", IPv4: "10.0.0.1", Port: 80},
	}}}
	if len(m.Zones) != 0 || !reflect.DeepEqual(m.Services, want) {
		t.Errorf("%+v", m)
	}
	p := next[*acs.PayloadMessage](a)
	got := p.Tasks[0].ServiceConnect
	options := map[string]string{"awslogs-group": "/mesh", "awslogs-stream": "proxy/ecs-service-connect-3decb/one"}
	if want := (&acs.LogConfig{Type: "awslogs", Config: options}); got == nil || !reflect.DeepEqual(got.Log, want) {
		t.Errorf("it logs to %+v", got.Log)
	}
	alias := acs.ConnectAlias{
		Name: "www", Port: 80, Protocol: "http", RequestSeconds: new(int32(3)), Endpoint: "srv-1",
	}
	if got == nil || len(got.Ingress) != 0 || !reflect.DeepEqual(got.Aliases, []acs.ConnectAlias{alias}) {
		t.Errorf("%+v", got)
	}
}

// TestDrains: a task that others reach isn't told to stop before all proxies know that it's to.
func TestDrains(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPipedWorld(t, Options{})
		task := taskRow("one", "STOPPED", "RUNNING")
		task.Connect = &state.TaskConnect{Endpoints: []state.TaskEndpoint{{TaskRegistry: state.TaskRegistry{Service: "srv-1"}}}}
		begun := time.Now()
		task.StoppingAt = &begun
		other := taskRow("two", "STOPPED", "RUNNING")
		other.StoppingAt = &begun
		other.Connect = &state.TaskConnect{Reaches: []string{"srv-1"}}
		a := w.connectOwn()
		next[*acs.PintleNames](a)
		w.put(task, other)
		first := next[*acs.PayloadMessage](a)
		a.ack(first)
		if len(first.Tasks) != 1 || first.Tasks[0].Arn != taskArn("two") || time.Since(begun) > connectDrain/2 {
			t.Errorf("%+v after %s", first.Tasks, time.Since(begun))
		}
		second := next[*acs.PayloadMessage](a)
		if len(second.Tasks) != 1 || second.Tasks[0].DesiredStatus != "STOPPED" || time.Since(begun) != connectDrain {
			t.Errorf("%+v after %s", second.Tasks, time.Since(begun))
		}
	})
}
