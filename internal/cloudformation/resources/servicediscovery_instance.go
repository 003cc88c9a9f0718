package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/servicediscovery"

	"github.com/pintle/pintle/internal/wire/call"
)

// discoveryInstance has the properties of AWS::ServiceDiscovery::Instance. Its physical ID is the instance's, which tells it from others of
// its service.
type discoveryInstance struct {
	ServiceId          *string           `cfn:"required,create"`
	InstanceId         *string           `cfn:"create"`
	InstanceAttributes map[string]string `cfn:"required"`
}

var _ = add(&kind[*discoveryInstance]{
	name:       "AWS::ServiceDiscovery::Instance",
	identifier: []string{"ServiceId", "InstanceId"},
	physical:   "InstanceId",
	find: func(ctx context.Context, s Step, i *discoveryInstance) (string, error) {
		id := s.named(i.InstanceId, 64)
		if _, err := getDiscoveryInstance(ctx, s, id, i); isMissing(err) {
			return "", nil
		} else if err != nil {
			return "", err
		}
		return id, nil
	},
	create: func(ctx context.Context, s Step, i *discoveryInstance) (string, error) {
		id := s.named(i.InstanceId, 64)
		return id, registerInstance(ctx, s, id, i)
	},
	update: func(ctx context.Context, s Step, id string, _, after *discoveryInstance) error {
		return registerInstance(ctx, s, id, after)
	},
	delete: func(ctx context.Context, s Step, id string, i *discoveryInstance) error {
		in := &servicediscovery.DeregisterInstanceInput{ServiceId: i.ServiceId, InstanceId: &id}
		return did[servicediscovery.DeregisterInstanceOutput](ctx, s, in)
	},
	read: func(ctx context.Context, s Step, id string, i *discoveryInstance) (Made, error) {
		_, err := getDiscoveryInstance(ctx, s, id, i)
		return Made{}, err
	},
	live: func(ctx context.Context, s Step, id string, asked *discoveryInstance) (*discoveryInstance, error) {
		out, err := getDiscoveryInstance(ctx, s, id, asked)
		if err != nil {
			return nil, err
		}
		return &discoveryInstance{ServiceId: asked.ServiceId, InstanceId: &id, InstanceAttributes: out.Instance.Attributes}, nil
	},
})

func registerInstance(ctx context.Context, s Step, id string, i *discoveryInstance) error {
	in := &servicediscovery.RegisterInstanceInput{ServiceId: i.ServiceId, InstanceId: &id, Attributes: i.InstanceAttributes}
	return did[servicediscovery.RegisterInstanceOutput](ctx, s, in)
}

func getDiscoveryInstance(ctx context.Context, s Step, id string, i *discoveryInstance) (*servicediscovery.GetInstanceOutput, error) {
	in := &servicediscovery.GetInstanceInput{ServiceId: i.ServiceId, InstanceId: &id}
	return call.Do[servicediscovery.GetInstanceOutput](ctx, s.Services, in)
}
