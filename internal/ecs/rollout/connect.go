package rollout

import (
	"github.com/pintle/pintle/internal/state"
)

// dropEndpoints deletes the endpoints of Service Connect that no deployment of a service has anymore.
func dropEndpoints(tx *state.Tx, before, after *state.Service) {
	kept := endpoints(after)
	for id := range endpoints(before) {
		if !kept[id] {
			tx.DropEndpoint(id, *before.ServiceArn)
		}
	}
}

// endpoints returns the services of Cloud Map by which a service's tasks are reached.
func endpoints(row *state.Service) map[string]bool {
	all := map[string]bool{}
	for _, d := range row.Deployments {
		if d.Connect == nil {
			continue
		}
		for _, e := range d.Connect.Endpoints {
			all[e.Service] = true
		}
	}
	return all
}
