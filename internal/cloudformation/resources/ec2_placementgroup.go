package resources

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// placementGroup has the properties of AWS::EC2::PlacementGroup. Its physical ID is the name, which CloudFormation makes.
type placementGroup struct {
	PartitionCount *int32                  `cfn:"create"`
	SpreadLevel    types.SpreadLevel       `cfn:"create"`
	Strategy       types.PlacementStrategy `cfn:"create"`
	Tags           []Tag                   `cfn:"create"`
}

var _ = add(&kind[*placementGroup]{
	name:       "AWS::EC2::PlacementGroup",
	live:       livePlacementGroup,
	identifier: []string{"GroupName"},
	attributes: []string{"GroupName"},
	id:         func(s Step, _ *placementGroup) string { return s.generated(255) },
	create: func(ctx context.Context, s Step, g *placementGroup) (string, error) {
		tags, err := ec2Tags(s, types.ResourceTypePlacementGroup, g.Tags)
		if err != nil {
			return "", err
		}
		name := s.generated(255)
		err = did[ec2.CreatePlacementGroupOutput](ctx, s, &ec2.CreatePlacementGroupInput{
			GroupName:         &name,
			PartitionCount:    g.PartitionCount,
			SpreadLevel:       g.SpreadLevel,
			Strategy:          g.Strategy,
			TagSpecifications: tags,
		})
		return name, err
	},
	delete: func(ctx context.Context, s Step, name string, _ *placementGroup) error {
		return did[ec2.DeletePlacementGroupOutput](ctx, s, &ec2.DeletePlacementGroupInput{GroupName: &name})
	},
	read: func(ctx context.Context, s Step, name string, _ *placementGroup) (Made, error) {
		in := &ec2.DescribePlacementGroupsInput{GroupNames: []string{name}}
		if err := did[ec2.DescribePlacementGroupsOutput](ctx, s, in); err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"GroupName": name}}, nil
	},
})

func livePlacementGroup(ctx context.Context, s Step, name string, _ *placementGroup) (*placementGroup, error) {
	out, err := call.Do[ec2.DescribePlacementGroupsOutput](ctx, s.Services, &ec2.DescribePlacementGroupsInput{GroupNames: []string{name}})
	if err != nil {
		return nil, err
	}
	g := out.PlacementGroups[0]
	return &placementGroup{
		PartitionCount: g.PartitionCount,
		SpreadLevel:    g.SpreadLevel,
		Strategy:       g.Strategy,
		Tags:           ownTags(g.Tags, ec2TagPair),
	}, nil
}
