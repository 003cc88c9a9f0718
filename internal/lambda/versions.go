package lambda

import (
	"context"
	"math/rand/v2"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/pintle/pintle/internal/state"
)

// publish makes a version of the latest one, unless that hasn't changed since the last was made.
func (s *Service) publish(tx *state.Tx, f *state.Function, latest *state.FunctionVersion, description *string) types.FunctionConfiguration {
	if last := tx.FunctionVersions.Get(state.FunctionKey(f.Name, strconv.Itoa(f.Versions))); last != nil && isSame(last, latest) {
		return last.FunctionConfiguration
	}
	f.Versions++
	row := *latest
	row.Version = aws.String(strconv.Itoa(f.Versions))
	row.Order = f.Versions
	row.FunctionArn = aws.String(s.functionARN(f.Name, *row.Version))
	row.RevisionId = aws.String(state.NewUUID())
	set(&row.Description, description)
	tx.FunctionVersions.Put(&row)
	return row.FunctionConfiguration
}

// isSame reports whether the latest version is what another one was made of.
func isSame(published, latest *state.FunctionVersion) bool {
	return *published.LastModified == *latest.LastModified && *published.CodeSha256 == *latest.CodeSha256
}

// PublishVersion makes a version of the latest one.
func (s *Service) PublishVersion(ctx context.Context, in *lambda.PublishVersionInput) (*lambda.PublishVersionOutput, error) {
	if in.PublishTo != "" {
		return nil, invalid("PublishTo: Pintle publishes numbered versions alone.")
	}
	var published types.FunctionConfiguration
	_, err := s.update(ctx, in.FunctionName, func(tx *state.Tx, f *state.Function, latest *state.FunctionVersion) error {
		if err := checkRevision(in.RevisionId, latest.RevisionId); err != nil {
			return err
		}
		if in.CodeSha256 != nil && *in.CodeSha256 != "" && *in.CodeSha256 != *latest.CodeSha256 {
			return invalid("CodeSHA256 (%s) is different from current CodeSHA256 in $LATEST (%s). Please try again with the CodeSHA256 in $LATEST.",
				*in.CodeSha256, *latest.CodeSha256)
		}
		published = s.publish(tx, f, latest, in.Description)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return shown[lambda.PublishVersionOutput](published), nil
}

// ListVersionsByFunction lists the versions of a function, the latest first.
func (s *Service) ListVersionsByFunction(
	_ context.Context, in *lambda.ListVersionsByFunctionInput,
) (*lambda.ListVersionsByFunctionOutput, error) {
	name, _, err := s.target(in.FunctionName, nil)
	if err != nil {
		return nil, err
	}
	v := s.store.View()
	if _, err := s.function(v, name); err != nil {
		return nil, err
	}
	var rows []*state.FunctionVersion
	for row := range v.VersionsOf(name) {
		rows = append(rows, row)
	}
	rows, next, err := page("versions", rows, in.MaxItems, in.Marker, func(r *state.FunctionVersion) string { return strconv.Itoa(1e9 + r.Order) })
	if err != nil {
		return nil, err
	}
	out := &lambda.ListVersionsByFunctionOutput{NextMarker: next}
	for _, row := range rows {
		out.Versions = append(out.Versions, s.qualified(row, *row.Version))
	}
	return out, nil
}

// targets returns the versions that an alias stands for.
func targets(a *types.AliasConfiguration) []string {
	all := []string{*a.FunctionVersion}
	if a.RoutingConfig != nil {
		for version := range a.RoutingConfig.AdditionalVersionWeights {
			all = append(all, version)
		}
	}
	return all
}

// pick returns the version that an invocation of an alias goes to.
func pick(a *types.AliasConfiguration) string {
	if a.RoutingConfig != nil {
		x := rand.Float64()
		for version, weight := range a.RoutingConfig.AdditionalVersionWeights {
			if x -= weight; x < 0 {
				return version
			}
		}
	}
	return *a.FunctionVersion
}

func checkAlias(tx *state.Tx, s *Service, name string, a *types.AliasConfiguration) error {
	if a.RoutingConfig != nil && len(a.RoutingConfig.AdditionalVersionWeights) > 1 {
		return invalid("RoutingConfig.AdditionalVersionWeights: an alias can have one additional version.")
	}
	for _, version := range targets(a) {
		if tx.FunctionVersions.Get(state.FunctionKey(name, version)) == nil {
			return notFound("Function not found: %s", s.functionARN(name, version))
		}
	}
	if a.RoutingConfig == nil {
		return nil
	}
	for version, weight := range a.RoutingConfig.AdditionalVersionWeights {
		switch {
		case weight < 0 || weight > 1:
			return invalid("RoutingConfig.AdditionalVersionWeights: a weight is from 0 to 1, not %v.", weight)
		case version == state.Latest || *a.FunctionVersion == state.Latest:
			return invalid("$LATEST is not supported for an alias pointing to more than 1 version")
		case version == *a.FunctionVersion:
			return invalid("Invalid function version %s. Function version %s is already included in routing configuration.", version, version)
		}
	}
	return nil
}

// weighted returns a routing configuration, or nil for one without weights, which is none.
func weighted(r *types.AliasRoutingConfiguration) *types.AliasRoutingConfiguration {
	if r == nil || len(r.AdditionalVersionWeights) == 0 {
		return nil
	}
	return r
}

// CreateAlias makes a name for a version.
func (s *Service) CreateAlias(ctx context.Context, in *lambda.CreateAliasInput) (*lambda.CreateAliasOutput, error) {
	name, _, err := s.target(in.FunctionName, nil)
	if err != nil {
		return nil, err
	}
	if _, err := strconv.ParseUint(*in.Name, 10, 64); err == nil { // a version's
		return nil, invalid("1 validation error detected: Value '%s' at 'name' failed to satisfy constraint: "+
			`Member must satisfy regular expression pattern: (?!^[0-9]+$)([a-zA-Z0-9-_]+)`, *in.Name)
	}
	a := types.AliasConfiguration{
		AliasArn: aws.String(s.functionARN(name, *in.Name)), Name: in.Name, FunctionVersion: in.FunctionVersion,
		Description: aws.String(aws.ToString(in.Description)), RoutingConfig: weighted(in.RoutingConfig), RevisionId: aws.String(state.NewUUID()),
	}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		if _, err := s.function(tx.View, name); err != nil {
			return err
		}
		if tx.FunctionAliases.Get(state.FunctionKey(name, *in.Name)) != nil {
			return conflict("Alias already exists: %s", *a.AliasArn)
		}
		if err := checkAlias(tx, s, name, &a); err != nil {
			return err
		}
		tx.FunctionAliases.Put(&state.FunctionAlias{Function: name, AliasConfiguration: a})
		return nil
	})
	if err != nil {
		return nil, err
	}
	return shown[lambda.CreateAliasOutput](a), nil
}

// alias returns the alias that a call names.
func (s *Service) alias(v *state.View, given, alias *string) (*state.FunctionAlias, error) {
	name, _, err := s.target(given, nil)
	if err != nil {
		return nil, err
	}
	row := v.FunctionAliases.Get(state.FunctionKey(name, aws.ToString(alias)))
	if row == nil {
		return nil, notFound("Cannot find alias arn: %s", s.functionARN(name, aws.ToString(alias)))
	}
	return row, nil
}

// GetAlias returns an alias.
func (s *Service) GetAlias(_ context.Context, in *lambda.GetAliasInput) (*lambda.GetAliasOutput, error) {
	a, err := s.alias(s.store.View(), in.FunctionName, in.Name)
	if err != nil {
		return nil, err
	}
	return shown[lambda.GetAliasOutput](a.AliasConfiguration), nil
}

// UpdateAlias changes an alias.
func (s *Service) UpdateAlias(ctx context.Context, in *lambda.UpdateAliasInput) (*lambda.UpdateAliasOutput, error) {
	var a state.FunctionAlias
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.alias(tx.View, in.FunctionName, in.Name)
		if err != nil {
			return err
		}
		if err := checkRevision(in.RevisionId, old.RevisionId); err != nil {
			return err
		}
		a = *old
		set(&a.Description, in.Description)
		set(&a.FunctionVersion, in.FunctionVersion)
		if in.RoutingConfig != nil {
			a.RoutingConfig = weighted(in.RoutingConfig)
		}
		a.RevisionId = aws.String(state.NewUUID())
		if err := checkAlias(tx, s, a.Function, &a.AliasConfiguration); err != nil {
			return err
		}
		tx.FunctionAliases.Put(&a)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return shown[lambda.UpdateAliasOutput](a.AliasConfiguration), nil
}

// DeleteAlias deletes an alias. That there's none is success, as on AWS.
func (s *Service) DeleteAlias(ctx context.Context, in *lambda.DeleteAliasInput) (*lambda.DeleteAliasOutput, error) {
	name, _, err := s.target(in.FunctionName, nil)
	if err != nil {
		return nil, err
	}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		if key := state.FunctionKey(name, *in.Name); tx.FunctionAliases.Get(key) != nil {
			tx.FunctionAliases.Delete(key)
		}
		return nil
	})
	return &lambda.DeleteAliasOutput{}, err
}

// ListAliases lists the aliases of a function, or of one of its versions.
func (s *Service) ListAliases(_ context.Context, in *lambda.ListAliasesInput) (*lambda.ListAliasesOutput, error) {
	name, _, err := s.target(in.FunctionName, nil)
	if err != nil {
		return nil, err
	}
	v := s.store.View()
	if _, err := s.function(v, name); err != nil {
		return nil, err
	}
	var rows []types.AliasConfiguration
	for a := range v.AliasesOf(name) {
		if in.FunctionVersion == nil || *in.FunctionVersion == *a.FunctionVersion {
			rows = append(rows, a.AliasConfiguration)
		}
	}
	rows, next, err := page("aliases", rows, in.MaxItems, in.Marker, func(a types.AliasConfiguration) string { return *a.Name })
	if err != nil {
		return nil, err
	}
	return &lambda.ListAliasesOutput{Aliases: rows, NextMarker: next}, nil
}
