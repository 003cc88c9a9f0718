package stacks

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/pintle/pintle/internal/cloudformation/plan"
	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/vault"
	"github.com/pintle/pintle/internal/wire/call"
)

// source is a stack's source with everything that evaluating it needs.
type source struct {
	*template.Template
	evaluating *sync.Mutex // held while several jobs may evaluate; copies of the source share it
	*template.Evaluation
	shown *template.Evaluation // with the values of NoEcho parameters masked
	row   *state.StackSource
	// values are those of the parameters.
	values map[string]any
	rows   map[string]*state.StackResource // the resources that stand, by name
	// needs has the resources that must be there before one is made, and gone after it, by its name.
	needs plan.Graph
	// secrets returns those of a resource's attributes that aren't to be shown.
	secrets func(r *state.StackResource) (map[string]any, error)
	// imports are the exports that were asked for so far.
	imports map[string]bool
}

// Masked is what NoEcho parameters are shown as.
const Masked = "****"

// parsed parses a source's template and evaluates its conditions, with the resources that stand.
func (l *Loop) parsed(ctx context.Context, v *state.View, s *state.Stack, row *state.StackSource) (*source, error) {
	values, err := l.values(s, row)
	if err != nil {
		return nil, err
	}
	scope := l.ScopeOf(ctx, s, row.NotificationARNs)
	t, err := template.ParseFor([]byte(cmp.Or(row.Expanded, row.Template)), scope, func(*template.Template) (map[string]any, error) { return values, nil })
	if err != nil {
		return nil, err
	}
	src := &source{Template: t, evaluating: new(sync.Mutex), row: row, values: values, rows: standing(v, *s.StackId), needs: graphOf(t), imports: map[string]bool{}}
	src.secrets = func(r *state.StackResource) (map[string]any, error) {
		return l.unseal(r.Stack, secretsOf(r), r.Secrets)
	}
	scope.Parameters, scope.Ref, scope.Attribute = values, src.ref, src.attribute
	scope.Import = func(name string) (any, error) { return src.imported(v, s, name) }
	if src.Evaluation, err = t.Evaluate(scope); err != nil {
		return nil, err
	}
	scope.Parameters = map[string]any{}
	for name, value := range values {
		scope.Parameters[name] = value
	}
	for i := range t.Parameters {
		if p := &t.Parameters[i]; p.NoEcho {
			scope.Parameters[p.Name] = Masked
		}
	}
	scope.Attribute = src.shownAttribute
	src.shown, err = t.Evaluate(scope)
	return src, err
}

// ScopeOf returns what a stack's template may refer to besides parameters and resources.
func (l *Loop) ScopeOf(ctx context.Context, s *state.Stack, notificationARNs []string) template.Scope {
	return template.Scope{
		AccountID:        l.opts.Account.ID,
		Region:           l.opts.Account.Region,
		StackName:        *s.StackName,
		StackID:          *s.StackId,
		NotificationARNs: notificationARNs,
		Zones:            func(string) []string { return l.zones(ctx) },
	}
}

// Processed returns a source's template after its transform: as it was sent if it has none.
func (l *Loop) Processed(ctx context.Context, v *state.View, s *state.Stack, row *state.StackSource) (string, error) {
	src, err := l.parsed(ctx, v, s, row)
	if err != nil || src.Template.Processed == nil {
		return cmp.Or(row.Expanded, row.Template), err
	}
	text, err := json.Marshal(src.Template.Processed)
	return string(text), err
}

// standing returns the resources of a stack that stand under their names.
func standing(v *state.View, stack string) map[string]*state.StackResource {
	rows := map[string]*state.StackResource{}
	for r := range v.ResourcesOf(stack) {
		if !r.Superseded && !isGone(r) {
			rows[r.Name] = r
		}
	}
	return rows
}

// ref returns what Ref of a resource is.
func (src *source) ref(name string) any {
	if r := src.rows[name]; r != nil && isComplete(r) {
		return r.Ref
	}
	return template.Unknown{}
}

// attribute returns an attribute of a resource.
func (src *source) attribute(name, attribute string) (any, error) {
	kind := resources.Lookup(src.Resource(name).Type)
	if kind == nil {
		return template.Unknown{}, nil // it isn't made, or the template is refused for it
	}
	known := resources.AttributeOf(kind, attribute)
	if known == "" {
		return nil, template.Errorf("Template error: resource %s does not support attribute type %s in Fn::GetAtt", name, attribute)
	}
	r := src.rows[name]
	if r == nil || !isComplete(r) {
		return template.Unknown{}, nil
	}
	got, there := r.Attributes[attribute]
	if !there {
		got, there = r.Attributes[known] // of a family that isn't known yet
	}
	if there {
		return got, nil
	}
	secrets, err := src.secrets(r)
	if err != nil {
		return nil, err
	}
	if got, there = secrets[attribute]; !there {
		return nil, template.Errorf("Attribute %s of resource %s has no value", attribute, name)
	}
	return got, nil
}

// shownAttribute returns an attribute of a resource as events show it.
func (src *source) shownAttribute(name, attribute string) (any, error) {
	got, err := src.attribute(name, attribute)
	if r := src.rows[name]; err != nil || r == nil || len(r.Secrets) == 0 {
		return got, err
	}
	secrets, err := src.secrets(src.rows[name])
	if _, isSecret := secrets[attribute]; isSecret {
		return Masked, nil
	}
	return got, err
}

// imported returns what another stack exports. That may come until a new stack is made.
func (src *source) imported(v *state.View, s *state.Stack, name string) (any, error) {
	src.imports[name] = true
	if other, out := Export(v, name); other != nil && *other.StackId != *s.StackId {
		return *out.OutputValue, nil
	}
	if s.StackStatus == "" || s.StackStatus == types.StackStatusReviewInProgress {
		return template.Unknown{}, nil
	}
	return nil, &Late{"No export named " + name + " found"}
}

// Export returns the stack that exports a name, and the output that does; nil if none does.
func Export(v *state.View, name string) (*state.Stack, *types.Output) {
	for s := range v.Stacks.All() {
		if s.Gone() {
			continue
		}
		for i := range s.Outputs {
			if aws.ToString(s.Outputs[i].ExportName) == name {
				return s, &s.Outputs[i]
			}
		}
	}
	return nil, nil
}

// Importers lists the names of the stacks that import an export.
func Importers(v *state.View, name string) (users []string) {
	for s := range v.Stacks.All() {
		if !s.Gone() && slices.Contains(s.Imports, name) {
			users = append(users, *s.StackName)
		}
	}
	return users
}

// zones lists the Availability Zones.
func (l *Loop) zones(ctx context.Context) (names []string) {
	out, err := call.Do[ec2.DescribeAvailabilityZonesOutput](ctx, l.opts.Services, &ec2.DescribeAvailabilityZonesInput{})
	if err != nil {
		return nil
	}
	for _, z := range out.AvailabilityZones {
		names = append(names, *z.ZoneName)
	}
	return names
}

// graphOf returns a template's graph of resources.
func graphOf(t *template.Template) plan.Graph {
	return plan.GraphOf(t, func(resourceType string) []string {
		if kind := resources.Lookup(resourceType); kind != nil {
			return kind.After()
		}
		return nil
	})
}

// propertiesOf evaluates a resource's properties, also as they are shown. Jobs may call it.
func (src *source) propertiesOf(r *template.Resource) (properties, masked map[string]any, err error) {
	src.evaluating.Lock()
	defer src.evaluating.Unlock()
	if properties, err = object(src.Evaluation, r.Properties); err != nil {
		return nil, nil, err
	}
	masked, err = object(src.shown, r.Properties)
	return properties, masked, err
}

// wanted evaluates a resource's properties: those that it gets, and those that are shown.
func (l *Loop) wanted(ctx context.Context, src *source, r *template.Resource) (properties map[string]any, shown string, err error) {
	properties, masked, err := src.propertiesOf(r)
	if err != nil {
		return nil, "", err
	}
	text, err := json.Marshal(masked)
	if err != nil {
		return nil, "", err
	}
	references := &resolver{Loop: l}
	if err := references.resolve(ctx, properties); err != nil {
		return nil, "", err
	}
	if t := resources.Lookup(r.Type); t.HasTags() {
		addTags(properties, src.row.Tags)
	}
	return properties, string(text), nil
}

func object(e *template.Evaluation, v *template.Value) (map[string]any, error) {
	if v == nil {
		return map[string]any{}, nil
	}
	got, err := e.Value(v)
	if err != nil {
		return nil, err
	}
	if o, ok := got.(map[string]any); ok {
		return o, nil
	}
	return map[string]any{}, nil
}

// addTags adds a stack's tags to a resource's own, which come first.
func addTags(properties map[string]any, tags []types.Tag) {
	own, _ := properties["Tags"].([]any)
	has := map[string]bool{}
	for _, t := range own {
		if o, ok := t.(map[string]any); ok {
			key, _ := o["Key"].(string)
			has[key] = true
		}
	}
	for _, t := range tags {
		if !has[*t.Key] {
			own = append(own, map[string]any{"Key": *t.Key, "Value": *t.Value})
		}
	}
	if own != nil {
		properties["Tags"] = own
	}
}

// secretsOf names the attributes of a resource that aren't to be shown. Those of a resource that takes another's place are others.
func secretsOf(r *state.StackResource) string { return "secrets of " + r.Name + " " + r.Token }

// seal encrypts what a stack must not show.
func (l *Loop) seal(stack, what string, v any) ([]byte, error) {
	return l.opts.Vault.Seal(v, vault.Purpose("stack", stack, what))
}

// unseal decrypts what seal has encrypted.
func (l *Loop) unseal(stack, what string, sealed []byte) (map[string]any, error) {
	v, err := l.opts.Vault.Unseal(sealed, vault.Purpose("stack", stack, what))
	if err != nil {
		return nil, fmt.Errorf("read the %s of a stack: %w", what, err)
	}
	return v, nil
}

// parameterValues are the values of a source's parameters: as references see them, and as they were given.
type parameterValues struct {
	Typed map[string]any
	Given map[string]string
	// Unknown are the parameters whose values aren't known before other stacks are made.
	Unknown []string `json:",omitempty"`
}

const ofParameters = "parameters"

// values returns the values of a source's parameters.
func (l *Loop) values(s *state.Stack, row *state.StackSource) (map[string]any, error) {
	all, err := l.unseal(*s.StackId, ofParameters, row.Values)
	typed, _ := all["Typed"].(map[string]any)
	unknown, _ := all["Unknown"].([]any)
	for _, name := range unknown {
		if name, isText := name.(string); isText {
			typed[name] = template.Unknown{}
		}
	}
	return typed, err
}

// Given returns the values that a stack's parameters were given, without defaults.
func (l *Loop) Given(s *state.Stack) (map[string]string, error) {
	latest := s.Latest()
	if latest == nil {
		return nil, nil
	}
	all, err := l.unseal(*s.StackId, ofParameters, latest.Values)
	values := map[string]string{}
	given, _ := all["Given"].(map[string]any)
	for name, v := range given {
		values[name], _ = v.(string)
	}
	return values, err
}

// SealValues encrypts the values of a stack's parameters.
func (l *Loop) SealValues(stack string, typed map[string]any, given map[string]string) ([]byte, error) {
	known, unknown := map[string]any{}, []string(nil)
	for name, value := range typed {
		if template.HasUnknown(value) {
			unknown = append(unknown, name)
			continue
		}
		known[name] = value
	}
	slices.Sort(unknown)
	return l.seal(stack, ofParameters, parameterValues{known, given, unknown})
}
