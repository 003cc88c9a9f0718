package cloudformation

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/cloudformation/stacks"
	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// deployment is what a call asks a stack to be made of, in whichever operation.
type deployment struct {
	body, location   *string
	previous         bool // use the template that the stack has
	parameters       []types.Parameter
	tags             []types.Tag
	notificationARNs []string
	capabilities     []types.Capability
	resourceTypes    []string
	isReviewed       bool // it's for a change set
	isNested         bool // the template's URL is a nested stack's
	// unknown are the parameters whose values are known only once other stacks are made.
	unknown []string
	// planned is what a change set has found, in place of a template.
	planned *state.StackSource
}

// source checks what a stack is to be made of and returns it. Of a stack that has a source already, parameters and the template can be
// used again.
func (s *Service) source(ctx context.Context, stack *state.Stack, d deployment) (*state.StackSource, error) {
	latest := stack.Latest()
	if latest != nil && d.notificationARNs == nil {
		d.notificationARNs = latest.NotificationARNs
	}
	src := &state.StackSource{
		Tags:             d.tags,
		NotificationARNs: d.notificationARNs,
		Capabilities:     d.capabilities,
	}
	t, err := s.template(ctx, stack, src, d)
	if err != nil {
		return nil, err
	}
	if err := acknowledged(t, d.capabilities); err != nil {
		return nil, err
	}
	if err := checkTypes(t, d.resourceTypes); err != nil {
		return nil, err
	}
	if err := checkTags(d.tags); err != nil {
		return nil, err
	}
	src.Description = t.Description
	if latest != nil && d.tags == nil {
		src.Tags = latest.Tags
	}
	return src, s.fill(ctx, stack, src, t, d)
}

// template returns the template that a call gives, and puts it into the source: as it was written, and with the parts that it includes.
func (s *Service) template(ctx context.Context, stack *state.Stack, src *state.StackSource, d deployment) (*template.Template, error) {
	text, err := s.written(ctx, stack, d)
	if err != nil {
		return nil, err
	}
	if err := expandable(text, d); err != nil {
		return nil, err
	}
	given, err := s.given(stack, d.parameters)
	if err != nil {
		return nil, err
	}
	scope := s.loop.ScopeOf(ctx, stack, d.notificationARNs)
	values := func(t *template.Template) (map[string]any, error) { return t.ValuesBut(given, d.unknown) }
	src.Template = string(text)
	if d.planned != nil {
		src.Expanded, src.Imports = d.planned.Expanded, d.planned.Imports
		src.IncludesNested, src.Nested = d.planned.IncludesNested, d.planned.Nested
	} else {
		part := func(bucket, key string) ([]byte, error) { return s.part(ctx, bucket, key) }
		expanded, err := template.Include(text, scope, values, part)
		if err != nil {
			return nil, refused(err)
		}
		src.Expanded = string(expanded)
	}
	t, err := template.ParseFor([]byte(cmp.Or(src.Expanded, src.Template)), scope, values)
	return t, refused(err)
}

// written returns the text of the template that a call gives: a new one, the stack's, or one that a change set has.
func (s *Service) written(ctx context.Context, stack *state.Stack, d deployment) ([]byte, error) {
	switch {
	case d.planned != nil:
		return []byte(d.planned.Template), nil
	case d.isNested:
		return s.objectAsCaller(ctx, *d.location)
	case !d.previous:
		return s.text(ctx, d.body, d.location)
	case d.body != nil || d.location != nil:
		return nil, invalid("You cannot specify both usePreviousTemplate and a template.")
	case stack.Latest() == nil:
		return nil, invalid("UsePreviousTemplate cannot be used for a stack that has no template.")
	}
	return []byte(stack.Latest().Template), nil
}

// part reads a part that a template includes, if the caller may.
func (s *Service) part(ctx context.Context, bucket, key string) ([]byte, error) {
	out, err := call.Do[s3.GetObjectOutput](ctx, s.opts.Services, &s3.GetObjectInput{Bucket: &bucket, Key: &key})
	var answered smithy.APIError
	switch {
	case errors.As(err, &answered) && answered.ErrorCode() == "NoSuchBucket":
		return nil, template.IncludeErrorf("S3 bucket [%s] does not exist.", bucket)
	case errors.As(err, &answered):
		return nil, template.IncludeErrorf("%s", answered.ErrorMessage())
	case err != nil:
		return nil, err
	}
	defer out.Body.Close()
	return io.ReadAll(io.LimitReader(out.Body, maxObject+1)) // a longer one is refused for its length
}

// expandable checks that a template's transforms were acknowledged. For a change set, which is looked at first, they needn't be.
func expandable(text []byte, d deployment) error {
	names, err := template.Transforms(text)
	if err != nil {
		return refused(err)
	}
	if len(names) > 0 && !d.isReviewed && !slices.Contains(d.capabilities, types.CapabilityCapabilityAutoExpand) {
		return account.Refuse("InsufficientCapabilitiesException", "Requires capabilities : [%s]", types.CapabilityCapabilityAutoExpand)
	}
	return nil
}

// refused turns what is wrong with a template or its resources into the call's error.
func refused(err error) error {
	var wrong *template.Error
	var answered smithy.APIError
	switch {
	case err == nil || errors.As(err, &answered):
		return err
	case errors.As(err, &wrong):
		return invalid("%s", wrong.Message)
	}
	return invalid("%s", err.Error())
}

// acknowledged checks that the capabilities that a template needs were acknowledged.
func acknowledged(t *template.Template, given []types.Capability) error {
	needed, _ := t.Capabilities()
	for _, name := range needed {
		named := slices.Contains(given, types.CapabilityCapabilityNamedIam)
		if !named && !slices.Contains(given, types.Capability(name)) {
			return account.Refuse("InsufficientCapabilitiesException", "Requires capabilities : [%s]", name)
		}
	}
	return nil
}

// checkTypes refuses templates with types that there are none of. What has a condition may turn out not to be made: stacks looks at those.
func checkTypes(t *template.Template, allowed []string) error {
	var unknown []string
	for i := range t.Resources {
		r := &t.Resources[i]
		if resources.Lookup(r.Type) == nil && r.Condition == "" && !slices.Contains(unknown, r.Type) {
			unknown = append(unknown, r.Type)
		}
		if len(allowed) > 0 && !slices.ContainsFunc(allowed, func(a string) bool { return matches(a, r.Type) }) {
			return invalid("Resource type %s is not allowed by parameter ResourceTypes [%s]", r.Type, strings.Join(allowed, ", "))
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	return refused(resources.Unrecognized(unknown))
}

// matches reports whether a type is one that ResourceTypes names, which may end in a star.
func matches(pattern, name string) bool {
	prefix, isPrefix := strings.CutSuffix(pattern, "*")
	return pattern == name || isPrefix && strings.HasPrefix(name, prefix)
}

func checkTags(tags []types.Tag) error {
	pairs := account.TagPairs(tags, func(t types.Tag) (key, value *string) { return t.Key, t.Value })
	if fault := account.CheckTags(pairs, account.MaxTags); fault != nil {
		if fault.Rule == account.TagReserved {
			return invalid("aws: prefixed tag key names are not allowed for external use.")
		}
		return invalid("Tags must have unique keys of 1 to 128 characters, values of at most 256, and there can be at most %d", account.MaxTags)
	}
	return nil
}

// fill gives a source the values of its template's parameters, those of AWS's stores too, and what is shown of them.
func (s *Service) fill(ctx context.Context, stack *state.Stack, src *state.StackSource, t *template.Template, d deployment) error {
	values, err := s.given(stack, d.parameters)
	if err != nil {
		return err
	}
	all, err := t.ValuesBut(values, d.unknown)
	if err != nil {
		return refused(err)
	}
	for i := range t.Parameters {
		p := &t.Parameters[i]
		text, there := values[p.Name]
		isUnknown := template.HasUnknown(all[p.Name])
		switch {
		case isUnknown:
			text = stacks.KnownAfterApply
		case !there:
			text = *p.Default
		}
		shown := types.Parameter{ParameterKey: &p.Name, ParameterValue: &text}
		if p.Stored() != "" && !isUnknown {
			value, err := s.stored(ctx, p, text)
			if err != nil {
				return err
			}
			all[p.Name] = p.Typed(value)
			shown.ResolvedValue = &value
		}
		if p.NoEcho {
			shown.ParameterValue = aws.String(stacks.Masked)
		}
		src.Parameters = append(src.Parameters, shown)
	}
	if len(d.unknown) == 0 {
		if err := refused(t.CheckRules(all)); err != nil {
			return err
		}
	}
	src.Values, err = s.loop.SealValues(*stack.StackId, all, values)
	return err
}

// stored looks up the value of a parameter that is kept in Parameter Store.
func (s *Service) stored(ctx context.Context, p *template.Parameter, name string) (string, error) {
	out, err := call.Do[ssm.GetParameterOutput](ctx, s.opts.Services, &ssm.GetParameterInput{Name: &name})
	if err != nil {
		return "", invalid("Unable to fetch parameters [%s] from parameter store for this account.", name)
	}
	if out.Parameter.Type == "SecureString" {
		return "", invalid("Parameters [%s] referenced by template have types not supported by CloudFormation.", name)
	}
	return *out.Parameter.Value, nil
}

// given returns the values that a call gives to parameters: text, or what the stack has.
func (s *Service) given(stack *state.Stack, list []types.Parameter) (map[string]string, error) {
	values := map[string]string{}
	for _, p := range list {
		name := aws.ToString(p.ParameterKey)
		if _, twice := values[name]; twice {
			return nil, invalid("Duplicate parameter key: %s", name)
		}
		switch {
		case aws.ToBool(p.UsePreviousValue) && p.ParameterValue != nil:
			return nil, invalid("Invalid input for parameter key %s. Cannot specify usePreviousValue as true and non empty value for a parameter", name)
		case aws.ToBool(p.UsePreviousValue):
			previous, err := s.loop.Given(stack)
			if err != nil {
				return nil, err
			}
			value, there := previous[name]
			if !there {
				if stack.Latest() == nil {
					return nil, invalid("Invalid input for parameter key %s. Cannot specify usePreviousValue as true for a parameter key not in the previous template", name)
				}
				continue // the default is used again
			}
			values[name] = value
		default:
			values[name] = aws.ToString(p.ParameterValue)
		}
	}
	return values, nil
}

// plan checks a source against the stack as it stands and lists what it would change.
func (s *Service) plan(ctx context.Context, v *state.View, stack *state.Stack, src *state.StackSource) ([]types.Change, error) {
	changes, err := s.loop.Changes(ctx, v, stack, src)
	if err != nil {
		return nil, refused(err)
	}
	return changes, nil
}

func (s *Service) stackARN(name, id string) string {
	return s.opts.Account.ARN("cloudformation", fmt.Sprintf("stack/%s/%s", name, id))
}
