// Package peers knows which nodes have which layers of images, or are fetching them, so that the registry can send a node that wants one to a
// neighbour in its cluster. It keeps this in memory: nodes announce themselves again and again, and one that is silent is forgotten. Layers
// themselves never pass through here. plane hands announcements and the registry's questions to it.
package peers

import (
	"crypto/rand"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/acs"
)

const (
	// silence is after how long without an announcement a peer is forgotten. They come twice a minute.
	silence = 90 * time.Second
	// ticketLife is how long a node may take to begin with what it was sent to a peer for.
	ticketLife = time.Minute
)

// Book is who has what.
type Book struct {
	now func() time.Time

	mu    sync.Mutex
	peers map[string]*peer // by container instance
}

type peer struct {
	acs.PeerAnnouncement
	cluster string
	token   string
	seen    time.Time
	layers  map[string]*copyOf // by digest
}

// copyOf is a layer at a peer.
type copyOf struct {
	from  *peer // where it was sent for it; nil is the registry, or nobody knows
	sent  int   // how many were sent here for it
	since time.Time
}

// New returns an empty book.
func New(now func() time.Time) *Book { return &Book{now: now, peers: map[string]*peer{}} }

// Announce notes what a node says of itself, and returns its token.
func (b *Book) Announce(cluster string, a acs.PeerAnnouncement) acs.PeerWelcome {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.peers[a.ContainerInstance]
	if p == nil || p.cluster != cluster || p.Certificate != a.Certificate { // another process has none of what is on its way
		p = &peer{cluster: cluster, token: rand.Text(), layers: map[string]*copyOf{}}
		b.peers[a.ContainerInstance] = p
	}
	p.PeerAnnouncement = a
	p.seen = b.now()
	for _, digest := range a.Layers {
		if p.layers[digest] == nil {
			p.layers[digest] = &copyOf{since: p.seen}
		}
		p.layers[digest].from = nil // it waits for nobody any more
	}
	for instance, other := range b.peers {
		if p.seen.Sub(other.seen) > silence {
			delete(b.peers, instance)
		}
	}
	return acs.PeerWelcome{Token: p.token}
}

// Source is where a layer can be fetched.
type Source struct {
	URL         string
	Certificate string
}

// Source returns where in its cluster a node fetches a layer, which it has or fetches from then on; nil is the registry. The caller has made sure
// that the node may have it. Nodes are sent to those that sent it to the fewest others, and to those that are fetching it as well: so the registry
// sends a layer once. If that failed, it's the registry: whoever was asked may be waiting for the node itself.
func (b *Book) Source(token, digest string, failed bool) *Source {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.withTokenLocked(token)
	if p == nil {
		return nil
	}
	before := p.layers[digest]
	mine := &copyOf{since: b.now()}
	p.layers[digest] = mine
	if failed {
		if before != nil && before.from != nil {
			delete(before.from.layers, digest)
		}
		return nil
	}
	best := b.bestLocked(p, digest)
	if best == nil {
		return nil
	}
	best.layers[digest].sent++
	mine.from = best
	expires := b.now().Add(ticketLife).Unix()
	query := url.Values{"expires": {strconv.FormatInt(expires, 10)}, "ticket": {acs.PeerTicket(best.Key, digest, expires)}}
	at := url.URL{Scheme: "https", Host: best.Address, Path: "/layers/" + digest, RawQuery: query.Encode()}
	return &Source{URL: at.String(), Certificate: best.Certificate}
}

func (b *Book) withTokenLocked(token string) *peer {
	for _, p := range b.peers {
		if p.token == token && token != "" {
			return p
		}
	}
	return nil
}

// bestLocked returns the peer that should send a layer to another one, or nil if none has it.
func (b *Book) bestLocked(to *peer, digest string) *peer {
	var all []*peer
	for _, p := range b.peers {
		if p != to && p.cluster == to.cluster && p.layers[digest] != nil && b.now().Sub(p.seen) <= silence && !comesFrom(p, to, digest) {
			all = append(all, p)
		}
	}
	if len(all) == 0 {
		return nil
	}
	return slices.MinFunc(all, func(x, y *peer) int {
		a, b := x.layers[digest], y.layers[digest]
		if a.sent != b.sent {
			return a.sent - b.sent
		}
		return a.since.Compare(b.since)
	})
}

// comesFrom reports whether a peer was sent to another one for a layer, or to one that was: it can't be that one's source.
func comesFrom(p, other *peer, digest string) bool {
	for range 1000 { // more than a chain is long
		c := p.layers[digest]
		if c == nil || c.from == nil {
			return false
		}
		if p = c.from; p == other {
			return true
		}
	}
	return true
}
