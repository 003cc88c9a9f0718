package nodelink

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// serviceConnect returns how a task takes part in Service Connect, or nil.
func serviceConnect(v *state.View, t *state.Task, td *state.TaskDefinition) *acs.ServiceConnect {
	if t.Connect == nil {
		return nil
	}
	out := &acs.ServiceConnect{}
	if l := t.Connect.Log; l != nil {
		out.Container = proxyContainer(t.ServiceArn)
		out.Log = logConfigOf(l, out.Container, *t.TaskArn)
	}
	for _, id := range t.Connect.Reaches {
		row := v.DiscoveryServices.Get(id)
		if row == nil || row.Endpoint == nil {
			continue // it's gone since the deployment began
		}
		for _, a := range row.Endpoint.Aliases {
			out.Aliases = append(out.Aliases, acs.ConnectAlias{
				Name:           a.Name,
				Port:           uint16(a.Port),
				Protocol:       string(row.Endpoint.Protocol),
				IdleSeconds:    row.Endpoint.IdleSeconds,
				RequestSeconds: row.Endpoint.RequestSeconds,
				Endpoint:       row.ID,
			})
		}
	}
	if td.NetworkMode != types.NetworkModeAwsvpc {
		return out
	}
	for _, e := range t.Connect.Endpoints {
		if e.Ingress != 0 {
			out.Ingress = append(out.Ingress, acs.ConnectIngress{Port: uint16(e.Ingress), ContainerPort: uint16(e.ContainerPort)})
		}
	}
	return out
}

// proxyContainer returns what the container of a service's proxies would be called on AWS, which their log streams have in their names. On AWS
// its end is random.
func proxyContainer(service string) string {
	const random = 5
	sum := sha256.Sum256([]byte(service))
	return "ecs-service-connect-" + hex.EncodeToString(sum[:])[:random]
}

// connectDrain is how long a task that others reach goes on after it has left its endpoints, so that all proxies know before it stops.
const connectDrain = 1500 * time.Millisecond

// drainsUntil returns until when a task's stop is kept from its node, or the zero time.
func drainsUntil(t *state.Task) time.Time {
	if t.Connect == nil || len(t.Connect.Endpoints) == 0 || aws.ToString(t.LastStatus) != "RUNNING" || t.StoppingAt == nil {
		return time.Time{}
	}
	return t.StoppingAt.Add(connectDrain)
}
