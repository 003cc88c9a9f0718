package stacks

import (
	"reflect"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/cloudformation/template"
)

// comparison is what a stack was made from beside what it's to be made from.
type comparison struct {
	before, after *source
	changes       map[string]*types.ResourceChange // by logical ID
}

// because returns what a change of a property comes from: the template, parameters with other values, or resources that change. For each
// parameter there are two details, as on AWS, which take the template for a second cause that isn't known to be one. See
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/using-cfn-updating-stacks-changesets-samples.html
func (c *comparison) because(name string, d types.ResourceChangeDetail) (details []types.ResourceChangeDetail) {
	property := propertyOf(d.Target)
	was, is := c.before.property(name, property), c.after.property(name, property)
	for _, e := range template.Entities(is) {
		source, evaluation := c.cause(e)
		if source == "" {
			continue
		}
		one := d
		one.ChangeSource, one.Evaluation, one.CausingEntity = source, evaluation, aws.String(e.String())
		details = append(details, one)
	}
	isOwn := !reflect.DeepEqual(was, is)
	refers := slices.ContainsFunc(details, func(d types.ResourceChangeDetail) bool { return d.ChangeSource != types.ChangeSourceParameterReference })
	switch {
	case isOwn || len(details) == 0:
		details = append(details, d)
	case !refers:
		d.Evaluation = types.EvaluationTypeDynamic
		details = append(details, d)
	}
	return details
}

// cause returns whether something that a value refers to changes, and how surely; "" if it doesn't.
func (c *comparison) cause(e template.Entity) (types.ChangeSource, types.EvaluationType) {
	if is, isParameter := c.after.values[e.Name]; isParameter {
		if was, had := c.before.values[e.Name]; had && reflect.DeepEqual(was, is) {
			return "", ""
		}
		return types.ChangeSourceParameterReference, types.EvaluationTypeStatic
	}
	r := c.changes[e.Name]
	switch {
	case r == nil || r.Action != types.ChangeActionModify:
		return "", ""
	case e.Attribute != "":
		return types.ChangeSourceResourceAttribute, types.EvaluationTypeDynamic
	case r.Replacement != types.ReplacementFalse:
		return types.ChangeSourceResourceReference, types.EvaluationTypeDynamic
	}
	return "", ""
}

// propertyOf returns the name of the property that a change is about.
func propertyOf(t *types.ResourceTargetDefinition) string {
	if t.Attribute == types.ResourceAttributeTags {
		return "Tags"
	}
	return aws.ToString(t.Name)
}

// property returns a resource's property as the template has it, or nil.
func (src *source) property(resource, name string) *template.Value {
	r := src.Resource(resource)
	if r == nil {
		return nil
	}
	return r.Properties.Get(name)
}

// explain says of each change what it comes from and what becomes of a resource that goes.
func (c *comparison) explain() {
	for name, r := range c.changes {
		if r.Action == types.ChangeActionModify {
			var details []types.ResourceChangeDetail
			for _, d := range r.Details {
				if d.ChangeSource == types.ChangeSourceDirectModification {
					details = append(details, c.because(name, d)...)
				} else {
					details = append(details, d)
				}
			}
			c.restated(r, details)
		}
		r.PolicyAction = c.policyAction(name, r)
	}
}

// restated adds to a change what changes without a call: metadata and policies.
func (c *comparison) restated(r *types.ResourceChange, details []types.ResourceChangeDetail) {
	r.Details = append([]types.ResourceChangeDetail{}, details...)
	for _, attribute := range c.attributes(*r.LogicalResourceId) {
		r.Scope = append(r.Scope, attribute)
		r.Details = append(r.Details, types.ResourceChangeDetail{
			ChangeSource: types.ChangeSourceDirectModification,
			Evaluation:   types.EvaluationTypeStatic,
			Target:       &types.ResourceTargetDefinition{Attribute: attribute, RequiresRecreation: types.RequiresRecreationNever},
		})
	}
}

// attributes lists the attributes of a resource that stays that change, besides its properties.
func (c *comparison) attributes(name string) (changed []types.ResourceAttribute) {
	was, is, row := c.before.Resource(name), c.after.Resource(name), c.before.rows[name]
	if was == nil || is == nil || row == nil || !c.after.Has(is.Condition) {
		return nil
	}
	for _, a := range []struct {
		name    types.ResourceAttribute
		differs bool
	}{
		{types.ResourceAttributeMetadata, c.after.metadata(is) != row.Metadata},
		{types.ResourceAttributeCreationPolicy, !reflect.DeepEqual(was.CreationPolicy, is.CreationPolicy)},
		{types.ResourceAttributeUpdatePolicy, !reflect.DeepEqual(was.UpdatePolicy, is.UpdatePolicy)},
		{types.ResourceAttributeDeletionPolicy, is.DeletionPolicy != row.DeletionPolicy},
		{types.ResourceAttributeUpdateReplacePolicy, is.UpdateReplacePolicy != row.UpdateReplacePolicy},
	} {
		if a.differs {
			changed = append(changed, a.name)
		}
	}
	return changed
}

// policyAction returns what becomes of a resource that goes or is replaced.
func (c *comparison) policyAction(name string, r *types.ResourceChange) types.PolicyAction {
	row := c.before.rows[name]
	switch {
	case row == nil || row.PhysicalID == "":
		return ""
	case r.Action == types.ChangeActionRemove && retains(row.DeletionPolicy):
		return types.PolicyActionRetain
	case r.Action == types.ChangeActionRemove:
		return types.PolicyActionDelete
	case r.Action != types.ChangeActionModify || r.Replacement == types.ReplacementFalse:
		return ""
	case retains(row.UpdateReplacePolicy):
		return types.PolicyActionReplaceAndRetain
	}
	return types.PolicyActionReplaceAndDelete
}

func retains(policy string) bool { return policy == "Retain" || policy == "RetainExceptOnCreate" }

// others lists the changes of resources in which nothing changes but metadata or policies.
func (c *comparison) others() (list []types.Change) {
	for i := range c.after.Resources {
		r := &c.after.Resources[i]
		row := c.before.rows[r.Name]
		if c.changes[r.Name] != nil || len(c.attributes(r.Name)) == 0 {
			continue
		}
		list = append(list, types.Change{Type: types.ChangeTypeResource, ResourceChange: &types.ResourceChange{
			Action:             types.ChangeActionModify,
			LogicalResourceId:  &r.Name,
			PhysicalResourceId: &row.PhysicalID,
			ResourceType:       &r.Type,
			Replacement:        types.ReplacementFalse,
			Scope:              []types.ResourceAttribute{},
		}})
	}
	return list
}

// explained returns a source's changes with what they come from. Resources in which metadata or policies change alone come with the others,
// unless only imports may change anything.
func explained(before, after *source, changes []types.Change, isImport bool) []types.Change {
	c := &comparison{before: before, after: after, changes: map[string]*types.ResourceChange{}}
	for _, change := range changes {
		c.changes[*change.ResourceChange.LogicalResourceId] = change.ResourceChange
	}
	if !isImport {
		for _, change := range c.others() {
			changes = append(changes, change)
			c.changes[*change.ResourceChange.LogicalResourceId] = change.ResourceChange
		}
	}
	c.explain()
	return changes
}

// isRestatement reports whether nothing changes in a resource but metadata and policies.
func isRestatement(r *types.ResourceChange) bool {
	return r.Action == types.ChangeActionModify && !slices.ContainsFunc(r.Scope, func(a types.ResourceAttribute) bool {
		return a == types.ResourceAttributeProperties || a == types.ResourceAttributeTags
	})
}
