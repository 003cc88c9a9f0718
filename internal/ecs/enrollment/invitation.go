package enrollment

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
)

// Invitation is a join token as its holder has it: one string with all that a machine needs to become a node.
type Invitation struct {
	Endpoint    string `json:"e"` // the control plane's URL
	ID          string `json:"i"`
	Secret      string `json:"s"`
	Fingerprint string `json:"f,omitempty"` // the SHA-256 of the control plane's certificate authority; empty without TLS of its own
}

// prefix starts each invitation, so that people and scanners recognize it.
const prefix = "pintle-join-"

// String returns the invitation's text.
func (i Invitation) String() string {
	b, _ := json.Marshal(i) // strings always marshal
	return prefix + base64.RawURLEncoding.EncodeToString(b)
}

// ParseInvitation reads an invitation.
func ParseInvitation(text string) (i Invitation, err error) {
	encoded, ok := strings.CutPrefix(strings.TrimSpace(text), prefix)
	b, err := base64.RawURLEncoding.DecodeString(encoded)
	if !ok || err != nil || json.Unmarshal(b, &i) != nil || i.Endpoint == "" || i.ID == "" || i.Secret == "" {
		return Invitation{}, errors.New("that is no join token: pintle token prints one")
	}
	return i, nil
}

// Request is the body of /pintle/join.
type Request struct {
	ID     string
	Secret string
}

// Answer is what /pintle/join answers.
type Answer struct {
	Key
	Region string
	CA     string // the certificate authority's certificate in PEM; empty without TLS of its own
}

// NewToken asks /pintle/tokens for a token, and its answer is an invitation's text.
type NewToken struct {
	Seconds int64 // until it expires
	Uses    int   // machines that may join with it
}
