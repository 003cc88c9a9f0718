package authorize

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	cfntypes "github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	secretstypes "github.com/aws/aws-sdk-go-v2/service/secretsmanager/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	snstypes "github.com/aws/aws-sdk-go-v2/service/sns/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/pintle/pintle/internal/iam/policy"
)

const (
	ecsARN = "arn:aws:ecs:us-east-1:000000000000:"
	ec2ARN = "arn:aws:ec2:us-east-1:000000000000:"
	logARN = "arn:aws:logs:us-east-1:000000000000:log-group:"
)

func newTable(t *testing.T) *Table {
	t.Helper()
	table, err := New("000000000000", "us-east-1")
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// TestNeeds: each call needs these actions on these resources.
func TestNeeds(t *testing.T) {
	table := newTable(t)
	str := aws.String
	for _, c := range []struct {
		name, service, operation string
		in                       any
		want                     []string // actions and resources
	}{
		{"by names", "ecs", "DescribeServices", &ecs.DescribeServicesInput{Cluster: str("c"), Services: []string{"a", "b"}}, []string{
			"ecs:DescribeServices " + ecsARN + "service/c/a", "ecs:DescribeServices " + ecsARN + "service/c/b",
		}},
		{"default cluster", "ecs", "StopTask", &ecs.StopTaskInput{Task: str("id")}, []string{"ecs:StopTask " + ecsARN + "task/default/id"}},
		{
			"by ARNs", "ecs", "StopTask",
			&ecs.StopTaskInput{Cluster: str(ecsARN + "cluster/c"), Task: str(ecsARN + "task/d/id")},
			[]string{"ecs:StopTask " + ecsARN + "task/d/id"},
		},
		{"roles are passed", "ecs", "RunTask", &ecs.RunTaskInput{
			TaskDefinition: str(ecsARN + "task-definition/ok:1/other:2"),
			Overrides:      &ecstypes.TaskOverride{TaskRoleArn: str("worker")},
		}, []string{
			"ecs:RunTask " + ecsARN + "task-definition/other:2",
			"iam:PassRole arn:aws:iam::000000000000:role/worker",
		}},
		{"tags of what is made", "ecs", "RunTask", &ecs.RunTaskInput{
			Cluster:        str("c"),
			TaskDefinition: str("f:1"),
			Tags:           []ecstypes.Tag{{Key: str("a")}, {Key: str("b")}},
		}, []string{"ecs:RunTask " + ecsARN + "task-definition/f:1", "ecs:TagResource " + ecsARN + "task/c/*"}},
		{"tags by the kind of what has them", "ec2", "RunInstances", &ec2.RunInstancesInput{TagSpecifications: []ec2types.TagSpecification{
			{ResourceType: "instance", Tags: []ec2types.Tag{{Key: str("a")}}}, {ResourceType: "volume", Tags: []ec2types.Tag{{Key: str("a")}}},
		}}, []string{
			"ec2:RunInstances " + ec2ARN + "instance/*", "ec2:RunInstances " + ec2ARN + "network-interface/*", "ec2:RunInstances " + ec2ARN + "volume/*",
			"ec2:CreateTags " + ec2ARN + "instance/*", "ec2:CreateTags " + ec2ARN + "volume/*",
		}},
		{"tags in a map", "sqs", "CreateQueue", &sqs.CreateQueueInput{QueueName: str("q"), Tags: map[string]string{"a": ""}}, []string{
			"sqs:CreateQueue arn:aws:sqs:us-east-1:000000000000:q", "sqs:TagQueue arn:aws:sqs:us-east-1:000000000000:q",
		}},
		{"no tags", "sqs", "CreateQueue", &sqs.CreateQueueInput{QueueName: str("q"), Tags: map[string]string{}}, []string{
			"sqs:CreateQueue arn:aws:sqs:us-east-1:000000000000:q",
		}},
		{"a topic that is made", "sns", "CreateTopic", &sns.CreateTopicInput{Name: str("t"), Tags: []snstypes.Tag{{Key: str("a")}}}, []string{
			"sns:CreateTopic arn:aws:sns:us-east-1:000000000000:t", "sns:TagResource arn:aws:sns:us-east-1:000000000000:t",
		}},
		{
			"a subscription's topic", "sns", "Unsubscribe", &sns.UnsubscribeInput{SubscriptionArn: str("arn:aws:sns:us-east-1:000000000000:t:id")},
			[]string{"sns:Unsubscribe arn:aws:sns:us-east-1:000000000000:t"},
		},
		{
			"a message to a target", "sns", "Publish", &sns.PublishInput{TargetArn: str("arn:aws:sns:us-east-1:000000000000:t")},
			[]string{"sns:Publish arn:aws:sns:us-east-1:000000000000:t"},
		},
		{"a message to nobody", "sns", "Publish", &sns.PublishInput{}, []string{"sns:Publish *"}},
		{"nothing in particular", "ecs", "ListClusters", &ecs.ListClustersInput{}, []string{"ecs:ListClusters *"}},
		{"an action of another name", "s3", "ListObjectsV2", &s3.ListObjectsV2Input{Bucket: str("b")}, []string{"s3:ListBucket arn:aws:s3:::b"}},
		{
			"a version", "s3", "GetObject", &s3.GetObjectInput{Bucket: str("b"), Key: str("k"), VersionId: str("v")},
			[]string{"s3:GetObjectVersion arn:aws:s3:::b/k"},
		},
		{
			"a key like an ARN", "s3", "GetObject", &s3.GetObjectInput{Bucket: str("b"), Key: str("arn:aws:s3:::other/k")},
			[]string{"s3:GetObject arn:aws:s3:::b/arn:aws:s3:::other/k"},
		},
		{"a copy", "s3", "CopyObject", &s3.CopyObjectInput{Bucket: str("b"), Key: str("k"), CopySource: str("/from/a%2Fb+c")}, []string{
			"s3:PutObject arn:aws:s3:::b/k", "s3:GetObject arn:aws:s3:::from/a/b c",
		}},
		{
			"a copy of a version", "s3", "UploadPartCopy",
			&s3.UploadPartCopyInput{Bucket: str("b"), Key: str("k"), CopySource: str("from/a?versionId=1")},
			[]string{"s3:PutObject arn:aws:s3:::b/k", "s3:GetObjectVersion arn:aws:s3:::from/a"},
		},
		{"each key", "s3", "DeleteObjects", &s3.DeleteObjectsInput{
			Bucket: str("b"), Delete: &s3types.Delete{Objects: []s3types.ObjectIdentifier{{Key: str("x")}, {Key: str("y")}}},
		}, []string{"s3:DeleteObject arn:aws:s3:::b/x", "s3:DeleteObject arn:aws:s3:::b/y"}},
		{
			"a queue's URL", "sqs", "SendMessageBatch", &sqs.SendMessageBatchInput{QueueUrl: str("http://x/000000000000/j%6Fbs?a=/other")},
			[]string{"sqs:SendMessage arn:aws:sqs:us-east-1:000000000000:jobs"},
		},
		{"names with and without slash", "ssm", "GetParameters", &ssm.GetParametersInput{Names: []string{"a:3", " /b/c"}}, []string{
			"ssm:GetParameters arn:aws:ssm:us-east-1:000000000000:parameter/a", "ssm:GetParameters arn:aws:ssm:us-east-1:000000000000:parameter/b/c",
		}},
		{"a secret as a parameter", "ssm", "GetParameter", &ssm.GetParameterInput{Name: str("/aws/reference/secretsmanager/db")}, []string{
			"ssm:GetParameter arn:aws:ssm:us-east-1:000000000000:parameter/aws/reference/secretsmanager/db",
			"secretsmanager:GetSecretValue arn:aws:secretsmanager:us-east-1:000000000000:secret:db",
		}},
		{"secrets by filters", "secretsmanager", "BatchGetSecretValue", &secretsmanager.BatchGetSecretValueInput{}, []string{
			"secretsmanager:BatchGetSecretValue *", "secretsmanager:GetSecretValue arn:aws:secretsmanager:us-east-1:000000000000:secret:*",
		}},
		{
			"a stream", "logs", "PutLogEvents", &cloudwatchlogs.PutLogEventsInput{LogGroupName: str("/a"), LogStreamName: str("s")},
			[]string{"logs:PutLogEvents " + logARN + "/a:log-stream:s"},
		},
		{
			"a group's ARN", "logs", "FilterLogEvents", &cloudwatchlogs.FilterLogEventsInput{LogGroupIdentifier: str(logARN + "/a/b:*")},
			[]string{"logs:FilterLogEvents " + logARN + "/a/b:log-stream:"},
		},
		{
			"a path", "iam", "CreateRole", &iam.CreateRoleInput{Path: str("/p/"), RoleName: str("r")},
			[]string{"iam:CreateRole arn:aws:iam::000000000000:role/p/r"},
		},
		{"a list", "iam", "ListUsers", &iam.ListUsersInput{}, []string{"iam:ListUsers arn:aws:iam::000000000000:user/"}},
		{
			"a list below a path", "iam", "ListRoles", &iam.ListRolesInput{PathPrefix: str("/p/")},
			[]string{"iam:ListRoles arn:aws:iam::000000000000:role/p/"},
		},
		{"oneself", "iam", "ListAccessKeys", &iam.ListAccessKeysInput{}, []string{"iam:ListAccessKeys arn:aws:iam::000000000000:user/me"}},
		{"EC2's resources by ids", "ec2", "CreateTags", &ec2.CreateTagsInput{Resources: []string{"i-1", "sg-2", "other"}}, []string{
			"ec2:CreateTags arn:aws:ec2:us-east-1:000000000000:instance/i-1", "ec2:CreateTags arn:aws:ec2:us-east-1:000000000000:security-group/sg-2",
			"ec2:CreateTags arn:aws:ec2:us-east-1:000000000000:*/other",
		}},
		{
			"a stack's ARN", "cloudformation", "DeleteStack",
			&cloudformation.DeleteStackInput{StackName: str("arn:aws:cloudformation:us-east-1:000000000000:stack/s/1-2")},
			[]string{"cloudformation:DeleteStack arn:aws:cloudformation:us-east-1:000000000000:stack/s/*"},
		},
		{
			"a change set's ARN counts more than a stack's name", "cloudformation", "ExecuteChangeSet",
			&cloudformation.ExecuteChangeSetInput{StackName: str("s"), ChangeSetName: str("arn:aws:cloudformation:us-east-1:000000000000:changeSet/c/1")},
			[]string{"cloudformation:ExecuteChangeSet arn:aws:cloudformation:us-east-1:000000000000:changeSet/c/1"},
		},
		{"no permission needed", "sts", "GetCallerIdentity", nil, nil},
		{"not in the table", "ecs", "Unheard", nil, []string{"ecs:Unheard *"}},
	} {
		var got []string
		for _, n := range table.Needs(Call{c.service, c.operation, c.in, "me"}) {
			got = append(got, n.Action+" "+n.Resource)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
		}
	}
}

// TestPassedTo: a role is passed to the service that will have it.
func TestPassedTo(t *testing.T) {
	in := &ecs.RegisterTaskDefinitionInput{Family: aws.String("f"), TaskRoleArn: aws.String("arn:aws:iam::000000000000:role/r")}
	got := newTable(t).Needs(Call{Service: "ecs", Operation: "RegisterTaskDefinition", Input: in})
	want := Need{"iam:PassRole", "arn:aws:iam::000000000000:role/r", "ecs-tasks.amazonaws.com"}
	if len(got) != 2 || got[1] != want {
		t.Errorf("got %v", got)
	}
	config := &ecstypes.DeploymentConfiguration{LifecycleHooks: []ecstypes.DeploymentLifecycleHook{{RoleArn: aws.String("arn:aws:iam::000000000000:role/r")}}}
	for operation, in := range map[string]any{
		"CreateService": &ecs.CreateServiceInput{ServiceName: aws.String("s"), DeploymentConfiguration: config},
		"UpdateService": &ecs.UpdateServiceInput{Service: aws.String("s"), DeploymentConfiguration: config},
	} {
		got := newTable(t).Needs(Call{Service: "ecs", Operation: operation, Input: in})
		if want := (Need{"iam:PassRole", "arn:aws:iam::000000000000:role/r", "ecs.amazonaws.com"}); !slices.Contains(got, want) {
			t.Errorf("%s: %v", operation, got)
		}
	}
}

// TestKeys: what an input gives becomes condition keys.
func TestKeys(t *testing.T) {
	table := newTable(t)
	known := table.Keys(Call{Service: "s3", Operation: "ListObjectsV2", Input: &s3.ListObjectsV2Input{Prefix: aws.String("a/"), MaxKeys: aws.Int32(2)}})
	for key, want := range map[string]string{"s3:prefix": "a/", "s3:max-keys": "2"} {
		if got := known[key]; !slices.Equal(got, []string{want}) {
			t.Errorf("%s is %q", key, got)
		}
	}
	if _, given := known["s3:delimiter"]; given {
		t.Error("a delimiter that nobody gave")
	}
	known = table.Keys(Call{Service: "s3", Operation: "ListObjectsV2", Input: &s3.ListObjectsV2Input{Prefix: aws.String("")}})
	if got, given := known["s3:prefix"]; !given || !slices.Equal(got, []string{""}) {
		t.Errorf("an empty prefix is %q, given: %v", got, given)
	}
	known = table.Keys(Call{Service: "ecs", Operation: "RunTask", Input: &ecs.RunTaskInput{
		Cluster: aws.String("c"),
		Tags:    []ecstypes.Tag{{Key: aws.String("Team"), Value: aws.String("")}, {Key: aws.String("b"), Value: aws.String("1")}},
	}})
	for key, want := range map[string][]string{
		"ecs:cluster":         {ecsARN + "cluster/c"},
		"aws:requesttag/team": {""},
		"aws:requesttag/b":    {"1"},
		"aws:tagkeys":         {"Team", "b"},
	} {
		if got := known[key]; !slices.Equal(got, want) {
			t.Errorf("%s is %q", key, got)
		}
	}
	known = table.Keys(Call{Service: "sqs", Operation: "TagQueue", Input: &sqs.TagQueueInput{Tags: map[string]string{"a": "1"}}})
	if got := known["aws:requesttag/a"]; !slices.Equal(got, []string{"1"}) {
		t.Errorf("a map of tags gives %q", known)
	}
}

// TestTags: answers of all forms give their tags.
func TestTags(t *testing.T) {
	key, value := aws.String("team"), aws.String("a")
	for name, answer := range map[string]any{
		"a list":   &ecs.ListTagsForResourceOutput{Tags: []ecstypes.Tag{{Key: key, Value: value}}},
		"a map":    &sqs.ListQueueTagsOutput{Tags: map[string]string{"team": "a"}},
		"a stack":  &cloudformation.DescribeStacksOutput{Stacks: []cfntypes.Stack{{Tags: []cfntypes.Tag{{Key: key, Value: value}}}}},
		"TagList":  &ssm.ListTagsForResourceOutput{TagList: []ssmtypes.Tag{{Key: key, Value: value}}},
		"in EC2":   &ec2.DescribeTagsOutput{Tags: []ec2types.TagDescription{{Key: key, Value: value}}},
		"a secret": &secretsmanager.DescribeSecretOutput{Tags: []secretstypes.Tag{{Key: key, Value: value}}},
	} {
		if got := Tags(answer); len(got) != 1 || got["team"] != "a" {
			t.Errorf("%s: got %v", name, got)
		}
	}
	var none *ecs.ListTagsForResourceOutput
	if got := Tags(none); len(got) != 0 {
		t.Errorf("no answer: got %v", got)
	}
	known := newTable(t).Keys(Call{Service: "logs", Operation: "UntagLogGroup", Input: &cloudwatchlogs.UntagLogGroupInput{Tags: []string{"team"}}})
	if got := known["aws:tagkeys"]; !slices.Equal(got, []string{"team"}) {
		t.Errorf("keys alone: got %v", known)
	}
}

// TestMessages: services word the same refusal in different ways.
func TestMessages(t *testing.T) {
	const who = "arn:aws:sts::000000000000:assumed-role/r/s"
	denied := policy.Decision{Effect: policy.ImplicitDeny, Missing: policy.OfIdentity}
	for service, c := range map[string]struct {
		need Need
		want string
	}{
		"ecs": {Need{Action: "ecs:RunTask", Resource: "arn:x"}, "User: " + who + " is not authorized to perform: ecs:RunTask on resource: arn:x " +
			"because no identity-based policy allows the ecs:RunTask action"},
		"s3": {Need{Action: "s3:GetObject", Resource: "arn:x"}, "User: " + who + ` is not authorized to perform: s3:GetObject on resource: "arn:x" ` +
			"because no identity-based policy allows the s3:GetObject action"},
		"sqs": {Need{Action: "sqs:SendMessage", Resource: "arn:x"}, "User: " + who + " is not authorized to perform: sqs:sendmessage on resource: " +
			"arn:x because no identity-based policy allows the sqs:sendmessage action"},
		"ec2": {Need{Action: "ec2:DescribeVpcs", Resource: "*"}, "You are not authorized to perform this operation. User: " + who +
			" is not authorized to perform: ec2:DescribeVpcs because no identity-based policy allows the ec2:DescribeVpcs action"},
	} {
		if got := Message(service, who, c.need, denied); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", service, got, c.want)
		}
	}
}
