package acs

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
)

// PeerAnnouncement is what a node with --peer-pulls says of itself, again and again, to Pintle's control plane, at PeerPath: from where other
// nodes of its cluster can fetch layers of images. Whoever may have a layer gets a ticket, which is made with the key.
type PeerAnnouncement struct {
	ContainerInstance string   // its ARN
	Address           string   // host and port, by TLS
	Certificate       string   // the SHA-256 of the certificate there, in hex
	Key               []byte   // of tickets
	Layers            []string // digests of layers that the node has, the newest of them
}

// PeerWelcome answers an announcement.
type PeerWelcome struct {
	Token string // tells the registry who asks for a layer; nobody else has it
}

// PeerPath is where nodes announce themselves.
const PeerPath = "/pintle/peers"

// The headers of requests for layers, and of redirects to peers.
const (
	PeerToken       = "Pintle-Peer"             // in a request: the node's token
	PeerFailed      = "Pintle-Peer-Failed"      // in a request: the peer that the node was sent to didn't help
	PeerCertificate = "Pintle-Peer-Certificate" // in a redirect: PeerAnnouncement's Certificate
)

// MaxPeerLayers is how many layers an announcement may name.
const MaxPeerLayers = 40

// PeerTicket returns what opens a layer at a peer until a time, in seconds since 1970.
func PeerTicket(key []byte, digest string, expires int64) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(digest + "\x00" + strconv.FormatInt(expires, 10))) //nolint:errcheck // a hash takes all
	return hex.EncodeToString(mac.Sum(nil))
}
