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

// TestNestedTemplateAsCaller: the templates of nested stacks that a change set includes are read as whoever makes it.
func TestNestedTemplateAsCaller(t *testing.T) {
	p := serveSigned(t)
	putBuckets(t, s3Of(p.config("AKID", "secret", "")))
	createRole(t, p, "deployer", `{"Effect": "Allow", "Action": "cloudformation:*", "Resource": "*"}`)
	client := cloudformation.NewFromConfig(asTask(t, p, "deployer"))
	set, err := client.CreateChangeSet(t.Context(), &cloudformation.CreateChangeSetInput{
		StackName: aws.String("s"), ChangeSetName: aws.String("c"), ChangeSetType: types.ChangeSetTypeCreate, IncludeNestedStacks: aws.Bool(true),
		TemplateBody: aws.String("Resources: {N: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: 'https://mine.s3.amazonaws.com/k'}}}"),
	})
	if err != nil {
		t.Fatal(err)
	}
	root, err := client.DescribeChangeSet(t.Context(), &cloudformation.DescribeChangeSetInput{ChangeSetName: set.Id})
	if err != nil {
		t.Fatal(err)
	}
	in := &cloudformation.DescribeChangeSetInput{ChangeSetName: root.Changes[0].ResourceChange.ChangeSetId}
	nested, err := client.DescribeChangeSet(t.Context(), in)
	if err != nil || !strings.Contains(aws.ToString(nested.StatusReason), "is not authorized to perform: s3:GetObject") {
		t.Errorf("got %v, %v", nested, err)
	}
}
