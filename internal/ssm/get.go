package ssm

import (
	"context"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// GetParameter returns a version of a parameter.
func (s *Service) GetParameter(ctx context.Context, in *ssm.GetParameterInput) (*ssm.GetParameterOutput, error) {
	if name := s.refer(*in.Name).names[0]; !strings.HasPrefix(name, "arn:") && !nameOfParameter.MatchString(name) {
		return nil, malformedName()
	}
	p, err := s.get(ctx, s.store.View(), *in.Name, aws.ToBool(in.WithDecryption))
	if err != nil {
		return nil, err
	}
	return &ssm.GetParameterOutput{Parameter: p}, nil
}

// GetParameters returns versions of parameters, and the names of those that there are not.
func (s *Service) GetParameters(ctx context.Context, in *ssm.GetParametersInput) (*ssm.GetParametersOutput, error) {
	out := &ssm.GetParametersOutput{Parameters: []types.Parameter{}, InvalidParameters: []string{}}
	v := s.store.View()
	for i, name := range in.Names {
		if slices.Contains(in.Names[:i], name) {
			return nil, invalid("Duplicate parameters names: %s.", name)
		}
		p, err := s.get(ctx, v, name, aws.ToBool(in.WithDecryption))
		if isMissing(err) {
			out.InvalidParameters = append(out.InvalidParameters, name)
			continue
		}
		if err != nil {
			return nil, err
		}
		out.Parameters = append(out.Parameters, *p)
	}
	return out, nil
}

func isMissing(err error) bool {
	switch err.(type) {
	case *types.ParameterNotFound, *types.ParameterVersionNotFound:
		return true
	}
	return false
}

func (s *Service) get(ctx context.Context, v *state.View, name string, decrypt bool) (*types.Parameter, error) {
	ref := s.refer(name)
	if strings.HasPrefix(ref.names[0], secretPrefix) && s.opts.Secrets != nil {
		return s.secret(ctx, ref, decrypt)
	}
	if slices.ContainsFunc(ref.names, isPublic) {
		return s.public(ctx, ref)
	}
	row, err := s.find(v, ref)
	if err != nil {
		return nil, err
	}
	p, err := s.show(row, decrypt)
	if err != nil {
		return nil, err
	}
	p.Selector = optional(ref.given)
	if len(ref.names) == 1 {
		p.Name = &ref.names[0] // with or without its slash, as it was asked for
	}
	return p, nil
}

// show returns a version as the API shows it. Without decrypt, the value of a SecureString is what is kept of it.
func (s *Service) show(row *state.ParameterVersion, decrypt bool) (*types.Parameter, error) {
	value, err := s.value(row, decrypt)
	if err != nil {
		return nil, err
	}
	return &types.Parameter{
		ARN:              new(s.arn(row.Name)),
		DataType:         &row.DataType,
		LastModifiedDate: &row.LastModified,
		Name:             &row.Name,
		Type:             row.Type,
		Value:            &value,
		Version:          row.Version,
	}, nil
}

func (s *Service) value(row *state.ParameterVersion, decrypt bool) (string, error) {
	if row.Type != types.ParameterTypeSecureString {
		return row.Value, nil
	}
	if !decrypt {
		return base64.StdEncoding.EncodeToString(row.Encrypted), nil
	}
	value, err := s.opts.Vault.Decrypt(row.Encrypted, purpose(row))
	if err != nil {
		return "", &types.InvalidKeyId{Message: account.Message("Parameter %s can't be decrypted: %v.", row.Name, err)}
	}
	return value, nil
}

// maxByPath is the most parameters that GetParametersByPath returns at once, and the default.
const maxByPath = 10

// GetParametersByPath returns the parameters under a path: those right below it or, if it's recursive, all.
func (s *Service) GetParametersByPath(
	ctx context.Context, in *ssm.GetParametersByPathInput,
) (*ssm.GetParametersByPathOutput, error) {
	if !strings.HasPrefix(*in.Path, "/") {
		return nil, invalid("The parameter doesn't meet the parameter name requirements. The parameter name must begin with a forward " +
			"slash \"/\". It can't be prefixed with \"aws\" or \"ssm\" (case-insensitive).")
	}
	path := strings.TrimSuffix(*in.Path, "/") + "/"
	match, err := filters(in.ParameterFilters, byPathFields)
	if err != nil {
		return nil, err
	}
	if isPublic(path) {
		return s.publicByPath(ctx, path, in)
	}
	v := s.store.View()
	labels := labelsOf(in.ParameterFilters)
	page, next, err := s.page(listing("GetParametersByPath", maxByPath, maxByPath), in.MaxResults, in.NextToken, v, prefixOf(path),
		func(p *state.Parameter, _ *state.ParameterVersion) bool {
			row := chosen(v, p, labels)
			return (aws.ToBool(in.Recursive) || isRightBelow(p.Name, path)) && row != nil && match(p, row)
		})
	if err != nil {
		return nil, err
	}
	out := &ssm.GetParametersByPathOutput{Parameters: []types.Parameter{}, NextToken: next}
	for _, p := range page {
		shown, err := s.show(chosen(v, p, labels), aws.ToBool(in.WithDecryption))
		if err != nil {
			return nil, err
		}
		out.Parameters = append(out.Parameters, *shown)
	}
	return out, nil
}

// labelsOf returns the labels that filters name.
func labelsOf(filters []types.ParameterStringFilter) []string {
	for _, f := range filters {
		if aws.ToString(f.Key) == "Label" {
			return f.Values
		}
	}
	return nil
}

// chosen returns the version of a parameter that has one of the labels, or nil if none has; without labels it's the latest.
func chosen(v *state.View, p *state.Parameter, labels []string) *state.ParameterVersion {
	if labels == nil {
		return latest(v, p)
	}
	for _, label := range labels {
		if row := labelled(v, p.Name, label); row != nil {
			return row
		}
	}
	return nil
}

// prefixOf returns how the names below a path begin.
func prefixOf(path string) string {
	if path == "/" {
		return ""
	}
	return path
}

// isBelow reports whether a name is below a path, which ends with a slash. Names without a slash are right below the root.
func isBelow(name, path string) bool { return path == "/" || strings.HasPrefix(name, path) }

// isRightBelow reports whether a name is on the level below a path, which ends with a slash.
func isRightBelow(name, path string) bool {
	rest := strings.TrimPrefix(strings.TrimPrefix(name, path), "/")
	return isBelow(name, path) && !strings.Contains(rest, "/")
}

// latest returns a parameter's latest version.
func latest(v *state.View, p *state.Parameter) *state.ParameterVersion {
	return v.ParameterVersions.Get(state.ParameterVersionKey(p.Name, p.Version))
}

// maxPage is the most results of the other lists, and the default.
const maxPage = 50

// GetParameterHistory returns all versions of a parameter, from old to new.
func (s *Service) GetParameterHistory(
	_ context.Context, in *ssm.GetParameterHistoryInput,
) (*ssm.GetParameterHistoryOutput, error) {
	v := s.store.View()
	p := s.parameter(v, s.refer(*in.Name))
	if p == nil {
		return nil, notFound(*in.Name)
	}
	versions := slices.Collect(v.ParameterVersionsAfter(p.Name, 0))
	list := listing("GetParameterHistory "+p.Name, maxPage, maxPage)
	page, next, err := account.Sorted(list, versions, in.MaxResults, in.NextToken, (*state.ParameterVersion).Key)
	if err != nil {
		return nil, err
	}
	out := &ssm.GetParameterHistoryOutput{Parameters: []types.ParameterHistory{}, NextToken: next}
	for _, row := range page {
		value, err := s.value(row, aws.ToBool(in.WithDecryption))
		if err != nil {
			return nil, err
		}
		out.Parameters = append(out.Parameters, types.ParameterHistory{
			AllowedPattern:   optional(row.AllowedPattern),
			DataType:         &row.DataType,
			Description:      optional(row.Description),
			KeyId:            optional(row.KeyID),
			Labels:           append([]string{}, row.Labels...),
			LastModifiedDate: &row.LastModified,
			LastModifiedUser: &row.LastModifiedUser,
			Name:             &row.Name,
			Policies:         append([]types.ParameterInlinePolicy{}, row.Policies...),
			Tier:             row.Tier,
			Type:             row.Type,
			Value:            &value,
			Version:          row.Version,
		})
	}
	return out, nil
}

// optional returns nil for an empty text.
func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// DeleteParameter deletes a parameter with all of its versions.
func (s *Service) DeleteParameter(ctx context.Context, in *ssm.DeleteParameterInput) (*ssm.DeleteParameterOutput, error) {
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		p := s.parameter(tx.View, s.refer(*in.Name))
		if p == nil {
			return notFound(*in.Name)
		}
		tx.DeleteParameter(p.Name)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ssm.DeleteParameterOutput{}, nil
}

// DeleteParameters deletes parameters, and returns the names of those that there were not.
func (s *Service) DeleteParameters(ctx context.Context, in *ssm.DeleteParametersInput) (*ssm.DeleteParametersOutput, error) {
	out := &ssm.DeleteParametersOutput{DeletedParameters: []string{}, InvalidParameters: []string{}}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		for _, name := range in.Names {
			p := s.parameter(tx.View, s.refer(name))
			if p == nil {
				out.InvalidParameters = append(out.InvalidParameters, name)
				continue
			}
			tx.DeleteParameter(p.Name)
			out.DeletedParameters = append(out.DeletedParameters, name)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}
