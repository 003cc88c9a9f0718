package nodelink

import (
	"maps"
	"net/http"
	"strings"
	"testing"

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
