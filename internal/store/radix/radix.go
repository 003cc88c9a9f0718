// Package radix is an ordered map from text to values that is cheap to snapshot: later changes leave a copy of a Tree alone. The
// store's tables and indexes are such trees. Reading takes no lock and makes no garbage. A change copies the nodes on its way,
// unless the same edit made them.
package radix

import (
	"iter"
	"slices"
	"strings"
)

// Tree is one version of a map. The zero Tree is empty.
type Tree[V any] struct {
	root *node[V]
	size int
}

// node holds the keys with a common beginning. The root's prefix is empty.
type node[V any] struct {
	prefix string // what its keys share after the prefix of the node above
	edges  []edge[V]
	value  V
	filled bool   // the key that ends here has a value
	edit   uint64 // the one that made it, and may change it in place
}

type edge[V any] struct {
	label byte // the first of the node's prefix
	node  *node[V]
}

// Len is the number of keys.
func (t Tree[V]) Len() int { return t.size }

// Version is equal for two versions of a tree only if nothing has changed between them.
func (t Tree[V]) Version() any { return t.root }

// Get returns the key's value, and whether there is one.
func (t Tree[V]) Get(key string) (value V, ok bool) {
	n := t.root
	if n == nil {
		return value, false
	}
	for key != "" {
		if n = n.child(key[0]); n == nil || !strings.HasPrefix(key, n.prefix) {
			return value, false
		}
		key = key[len(n.prefix):]
	}
	return n.value, n.filled
}

// All returns every value, ordered by key.
func (t Tree[V]) All() iter.Seq[V] {
	return func(yield func(V) bool) {
		if t.root != nil {
			t.root.walk(yield)
		}
	}
}

// After returns the values of the keys after the given one, ordered by key.
func (t Tree[V]) After(key string) iter.Seq[V] {
	from := key + "\x00" // the first key that can come after it
	return func(yield func(V) bool) {
		if t.root != nil {
			t.root.walkFrom(from, yield)
		}
	}
}

// Put sets the key's value. It changes nodes that the same edit made in place, so after copying a tree, go on with another edit.
// No edit is 0.
func (t *Tree[V]) Put(edit uint64, key string, value V) {
	if t.root == nil {
		t.root = &node[V]{edit: edit}
	}
	root, added := t.root.put(edit, key, value)
	t.root = root
	if added {
		t.size++
	}
}

// Delete removes the key, if present.
func (t *Tree[V]) Delete(edit uint64, key string) {
	if t.root == nil {
		return
	}
	root, removed := t.root.delete(edit, key)
	if !removed {
		return
	}
	t.root = root
	if t.size--; t.size == 0 {
		t.root = nil
	}
}

// search finds the place of a label among the edges.
func (n *node[V]) search(label byte) (place int, found bool) {
	for i := range n.edges {
		if l := n.edges[i].label; l >= label {
			return i, l == label
		}
	}
	return len(n.edges), false
}

func (n *node[V]) child(label byte) *node[V] {
	if i, found := n.search(label); found {
		return n.edges[i].node
	}
	return nil
}

// writable returns the node itself if the edit made it, else a copy.
func (n *node[V]) writable(edit uint64) *node[V] {
	if n.edit == edit && edit != 0 {
		return n
	}
	c := *n
	c.edges = slices.Clone(n.edges)
	c.edit = edit
	return &c
}

func (n *node[V]) put(edit uint64, key string, value V) (changed *node[V], added bool) {
	n = n.writable(edit)
	if key == "" {
		added = !n.filled
		n.value = value
		n.filled = true
		return n, added
	}
	i, found := n.search(key[0])
	if !found {
		leaf := &node[V]{prefix: key, value: value, filled: true, edit: edit}
		n.edges = slices.Insert(n.edges, i, edge[V]{key[0], leaf})
		return n, true
	}
	child := n.edges[i].node
	common := commonPrefix(child.prefix, key)
	if common < len(child.prefix) {
		child = child.split(edit, common)
	}
	n.edges[i].node, added = child.put(edit, key[common:], value)
	return n, added
}

// split puts a node above this one, with the first part of its prefix.
func (n *node[V]) split(edit uint64, at int) *node[V] {
	above := &node[V]{prefix: n.prefix[:at], edit: edit}
	n = n.writable(edit)
	n.prefix = n.prefix[at:]
	above.edges = []edge[V]{{n.prefix[0], n}}
	return above
}

func (n *node[V]) delete(edit uint64, key string) (changed *node[V], removed bool) {
	if key == "" {
		if !n.filled {
			return n, false
		}
		n = n.writable(edit)
		var none V
		n.value = none
		n.filled = false
		return n, true
	}
	i, found := n.search(key[0])
	if !found || !strings.HasPrefix(key, n.edges[i].node.prefix) {
		return n, false
	}
	child := n.edges[i].node
	child, removed = child.delete(edit, key[len(child.prefix):])
	if !removed {
		return n, false
	}
	n = n.writable(edit)
	switch {
	case !child.filled && len(child.edges) == 0:
		n.edges = slices.Delete(n.edges, i, i+1)
	case !child.filled && len(child.edges) == 1:
		n.edges[i].node = child.join(edit)
	default:
		n.edges[i].node = child
	}
	return n, true
}

// join replaces a node without a value by its only child.
func (n *node[V]) join(edit uint64) *node[V] {
	child := n.edges[0].node.writable(edit)
	child.prefix = n.prefix + child.prefix
	return child
}

func (n *node[V]) walk(yield func(V) bool) bool {
	if n.filled && !yield(n.value) {
		return false
	}
	for i := range n.edges {
		if !n.edges[i].node.walk(yield) {
			return false
		}
	}
	return true
}

// walkFrom walks the keys that are not before the given one, which is what follows the node's own.
func (n *node[V]) walkFrom(key string, yield func(V) bool) bool {
	if key == "" {
		return n.walk(yield)
	}
	i, _ := n.search(key[0])
	for ; i < len(n.edges); i++ {
		child := n.edges[i].node
		common := commonPrefix(child.prefix, key)
		switch {
		case common == len(child.prefix):
			if !child.walkFrom(key[common:], yield) {
				return false
			}
		case common == len(key) || child.prefix[common] > key[common]:
			if !child.walk(yield) {
				return false
			}
		}
	}
	return true
}

func commonPrefix(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}
