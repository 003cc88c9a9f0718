package nodelink

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	elb "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/servicediscovery/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// connectOwn connects as Pintle's agent does, and takes the manifest.
func (w *world) connectOwn() *agent {
	w.t.Helper()
	q := query(kindACS)
	q.Set("agentHash", ownAgent)
	conn, _, err := w.dial(kindACS, q, http.Header{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.CloseNow() })
	conn.SetReadLimit(acs.MaxFrame)
	a := &agent{w, conn}
	next[*acs.TaskManifestMessage](a)
	return a
}

// TestNames: a node is told all names when it connects, before the tasks that may ask for them, and then what has changed.
func TestNames(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	w.update(func(tx *state.Tx) {
		tx.Namespaces.Put(&state.Namespace{ID: "ns-1", Name: "corp.local", Type: types.NamespaceTypeDnsPrivate, TTL: 15})
		tx.Namespaces.Put(&state.Namespace{ID: "ns-2", Name: "plain", Type: types.NamespaceTypeHttp})
		tx.DiscoveryServices.Put(&state.DiscoveryService{ID: "srv-0", Name: "plain", NamespaceID: "ns-2"})
		tx.DiscoveryServices.Put(&state.DiscoveryService{
			ID:           "srv-1",
			Name:         "web",
			NamespaceID:  "ns-1",
			CustomHealth: &types.HealthCheckCustomConfig{},
			DNS: &types.DnsConfig{RoutingPolicy: types.RoutingPolicyWeighted, DnsRecords: []types.DnsRecord{
				{Type: types.RecordTypeA, TTL: new(int64(10))}, {Type: types.RecordTypeSrv, TTL: new(int64(20))},
			}},
		})
		tx.PutInstance(&state.DiscoveryInstance{Service: "srv-1", ID: "i", Health: types.CustomHealthStatusHealthy, Attributes: map[string]string{
			"AWS_INSTANCE_IPV4": "10.0.0.1", "AWS_INSTANCE_PORT": "80",
		}})
		tx.Tasks.Put(taskRow("one", "RUNNING", "PENDING"))
	})
	a := w.connectOwn()
	m := next[*acs.PintleNames](a)
	if !m.Complete || len(m.Zones) != 1 || m.Zones[0] != (acs.Zone{Name: "corp.local", TTL: 15}) || len(m.Services) != 1 {
		t.Fatalf("%+v", m)
	}
	s := m.Services[0]
	i := acs.NamedInstance{ID: "i", IPv4: "10.0.0.1", Port: 80}
	if s.Name != "web.corp.local" || !s.Weighted || !maps.Equal(s.Records, map[string]uint32{"A": 10, "SRV": 20}) || len(s.Instances) != 1 || s.Instances[0] != i {
		t.Errorf("%+v", s)
	}
	a.ack(next[*acs.PayloadMessage](a))
	w.update(func(tx *state.Tx) {
		row := *tx.DiscoveryInstances.Get("srv-1 i")
		row.Health = types.CustomHealthStatusUnhealthy
		tx.PutInstance(&row)
	})
	if m = next[*acs.PintleNames](a); m.Complete || len(m.Services) != 1 || !m.Services[0].Instances[0].Unhealthy {
		t.Errorf("unhealthy: %+v", m)
	}
	w.update(func(tx *state.Tx) {
		tx.DeleteInstance(tx.DiscoveryInstances.Get("srv-1 i"))
		tx.DiscoveryServices.Delete("srv-1")
		tx.Namespaces.Delete("ns-1")
	})
	if m = next[*acs.PintleNames](a); len(m.Zones) != 0 || strings.Join(m.Gone, " ") != "srv-1" || len(m.Services) != 0 {
		t.Errorf("gone: %+v", m)
	}
}

// TestNamesOfLoadBalancers: a node is told the names of load balancers that other machines reach, where their processes are.
func TestNamesOfLoadBalancers(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	const lb, listener = "arn:lb", "arn:listener"
	process := func(id, address string) *state.Balancer {
		return &state.Balancer{ID: id, Addresses: map[string]string{listener: address, "arn:of another": "10.0.0.9:80"}}
	}
	w.update(func(tx *state.Tx) {
		tx.LoadBalancers.Put(&state.LoadBalancer{LoadBalancer: elb.LoadBalancer{LoadBalancerArn: new(lb), LoadBalancerName: new("web"), DNSName: new("web-1.elb.localhost")}})
		tx.Listeners.Put(&state.Listener{Listener: elb.Listener{ListenerArn: new(listener), LoadBalancerArn: new(lb)}})
		tx.Balancers.Put(process("here", "127.0.0.1:80"))
	})
	a := w.connectOwn()
	if m := next[*acs.PintleNames](a); len(m.Zones)+len(m.Services) != 0 {
		t.Errorf("on loopback: %+v", m)
	}
	for _, c := range []struct {
		change func(tx *state.Tx)
		want   []acs.NamedInstance
	}{
		{func(tx *state.Tx) { tx.Balancers.Put(process("here", "0.0.0.0:80")) }, []acs.NamedInstance{{ID: "0.0.0.0", IPv4: "0.0.0.0"}}},
		{
			func(tx *state.Tx) { tx.Balancers.Put(process("there", "10.0.0.5:30000")) },
			[]acs.NamedInstance{{ID: "0.0.0.0", IPv4: "0.0.0.0"}, {ID: "10.0.0.5", IPv4: "10.0.0.5"}},
		},
		{func(tx *state.Tx) { tx.Balancers.Put(process("here", "[2001:db8::1]:80")) }, []acs.NamedInstance{
			{ID: "10.0.0.5", IPv4: "10.0.0.5"}, {ID: "2001:db8::1", IPv6: "2001:db8::1"},
		}},
		{
			func(tx *state.Tx) {
				gone := process("here", "[2001:db8::1]:80")
				gone.Lost = new(time.Now())
				tx.Balancers.Put(gone)
			},
			[]acs.NamedInstance{{ID: "10.0.0.5", IPv4: "10.0.0.5"}},
		},
	} {
		w.update(c.change)
		m := next[*acs.PintleNames](a)
		if len(m.Zones) != 1 || m.Zones[0].Name != "elb.localhost" || len(m.Services) != 1 || m.Services[0].Name != "web-1.elb.localhost" ||
			!slices.Equal(m.Services[0].Instances, c.want) {
			t.Errorf("%v: %+v", c.want, m)
		}
	}
	w.update(func(tx *state.Tx) { tx.Listeners.Delete(listener); tx.LoadBalancers.Delete(lb) })
	if m := next[*acs.PintleNames](a); len(m.Zones) != 0 || !slices.Equal(m.Gone, []string{lb}) {
		t.Errorf("gone: %+v", m)
	}
}

// TestTasksOfNodesAway: the tasks of a node that has been away for a while count as unhealthy by their names until it's back. A node that
// connects again soon, or whose control plane begins anew, is no reason for that.
func TestTasksOfNodesAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		node := lostInstance("ci/i", true)
		node.PrivateIPAddress = "192.0.2.1"
		task := lostTask("arn:aws:ecs:us-east-1:000000000000:task/c/one", "ci/i", "RUNNING")
		task.TaskDefinitionArn = new("arn:aws:ecs:us-east-1:000000000000:task-definition/f:1")
		task.Registry = &state.TaskRegistry{Service: "srv-1", Port: 80}
		err := store.Update(t.Context(), func(tx *state.Tx) error {
			tx.DiscoveryServices.Put(&state.DiscoveryService{ID: "srv-1", Name: "web"})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		putRows(t, store, node, task)
		link := New(store, Options{})
		if err := link.Reset(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- link.Run(ctx) }()
		isUnhealthy := func() bool {
			synctest.Wait()
			v := store.View()
			return named(v, v.DiscoveryServices.Get("srv-1")).Instances[0].Unhealthy
		}
		told := func() *state.DiscoveryService { return store.View().DiscoveryServices.Get("srv-1") }
		if time.Sleep(awayAfter - time.Second); isUnhealthy() {
			t.Error("a node that is away for a moment")
		}
		before := told()
		if time.Sleep(1*time.Second + 2*lookEvery); !isUnhealthy() || told() == before {
			t.Error("a node that stays away: nobody hears of it")
		}
		before = told()
		putRows(t, store, store.View().ContainerInstances.Get("ci/i").Connected(nil))
		if isUnhealthy() || told() == before {
			t.Error("a node that is back: nobody hears of it")
		}
		cancel()
		<-ended
	})
}
