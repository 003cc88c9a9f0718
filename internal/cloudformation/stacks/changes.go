package stacks

import (
	"context"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/cloudformation/plan"
	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
)

// Changes checks a source and lists what it would change in a stack. Errors are of type *template.Error or *Late, or of
// the resources' types.
func (l *Loop) Changes(ctx context.Context, v *state.View, s *state.Stack, row *state.StackSource) ([]types.Change, error) {
	return l.ChangesWith(ctx, v, s, row, func(*template.Resource, *state.StackResource, map[string]any) (string, bool, error) {
		return "", true, nil
	})
}

// Nested finds out what would change in a stack in a stack, by the resource that it is, which may not be there yet, and that one's
// properties. It returns the ID of the change set that says so, or "", and whether anything changes.
type Nested func(r *template.Resource, row *state.StackResource, properties map[string]any) (changeSet string, changes bool, err error)

// ChangesWith is Changes that asks what changes in the stacks in the stack. Changes takes it that something may.
func (l *Loop) ChangesWith(
	ctx context.Context, v *state.View, s *state.Stack, row *state.StackSource, nested Nested,
) ([]types.Change, error) {
	src, err := l.parsed(ctx, v, s, row)
	if err != nil {
		return nil, err
	}
	if err := l.checkParameters(ctx, src); err != nil {
		return nil, err
	}
	p := &preview{Loop: l, src: src, stands: src.rows, nested: nested, changeSets: map[string]string{}}
	src.rows = map[string]*state.StackResource{}
	steps, err := plan.Of(src.Template, src.needs, p.left(), p)
	if err != nil {
		return nil, err
	}
	if _, err := outputsOf(src); err != nil {
		return nil, err
	}
	changes := []types.Change(nil)
	for _, step := range steps {
		changes = append(changes, types.Change{Type: types.ChangeTypeResource, ResourceChange: p.change(step)})
	}
	return changes, nil
}

// preview tells a plan what a source is to make of a stack's resources, and what stands.
type preview struct {
	*Loop
	src        *source // its rows are those that stay, so that what refers to others is unknown
	stands     map[string]*state.StackResource
	nested     Nested
	changeSets map[string]string // of the stacks in the stack, by name
}

// left lists the resources of which something is left: those that stand, but for what couldn't be made.
func (p *preview) left() (names []string) {
	for name, row := range p.stands {
		if row.PhysicalID != "" && !isNotTakenOver(row) || !isUnmade(row) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Wanted evaluates and checks a resource.
func (p *preview) Wanted(r *template.Resource) (*plan.Wanted, error) {
	if !p.src.Has(r.Condition) {
		return nil, nil
	}
	kind := resources.Lookup(r.Type)
	if kind == nil {
		return nil, resources.Unrecognized([]string{r.Type})
	}
	properties, err := p.checked(r, kind)
	if err != nil {
		return nil, err
	}
	replacing, err := p.src.replacing(r)
	if err != nil {
		return nil, err
	}
	w := &plan.Wanted{Type: r.Type, Kind: kind, Properties: properties, WillReplace: replacing}
	if r.Type == resources.NestedStack {
		p.changeSets[r.Name], w.Stirs, err = p.nested(r, p.made(r.Name), properties)
	}
	return w, err
}

// checked evaluates a resource's properties and refuses those that it can't have.
func (p *preview) checked(r *template.Resource, kind resources.Type) (map[string]any, error) {
	properties, err := object(p.src.Evaluation, r.Properties)
	if err != nil {
		return nil, err
	}
	if kind.HasTags() {
		addTags(properties, p.src.row.Tags)
	}
	if err := kind.Check(r.Name, properties); err != nil {
		return nil, err
	}
	if err := p.src.checkPolicies(r, properties); err != nil {
		return nil, err
	}
	return properties, refuseSecure(r.Type, properties)
}

// made returns the row of a resource that was made, or nil.
func (p *preview) made(name string) *state.StackResource {
	if row := p.stands[name]; row != nil && !isUnmade(row) {
		return row
	}
	return nil
}

// Standing returns a resource that was made.
func (p *preview) Standing(name string) (*plan.Standing, error) {
	row := p.made(name)
	if row == nil {
		return nil, nil
	}
	return p.standing(row)
}

// Stays lets others know a resource that isn't replaced.
func (p *preview) Stays(name string, changes bool) {
	p.src.rows[name] = p.stands[name]
	if changes {
		p.src.rows[name] = unsettled(p.stands[name])
	}
}

// standing returns a resource that stands, for a plan.
func (l *Loop) standing(row *state.StackResource) (*plan.Standing, error) {
	have, err := l.unseal(row.Stack, row.Name, row.Properties)
	return &plan.Standing{Type: row.Type, Properties: have, Halfway: row.Next != nil}, err
}

// change shows a step as a change set does.
func (p *preview) change(step plan.Step) *types.ResourceChange {
	c := &types.ResourceChange{
		LogicalResourceId: &step.Name,
		ChangeSetId:       optional(p.changeSets[step.Name]),
		Scope:             []types.ResourceAttribute{},
		Details:           []types.ResourceChangeDetail{},
	}
	switch step.Action {
	case plan.Create:
		c.Action, c.ResourceType = types.ChangeActionAdd, &step.Wanted.Type
		return c
	case plan.Delete:
		c.Action, c.ResourceType = types.ChangeActionRemove, &p.stands[step.Name].Type
	default:
		c.Action, c.ResourceType, c.Replacement = types.ChangeActionModify, &step.Wanted.Type, replacements[step.Action]
	}
	c.PhysicalResourceId = &p.stands[step.Name].PhysicalID
	for _, change := range step.Changes {
		c.Details = append(c.Details, detail(change))
		c.Scope = append(c.Scope, scopeOf(change))
	}
	if len(c.Details) == 0 && step.Wanted != nil && step.Wanted.Stirs {
		c.Details, c.Scope = append(c.Details, looked), append(c.Scope, types.ResourceAttributeProperties)
	}
	slices.Sort(c.Scope)
	c.Scope = slices.Compact(c.Scope)
	return c
}

// replacements is how change sets say what an action makes of a resource that stands.
var replacements = map[plan.Action]types.Replacement{
	plan.Update:     types.ReplacementFalse,
	plan.Replace:    types.ReplacementTrue,
	plan.MayReplace: types.ReplacementConditional,
}

// looked is the detail of a nested stack that changes in nothing that its parent says.
var looked = types.ResourceChangeDetail{
	ChangeSource: types.ChangeSourceAutomatic,
	Evaluation:   types.EvaluationTypeDynamic,
	Target: &types.ResourceTargetDefinition{
		Attribute:          types.ResourceAttributeProperties,
		RequiresRecreation: types.RequiresRecreationNever,
	},
}

func scopeOf(c plan.Change) types.ResourceAttribute {
	if c.Name == "Tags" {
		return types.ResourceAttributeTags
	}
	return types.ResourceAttributeProperties
}

func detail(c plan.Change) types.ResourceChangeDetail {
	d := types.ResourceChangeDetail{
		ChangeSource: types.ChangeSourceDirectModification,
		Evaluation:   types.EvaluationTypeStatic,
		Target: &types.ResourceTargetDefinition{
			Attribute:          scopeOf(c),
			RequiresRecreation: types.RequiresRecreationNever,
		},
	}
	if d.Target.Attribute == types.ResourceAttributeProperties {
		d.Target.Name = &c.Name
	}
	if c.Unknown {
		d.Evaluation = types.EvaluationTypeDynamic
	}
	switch {
	case c.Replaces && c.Unknown:
		d.Target.RequiresRecreation = types.RequiresRecreationConditionally
	case c.Replaces:
		d.Target.RequiresRecreation = types.RequiresRecreationAlways
	}
	return d
}

// Restates reports whether a source that changes no resource changes what no call tells anybody: outputs, metadata, and what becomes of
// resources that are taken away. These may depend on parameters.
func (l *Loop) Restates(ctx context.Context, v *state.View, s *state.Stack, row *state.StackSource) (bool, error) {
	src, err := l.parsed(ctx, v, s, row)
	if err != nil {
		return false, err
	}
	for i := range src.Resources {
		r := &src.Resources[i]
		c := &construction{building: &building{Loop: l, stack: s, src: src}, resource: r, row: src.rows[r.Name]}
		if c.row != nil && src.Has(r.Condition) && c.isRestated() {
			return true, nil
		}
	}
	outputs, err := outputsOf(src)
	return !sameOutputs(outputs, s.Outputs), err
}

func sameOutputs(a, b []types.Output) bool {
	return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b))
}
