// Package nameserver answers the names of Cloud Map to a node's own tasks, and asks the machine's name servers for all others. The node's
// agent tells it what the control plane says, and opens a socket for it in each network namespace of its containers. It goes on with what it
// knows while the control plane is away, and knows it again after a restart of the agent. It's no name server for the rest of the world.
package nameserver

import (
	"errors"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/file"
)

// Names are what the node has been told. The methods may be called from any goroutine.
type Names struct {
	path  string
	known atomic.Pointer[directory]

	mu       sync.Mutex // held to learn
	zones    []acs.Zone
	services map[string]acs.NamedService // by id
	heard    map[string]bool             // the services that the open connection has told of
	changed  chan struct{}               // closed and replaced when something was learned
}

// kept is what the file has.
type kept struct {
	Zones    []acs.Zone
	Services []acs.NamedService
	// Unused means that there has been no zone yet, but only endpoints of Service Connect.
	Unused bool `json:",omitempty"`
}

// Load returns the names that the file at a path has, or none.
func Load(path string) (*Names, error) {
	n := &Names{path: path, services: map[string]acs.NamedService{}, heard: map[string]bool{}, changed: make(chan struct{})}
	var k kept
	err := file.ReadJSON(path, &k)
	if errors.Is(err, os.ErrNotExist) {
		return n, nil
	}
	n.zones = k.Zones
	for _, s := range k.Services {
		n.services[s.ID] = s
	}
	if !k.Unused {
		n.known.Store(newDirectory(n.zones, n.services))
	}
	return n, err
}

// InUse reports whether there is, or has been, a zone on this node. From then on its containers ask for names here, as long as they run.
func (n *Names) InUse() bool { return n.known.Load() != nil }

// Connected begins a connection: what it tells is all that there is, once it's complete.
func (n *Names) Connected() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.heard = map[string]bool{}
}

// Learn takes what the control plane says, at once, and writes it down.
func (n *Names) Learn(m *acs.PintleNames) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.zones = m.Zones
	for _, s := range m.Services {
		n.services[s.ID] = s
		n.heard[s.ID] = true
	}
	for _, id := range m.Gone {
		delete(n.services, id)
	}
	if m.Complete {
		for id := range n.services {
			if !n.heard[id] {
				delete(n.services, id)
			}
		}
	}
	close(n.changed)
	n.changed = make(chan struct{})
	if len(n.zones) > 0 || n.InUse() {
		n.known.Store(newDirectory(n.zones, n.services))
	}
	k := kept{Zones: n.zones, Unused: !n.InUse()}
	for _, s := range n.services {
		k.Services = append(k.Services, s)
	}
	return file.WriteJSON(n.path, k, false) // after a crash of the machine there are no tasks to ask for them
}

// Instances returns the instances of the services with these ids, and a channel that is closed once something has been learned since.
func (n *Names) Instances(ids []string) (of map[string][]acs.NamedInstance, changed <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	of = map[string][]acs.NamedInstance{}
	for _, id := range ids {
		of[id] = n.services[id].Instances
	}
	return of, n.changed
}

// directory is all names at one moment. It never changes.
type directory struct {
	zones map[string]uint32 // the TTL of negative answers
	names map[string]entry  // in lower case, without a dot at the end
}

// entry is what a name stands for: a service, or one of its instances. Without either, names below it are there.
type entry struct {
	service   *acs.NamedService
	instances []acs.NamedInstance
}

func newDirectory(zones []acs.Zone, services map[string]acs.NamedService) *directory {
	d := &directory{zones: map[string]uint32{}, names: map[string]entry{}}
	for _, z := range zones {
		d.zones[strings.ToLower(z.Name)] = z.TTL
		d.names[strings.ToLower(z.Name)] = entry{}
	}
	for _, s := range services {
		if len(s.Instances) == 0 || len(s.Records) == 0 {
			continue // it has no records, so the name isn't there
		}
		name := strings.ToLower(s.Name)
		d.add(name, entry{&s, s.Instances})
		if _, hasHosts := s.Records["SRV"]; hasHosts {
			for i := range s.Instances {
				d.add(strings.ToLower(s.Instances[i].ID)+"."+name, entry{&s, s.Instances[i : i+1]})
			}
		}
	}
	return d
}

// add adds a name, and those between it and its zone.
func (d *directory) add(name string, e entry) {
	if _, ok := d.zoneOf(name); !ok {
		return
	}
	d.names[name] = e
	for {
		_, parent, ok := strings.Cut(name, ".")
		if _, known := d.names[parent]; !ok || known {
			return
		}
		d.names[parent] = entry{}
		name = parent
	}
}

// zoneOf returns the closest zone that a name is in, or false if it's in none.
func (d *directory) zoneOf(name string) (zone string, ok bool) {
	for {
		if _, is := d.zones[name]; is {
			return name, true
		}
		if _, name, ok = strings.Cut(name, "."); !ok {
			return "", false
		}
	}
}
