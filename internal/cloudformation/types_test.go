package cloudformation

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	awslogs "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	awsiam "github.com/aws/aws-sdk-go-v2/service/iam"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	awssecretsmanager "github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	awssns "github.com/aws/aws-sdk-go-v2/service/sns"
	awssqs "github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/events"
	"github.com/pintle/pintle/internal/events/targets"
	"github.com/pintle/pintle/internal/lambda"
	"github.com/pintle/pintle/internal/lambda/zips"
	"github.com/pintle/pintle/internal/logs"
	"github.com/pintle/pintle/internal/logs/streams"
	"github.com/pintle/pintle/internal/s3"
	"github.com/pintle/pintle/internal/s3/objects"
	"github.com/pintle/pintle/internal/schedules"
	"github.com/pintle/pintle/internal/secretsmanager"
	"github.com/pintle/pintle/internal/sns"
	"github.com/pintle/pintle/internal/sqs"
	"github.com/pintle/pintle/internal/sqs/queues"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
	"github.com/pintle/pintle/internal/vault/vaulttest"
	"github.com/pintle/pintle/internal/wire/call"
)

// mailbox is queues as the logs' subscriptions see them.
type mailbox struct{ *sqs.Service }

func (m mailbox) SendMessage(
	ctx context.Context, in *awssqs.SendMessageInput, _ ...func(*awssqs.Options),
) (*awssqs.SendMessageOutput, error) {
	return m.Service.SendMessage(ctx, in)
}

func (m mailbox) GetQueueAttributes(
	ctx context.Context, in *awssqs.GetQueueAttributesInput, _ ...func(*awssqs.Options),
) (*awssqs.GetQueueAttributesOutput, error) {
	return m.Service.GetQueueAttributes(ctx, in)
}

// urlOf returns the URL of the queue with an ARN.
func urlOf(arn string) string {
	return "http://127.0.0.1:4566/000000000000/" + arn[strings.LastIndex(arn, ":")+1:]
}

// withStores is a world that also has the services with stores of their own, which a kill doesn't take back.
func withStores(t *testing.T) *world {
	t.Helper()
	owner := accounttest.New(time.Now)
	files, err := objects.Open(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	w := new(world) // whose clock the queues follow
	messages, err := queues.Open(t.TempDir(), queues.Options{NoSync: true, Now: func() time.Time { return time.Now().Add(w.later) }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { messages.Close() })
	lines, err := streams.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { lines.Close() })
	code, err := zips.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	kept := statetest.Open(t)
	sender := targets.New(targets.Options{Account: owner, Trusts: func(string, string) bool { return true }})
	queueing := sqs.New(messages, sqs.Options{Account: owner})
	functions := lambda.New(kept, lambda.Options{
		Account: owner, Zips: code, Buckets: oneZip{}, Queues: mailbox{queueing}, Sources: mailbox{queueing}, QueueURL: urlOf,
		MAC: func(text string) []byte { return []byte(text) },
	})
	w = newWorld(t, nil,
		s3.API(s3.New(files, s3.Options{Account: owner, Queues: mailbox{queueing}, QueueURL: urlOf, Functions: invoker{functions}})),
		sqs.API(queueing),
		events.API(events.New(kept, events.Options{Account: owner, Targets: sender})),
		schedules.API(schedules.New(kept, schedules.Options{Account: owner, Targets: sender})),
		sns.API(sns.New(kept, sns.Options{Account: owner, Queues: mailbox{queueing}, QueueURL: urlOf, Vault: vaulttest.New(t, 7)})),
		logs.API(logs.New(lines, logs.Options{Account: owner, State: kept, Queues: mailbox{queueing}, QueueURL: urlOf, Log: slog.New(slog.DiscardHandler)})),
		lambda.API(functions),
		secretsmanager.API(secretsmanager.New(kept, secretsmanager.Options{Account: owner, Vault: vaulttest.New(t, 7)})))
	return w
}

// TestQueueWaitsForItsName: a stack that is deleted and made again waits for the minute in which SQS keeps a deleted queue's name.
func TestQueueWaitsForItsName(t *testing.T) {
	w := withStores(t)
	named := "Resources: {Q: {Type: AWS::SQS::Queue, Properties: {QueueName: jobs}}}"
	status := func() types.StackStatus { return w.store.View().StackNamed("s").StackStatus }
	w.create("s", named)
	w.remove("s")
	w.create("s", named)
	if got := status(); got != types.StackStatusCreateInProgress {
		t.Fatalf("within the minute: %s", got)
	}
	w.later = time.Minute + time.Second
	w.settle()
	if got := status(); got != types.StackStatusCreateComplete {
		t.Errorf("after it: %s", got)
	}
}

const stored = `
Parameters: {Days: {Type: Number, Default: 30}}
Resources:
  B:
    Type: AWS::S3::Bucket
    Properties:
      AccessControl: BucketOwnerFullControl
      BucketEncryption: {ServerSideEncryptionConfiguration: [{ServerSideEncryptionByDefault: {SSEAlgorithm: AES256}}]}
      CorsConfiguration: {CorsRules: [{AllowedMethods: [GET], AllowedOrigins: ['*'], MaxAge: 60}]}
      LifecycleConfiguration:
        Rules:
          - {Id: old, Status: Enabled, NoncurrentVersionExpiration: {NoncurrentDays: !Ref Days}, AbortIncompleteMultipartUpload: {DaysAfterInitiation: 1}}
          - {Status: Enabled, Prefix: tmp/, TagFilters: [{Key: a, Value: b}], ExpirationInDays: '7'}
      OwnershipControls: {Rules: [{ObjectOwnership: BucketOwnerEnforced}]}
      PublicAccessBlockConfiguration: {BlockPublicAcls: 'true', BlockPublicPolicy: true}
      Tags: [{Key: a, Value: b}]
      VersioningConfiguration: {Status: Enabled}
  P:
    Type: AWS::S3::BucketPolicy
    Properties:
      Bucket: !Ref B
      PolicyDocument: {Statement: [{Effect: Deny, Action: 's3:*', Principal: '*', Resource: !GetAtt B.Arn}]}
  Q: {Type: AWS::SQS::Queue}
  QP:
    Type: AWS::SQS::QueuePolicy
    Properties:
      Queues: [!Ref Q]
      PolicyDocument: {Version: '2012-10-17', Statement: [{Effect: Allow, Action: 'sqs:SendMessage', Principal: '*', Resource: !GetAtt Q.Arn}]}
  QI:
    Type: AWS::SQS::QueueInlinePolicy
    Properties:
      Queue: !Ref R
      PolicyDocument: {Version: '2012-10-17', Statement: [{Effect: Allow, Action: 'sqs:SendMessage', Principal: '*', Resource: !GetAtt R.Arn}]}
  R: {Type: AWS::SQS::Queue}
Outputs:
  Domain: {Value: !GetAtt B.RegionalDomainName}
`

// TestStored: buckets and queues with their policies and settings.
func TestStored(t *testing.T) {
	w := withStores(t)
	w.create("Stack", stored)
	w.expect(types.StackStatusCreateComplete)
	name := physicalIDs(w.store.View())["B"]
	if !strings.HasPrefix(name, "stack-b-") || name != strings.ToLower(name) {
		t.Errorf("the bucket is called %s", name)
	}
	rules := call1[awss3.GetBucketLifecycleConfigurationOutput](w, &awss3.GetBucketLifecycleConfigurationInput{Bucket: &name}).Rules
	if len(rules) != 2 || *rules[0].NoncurrentVersionExpiration.NoncurrentDays != 30 || *rules[1].Filter.And.Prefix != "tmp/" {
		t.Errorf("the lifecycle rules are %+v", rules)
	}
	if v := call1[awss3.GetBucketVersioningOutput](w, &awss3.GetBucketVersioningInput{Bucket: &name}); v.Status != "Enabled" {
		t.Errorf("versioning is %q", v.Status)
	}
	w.become("Stack", strings.NewReplacer("Status: Enabled}\n  P", "Status: Suspended}\n  P", "Default: 30", "Default: 31",
		"      Tags: [{Key: a, Value: b}]\n", "").Replace(stored))
	w.expect(types.StackStatusUpdateComplete)
	if is := physicalIDs(w.store.View())["B"]; is != name {
		t.Errorf("the bucket was replaced by %s", is)
	}
	rules = call1[awss3.GetBucketLifecycleConfigurationOutput](w, &awss3.GetBucketLifecycleConfigurationInput{Bucket: &name}).Rules
	if *rules[0].NoncurrentVersionExpiration.NoncurrentDays != 31 {
		t.Errorf("the lifecycle rules are %+v", rules)
	}
	w.become("Stack", strings.Replace(stored, "AccessControl:", "BucketName: other\n      AccessControl:", 1))
	w.expect(types.StackStatusUpdateComplete)
	if all := call1[awss3.ListBucketsOutput](w, &awss3.ListBucketsInput{}).Buckets; len(all) != 1 || *all[0].Name != "other" {
		t.Errorf("there are the buckets %v", all)
	}
	w.remove("Stack")
	w.expect(types.StackStatusDeleteComplete)
	if all := call1[awss3.ListBucketsOutput](w, &awss3.ListBucketsInput{}).Buckets; len(all) != 0 {
		t.Errorf("there are the buckets %v", all)
	}
}

const ruled = `
Resources:
  Bus:
    Type: AWS::Events::EventBus
    Properties: {Name: orders, Description: all, Tags: [{Key: a, Value: b}]}
  Policy:
    Type: AWS::Events::EventBusPolicy
    Properties:
      EventBusName: !Ref Bus
      StatementId: others
      Statement: {Effect: Allow, Action: 'events:PutEvents', Principal: '*', Resource: !GetAtt Bus.Arn}
  Big:
    Type: AWS::Events::Rule
    Properties:
      EventBusName: !Ref Bus
      EventPattern: {source: [mine], detail: {n: [{numeric: ['>', 5]}]}}
      Targets: [{Id: q, Arn: !GetAtt Q.Arn, InputPath: $.detail}]
  Nightly:
    Type: AWS::Events::Rule
    Properties:
      ScheduleExpression: cron(0 3 * * ? *)
      State: ENABLED
      Targets:
        - Id: task
          Arn: arn:aws:ecs:us-east-1:000000000000:cluster/c
          RoleArn: arn:aws:iam::000000000000:role/r
          EcsParameters:
            TaskDefinitionArn: arn:aws:ecs:us-east-1:000000000000:task-definition/t:1
            TagList: [{Key: a, Value: b}]
            NetworkConfiguration: {AwsVpcConfiguration: {Subnets: [subnet-1]}}
  Group: {Type: AWS::Scheduler::ScheduleGroup, Properties: {Tags: [{Key: a, Value: b}]}}
  Schedule:
    Type: AWS::Scheduler::Schedule
    Properties:
      GroupName: !Ref Group
      ScheduleExpression: rate(1 day)
      StartDate: '2090-01-01T00:00:00Z'
      FlexibleTimeWindow: {Mode: 'OFF'}
      Target: {Arn: !GetAtt Q.Arn, RoleArn: 'arn:aws:iam::000000000000:role/r', Input: '{}'}
  Q: {Type: AWS::SQS::Queue}
Outputs:
  Rule: {Value: !GetAtt Big.Arn}
`

const told = `
Resources:
  T:
    Type: AWS::SNS::Topic
    Properties:
      DisplayName: one
      Subscription: [{Protocol: sqs, Endpoint: !GetAtt Q.Arn}]
      Tags: [{Key: a, Value: b}]
  F: {Type: AWS::SNS::Topic, Properties: {FifoTopic: true, ContentBasedDeduplication: true}}
  S:
    Type: AWS::SNS::Subscription
    Properties:
      TopicArn: !Ref T
      Protocol: sqs
      Endpoint: !GetAtt R.Arn
      RawMessageDelivery: true
      FilterPolicy: {kind: [big]}
  P:
    Type: AWS::SNS::TopicPolicy
    Properties:
      Topics: [!Ref T]
      PolicyDocument: {Version: '2012-10-17', Statement: [{Effect: Allow, Action: 'sns:Publish', Principal: '*', Resource: !Ref T}]}
  I:
    Type: AWS::SNS::TopicInlinePolicy
    Properties:
      TopicArn: !Ref F
      PolicyDocument: {Version: '2012-10-17', Statement: [{Effect: Allow, Action: 'sns:Publish', Principal: '*', Resource: !Ref F}]}
  Q: {Type: AWS::SQS::Queue}
  R: {Type: AWS::SQS::Queue}
Outputs:
  Name: {Value: !GetAtt T.TopicName}
  Shown: {Value: !GetAtt T.DisplayName}
`

// TestTopics: topics with their subscriptions and policies.
func TestTopics(t *testing.T) {
	w := withStores(t)
	w.create("s", told)
	w.expect(types.StackStatusCreateComplete)
	ids := physicalIDs(w.store.View())
	topic, sub := ids["T"], ids["S"]
	attributes := func(arn string) map[string]string {
		if strings.Count(arn, ":") == 6 {
			return call1[awssns.GetSubscriptionAttributesOutput](w, &awssns.GetSubscriptionAttributesInput{SubscriptionArn: &arn}).Attributes
		}
		return call1[awssns.GetTopicAttributesOutput](w, &awssns.GetTopicAttributesInput{TopicArn: &arn}).Attributes
	}
	subscribed := func() (all []string) {
		for _, s := range call1[awssns.ListSubscriptionsByTopicOutput](w, &awssns.ListSubscriptionsByTopicInput{TopicArn: &topic}).Subscriptions {
			all = append(all, (*s.Endpoint)[strings.LastIndex(*s.Endpoint, ":")+1:][:4])
		}
		slices.Sort(all)
		return all
	}
	if got := attributes(topic); got["DisplayName"] != "one" || !strings.Contains(got["Policy"], `"Action":"sns:Publish"`) {
		t.Errorf("the topic is %v", got)
	}
	if got := w.output("Shown"); got != "one" {
		t.Errorf("the topic's DisplayName is %q", got)
	}
	if got := attributes(ids["F"]); got["ContentBasedDeduplication"] != "true" || !strings.HasSuffix(ids["F"], ".fifo") || !strings.Contains(got["Policy"], "sns:Publish") {
		t.Errorf("the FIFO topic is %v", got)
	}
	if got := attributes(sub); got["RawMessageDelivery"] != "true" || got["FilterPolicy"] != `{"kind":["big"]}` || !slices.Equal(subscribed(), []string{"s-Q-", "s-R-"}) {
		t.Errorf("the subscription is %v of %q", got, subscribed())
	}
	changed := strings.NewReplacer("DisplayName: one", "SignatureVersion: 2", "[{Protocol: sqs, Endpoint: !GetAtt Q.Arn}]", "[]", "RawMessageDelivery: true",
		"FilterPolicyScope: MessageBody", "{kind: [big]}", "{a: {kind: [big]}}").Replace(told)
	w.become("s", changed[:strings.Index(changed, "  I:")]+changed[strings.Index(changed, "  Q:"):])
	w.expect(types.StackStatusUpdateComplete)
	if got := attributes(topic); got["DisplayName"] != "" || got["SignatureVersion"] != "2" || !slices.Equal(subscribed(), []string{"s-R-"}) {
		t.Errorf("the changed topic is %v with %q", got, subscribed())
	}
	if got := attributes(sub); got["RawMessageDelivery"] != "false" || got["FilterPolicy"] != `{"a":{"kind":["big"]}}` {
		t.Errorf("the changed subscription is %v", got)
	}
	if got := attributes(ids["F"]); !strings.Contains(got["Policy"], "__default_policy_ID") {
		t.Errorf("without its policy the FIFO topic is %v", got)
	}
	w.become("s", told)
	w.expect(types.StackStatusUpdateComplete)
	if got := attributes(sub); got["FilterPolicy"] != `{"kind":["big"]}` || got["FilterPolicyScope"] != "MessageAttributes" {
		t.Errorf("the subscription that was changed back is %v", got)
	}
	w.remove("s")
	w.expect(types.StackStatusDeleteComplete)
	if got := call1[awssns.ListTopicsOutput](w, &awssns.ListTopicsInput{}).Topics; len(got) != 0 {
		t.Errorf("there are the topics %v", got)
	}
}

const entitled = `
Resources:
  R:
    Type: AWS::IAM::Role
    Properties: {AssumeRolePolicyDocument: {Statement: [{Effect: Allow, Action: 'sts:AssumeRole', Principal: {Service: ecs-tasks.amazonaws.com}}]}}
  P:
    Type: AWS::IAM::Policy
    Properties: {PolicyName: inline, Roles: [!Ref R], PolicyDocument: {Statement: [{Effect: Allow, Action: 'sqs:*', Resource: '*'}]}}
  M:
    Type: AWS::IAM::ManagedPolicy
    Properties: {Roles: [!Ref R], PolicyDocument: {Statement: [{Effect: Allow, Action: 's3:*', Resource: '*'}]}}
`

// TestPolicies: policies of IAM, embedded and managed.
func TestPolicies(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", entitled)
	w.expect(types.StackStatusCreateComplete)
	ids := physicalIDs(w.store.View())
	arn := ids["M"]
	for action := range 7 { // IAM keeps five versions
		w.become("s", strings.NewReplacer("inline", "other", "s3:*", "s3:Get"+strings.Repeat("x", action)).Replace(entitled))
		w.expect(types.StackStatusUpdateComplete)
	}
	document := call1[awsiam.GetPolicyVersionOutput](w, &awsiam.GetPolicyVersionInput{PolicyArn: &arn, VersionId: aws.String("v8")})
	if !document.PolicyVersion.IsDefaultVersion || !strings.Contains(*document.PolicyVersion.Document, "s3%3AGetxxxxxx") {
		t.Errorf("the last version is %v: %s", document.PolicyVersion.IsDefaultVersion, *document.PolicyVersion.Document)
	}
	role := w.store.View().Roles.Get(state.NameKey(ids["R"]))
	if len(role.Attached) != 1 || role.Attached[0] != arn || len(role.Inline) != 1 || role.Inline["other"] == "" {
		t.Errorf("the role has %v and %v", role.Attached, role.Inline)
	}
	w.become("s", strings.Replace(entitled, "Roles: [!Ref R], PolicyDocument: {Statement: [{Effect: Allow, Action: 's3", "Path: /p/, PolicyDocument: {Statement: [{Effect: Allow, Action: 's3", 1))
	w.expect(types.StackStatusUpdateComplete)
	if role := w.store.View().Roles.Get(state.NameKey(ids["R"])); len(role.Attached) != 0 || role.Inline["inline"] == "" {
		t.Errorf("the role has %v and %v", role.Attached, role.Inline)
	}
	w.remove("s")
	w.expect(types.StackStatusDeleteComplete)
	for p := range w.store.View().ManagedPolicies.All() {
		t.Errorf("%s is left", p.Name)
	}
}

const embedded = `
Parameters: {Action: {Type: String, Default: Send}}
Resources:
  R:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument: {Statement: [{Effect: Allow, Action: 'sts:AssumeRole', Principal: {Service: ecs-tasks.amazonaws.com}}]}
      Policies: [{PolicyName: own, PolicyDocument: {Statement: [{Effect: Allow, Action: 's3:*', Resource: '*'}]}}]
  U: {Type: AWS::IAM::User}
  G: {Type: AWS::IAM::Group}
  RP:
    Type: AWS::IAM::RolePolicy
    Properties: {PolicyName: p, RoleName: !Ref R, PolicyDocument: {Statement: [{Effect: Allow, Action: !Sub 'sqs:${Action}', Resource: '*'}]}}
  UP: {Type: AWS::IAM::UserPolicy, Properties: {PolicyName: p, UserName: !Ref U, PolicyDocument: {Statement: [{Effect: Allow, Action: !Sub 'sqs:${Action}', Resource: '*'}]}}}
  GP: {Type: AWS::IAM::GroupPolicy, Properties: {PolicyName: p, GroupName: !Ref G, PolicyDocument: {Statement: [{Effect: Allow, Action: !Sub 'sqs:${Action}', Resource: '*'}]}}}
`

// TestEmbeddedPolicies: policies of one role, user or group, beside those that it names itself.
func TestEmbeddedPolicies(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", embedded)
	w.expect(types.StackStatusCreateComplete)
	ids := physicalIDs(w.store.View())
	if want := "p|" + ids["R"]; ids["RP"] != want {
		t.Errorf("the role's policy is %s, want %s", ids["RP"], want)
	}
	has := func(policy string) map[string]string {
		v := w.store.View()
		return map[string]string{
			"R": v.Roles.Get(state.NameKey(ids["R"])).Inline[policy],
			"U": v.Users.Get(state.NameKey(ids["U"])).Inline[policy],
			"G": v.UserGroups.Get(state.NameKey(ids["G"])).Inline[policy],
		}
	}
	w.become("s", strings.Replace(embedded, "Default: Send", "Default: Get", 1))
	w.expect(types.StackStatusUpdateComplete)
	for holder, text := range has("p") {
		if !strings.Contains(text, "sqs:Get") {
			t.Errorf("%s has %q", holder, text)
		}
	}
	w.become("s", strings.ReplaceAll(embedded, "PolicyName: p", "PolicyName: q"))
	w.expect(types.StackStatusUpdateComplete)
	for holder, text := range has("q") {
		if !strings.Contains(text, "sqs:Send") || has("p")[holder] != "" {
			t.Errorf("%s has %q, and %q before", holder, text, has("p")[holder])
		}
	}
	w.become("s", embedded[:strings.Index(embedded, "  RP:")])
	w.expect(types.StackStatusUpdateComplete)
	for holder, text := range has("q") {
		if text != "" {
			t.Errorf("%s still has %q", holder, text)
		}
	}
	if has("own")["R"] == "" {
		t.Error("the role's own policy is gone")
	}
	w.create("other", "Resources: {P: {Type: AWS::IAM::RolePolicy, Properties: {PolicyName: own, RoleName: "+ids["R"]+", PolicyDocument: {Statement: []}}}}")
	if got := find(w.store.View(), "other").StackStatus; got != types.StackStatusRollbackComplete {
		t.Errorf("what there is already is made: %s", got)
	}
	if has("own")["R"] == "" {
		t.Error("a stack has taken away what it hadn't made")
	}
}

const peopled = `
Resources:
  G: {Type: AWS::IAM::Group, Properties: {ManagedPolicyArns: ['arn:aws:iam::aws:policy/AmazonS3ReadOnlyAccess']}}
  U:
    Type: AWS::IAM::User
    Properties:
      Groups: [!Ref G]
      Policies: [{PolicyName: own, PolicyDocument: {Statement: [{Effect: Allow, Action: 'sqs:*', Resource: '*'}]}}]
      Tags: [{Key: a, Value: b}]
  L: {Type: AWS::IAM::ServiceLinkedRole, Properties: {AWSServiceName: ecs.amazonaws.com}}
`

// TestPeople: users, groups and service-linked roles.
func TestPeople(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", peopled)
	w.expect(types.StackStatusCreateComplete)
	ids := physicalIDs(w.store.View())
	w.become("s", strings.NewReplacer("Groups: [!Ref G]", "Path: /p/", "PolicyName: own", "PolicyName: other", "S3ReadOnly", "S3Full",
		"ecs.amazonaws.com}", "ecs.amazonaws.com, Description: d}").Replace(peopled))
	w.expect(types.StackStatusUpdateComplete)
	v := w.store.View()
	u := v.Users.Get(state.NameKey(ids["U"]))
	if u.Path != "/p/" || len(u.Groups) != 0 || len(u.Inline) != 1 || u.Inline["other"] == "" || len(u.Tags) != 1 {
		t.Errorf("the user is %+v", u)
	}
	if r := v.Roles.Get(state.NameKey("AWSServiceRoleForECS")); r.Description != "d" {
		t.Errorf("the role is %+v", r)
	}
	w.become("s", strings.Replace(peopled, "      Groups:", "      UserName: other\n      Groups:", 1))
	w.expect(types.StackStatusUpdateComplete)
	w.remove("s")
	w.expect(types.StackStatusDeleteComplete)
	v = w.store.View()
	if left := v.Users.Len() + v.UserGroups.Len() + v.Roles.Len(); left != 0 {
		t.Errorf("%d are left", left)
	}
}

const secretive = `
Resources:
  S:
    Type: AWS::SecretsManager::Secret
    Properties: {Description: d, GenerateSecretString: {SecretStringTemplate: '{"user": "me"}', GenerateStringKey: password, PasswordLength: 20}}
  P:
    Type: AWS::SecretsManager::ResourcePolicy
    Properties:
      SecretId: !Ref S
      ResourcePolicy: {Statement: [{Effect: Deny, Action: '*', Resource: '*', Principal: {AWS: 'arn:aws:iam::000000000000:root'}}]}
  G: {Type: AWS::Logs::LogGroup}
  L: {Type: AWS::Logs::LogStream, Properties: {LogGroupName: !Ref G}}
  F:
    Type: AWS::Logs::MetricFilter
    Properties:
      LogGroupName: !Ref G
      FilterPattern: ERROR
      MetricTransformations: [{MetricName: errors, MetricNamespace: app, MetricValue: '1', DefaultValue: 0}]
  Q: {Type: AWS::SQS::Queue}
  B: {Type: AWS::Logs::SubscriptionFilter, Properties: {LogGroupName: !Ref G, FilterPattern: ERROR, DestinationArn: !GetAtt Q.Arn}}
`

// TestSecretive: secrets with their policies, and what log groups have.
func TestSecretive(t *testing.T) {
	w := withStores(t)
	w.create("s", secretive)
	w.expect(types.StackStatusCreateComplete)
	arn := physicalIDs(w.store.View())["S"]
	value := func() string {
		out := call1[awssecretsmanager.GetSecretValueOutput](w, &awssecretsmanager.GetSecretValueInput{SecretId: &arn})
		return *out.SecretString
	}
	var is struct{ User, Password string }
	generated := value()
	if err := json.Unmarshal([]byte(generated), &is); err != nil || is.User != "me" || len(is.Password) != 20 {
		t.Errorf("the secret is %q: %v", generated, err)
	}
	w.become("s", strings.NewReplacer("Description: d", "Description: e", "FilterPattern: ERROR", "FilterPattern: FATAL").Replace(secretive))
	w.expect(types.StackStatusUpdateComplete)
	if again := value(); again != generated {
		t.Error("another description generates another value")
	}
	group := physicalIDs(w.store.View())["G"]
	filters := call1[awslogs.DescribeSubscriptionFiltersOutput](w, &awslogs.DescribeSubscriptionFiltersInput{LogGroupName: &group}).SubscriptionFilters
	if len(filters) != 1 || *filters[0].FilterPattern != "FATAL" {
		t.Errorf("the subscription filters are %+v", filters)
	}
	a, b := "Description: d, SecretString: a}", "Description: d, SecretString: b}"
	head, tail, _ := strings.Cut(secretive, "Description: d, GenerateSecretString")
	_, tail, _ = strings.Cut(tail, "}}\n")
	for _, properties := range []string{a, b, a} {
		w.become("s", head+properties+"\n"+tail)
		w.expect(types.StackStatusUpdateComplete)
		if got := value(); !strings.HasSuffix(properties, got+"}") {
			t.Errorf("with %s the secret is %q", properties, got)
		}
	}
	w.become("s", strings.Replace(head, "Properties: {", "Properties: {Name: named, ", 1)+a+"\n"+tail)
	w.expect(types.StackStatusUpdateComplete)
	w.remove("s")
	w.expect(types.StackStatusDeleteComplete)
	if left := call1[awssecretsmanager.ListSecretsOutput](w, &awssecretsmanager.ListSecretsInput{}).SecretList; len(left) != 0 {
		t.Errorf("there is %s", *left[0].Name)
	}
}

// stocked has two repositories, one of them as the CDK's bootstrap has it.
const stocked = `
Resources:
  Assets:
    Type: AWS::ECR::Repository
    Properties:
      RepositoryName: assets
      EmptyOnDelete: 'true'
      ImageTagMutability: IMMUTABLE
      ImageScanningConfiguration: {ScanOnPush: 'true'}
      LifecyclePolicy:
        LifecyclePolicyText: >
          {"rules": [{"rulePriority": 1, "description": "no old untagged images", "selection":
          {"tagStatus": "untagged", "countType": "sinceImagePushed", "countUnit": "days", "countNumber": 365}, "action": {"type": "expire"}}]}
      RepositoryPolicyText:
        Version: '2012-10-17'
        Statement: [{Sid: pull, Effect: Allow, Principal: {Service: [lambda.amazonaws.com]}, Action: ['ecr:BatchGetImage', 'ecr:GetDownloadUrlForLayer']}]
      Tags: [{Key: a, Value: b}]
  Images: {Type: AWS::ECR::Repository}
  Quay: {Type: AWS::ECR::PullThroughCacheRule, Properties: {EcrRepositoryPrefix: quay, UpstreamRegistryUrl: quay.io}}
Outputs:
  Arn: {Value: !GetAtt Assets.Arn}
  URI: {Value: !GetAtt Assets.RepositoryUri}
`

// TestStocked: repositories with their settings and policies.
func TestStocked(t *testing.T) {
	w := newWorld(t, nil)
	w.create("Stack", stocked)
	w.expect(types.StackStatusCreateComplete)
	generated := physicalIDs(w.store.View())["Images"]
	if !strings.HasPrefix(generated, "stack-images-") || generated != strings.ToLower(generated) {
		t.Errorf("the second repository is called %s", generated)
	}
	outputs := find(w.store.View(), w.onlyStack()).Outputs
	if len(outputs) != 2 || *outputs[1].OutputValue != "000000000000.dkr.ecr.us-east-1.amazonaws.com/assets" ||
		*outputs[0].OutputValue != "arn:aws:ecr:us-east-1:000000000000:repository/assets" {
		t.Errorf("the outputs are %v", outputs)
	}
	is := w.store.View().Repositories.Get("assets")
	if is.Mutability != "IMMUTABLE" || !is.ScanOnPush || !strings.Contains(is.Lifecycle, "365") || !strings.Contains(is.Policy, "lambda") || len(is.Tags) != 1 {
		t.Errorf("it is %+v", is)
	}
	head, _, _ := strings.Cut(stocked, "      ImageTagMutability")
	_, tail, _ := strings.Cut(stocked, "  Images:")
	w.become("Stack", head+"      Tags: [{Key: c, Value: d}]\n  Images:"+tail)
	w.expect(types.StackStatusUpdateComplete)
	is = w.store.View().Repositories.Get("assets")
	if is.Mutability != "MUTABLE" || is.ScanOnPush || is.Lifecycle != "" || is.Policy != "" || len(is.Tags) != 1 || *is.Tags[0].Key != "c" {
		t.Errorf("without its settings it is %+v", is)
	}
	w.become("Stack", strings.Replace(stocked, "RepositoryName: assets", "RepositoryName: team/other", 1))
	w.expect(types.StackStatusUpdateComplete)
	if v := w.store.View(); v.Repositories.Get("assets") != nil || v.Repositories.Get("team/other") == nil {
		t.Error("it was not replaced")
	}
	w.become("Stack", strings.Replace(stocked, "IMMUTABLE", "STRICT", 1))
	w.expect(types.StackStatusUpdateRollbackComplete)
	w.remove("Stack")
	w.expect(types.StackStatusDeleteComplete)
	if left := w.store.View().Repositories.Len(); left != 0 {
		t.Errorf("%d are left", left)
	}
}

// TestTypesRefused: faults in properties are named in CloudFormation's words.
func TestTypesRefused(t *testing.T) {
	w := newWorld(t, nil)
	for properties, want := range map[string]string{
		"Type: AWS::S3::Bucket, Properties: {WebsiteConfiguration: {}}":                   "#: extraneous key [WebsiteConfiguration] is not permitted",
		"Type: AWS::S3::Bucket, Properties: {LifecycleConfiguration: {Rules: [{Id: a}]}}": "#/LifecycleConfiguration/Rules/0: required key [Status] not found",
		"Type: AWS::S3::BucketPolicy, Properties: {Bucket: b}":                            "#: required key [PolicyDocument] not found",
		"Type: AWS::SQS::QueuePolicy, Properties: {Queues: q, PolicyDocument: {}}":        "#/Queues: expected type: JSONArray, found: String",
		"Type: AWS::Logs::MetricFilter, Properties: {LogGroupName: g, FilterPattern: '', MetricTransformations: [{MetricName: m}]}": "#/MetricTransformations/0: required key [MetricNamespace] not found\n" +
			"#/MetricTransformations/0: required key [MetricValue] not found",
		"Type: AWS::SecretsManager::Secret, Properties: {GenerateSecretString: {PasswordLength: long}}":                                     "#/GenerateSecretString/PasswordLength: expected type: Integer, found: String",
		"Type: AWS::IAM::User, Properties: {LoginProfile: {Password: p}}":                                                                   "#: extraneous key [LoginProfile] is not permitted",
		"Type: AWS::ECR::Repository, Properties: {ImageTagMutabilityExclusionFilters: [{ImageTagMutabilityExclusionFilterType: WILDCARD}]}": "#/ImageTagMutabilityExclusionFilters/0: required key [ImageTagMutabilityExclusionFilterValue] not found",
		"Type: AWS::IAM::Policy, Properties: {PolicyDocument: {}}":                                                                          "#: required key [PolicyName] not found",
		"Type: AWS::IAM::ManagedPolicy, Properties: {PolicyDocument: {}, PolicyName: p}":                                                    "#: extraneous key [PolicyName] is not permitted",
	} {
		text := "Resources: {X: {" + properties + "}}"
		in := &cloudformation.CreateStackInput{StackName: aws.String("s"), TemplateBody: &text, Capabilities: acknowledgedAll}
		_, err := w.CreateStack(t.Context(), in)
		check(t, properties, err, "Properties validation failed for resource X with message:\n"+want)
	}
}

// call1 calls an operation that must succeed.
func call1[Out, In any](w *world, in *In) *Out {
	w.t.Helper()
	out, err := call.Do[Out](w.t.Context(), w.services, in)
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

// TestStockedKilled: a kill after any write of a stack's repositories' creation, change and deletion changes nothing in how it ends.
func TestStockedKilled(t *testing.T) {
	ends := func(v *state.View) string {
		var rows []string
		for r := range v.Repositories.All() {
			name, _, _ := strings.Cut(r.Name, "-images-") // what follows is by chance
			rows = append(rows, fmt.Sprintf("%s %s %v %d %d %d", name, r.Mutability, r.ScanOnPush, len(r.Lifecycle), len(r.Policy), len(r.Tags)))
		}
		return strings.Join(rows, "\n")
	}
	for what, change := range map[string]func(w *world){
		"created": func(*world) {},
		"changed": func(w *world) { w.become("Stack", strings.Replace(stocked, "IMMUTABLE", "MUTABLE", 1)) },
		"deleted": func(w *world) { w.remove("Stack") },
	} {
		w := newWorld(t, nil)
		w.create("Stack", stocked)
		begun := len(w.wrote)
		if what == "created" {
			begun = 0
		}
		change(w)
		want := ends(w.store.View())
		for i, rows := range kills(w.wrote[begun:]) {
			again := newWorld(t, rows)
			if again.store.View().Stacks.Len() == 0 {
				continue // it was killed before anybody heard of the stack
			}
			again.settle()
			if got := ends(again.store.View()); got != want {
				t.Errorf("%s, killed after write %d of %d:\n%s\nwithout:\n%s", what, i+1, len(w.wrote)-begun, got, want)
			}
		}
	}
}
