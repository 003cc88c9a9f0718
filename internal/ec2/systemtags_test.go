package ec2

import (
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/wire/call"
)

// TestSystemTags: only CloudFormation sets tags whose keys begin with aws:, and nobody changes or deletes them.
func TestSystemTags(t *testing.T) {
	s := service(t, 0)
	system := types.Tag{Key: aws.String("aws:cloudformation:stack-name"), Value: aws.String("s")}
	in := &ec2.CreateVpcInput{CidrBlock: aws.String("10.0.0.0/16"), TagSpecifications: []types.TagSpecification{
		{ResourceType: types.ResourceTypeVpc, Tags: []types.Tag{system}},
	}}
	refused := func(what string, err error) {
		t.Helper()
		var e smithy.APIError
		if !errors.As(err, &e) || e.ErrorCode() != "InvalidParameterValue" {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := s.CreateVpc(t.Context(), in)
	refused("a user's call", err)
	_, err = s.CreateVpc(call.With(t.Context(), call.Call{Service: "cloudformation"}), in)
	refused("a call of CloudFormation's own name from outside", err)
	out, err := s.CreateVpc(call.With(t.Context(), call.Call{Service: "ec2", Via: "cloudformation"}), in)
	if err != nil {
		t.Fatal(err)
	}
	id := []string{*out.Vpc.VpcId}
	_, err = s.CreateTags(t.Context(), &ec2.CreateTagsInput{Resources: id, Tags: []types.Tag{system}})
	refused("a change", err)
	_, err = s.DeleteTags(t.Context(), &ec2.DeleteTagsInput{Resources: id, Tags: []types.Tag{{Key: system.Key}}})
	refused("a deletion", err)
	own := []types.Tag{{Key: aws.String("a"), Value: aws.String("b")}}
	if _, err := s.CreateTags(t.Context(), &ec2.CreateTagsInput{Resources: id, Tags: own}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.DeleteTags(t.Context(), &ec2.DeleteTagsInput{Resources: id}); err != nil {
		t.Fatal(err)
	}
	if left := s.store.View().VPCs.Get(id[0]).Tags; len(left) != 1 || *left[0].Key != *system.Key {
		t.Errorf("after all tags were deleted there are %v", left)
	}
}
