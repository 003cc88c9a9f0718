package lambda

import (
	"context"
	"regexp"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/lambda/environments"
	"github.com/pintle/pintle/internal/state"
)

// CreateFunction makes a function, which is active at once.
func (s *Service) CreateFunction(ctx context.Context, in *lambda.CreateFunctionInput) (*lambda.CreateFunctionOutput, error) {
	name, qualifier, err := s.target(in.FunctionName, nil)
	if err != nil {
		return nil, err
	}
	if err := checkCreation(in, name, qualifier); err != nil {
		return nil, err
	}
	row := s.newVersion(name, in)
	if in.Code == nil {
		return nil, invalid("Please provide a source for function code.")
	}
	if err := s.apply(s.store.View(), asked(in), row.FunctionVersion); err != nil { // before its code is kept
		return nil, err
	}
	c := in.Code
	got, err := s.bring(ctx, code{c.ZipFile, c.S3Bucket, c.S3Key, c.S3ObjectVersion, c.ImageUri}, row.PackageType)
	if err != nil {
		return nil, err
	}
	defer s.letGo(got)
	row.take(got)
	var made types.FunctionConfiguration
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		if tx.Functions.Get(name) != nil {
			return conflict("Function already exist: %s", name)
		}
		f := &state.Function{Name: name, Tags: in.Tags}
		if err := s.apply(tx.View, asked(in), row.FunctionVersion); err != nil {
			return err
		}
		tx.FunctionVersions.Put(row.FunctionVersion)
		made = row.FunctionConfiguration
		if in.Publish {
			made = s.publish(tx, f, row.FunctionVersion, nil)
		}
		tx.Functions.Put(f)
		return s.checkStored(tx)
	})
	if err != nil {
		return nil, err
	}
	return shown[lambda.CreateFunctionOutput](made), nil
}

var functionName = regexp.MustCompile(`^[a-zA-Z0-9-_]{1,64}$`)

// checkCreation refuses what only CreateFunction is asked for.
func checkCreation(in *lambda.CreateFunctionInput, name, qualifier string) error {
	switch {
	case qualifier != "":
		return invalid("FunctionName: a function is created without a qualifier.")
	case in.CodeSigningConfigArn != nil:
		return invalid("CodeSigningConfigArn: Pintle has no code signing.")
	case in.TenancyConfig != nil:
		return invalid("TenancyConfig: Pintle has no tenants.")
	case in.PublishTo != "":
		return invalid("PublishTo: Pintle publishes numbered versions alone.")
	case in.Code != nil && aws.ToString(in.Code.SourceKMSKeyArn) != "":
		return invalid("Code.SourceKMSKeyArn: Pintle has no KMS.")
	case in.Code != nil && in.Code.S3ObjectStorageMode != "":
		return invalid("Code.S3ObjectStorageMode: Pintle copies code out of its bucket.")
	case !functionName.MatchString(name):
		return invalid("FunctionName: a name has 1 to 64 letters, digits, hyphens and underscores.")
	}
	return checkTags(in.Tags)
}

func checkTags(tags map[string]string) error {
	if fault := account.CheckTags(account.TagMap(tags), account.MaxTags); fault != nil {
		return invalid("Tags: the tag %q is not valid, or there are more than %d.", fault.Key, account.MaxTags)
	}
	return checkOwnTags(tags)
}

// asked returns the part of CreateFunction that UpdateFunctionConfiguration has, too.
func asked(in *lambda.CreateFunctionInput) *configuration {
	return &configuration{UpdateFunctionConfigurationInput: lambda.UpdateFunctionConfigurationInput{
		CapacityProviderConfig: in.CapacityProviderConfig, DeadLetterConfig: in.DeadLetterConfig, Description: in.Description,
		DurableConfig: in.DurableConfig, Environment: in.Environment, EphemeralStorage: in.EphemeralStorage,
		FileSystemConfigs: in.FileSystemConfigs, Handler: in.Handler, ImageConfig: in.ImageConfig, KMSKeyArn: in.KMSKeyArn,
		Layers: in.Layers, LoggingConfig: in.LoggingConfig, MemorySize: in.MemorySize, Role: in.Role, Runtime: in.Runtime,
		SnapStart: in.SnapStart, Timeout: in.Timeout, TracingConfig: in.TracingConfig, VpcConfig: in.VpcConfig,
	}}
}

// edited is a version that a call changes.
type edited struct{ *state.FunctionVersion }

// take gives a version its code.
func (e edited) take(c found) {
	layers, unzipped := e.Code.Layers, e.Code.LayersUnzipped
	e.Code = c.FunctionCode
	e.Code.Layers, e.Code.LayersUnzipped = layers, unzipped
	e.CodeSize = c.Size
	e.CodeSha256 = &c.Sum
}

// newVersion returns the first version of a function, with the defaults.
func (s *Service) newVersion(name string, in *lambda.CreateFunctionInput) edited {
	kind := in.PackageType
	if kind == "" {
		kind = types.PackageTypeZip
	}
	machines := in.Architectures
	if len(machines) == 0 {
		machines = []types.Architecture{types.ArchitectureX8664}
	}
	return edited{&state.FunctionVersion{FunctionConfiguration: types.FunctionConfiguration{
		Architectures:    machines,
		Description:      aws.String(""),
		EphemeralStorage: &types.EphemeralStorage{Size: aws.Int32(defaultStorage)},
		FunctionArn:      aws.String(s.functionARN(name, "")),
		FunctionName:     &name,
		LastModified:     s.lastModified(),
		LastUpdateStatus: types.LastUpdateStatusSuccessful,
		LoggingConfig:    &types.LoggingConfig{LogFormat: types.LogFormatText, LogGroup: aws.String("/aws/lambda/" + name)},
		MemorySize:       aws.Int32(defaultMemory),
		PackageType:      kind,
		RevisionId:       aws.String(state.NewUUID()),
		SnapStart:        &types.SnapStartResponse{ApplyOn: types.SnapStartApplyOnNone, OptimizationStatus: types.SnapStartOptimizationStatusOff},
		State:            types.StateActive,
		Timeout:          aws.Int32(defaultTimeout),
		TracingConfig:    &types.TracingConfigResponse{Mode: types.TracingModePassThrough},
		Version:          aws.String(state.Latest),
	}}}
}

// GetFunction returns a version of a function, and what belongs to the function.
func (s *Service) GetFunction(ctx context.Context, in *lambda.GetFunctionInput) (*lambda.GetFunctionOutput, error) {
	v, row, qualifier, err := s.read1(in.FunctionName, in.Qualifier)
	if err != nil {
		return nil, err
	}
	f := v.Functions.Get(*row.FunctionName)
	c := s.qualified(row, qualifier)
	out := &lambda.GetFunctionOutput{Configuration: &c, Tags: f.Tags, Code: &types.FunctionCodeLocation{RepositoryType: aws.String("S3")}}
	if row.Code.SHA256 != "" {
		out.Code.Location = s.location(ctx, row.Code.SHA256)
	}
	if row.Code.Image != "" {
		out.Code = &types.FunctionCodeLocation{
			RepositoryType: aws.String("ECR"), ImageUri: &row.Code.Image, ResolvedImageUri: aws.String(row.Code.ImageToRun()),
		}
	}
	if f.Concurrency != nil {
		out.Concurrency = &types.Concurrency{ReservedConcurrentExecutions: f.Concurrency}
	}
	return out, nil
}

// read1 returns the version that a call names, the view that it's of, and the qualifier.
func (s *Service) read1(given, qualifier *string) (*state.View, *state.FunctionVersion, string, error) {
	name, suffix, err := s.target(given, qualifier)
	if err != nil {
		return nil, nil, "", err
	}
	v := s.store.View()
	row, err := s.version(v, name, suffix)
	return v, row, suffix, err
}

// qualified returns a configuration with the ARN by which it was asked for.
func (s *Service) qualified(row *state.FunctionVersion, qualifier string) types.FunctionConfiguration {
	c := row.FunctionConfiguration
	if qualifier != "" {
		c.FunctionArn = aws.String(s.functionARN(*c.FunctionName, qualifier))
	}
	return c
}

// GetFunctionConfiguration returns a version's configuration.
func (s *Service) GetFunctionConfiguration(
	_ context.Context, in *lambda.GetFunctionConfigurationInput,
) (*lambda.GetFunctionConfigurationOutput, error) {
	_, row, qualifier, err := s.read1(in.FunctionName, in.Qualifier)
	if err != nil {
		return nil, err
	}
	return shown[lambda.GetFunctionConfigurationOutput](s.qualified(row, qualifier)), nil
}

// UpdateFunctionCode replaces the latest version's code.
func (s *Service) UpdateFunctionCode(ctx context.Context, in *lambda.UpdateFunctionCodeInput) (*lambda.UpdateFunctionCodeOutput, error) {
	_, old, _, err := s.read1(in.FunctionName, nil)
	if err != nil {
		return nil, err
	}
	switch {
	case in.PublishTo != "":
		return nil, invalid("PublishTo: Pintle publishes numbered versions alone.")
	case aws.ToString(in.SourceKMSKeyArn) != "":
		return nil, invalid("SourceKMSKeyArn: Pintle has no KMS.")
	case in.S3ObjectStorageMode != "":
		return nil, invalid("S3ObjectStorageMode: Pintle copies code out of its bucket.")
	}
	got, err := s.bring(ctx, code{in.ZipFile, in.S3Bucket, in.S3Key, in.S3ObjectVersion, in.ImageUri}, old.PackageType)
	if err != nil {
		return nil, err
	}
	defer s.letGo(got)
	if in.DryRun {
		row := edited{new(*old)}
		row.take(got)
		if err := checkTogether(row.FunctionVersion); err != nil {
			return nil, err
		}
		return shown[lambda.UpdateFunctionCodeOutput](row.FunctionConfiguration), checkRevision(in.RevisionId, old.RevisionId)
	}
	var published *types.FunctionConfiguration
	c, err := s.update(ctx, in.FunctionName, func(tx *state.Tx, f *state.Function, latest *state.FunctionVersion) error {
		if err := checkRevision(in.RevisionId, latest.RevisionId); err != nil {
			return err
		}
		edited{latest}.take(got)
		if err := checkTogether(latest); err != nil {
			return err
		}
		if len(in.Architectures) > 0 {
			latest.Architectures = in.Architectures
		}
		s.touch(latest)
		if in.Publish {
			published = new(s.publish(tx, f, latest, nil))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if published != nil {
		c = *published
	}
	return shown[lambda.UpdateFunctionCodeOutput](c), nil
}

// touch notes that a version has changed.
func (s *Service) touch(v *state.FunctionVersion) {
	v.RevisionId = aws.String(state.NewUUID())
	v.LastModified = s.lastModified()
}

// UpdateFunctionConfiguration changes the latest version's configuration.
func (s *Service) UpdateFunctionConfiguration(
	ctx context.Context, in *lambda.UpdateFunctionConfigurationInput,
) (*lambda.UpdateFunctionConfigurationOutput, error) {
	c, err := s.update(ctx, in.FunctionName, func(tx *state.Tx, _ *state.Function, latest *state.FunctionVersion) error {
		if err := checkRevision(in.RevisionId, latest.RevisionId); err != nil {
			return err
		}
		s.touch(latest)
		return s.apply(tx.View, &configuration{UpdateFunctionConfigurationInput: *in}, latest)
	})
	if err != nil {
		return nil, err
	}
	return shown[lambda.UpdateFunctionConfigurationOutput](c), nil
}

// DeleteFunction deletes a function, or one of its published versions.
func (s *Service) DeleteFunction(ctx context.Context, in *lambda.DeleteFunctionInput) (*lambda.DeleteFunctionOutput, error) {
	name, qualifier, err := s.target(in.FunctionName, in.Qualifier)
	if err != nil {
		return nil, err
	}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		if _, err := s.function(tx.View, name); err != nil {
			return err
		}
		if qualifier == "" {
			for v := range tx.VersionsOf(name) {
				environments.Deregister(tx, v, s.second())
			}
			tx.DeleteFunction(name)
			return nil
		}
		return s.deleteVersion(tx, name, qualifier)
	})
	if err != nil {
		return nil, err
	}
	return &lambda.DeleteFunctionOutput{StatusCode: 204}, nil
}

func (s *Service) deleteVersion(tx *state.Tx, name, version string) error {
	key := state.FunctionKey(name, version)
	switch {
	case version == state.Latest:
		return invalid("$LATEST version cannot be deleted without deleting the function.")
	case tx.FunctionVersions.Get(key) == nil:
		return notFound("Function not found: %s", s.functionARN(name, version))
	}
	for a := range tx.AliasesOf(name) {
		if slices.Contains(targets(&a.AliasConfiguration), version) {
			return conflict("Version cannot be deleted because it is referenced by alias %s.", *a.Name)
		}
	}
	environments.Deregister(tx, tx.FunctionVersions.Get(key), s.second())
	tx.FunctionVersions.Delete(key)
	return nil
}

// ListFunctions lists functions by their latest versions, or all versions.
func (s *Service) ListFunctions(_ context.Context, in *lambda.ListFunctionsInput) (*lambda.ListFunctionsOutput, error) {
	if in.MasterRegion != nil && *in.MasterRegion != "ALL" && *in.MasterRegion != s.opts.Region {
		return nil, invalid("MasterRegion: Pintle has no Lambda@Edge.")
	}
	var rows []types.FunctionConfiguration
	for row := range s.store.View().FunctionVersions.All() {
		if *row.Version == state.Latest || in.FunctionVersion == types.FunctionVersionAll {
			c := row.FunctionConfiguration
			if in.FunctionVersion == types.FunctionVersionAll {
				c.FunctionArn = aws.String(s.functionARN(*c.FunctionName, *c.Version))
			}
			rows = append(rows, c)
		}
	}
	rows, next, err := page("functions", rows, in.MaxItems, in.Marker, func(c types.FunctionConfiguration) string {
		return state.FunctionKey(*c.FunctionName, *c.Version)
	})
	if err != nil {
		return nil, err
	}
	return &lambda.ListFunctionsOutput{Functions: rows, NextMarker: next}, nil
}

// GetAccountSettings tells the limits, and what is used of them.
func (s *Service) GetAccountSettings(
	context.Context, *lambda.GetAccountSettingsInput,
) (*lambda.GetAccountSettingsOutput, error) {
	v := s.store.View()
	unreserved := int32(MaxConcurrency)
	for f := range v.Functions.All() {
		unreserved -= aws.ToInt32(f.Concurrency)
	}
	return &lambda.GetAccountSettingsOutput{
		AccountLimit: &types.AccountLimit{
			CodeSizeUnzipped: maxUnzipped, CodeSizeZipped: maxZipped, ConcurrentExecutions: MaxConcurrency,
			TotalCodeSize: s.opts.Storage, UnreservedConcurrentExecutions: &unreserved,
		},
		AccountUsage: &types.AccountUsage{FunctionCount: int64(v.Functions.Len()), TotalCodeSize: stored(v)},
	}, nil
}
