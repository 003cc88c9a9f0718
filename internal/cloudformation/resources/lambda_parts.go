package resources

import (
	"context"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/pintle/pintle/internal/wire/call"
)

// lambdaPermission has the properties of AWS::Lambda::Permission. Its physical ID is the statement's.
type lambdaPermission struct {
	Action                *string `cfn:"required,create"`
	EventSourceToken      *string `cfn:"create"`
	FunctionName          *string `cfn:"required,create"`
	FunctionUrlAuthType   *string `cfn:"create"`
	InvokedViaFunctionUrl *bool   `cfn:"create"`
	Principal             *string `cfn:"required,create"`
	PrincipalOrgID        *string `cfn:"create"`
	SourceAccount         *string `cfn:"create"`
	SourceArn             *string `cfn:"create"`
}

var _ = add(&kind[*lambdaPermission]{
	name:       "AWS::Lambda::Permission",
	live:       liveLambdaPermission,
	identifier: []string{"FunctionName", "Id"},
	physical:   "Id",
	attributes: []string{"Id"},
	find: func(ctx context.Context, s Step, p *lambdaPermission) (string, error) {
		out, err := call.Do[lambda.GetPolicyOutput](ctx, s.Services, &lambda.GetPolicyInput{FunctionName: p.FunctionName})
		if isMissing(err) {
			return "", nil
		}
		if err != nil || !strings.Contains(*out.Policy, `"`+s.generated(100)+`"`) {
			return "", err
		}
		return s.generated(100), nil
	},
	create: func(ctx context.Context, s Step, p *lambdaPermission) (string, error) {
		id := s.generated(100)
		in := &lambda.AddPermissionInput{
			StatementId: &id, Action: p.Action, EventSourceToken: p.EventSourceToken, FunctionName: p.FunctionName,
			FunctionUrlAuthType: types.FunctionUrlAuthType(aws.ToString(p.FunctionUrlAuthType)), InvokedViaFunctionUrl: p.InvokedViaFunctionUrl,
			Principal: p.Principal, PrincipalOrgID: p.PrincipalOrgID, SourceAccount: p.SourceAccount, SourceArn: p.SourceArn,
		}
		return id, did[lambda.AddPermissionOutput](ctx, s, in)
	},
	delete: func(ctx context.Context, s Step, id string, p *lambdaPermission) error {
		return did[lambda.RemovePermissionOutput](ctx, s, &lambda.RemovePermissionInput{FunctionName: p.FunctionName, StatementId: &id})
	},
	read: func(ctx context.Context, s Step, id string, p *lambdaPermission) (Made, error) {
		_, err := liveLambdaPermission(ctx, s, id, p)
		return Made{Attributes: map[string]any{"Id": id}}, err
	},
})

// lambdaVersion has the properties of AWS::Lambda::Version. Its physical ID is the version's ARN.
type lambdaVersion struct {
	CodeSha256                   *string `cfn:"create"`
	Description                  *string `cfn:"create"`
	FunctionName                 *string `cfn:"required,create"`
	ProvisionedConcurrencyConfig any     `cfn:"create"`
	RuntimePolicy                any     `cfn:"create"`
}

var _ = add(&kind[*lambdaVersion]{
	name:       "AWS::Lambda::Version",
	live:       liveLambdaVersion,
	list:       listLambdaVersions,
	identifier: []string{"FunctionArn"},
	attributes: []string{"FunctionArn", "Version"},
	check: func(v *lambdaVersion) (faults []string) {
		if v.ProvisionedConcurrencyConfig != nil {
			faults = append(faults, "#/ProvisionedConcurrencyConfig: Pintle has no provisioned concurrency")
		}
		if v.RuntimePolicy != nil {
			faults = append(faults, "#/RuntimePolicy: runtimes are the nodes' own here")
		}
		return faults
	},
	create: func(ctx context.Context, s Step, v *lambdaVersion) (string, error) {
		out, err := call.Do[lambda.PublishVersionOutput](ctx, s.Services, &lambda.PublishVersionInput{
			FunctionName: v.FunctionName, CodeSha256: v.CodeSha256, Description: v.Description,
		})
		if err != nil {
			return "", err
		}
		return *out.FunctionArn, nil
	},
	delete: func(ctx context.Context, s Step, arn string, _ *lambdaVersion) error {
		return did[lambda.DeleteFunctionOutput](ctx, s, &lambda.DeleteFunctionInput{FunctionName: &arn})
	},
	read: func(ctx context.Context, s Step, arn string, _ *lambdaVersion) (Made, error) {
		out, err := call.Do[lambda.GetFunctionConfigurationOutput](ctx, s.Services, &lambda.GetFunctionConfigurationInput{FunctionName: &arn})
		if err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"FunctionArn": arn, "Version": *out.Version}}, nil
	},
})

// lambdaAlias has the properties of AWS::Lambda::Alias. Its physical ID is the alias's ARN.
type lambdaAlias struct {
	Description                  *string
	FunctionName                 *string `cfn:"required,create"`
	FunctionVersion              *string `cfn:"required"`
	Name                         *string `cfn:"required,create"`
	ProvisionedConcurrencyConfig any
	RoutingConfig                *lambdaRouting
}

type lambdaRouting struct {
	AdditionalVersionWeights []lambdaWeight
}

type lambdaWeight struct {
	FunctionVersion string  `cfn:"required"`
	FunctionWeight  float64 `cfn:"required"`
}

func (a *lambdaAlias) routing() *types.AliasRoutingConfiguration {
	out := &types.AliasRoutingConfiguration{AdditionalVersionWeights: map[string]float64{}}
	if a.RoutingConfig != nil {
		for _, w := range a.RoutingConfig.AdditionalVersionWeights {
			out.AdditionalVersionWeights[w.FunctionVersion] = w.FunctionWeight
		}
	}
	return out
}

var _ = add(&kind[*lambdaAlias]{
	name:       "AWS::Lambda::Alias",
	live:       liveLambdaAlias,
	list:       listLambdaAliases,
	identifier: []string{"AliasArn"},
	attributes: []string{"AliasArn"},
	check: func(a *lambdaAlias) []string {
		if a.ProvisionedConcurrencyConfig != nil {
			return []string{"#/ProvisionedConcurrencyConfig: Pintle has no provisioned concurrency"}
		}
		return nil
	},
	find: func(ctx context.Context, s Step, a *lambdaAlias) (string, error) {
		out, err := call.Do[lambda.GetAliasOutput](ctx, s.Services, &lambda.GetAliasInput{FunctionName: a.FunctionName, Name: a.Name})
		if isMissing(err) {
			return "", nil
		}
		if err != nil {
			return "", err
		}
		return *out.AliasArn, nil
	},
	create: func(ctx context.Context, s Step, a *lambdaAlias) (string, error) {
		in := &lambda.CreateAliasInput{FunctionName: a.FunctionName, FunctionVersion: a.FunctionVersion, Name: a.Name, Description: a.Description}
		if a.RoutingConfig != nil {
			in.RoutingConfig = a.routing()
		}
		out, err := call.Do[lambda.CreateAliasOutput](ctx, s.Services, in)
		if err != nil {
			return "", err
		}
		return *out.AliasArn, nil
	},
	update: func(ctx context.Context, s Step, _ string, _, after *lambdaAlias) error {
		return did[lambda.UpdateAliasOutput](ctx, s, &lambda.UpdateAliasInput{
			FunctionName: after.FunctionName, FunctionVersion: after.FunctionVersion, Name: after.Name,
			Description: aws.String(aws.ToString(after.Description)), RoutingConfig: after.routing(),
		})
	},
	delete: func(ctx context.Context, s Step, _ string, a *lambdaAlias) error {
		return did[lambda.DeleteAliasOutput](ctx, s, &lambda.DeleteAliasInput{FunctionName: a.FunctionName, Name: a.Name})
	},
	read: func(ctx context.Context, s Step, arn string, _ *lambdaAlias) (Made, error) {
		_, err := getLambdaAlias(ctx, s, arn)
		return Made{Attributes: map[string]any{"AliasArn": arn}}, err
	},
})

// lambdaInvokeConfig has the properties of AWS::Lambda::EventInvokeConfig.
type lambdaInvokeConfig struct {
	DestinationConfig        *types.DestinationConfig
	FunctionName             *string `cfn:"required,create"`
	MaximumEventAgeInSeconds *int32
	MaximumRetryAttempts     *int32
	Qualifier                *string `cfn:"required,create"`
}

func putLambdaInvokeConfig(ctx context.Context, s Step, c *lambdaInvokeConfig) error {
	return did[lambda.PutFunctionEventInvokeConfigOutput](ctx, s, &lambda.PutFunctionEventInvokeConfigInput{
		FunctionName: c.FunctionName, Qualifier: c.Qualifier, DestinationConfig: c.DestinationConfig,
		MaximumEventAgeInSeconds: c.MaximumEventAgeInSeconds, MaximumRetryAttempts: c.MaximumRetryAttempts,
	})
}

var _ = add(&kind[*lambdaInvokeConfig]{
	name:       "AWS::Lambda::EventInvokeConfig",
	live:       liveLambdaInvokeConfig,
	identifier: []string{"FunctionName", "Qualifier"},
	id:         func(_ Step, c *lambdaInvokeConfig) string { return invokeConfigID(c) },
	create: func(ctx context.Context, s Step, c *lambdaInvokeConfig) (string, error) {
		return invokeConfigID(c), putLambdaInvokeConfig(ctx, s, c)
	},
	update: func(ctx context.Context, s Step, _ string, _, after *lambdaInvokeConfig) error {
		return putLambdaInvokeConfig(ctx, s, after)
	},
	delete: func(ctx context.Context, s Step, _ string, c *lambdaInvokeConfig) error {
		return did[lambda.DeleteFunctionEventInvokeConfigOutput](ctx, s, &lambda.DeleteFunctionEventInvokeConfigInput{
			FunctionName: c.FunctionName, Qualifier: c.Qualifier,
		})
	},
	read: func(ctx context.Context, s Step, id string, c *lambdaInvokeConfig) (Made, error) {
		_, err := liveLambdaInvokeConfig(ctx, s, id, c)
		return Made{}, err
	},
})

func invokeConfigID(c *lambdaInvokeConfig) string {
	if c.FunctionName == nil || c.Qualifier == nil {
		return ""
	}
	return *c.FunctionName + "|" + *c.Qualifier
}

// lambdaLayer has the properties of AWS::Lambda::LayerVersion. Its physical ID is the version's ARN.
type lambdaLayer struct {
	CompatibleArchitectures []types.Architecture `cfn:"create"`
	CompatibleRuntimes      []types.Runtime      `cfn:"create"`
	Content                 *lambdaLayerContent  `cfn:"required,create,write"`
	Description             *string              `cfn:"create"`
	LayerName               *string              `cfn:"create"`
	LicenseInfo             *string              `cfn:"create"`
}

type lambdaLayerContent struct {
	S3Bucket        *string `cfn:"required"`
	S3Key           *string `cfn:"required"`
	S3ObjectVersion *string
}

var _ = add(&kind[*lambdaLayer]{
	name:       "AWS::Lambda::LayerVersion",
	live:       liveLambdaLayer,
	identifier: []string{"LayerVersionArn"},
	attributes: []string{"LayerVersionArn"},
	create: func(ctx context.Context, s Step, l *lambdaLayer) (string, error) {
		name := s.named(l.LayerName, 140)
		out, err := call.Do[lambda.PublishLayerVersionOutput](ctx, s.Services, &lambda.PublishLayerVersionInput{
			LayerName: &name, CompatibleArchitectures: l.CompatibleArchitectures, CompatibleRuntimes: l.CompatibleRuntimes,
			Description: l.Description, LicenseInfo: l.LicenseInfo,
			Content: &types.LayerVersionContentInput{S3Bucket: l.Content.S3Bucket, S3Key: l.Content.S3Key, S3ObjectVersion: l.Content.S3ObjectVersion},
		})
		if err != nil {
			return "", err
		}
		return *out.LayerVersionArn, nil
	},
	delete: func(ctx context.Context, s Step, arn string, _ *lambdaLayer) error {
		out, err := call.Do[lambda.GetLayerVersionByArnOutput](ctx, s.Services, &lambda.GetLayerVersionByArnInput{Arn: &arn})
		if err != nil {
			return err
		}
		return did[lambda.DeleteLayerVersionOutput](ctx, s, &lambda.DeleteLayerVersionInput{LayerName: out.LayerArn, VersionNumber: &out.Version})
	},
	read: func(ctx context.Context, s Step, arn string, _ *lambdaLayer) (Made, error) {
		err := did[lambda.GetLayerVersionByArnOutput](ctx, s, &lambda.GetLayerVersionByArnInput{Arn: &arn})
		return Made{Attributes: map[string]any{"LayerVersionArn": arn}}, err
	},
})

// lambdaMapping has the properties of AWS::Lambda::EventSourceMapping. Its physical ID is the mapping's.
type lambdaMapping struct {
	BatchSize                      *int32
	BisectBatchOnFunctionError     *bool
	DestinationConfig              *types.DestinationConfig
	Enabled                        *bool
	EventSourceArn                 *string `cfn:"create"`
	FilterCriteria                 *types.FilterCriteria
	FunctionName                   *string `cfn:"required"`
	FunctionResponseTypes          []types.FunctionResponseType
	KmsKeyArn                      *string
	MaximumBatchingWindowInSeconds *int32
	MaximumRecordAgeInSeconds      *int32
	MaximumRetryAttempts           *int32
	ParallelizationFactor          *int32
	ScalingConfig                  *types.ScalingConfig
	StartingPosition               *string `cfn:"create"`
	Tags                           []Tag
	TumblingWindowInSeconds        *int32
}

func (m *lambdaMapping) settings() *lambda.UpdateEventSourceMappingInput {
	in := &lambda.UpdateEventSourceMappingInput{
		BatchSize: m.BatchSize, BisectBatchOnFunctionError: m.BisectBatchOnFunctionError, DestinationConfig: m.DestinationConfig,
		Enabled: aws.Bool(m.Enabled == nil || *m.Enabled), FilterCriteria: m.FilterCriteria, FunctionName: m.FunctionName,
		FunctionResponseTypes: append([]types.FunctionResponseType{}, m.FunctionResponseTypes...), KMSKeyArn: m.KmsKeyArn,
		MaximumBatchingWindowInSeconds: aws.Int32(aws.ToInt32(m.MaximumBatchingWindowInSeconds)),
		MaximumRecordAgeInSeconds:      m.MaximumRecordAgeInSeconds, MaximumRetryAttempts: m.MaximumRetryAttempts,
		ParallelizationFactor: m.ParallelizationFactor, ScalingConfig: m.ScalingConfig, TumblingWindowInSeconds: m.TumblingWindowInSeconds,
	}
	if in.ScalingConfig == nil {
		in.ScalingConfig = &types.ScalingConfig{}
	}
	if in.BatchSize == nil {
		in.BatchSize = aws.Int32(10)
	}
	return in
}

var _ = add(&kind[*lambdaMapping]{
	name:       "AWS::Lambda::EventSourceMapping",
	live:       liveLambdaMapping,
	list:       listLambdaMappings,
	identifier: []string{"Id"},
	attributes: []string{"EventSourceMappingArn", "Id"},
	find:       findLambdaMapping,
	create: func(ctx context.Context, s Step, m *lambdaMapping) (string, error) {
		c := m.settings()
		in := &lambda.CreateEventSourceMappingInput{
			EventSourceArn: m.EventSourceArn, BatchSize: c.BatchSize, BisectBatchOnFunctionError: c.BisectBatchOnFunctionError,
			DestinationConfig: c.DestinationConfig, Enabled: c.Enabled, FilterCriteria: c.FilterCriteria, FunctionName: c.FunctionName,
			FunctionResponseTypes: c.FunctionResponseTypes, KMSKeyArn: c.KMSKeyArn, MaximumBatchingWindowInSeconds: c.MaximumBatchingWindowInSeconds,
			MaximumRecordAgeInSeconds: c.MaximumRecordAgeInSeconds, MaximumRetryAttempts: c.MaximumRetryAttempts,
			ParallelizationFactor: c.ParallelizationFactor, ScalingConfig: m.ScalingConfig, TumblingWindowInSeconds: c.TumblingWindowInSeconds,
			StartingPosition: types.EventSourcePosition(aws.ToString(m.StartingPosition)), Tags: tagMap(m.Tags),
		}
		out, err := call.Do[lambda.CreateEventSourceMappingOutput](ctx, s.Services, in)
		if err != nil {
			return "", err
		}
		return *out.UUID, nil
	},
	update: func(ctx context.Context, s Step, id string, before, after *lambdaMapping) error {
		in := after.settings()
		in.UUID = &id
		if err := did[lambda.UpdateEventSourceMappingOutput](ctx, s, in); err != nil {
			return err
		}
		arn := s.Account.ARN("lambda", "event-source-mapping:"+id)
		return retag(before.Tags, after.Tags, func(gone []string) error {
			return did[lambda.UntagResourceOutput](ctx, s, &lambda.UntagResourceInput{Resource: &arn, TagKeys: gone})
		}, func() error {
			return did[lambda.TagResourceOutput](ctx, s, &lambda.TagResourceInput{Resource: &arn, Tags: tagMap(after.Tags)})
		})
	},
	delete: func(ctx context.Context, s Step, id string, _ *lambdaMapping) error {
		return did[lambda.DeleteEventSourceMappingOutput](ctx, s, &lambda.DeleteEventSourceMappingInput{UUID: &id})
	},
	read: func(ctx context.Context, s Step, id string, _ *lambdaMapping) (Made, error) {
		out, err := call.Do[lambda.GetEventSourceMappingOutput](ctx, s.Services, &lambda.GetEventSourceMappingInput{UUID: &id})
		if err != nil {
			return Made{}, err
		}
		return Made{Attributes: map[string]any{"EventSourceMappingArn": *out.EventSourceMappingArn, "Id": id}}, nil
	},
})

// findLambdaMapping finds the mapping of a queue to a function, of which there can be one.
func findLambdaMapping(ctx context.Context, s Step, m *lambdaMapping) (string, error) {
	out, err := call.Do[lambda.ListEventSourceMappingsOutput](ctx, s.Services, &lambda.ListEventSourceMappingsInput{
		FunctionName: m.FunctionName, EventSourceArn: m.EventSourceArn,
	})
	if err != nil || len(out.EventSourceMappings) == 0 {
		return "", err
	}
	return *out.EventSourceMappings[0].UUID, nil
}
