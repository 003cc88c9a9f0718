package plane

import (
	"errors"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	cloudwatchtypes "github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ecr"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	efstypes "github.com/aws/aws-sdk-go-v2/service/efs/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	awsscheduler "github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"
	"github.com/aws/aws-sdk-go-v2/service/servicediscovery"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/store/sqlite"
	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/validation"
)

// badToken is what each service answers to a token that is none of its: the error's code, and a word of its message.
var badToken = map[string][2]string{
	"acm":                     {"ValidationException", "nextToken"},
	"application-autoscaling": {"InvalidNextTokenException", ""},
	"autoscaling":             {"InvalidNextToken", ""},
	"cloudcontrolapi":         {"ValidationException", "NextToken"},
	"cloudformation":          {"ValidationError", "NextToken"},
	"ec2":                     {"InvalidNextToken", ""},
	"ecr":                     {"InvalidParameterException", "nextToken"},
	"ecs":                     {"InvalidParameterException", "nextToken"},
	"elasticfilesystem":       {"BadRequest", "marker"},
	"events":                  {"ValidationException", "NextToken"},
	"iam":                     {"ValidationError", "Marker"},
	"logs":                    {"InvalidParameterException", "nextToken"},
	"monitoring":              {"InvalidNextToken", ""},
	"s3":                      {"InvalidArgument", "continuation token"},
	"scheduler":               {"ValidationException", "NextToken"},
	"secretsmanager":          {"InvalidNextTokenException", ""},
	"servicediscovery":        {"InvalidInput", "NextToken"},
	"sns":                     {"InvalidParameter", "NextToken"},
	"sqs":                     {"InvalidParameterValueException", "NextToken"},
	"ssm":                     {"InvalidNextToken", ""},
	// Two lists of CloudWatch's declare no InvalidNextToken, and name the parameter.
	"monitoring:ListDashboards": {"InvalidParameterValueException", "NextToken"},
	"monitoring:ListMetrics":    {"InvalidParameterValueException", "NextToken"},
}

// listed are the values of members that lists need, beside the token.
var listed = map[string]string{
	"ActionNames":          "s3:GetObject",
	"AutoScalingGroupName": "g",
	"Bucket":               "b",
	"ChangeSetName":        "c",
	"GroupName":            "x",
	"InstanceProfileName":  "x",
	"LaunchTemplateId":     "lt-1",
	"LogGroupName":         "x",
	"LogStreamName":        "x",
	"ExportName":           "x",
	"Name":                 "/x",
	"Path":                 "/",
	"PolicyArn":            "arn:aws:iam::000000000000:policy/x",
	"PolicyInputList":      `{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"*","Resource":"*"}}`,
	"PolicySourceArn":      "arn:aws:iam::000000000000:role/x",
	"PolicyType":           "DATA_PROTECTION_POLICY",
	"QueueUrl":             "http://localhost:4566/000000000000/x",
	"RepositoryName":       "images",
	"ResourceId":           "fs-01234567",
	"RoleName":             "x",
	"Rule":                 "x",
	"SecretId":             "x",
	"SecretIdList":         "x",
	"Namespace":            "x",
	"Service":              "x",
	"ServiceNamespace":     "ecs",
	"StackName":            "x",
	"TargetArn":            "arn:aws:sqs:us-east-1:000000000000:x",
	"TargetType":           "container-instance",
	"TypeName":             "AWS::SQS::Queue",
	"TopicArn":             "arn:aws:sns:us-east-1:000000000000:x",
	"UserName":             "x",
}

// TestNonsenseTokens: no list takes a token that it hasn't given, also where it never gives one.
func TestNonsenseTokens(t *testing.T) {
	p := openSimulated(t)
	makeParents(t, p)
	tried := 0
	for _, api := range apis(p.services()) {
		check := validation.New(api.Constraints)
		for _, operation := range api.Service.Operations() {
			in, paged := withNonsense(api.Name, operation)
			if !paged {
				continue
			}
			tried++
			err := check.Check(in)
			if err == nil {
				_, err = operation.Call(t.Context(), in)
			}
			want, special := badToken[api.Name+":"+operation.Name]
			if !special {
				want = badToken[api.Name]
			}
			var refused smithy.APIError
			if !errors.As(err, &refused) || refused.ErrorCode() != want[0] || !strings.Contains(refused.ErrorMessage(), want[1]) {
				t.Errorf("%s %s: %v", api.Name, operation.Name, err)
			}
		}
	}
	if tried < 100 {
		t.Errorf("only %d operations have a token", tried)
	}
}

// withNonsense returns an input of an operation with a token that it hasn't given, if it takes one.
func withNonsense(service string, operation call.Operation) (in any, paged bool) {
	v := reflect.New(operation.In)
	for i := range operation.In.NumField() {
		name := operation.In.Field(i).Name
		switch {
		case name == "NextToken" || service == "iam" && name == "Marker" || service == "s3" && name == "ContinuationToken":
			paged = true
			set(v.Elem().Field(i), "bm9uc2Vuc2U=")
		case operation.Name == "ListAccountSettings" && name == "Name": // a setting's, and optional
		case listed[name] != "":
			set(v.Elem().Field(i), listed[name])
		}
	}
	if in, ok := v.Interface().(*cloudwatch.GetMetricDataInput); ok {
		in.StartTime, in.EndTime = new(noon.Add(-time.Hour)), new(noon)
		in.MetricDataQueries = []cloudwatchtypes.MetricDataQuery{{Id: new("m"), Expression: new("TIME_SERIES(1)"), Period: new(int32(60))}}
	}
	return v.Interface(), paged
}

// set sets a member that is a string, a pointer to one, or a list of them.
func set(v reflect.Value, s string) {
	switch {
	case v.Kind() == reflect.String:
		v.SetString(s)
	case v.Type() == reflect.TypeFor[*string]():
		v.Set(reflect.ValueOf(&s))
	case v.Type() == reflect.TypeFor[[]string]():
		v.Set(reflect.ValueOf([]string{s}))
	}
}

func openSimulated(t *testing.T) *Plane {
	t.Helper()
	journal, err := sqlite.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	p, err := Open(t.Context(), Options{
		Region:    "us-east-1",
		Account:   "000000000000",
		Data:      t.TempDir(),
		Advertise: "http://localhost:4566",
		Log:       slog.New(slog.DiscardHandler),
		Simulated: &Simulated{Now: func() time.Time { return noon }, NewID: state.NewID, Journal: journal},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() }) //nolint:errcheck // the test is over
	return p
}

// makeParents makes what lists are lists of.
func makeParents(t *testing.T, p *Plane) {
	t.Helper()
	if err := putGroup(p.State); err != nil {
		t.Fatal(err)
	}
	ctx, x := t.Context(), new("x")
	try := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	try(p.ECS.CreateCluster(ctx, &ecs.CreateClusterInput{}))
	try(p.ECS.RegisterTaskDefinition(ctx, &ecs.RegisterTaskDefinitionInput{
		Family: x, ContainerDefinitions: []ecstypes.ContainerDefinition{{Name: x, Image: x, Memory: new(int32(64))}},
	}))
	try(p.ECS.CreateService(ctx, &ecs.CreateServiceInput{ServiceName: x, TaskDefinition: x, DesiredCount: new(int32(0))}))
	try(p.Logs.CreateLogGroup(ctx, &cloudwatchlogs.CreateLogGroupInput{LogGroupName: x}))
	try(p.Logs.CreateLogStream(ctx, &cloudwatchlogs.CreateLogStreamInput{LogGroupName: x, LogStreamName: x}))
	query, err := p.Logs.StartQuery(ctx, &cloudwatchlogs.StartQueryInput{
		LogGroupName: x, StartTime: new(int64(0)), EndTime: new(int64(1)), QueryString: new("fields @message"),
	})
	try(query, err)
	listed["QueryId"] = *query.QueryId
	try(p.SQS.CreateQueue(ctx, &sqs.CreateQueueInput{QueueName: x}))
	try(p.SNS.CreateTopic(ctx, &sns.CreateTopicInput{Name: x}))
	try(p.Events.PutRule(ctx, &eventbridge.PutRuleInput{Name: x, ScheduleExpression: new("rate(1 day)")}))
	try(p.Schedules.CreateScheduleGroup(ctx, &awsscheduler.CreateScheduleGroupInput{Name: x}))
	try(p.SSM.PutParameter(ctx, &ssm.PutParameterInput{Name: new("/x"), Value: x, Type: "String"}))
	try(p.SecretsManager.CreateSecret(ctx, &secretsmanager.CreateSecretInput{Name: x, SecretString: x, ClientRequestToken: new(strings.Repeat("x", 32))}))
	try(p.ECR.CreateRepository(ctx, &ecr.CreateRepositoryInput{RepositoryName: new("images")}))
	try(p.IAM.CreateGroup(ctx, &iam.CreateGroupInput{GroupName: x}))
	try(p.IAM.CreateUser(ctx, &iam.CreateUserInput{UserName: x}))
	try(p.IAM.CreateRole(ctx, &iam.CreateRoleInput{RoleName: x, AssumeRolePolicyDocument: new(
		`{"Version":"2012-10-17","Statement":{"Effect":"Allow","Action":"sts:AssumeRole","Principal":{"Service":"ecs.amazonaws.com"}}}`)}))
	try(p.IAM.CreateInstanceProfile(ctx, &iam.CreateInstanceProfileInput{InstanceProfileName: x}))
	try(p.IAM.CreatePolicy(ctx, &iam.CreatePolicyInput{PolicyName: x, PolicyDocument: new(listed["PolicyInputList"])}))
	prefixes, err := p.EC2.DescribeManagedPrefixLists(ctx, &ec2.DescribeManagedPrefixListsInput{})
	try(prefixes, err)
	listed["PrefixListId"] = *prefixes.PrefixLists[0].PrefixListId
	try(p.CloudMap.CreateHttpNamespace(ctx, &servicediscovery.CreateHttpNamespaceInput{Name: x}))
	discovered, err := p.CloudMap.CreateService(ctx, &servicediscovery.CreateServiceInput{Name: x, NamespaceId: &p.State.View().NamespaceNamed("x").ID})
	try(discovered, err)
	listed["ServiceId"] = *discovered.Service.Id
	try(p.CloudFormation.CreateChangeSet(ctx, &cloudformation.CreateChangeSetInput{
		StackName: x, ChangeSetName: new("c"), ChangeSetType: "CREATE",
		TemplateBody: new(`{"Resources":{"T":{"Type":"AWS::SQS::Queue"}}}`),
	}))
	try(nil, p.State.Update(ctx, func(tx *state.Tx) error {
		tx.FileSystems.Put(&state.FileSystem{FileSystemDescription: efstypes.FileSystemDescription{FileSystemId: new("fs-01234567")}})
		return nil
	}))
}
