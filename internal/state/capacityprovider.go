package state

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/store"
)

// CapacityProvider is a capacity provider of the account. FARGATE and FARGATE_SPOT always exist and have no row.
type CapacityProvider struct {
	types.CapacityProvider
	// LowSince is since when managed scaling has needed fewer instances than there are, or nil while it needs all.
	LowSince *time.Time `json:",omitzero"`
}

var capacityProviders = &store.Definition[CapacityProvider]{
	Name: "capacity_providers",
	Key:  func(p *CapacityProvider) string { return aws.ToString(p.CapacityProviderArn) },
}
