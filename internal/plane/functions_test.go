package plane

import (
	"archive/zip"
	"bytes"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// zipped returns a zip file with an empty program.
func zipped(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	if _, err := z.Create("index.py"); err != nil {
		t.Fatal(err)
	}
	z.Close() //nolint:errcheck // into memory
	return b.Bytes()
}

// putFunction makes a function as the account's owner.
func putFunction(t *testing.T, p *Plane, name string) {
	t.Helper()
	_, err := p.Lambda.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
		FunctionName: &name, Role: aws.String(roleARNs + "r"), Runtime: "python3.12", Handler: aws.String("index.handler"),
		Code: &lambdatypes.FunctionCode{ZipFile: zipped(t)},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestWhoMayInvoke: by a policy of one's own, or by the function's. A qualifier is another resource.
func TestWhoMayInvoke(t *testing.T) {
	p := serveSigned(t)
	createRole(t, p, "caller", `{"Effect": "Allow", "Action": ["lambda:InvokeFunction", "lambda:DeleteFunctionConcurrency"],
		"Resource": "arn:aws:lambda:us-east-1:000000000000:function:mine"}`)
	for _, name := range []string{"mine", "other", "lent", "other-function"} {
		putFunction(t, p, name)
	}
	_, err := p.Lambda.AddPermission(t.Context(), &lambda.AddPermissionInput{
		FunctionName: aws.String("lent"), StatementId: aws.String("s"), Action: aws.String("lambda:InvokeFunction"),
		Principal: aws.String(roleARNs + "caller"),
	})
	if err != nil {
		t.Fatal(err)
	}
	client := lambda.NewFromConfig(asTask(t, p, "caller"))
	for name, may := range map[string]bool{
		"mine": true, "function:mine": true, "000000000000:function:mine": true, "arn:aws:lambda:us-east-1:000000000000:function:mine": true,
		"lent": true, "other": false, "mine:$LATEST": false, "000000000000:function:other": false,
	} {
		_, err := client.Invoke(t.Context(), &lambda.InvokeInput{FunctionName: &name, InvocationType: "DryRun"})
		if (err == nil) != may {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := client.Invoke(t.Context(), &lambda.InvokeInput{
		FunctionName: aws.String("mine"), Qualifier: aws.String("$LATEST"), InvocationType: "DryRun",
	}); err == nil {
		t.Error("a qualifier of its own is no other resource")
	}
	for name, may := range map[string]bool{"mine": true, "other-function:mine": false, "1:function:mine": false} {
		_, err := client.DeleteFunctionConcurrency(t.Context(), &lambda.DeleteFunctionConcurrencyInput{FunctionName: &name})
		if (err == nil) != may {
			t.Errorf("change %s: %v", name, err)
		}
	}
	if _, err := client.DeleteFunction(t.Context(), &lambda.DeleteFunctionInput{FunctionName: aws.String("mine")}); err == nil {
		t.Error("who may invoke may delete")
	}
}

// TestWhoMayHaveTopicsInvoke: a function is run for a topic if it lets SNS, or if who subscribes it may invoke it.
func TestWhoMayHaveTopicsInvoke(t *testing.T) {
	p := serveSigned(t)
	createRole(t, p, "subscriber", `{"Effect": "Allow", "Action": "sns:Subscribe", "Resource": "*"}`)
	putFunction(t, p, "f")
	topic, err := p.SNS.CreateTopic(t.Context(), &sns.CreateTopicInput{Name: aws.String("t")})
	if err != nil {
		t.Fatal(err)
	}
	client := sns.NewFromConfig(asTask(t, p, "subscriber"))
	subscribe := func() error {
		_, err := client.Subscribe(t.Context(), &sns.SubscribeInput{
			TopicArn: topic.TopicArn, Protocol: aws.String("lambda"), Endpoint: aws.String("arn:aws:lambda:us-east-1:000000000000:function:f"),
		})
		return err
	}
	if subscribe() == nil {
		t.Error("a function was subscribed that lets nobody")
	}
	_, err = p.Lambda.AddPermission(t.Context(), &lambda.AddPermissionInput{
		FunctionName: aws.String("f"), StatementId: aws.String("s"), Action: aws.String("lambda:InvokeFunction"),
		Principal: aws.String("sns.amazonaws.com"), SourceArn: topic.TopicArn,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := subscribe(); err != nil {
		t.Error(err)
	}
}

// TestFunctionsCodeIsTheirOwn: nobody but Lambda registers a task definition with a volume of its driver, which shows a function's code.
func TestFunctionsCodeIsTheirOwn(t *testing.T) {
	p := serveSigned(t)
	owner := awsecs.NewFromConfig(p.config("AKID", "secret", ""))
	_, err := owner.RegisterTaskDefinition(t.Context(), &awsecs.RegisterTaskDefinitionInput{
		Family:               aws.String("f"),
		ContainerDefinitions: []ecstypes.ContainerDefinition{{Name: aws.String("c"), Image: aws.String("i"), Memory: aws.Int32(64)}},
		Volumes: []ecstypes.Volume{{Name: aws.String("code"), DockerVolumeConfiguration: &ecstypes.DockerVolumeConfiguration{
			Driver: aws.String(acs.FunctionDriver), DriverOpts: map[string]string{acs.FunctionCode: "0"},
		}}},
	})
	refused(t, "a volume of Lambda's", err, "ClientException",
		`Volume "code": the driver pintle-lambda is for AWS Lambda's own task definitions.`)
}

// TestWhatFunctionsMayTake: a mapping, and another function for it, need the right to the queue: that of whoever asks, or of the function's role.
func TestWhatFunctionsMayTake(t *testing.T) {
	p := serveSigned(t)
	const queue = "arn:aws:sqs:us-east-1:000000000000:q"
	do(p.SQS.CreateQueue(t.Context(), &sqs.CreateQueueInput{QueueName: aws.String("q")}))(t)
	createRole(t, p, "deployer", `{"Effect": "Allow", "Action": "lambda:*", "Resource": "*"}`)
	createRole(t, p, "reader", `{"Effect": "Allow", "Action": ["sqs:*", "sns:*"], "Resource": "*"}`)
	for name, role := range map[string]string{"may": "reader", "maynt": "deployer"} {
		putFunction(t, p, name)
		statetest.Update(t, p.State, func(tx *state.Tx) {
			row := *tx.FunctionVersions.Get(state.FunctionKey(name, state.Latest))
			row.Role = aws.String(roleARNs + role)
			tx.FunctionVersions.Put(&row)
		})
	}
	client := lambda.NewFromConfig(asTask(t, p, "deployer"))
	create := func(function string) (*lambda.CreateEventSourceMappingOutput, error) {
		return client.CreateEventSourceMapping(t.Context(), &lambda.CreateEventSourceMappingInput{
			EventSourceArn: aws.String(queue), FunctionName: &function,
		})
	}
	if _, err := create("maynt"); code(err) != "AccessDeniedException" {
		t.Errorf("a function whose role may not read the queue: %v", err)
	}
	made := do(create("may"))(t)
	_, err := client.UpdateEventSourceMapping(t.Context(), &lambda.UpdateEventSourceMappingInput{UUID: made.UUID, FunctionName: aws.String("maynt")})
	if code(err) != "AccessDeniedException" {
		t.Errorf("another function, whose role may not read the queue: %v", err)
	}
	do(client.UpdateEventSourceMapping(t.Context(), &lambda.UpdateEventSourceMappingInput{UUID: made.UUID, FunctionName: aws.String("may"), BatchSize: aws.Int32(1)}))(t)
	for function, may := range map[string]bool{"may": true, "maynt": false} {
		_, err := client.PutFunctionEventInvokeConfig(t.Context(), &lambda.PutFunctionEventInvokeConfigInput{
			FunctionName: &function, DestinationConfig: &lambdatypes.DestinationConfig{OnFailure: &lambdatypes.OnFailure{Destination: aws.String(queue)}},
		})
		if (err == nil) != may {
			t.Errorf("%s's destination: %v", function, err)
		}
	}
}

// TestTasksFunctionsRunAsTheirRole: a task whose role no policy binds gets no other role by way of a function, and none of a node's files.
func TestTasksFunctionsRunAsTheirRole(t *testing.T) {
	p := serveSigned(t)
	putFunction(t, p, "others")
	client := lambda.NewFromConfig(asTask(t, p, "own"))
	create := func(role, image string) error {
		_, err := client.CreateFunction(t.Context(), &lambda.CreateFunctionInput{
			FunctionName: aws.String("f"), Role: aws.String(roleARNs + role), PackageType: "Image", Code: &lambdatypes.FunctionCode{ImageUri: &image},
		})
		return err
	}
	_, code := client.UpdateFunctionCode(t.Context(), &lambda.UpdateFunctionCodeInput{FunctionName: aws.String("others"), ZipFile: []byte("x")})
	_, configuration := client.UpdateFunctionConfiguration(t.Context(), &lambda.UpdateFunctionConfigurationInput{
		FunctionName: aws.String("others"), Handler: aws.String("h.h"),
	})
	for what, err := range map[string]error{
		"another role": create("another", "i"), "another's code": code, "another's configuration": configuration,
		"a node's files": create("own", "rootfs:/root/backup.tar"),
	} {
		if refused, is := errors.AsType[smithy.APIError](err); !is || refused.ErrorCode() != "AccessDeniedException" {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := create("own", "registry.example/i"); err != nil {
		t.Errorf("its own role: %v", err)
	}
}
