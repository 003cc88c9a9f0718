package resources

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/wire/call"
)

// functionOf returns the name in a function's ARN, with the qualifier that it may have.
func functionOf(arn string) string {
	_, name, _ := strings.Cut(arn, ":function:")
	return name
}

// asFunction returns the function of an ARN in the form in which it was given.
func asFunction(given *string, arn string) *string {
	name := functionOf(arn)
	return asGiven(given, name, arn, "function:"+name, strings.Join(strings.Split(arn, ":")[4:], ":"))
}

// unqualified returns a function's ARN without its qualifier.
func unqualified(arn string) string {
	if parts := strings.Split(arn, ":"); len(parts) > 7 {
		return strings.Join(parts[:7], ":")
	}
	return arn
}

func liveLambdaTags(ctx context.Context, s Step, arn *string) ([]Tag, error) {
	out, err := call.Do[lambda.ListTagsOutput](ctx, s.Services, &lambda.ListTagsInput{Resource: arn})
	if err != nil {
		return nil, err
	}
	return ownTagMap(out.Tags), nil
}

func liveLambdaFunction(ctx context.Context, s Step, name string, _ *lambdaFunction) (*lambdaFunction, error) {
	out, err := call.Do[lambda.GetFunctionOutput](ctx, s.Services, &lambda.GetFunctionInput{FunctionName: &name})
	if err != nil {
		return nil, err
	}
	is := out.Configuration
	live := &lambdaFunction{
		FunctionName:     is.FunctionName,
		PackageType:      some(string(is.PackageType)),
		Architectures:    is.Architectures,
		DeadLetterConfig: is.DeadLetterConfig,
		Description:      is.Description,
		EphemeralStorage: is.EphemeralStorage,
		Handler:          is.Handler,
		LoggingConfig:    is.LoggingConfig,
		MemorySize:       is.MemorySize,
		Role:             is.Role,
		Runtime:          some(string(is.Runtime)),
		Tags:             ownTagMap(out.Tags),
		Timeout:          is.Timeout,
	}
	if is.Environment != nil {
		live.Environment = &types.Environment{Variables: is.Environment.Variables}
	}
	if is.ImageConfigResponse != nil {
		live.ImageConfig = is.ImageConfigResponse.ImageConfig
	}
	for _, layer := range is.Layers {
		live.Layers = append(live.Layers, *layer.Arn)
	}
	if is.TracingConfig != nil {
		live.TracingConfig = &types.TracingConfig{Mode: is.TracingConfig.Mode}
	}
	if out.Concurrency != nil {
		live.ReservedConcurrentExecutions = out.Concurrency.ReservedConcurrentExecutions
	}
	return live, nil
}

func listLambdaFunctions(ctx context.Context, s Step, _ *lambdaFunction) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		out, err := call.Do[lambda.ListFunctionsOutput](ctx, s.Services, &lambda.ListFunctionsInput{Marker: token})
		if err != nil {
			return nil, nil, err
		}
		for i := range out.Functions {
			ids = append(ids, *out.Functions[i].FunctionName)
		}
		return ids, out.NextMarker, nil
	})
}

// listedOf refuses to list what belongs to a function without knowing which.
func listedOf(kind string, function *string) error {
	if function != nil {
		return nil
	}
	return template.Errorf("Missing or invalid ResourceModel property in %s list handler request input. Required property: [FunctionName]", kind)
}

// lambdaStatement is a statement of a function's policy.
type lambdaStatement struct {
	Sid, Action, Resource string
	Principal             any // "*", or what it is by its kind
	Condition             map[string]map[string]string
}

// lambdaStatements returns the statements of the policy of a function, or of what its qualifier stands for.
func lambdaStatements(ctx context.Context, s Step, function *string) ([]lambdaStatement, error) {
	out, err := call.Do[lambda.GetPolicyOutput](ctx, s.Services, &lambda.GetPolicyInput{FunctionName: function})
	if err != nil {
		return nil, err
	}
	var policy struct{ Statement []lambdaStatement }
	err = json.Unmarshal([]byte(*out.Policy), &policy)
	return policy.Statement, err
}

// principal returns whom the statement lets in the form in which it was given: of an account it's written as its root user.
func (p *lambdaStatement) principal(given *string) *string {
	who, _ := p.Principal.(string)
	if kinds, is := p.Principal.(map[string]any); is {
		for _, one := range kinds {
			who, _ = one.(string)
		}
	}
	forms := []string{who}
	if account, isRoot := strings.CutSuffix(who, ":root"); isRoot {
		forms = []string{account[strings.LastIndexByte(account, ':')+1:], who}
	}
	return asGiven(given, forms...)
}

// condition returns the value of a condition's key, whatever its operator.
func (p *lambdaStatement) condition(key string) *string {
	for _, keys := range p.Condition {
		if value, there := keys[key]; there {
			return &value
		}
	}
	return nil
}

func liveLambdaPermission(ctx context.Context, s Step, id string, asked *lambdaPermission) (*lambdaPermission, error) {
	all, err := lambdaStatements(ctx, s, asked.FunctionName)
	if err != nil {
		return nil, err
	}
	at := slices.IndexFunc(all, func(p lambdaStatement) bool { return p.Sid == id })
	if at < 0 {
		return nil, errMissing
	}
	p := &all[at]
	return &lambdaPermission{
		Action:           &p.Action,
		EventSourceToken: p.condition("lambda:EventSourceToken"),
		FunctionName:     asFunction(asked.FunctionName, p.Resource),
		Principal:        p.principal(asked.Principal),
		PrincipalOrgID:   p.condition("aws:PrincipalOrgID"),
		SourceAccount:    p.condition("AWS:SourceAccount"),
		SourceArn:        p.condition("AWS:SourceArn"),
	}, nil
}

func liveLambdaVersion(ctx context.Context, s Step, arn string, asked *lambdaVersion) (*lambdaVersion, error) {
	out, err := call.Do[lambda.GetFunctionConfigurationOutput](ctx, s.Services, &lambda.GetFunctionConfigurationInput{FunctionName: &arn})
	if err != nil {
		return nil, err
	}
	return &lambdaVersion{
		CodeSha256:   out.CodeSha256,
		Description:  out.Description,
		FunctionName: asFunction(asked.FunctionName, unqualified(arn)),
	}, nil
}

func listLambdaVersions(ctx context.Context, s Step, asked *lambdaVersion) ([]string, error) {
	if err := listedOf("AWS::Lambda::Version", asked.FunctionName); err != nil {
		return nil, err
	}
	return pages(func(token *string) (ids []string, next *string, err error) {
		in := &lambda.ListVersionsByFunctionInput{FunctionName: asked.FunctionName, Marker: token}
		out, err := call.Do[lambda.ListVersionsByFunctionOutput](ctx, s.Services, in)
		if err != nil {
			return nil, nil, err
		}
		for i := range out.Versions {
			if v := &out.Versions[i]; *v.Version != "$LATEST" {
				ids = append(ids, *v.FunctionArn)
			}
		}
		return ids, out.NextMarker, nil
	})
}

// getLambdaAlias returns the alias that an ARN names.
func getLambdaAlias(ctx context.Context, s Step, arn string) (*lambda.GetAliasOutput, error) {
	return call.Do[lambda.GetAliasOutput](ctx, s.Services, &lambda.GetAliasInput{
		FunctionName: aws.String(unqualified(arn)), Name: aws.String(arn[strings.LastIndexByte(arn, ':')+1:]),
	})
}

func liveLambdaAlias(ctx context.Context, s Step, arn string, asked *lambdaAlias) (*lambdaAlias, error) {
	out, err := getLambdaAlias(ctx, s, arn)
	if err != nil {
		return nil, err
	}
	live := &lambdaAlias{
		Description:     out.Description,
		FunctionName:    asFunction(asked.FunctionName, unqualified(arn)),
		FunctionVersion: out.FunctionVersion,
		Name:            out.Name,
	}
	if out.RoutingConfig == nil {
		return live, nil
	}
	for _, version := range slices.Sorted(maps.Keys(out.RoutingConfig.AdditionalVersionWeights)) {
		if live.RoutingConfig == nil {
			live.RoutingConfig = &lambdaRouting{}
		}
		w := lambdaWeight{version, out.RoutingConfig.AdditionalVersionWeights[version]}
		live.RoutingConfig.AdditionalVersionWeights = append(live.RoutingConfig.AdditionalVersionWeights, w)
	}
	return live, nil
}

func listLambdaAliases(ctx context.Context, s Step, asked *lambdaAlias) ([]string, error) {
	if err := listedOf("AWS::Lambda::Alias", asked.FunctionName); err != nil {
		return nil, err
	}
	return pages(func(token *string) (ids []string, next *string, err error) {
		in := &lambda.ListAliasesInput{FunctionName: asked.FunctionName, Marker: token}
		out, err := call.Do[lambda.ListAliasesOutput](ctx, s.Services, in)
		if err != nil {
			return nil, nil, err
		}
		for _, a := range out.Aliases {
			ids = append(ids, *a.AliasArn)
		}
		return ids, out.NextMarker, nil
	})
}

func liveLambdaInvokeConfig(ctx context.Context, s Step, _ string, asked *lambdaInvokeConfig) (*lambdaInvokeConfig, error) {
	in := &lambda.GetFunctionEventInvokeConfigInput{FunctionName: asked.FunctionName, Qualifier: asked.Qualifier}
	out, err := call.Do[lambda.GetFunctionEventInvokeConfigOutput](ctx, s.Services, in)
	if err != nil {
		return nil, err
	}
	return &lambdaInvokeConfig{
		DestinationConfig:        out.DestinationConfig,
		FunctionName:             asked.FunctionName,
		MaximumEventAgeInSeconds: out.MaximumEventAgeInSeconds,
		MaximumRetryAttempts:     out.MaximumRetryAttempts,
		Qualifier:                asked.Qualifier,
	}, nil
}

func liveLambdaLayer(ctx context.Context, s Step, arn string, _ *lambdaLayer) (*lambdaLayer, error) {
	out, err := call.Do[lambda.GetLayerVersionByArnOutput](ctx, s.Services, &lambda.GetLayerVersionByArnInput{Arn: &arn})
	if err != nil {
		return nil, err
	}
	return &lambdaLayer{
		CompatibleArchitectures: out.CompatibleArchitectures,
		CompatibleRuntimes:      out.CompatibleRuntimes,
		Description:             out.Description,
		LayerName:               aws.String((*out.LayerArn)[strings.LastIndexByte(*out.LayerArn, ':')+1:]),
		LicenseInfo:             out.LicenseInfo,
	}, nil
}

func liveLambdaMapping(ctx context.Context, s Step, id string, asked *lambdaMapping) (*lambdaMapping, error) {
	out, err := call.Do[lambda.GetEventSourceMappingOutput](ctx, s.Services, &lambda.GetEventSourceMappingInput{UUID: &id})
	if err != nil {
		return nil, err
	}
	live := &lambdaMapping{
		BatchSize:                      out.BatchSize,
		Enabled:                        aws.Bool(strings.HasPrefix(*out.State, "Enabl")),
		EventSourceArn:                 out.EventSourceArn,
		FunctionName:                   asFunction(asked.FunctionName, *out.FunctionArn),
		FunctionResponseTypes:          out.FunctionResponseTypes,
		MaximumBatchingWindowInSeconds: out.MaximumBatchingWindowInSeconds,
		ScalingConfig:                  out.ScalingConfig,
	}
	live.Tags, err = liveLambdaTags(ctx, s, out.EventSourceMappingArn)
	return live, err
}

func listLambdaMappings(ctx context.Context, s Step, asked *lambdaMapping) ([]string, error) {
	return pages(func(token *string) (ids []string, next *string, err error) {
		in := &lambda.ListEventSourceMappingsInput{FunctionName: asked.FunctionName, EventSourceArn: asked.EventSourceArn, Marker: token}
		out, err := call.Do[lambda.ListEventSourceMappingsOutput](ctx, s.Services, in)
		if err != nil {
			return nil, nil, err
		}
		for i := range out.EventSourceMappings {
			ids = append(ids, *out.EventSourceMappings[i].UUID)
		}
		return ids, out.NextMarker, nil
	})
}
