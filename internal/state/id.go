package state

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
)

// NewID returns a random id for a task or container instance: 32 hexadecimal digits.
func NewID() string {
	var b [16]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// NewUUID returns an id for a container, an attachment or an event.
func NewUUID() string {
	id := NewID()
	return id[:8] + "-" + id[8:12] + "-4" + id[13:16] + "-a" + id[17:20] + "-" + id[20:]
}

// NewDiscoveryID returns a random id of Cloud Map, such as ns-e4anhexample0004, as long as AWS's.
func NewDiscoveryID(prefix string) string {
	const letters = "abcdefghijklmnopqrstuvwxyz234567"
	var b [16]byte
	rand.Read(b[:]) // never fails
	for i := range b {
		b[i] = letters[b[i]%32]
	}
	return prefix + string(b[:])
}

// InCluster returns the ARN of something in a cluster: InCluster(clusterArn, "task", id).
func InCluster(clusterArn string, kind string, names ...string) string {
	prefix, cluster, _ := strings.Cut(clusterArn, ":cluster/")
	return prefix + ":" + kind + "/" + strings.Join(append([]string{cluster}, names...), "/")
}

// NameOf returns the short name at the end of an ARN, or the name itself.
func NameOf(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }
