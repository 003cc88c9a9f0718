package state

import (
	"slices"
	"time"

	"github.com/pintle/pintle/internal/store"
)

// JoinToken lets machines get a key of their own, with which they register as container instances. Its secret isn't kept.
type JoinToken struct {
	ID        string
	Hash      []byte // the SHA-256 of its secret
	CreatedAt time.Time
	ExpiresAt time.Time
	UsesLeft  int
}

// NodeKey is the access key of one node. Its secret isn't kept, since it follows from the id.
type NodeKey struct {
	AccessKeyID string
	JoinToken   string // the id of the token that it was made with
	CreatedAt   time.Time
	// ContainerInstanceArn is the instance that registered with the key first. The key is for no other. It ends when that is
	// deregistered.
	ContainerInstanceArn string `json:",omitzero"`
}

// Used returns the token with one use less.
func (t *JoinToken) Used() *JoinToken {
	row := *t
	row.UsesLeft--
	return &row
}

// BoundTo returns the key, bound to a container instance.
func (k *NodeKey) BoundTo(instanceArn string) *NodeKey {
	row := *k
	row.ContainerInstanceArn = instanceArn
	return &row
}

// unused returns when a key that no instance has registered with was made.
func (k *NodeKey) unused() *time.Time {
	if k.ContainerInstanceArn != "" {
		return nil
	}
	return &k.CreatedAt
}

// RevokeNodeKeys ends the keys of a container instance.
func (tx *Tx) RevokeNodeKeys(instanceArn string) {
	for _, k := range slices.Collect(tx.NodeKeys.By(nodeKeysByInstance, instanceArn)) {
		tx.NodeKeys.Delete(k.AccessKeyID)
	}
}

// keepUnused is how long a key may be without an instance.
const keepUnused = 24 * time.Hour

var nodeKeysByInstance = Index[*NodeKey]{Name: "instance", Value: func(k *NodeKey) string { return k.ContainerInstanceArn }}

var (
	joinTokens = &store.Definition[*JoinToken]{
		Name:     "join_tokens",
		Key:      func(t *JoinToken) string { return t.ID },
		Lifetime: store.KeepFor(0, func(t *JoinToken) *time.Time { return &t.ExpiresAt }),
	}

	nodeKeys = &store.Definition[*NodeKey]{
		Name:     "node_keys",
		Key:      func(k *NodeKey) string { return k.AccessKeyID },
		Indexes:  []Index[*NodeKey]{nodeKeysByInstance},
		Lifetime: store.KeepFor(keepUnused, (*NodeKey).unused),
	}
)
