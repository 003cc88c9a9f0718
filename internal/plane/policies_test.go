package plane

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	asgtypes "github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	elbtypes "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	ebtypes "github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	schedulertypes "github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	ststypes "github.com/aws/aws-sdk-go-v2/service/sts/types"
	"github.com/aws/smithy-go"

	permissions "github.com/pintle/pintle/internal/iam"
	"github.com/pintle/pintle/internal/iam/authorize"
	"github.com/pintle/pintle/internal/iam/policy"
	"github.com/pintle/pintle/internal/state"
)

const roleARNs = "arn:aws:iam::000000000000:role/"

func s3Of(c aws.Config) *s3.Client {
	return s3.NewFromConfig(c, func(o *s3.Options) { o.UsePathStyle = true })
}

// createRole creates a role with statements of a policy.
func createRole(t *testing.T, p *Plane, name, statements string) {
	t.Helper()
	trust := `{"Statement": {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"AWS": "000000000000"}}}`
	if _, err := p.IAM.CreateRole(t.Context(), &iam.CreateRoleInput{RoleName: &name, AssumeRolePolicyDocument: &trust}); err != nil {
		t.Fatal(err)
	}
	putPolicy(t, p, name, statements)
}

func putPolicy(t *testing.T, p *Plane, role, statements string) {
	t.Helper()
	_, err := p.IAM.PutRolePolicy(t.Context(), &iam.PutRolePolicyInput{
		RoleName:       &role,
		PolicyName:     aws.String("inline"),
		PolicyDocument: aws.String(`{"Version": "2012-10-17", "Statement": [` + statements + `]}`),
	})
	if err != nil {
		t.Fatal(err)
	}
}

// asTask returns the configuration of a running task in a role.
func asTask(t *testing.T, p *Plane, role string) aws.Config {
	t.Helper()
	putTask(t, p, "RUNNING")
	c := p.taskCredentials(p.State.View().Tasks.Get(aTask), roleARNs+role, "TaskApplication")
	return p.config(c.AccessKeyID, c.SecretAccessKey, c.SessionToken)
}

// putBuckets makes two buckets with an object each.
func putBuckets(t *testing.T, owner *s3.Client) {
	t.Helper()
	for _, bucket := range []string{"mine", "other"} {
		if _, err := owner.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &bucket}); err != nil {
			t.Fatal(err)
		}
		_, err := owner.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: aws.String("k"), Body: strings.NewReader("x")})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// refused checks an error's code and message.
func refused(t *testing.T, what string, err error, code, message string) {
	t.Helper()
	got, ok := errors.AsType[smithy.APIError](err)
	if !ok || got.ErrorCode() != code || got.ErrorMessage() != message {
		t.Errorf("%s: got %v, want %s: %s", what, err, code, message)
	}
}

// TestTaskMayReadOneBucket: a task whose role may read one bucket can do that, and nothing else.
func TestTaskMayReadOneBucket(t *testing.T) {
	p := serveSigned(t)
	putBuckets(t, s3Of(p.config("AKID", "secret", "")))
	createRole(t, p, "reader", `{"Effect": "Allow", "Action": ["s3:GetObject", "s3:ListBucket"], "Resource": ["arn:aws:s3:::mine", "arn:aws:s3:::mine/*"]}`)
	task := asTask(t, p, "reader")
	client := s3Of(task)
	get := func(bucket string) error {
		out, err := client.GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: aws.String("k")})
		if err == nil {
			io.Copy(io.Discard, out.Body) //nolint:errcheck // a test
		}
		return err
	}
	if err := get("mine"); err != nil {
		t.Error(err)
	}
	if _, err := client.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("mine")}); err != nil {
		t.Error(err)
	}
	const who = "User: arn:aws:sts::000000000000:assumed-role/reader/a is not authorized to perform: "
	refused(t, "another bucket", get("other"), "AccessDenied",
		who+`s3:GetObject on resource: "arn:aws:s3:::other/k" because no identity-based policy allows the s3:GetObject action`)
	_, err := client.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("mine"), Key: aws.String("k"), Body: strings.NewReader("")})
	refused(t, "a write", err, "AccessDenied",
		who+`s3:PutObject on resource: "arn:aws:s3:::mine/k" because no identity-based policy allows the s3:PutObject action`)
	_, err = awsecs.NewFromConfig(task).ListClusters(t.Context(), nil)
	refused(t, "ECS", err, "AccessDeniedException",
		who+"ecs:ListClusters on resource: * because no identity-based policy allows the ecs:ListClusters action")
	_, err = ec2.NewFromConfig(task).DescribeVpcs(t.Context(), nil)
	refused(t, "EC2", err, "UnauthorizedOperation", "You are not authorized to perform this operation. "+
		who+"ec2:DescribeVpcs because no identity-based policy allows the ec2:DescribeVpcs action")
	_, err = sqs.NewFromConfig(task).ListQueues(t.Context(), nil)
	refused(t, "SQS", err, "AccessDenied",
		who+"sqs:listqueues on resource: * because no identity-based policy allows the sqs:listqueues action")
	_, err = iam.NewFromConfig(task).ListUsers(t.Context(), nil)
	refused(t, "IAM", err, "AccessDenied",
		who+"iam:ListUsers on resource: arn:aws:iam::000000000000:user/ because no identity-based policy allows the iam:ListUsers action")
	if _, err := sts.NewFromConfig(task).GetCallerIdentity(t.Context(), nil); err != nil {
		t.Error(err)
	}
	_, err = sts.NewFromConfig(task).AssumeRole(t.Context(), &sts.AssumeRoleInput{RoleArn: aws.String(roleARNs + "name"), RoleSessionName: aws.String("s1")})
	if code(err) != "AccessDenied" {
		t.Errorf("it assumes a role that is a name alone: %v", err)
	}
	putPolicy(t, p, "reader", `{"Effect": "Allow", "Action": "*", "Resource": "*"}, {"Effect": "Deny", "Action": "s3:*", "Resource": "arn:aws:s3:::mine/*"}`)
	refused(t, "a deny", get("mine"), "AccessDenied",
		who+`s3:GetObject on resource: "arn:aws:s3:::mine/k" with an explicit deny in an identity-based policy`)
	if _, err := p.IAM.DeleteRolePolicy(t.Context(), &iam.DeleteRolePolicyInput{RoleName: aws.String("reader"), PolicyName: aws.String("inline")}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.IAM.DeleteRole(t.Context(), &iam.DeleteRoleInput{RoleName: aws.String("reader")}); err != nil {
		t.Fatal(err)
	}
	if got := code(get("mine")); got != "ExpiredToken" {
		t.Errorf("a role that is gone gets %q", got)
	}
}

// TestRolesThatAreNames: what nobody has set up stays open, unless policies are enforced on all.
func TestRolesThatAreNames(t *testing.T) {
	p := serveSigned(t)
	if _, err := awsecs.NewFromConfig(asTask(t, p, "name")).ListClusters(t.Context(), nil); err != nil {
		t.Error(err)
	}
}

// TestEnforcedOnLoopback: without a key everybody is the owner, but for those whose credentials were issued here. A role that is a name
// alone may do nothing.
func TestEnforcedOnLoopback(t *testing.T) {
	for _, c := range []struct {
		enforce     bool
		named, bare string // the codes that tasks get, in a role without rights and in one that is a name alone
	}{{false, "", ""}, {true, "AccessDenied", "AccessDenied"}} {
		p := serve(t, Options{EnforceIAM: c.enforce})
		putBuckets(t, s3Of(p.config("test", "test", "")))
		createRole(t, p, "reader", `{"Effect": "Allow", "Action": "ecs:ListClusters", "Resource": "*"}`)
		if _, err := awsecs.NewFromConfig(asTask(t, p, "reader")).ListClusters(t.Context(), nil); err != nil {
			t.Errorf("%v: what the role allows: %v", c.enforce, err)
		}
		for role, want := range map[string]string{"reader": c.named, "name": c.bare} {
			task := asTask(t, p, role)
			if _, err := s3Of(task).HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: aws.String("mine"), Key: aws.String("k")}); (err != nil) != (want != "") {
				t.Errorf("%v: the role %s reads: %v", c.enforce, role, err)
			}
			_, err := sqs.NewFromConfig(task).ListQueues(t.Context(), nil)
			if got := code(err); got != want {
				t.Errorf("%v: the role %s gets %q, want %q", c.enforce, role, got, want)
			}
		}
	}
}

// TestKeysThatAreOverOnLoopback: a key of a user or a session that holds no longer, or is misused, doesn't make its holder the owner.
func TestKeysThatAreOverOnLoopback(t *testing.T) {
	p := serve(t, Options{EnforceIAM: true})
	createRole(t, p, "reader", `{"Effect": "Allow", "Action": "ecs:ListClusters", "Resource": "*"}`)
	name := aws.String("ann")
	if _, err := p.IAM.CreateUser(t.Context(), &iam.CreateUserInput{UserName: name}); err != nil {
		t.Fatal(err)
	}
	made, err := p.IAM.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: name})
	if err != nil {
		t.Fatal(err)
	}
	key := made.AccessKey
	putTask(t, p, "RUNNING")
	task := p.taskCredentials(p.State.View().Tasks.Get(aTask), roleARNs+"reader", "TaskApplication")
	list := func(id, secret, token string) string {
		_, err := awsecs.NewFromConfig(p.config(id, secret, token)).ListClusters(t.Context(), nil)
		return code(err)
	}
	expect := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s gets %q, want %q", what, got, want)
		}
	}
	expect("the owner", list("test", "test", ""), "")
	expect("a task", list(task.AccessKeyID, task.SecretAccessKey, task.SessionToken), "")
	expect("a token that was changed", list(task.AccessKeyID, task.SecretAccessKey, task.SessionToken+"x"), "UnrecognizedClientException")
	expect("a session without its token", list(task.AccessKeyID, task.SecretAccessKey, ""), "UnrecognizedClientException")
	expect("a user's key with another secret", list(*key.AccessKeyId, "secret", ""), "InvalidSignatureException")
	expect("a user", list(*key.AccessKeyId, *key.SecretAccessKey, ""), "AccessDeniedException")
	_, err = p.IAM.UpdateAccessKey(t.Context(), &iam.UpdateAccessKeyInput{UserName: name, AccessKeyId: key.AccessKeyId, Status: "Inactive"})
	if err != nil {
		t.Fatal(err)
	}
	expect("an inactive key", list(*key.AccessKeyId, *key.SecretAccessKey, ""), "UnrecognizedClientException")
	_, err = s3Of(p.config(*key.AccessKeyId, *key.SecretAccessKey, "")).ListBuckets(t.Context(), nil)
	expect("an inactive key in S3", code(err), "InvalidAccessKeyId")
	_, err = sts.NewFromConfig(p.config(*key.AccessKeyId, *key.SecretAccessKey, "")).GetCallerIdentity(t.Context(), nil)
	expect("an inactive key in STS", code(err), "InvalidClientTokenId")
	for _, header := range []string{
		"AWS " + *key.AccessKeyId + ":c2lnbmF0dXJl",
		"AWS4-ECDSA-P256-SHA256 Credential=" + *key.AccessKeyId + "/20261123/s3/aws4_request, SignedHeaders=host, Signature=00",
		"AWS4-HMAC-SHA256\tCredential=" + *key.AccessKeyId + "/20261123/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=00",
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.Endpoint()+"/", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", header)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close() //nolint:errcheck // a test
		if answer.StatusCode < 400 {
			t.Errorf("an inactive key in %q gets %d", header, answer.StatusCode)
		}
	}
	putTask(t, p, "STOPPED")
	expect("a task that has ended", list(task.AccessKeyID, task.SecretAccessKey, task.SessionToken), "ExpiredTokenException")
}

// TestUsersKeys: an IAM user may do what its policies say, and is not the owner.
func TestUsersKeys(t *testing.T) {
	p := serveSigned(t)
	name := aws.String("ann")
	if _, err := p.IAM.CreateUser(t.Context(), &iam.CreateUserInput{UserName: name}); err != nil {
		t.Fatal(err)
	}
	key, err := p.IAM.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: name})
	if err != nil {
		t.Fatal(err)
	}
	id, secret := *key.AccessKey.AccessKeyId, *key.AccessKey.SecretAccessKey
	client := awsecs.NewFromConfig(p.config(id, secret, ""))
	_, err = client.ListClusters(t.Context(), nil)
	refused(t, "without a policy", err, "AccessDeniedException", "User: arn:aws:iam::000000000000:user/ann is not authorized to perform: "+
		"ecs:ListClusters on resource: * because no identity-based policy allows the ecs:ListClusters action")
	_, err = p.IAM.PutUserPolicy(t.Context(), &iam.PutUserPolicyInput{UserName: name, PolicyName: aws.String("p"), PolicyDocument: aws.String(
		`{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": ["ecs:*", "iam:*AccessKey*"], "Resource": ["arn:aws:ecs:*", "arn:aws:iam::*:user/${aws:username}"]}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.DescribeClusters(t.Context(), nil); err != nil {
		t.Error(err)
	}
	if _, err := iam.NewFromConfig(p.config(id, secret, "")).ListAccessKeys(t.Context(), nil); err != nil {
		t.Error(err)
	}
	td, err := p.ECS.RegisterTaskDefinition(t.Context(), taskDefinitionIn("name"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = client.RunTask(t.Context(), &awsecs.RunTaskInput{TaskDefinition: td.TaskDefinition.Family})
	if code(err) != "AccessDeniedException" || !strings.Contains(err.Error(), "iam:PassRole on resource: "+roleARNs+"name") {
		t.Errorf("a task in a role that the user can't pass: %v", err)
	}
}

// TestConditionsAndCompleteARNs: conditions hold on what a call gives, and resources are what stores know of them.
func TestConditionsAndCompleteARNs(t *testing.T) {
	p := serveSigned(t)
	putBuckets(t, s3Of(p.config("AKID", "secret", "")))
	secret, err := p.SecretsManager.CreateSecret(t.Context(), newSecret("db"))
	if err != nil {
		t.Fatal(err)
	}
	arn, _ := json.Marshal(secret.ARN)
	createRole(t, p, "reader", `
		{"Effect": "Allow", "Action": "s3:ListBucket", "Resource": "*", "Condition": {"StringLike": {"s3:prefix": "a/*"}, "IpAddress": {"aws:SourceIp": "127.0.0.0/8"}}},
		{"Effect": "Allow", "Action": "secretsmanager:GetSecretValue", "Resource": `+string(arn)+`}`)
	task := asTask(t, p, "reader")
	list := func(prefix string) string {
		t.Helper()
		_, err := s3Of(task).ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("mine"), Prefix: &prefix})
		return code(err)
	}
	if in, out := list("a/b"), list("b"); in != "" || out != "AccessDenied" {
		t.Errorf("below the prefix: %q, elsewhere: %q", in, out)
	}
	read := func(id string) string {
		_, err := secretsmanager.NewFromConfig(task).GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{SecretId: &id})
		return code(err)
	}
	if byName, other := read("db"), read("other"); byName != "" || other != "AccessDeniedException" {
		t.Errorf("the secret: %q, another: %q", byName, other)
	}
}

// TestChangeSetsAreTheirStacks: who may do something to a stack may do it by a change set's ARN, as deployers do, and who mustn't, mustn't.
func TestChangeSetsAreTheirStacks(t *testing.T) {
	p := serveSigned(t)
	stack := "arn:aws:cloudformation:us-east-1:000000000000:stack/"
	createRole(t, p, "deployer", `
		{"Effect": "Allow", "Action": "cloudformation:*", "Resource": "`+stack+`mine/*"},
		{"Effect": "Allow", "Action": "cloudformation:*", "Resource": "arn:aws:cloudformation:*:*:changeSet/*"}`)
	client := cloudformation.NewFromConfig(asTask(t, p, "deployer"))
	for name, want := range map[string]string{"mine": "", "theirs": "AccessDenied"} {
		set, err := p.CloudFormation.CreateChangeSet(t.Context(), &cloudformation.CreateChangeSetInput{
			StackName: &name, ChangeSetName: aws.String("c"), ChangeSetType: cfntypes.ChangeSetTypeCreate,
			TemplateBody: aws.String(`{"Resources": {"W": {"Type": "AWS::CloudFormation::WaitConditionHandle"}}}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client.DescribeChangeSet(t.Context(), &cloudformation.DescribeChangeSetInput{ChangeSetName: set.Id}); code(err) != want {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestPoliciesOfResources: the policy of a bucket, a queue or a secret allows, or denies, as those of the role do. It means the same where it
// names a service that IAM would not have.
func TestPoliciesOfResources(t *testing.T) {
	p := serveSigned(t)
	owner := p.config("AKID", "secret", "")
	putBuckets(t, s3Of(owner))
	createRole(t, p, "worker", `{"Effect": "Allow", "Action": "s3:*", "Resource": "arn:aws:s3:::other/*"}`)
	statement := func(effect, action, resource string) *string {
		return aws.String(`{"Version": "2012-10-17", "Statement": [{"Effect": "` + effect + `", "Principal": {"AWS": "` + roleARNs + `worker"}, "Action": "` +
			action + `", "Resource": "` + resource + `"},
			{"Effect": "Deny", "Principal": {"Service": "ci.example.com"}, "Action": "` + action + `", "Resource": "` + resource + `"}]}`)
	}
	for bucket, effect := range map[string]string{"mine": "Allow", "other": "Deny"} {
		_, err := s3Of(owner).PutBucketPolicy(t.Context(), &s3.PutBucketPolicyInput{
			Bucket: &bucket, Policy: statement(effect, "s3:GetObject", "arn:aws:s3:::"+bucket+"/*"),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	queue, err := p.SQS.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("jobs"), Attributes: map[string]string{
		"Policy": *statement("Allow", "sqs:SendMessage", "arn:aws:sqs:us-east-1:000000000000:jobs"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.SecretsManager.CreateSecret(t.Context(), newSecret("db")); err != nil {
		t.Fatal(err)
	}
	_, err = p.SecretsManager.PutResourcePolicy(t.Context(), &secretsmanager.PutResourcePolicyInput{
		SecretId: aws.String("db"), ResourcePolicy: statement("Allow", "secretsmanager:GetSecretValue", "*"),
	})
	if err != nil {
		t.Fatal(err)
	}
	task := asTask(t, p, "worker")
	get := func(bucket string) error {
		_, err := s3Of(task).GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: aws.String("k")})
		return err
	}
	send := func() error {
		_, err := sqs.NewFromConfig(task).SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: queue.QueueUrl, MessageBody: aws.String("x")})
		return err
	}
	read := func() error {
		_, err := secretsmanager.NewFromConfig(task).GetSecretValue(t.Context(), &secretsmanager.GetSecretValueInput{SecretId: aws.String("db")})
		return err
	}
	if err := errors.Join(get("mine"), send(), read()); err != nil {
		t.Errorf("what the resources' policies allow: %v", err)
	}
	refused(t, "what a bucket's policy denies", get("other"), "AccessDenied",
		`User: arn:aws:sts::000000000000:assumed-role/worker/a is not authorized to perform: s3:GetObject on resource: "arn:aws:s3:::other/k" `+
			"with an explicit deny in a resource-based policy")
	bound(t, p, "worker", "ecs:*")
	for what, err := range map[string]error{"bucket": get("mine"), "queue": send(), "secret": read()} {
		if !strings.Contains(fmt.Sprint(err), "because no permissions boundary allows the ") {
			t.Errorf("beyond the boundary, the %s: %v", what, err)
		}
	}
}

// bound gives a role a boundary.
func bound(t *testing.T, p *Plane, role, action string) {
	t.Helper()
	boundary, err := p.IAM.CreatePolicy(t.Context(), &iam.CreatePolicyInput{PolicyName: aws.String("bound"), PolicyDocument: aws.String(
		`{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "` + action + `", "Resource": "*"}}`)})
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.IAM.PutRolePermissionsBoundary(t.Context(), &iam.PutRolePermissionsBoundaryInput{
		RoleName: &role, PermissionsBoundary: boundary.Policy.Arn,
	})
	if err != nil {
		t.Fatal(err)
	}
}

func newSecret(name string) *secretsmanager.CreateSecretInput {
	return &secretsmanager.CreateSecretInput{
		Name:               &name,
		SecretString:       aws.String("x"),
		ClientRequestToken: aws.String("00000000-0000-0000-0000-000000000000"),
	}
}

// taskDefinitionIn returns a task definition whose tasks have a role.
func taskDefinitionIn(role string) *awsecs.RegisterTaskDefinitionInput {
	return &awsecs.RegisterTaskDefinitionInput{
		Family:      aws.String("job"),
		TaskRoleArn: aws.String(roleARNs + role),
		ContainerDefinitions: []types.ContainerDefinition{
			{Name: aws.String("main"), Image: aws.String("busybox"), Memory: aws.Int32(64)},
		},
	}
}

// TestTasksMakeNoOthers: whatever a task's role allows, a task makes nobody who is more than it is and doesn't end with it: no user, role or
// key, be it by a stack, and no instance with a role or with programs of its own.
func TestTasksMakeNoOthers(t *testing.T) {
	p := serveSigned(t)
	createRole(t, p, "strong", `{"Effect": "Allow", "Action": "*", "Resource": "*"}`)
	_, err := p.EC2.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String("owners"),
		LaunchTemplateData: &ec2types.RequestLaunchTemplateData{
			IamInstanceProfile: &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("p")},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, role := range []string{"strong", "name"} {
		task := asTask(t, p, role)
		users, machines := iam.NewFromConfig(task), ec2.NewFromConfig(task)
		data, profile := aws.String("IyEvYmluL3No"), aws.String("p")
		launch := &ec2types.RequestLaunchTemplateData{IamInstanceProfile: &ec2types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: profile}}
		for what, do := range map[string]func() error{
			"a user": func() error {
				_, err := users.CreateUser(t.Context(), &iam.CreateUserInput{UserName: aws.String("mine")})
				return err
			},
			"a key": func() error {
				_, err := users.CreateAccessKey(t.Context(), &iam.CreateAccessKeyInput{UserName: aws.String("mine")})
				return err
			},
			"another role's trust": func() error {
				_, err := users.UpdateAssumeRolePolicy(t.Context(), &iam.UpdateAssumeRolePolicyInput{RoleName: aws.String("strong"), PolicyDocument: aws.String("{}")})
				return err
			},
			"an instance with a role": func() error {
				_, err := machines.RunInstances(t.Context(), &ec2.RunInstancesInput{
					MinCount: aws.Int32(1), MaxCount: aws.Int32(1), IamInstanceProfile: &ec2types.IamInstanceProfileSpecification{Name: profile},
				})
				return err
			},
			"an instance with user data": func() error {
				_, err := machines.RunInstances(t.Context(), &ec2.RunInstancesInput{MinCount: aws.Int32(1), MaxCount: aws.Int32(1), UserData: data})
				return err
			},
			"a template with a role": func() error {
				_, err := machines.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("t"), LaunchTemplateData: launch})
				return err
			},
			"a version of one": func() error {
				_, err := machines.CreateLaunchTemplateVersion(t.Context(), &ec2.CreateLaunchTemplateVersionInput{LaunchTemplateName: aws.String("t"), LaunchTemplateData: launch})
				return err
			},
			"a version of another's": func() error {
				_, err := machines.CreateLaunchTemplateVersion(t.Context(), &ec2.CreateLaunchTemplateVersionInput{
					LaunchTemplateName: aws.String("owners"), SourceVersion: aws.String("1"),
					LaunchTemplateData: &ec2types.RequestLaunchTemplateData{ImageId: aws.String("ami-0123456789abcdef0")},
				})
				return err
			},
			"an instance of another's template": func() error {
				_, err := machines.RunInstances(t.Context(), &ec2.RunInstancesInput{
					MinCount: aws.Int32(1), MaxCount: aws.Int32(1), ImageId: aws.String("ami-0123456789abcdef0"),
					LaunchTemplate: &ec2types.LaunchTemplateSpecification{LaunchTemplateName: aws.String("owners")},
				})
				return err
			},
			"a launch configuration with user data": func() error {
				_, err := autoscaling.NewFromConfig(task).CreateLaunchConfiguration(t.Context(), &autoscaling.CreateLaunchConfigurationInput{
					LaunchConfigurationName: aws.String("c"), ImageId: aws.String("ami-0123456789abcdef0"), InstanceType: aws.String("m5.large"), UserData: data,
				})
				return err
			},
		} {
			if got := code(do()); !slices.Contains([]string{"AccessDenied", "UnauthorizedOperation"}, got) {
				t.Errorf("%s by %s gets %q", what, role, got)
			}
		}
		if _, err := users.ListUsers(t.Context(), nil); err != nil {
			t.Errorf("%s lists users: %v", role, err)
		}
	}
	template := `{"Resources": {"U": {"Type": "AWS::IAM::User"}}}`
	stacks := cloudformation.NewFromConfig(asTask(t, p, "strong"))
	made, err := stacks.CreateStack(t.Context(), &cloudformation.CreateStackInput{
		StackName: aws.String("s"), TemplateBody: &template, Capabilities: []cfntypes.Capability{cfntypes.CapabilityCapabilityIam},
	})
	if err != nil {
		t.Fatal(err)
	}
	waiter := cloudformation.NewStackCreateCompleteWaiter(stacks, func(o *cloudformation.StackCreateCompleteWaiterOptions) {
		o.MinDelay, o.MaxDelay = 50*time.Millisecond, 100*time.Millisecond
	})
	if err := waiter.Wait(t.Context(), &cloudformation.DescribeStacksInput{StackName: made.StackId}, time.Minute); err == nil {
		t.Error("a stack made a user")
	}
	events, err := stacks.DescribeStackEvents(t.Context(), &cloudformation.DescribeStackEventsInput{StackName: made.StackId})
	if err != nil || !slices.ContainsFunc(events.StackEvents, func(e cfntypes.StackEvent) bool {
		return strings.Contains(aws.ToString(e.ResourceStatusReason), "iam:CreateUser")
	}) {
		t.Errorf("no event says why: %v", err)
	}
	if out, err := p.IAM.ListUsers(t.Context(), &iam.ListUsersInput{}); err != nil || len(out.Users) > 0 {
		t.Errorf("a stack made users: %v %v", out, err)
	}
}

// TestTasksPassTheirOwnRoleOnly: a task has neither functions nor the targets of rules and schedules be more than it is. Whoever runs those is
// no task, so tasks aren't run by them at all.
func TestTasksPassTheirOwnRoleOnly(t *testing.T) {
	p := serveSigned(t)
	createRole(t, p, "strong", `{"Effect": "Allow", "Action": "*", "Resource": "*"}`)
	putFunction(t, p, "others")
	trust := `{"Statement": {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": ["lambda.amazonaws.com", "events.amazonaws.com"]}}}`
	if _, err := p.IAM.UpdateAssumeRolePolicy(t.Context(), &iam.UpdateAssumeRolePolicyInput{RoleName: aws.String("strong"), PolicyDocument: &trust}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Events.PutRule(t.Context(), &eventbridge.PutRuleInput{Name: aws.String("r"), EventPattern: aws.String(`{"source": ["s"]}`)}); err != nil {
		t.Fatal(err)
	}
	target := func(service, resource string) *string {
		return aws.String("arn:aws:" + service + ":us-east-1:000000000000:" + resource)
	}
	for _, own := range []string{"strong", "name"} {
		task := asTask(t, p, own)
		functions, events, schedules := lambda.NewFromConfig(task), eventbridge.NewFromConfig(task), scheduler.NewFromConfig(task)
		create := func(role string) error {
			_, err := functions.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
				FunctionName: aws.String("of-" + own), Role: aws.String(roleARNs + role), Runtime: "python3.12", Handler: aws.String("index.handler"),
				Code: &lambdatypes.FunctionCode{ZipFile: zipped(t)},
			})
			return err
		}
		put := func(role string, ecs *ebtypes.EcsParameters) error {
			to := target("sqs", "q")
			if ecs != nil {
				to = target("ecs", "cluster/default")
			}
			_, err := events.PutTargets(t.Context(), &eventbridge.PutTargetsInput{Rule: aws.String("r"), Targets: []ebtypes.Target{
				{Id: aws.String("t"), Arn: to, RoleArn: aws.String(roleARNs + role), EcsParameters: ecs},
			}})
			return err
		}
		schedule := func(role string, ecs *schedulertypes.EcsParameters) error {
			_, err := schedules.CreateSchedule(t.Context(), &scheduler.CreateScheduleInput{
				Name: aws.String("s"), ScheduleExpression: aws.String("rate(1 hour)"), FlexibleTimeWindow: &schedulertypes.FlexibleTimeWindow{Mode: "OFF"},
				Target: &schedulertypes.Target{Arn: target("sqs", "q"), RoleArn: aws.String(roleARNs + role), EcsParameters: ecs},
			})
			return err
		}
		change := func(in *lambda.UpdateFunctionConfigurationInput) error {
			_, err := functions.UpdateFunctionConfiguration(t.Context(), in)
			return err
		}
		update := func() error {
			_, err := functions.UpdateFunctionCode(t.Context(), &lambda.UpdateFunctionCodeInput{
				FunctionName: aws.String("000000000000:function:others"), ZipFile: zipped(t),
			})
			return err
		}
		if err := errors.Join(create(own), put(own, nil)); err != nil {
			t.Errorf("%s passes itself: %v", own, err)
		}
		for what, err := range map[string]error{
			"a function":                  create("another"),
			"a function's role":           change(&lambda.UpdateFunctionConfigurationInput{FunctionName: aws.String("of-" + own), Role: aws.String(roleARNs + "another")}),
			"others' function's settings": change(&lambda.UpdateFunctionConfigurationInput{FunctionName: target("lambda", "function:others")}),
			"others' function's code":     update(),
			"a target":                    put("another", nil),
			"a cluster":                   put(own, &ebtypes.EcsParameters{TaskDefinitionArn: aws.String("d")}),
			"a schedule":                  schedule("another", nil),
			"a schedule of tasks":         schedule(own, &schedulertypes.EcsParameters{TaskDefinitionArn: aws.String("d")}),
		} {
			if got := code(err); got != "AccessDeniedException" {
				t.Errorf("%s by %s: %v", what, own, err)
			}
		}
	}
}

// TestTasksTargetNoLoopback: a task in a network of its own has no load balancer call what only the balancer's machine reaches.
func TestTasksTargetNoLoopback(t *testing.T) {
	p := serveSigned(t)
	createRole(t, p, "strong", `{"Effect": "Allow", "Action": "*", "Resource": "*"}`)
	made, err := p.ELB.CreateTargetGroup(t.Context(), &elasticloadbalancingv2.CreateTargetGroupInput{
		Name: aws.String("g"), Protocol: "HTTP", Port: aws.Int32(80), VpcId: aws.String("vpc-1"), TargetType: elbtypes.TargetTypeEnumIp,
	})
	if err != nil {
		t.Fatal(err)
	}
	register := func(client *elasticloadbalancingv2.Client, id string) string {
		_, err := client.RegisterTargets(t.Context(), &elasticloadbalancingv2.RegisterTargetsInput{
			TargetGroupArn: made.TargetGroups[0].TargetGroupArn,
			Targets:        []elbtypes.TargetDescription{{Id: aws.String("10.0.0.1")}, {Id: &id}},
		})
		return code(err)
	}
	owner := elasticloadbalancingv2.NewFromConfig(p.config("AKID", "secret", ""))
	for _, role := range []string{"strong", "name"} {
		task := elasticloadbalancingv2.NewFromConfig(asTask(t, p, role))
		if got := register(task, "10.0.0.2"); got != "" {
			t.Errorf("a private address by %s: %s", role, got)
		}
		for _, id := range []string{"127.0.0.1", "127.8.9.1"} {
			if got := register(task, id); got != "AccessDenied" {
				t.Errorf("%s by %s: %q", id, role, got)
			}
			if got := register(owner, id); got != "" {
				t.Errorf("%s by the owner: %s", id, got)
			}
		}
	}
}

// TestSessionPolicies: a session may do what both its own policies and its role's allow, also by a stack.
func TestSessionPolicies(t *testing.T) {
	p := serveSigned(t)
	putBuckets(t, s3Of(p.config("AKID", "secret", "")))
	createRole(t, p, "reader", `{"Effect": "Allow", "Action": ["s3:*", "cloudformation:*", "ssm:PutParameter"], "Resource": "*"}`)
	managed, err := p.IAM.CreatePolicy(t.Context(), &iam.CreatePolicyInput{PolicyName: aws.String("other"), PolicyDocument: aws.String(
		`{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::other/*"}}`)})
	if err != nil {
		t.Fatal(err)
	}
	inline := aws.String(`{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": ["s3:GetObject", "sqs:*", "cloudformation:*"],
		"NotResource": ["arn:aws:s3:::other/*"]}}`)
	arns := []ststypes.PolicyDescriptorType{{Arn: managed.Policy.Arn}}
	assume := func(role string, inline *string, arns []ststypes.PolicyDescriptorType) (aws.Config, error) {
		out, err := sts.NewFromConfig(p.config("AKID", "secret", "")).AssumeRole(t.Context(), &sts.AssumeRoleInput{
			RoleArn: aws.String(roleARNs + role), RoleSessionName: aws.String("mine"), Policy: inline, PolicyArns: arns,
		})
		if err != nil {
			return aws.Config{}, err
		}
		if limited := inline != nil || arns != nil; limited != (aws.ToInt32(out.PackedPolicySize) > 0) {
			t.Errorf("the packed size is %v", out.PackedPolicySize)
		}
		return p.config(*out.Credentials.AccessKeyId, *out.Credentials.SecretAccessKey, *out.Credentials.SessionToken), nil
	}
	for _, c := range []struct {
		name          string
		role          string
		inline        *string
		arns          []ststypes.PolicyDescriptorType
		mine, other   string // the codes that reading an object of each bucket gets
		queues, write string // those of listing queues, and of putting an object
	}{
		{"none", "reader", nil, nil, "", "", "AccessDenied", ""},
		{"inline", "reader", inline, nil, "", "AccessDenied", "AccessDenied", "AccessDenied"},
		{"managed", "reader", nil, arns, "AccessDenied", "", "AccessDenied", "AccessDenied"},
		{"both", "reader", inline, arns, "", "", "AccessDenied", "AccessDenied"},
		{"of a role that is a name", "name", inline, nil, "", "AccessDenied", "", "AccessDenied"},
	} {
		session, err := assume(c.role, c.inline, c.arns)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		get := func(bucket string) string {
			_, err := s3Of(session).GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: aws.String("k")})
			return code(err)
		}
		_, listing := sqs.NewFromConfig(session).ListQueues(t.Context(), nil)
		_, writing := s3Of(session).PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("mine"), Key: aws.String("k"), Body: strings.NewReader("x")})
		got := []string{get("mine"), get("other"), code(listing), code(writing)}
		if want := []string{c.mine, c.other, c.queues, c.write}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", c.name, got, want)
		}
	}
	if _, err := assume("reader", aws.String(*inline+strings.Repeat(" ", 2048)), nil); code(err) != "PackedPolicyTooLarge" {
		t.Errorf("a long policy: %v", err)
	}
	if _, err := assume("reader", nil, []ststypes.PolicyDescriptorType{{Arn: aws.String("arn:aws:iam::000000000000:policy/none")}}); code(err) != "ValidationError" {
		t.Errorf("a policy that there isn't: %v", err)
	}
	session, err := assume("reader", inline, nil)
	if err != nil {
		t.Fatal(err)
	}
	stacks := cloudformation.NewFromConfig(session)
	made, err := stacks.CreateStack(t.Context(), &cloudformation.CreateStackInput{StackName: aws.String("s"), TemplateBody: aws.String(
		`{"Resources": {"P": {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Name": "p", "Value": "v"}}}}`)})
	if err != nil {
		t.Fatal(err)
	}
	waiter := cloudformation.NewStackCreateCompleteWaiter(stacks, func(o *cloudformation.StackCreateCompleteWaiterOptions) {
		o.MinDelay, o.MaxDelay = 50*time.Millisecond, 100*time.Millisecond
	})
	if err := waiter.Wait(t.Context(), &cloudformation.DescribeStacksInput{StackName: made.StackId}, time.Minute); err == nil {
		t.Error("a stack made a parameter that the session's policies don't allow")
	}
	gone, err := assume("reader", nil, arns)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.IAM.DeletePolicy(t.Context(), &iam.DeletePolicyInput{PolicyArn: managed.Policy.Arn}); err != nil {
		t.Fatal(err)
	}
	if _, err := s3Of(gone).GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("other"), Key: aws.String("k")}); code(err) != "AccessDenied" {
		t.Errorf("with a policy that is gone: %v", err)
	}
}

// stackRole makes a role that CloudFormation may assume, and which may do what a statement says.
func stackRole(t *testing.T, p *Plane, name, statement string) (arn *string) {
	t.Helper()
	createRole(t, p, name, statement)
	trust := `{"Statement": {"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "cloudformation.amazonaws.com"}}}`
	if _, err := p.IAM.UpdateAssumeRolePolicy(t.Context(), &iam.UpdateAssumeRolePolicyInput{RoleName: &name, PolicyDocument: &trust}); err != nil {
		t.Fatal(err)
	}
	return aws.String(roleARNs + name)
}

// TestStackRole: a stack's calls are made with its service role, which may do what its caller mayn't, as the CDK's do. It ends with the role.
func TestStackRole(t *testing.T) {
	p := serveSigned(t)
	maker := stackRole(t, p, "maker", `{"Effect": "Allow", "Action": ["ssm:*"], "Resource": "*"}`)
	createRole(t, p, "deployer", `{"Effect": "Allow", "Action": "cloudformation:*", "Resource": "*"},
		{"Effect": "Allow", "Action": "iam:PassRole", "Resource": ["`+*maker+`", "`+roleARNs+`deployer"]}`)
	out, err := sts.NewFromConfig(p.config("AKID", "secret", "")).AssumeRole(t.Context(), &sts.AssumeRoleInput{
		RoleArn: aws.String(roleARNs + "deployer"), RoleSessionName: aws.String("cdk"),
	})
	if err != nil {
		t.Fatal(err)
	}
	c := out.Credentials
	stacks := cloudformation.NewFromConfig(p.config(*c.AccessKeyId, *c.SecretAccessKey, *c.SessionToken))
	create := func(name string, role *string, template string) (cfntypes.StackStatus, error) {
		t.Helper()
		made, err := stacks.CreateStack(t.Context(), &cloudformation.CreateStackInput{StackName: &name, RoleARN: role, TemplateBody: &template})
		if err != nil {
			return "", err
		}
		return p.settledStack(t, *made.StackId), nil
	}
	const parameter = `{"Resources": {"P": {"Type": "AWS::SSM::Parameter", "Properties": {"Type": "String", "Value": "v"}}}}`
	for name, want := range map[string]struct {
		role     *string
		template string
		status   cfntypes.StackStatus
	}{
		"with-role":    {maker, parameter, cfntypes.StackStatusCreateComplete},
		"without-role": {nil, parameter, cfntypes.StackStatusRollbackComplete},
		"too-much":     {maker, `{"Resources": {"Q": {"Type": "AWS::SQS::Queue"}}}`, cfntypes.StackStatusRollbackComplete},
	} {
		if status, err := create(name, want.role, want.template); err != nil || status != want.status {
			t.Errorf("%s: %s, %v", name, status, err)
		}
	}
	if _, err := create("untrusting", aws.String(roleARNs+"deployer"), parameter); code(err) != "ValidationError" {
		t.Errorf("a role that doesn't trust CloudFormation: %v", err)
	}
	if _, err := create("not-passed", stackRole(t, p, "other", `{"Effect": "Allow", "Action": "*", "Resource": "*"}`), parameter); code(err) != "AccessDenied" {
		t.Errorf("a role that may not be passed: %v", err)
	}
	if _, err := p.IAM.DeleteRolePolicy(t.Context(), &iam.DeleteRolePolicyInput{RoleName: aws.String("maker"), PolicyName: aws.String("inline")}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.IAM.DeleteRole(t.Context(), &iam.DeleteRoleInput{RoleName: aws.String("maker")}); err != nil {
		t.Fatal(err)
	}
	if _, err := stacks.DeleteStack(t.Context(), &cloudformation.DeleteStackInput{StackName: aws.String("with-role")}); code(err) != "ValidationError" {
		t.Errorf("a role that is gone: %v", err)
	}
}

// TestScalersOwnRole: the role that is linked to Application Auto Scaling may be passed to it before it's there, and to nobody else.
func TestScalersOwnRole(t *testing.T) {
	g := gate{plane: serveSigned(t)}
	const arn = "arn:aws:iam::000000000000:role/aws-service-role/ecs.application-autoscaling.amazonaws.com/AWSServiceRoleForApplicationAutoScaling_ECSService"
	all, err := policy.Parse(policy.Identity, `{"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "iam:PassRole", "Resource": "*"}}`)
	if err != nil {
		t.Fatal(err)
	}
	as := policy.Principal{ARN: roleARNs + "deployer", Role: roleARNs + "deployer"}
	who := permissions.Permissions{Principal: as, Policies: policy.Policies{Identity: []*policy.Policy{all}}}
	for _, c := range []struct {
		role, to string
		want     policy.Effect
	}{
		{arn, "application-autoscaling.amazonaws.com", policy.Allowed},
		{arn, "ecs-tasks.amazonaws.com", policy.Decision{}.Effect},
		{strings.Replace(arn, "ecs.application-autoscaling", "ecs-tasks", 1), "ecs-tasks.amazonaws.com", policy.Decision{}.Effect},
		{roleARNs + "none", "application-autoscaling.amazonaws.com", policy.Decision{}.Effect},
	} {
		n := authorize.Need{Action: "iam:PassRole", Resource: c.role, PassedTo: c.to}
		if got := g.decide(t.Context(), n, who, policy.Context{}).Effect; got != c.want {
			t.Errorf("%s to %s: %v", c.role, c.to, got)
		}
	}
}

// settledStack waits until a stack's operation is over, and returns its status.
func (p *Plane) settledStack(t *testing.T, id string) (status cfntypes.StackStatus) {
	t.Helper()
	eventually(t, "the end of a stack's operation", func() bool {
		s := p.State.View().Stacks.Get(id)
		status = s.StackStatus
		return !s.Busy()
	})
	return status
}

// TestWritingsOfServices: who may not write into a bucket, a queue or a topic doesn't have a service write there, unless the bucket's, the
// queue's or the topic's own policy lets that service.
func TestWritingsOfServices(t *testing.T) {
	p := serveSigned(t)
	owner := p.config("AKID", "secret", "")
	putBuckets(t, s3Of(owner))
	queue, err := sqs.NewFromConfig(owner).CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cloudwatchlogs.NewFromConfig(owner).CreateLogGroup(t.Context(), &cloudwatchlogs.CreateLogGroupInput{LogGroupName: aws.String("g")}); err != nil {
		t.Fatal(err)
	}
	news, err := sns.NewFromConfig(owner).CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("news")})
	if err != nil {
		t.Fatal(err)
	}
	sub, err := sns.NewFromConfig(owner).Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: news.TopicArn, Protocol: aws.String("sqs"), Endpoint: aws.String("arn:aws:sqs:us-east-1:000000000000:other")})
	if err != nil {
		t.Fatal(err)
	}
	createRole(t, p, "limited", `{"Effect": "Allow", "Action": ["logs:*", "s3:PutBucketNotification", "sns:Subscribe", "sns:SetSubscriptionAttributes",
		"cloudformation:CreateStack", "cloudwatch:PutMetricAlarm", "autoscaling:CreateAutoScalingGroup", "elasticloadbalancing:*"], "Resource": "*"}`)
	c := asTask(t, p, "limited")
	const queueARN = "arn:aws:sqs:us-east-1:000000000000:q"
	calls := map[string]func() error{
		"an export": func() error {
			_, err := cloudwatchlogs.NewFromConfig(c).CreateExportTask(t.Context(), &cloudwatchlogs.CreateExportTaskInput{
				LogGroupName: aws.String("g"), Destination: aws.String("other"), From: aws.Int64(0), To: aws.Int64(1),
			})
			return err
		},
		"a subscription": func() error {
			_, err := cloudwatchlogs.NewFromConfig(c).PutSubscriptionFilter(t.Context(), &cloudwatchlogs.PutSubscriptionFilterInput{
				LogGroupName: aws.String("g"), FilterName: aws.String("f"), FilterPattern: aws.String(""), DestinationArn: aws.String(queueARN),
			})
			return err
		},
		"notifications": func() error {
			_, err := s3Of(c).PutBucketNotificationConfiguration(t.Context(), &s3.PutBucketNotificationConfigurationInput{
				Bucket: aws.String("mine"), NotificationConfiguration: &s3types.NotificationConfiguration{QueueConfigurations: []s3types.QueueConfiguration{
					{QueueArn: aws.String(queueARN), Events: []s3types.Event{"s3:ObjectCreated:*"}},
				}},
			})
			return err
		},
	}
	calls["a queue's subscription to a topic"] = func() error {
		_, err := sns.NewFromConfig(c).Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: news.TopicArn, Protocol: aws.String("sqs"), Endpoint: aws.String(queueARN)})
		return err
	}
	calls["dead letters"] = func() error {
		_, err := sns.NewFromConfig(c).SetSubscriptionAttributes(t.Context(), &sns.SetSubscriptionAttributesInput{
			SubscriptionArn: sub.SubscriptionArn, AttributeName: aws.String("RedrivePolicy"), AttributeValue: aws.String(`{"deadLetterTargetArn":"` + queueARN + `"}`),
		})
		return err
	}
	calls["access logs"] = accessLogs(t, p, c)
	created := 0
	calls["a stack's notifications"] = func() error {
		created++
		_, err := cloudformation.NewFromConfig(c).CreateStack(t.Context(), &cloudformation.CreateStackInput{
			StackName: aws.String("s" + strings.Repeat("x", created)), NotificationARNs: []string{*news.TopicArn},
			TemplateBody: aws.String("Resources: {W: {Type: AWS::CloudFormation::WaitConditionHandle}}"),
		})
		return err
	}
	for _, destination := range []string{*news.TopicArn, queueARN} {
		calls["an alarm's action at "+destination] = func() error {
			_, err := cloudwatch.NewFromConfig(c).PutMetricAlarm(t.Context(), &cloudwatch.PutMetricAlarmInput{
				AlarmName: aws.String("a"), Namespace: aws.String("n"), MetricName: aws.String("m"), Statistic: "Sum", Period: aws.Int32(60),
				EvaluationPeriods: aws.Int32(1), Threshold: aws.Float64(1), ComparisonOperator: "GreaterThanThreshold", AlarmActions: []string{destination},
			})
			return err
		}
	}
	_, err = autoscaling.NewFromConfig(asTask(t, p, "limited")).CreateAutoScalingGroup(t.Context(), &autoscaling.CreateAutoScalingGroupInput{
		AutoScalingGroupName: aws.String("g"), MinSize: aws.Int32(0), MaxSize: aws.Int32(0), LaunchConfigurationName: aws.String("l"),
		AvailabilityZones: []string{"us-east-1a"},
		LifecycleHookSpecificationList: []asgtypes.LifecycleHookSpecification{{
			LifecycleHookName: aws.String("h"), LifecycleTransition: aws.String("autoscaling:EC2_INSTANCE_LAUNCHING"),
			NotificationTargetARN: aws.String(queueARN), RoleARN: aws.String("arn:aws:iam::000000000000:role/limited"),
		}},
	})
	if err == nil || !strings.Contains(err.Error(), "iam:PassRole") {
		t.Errorf("a hook with a role that the caller can't pass: %v", err)
	}
	check := func(when string, allowed bool) {
		t.Helper()
		for name, call := range calls {
			err := call()
			denied := err != nil && (strings.Contains(err.Error(), "AccessDenied") || strings.Contains(err.Error(), "not authorized"))
			if allowed && err != nil || !allowed && !denied {
				t.Errorf("%s, %s: %v", name, when, err)
			}
		}
	}
	letIn := func(effect, condition string) {
		t.Helper()
		text := func(resource, action, service string) *string {
			return aws.String(`{"Version": "2012-10-17", "Statement": [{"Effect": "` + effect + `", "Principal": {"Service": ` + service + `}, "Action": "` +
				action + `", "Resource": "` + resource + `"` + condition + `}]}`)
		}
		_, err := sqs.NewFromConfig(owner).SetQueueAttributes(t.Context(), &sqs.SetQueueAttributesInput{QueueUrl: queue.QueueUrl, Attributes: map[string]string{
			"Policy": *text(queueARN, "sqs:SendMessage",
				`["logs.amazonaws.com", "s3.amazonaws.com", "sns.amazonaws.com", "cloudwatch.amazonaws.com"]`),
		}})
		if err != nil {
			t.Fatal(err)
		}
		_, err = sns.NewFromConfig(owner).SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{
			TopicArn: news.TopicArn, AttributeName: aws.String("Policy"),
			AttributeValue: text(*news.TopicArn, "sns:Publish", `["cloudformation.amazonaws.com", "cloudwatch.amazonaws.com"]`),
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s3Of(owner).PutBucketPolicy(t.Context(), &s3.PutBucketPolicyInput{
			Bucket: aws.String("other"), Policy: text("arn:aws:s3:::other/*", "s3:PutObject", `["logs.amazonaws.com", "logdelivery.elasticloadbalancing.amazonaws.com"]`),
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	letIn("Allow", `, "Condition": {"StringEquals": {"aws:SourceArn": "arn:aws:nobody"}}`)
	check("with policies for nobody", false)
	letIn("Allow", `, "Condition": {"StringEquals": {"aws:SourceAccount": "111111111111"}}`)
	check("let in from another account", false)
	letIn("Allow", `, "Condition": {"StringEquals": {"aws:SourceAccount": "000000000000"}}`)
	check("let in", true)
	letIn("Deny", "")
	check("kept out", false)
}

// accessLogs makes a load balancer, and returns what switches its access log on, into the bucket other.
func accessLogs(t *testing.T, p *Plane, c aws.Config) func() error {
	const arn = "arn:aws:elasticloadbalancing:us-east-1:000000000000:loadbalancer/app/web/0123456789abcdef"
	err := p.State.Update(t.Context(), func(tx *state.Tx) error {
		tx.LoadBalancers.Put(&state.LoadBalancer{LoadBalancer: elbtypes.LoadBalancer{
			LoadBalancerArn: aws.String(arn), LoadBalancerName: aws.String("web"), Type: elbtypes.LoadBalancerTypeEnumApplication,
			State: &elbtypes.LoadBalancerState{Code: elbtypes.LoadBalancerStateEnumActive},
		}})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return func() error {
		_, err := elasticloadbalancingv2.NewFromConfig(c).ModifyLoadBalancerAttributes(t.Context(), &elasticloadbalancingv2.ModifyLoadBalancerAttributesInput{
			LoadBalancerArn: aws.String(arn),
			Attributes: []elbtypes.LoadBalancerAttribute{
				{Key: aws.String("access_logs.s3.enabled"), Value: aws.String("true")}, {Key: aws.String("access_logs.s3.bucket"), Value: aws.String("other")},
			},
		})
		return err
	}
}

// TestTopicPolicies: a role publishes if its own policies or the topic's allow it. A topic's policy by itself lets services publish, and nobody
// else; a task does no more with topics than its role may.
func TestTopicPolicies(t *testing.T) {
	p := serveSigned(t)
	owner := sns.NewFromConfig(p.config("AKID", "secret", ""))
	made, err := owner.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("news"), Tags: []snstypes.Tag{{Key: aws.String("team"), Value: aws.String("ml")}}})
	if err != nil {
		t.Fatal(err)
	}
	const arn = "arn:aws:sns:us-east-1:000000000000:news"
	publish := func(role string) error {
		_, err := sns.NewFromConfig(asTask(t, p, role)).Publish(t.Context(), &sns.PublishInput{TopicArn: made.TopicArn, Message: aws.String("m")})
		return err
	}
	createRole(t, p, "nothing", `{"Effect": "Allow", "Action": "sns:ListTopics", "Resource": "*"}`)
	createRole(t, p, "publisher", `{"Effect": "Allow", "Action": "sns:Publish", "Resource": "`+arn+`"}`)
	createRole(t, p, "elsewhere", `{"Effect": "Allow", "Action": "sns:*", "Resource": "`+arn+`-other"}`)
	createRole(t, p, "tagged", `{"Effect": "Allow", "Action": "sns:Publish", "Resource": "*", "Condition": {"StringEquals": {"aws:ResourceTag/team": "ml"}}}`)
	for role, allowed := range map[string]bool{"nothing": false, "publisher": true, "elsewhere": false, "tagged": true} {
		if err := publish(role); (err == nil) != allowed || err != nil && code(err) != "AuthorizationError" {
			t.Errorf("%s: %v", role, err)
		}
	}
	err = publish("nothing")
	if want := "is not authorized to perform: SNS:Publish on resource: " + arn + " because no identity-based policy allows the SNS:Publish action"; !strings.Contains(err.Error(), want) {
		t.Errorf("got %v\nwant %s", err, want)
	}
	set := func(effect, principal string) {
		t.Helper()
		_, err := owner.SetTopicAttributes(t.Context(), &sns.SetTopicAttributesInput{TopicArn: made.TopicArn, AttributeName: aws.String("Policy"), AttributeValue: aws.String(
			`{"Version": "2012-10-17", "Statement": [{"Effect": "` + effect + `", "Principal": {"AWS": "` + principal + `"}, "Action": "sns:Publish", "Resource": "` + arn + `"}]}`)})
		if err != nil {
			t.Fatal(err)
		}
	}
	set("Allow", "arn:aws:iam::000000000000:role/nothing")
	if err := publish("nothing"); err != nil {
		t.Errorf("the topic's policy lets it publish: %v", err)
	}
	set("Deny", "arn:aws:iam::000000000000:role/publisher")
	if err := publish("publisher"); code(err) != "AuthorizationError" {
		t.Errorf("the topic's policy denies it: %v", err)
	}
	sub, err := owner.Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: made.TopicArn, Protocol: aws.String("sqs"), Endpoint: aws.String("arn:aws:sqs:us-east-1:000000000000:q")})
	if err != nil {
		t.Fatal(err)
	}
	createRole(t, p, "ender", `{"Effect": "Allow", "Action": "sns:Unsubscribe", "Resource": "`+arn+`"}`)
	for _, role := range []string{"elsewhere", "ender"} {
		_, err := sns.NewFromConfig(asTask(t, p, role)).Unsubscribe(t.Context(), &sns.UnsubscribeInput{SubscriptionArn: sub.SubscriptionArn})
		if (err == nil) != (role == "ender") {
			t.Errorf("%s ends a subscription: %v", role, err)
		}
	}
	createRole(t, p, "plainly", `{"Effect": "Allow", "Action": "sns:Subscribe", "Resource": "*", "Condition": {"StringEquals": {"sns:Protocol": "https"}}}`)
	for protocol, allowed := range map[string]bool{"https": true, "http": false} {
		_, err := sns.NewFromConfig(asTask(t, p, "plainly")).Subscribe(t.Context(), &sns.SubscribeInput{TopicArn: made.TopicArn, Protocol: &protocol, Endpoint: aws.String(protocol + "://192.0.2.1/")})
		if (err == nil) != allowed {
			t.Errorf("a condition on the protocol, with %s: %v", protocol, err)
		}
	}
}

// TestWhoMayHaveFunctionsInvoked: who may create a service can't have its deployments invoke just any function, unless the role that it passes may.
func TestWhoMayHaveFunctionsInvoked(t *testing.T) {
	p := serveSigned(t)
	createRole(t, p, "limited", `{"Effect": "Allow", "Action": ["ecs:CreateService", "ecs:UpdateService"], "Resource": "*"}`)
	createRole(t, p, "hooks", `{"Effect": "Allow", "Action": "lambda:InvokeFunction", "Resource": "arn:aws:lambda:*:*:function:check"}`)
	c := awsecs.NewFromConfig(asTask(t, p, "limited"))
	config := &types.DeploymentConfiguration{Strategy: types.DeploymentStrategyBlueGreen, LifecycleHooks: []types.DeploymentLifecycleHook{{
		HookTargetArn: aws.String("arn:aws:lambda:us-east-1:000000000000:function:check"), RoleArn: aws.String(roleARNs + "hooks"),
		LifecycleStages: []types.DeploymentLifecycleHookStage{"POST_SCALE_UP"},
	}}}
	expect := func(when, refused string) {
		t.Helper()
		_, created := c.CreateService(t.Context(), &awsecs.CreateServiceInput{
			ServiceName: aws.String("s"), TaskDefinition: aws.String("none"), DesiredCount: aws.Int32(1), DeploymentConfiguration: config})
		_, updated := c.UpdateService(t.Context(), &awsecs.UpdateServiceInput{Service: aws.String("s"), DeploymentConfiguration: config})
		for _, err := range []error{created, updated} {
			denied := strings.Contains(err.Error(), "AccessDenied")
			if denied != (refused != "") || !strings.Contains(err.Error(), refused) {
				t.Errorf("%s: %v", when, err)
			}
		}
	}
	expect("with a role that may not be passed", "iam:PassRole")
	putPolicy(t, p, "limited", `{"Effect": "Allow", "Action": ["ecs:CreateService", "ecs:UpdateService"], "Resource": "*"}, {"Effect": "Allow", "Action": "iam:PassRole",
		"Resource": "*", "Condition": {"StringEquals": {"iam:PassedToService": "ecs.amazonaws.com"}}}`)
	expect("with a role that may be passed to ECS", "")
	config.LifecycleHooks[0].HookTargetArn = aws.String("arn:aws:lambda:us-east-1:000000000000:function:other")
	expect("with a function that the role may not invoke", "lambda:InvokeFunction")
}

// TestWhoMayHaveTrafficShifted: who may create a service can't have it change just any listener's rule, unless the role that it passes may.
func TestWhoMayHaveTrafficShifted(t *testing.T) {
	p := serveSigned(t)
	createRole(t, p, "limited", `{"Effect": "Allow", "Action": ["ecs:CreateService", "ecs:UpdateService"], "Resource": "*"}`)
	createRole(t, p, "shifter", `{"Effect": "Allow", "Action": "elasticloadbalancing:Modify*", "Resource": "*"}`)
	c := awsecs.NewFromConfig(asTask(t, p, "limited"))
	balancers := []types.LoadBalancer{{
		TargetGroupArn: aws.String("t"), ContainerName: aws.String("main"), ContainerPort: aws.Int32(80),
		AdvancedConfiguration: &types.AdvancedConfiguration{
			AlternateTargetGroupArn: aws.String("u"),
			ProductionListenerRule:  aws.String("arn:aws:elasticloadbalancing:us-east-1:000000000000:listener-rule/app/web/1/2/3"),
			TestListenerRule:        aws.String("arn:aws:elasticloadbalancing:us-east-1:000000000000:listener/net/web/1/2"),
			RoleArn:                 aws.String(roleARNs + "shifter"),
		},
	}}
	expect := func(when, refused string) {
		t.Helper()
		_, created := c.CreateService(t.Context(), &awsecs.CreateServiceInput{
			ServiceName: aws.String("s"), TaskDefinition: aws.String("none"), DesiredCount: aws.Int32(1), LoadBalancers: balancers})
		_, updated := c.UpdateService(t.Context(), &awsecs.UpdateServiceInput{Service: aws.String("s"), LoadBalancers: balancers})
		for _, err := range []error{created, updated} {
			denied := strings.Contains(err.Error(), "AccessDenied")
			if denied != (refused != "") || !strings.Contains(err.Error(), refused) {
				t.Errorf("%s: %v", when, err)
			}
		}
	}
	expect("with a role that may not be passed", "iam:PassRole")
	putPolicy(t, p, "limited", `{"Effect": "Allow", "Action": ["ecs:CreateService", "ecs:UpdateService", "iam:PassRole"], "Resource": "*"}`)
	expect("with a role that may be passed", "")
	putPolicy(t, p, "shifter", `{"Effect": "Allow", "Action": "elasticloadbalancing:ModifyRule", "Resource": "*"}`)
	expect("with a role that may not change the listener", "elasticloadbalancing:ModifyListener")
	balancers[0].AdvancedConfiguration.RoleArn = nil
	expect("without a role", "elasticloadbalancing:ModifyRule")
}
