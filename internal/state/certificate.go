package state

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/service/acm/types"

	"github.com/pintle/pintle/internal/store"
)

// Certificate is a certificate of AWS Certificate Manager that was imported.
type Certificate struct {
	ARN         string
	Certificate string // PEM
	Chain       string `json:",omitempty"` // PEM
	PrivateKey  []byte // PEM, encrypted
	Imported    time.Time
	Created     time.Time
	Tags        []types.Tag `json:",omitempty"`
}

var certificates = &store.Definition[*Certificate]{Name: "certificates", Key: func(c *Certificate) string { return c.ARN }}
