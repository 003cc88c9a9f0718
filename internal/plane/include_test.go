package plane

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
)

// TestIncludeAsCaller: what a template includes is read as whoever deploys it.
func TestIncludeAsCaller(t *testing.T) {
	p := serveSigned(t)
	owner := s3Of(p.config("AKID", "secret", ""))
	putBuckets(t, owner)
	for _, bucket := range []string{"mine", "other"} {
		in := &s3.PutObjectInput{Bucket: &bucket, Key: aws.String("part"), Body: strings.NewReader("H: {Type: AWS::CloudFormation::WaitConditionHandle}")}
		if _, err := owner.PutObject(t.Context(), in); err != nil {
			t.Fatal(err)
		}
	}
	createRole(t, p, "deployer", `{"Effect": "Allow", "Action": "cloudformation:*", "Resource": "*"},
		{"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::mine/*"}`)
	client := cloudformation.NewFromConfig(asTask(t, p, "deployer"))
	create := func(bucket string) error {
		_, err := client.CreateStack(t.Context(), &cloudformation.CreateStackInput{
			StackName:    &bucket,
			TemplateBody: aws.String("Resources: {Fn::Transform: {Name: AWS::Include, Parameters: {Location: s3://" + bucket + "/part}}}"),
			Capabilities: []types.Capability{types.CapabilityCapabilityAutoExpand},
		})
		return err
	}
	if err := create("mine"); err != nil {
		t.Error(err)
	}
	refused(t, "another bucket", create("other"), "ValidationError", "Transform AWS::Include failed with: User: "+
		"arn:aws:sts::000000000000:assumed-role/deployer/a is not authorized to perform: s3:GetObject on resource: "+
		`"arn:aws:s3:::other/part" because no identity-based policy allows the s3:GetObject action`)
	refused(t, "no bucket", create("nowhere"), "ValidationError", "Transform AWS::Include failed with: User: "+
		"arn:aws:sts::000000000000:assumed-role/deployer/a is not authorized to perform: s3:GetObject on resource: "+
		`"arn:aws:s3:::nowhere/part" because no identity-based policy allows the s3:GetObject action`)
}
