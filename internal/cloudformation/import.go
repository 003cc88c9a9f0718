package cloudformation

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
)

// checkImport refuses change sets that import and don't say what, or the other way round.
func checkImport(in *cloudformation.CreateChangeSetInput) error {
	isImport := in.ChangeSetType == types.ChangeSetTypeImport
	switch {
	case isImport && aws.ToBool(in.ImportExistingResources):
		return invalid("ImportExistingResources cannot be specified for change sets of type IMPORT, whose resources ResourcesToImport lists")
	case isImport && len(in.ResourcesToImport) == 0:
		return invalid("ResourcesToImport must be specified for change sets of type IMPORT")
	case !isImport && len(in.ResourcesToImport) > 0:
		return invalid("ResourcesToImport can only be specified for change sets of type IMPORT")
	}
	return nil
}

// planImport notes in a source which resources it imports, and lists them as changes.
func (s *Service) planImport(
	ctx context.Context, v *state.View, stack *state.Stack, src *state.StackSource, asked []types.ResourceToImport,
) ([]types.Change, error) {
	t, err := s.loop.TemplateOf(ctx, v, stack, src)
	if err != nil {
		return nil, refused(err)
	}
	if err := keptByPolicy(t, asked); err != nil {
		return nil, err
	}
	src.Imports = map[string]string{}
	for _, r := range asked {
		id, err := imported(v, t, r)
		if err != nil {
			return nil, err
		}
		if _, twice := src.Imports[*r.LogicalResourceId]; twice {
			return nil, invalid("Resource %s is in ResourcesToImport twice", *r.LogicalResourceId)
		}
		for other, taken := range src.Imports {
			if taken == id && t.Resource(other).Type == *r.ResourceType {
				return nil, invalid("Resources %s and %s to import are the same", other, *r.LogicalResourceId)
			}
		}
		src.Imports[*r.LogicalResourceId] = id
	}
	changes, err := s.loop.Imports(ctx, v, stack, src)
	return changes, refused(err)
}

// keptByPolicy checks that a template says of each resource to import what becomes of it when it isn't the stack's any more.
func keptByPolicy(t *template.Template, asked []types.ResourceToImport) error {
	var careless []string
	for _, r := range asked {
		if is := t.Resource(*r.LogicalResourceId); is != nil && is.DeletionPolicy == "" {
			careless = append(careless, *r.LogicalResourceId)
		}
	}
	if len(careless) == 0 {
		return nil
	}
	return invalid("The following resources to import [%s] must have DeletionPolicy attribute specified in the template.", strings.Join(careless, ", "))
}

// imported returns the physical ID of a resource to import.
func imported(v *state.View, t *template.Template, r types.ResourceToImport) (string, error) {
	is := t.Resource(*r.LogicalResourceId)
	switch {
	case is == nil:
		return "", invalid("Resource %s to import is not in the template", *r.LogicalResourceId)
	case is.Type != *r.ResourceType:
		return "", invalid("Resource %s to import is of type %s in the template, not %s", is.Name, is.Type, *r.ResourceType)
	}
	kind := resources.Lookup(is.Type)
	if !isImportable(kind) {
		return "", invalid("ResourceTypes [%s] are not supported for Import", is.Type)
	}
	id := kind.PhysicalID(r.ResourceIdentifier)
	if id == "" || len(r.ResourceIdentifier) != len(kind.Identifier()) {
		return "", invalid("Resource %s to import must be identified by [%s]", is.Name, strings.Join(kind.Identifier(), ", "))
	}
	if holder := holderOf(v, is.Type, id); holder != "" {
		return "", invalid("Resource %s already exists in stack %s", id, holder)
	}
	return id, nil
}

// holderOf returns the ID of the stack that has a resource, or "".
func holderOf(v *state.View, kind, id string) string {
	for r := range v.StackResources.All() {
		if stack := v.Stacks.Get(r.Stack); r.PhysicalID == id && r.Type == kind && stack != nil && !stack.Gone() && isHeld(r) {
			return r.Stack
		}
	}
	return ""
}

// importExisting has a change set import those of the resources it adds that are there already under the names the template gives them. See
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/import-resources-automatically.html
func (h *hierarchy) importExisting(ctx context.Context, stack *state.Stack, c *state.ChangeSet) error {
	added := map[string]*types.ResourceChange{}
	for _, change := range c.Changes {
		if r := change.ResourceChange; r.Action == types.ChangeActionAdd {
			added[*r.LogicalResourceId] = r
		}
	}
	found, err := h.loop.Existing(ctx, h.view, stack, &c.Source, slices.Sorted(maps.Keys(added)))
	if err != nil {
		return refused(err)
	}
	var careless []string
	c.Source.Imports = map[string]string{}
	for _, r := range found {
		if holder := holderOf(h.view, r.Resource.Type, r.ID); holder != "" {
			failChangeSet(c, fmt.Sprintf("Resource %s already exists in stack %s", r.ID, holder))
			return nil
		}
		if policy := r.Resource.DeletionPolicy; policy != "Retain" && policy != "RetainExceptOnCreate" {
			careless = append(careless, r.Resource.Name+" ({"+strings.Join(r.Identity, ", ")+"})")
		}
		c.Source.Imports[r.Resource.Name] = r.ID
		change := added[r.Resource.Name]
		change.Action, change.PhysicalResourceId = types.ChangeActionImport, &r.ID
	}
	if len(careless) > 0 {
		failChangeSet(c, "CloudFormation is attempting to import some resources because they already exist in your account. The resources must "+
			"have the DeletionPolicy attribute set to 'Retain' or 'RetainExceptOnCreate' in the template for successful import. "+
			"The affected resources are "+strings.Join(careless, ", "))
	}
	return nil
}

// isHeld reports whether a stack has a resource.
func isHeld(r *state.StackResource) bool {
	switch r.Status {
	case types.ResourceStatusDeleteComplete, types.ResourceStatusDeleteSkipped, types.ResourceStatusImportFailed:
		return false
	}
	return true
}

func isImportable(kind resources.Type) bool {
	return kind != nil && kind.IsReadable() && len(kind.Identifier()) > 0
}

// identifiers tells by what the resources of a template can be imported.
func identifiers(t *template.Template) (list []types.ResourceIdentifierSummary) {
	for i := range t.Resources {
		r := &t.Resources[i]
		kind := resources.Lookup(r.Type)
		if !isImportable(kind) {
			continue
		}
		at := slices.IndexFunc(list, func(s types.ResourceIdentifierSummary) bool { return *s.ResourceType == r.Type })
		if at < 0 {
			at = len(list)
			list = append(list, types.ResourceIdentifierSummary{ResourceType: &r.Type, ResourceIdentifiers: kind.Identifier()})
		}
		list[at].LogicalResourceIds = append(list[at].LogicalResourceIds, r.Name)
	}
	return list
}
