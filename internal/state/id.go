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

// InCluster returns the ARN of something in a cluster: InCluster(clusterArn, "task", id).
func InCluster(clusterArn string, kind string, names ...string) string {
	prefix, cluster, _ := strings.Cut(clusterArn, ":cluster/")
	return prefix + ":" + kind + "/" + strings.Join(append([]string{cluster}, names...), "/")
}

// NameOf returns the short name at the end of an ARN, or the name itself.
func NameOf(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }
