package ssm

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// DescribeParameters lists parameters without their values.
func (s *Service) DescribeParameters(_ context.Context, in *ssm.DescribeParametersInput) (*ssm.DescribeParametersOutput, error) {
	if aws.ToBool(in.Shared) {
		return nil, invalid("Pintle has one account, so no parameters are shared with it.")
	}
	if len(in.Filters) > 0 && len(in.ParameterFilters) > 0 {
		return nil, invalid("You can use either Filters or ParameterFilters in a single request.")
	}
	wanted := slices.Clone(in.ParameterFilters)
	for _, f := range in.Filters {
		wanted = append(wanted, types.ParameterStringFilter{Key: new(string(f.Key)), Option: aws.String(beginsWith), Values: f.Values})
	}
	match, err := filters(wanted, describeFields)
	if err != nil {
		return nil, err
	}
	v := s.store.View()
	page, next, err := s.page(listing("DescribeParameters", maxPage, maxPage), in.MaxResults, in.NextToken, v, "", match)
	if err != nil {
		return nil, err
	}
	out := &ssm.DescribeParametersOutput{Parameters: []types.ParameterMetadata{}, NextToken: next}
	for _, p := range page {
		row := latest(v, p)
		out.Parameters = append(out.Parameters, types.ParameterMetadata{
			ARN:              new(s.arn(p.Name)),
			AllowedPattern:   optional(row.AllowedPattern),
			DataType:         &row.DataType,
			Description:      optional(row.Description),
			KeyId:            optional(row.KeyID),
			LastModifiedDate: &row.LastModified,
			LastModifiedUser: &row.LastModifiedUser,
			Name:             &p.Name,
			Policies:         append([]types.ParameterInlinePolicy{}, row.Policies...),
			Tier:             row.Tier,
			Type:             row.Type,
			Version:          row.Version,
		})
	}
	return out, nil
}

// page returns a page of the parameters whose names begin with a prefix and that match.
func (s *Service) page(
	list account.List, limit *int32, token *string, v *state.View, prefix string, match matcher,
) ([]*state.Parameter, *string, error) {
	now := s.now()
	return account.Behind(list, limit, token,
		func(after string) iter.Seq[*state.Parameter] { return v.ParametersUnder(prefix, after) },
		func(p *state.Parameter) string { return p.Name },
		func(p *state.Parameter) bool { return !p.Expired(now) && match(p, latest(v, p)) })
}

// The options of filters.
const (
	equals     = "Equals"
	beginsWith = "BeginsWith"
	contains   = "Contains"
	recursive  = "Recursive"
	oneLevel   = "OneLevel"
)

// matcher reports whether a parameter with its latest version is wanted.
type matcher func(*state.Parameter, *state.ParameterVersion) bool

// filterField is what a filter can look at, and its options, of which the first is the default. values is nil for Path.
type filterField struct {
	values  func(*state.Parameter, *state.ParameterVersion) []string
	options []string
}

var (
	typeField = filterField{
		func(_ *state.Parameter, v *state.ParameterVersion) []string { return []string{string(v.Type)} },
		[]string{equals, beginsWith},
	}
	keyField = filterField{
		func(_ *state.Parameter, v *state.ParameterVersion) []string { return []string{v.KeyID} },
		[]string{equals, beginsWith},
	}
	describeFields = map[string]filterField{
		"Name": {
			func(p *state.Parameter, _ *state.ParameterVersion) []string { return []string{p.Name} },
			[]string{equals, beginsWith, contains},
		},
		"Type":  typeField,
		"KeyId": keyField,
		"Path":  {nil, []string{oneLevel, recursive}},
		"Tier": {
			func(p *state.Parameter, _ *state.ParameterVersion) []string { return []string{string(p.Tier)} },
			[]string{equals, beginsWith},
		},
		"DataType": {
			func(_ *state.Parameter, v *state.ParameterVersion) []string { return []string{v.DataType} },
			[]string{equals, beginsWith},
		},
	}
	byPathFields = map[string]filterField{
		"Type":  typeField,
		"KeyId": keyField,
		"Label": {
			func(_ *state.Parameter, v *state.ParameterVersion) []string { return v.Labels },
			[]string{equals},
		},
	}
)

// filters returns what a call's filters want together.
func filters(given []types.ParameterStringFilter, fields map[string]filterField) (matcher, error) {
	var all []matcher
	seen := map[string]bool{}
	for _, f := range given {
		key := aws.ToString(f.Key)
		if seen[key] {
			return nil, &types.InvalidFilterKey{Message: account.Message(
				"The following filters are duplicated in the request: %s. A request can contain only one instance of a filter.", key)}
		}
		seen[key] = true
		match, err := filter(f, key, fields)
		if err != nil {
			return nil, err
		}
		all = append(all, match)
	}
	return func(p *state.Parameter, v *state.ParameterVersion) bool {
		return !slices.ContainsFunc(all, func(m matcher) bool { return !m(p, v) })
	}, nil
}

func filter(f types.ParameterStringFilter, key string, fields map[string]filterField) (matcher, error) {
	tag, isTag := strings.CutPrefix(key, "tag:")
	field, ok := fields[key]
	if _, describing := fields["Name"]; isTag && describing {
		field = filterField{tagValues(tag), []string{equals, beginsWith}}
		ok = true
	}
	if !ok {
		return nil, &types.InvalidFilterKey{Message: account.Message("The following filter key is not valid: %s.", key)}
	}
	option := cmp.Or(aws.ToString(f.Option), field.options[0])
	switch {
	case !slices.Contains(field.options, option):
		return nil, &types.InvalidFilterOption{Message: account.Message(
			"The following filter option is not valid: %s. Valid options include: %v.", option, field.options)}
	case len(f.Values) == 0 && !isTag:
		return nil, &types.InvalidFilterValue{Message: account.Message(
			"The following filter values are missing : null for filter key %s", key)}
	case field.values == nil:
		return pathFilter(f.Values, option)
	}
	return func(p *state.Parameter, v *state.ParameterVersion) bool {
		values := field.values(p, v)
		return slices.ContainsFunc(values, func(value string) bool { return len(f.Values) == 0 || compares(value, option, f.Values) })
	}, nil
}

// compares reports whether a value fits one of those that are wanted.
func compares(value, option string, wanted []string) bool {
	return slices.ContainsFunc(wanted, func(w string) bool {
		switch option {
		case beginsWith:
			return strings.HasPrefix(value, w)
		case contains:
			return strings.Contains(value, w)
		}
		return value == w
	})
}

func tagValues(key string) func(*state.Parameter, *state.ParameterVersion) []string {
	return func(p *state.Parameter, _ *state.ParameterVersion) (values []string) {
		for _, t := range p.Tags {
			if *t.Key == key {
				values = append(values, aws.ToString(t.Value))
			}
		}
		return values
	}
}

func pathFilter(paths []string, option string) (matcher, error) {
	for _, path := range paths {
		if !strings.HasPrefix(path, "/") {
			return nil, &types.InvalidFilterValue{Message: account.Message(
				"The following filter value is not valid: %s. A path begins with a slash.", path)}
		}
	}
	return func(p *state.Parameter, _ *state.ParameterVersion) bool {
		return slices.ContainsFunc(paths, func(path string) bool {
			path = strings.TrimSuffix(path, "/") + "/"
			return isRightBelow(p.Name, path) || option == recursive && isBelow(p.Name, path)
		})
	}, nil
}
