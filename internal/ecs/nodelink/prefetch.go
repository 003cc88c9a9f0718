package nodelink

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/state"
)

const (
	// prefetchPause is the least time between two looks for images that a node's next tasks may have.
	prefetchPause = 2 * time.Second
	// maxPrefetched bounds the images that a node is told of.
	maxPrefetched = 20
)

// toldImages are the images that a node was told of.
type toldImages struct {
	encoded string
	at      time.Time // of the last look
	late    bool
}

// sendPrefetch tells a node that wants to know which images its next tasks may have, where that has changed.
func (s *session) sendPrefetch(ctx context.Context, v *state.View) error {
	row := v.ContainerInstances.Get(s.instance)
	if row == nil || !hasAttribute(row, acs.Prefetching) {
		return nil
	}
	now, p := s.link.opts.Now(), &s.prefetch
	if p.late = now.Sub(p.at) < prefetchPause; p.late {
		return nil
	}
	p.at = now
	m := &acs.PintlePrefetch{Images: nextImages(v, row)}
	for i := range m.Images {
		image := &m.Images[i]
		image.Image, image.RegistryAuthentication = s.link.opts.mirror(image.Image, image.RegistryAuthentication)
	}
	encoded, err := json.Marshal(m)
	if err != nil || string(encoded) == p.encoded || p.encoded == "" && len(m.Images) == 0 {
		return err
	}
	p.encoded = string(encoded)
	return s.send(ctx, m)
}

func hasAttribute(row *state.ContainerInstance, name string) bool {
	return slices.ContainsFunc(row.Attributes, func(a types.Attribute) bool { return aws.ToString(a.Name) == name })
}

// nextImages returns the images of the services whose next task a node could take, those of the newest deployments first.
func nextImages(v *state.View, row *state.ContainerInstance) []acs.PrefetchImage {
	out := []acs.PrefetchImage{}
	if aws.ToString(row.Status) != "ACTIVE" {
		return out
	}
	var services []*state.Service
	for s := range v.Services.By(state.ServicesByCluster, row.ClusterArn) {
		if *s.Status == state.ServiceActive && len(s.Deployments) > 0 && (s.DesiredCount > 0 || s.SchedulingStrategy == types.SchedulingStrategyDaemon) {
			services = append(services, s)
		}
	}
	slices.SortFunc(services, func(a, b *state.Service) int {
		return cmp.Or(b.Deployments[0].CreatedAt.Compare(*a.Deployments[0].CreatedAt), strings.Compare(*a.ServiceArn, *b.ServiceArn))
	})
	for _, s := range services {
		td := v.TaskDefinitions.Get(*s.Deployments[0].TaskDefinition)
		if td == nil || !couldTake(v, row, s, td) {
			continue
		}
		for _, image := range imagesOf(v, s, td) {
			isSame := func(i acs.PrefetchImage) bool { return i.Image == image.Image }
			if len(out) < maxPrefetched && !slices.ContainsFunc(out, isSame) {
				out = append(out, image)
			}
		}
	}
	return out
}

// imagesOf returns the images of a service's PRIMARY deployment that nodes may pull as themselves: neither those with credentials of their own
// nor what the nodes have as files.
func imagesOf(v *state.View, s *state.Service, td *state.TaskDefinition) (out []acs.PrefetchImage) {
	p := acs.Task{}
	for _, c := range td.ContainerDefinitions {
		if c.RepositoryCredentials == nil && !strings.HasPrefix(aws.ToString(c.Image), "rootfs:") && !strings.HasPrefix(aws.ToString(c.Image), "oci-layout:") {
			p.Containers = append(p.Containers, acs.Container{
				Name:                   *c.Name,
				Image:                  aws.ToString(c.Image),
				RegistryAuthentication: registryAuthentication(c, *s.ServiceArn, false),
			})
		}
	}
	pinImages(&p, v.ServiceRevisions.Get(s.Deployments[0].ServiceRevisionArn))
	for _, c := range p.Containers {
		out = append(out, acs.PrefetchImage{Image: c.Image, RegistryAuthentication: c.RegistryAuthentication})
	}
	return out
}

// couldTake reports whether a node may get a service's next task: it suits the task, and has room for one now, or once those that the service
// has there are gone. Which node gets it isn't known before it's placed.
func couldTake(v *state.View, row *state.ContainerInstance, s *state.Service, td *state.TaskDefinition) bool {
	d := s.Deployments[0]
	providers := d.CapacityProviderStrategy
	isMember := func(i types.CapacityProviderStrategyItem) bool {
		return aws.ToString(i.CapacityProvider) == aws.ToString(row.CapacityProviderName)
	}
	if len(providers) > 0 && !slices.ContainsFunc(providers, isMember) {
		return false
	}
	return scheduler.Suits(v, row, td, s.PlacementConstraints) && hasRoom(v, row, s, td)
}

func hasRoom(v *state.View, row *state.ContainerInstance, s *state.Service, td *state.TaskDefinition) bool {
	need := scheduler.NeedOf(&td.TaskDefinition, &types.TaskOverride{})
	wanted, free := 0, 0
	for _, g := range need.GPUs {
		wanted += g.Count
	}
	taken := map[string]bool{}
	cpu, memory := row.Capacity.CPU, row.Capacity.MemoryMiB
	for t := range v.Tasks.By(state.TasksByInstance, *row.ContainerInstanceArn) {
		if !t.Holds() || t.ServiceArn == *s.ServiceArn {
			continue
		}
		cpu -= t.Reserved.CPU
		memory -= t.Reserved.MemoryMiB
		for _, g := range t.GPUs {
			taken[g.ID] = true
		}
	}
	for _, g := range row.GPUs {
		if !taken[g.ID] && g.Fault == nil {
			free++
		}
	}
	return need.Reserved.CPU <= cpu && need.Reserved.MemoryMiB <= memory && wanted <= free
}
