package resources

import (
	"archive/zip"
	"bytes"
	"context"
	_ "embed"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// lambdaFunction has the properties of AWS::Lambda::Function. Its physical ID is the function's name.
type lambdaFunction struct {
	FunctionName                 *string `cfn:"create"`
	PackageType                  *string `cfn:"create"`
	Architectures                []types.Architecture
	Code                         *lambdaCode `cfn:"required,write"`
	CodeSigningConfigArn         *string
	DeadLetterConfig             *types.DeadLetterConfig
	Description                  *string
	Environment                  *types.Environment
	EphemeralStorage             *types.EphemeralStorage
	FileSystemConfigs            []any
	Handler                      *string
	ImageConfig                  *types.ImageConfig
	KmsKeyArn                    *string
	Layers                       []string
	LoggingConfig                *types.LoggingConfig
	MemorySize                   *int32
	RecursiveLoop                *string
	ReservedConcurrentExecutions *int32
	Role                         *string `cfn:"required"`
	Runtime                      *string
	RuntimeManagementConfig      any
	SnapStart                    *types.SnapStart `cfn:"write"`
	Tags                         []Tag
	Timeout                      *int32
	TracingConfig                *types.TracingConfig
	VpcConfig                    *types.VpcConfig
}

type lambdaCode struct {
	ImageUri        *string
	S3Bucket        *string
	S3Key           *string
	S3ObjectVersion *string
	SourceKMSKeyArn *string
	ZipFile         *string // the text of the function's only file
}

//go:embed cfnresponse.py
var cfnresponsePython []byte

//go:embed cfn-response.js
var cfnresponseNode []byte

// inline returns the zip file of a function whose code is in the template: its file, and the module by which it may answer CloudFormation.
func inline(text, runtime string) ([]byte, error) {
	files := map[string][]byte{"index.py": []byte(text), "cfnresponse.py": cfnresponsePython}
	if strings.HasPrefix(runtime, "nodejs") {
		files = map[string][]byte{"index.js": []byte(text), "node_modules/cfn-response/index.js": cfnresponseNode, "cfn-response.js": cfnresponseNode}
	}
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for _, name := range slices.Sorted(maps.Keys(files)) { // the same text makes the same file
		w, err := z.Create(name)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(files[name]); err != nil {
			return nil, err
		}
	}
	err := z.Close()
	return b.Bytes(), err
}

func (f *lambdaFunction) code() (*types.FunctionCode, error) {
	c := &types.FunctionCode{
		ImageUri: f.Code.ImageUri, S3Bucket: f.Code.S3Bucket, S3Key: f.Code.S3Key, S3ObjectVersion: f.Code.S3ObjectVersion,
		SourceKMSKeyArn: f.Code.SourceKMSKeyArn,
	}
	if f.Code.ZipFile == nil {
		return c, nil
	}
	var err error
	c.ZipFile, err = inline(*f.Code.ZipFile, aws.ToString(f.Runtime))
	return c, err
}

// environment returns variables that aren't nil, so that an update takes those away that are gone.
func (f *lambdaFunction) environment() *types.Environment {
	if f.Environment == nil || f.Environment.Variables == nil {
		return &types.Environment{Variables: map[string]string{}}
	}
	return f.Environment
}

func checkLambdaFunction(f *lambdaFunction) (faults []string) {
	if f.RuntimeManagementConfig != nil {
		faults = append(faults, "#/RuntimeManagementConfig: runtimes are the nodes' own here")
	}
	if f.RecursiveLoop != nil && *f.RecursiveLoop != "Allow" {
		faults = append(faults, "#/RecursiveLoop: Pintle doesn't detect recursion")
	}
	if f.CodeSigningConfigArn != nil {
		faults = append(faults, "#/CodeSigningConfigArn: Pintle has no code signing")
	}
	if len(f.FileSystemConfigs) > 0 {
		faults = append(faults, "#/FileSystemConfigs: Pintle's functions have no file systems")
	}
	runtime := aws.ToString(f.Runtime)
	if f.Code != nil && f.Code.ZipFile != nil && runtime != "" && !strings.HasPrefix(runtime, "python") && !strings.HasPrefix(runtime, "nodejs") {
		faults = append(faults, fmt.Sprintf("#/Code/ZipFile: ZipFile is supported for Node.js and Python, not for %s", runtime))
	}
	return faults
}

var _ = add(&kind[*lambdaFunction]{
	name:       "AWS::Lambda::Function",
	live:       liveLambdaFunction,
	list:       listLambdaFunctions,
	identifier: []string{"FunctionName"},
	attributes: []string{"Arn", "SnapStartResponse", "SnapStartResponse.*"},
	check:      checkLambdaFunction,
	id:         func(s Step, f *lambdaFunction) string { return s.named(f.FunctionName, 64) },
	create:     createLambdaFunction,
	update:     updateLambdaFunction,
	delete: func(ctx context.Context, s Step, name string, _ *lambdaFunction) error {
		return did[lambda.DeleteFunctionOutput](ctx, s, &lambda.DeleteFunctionInput{FunctionName: &name})
	},
	read: func(ctx context.Context, s Step, name string, _ *lambdaFunction) (Made, error) {
		is, err := call.Do[lambda.GetFunctionOutput](ctx, s.Services, &lambda.GetFunctionInput{FunctionName: &name})
		if err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"Arn": *is.Configuration.FunctionArn}}, nil
	},
})

func createLambdaFunction(ctx context.Context, s Step, f *lambdaFunction) (string, error) {
	c, err := f.code()
	if err != nil {
		return "", err
	}
	name := s.named(f.FunctionName, 64)
	in := &lambda.CreateFunctionInput{
		FunctionName: &name, Code: c, Architectures: f.Architectures, DeadLetterConfig: f.DeadLetterConfig, Description: f.Description,
		Environment: f.Environment, EphemeralStorage: f.EphemeralStorage, Handler: f.Handler, ImageConfig: f.ImageConfig, KMSKeyArn: f.KmsKeyArn,
		Layers: f.Layers, LoggingConfig: f.LoggingConfig, MemorySize: f.MemorySize, PackageType: types.PackageType(aws.ToString(f.PackageType)),
		Role: f.Role, Runtime: types.Runtime(aws.ToString(f.Runtime)), SnapStart: f.SnapStart, Tags: tagMap(f.Tags), Timeout: f.Timeout,
		TracingConfig: f.TracingConfig, VpcConfig: f.VpcConfig,
	}
	if f.Code.ImageUri != nil {
		in.PackageType = types.PackageTypeImage
	}
	if err := did[lambda.CreateFunctionOutput](ctx, s, in); err != nil {
		return "", err
	}
	if err := reserve(ctx, s, name, nil, f.ReservedConcurrentExecutions); err != nil {
		return "", undo(ctx, s, name, f, func(ctx context.Context, s Step, name string, _ *lambdaFunction) error {
			return did[lambda.DeleteFunctionOutput](ctx, s, &lambda.DeleteFunctionInput{FunctionName: &name})
		}, err)
	}
	return name, nil
}

func reserve(ctx context.Context, s Step, name string, before, after *int32) error {
	switch {
	case after != nil:
		in := &lambda.PutFunctionConcurrencyInput{FunctionName: &name, ReservedConcurrentExecutions: after}
		return did[lambda.PutFunctionConcurrencyOutput](ctx, s, in)
	case before != nil:
		return did[lambda.DeleteFunctionConcurrencyOutput](ctx, s, &lambda.DeleteFunctionConcurrencyInput{FunctionName: &name})
	}
	return nil
}

func updateLambdaFunction(ctx context.Context, s Step, name string, before, after *lambdaFunction) error {
	in := &lambda.UpdateFunctionConfigurationInput{
		FunctionName: &name, DeadLetterConfig: after.DeadLetterConfig, Description: aws.String(aws.ToString(after.Description)),
		Environment: after.environment(), EphemeralStorage: after.EphemeralStorage, Handler: after.Handler, ImageConfig: after.ImageConfig,
		KMSKeyArn: after.KmsKeyArn, Layers: append([]string{}, after.Layers...), LoggingConfig: after.LoggingConfig, MemorySize: after.MemorySize,
		Role: after.Role, Runtime: types.Runtime(aws.ToString(after.Runtime)), SnapStart: after.SnapStart, Timeout: after.Timeout,
		TracingConfig: after.TracingConfig, VpcConfig: after.VpcConfig,
	}
	if in.DeadLetterConfig == nil {
		in.DeadLetterConfig = &types.DeadLetterConfig{TargetArn: aws.String("")}
	}
	if in.MemorySize == nil {
		in.MemorySize = aws.Int32(128)
	}
	if in.Timeout == nil {
		in.Timeout = aws.Int32(3)
	}
	if err := did[lambda.UpdateFunctionConfigurationOutput](ctx, s, in); err != nil {
		return err
	}
	if !reflect.DeepEqual(before.Code, after.Code) || !reflect.DeepEqual(before.Architectures, after.Architectures) {
		c, err := after.code()
		if err != nil {
			return err
		}
		in := &lambda.UpdateFunctionCodeInput{
			FunctionName: &name, Architectures: after.Architectures, ImageUri: c.ImageUri, S3Bucket: c.S3Bucket, S3Key: c.S3Key,
			S3ObjectVersion: c.S3ObjectVersion, SourceKMSKeyArn: c.SourceKMSKeyArn, ZipFile: c.ZipFile,
		}
		if err := did[lambda.UpdateFunctionCodeOutput](ctx, s, in); err != nil {
			return err
		}
	}
	if err := reserve(ctx, s, name, before.ReservedConcurrentExecutions, after.ReservedConcurrentExecutions); err != nil {
		return err
	}
	arn := s.Account.ARN("lambda", "function:"+name)
	return retag(before.Tags, after.Tags, func(gone []string) error {
		return did[lambda.UntagResourceOutput](ctx, s, &lambda.UntagResourceInput{Resource: &arn, TagKeys: gone})
	}, func() error {
		return did[lambda.TagResourceOutput](ctx, s, &lambda.TagResourceInput{Resource: &arn, Tags: tagMap(after.Tags)})
	})
}
