package peers

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/acs"
)

const layer = "sha256:aa"

// world is a book, a clock, and nodes that were announced.
type world struct {
	*Book
	time   time.Time
	tokens map[string]string
}

func newWorld(t *testing.T, nodes ...string) *world {
	t.Helper()
	w := &world{time: time.Unix(1_700_000_000, 0), tokens: map[string]string{}}
	w.Book = New(func() time.Time { return w.time })
	for _, n := range nodes {
		w.announce(n)
	}
	return w
}

// announce announces a node, whose name begins with its cluster's.
func (w *world) announce(node string, layers ...string) {
	w.tokens[node] = w.Announce(node[:1], acs.PeerAnnouncement{
		ContainerInstance: node, Address: node + ":1", Certificate: "of " + node, Key: []byte(node), Layers: layers,
	}).Token
}

// from returns where a node is sent for the layer; "" is the registry.
func (w *world) from(node string, failed bool) string {
	w.time = w.time.Add(time.Millisecond)
	s := w.Source(w.tokens[node], layer, failed)
	if s == nil {
		return ""
	}
	host, _, _ := strings.Cut(strings.TrimPrefix(s.URL, "https://"), ":")
	if s.Certificate != "of "+host {
		return "a wrong certificate"
	}
	return host
}

// TestOnceFromTheRegistry: of ten nodes that want a layer at once, one is sent to the registry; nobody sends it to more than a few.
func TestOnceFromTheRegistry(t *testing.T) {
	var nodes []string
	for i := range 10 {
		nodes = append(nodes, fmt.Sprintf("a%d", i))
	}
	w := newWorld(t, nodes...)
	sends := map[string]int{}
	for _, n := range nodes {
		sends[w.from(n, false)]++
	}
	if sends[""] != 1 {
		t.Errorf("the registry sends it %d times", sends[""])
	}
	for n, times := range sends {
		if times > 2 {
			t.Errorf("%s sends it %d times", n, times)
		}
	}
}

func TestSources(t *testing.T) {
	type step struct {
		node   string
		failed bool
		want   string
	}
	for _, c := range []struct {
		name  string
		steps []step
	}{
		{"another cluster's nodes send nothing", []step{{"a1", false, ""}, {"b1", false, ""}, {"b2", false, "b1"}}},
		{"who failed isn't asked again", []step{{"a1", false, ""}, {"a2", false, "a1"}, {"a2", true, ""}, {"a3", false, "a2"}}},
		{"nobody waits for himself", []step{{"a1", false, ""}, {"a2", false, "a1"}, {"a1", false, ""}, {"a1", true, ""}}},
		{"nor in a ring", []step{{"a1", false, ""}, {"a2", false, "a1"}, {"a3", false, "a2"}, {"a1", false, ""}}},
		{"no node", []step{{"x", false, ""}, {"x", false, ""}, {"a1", false, ""}}},
	} {
		w := newWorld(t, "a1", "a2", "a3", "b1", "b2")
		for i, s := range c.steps {
			if got := w.from(s.node, s.failed); got != s.want {
				t.Errorf("%s, step %d: %s is sent to %q, not to %q", c.name, i, s.node, got, s.want)
			}
		}
	}
}

// TestAnnouncements: a node is known by what it announces, keeps its token, and is forgotten once it's silent. Another process is another peer.
func TestAnnouncements(t *testing.T) {
	w := newWorld(t, "a1", "a2")
	w.announce("a1", layer)
	if got := w.from("a2", false); got != "a1" {
		t.Errorf("a2 is sent to %q", got)
	}
	before := w.tokens["a1"]
	w.announce("a1")
	if w.tokens["a1"] != before {
		t.Error("the token has changed")
	}
	w.announce("a2", layer) // it has come
	if got := w.from("a1", false); got != "a2" {
		t.Errorf("a1 is sent to %q", got)
	}
	w.time = w.time.Add(silence + time.Second)
	w.announce("a1")
	if got := w.from("a1", false); got != "" {
		t.Errorf("a1 is sent to %q, which is silent", got)
	}
	w.Announce("a", acs.PeerAnnouncement{ContainerInstance: "a1", Certificate: "another", Key: []byte("k")})
	if s := w.Source(before, layer, false); s != nil {
		t.Errorf("an old token is good for %v", s)
	}
	w.announce("a3")
	if got := w.from("a3", false); got != "" {
		t.Errorf("a3 is sent to %q, whose layers are gone with its process", got)
	}
}

// TestTickets: a ticket is made with the key of whom it's for.
func TestTickets(t *testing.T) {
	w := newWorld(t, "a1", "a2")
	w.from("a1", false)
	s := w.Source(w.tokens["a2"], layer, false)
	want := acs.PeerTicket([]byte("a1"), layer, w.time.Add(ticketLife).Unix())
	if !slices.Contains(strings.FieldsFunc(s.URL, func(r rune) bool { return r == '=' || r == '&' }), want) {
		t.Errorf("%s isn't with the ticket %s", s.URL, want)
	}
}
