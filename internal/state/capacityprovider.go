package state

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// CapacityProvider is a capacity provider of the account. FARGATE and FARGATE_SPOT, which are always there, have no row.
type CapacityProvider struct {
	types.CapacityProvider
}

var capacityProviders = &def[CapacityProvider]{
	name:  "capacity_providers",
	keyOf: func(p *CapacityProvider) string { return aws.ToString(p.CapacityProviderArn) },
}
