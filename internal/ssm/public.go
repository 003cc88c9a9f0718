package ssm

import (
	"context"
	"encoding/json"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/pintle/pintle/internal/account"
)

// AWS's public parameters tell the latest images. Those that there are here follow from the images that EC2 describes, but
// for the log router's.

// fluentBit is the parameter by which task definitions find the image of FireLens's log router, in the ECR of each region.
const fluentBit = "/aws/service/aws-for-fluent-bit/stable"

var released = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func isPublic(name string) bool { return strings.HasPrefix(name, "/aws/") }

// publicARN returns how the ARN of a public parameter begins, without the name's slash.
func publicARN(region string) string { return "arn:aws:ssm:" + region + "::parameter/" }

// public returns a public parameter.
func (s *Service) public(ctx context.Context, ref reference) (*types.Parameter, error) {
	all, err := s.publics(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(p types.Parameter) bool { return slices.Contains(ref.names, *p.Name) })
	if i < 0 {
		return nil, notFound(ref.names[0])
	}
	p := all[i]
	if ref.label != "" || ref.version > p.Version {
		return nil, versionNotFound(*p.Name, ref.given[1:])
	}
	p.Selector = optional(ref.given)
	return &p, nil
}

// publicByPath is GetParametersByPath for public parameters. They have no labels and no keys, and all are Strings.
func (s *Service) publicByPath(
	ctx context.Context, path string, in *ssm.GetParametersByPathInput,
) (*ssm.GetParametersByPathOutput, error) {
	if len(in.ParameterFilters) > 0 {
		return nil, invalid("ParameterFilters can't be used with the public parameters of AWS here.")
	}
	all, err := s.publics(ctx)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(p types.Parameter) bool {
		return !strings.HasPrefix(*p.Name, path) || !aws.ToBool(in.Recursive) && !isRightBelow(*p.Name, path)
	})
	page, next, err := account.Sorted(listing("GetParametersByPath", maxByPath, maxByPath), all, in.MaxResults, in.NextToken,
		func(p types.Parameter) string { return *p.Name })
	if err != nil {
		return nil, err
	}
	return &ssm.GetParametersByPathOutput{Parameters: append([]types.Parameter{}, page...), NextToken: next}, nil
}

// publics returns all public parameters by their names. An image for ECS has three: its id, its name, and a document of both.
func (s *Service) publics(ctx context.Context) ([]types.Parameter, error) {
	if s.opts.Images == nil {
		return nil, nil
	}
	out, err := s.opts.Images.DescribeImages(ctx, &ec2.DescribeImagesInput{Owners: []string{"amazon"}})
	if err != nil {
		return nil, err
	}
	var all []types.Parameter
	for _, i := range out.Images {
		name := aws.ToString(i.PublicSsmParameterName)
		created, err := time.Parse(time.RFC3339, aws.ToString(i.CreationDate))
		if err != nil {
			return nil, err
		}
		if path.Base(name) != "image_id" { // Amazon Linux's: one parameter, with the id
			all = append(all, s.publicParameter(name, *i.ImageId, created))
			continue
		}
		document, err := json.Marshal(map[string]any{"schema_version": 1, "image_id": i.ImageId, "image_name": i.Name})
		if err != nil {
			return nil, err
		}
		folder := path.Dir(name)
		all = append(all,
			s.publicParameter(folder, string(document), created),
			s.publicParameter(name, *i.ImageId, created),
			s.publicParameter(folder+"/image_name", *i.Name, created))
	}
	all = append(all, s.publicParameter(fluentBit, "906394416424.dkr.ecr."+s.opts.Region+".amazonaws.com/aws-for-fluent-bit:stable", released))
	account.SortBy(all, func(p types.Parameter) string { return *p.Name })
	return all, nil
}

func (s *Service) publicParameter(name, value string, created time.Time) types.Parameter {
	return types.Parameter{
		ARN:              new(publicARN(s.opts.Region) + name[1:]),
		DataType:         aws.String("text"),
		LastModifiedDate: &created,
		Name:             &name,
		Type:             types.ParameterTypeString,
		Value:            &value,
		Version:          1,
	}
}
