package ec2

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/pintle/pintle/internal/state"
)

// maxGateways is how many Internet gateways there are, and as many for IPv6 alone: one for each VPC.
const maxGateways = maxVPCs

var internetGateways = kind[state.InternetGateway]{
	name:   types.ResourceTypeInternetGateway,
	prefix: "igw",
	code:   "InvalidInternetGatewayID.NotFound",
	text:   "The internetGateway ID '%s' does not exist",
	table:  func(v *state.View) state.Table[*state.InternetGateway] { return v.InternetGateways },
	of:     func(r *state.InternetGateway) (*string, *[]types.Tag) { return r.InternetGatewayId, &r.Tags },
	fields: fields[state.InternetGateway]{
		"attachment.state": func(r *state.InternetGateway) []string {
			return values(r.Attachments, func(a *types.InternetGatewayAttachment) *string { return (*string)(&a.State) })
		},
		"attachment.vpc-id": func(r *state.InternetGateway) []string {
			return values(r.Attachments, func(a *types.InternetGatewayAttachment) *string { return a.VpcId })
		},
		"internet-gateway-id": func(r *state.InternetGateway) []string { return optional(r.InternetGatewayId) },
		"owner-id":            func(r *state.InternetGateway) []string { return optional(r.OwnerId) },
	},
}

var egressOnlyGateways = kind[state.EgressOnlyInternetGateway]{
	name:   types.ResourceTypeEgressOnlyInternetGateway,
	prefix: "eigw",
	code:   "InvalidEgressOnlyInternetGatewayId.NotFound",
	text:   "The eigw ID '%s' does not exist",
	table:  func(v *state.View) state.Table[*state.EgressOnlyInternetGateway] { return v.EgressOnlyInternetGateways },
	of: func(r *state.EgressOnlyInternetGateway) (*string, *[]types.Tag) {
		return r.EgressOnlyInternetGatewayId, &r.Tags
	},
}

// attached returns the attachment to a VPC.
func attached(vpc *string) []types.InternetGatewayAttachment {
	return []types.InternetGatewayAttachment{{VpcId: vpc, State: types.AttachmentStatus("available")}}
}

// attachedTo reports whether one of the attachments is to a VPC.
func attachedTo(all []types.InternetGatewayAttachment, vpc string) bool {
	return slices.ContainsFunc(all, func(a types.InternetGatewayAttachment) bool { return *a.VpcId == vpc })
}

func (s *Service) newGateway(tags []types.Tag) *state.InternetGateway {
	return &state.InternetGateway{InternetGateway: types.InternetGateway{
		InternetGatewayId: new(state.NewEC2ID("igw")),
		OwnerId:           &s.opts.ID,
		Attachments:       []types.InternetGatewayAttachment{},
		Tags:              tags,
	}}
}

// CreateInternetGateway creates an Internet gateway.
func (s *Service) CreateInternetGateway(
	ctx context.Context, in *ec2.CreateInternetGatewayInput,
) (*ec2.CreateInternetGatewayOutput, error) {
	tags, err := newTags(ctx, in.TagSpecifications, types.ResourceTypeInternetGateway)
	if err != nil {
		return nil, err
	}
	row := s.newGateway(tags)
	err = s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		tx.InternetGateways.Put(row)
		return checkRoom(count(tx.InternetGateways.All())-1, maxGateways, "InternetGatewayLimitExceeded", "internet gateways")
	})
	if err != nil {
		return nil, err
	}
	return &ec2.CreateInternetGatewayOutput{InternetGateway: &row.InternetGateway}, nil
}

// DescribeInternetGateways describes Internet gateways.
func (s *Service) DescribeInternetGateways(
	_ context.Context, in *ec2.DescribeInternetGatewaysInput,
) (*ec2.DescribeInternetGatewaysOutput, error) {
	rows, next, err := internetGateways.describe(s.store.View(),
		query{"DescribeInternetGateways", in.InternetGatewayIds, in.Filters, in.MaxResults, in.NextToken, in.DryRun})
	if err != nil {
		return nil, err
	}
	all := show(rows, func(r *state.InternetGateway) types.InternetGateway { return r.InternetGateway })
	return &ec2.DescribeInternetGatewaysOutput{InternetGateways: all, NextToken: next}, nil
}

// AttachInternetGateway attaches a gateway to a VPC, which has one at most.
func (s *Service) AttachInternetGateway(
	ctx context.Context, in *ec2.AttachInternetGatewayInput,
) (*ec2.AttachInternetGatewayOutput, error) {
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		vpc, err := vpcs.get(tx.View, in.VpcId, "VpcId")
		if err != nil {
			return err
		}
		return internetGateways.change(tx, in.InternetGatewayId, "InternetGatewayId", func(r *state.InternetGateway) error {
			if len(r.Attachments) > 0 {
				return refuse("Resource.AlreadyAssociated", "resource %s is already attached to network %s",
					*r.InternetGatewayId, *r.Attachments[0].VpcId)
			}
			for other := range tx.InternetGateways.All() {
				if attachedTo(other.Attachments, *vpc.VpcId) {
					return refuse("InvalidParameterValue", "Network %s already has an internet gateway attached", *vpc.VpcId)
				}
			}
			r.Attachments = attached(vpc.VpcId)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return &ec2.AttachInternetGatewayOutput{}, nil
}

// DetachInternetGateway detaches a gateway from a VPC in which nothing has a public address.
func (s *Service) DetachInternetGateway(
	ctx context.Context, in *ec2.DetachInternetGatewayInput,
) (*ec2.DetachInternetGatewayOutput, error) {
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		vpc, err := vpcs.get(tx.View, in.VpcId, "VpcId")
		if err != nil {
			return err
		}
		return internetGateways.change(tx, in.InternetGatewayId, "InternetGatewayId", func(r *state.InternetGateway) error {
			if !attachedTo(r.Attachments, *vpc.VpcId) {
				return refuse("Gateway.NotAttached", "resource %s is not attached to network %s", *r.InternetGatewayId, *vpc.VpcId)
			}
			if hasPublicAddress(tx.View, *vpc.VpcId) {
				return refuse("DependencyViolation", "Network %s has some mapped public address(es). "+
					"Please unmap those public address(es) before detaching the gateway.", *vpc.VpcId)
			}
			r.Attachments = []types.InternetGatewayAttachment{}
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return &ec2.DetachInternetGatewayOutput{}, nil
}

// DeleteInternetGateway deletes a gateway that isn't attached.
func (s *Service) DeleteInternetGateway(
	ctx context.Context, in *ec2.DeleteInternetGatewayInput,
) (*ec2.DeleteInternetGatewayOutput, error) {
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		row, err := internetGateways.get(tx.View, in.InternetGatewayId, "InternetGatewayId")
		if err != nil {
			return err
		}
		if len(row.Attachments) > 0 {
			return refuse("DependencyViolation", "The internetGateway '%s' has dependencies and cannot be deleted.", *row.InternetGatewayId)
		}
		tx.InternetGateways.Delete(*row.InternetGatewayId)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ec2.DeleteInternetGatewayOutput{}, nil
}

// CreateEgressOnlyInternetGateway creates an Internet gateway for IPv6 that lets nothing in.
func (s *Service) CreateEgressOnlyInternetGateway(
	ctx context.Context, in *ec2.CreateEgressOnlyInternetGatewayInput,
) (*ec2.CreateEgressOnlyInternetGatewayOutput, error) {
	tags, err := newTags(ctx, in.TagSpecifications, types.ResourceTypeEgressOnlyInternetGateway)
	if err != nil {
		return nil, err
	}
	var row *state.EgressOnlyInternetGateway
	err = s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		vpc, err := vpcs.get(tx.View, in.VpcId, "VpcId")
		if err != nil {
			return err
		}
		made := &state.EgressOnlyInternetGateway{EgressOnlyInternetGateway: types.EgressOnlyInternetGateway{
			EgressOnlyInternetGatewayId: new(state.NewEC2ID("eigw")),
			Attachments:                 []types.InternetGatewayAttachment{{VpcId: vpc.VpcId, State: types.AttachmentStatusAttached}},
			Tags:                        tags,
		}}
		row, err = putOnce(s, tx, egressOnlyGateways, in.ClientToken, in, made, func() error {
			have := count(tx.EgressOnlyInternetGateways.All())
			return checkRoom(have, maxGateways, "EgressOnlyInternetGatewayLimitExceeded", "egress-only internet gateways")
		})
		return err
	})
	if err != nil {
		return nil, err
	}
	return &ec2.CreateEgressOnlyInternetGatewayOutput{
		EgressOnlyInternetGateway: &row.EgressOnlyInternetGateway,
		ClientToken:               in.ClientToken,
	}, nil
}

// DescribeEgressOnlyInternetGateways describes the gateways for IPv6 alone.
func (s *Service) DescribeEgressOnlyInternetGateways(
	_ context.Context, in *ec2.DescribeEgressOnlyInternetGatewaysInput,
) (*ec2.DescribeEgressOnlyInternetGatewaysOutput, error) {
	rows, next, err := egressOnlyGateways.describe(s.store.View(), query{"DescribeEgressOnlyInternetGateways",
		in.EgressOnlyInternetGatewayIds, in.Filters, in.MaxResults, in.NextToken, in.DryRun})
	if err != nil {
		return nil, err
	}
	return &ec2.DescribeEgressOnlyInternetGatewaysOutput{
		EgressOnlyInternetGateways: show(rows, func(r *state.EgressOnlyInternetGateway) types.EgressOnlyInternetGateway {
			return r.EgressOnlyInternetGateway
		}),
		NextToken: next,
	}, nil
}

// DeleteEgressOnlyInternetGateway deletes a gateway for IPv6 alone.
func (s *Service) DeleteEgressOnlyInternetGateway(
	ctx context.Context, in *ec2.DeleteEgressOnlyInternetGatewayInput,
) (*ec2.DeleteEgressOnlyInternetGatewayOutput, error) {
	err := s.write(ctx, in.DryRun, func(tx *state.Tx) error {
		row, err := egressOnlyGateways.get(tx.View, in.EgressOnlyInternetGatewayId, "EgressOnlyInternetGatewayId")
		if err == nil {
			tx.EgressOnlyInternetGateways.Delete(*row.EgressOnlyInternetGatewayId)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return &ec2.DeleteEgressOnlyInternetGatewayOutput{ReturnCode: aws.Bool(true)}, nil
}
