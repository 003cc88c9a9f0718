package ec2

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"github.com/pintle/pintle/internal/account"
)

// Images are mere names, because a machine's disk is what its fleet puts on it. We describe the images of the
// parameters by which templates find the images for ECS:
// https://docs.aws.amazon.com/AmazonECS/latest/developerguide/retrieve-ecs-optimized_AMI.html
var images = []struct {
	parameter string
	name      string
}{
	{"/aws/service/ecs/optimized-ami/amazon-linux-2/recommended/image_id", "amzn2-ami-ecs-hvm-x86_64-ebs"},
	{"/aws/service/ecs/optimized-ami/amazon-linux-2/gpu/recommended/image_id", "amzn2-ami-ecs-gpu-hvm-x86_64-ebs"},
	{"/aws/service/ecs/optimized-ami/amazon-linux-2023/recommended/image_id", "al2023-ami-ecs-hvm-x86_64-ebs"},
	{"/aws/service/ecs/optimized-ami/amazon-linux-2023/gpu/recommended/image_id", "al2023-ami-ecs-gpu-hvm-x86_64-ebs"},
}

// imageOf returns the id of the image that a parameter stands for. It's always the same.
func imageOf(parameter string) string {
	sum := sha256.Sum256([]byte(parameter))
	return "ami-" + hex.EncodeToString(sum[:])[:17]
}

// byParameter begins an image id that is the value of a parameter, whose name follows.
const byParameter = "resolve:ssm:"

// publicImage is a parameter of AWS's own for images. Each stands for an image, since images are mere names here, also those of which
// DescribeImages tells nothing.
func publicImage(parameter string) bool {
	ours, isECS := strings.HasPrefix(parameter, "/aws/service/"), strings.HasPrefix(parameter, "/aws/service/ecs/")
	return ours && (!isECS || strings.HasSuffix(parameter, "/image_id"))
}

// ResolveImage returns the image id that an id stands for: a parameter's value, or itself.
func (s *Service) ResolveImage(ctx context.Context, id string) (string, error) {
	parameter, ok := strings.CutPrefix(id, byParameter)
	switch {
	case !ok:
		return id, nil
	case publicImage(parameter) || s.opts.Parameters == nil:
		return imageOf(parameter), nil
	}
	got, err := s.opts.Parameters.GetParameter(ctx, &ssm.GetParameterInput{Name: &parameter})
	if err != nil {
		return "", refuse("SsmInvalidParameter", "The following aliases are invalid: %s", parameter)
	}
	if aws.ToString(got.Parameter.DataType) != "aws:ec2:image" {
		return "", refuse("SsmInvalidParameter", "Unsupported data type. The following parameter data types are supported: aws:ec2:image")
	}
	return *got.Parameter.Value, nil
}

var imageFields = fields[types.Image]{
	"architecture":     func(i *types.Image) []string { return []string{string(i.Architecture)} },
	"creation-date":    func(i *types.Image) []string { return optional(i.CreationDate) },
	"image-id":         func(i *types.Image) []string { return optional(i.ImageId) },
	"image-type":       func(i *types.Image) []string { return []string{string(i.ImageType)} },
	"is-public":        func(i *types.Image) []string { return []string{strconv.FormatBool(*i.Public)} },
	"name":             func(i *types.Image) []string { return optional(i.Name) },
	"owner-alias":      func(i *types.Image) []string { return optional(i.ImageOwnerAlias) },
	"owner-id":         func(i *types.Image) []string { return optional(i.OwnerId) },
	"root-device-type": func(i *types.Image) []string { return []string{string(i.RootDeviceType)} },
	"state":            func(i *types.Image) []string { return []string{string(i.State)} },
	"virtualization-type": func(i *types.Image) []string {
		return []string{string(i.VirtualizationType)}
	},
}

// DescribeImages describes the images for ECS, by the ids that their parameters have here.
func (s *Service) DescribeImages(_ context.Context, in *ec2.DescribeImagesInput) (*ec2.DescribeImagesOutput, error) {
	match, err := matcher(in.Filters, imageFields, func(*types.Image) []types.Tag { return nil })
	if err != nil {
		return nil, err
	}
	all := []types.Image{}
	for _, i := range images {
		all = append(all, types.Image{
			ImageId:                new(imageOf(i.parameter)),
			Name:                   aws.String(i.name),
			PublicSsmParameterName: aws.String(i.parameter),
			ImageOwnerAlias:        aws.String("amazon"),
			OwnerId:                aws.String("591542846629"),
			ImageLocation:          aws.String("amazon/" + i.name),
			Public:                 aws.Bool(true),
			State:                  types.ImageStateAvailable,
			Architecture:           types.ArchitectureValuesX8664,
			ImageType:              types.ImageTypeValuesMachine,
			VirtualizationType:     types.VirtualizationTypeHvm,
			RootDeviceType:         types.DeviceTypeEbs,
			CreationDate:           aws.String("2026-01-01T00:00:00.000Z"),
		})
	}
	for _, id := range in.ImageIds {
		if !imageIDs.MatchString(id) || strings.HasPrefix(id, byParameter) {
			return nil, refuse("InvalidAMIID.Malformed", "Invalid id: \"%s\" (expecting \"ami-...\")", id)
		}
		if !slices.ContainsFunc(all, func(i types.Image) bool { return *i.ImageId == id }) {
			return nil, refuse("InvalidAMIID.NotFound", "The image id '[%s]' does not exist", id)
		}
	}
	if err := checkDryRun(in.DryRun); err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(i types.Image) bool {
		named := len(in.ImageIds) == 0 || slices.Contains(in.ImageIds, *i.ImageId)
		owned := len(in.Owners) == 0 || slices.Contains(in.Owners, "amazon") || slices.Contains(in.Owners, *i.OwnerId)
		// All images are public: none was shared with an account by its id.
		executable := len(in.ExecutableUsers) == 0 || slices.Contains(in.ExecutableUsers, "all")
		return !named || !owned || !executable || !match(&i)
	})
	account.SortBy(all, func(i types.Image) string { return *i.ImageId })
	all, next, err := account.Sorted(listing("DescribeImages", maxInstances), all, in.MaxResults, in.NextToken,
		func(i types.Image) string { return *i.ImageId })
	if err != nil {
		return nil, err
	}
	return &ec2.DescribeImagesOutput{Images: all, NextToken: next}, nil
}
