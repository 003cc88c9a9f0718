package metering

import (
	"slices"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/state"
)

// connect adds what a task's proxy has passed on to an endpoint, as AWS names it: "Amazon ECS CloudWatch metrics". What AWS counts at the proxies
// of the tasks that are reached is counted here at those of the tasks that reach them.
func (m *Meter) connect(v *state.View, client *state.Task, u *acs.ConnectUsage) {
	endpoint := v.DiscoveryServices.Get(u.Endpoint)
	service := serviceOf(client)
	if endpoint == nil || endpoint.Endpoint == nil || service == nil || client.Connect == nil || !slices.Contains(client.Connect.Reaches, u.Endpoint) {
		return
	}
	at := dimensions{{Name: "DiscoveryName", Value: endpoint.Name}}
	reached := []dimensions{at}
	if owner := v.Services.Get(endpoint.Endpoint.Owner); owner != nil {
		reached = append(reached, append(serviceDimensions(*owner.ClusterArn, *owner.ServiceArn), at...))
	}
	to := dimensions{{Name: "TargetDiscoveryName", Value: endpoint.Name}}
	from := []dimensions{to, append(service[:len(service):len(service)], to...)}
	count := func(name string, n int64, by []dimensions) {
		if n > 0 {
			m.add(namespaceECS, name, "Count", float64(n), by...)
		}
	}
	count("NewConnectionCount", u.Connections, reached)
	count("ActiveConnectionCount", u.Active, reached)
	count("RequestCount", u.Requests, reached)
	count("GrpcRequestCount", u.GRPC, reached)
	for class, name := range map[int]string{2: "2XX", 3: "3XX", 4: "4XX", 5: "5XX"} {
		count("HTTPCode_Target_"+name+"_Count", u.Classes[class], from)
	}
	if u.Bytes > 0 {
		m.add(namespaceECS, "ProcessedBytes", "Bytes", float64(u.Bytes), reached...)
		m.add(namespaceECS, "TargetProcessedBytes", "Bytes", float64(u.Bytes), from...)
	}
	if u.Requests > 0 && u.Targets > 0 {
		m.add(namespaceECS, "RequestCountPerTarget", "Count", float64(u.Requests)/float64(u.Targets), from...)
	}
	if t := u.ResponseTime; t.SampleCount > 0 {
		set := metrics.Set{Count: float64(t.SampleCount), Sum: t.Sum, Min: t.Min, Max: t.Max}
		m.addSet(namespaceECS, "TargetResponseTime", "Milliseconds", set, from...)
	}
}
