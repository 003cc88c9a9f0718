package ec2

import (
	"context"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/pintle/pintle/internal/state/statetest"
)

// parameters are the values of parameters, by name; those that don't begin with ami- aren't for images.
type parameters map[string]string

func (p parameters) GetParameter(
	_ context.Context, in *ssm.GetParameterInput, _ ...func(*ssm.Options),
) (*ssm.GetParameterOutput, error) {
	value, ok := p[*in.Name]
	if !ok {
		return nil, &ssmtypes.ParameterNotFound{}
	}
	kind := "text"
	if strings.HasPrefix(value, "ami-") {
		kind = "aws:ec2:image"
	}
	return &ssm.GetParameterOutput{Parameter: &ssmtypes.Parameter{Value: &value, DataType: &kind}}, nil
}

// TestImagesByParameters: resolve:ssm: stands for a parameter's value, which must be there and an image's id, for templates and instances.
func TestImagesByParameters(t *testing.T) {
	store := statetest.Open(t)
	s := New(store, Options{Parameters: parameters{"/mine": "ami-1234", "/other": "x"}})
	const gpu = "/aws/service/ecs/optimized-ami/amazon-linux-2/gpu/recommended/image_id"
	for name, want := range map[string]string{
		"/mine":                         "ami-1234",
		"/other":                        "SsmInvalidParameter: Unsupported data type. The following parameter data types are supported: aws:ec2:image",
		"/nope":                         "SsmInvalidParameter: The following aliases are invalid: /nope",
		gpu:                             imageOf(gpu),
		"/aws/service/canonical/ami-id": imageOf("/aws/service/canonical/ami-id"),
		strings.TrimSuffix(gpu, "_id"):  "SsmInvalidParameter: The following aliases are invalid: " + strings.TrimSuffix(gpu, "_id"),
	} {
		id := "resolve:ssm:" + name
		got, err := s.overridden(t.Context(), types.ResponseLaunchTemplateData{}, &ec2.RunInstancesInput{ImageId: &id, InstanceType: "c5.large"})
		_, templateErr := s.templateData(t.Context(), &types.RequestLaunchTemplateData{ImageId: &id})
		switch {
		case strings.HasPrefix(want, "ami-"):
			if err != nil || templateErr != nil || *got.ImageId != want {
				t.Errorf("%s: %v, %v, want %s", name, err, templateErr, want)
			}
		case err == nil || err.Error() != want || templateErr == nil || templateErr.Error() != want:
			t.Errorf("%s: %v and %v, want %s", name, err, templateErr, want)
		}
	}
}

// TestImagesAreDescribedByTheirIDs: a parameter's name isn't one, although instances may be launched by it.
func TestImagesAreDescribedByTheirIDs(t *testing.T) {
	s := service(t, 0)
	const gpu = "/aws/service/ecs/optimized-ami/amazon-linux-2/gpu/recommended/image_id"
	if out, err := s.DescribeImages(t.Context(), &ec2.DescribeImagesInput{ImageIds: []string{imageOf(gpu)}}); err != nil || len(out.Images) != 1 {
		t.Errorf("by its id: %v, %v", out, err)
	}
	if _, err := s.DescribeImages(t.Context(), &ec2.DescribeImagesInput{ImageIds: []string{"resolve:ssm:" + gpu}}); codeOf(err) != "InvalidAMIID.Malformed" {
		t.Errorf("by its parameter: %v", err)
	}
}

// TestImagesByName: modules look for Amazon Linux by a pattern of its name and by its owner.
func TestImagesByName(t *testing.T) {
	s := New(statetest.Open(t), Options{})
	for name, want := range map[string]int{"amzn2-ami-hvm-*-x86_64-gp2": 1, "al2023-ami-2023*-x86_64": 1, "amzn2-ami-hvm-*-arm64-gp2": 0} {
		for _, owner := range []string{"amazon", ofAmazonLinux} {
			filter := "name"
			out, err := s.DescribeImages(t.Context(), &ec2.DescribeImagesInput{
				Owners: []string{owner}, Filters: []types.Filter{{Name: &filter, Values: []string{name}}},
			})
			if err != nil || len(out.Images) != want {
				t.Errorf("%s of %s: %+v, %v", name, owner, out, err)
			}
		}
	}
}
