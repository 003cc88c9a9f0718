package ssm

import (
	"cmp"
	"regexp"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/ssm/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
)

// maxName is the longest name of a parameter with its ARN's prefix, and maxLevels is how deep a hierarchy may be:
// https://docs.aws.amazon.com/systems-manager/latest/userguide/sysman-paramstore-su-create.html
const (
	maxName   = 1011
	maxLevels = 15
)

var nameOfParameter = regexp.MustCompile(`^[a-zA-Z0-9_.-]+$|^(/[a-zA-Z0-9_.-]+)+$`)

// checkNewName checks the name of a parameter that is to be put.
func (s *Service) checkNewName(name string) error {
	lower := strings.ToLower(strings.TrimPrefix(name, "/"))
	switch {
	case strings.HasPrefix(name, "arn:"):
		return invalid("A parameter is put by its name, not by its ARN: %s", name)
	case strings.HasPrefix(name, "/") && strings.HasPrefix(lower, "aws/"):
		return &types.AccessDeniedException{Message: account.Message("No access to reserved parameter name: %s.", name)}
	case strings.HasPrefix(lower, "aws") || strings.HasPrefix(lower, "ssm"):
		return invalid("Parameter name: can't be prefixed with \"aws\" or \"ssm\" (case-insensitive).")
	case strings.Contains(name, "/") && name[0] != '/':
		return invalid("Parameter name must be a fully qualified name: a name with slashes begins with one.")
	case strings.HasSuffix(name, "/"):
		return invalid("Parameter name must not end with slash.")
	case !nameOfParameter.MatchString(name):
		return malformedName()
	case strings.Count(name, "/") > maxLevels:
		return &types.HierarchyLevelLimitExceededException{Message: account.Message(
			"Parameter name %s has more than %d levels, the maximum of a hierarchy.", name, maxLevels)}
	case len(s.arn(name)) > maxName:
		return invalid("Parameter name is too long: with its ARN's prefix it has %d characters, at most %d are allowed.",
			len(s.arn(name)), maxName)
	}
	return nil
}

func malformedName() error {
	return invalid("Parameter name: if formed as a path, it can consist of sub-paths divided by slash symbol; each sub-path can be " +
		"formed as a mix of letters, numbers and the following 3 symbols .-_")
}

// reference is how a call names a parameter: by its name or ARN, with the version or label behind a colon, if any.
type reference struct {
	names   []string // the names that may be meant; an ARN doesn't tell whether a name begins with a slash
	version int64    // 0 if none was given
	label   string
	given   string // the selector as it was given, with its colon
}

// refer parses what a call names.
func (s *Service) refer(text string) reference {
	name := strings.TrimSpace(text)
	rest, own := s.opts.ResourceOf("ssm", "parameter/", name)
	public, isPublic := strings.CutPrefix(name, publicARN(s.opts.Region))
	switch {
	case own:
		name = rest
	case isPublic:
		name = public
	case strings.HasPrefix(name, "arn:"): // another account's or region's
		return reference{names: []string{name}}
	}
	name, selector, found := strings.Cut(name, ":")
	ref := reference{names: []string{name}}
	if own || isPublic {
		ref.names = []string{"/" + name, name}
	}
	if found {
		ref.given = ":" + selector
	}
	if n, err := strconv.ParseInt(selector, 10, 64); err == nil && n > 0 {
		ref.version = n
	} else {
		ref.label = selector
	}
	return ref
}

// parameter returns the parameter that is meant, or nil.
func (s *Service) parameter(v *state.View, ref reference) *state.Parameter {
	for _, name := range ref.names {
		if p := named(v, name); p != nil && !p.Expired(s.now()) {
			return p
		}
	}
	return nil
}

// named returns the parameter with a name, expired or not. At the top of the hierarchy a name means the same with its slash and without.
func named(v *state.View, name string) *state.Parameter {
	if p := v.Parameters.Get(name); p != nil {
		return p
	}
	bare, slash := strings.CutPrefix(name, "/")
	switch {
	case strings.Contains(bare, "/"):
		return nil
	case slash:
		return v.Parameters.Get(bare)
	}
	return v.Parameters.Get("/" + name)
}

// find returns the version of a parameter that is meant, which is the latest if none is named.
func (s *Service) find(v *state.View, ref reference) (*state.ParameterVersion, error) {
	p := s.parameter(v, ref)
	if p == nil {
		return nil, notFound(ref.names[0] + ref.given)
	}
	if ref.label == "" {
		return versionOf(v, p, ref.version)
	}
	if row := labelled(v, p.Name, ref.label); row != nil {
		return row, nil
	}
	return nil, versionNotFound(p.Name, ref.label)
}

// versionOf returns a version of a parameter; 0 means the latest.
func versionOf(v *state.View, p *state.Parameter, version int64) (*state.ParameterVersion, error) {
	version = cmp.Or(version, p.Version)
	row := v.ParameterVersions.Get(state.ParameterVersionKey(p.Name, version))
	if row == nil {
		return nil, versionNotFound(p.Name, strconv.FormatInt(version, 10))
	}
	return row, nil
}
