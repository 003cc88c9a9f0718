package stacks

import (
	"cmp"
	"context"
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

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
	p := &preview{Loop: l, src: src, stands: src.rows, seen: map[string]bool{}, nested: nested}
	src.rows = map[string]*state.StackResource{}
	for i := range src.Resources {
		if err := p.look(&src.Resources[i]); err != nil {
			return nil, err
		}
	}
	if _, err := outputsOf(src); err != nil {
		return nil, err
	}
	return append(p.list, p.removed()...), nil
}

// preview finds out what a source would change.
type preview struct {
	*Loop
	src    *source // its rows are those that stay, so that what refers to others is unknown
	stands map[string]*state.StackResource
	seen   map[string]bool
	list   []types.Change
	nested Nested
}

// look compares a resource, after those that it needs.
func (p *preview) look(r *template.Resource) error {
	if p.seen[r.Name] || !p.src.Has(r.Condition) {
		return nil
	}
	p.seen[r.Name] = true
	for _, name := range p.src.needs[r.Name] {
		if err := p.look(p.src.Resource(name)); err != nil {
			return err
		}
	}
	properties, err := object(p.src.Evaluation, r.Properties)
	if err != nil {
		return err
	}
	kind := resources.Lookup(r.Type)
	if kind.HasTags() {
		addTags(properties, p.src.row.Tags)
	}
	if err := kind.Check(r.Name, properties); err != nil {
		return err
	}
	if err := p.src.checkPolicies(r, properties); err != nil {
		return err
	}
	if err := refuseSecure(r.Type, properties); err != nil {
		return err
	}
	row := p.stands[r.Name]
	if row != nil && isUnmade(row) {
		row = nil
	}
	if row == nil {
		c := types.ResourceChange{Action: types.ChangeActionAdd, LogicalResourceId: &r.Name, ResourceType: &r.Type}
		if r.Type == resources.NestedStack {
			changeSet, _, err := p.nested(r, nil, properties)
			if err != nil {
				return err
			}
			c.ChangeSetId = optional(changeSet)
		}
		p.add(c)
		return nil
	}
	return p.compare(r, kind, row, properties)
}

func (p *preview) add(c types.ResourceChange) {
	if c.Scope == nil {
		c.Scope = []types.ResourceAttribute{}
	}
	if c.Details == nil {
		c.Details = []types.ResourceChangeDetail{}
	}
	p.list = append(p.list, types.Change{Type: types.ChangeTypeResource, ResourceChange: &c})
}

// compare compares a resource that stands with what it's to be.
func (p *preview) compare(r *template.Resource, kind resources.Type, row *state.StackResource, properties map[string]any) error {
	have, err := p.unseal(row.Stack, row.Name, row.Properties)
	if err != nil {
		return err
	}
	c := types.ResourceChange{
		Action:             types.ChangeActionModify,
		LogicalResourceId:  &r.Name,
		PhysicalResourceId: &row.PhysicalID,
		ResourceType:       &r.Type,
		Replacement:        types.ReplacementFalse,
	}
	changes := kind.Changes(have, properties)
	replaces, err := p.src.replaces(r, changes)
	if err != nil {
		return err
	}
	for _, change := range changes {
		c.Details = append(c.Details, detail(change, template.HasUnknown(properties[change.Name])))
		c.Replacement = worse(c.Replacement, change, template.HasUnknown(properties[change.Name]))
		c.Scope = append(c.Scope, scopeOf(change))
	}
	if row.Type != r.Type || replaces && !resources.IsReplacement(changes) {
		c.Replacement = types.ReplacementTrue
	}
	if r.Type == resources.NestedStack {
		if err := p.lookInto(r, row, properties, &c); err != nil {
			return err
		}
	}
	slices.Sort(c.Scope)
	c.Scope = slices.Compact(c.Scope)
	if len(c.Details) == 0 && row.Type == r.Type && row.Next == nil {
		p.src.rows[r.Name] = row
		return nil
	}
	if c.Replacement == types.ReplacementFalse {
		p.src.rows[r.Name] = unsettled(row)
	}
	p.add(c)
	return nil
}

// lookInto adds to the change of a nested stack what changes in it.
func (p *preview) lookInto(r *template.Resource, row *state.StackResource, properties map[string]any, c *types.ResourceChange) error {
	changeSet, changes, err := p.nested(r, row, properties)
	if err != nil {
		return err
	}
	c.ChangeSetId = optional(changeSet)
	if changes && len(c.Details) == 0 {
		c.Details, c.Scope = []types.ResourceChangeDetail{looked}, []types.ResourceAttribute{types.ResourceAttributeProperties}
	}
	return nil
}

// worse returns the graver of what is known so far of a resource's replacement and what a change means.
func worse(r types.Replacement, c resources.Change, unknown bool) types.Replacement {
	switch {
	case !c.Replaces || r == types.ReplacementTrue:
		return r
	case unknown:
		return types.ReplacementConditional
	}
	return types.ReplacementTrue
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

func scopeOf(c resources.Change) types.ResourceAttribute {
	if c.Name == "Tags" {
		return types.ResourceAttributeTags
	}
	return types.ResourceAttributeProperties
}

func detail(c resources.Change, unknown bool) types.ResourceChangeDetail {
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
	if unknown {
		d.Evaluation = types.EvaluationTypeDynamic
	}
	switch {
	case c.Replaces && unknown:
		d.Target.RequiresRecreation = types.RequiresRecreationConditionally
	case c.Replaces:
		d.Target.RequiresRecreation = types.RequiresRecreationAlways
	}
	return d
}

// removed lists the resources that the source doesn't have.
func (p *preview) removed() (list []types.Change) {
	for name, row := range p.stands {
		if p.src.has(name) || row.PhysicalID == "" && isUnmade(row) {
			continue
		}
		list = append(list, types.Change{Type: types.ChangeTypeResource, ResourceChange: &types.ResourceChange{
			Action:             types.ChangeActionRemove,
			LogicalResourceId:  &row.Name,
			PhysicalResourceId: &row.PhysicalID,
			ResourceType:       &row.Type,
			Scope:              []types.ResourceAttribute{},
			Details:            []types.ResourceChangeDetail{},
		}})
	}
	slices.SortFunc(list, func(a, b types.Change) int {
		return cmp.Compare(*a.ResourceChange.LogicalResourceId, *b.ResourceChange.LogicalResourceId)
	})
	return list
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
