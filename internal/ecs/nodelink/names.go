package nodelink

import (
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/servicediscovery/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// The names of Cloud Map, which nodes answer to their tasks, and the endpoints of Service Connect, which their proxies reach.

const (
	// namesPause is the least time between two looks for names that have changed, so that tasks that come and go together are told together.
	namesPause = 200 * time.Millisecond
	// maxNamed is how many instances one message tells, and of one service: some 2 MB.
	maxNamed = 20000
)

// toldNames are the rows that the node was told of. Rows never change.
type toldNames struct {
	namespaces map[string]*state.Namespace
	services   map[string]*state.DiscoveryService
	balancers  map[string]acs.NamedService
	complete   bool
	at         time.Time // when there was something to tell
	late       bool
}

// ownAgent is the hash by which Pintle's agent says what it is. Amazon's answers no names.
const ownAgent = "pintle"

// sendNames tells the node the names that have changed since it was told. A node that has just connected is told all. Zones aren't kept
// waiting: containers ask the node for names only if they begin after the first one.
func (s *session) sendNames(ctx context.Context, v *state.View) error {
	if aws.ToString(s.version.AgentHash) != ownAgent {
		return nil
	}
	n := &s.names
	zones, isUrgent := n.zones(v)
	zone, balancers := balancers(v)
	if zone != "" {
		zones = append(zones, acs.Zone{Name: zone, TTL: absenceTTL})
	}
	isUrgent = isUrgent || !n.complete || (len(balancers) > 0) != (len(n.balancers) > 0)
	changed, gone := n.compare(v)
	moved, left := n.compareBalancers(balancers)
	gone = append(gone, left...)
	isNews := isUrgent || len(changed)+len(moved)+len(gone) > 0
	now := s.link.opts.Now()
	if n.late = isNews && !isUrgent && now.Sub(n.at) < namesPause; n.late || !isNews {
		return nil
	}
	n.at = now
	m := &acs.PintleNames{Zones: zones, Gone: gone, Services: moved}
	count := 0
	for i, row := range changed {
		service := named(v, row)
		m.Services = append(m.Services, service)
		if count += len(service.Instances); count >= maxNamed && i < len(changed)-1 {
			if err := s.send(ctx, m); err != nil {
				return err
			}
			m = &acs.PintleNames{Zones: zones}
			count = 0
		}
	}
	m.Complete = !n.complete
	if err := s.send(ctx, m); err != nil {
		return err
	}
	n.note(v, changed, gone)
	n.balancers = balancers
	return nil
}

// zones returns the zones, and reports whether they are news.
func (n *toldNames) zones(v *state.View) (zones []acs.Zone, news bool) {
	zones = []acs.Zone{}
	for row := range v.Namespaces.All() {
		news = news || n.namespaces[row.ID] != row
		if row.HasNames() {
			zones = append(zones, acs.Zone{Name: row.Name, TTL: uint32(row.TTL)})
		}
	}
	return zones, news || len(n.namespaces) != v.Namespaces.Len()
}

// compare returns the services that the node hasn't been told of as they are, and the ids of those that are gone.
func (n *toldNames) compare(v *state.View) (changed []*state.DiscoveryService, gone []string) {
	there := 0
	for row := range v.DiscoveryServices.All() {
		if row.DNS == nil && row.Endpoint == nil {
			continue
		}
		there++
		if n.services[row.ID] != row {
			changed = append(changed, row)
		}
	}
	if len(n.services) == there-newTo(n.services, changed) {
		return changed, nil
	}
	for id := range n.services {
		if v.DiscoveryServices.Get(id) == nil {
			gone = append(gone, id)
		}
	}
	return changed, gone
}

// compareBalancers returns the load balancers that aren't where the node was told that they are, and the ids of those that are nowhere now.
func (n *toldNames) compareBalancers(balancers map[string]acs.NamedService) (moved []acs.NamedService, gone []string) {
	for id, b := range balancers {
		if told, ok := n.balancers[id]; !ok || !slices.Equal(told.Instances, b.Instances) {
			moved = append(moved, b)
		}
	}
	for id := range n.balancers {
		if _, ok := balancers[id]; !ok {
			gone = append(gone, id)
		}
	}
	return moved, gone
}

// newTo counts the services that nobody was told of before.
func newTo(told map[string]*state.DiscoveryService, changed []*state.DiscoveryService) (count int) {
	for _, row := range changed {
		if told[row.ID] == nil {
			count++
		}
	}
	return count
}

// note notes what the node has been told.
func (n *toldNames) note(v *state.View, changed []*state.DiscoveryService, gone []string) {
	n.complete = true
	n.namespaces = map[string]*state.Namespace{}
	for row := range v.Namespaces.All() {
		n.namespaces[row.ID] = row
	}
	if n.services == nil {
		n.services = map[string]*state.DiscoveryService{}
	}
	for _, row := range changed {
		n.services[row.ID] = row
	}
	for _, id := range gone {
		delete(n.services, id)
	}
}

// named returns a service as nodes answer its name.
func named(v *state.View, row *state.DiscoveryService) acs.NamedService {
	out := acs.NamedService{
		ID:      row.ID,
		Name:    fullName(v, row),
		Records: map[string]uint32{},
	}
	if row.DNS != nil {
		out.Weighted = row.DNS.RoutingPolicy == types.RoutingPolicyWeighted
		for _, r := range row.DNS.DnsRecords {
			out.Records[string(r.Type)] = uint32(aws.ToInt64(r.TTL))
		}
	}
	for i := range v.InstancesOf(row.ID) {
		if len(out.Instances) == maxNamed {
			break
		}
		if row.Endpoint != nil && i.Task == "" {
			continue // a proxy passes requests to nobody but tasks
		}
		port, _ := strconv.ParseUint(i.Attributes[state.AttributePort], 10, 16) //nolint:errcheck // without records for it, it may be anything
		out.Instances = append(out.Instances, acs.NamedInstance{
			ID:        i.ID,
			IPv4:      i.Attributes[state.AttributeIPv4],
			IPv6:      i.Attributes[state.AttributeIPv6],
			CNAME:     i.Attributes[state.AttributeCNAME],
			Port:      uint16(port),
			Unhealthy: v.IsUnhealthy(row, i),
		})
	}
	return out
}

// fullName returns a service's name below that of its namespace.
func fullName(v *state.View, row *state.DiscoveryService) string {
	n := v.Namespaces.Get(row.NamespaceID)
	switch {
	case n == nil:
		return row.Name
	case row.Name == ".":
		return n.Name
	}
	return row.Name + "." + n.Name
}
