package ecs

import (
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// maxPortRanges is how many ranges of ports a container may map: API_PortMapping.
const maxPortRanges = 100

// portRange is a range of a container's ports that is mapped, of one or of more.
type portRange struct {
	protocol    types.TransportProtocol
	first, last int
}

// checkPortRanges checks a container's ranges of ports (containerPortRange): API_PortMapping.
func checkPortRanges(td *types.TaskDefinition, c *types.ContainerDefinition) error {
	hasRange := func(p types.PortMapping) bool { return p.ContainerPortRange != nil }
	if !slices.ContainsFunc(c.PortMappings, hasRange) {
		return nil
	}
	if m := td.NetworkMode; m != "" && m != types.NetworkModeBridge && m != types.NetworkModeAwsvpc {
		return clientError("Invalid setting for container '%s'. containerPortRange needs the network mode bridge or awsvpc, not %s.", *c.Name, m)
	}
	var mapped []portRange
	ranges := 0
	for _, p := range c.PortMappings {
		r := portRange{p.Protocol, int(aws.ToInt32(p.ContainerPort)), int(aws.ToInt32(p.ContainerPort))}
		if hasRange(p) {
			var ok bool
			switch r.first, r.last, ok = parsePortRange(*p.ContainerPortRange); {
			case !ok:
				return clientError("Invalid setting for container '%s'. containerPortRange must be two ports between 1 and 65535, the first less "+
					"than the last, such as 8000-8010, not %q.", *c.Name, *p.ContainerPortRange)
			case p.ContainerPort != nil || p.HostPort != nil:
				return clientError("Invalid setting for container '%s'. A port mapping with a containerPortRange has neither containerPort nor "+
					"hostPort.", *c.Name)
			}
			ranges++
		}
		mapped = append(mapped, r)
	}
	if ranges > maxPortRanges {
		return clientError("Invalid setting for container '%s'. It has %d containerPortRanges, at most %d are allowed.", *c.Name, ranges, maxPortRanges)
	}
	return checkOverlaps(*c.Name, mapped)
}

// checkOverlaps refuses a port that two mappings of a container have, of which one is a range.
func checkOverlaps(container string, mapped []portRange) error {
	for i, a := range mapped {
		for _, b := range mapped[:i] {
			oneIsRange := a.first != a.last || b.first != b.last
			if oneIsRange && a.protocol == b.protocol && a.first <= b.last && b.first <= a.last {
				return clientError("Invalid setting for container '%s'. The port %d/%s is in two port mappings, of which one is a range.",
					container, max(a.first, b.first), a.protocol)
			}
		}
	}
	return nil
}

func parsePortRange(s string) (first, last int, ok bool) {
	a, b, found := strings.Cut(s, "-")
	from, err := strconv.ParseUint(a, 10, 16)
	to, toErr := strconv.ParseUint(b, 10, 16)
	return int(from), int(to), found && err == nil && toErr == nil && 0 < from && from < to
}
