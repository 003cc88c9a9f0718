package cloudformation

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	awslambda "github.com/aws/aws-sdk-go-v2/service/lambda"
	awss3 "github.com/aws/aws-sdk-go-v2/service/s3"
	s3types "github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/pintle/pintle/internal/lambda"
)

// oneZip is S3 with the same zip file wherever one looks for it.
type oneZip struct{}

func (oneZip) GetObject(context.Context, *awss3.GetObjectInput, ...func(*awss3.Options)) (*awss3.GetObjectOutput, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	if _, err := z.Create("index.py"); err != nil {
		return nil, err
	}
	err := z.Close()
	return &awss3.GetObjectOutput{Body: io.NopCloser(&b), ContentLength: aws.Int64(int64(b.Len()))}, err
}

// invoker is functions as S3 sees them.
type invoker struct{ *lambda.Service }

func (i invoker) Invoke(ctx context.Context, in *awslambda.InvokeInput, _ ...func(*awslambda.Options)) (*awslambda.InvokeOutput, error) {
	return i.Service.Invoke(ctx, in)
}

const called = `
Resources:
  F:
    Type: AWS::Lambda::Function
    Properties:
      Code: {ZipFile: 'def handler(event, context): pass'}
      Handler: index.handler
      Runtime: python3.12
      Role: arn:aws:iam::000000000000:role/r
      Description: d
      Environment: {Variables: {MODE: '1'}}
      Layers: [!Ref L]
      LoggingConfig: {LogFormat: JSON}
      MemorySize: '256'
      ReservedConcurrentExecutions: 5
      Timeout: 7
      TracingConfig: {Mode: PassThrough}
      DeadLetterConfig: {TargetArn: !GetAtt D.Arn}
      Tags: [{Key: a, Value: b}]
  I: {Type: AWS::Lambda::Function, Properties: {Code: {ImageUri: 'example.com/i@sha256:1111111111111111111111111111111111111111111111111111111111111111'}, PackageType: Image, ImageConfig: {Command: [x, y]}, Role: 'arn:aws:iam::000000000000:role/r'}}
  L: {Type: AWS::Lambda::LayerVersion, Properties: {Content: {S3Bucket: code, S3Key: k}, CompatibleRuntimes: [python3.12], Description: d, LicenseInfo: MIT}}
  V: {Type: AWS::Lambda::Version, Properties: {FunctionName: !GetAtt F.Arn, Description: first}}
  O: {Type: AWS::Lambda::Version, Properties: {FunctionName: !Ref I}}
  A: {Type: AWS::Lambda::Alias, Properties: {FunctionName: !Ref F, FunctionVersion: !GetAtt V.Version, Name: live, Description: d}}
  P:
    Type: AWS::Lambda::Permission
    Properties:
      {FunctionName: !GetAtt F.Arn, Action: 'lambda:InvokeFunction', Principal: s3.amazonaws.com, SourceAccount: '000000000000', SourceArn: 'arn:aws:s3:::b'}
  R: {Type: AWS::Lambda::Permission, Properties: {FunctionName: !Ref A, Action: 'lambda:InvokeFunction', Principal: '111111111111'}}
  E: {Type: AWS::Lambda::EventInvokeConfig, Properties: {FunctionName: !Ref F, Qualifier: $LATEST, MaximumRetryAttempts: 0, DestinationConfig: {OnFailure: {Destination: !GetAtt D.Arn}}}}
  M:
    Type: AWS::Lambda::EventSourceMapping
    Properties:
      {FunctionName: !Ref A, EventSourceArn: !GetAtt Q.Arn, BatchSize: 5, Enabled: false, FunctionResponseTypes: [ReportBatchItemFailures], ScalingConfig: {MaximumConcurrency: 3}, Tags: [{Key: a, Value: b}]}
  B:
    Type: AWS::S3::Bucket
    DependsOn: P
    Properties:
      NotificationConfiguration:
        EventBridgeConfiguration: {EventBridgeEnabled: true}
        LambdaConfigurations:
          - {Event: 's3:ObjectCreated:*', Function: !GetAtt F.Arn, Filter: {S3Key: {Rules: [{Name: prefix, Value: in/}, {Name: suffix, Value: .csv}]}}}
          - {Event: 's3:ObjectRemoved:*', Function: !GetAtt F.Arn}
        QueueConfigurations: [{Event: 's3:ObjectCreated:*', Queue: !GetAtt Q.Arn, Filter: {S3Key: {Rules: [{Name: prefix, Value: out/}]}}}]
  Q: {Type: AWS::SQS::Queue}
  D: {Type: AWS::SQS::Queue}
`

// TestBucketNotifiesFunctions: a template's notifications are S3's, and go with it.
func TestBucketNotifiesFunctions(t *testing.T) {
	w := withStores(t)
	w.create("s", called)
	w.expect(types.StackStatusCreateComplete)
	bucket := physicalIDs(w.store.View())["B"]
	is := func() *awss3.GetBucketNotificationConfigurationOutput {
		return call1[awss3.GetBucketNotificationConfigurationOutput](w, &awss3.GetBucketNotificationConfigurationInput{Bucket: &bucket})
	}
	got := is().LambdaFunctionConfigurations
	if len(got) != 2 || !slices.Equal(got[0].Events, []s3types.Event{"s3:ObjectCreated:*"}) || *got[0].Filter.Key.FilterRules[1].Value != ".csv" || got[1].Filter != nil {
		t.Errorf("it has %+v", got)
	}
	w.become("s", strings.Replace(called, "          - {Event: 's3:ObjectRemoved:*', Function: !GetAtt F.Arn}\n", "", 1))
	w.expect(types.StackStatusUpdateComplete)
	if got := is(); len(got.LambdaFunctionConfigurations) != 1 || len(got.QueueConfigurations) != 1 || got.EventBridgeConfiguration == nil {
		t.Errorf("with one less it has %+v", got)
	}
	w.become("s", strings.Replace(called, "Function: !GetAtt F.Arn}", "Function: 'arn:aws:lambda:us-east-1:000000000000:function:none'}", 1))
	w.expect(types.StackStatusUpdateRollbackComplete)
	if got := w.failures(); !strings.Contains(got, "Unable to validate the following destination configurations") {
		t.Errorf("a function that isn't there: %s", got)
	}
}

// TestFunctionGetsItsNewImage: a deployment with another image, as the CDK makes one of a DockerImageFunction whose files have changed.
func TestFunctionGetsItsNewImage(t *testing.T) {
	w := withStores(t)
	w.create("s", called)
	id := physicalIDs(w.store.View())["I"]
	w.become("s", strings.ReplaceAll(called, "i@sha256:1111", "i@sha256:2222"))
	w.expect(types.StackStatusUpdateComplete)
	got := call1[awslambda.GetFunctionOutput](w, &awslambda.GetFunctionInput{FunctionName: &id})
	if !strings.HasPrefix(*got.Configuration.CodeSha256, "2222") || !strings.HasPrefix(*got.Code.ImageUri, "example.com/i@sha256:2222") {
		t.Errorf("its image is %s, %+v", *got.Configuration.CodeSha256, got.Code)
	}
	if again := physicalIDs(w.store.View())["I"]; again != id {
		t.Errorf("it is another function: %s", again)
	}
}

// TestDriftOfFunctions: what is changed behind a stack's back is found, what the function's code is isn't looked at, as on AWS.
func TestDriftOfFunctions(t *testing.T) {
	w := withStores(t)
	w.create("s", called)
	ids := physicalIDs(w.store.View())
	call1[awslambda.UpdateFunctionCodeOutput](w, &awslambda.UpdateFunctionCodeInput{FunctionName: new(ids["F"]), S3Bucket: aws.String("code"), S3Key: aws.String("k")})
	call1[awslambda.UpdateFunctionConfigurationOutput](w, &awslambda.UpdateFunctionConfigurationInput{FunctionName: new(ids["F"]), Timeout: aws.Int32(8)})
	call1[awslambda.PutFunctionConcurrencyOutput](w, &awslambda.PutFunctionConcurrencyInput{FunctionName: new(ids["F"]), ReservedConcurrentExecutions: aws.Int32(6)})
	call1[awslambda.UpdateAliasOutput](w, &awslambda.UpdateAliasInput{FunctionName: new(ids["F"]), Name: aws.String("live"), Description: aws.String("e")})
	call1[awslambda.UpdateEventSourceMappingOutput](w, &awslambda.UpdateEventSourceMappingInput{UUID: new(ids["M"]), BatchSize: aws.Int32(6), Enabled: aws.Bool(true)})
	call1[awslambda.RemovePermissionOutput](w, &awslambda.RemovePermissionInput{FunctionName: new(ids["F"]), StatementId: new(ids["P"])})
	call1[awslambda.UpdateFunctionEventInvokeConfigOutput](w, &awslambda.UpdateFunctionEventInvokeConfigInput{FunctionName: new(ids["F"]), MaximumRetryAttempts: aws.Int32(1)})
	call1[awslambda.DeleteFunctionOutput](w, &awslambda.DeleteFunctionInput{FunctionName: new(ids["O"])})
	var found []string
	for _, line := range w.drifts() {
		if !strings.HasSuffix(line, " IN_SYNC") {
			found = append(found, line)
		}
	}
	want := `A MODIFIED
/Description NOT_EQUAL d -> e
E MODIFIED
/MaximumRetryAttempts NOT_EQUAL 0 -> 1
F MODIFIED
/ReservedConcurrentExecutions NOT_EQUAL 5 -> 6
/Timeout NOT_EQUAL 7 -> 8
M MODIFIED
/BatchSize NOT_EQUAL 5 -> 6
/Enabled NOT_EQUAL false -> true
O DELETED
P DELETED`
	if got := strings.Join(found, "\n"); got != want {
		t.Errorf("found\n%s", got)
	}
	w.remove("s")
	if left := w.failures(); left != "" {
		t.Error(left)
	}
}
