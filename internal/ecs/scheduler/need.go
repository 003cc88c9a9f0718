package scheduler

import (
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ecs/placement"
	"github.com/pintle/pintle/internal/state"
)

// Need is what a task needs of an instance.
type Need struct {
	Reserved state.Resources
	GPUs     []placement.ContainerGPUs
}

// NeedOf computes what a task needs: its own cpu and memory if it has them, or else the sum over its containers, with
// their overrides. The definition and the overrides have been validated.
func NeedOf(td *types.TaskDefinition, o *types.TaskOverride) Need {
	var n Need
	for _, c := range td.ContainerDefinitions {
		c = overridden(c, o)
		n.Reserved.CPU += int64(c.Cpu)
		n.Reserved.MemoryMiB += reservedMemory(c)
		if g := gpus(c.ResourceRequirements); g > 0 {
			n.GPUs = append(n.GPUs, placement.ContainerGPUs{Container: *c.Name, Count: g})
		}
		addPorts(&n.Reserved, td.NetworkMode, c.PortMappings)
	}
	if cpu := first(o.Cpu, td.Cpu); cpu > 0 {
		n.Reserved.CPU = cpu
	}
	if memory := first(o.Memory, td.Memory); memory > 0 {
		n.Reserved.MemoryMiB = memory
	}
	return n
}

// overridden returns a container with the sizes that RunTask overrides.
func overridden(c types.ContainerDefinition, o *types.TaskOverride) types.ContainerDefinition {
	for _, v := range o.ContainerOverrides {
		if aws.ToString(v.Name) != *c.Name {
			continue
		}
		if v.Cpu != nil {
			c.Cpu = *v.Cpu
		}
		if v.Memory != nil {
			c.Memory = v.Memory
		}
		if v.MemoryReservation != nil {
			c.MemoryReservation = v.MemoryReservation
		}
		if v.ResourceRequirements != nil {
			c.ResourceRequirements = v.ResourceRequirements
		}
	}
	return c
}

// reservedMemory returns what a container reserves: its soft limit, or else its hard limit.
func reservedMemory(c types.ContainerDefinition) int64 {
	if c.MemoryReservation != nil {
		return int64(*c.MemoryReservation)
	}
	return int64(aws.ToInt32(c.Memory))
}

func gpus(requirements []types.ResourceRequirement) int {
	for _, r := range requirements {
		if r.Type == types.ResourceTypeGpu {
			n, _ := strconv.Atoi(aws.ToString(r.Value))
			return n
		}
	}
	return 0
}

// addPorts adds the instance ports that a container takes. In awsvpc mode the task has its own address, and takes none.
func addPorts(r *state.Resources, mode types.NetworkMode, mappings []types.PortMapping) {
	if mode == types.NetworkModeAwsvpc {
		return
	}
	for _, p := range mappings {
		port := uint16(aws.ToInt32(p.HostPort))
		switch {
		case port == 0: // the node picks one
		case p.Protocol == types.TransportProtocolUdp:
			r.PortsUDP = append(r.PortsUDP, port)
		default:
			r.PortsTCP = append(r.PortsTCP, port)
		}
	}
}

func first(sizes ...*string) int64 {
	for _, s := range sizes {
		if n, err := strconv.ParseInt(aws.ToString(s), 10, 64); err == nil && n > 0 {
			return n
		}
	}
	return 0
}
