package stacks

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/cloudformation/plan"
	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
)

// TemplateOf returns a source's template.
func (l *Loop) TemplateOf(ctx context.Context, v *state.View, s *state.Stack, row *state.StackSource) (*template.Template, error) {
	src, err := l.parsed(ctx, v, s, row)
	if err != nil {
		return nil, err
	}
	return src.Template, nil
}

// Imports checks a source that imports resources, and lists what it would change, which is nothing else. The resources are in the source by
// their logical IDs.
func (l *Loop) Imports(ctx context.Context, v *state.View, s *state.Stack, row *state.StackSource) ([]types.Change, error) {
	left := func(*template.Resource, *state.StackResource, map[string]any) (string, bool, error) {
		return "", false, nil
	}
	changes, err := l.ChangesWith(ctx, v, s, row, left)
	if err != nil {
		return nil, err
	}
	var unlisted, touched []string
	for i, c := range changes {
		r := c.ResourceChange
		id, isImport := row.Imports[*r.LogicalResourceId]
		switch {
		case isImport && r.Action == types.ChangeActionAdd:
			r.Action, r.PhysicalResourceId = types.ChangeActionImport, &id
			changes[i].ResourceChange = r
		case r.Action == types.ChangeActionAdd:
			unlisted = append(unlisted, *r.LogicalResourceId)
		default:
			touched = append(touched, *r.LogicalResourceId)
		}
	}
	switch {
	case len(unlisted) > 0:
		return nil, template.Errorf("Resources [%s] is missing from ResourceToImport list", strings.Join(unlisted, ", "))
	case len(touched) > 0:
		return nil, template.Errorf("You have modified resources [%s] in your template that are not being imported. "+
			"Update, create or delete operations cannot be executed during import operations.", strings.Join(touched, ", "))
	case len(changes) < len(row.Imports):
		return nil, template.Errorf("Resources [%s] to import are in the stack already, or not in its template",
			strings.Join(without(row.Imports, changes), ", "))
	}
	return changes, l.checkOutputs(ctx, v, s, row)
}

// without lists the resources to import that aren't among changes.
func without(imports map[string]string, changes []types.Change) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(imports)) {
		is := func(c types.Change) bool { return *c.ResourceChange.LogicalResourceId == name }
		if !slices.ContainsFunc(changes, is) {
			names = append(names, name)
		}
	}
	return names
}

// checkOutputs refuses an import whose template has other outputs than the stack.
func (l *Loop) checkOutputs(ctx context.Context, v *state.View, s *state.Stack, row *state.StackSource) error {
	src, err := l.parsed(ctx, v, s, row)
	if err != nil {
		return err
	}
	outputs, err := outputsOf(src)
	if err != nil {
		return err
	}
	if !sameOutputs(outputs, s.Outputs) {
		return template.Errorf("As part of the import operation, you cannot modify or add [Outputs]")
	}
	return nil
}

// isImporting reports whether a stack is taking resources over.
func isImporting(s *state.Stack) bool { return s.StackStatus == types.StackStatusImportInProgress }

func isImport(r *state.StackResource) bool { return strings.HasPrefix(string(r.Status), "IMPORT_") }

// isNotTakenOver reports whether the import of a resource hasn't come to its end. The resource isn't the stack's, though the row has its ID.
func isNotTakenOver(r *state.StackResource) bool { return isImport(r) && r.Ref == "" }

// imported returns the job that takes over a resource that somebody else made.
func (c *construction) imported(ctx context.Context) job {
	own, err := c.ownProperties(ctx)
	if err != nil {
		return c.refused(err)
	}
	return func(ctx context.Context) (bool, error) {
		if c.row == nil {
			if err := c.adopt(ctx); err != nil {
				return false, err
			}
		}
		return true, c.takeOver(ctx, own)
	}
}

// adopt notes that a resource is about to be taken over.
func (c *construction) adopt(ctx context.Context) error {
	row := c.fresh()
	row.Status = types.ResourceStatusImportInProgress
	row.PhysicalID, row.MadeBy = c.src.row.Imports[row.Name], ""
	c.row = row
	return c.note(ctx, row.Stack, func(tx *state.Tx, s *state.Stack) { put(tx, s, row, "Resource import started.", c.shown) })
}

// takeOver notes that a resource is the stack's, if it's there. Then it gets the stack's tags, as an update of its own.
func (c *construction) takeOver(ctx context.Context, own map[string]any) error {
	step := c.step(c.row)
	if err := c.checkIdentity(ctx, step, own); err != nil {
		return c.fail(ctx, c.row, err)
	}
	made, err := c.kind.Read(ctx, step, c.row.PhysicalID, own)
	if err != nil {
		return c.fail(ctx, c.row, err)
	}
	imported := *c.row
	imported.Status, imported.At = types.ResourceStatusImportComplete, c.opts.Account.Now()
	imported.Ref, imported.Attributes = made.Ref, made.Attributes
	tagged := imported
	tagged.Status = types.ResourceStatusUpdateComplete
	changes := c.kind.Changes(own, c.properties)
	switch {
	case plan.Replaces(changes):
		own = c.properties // the type can't change its tags, and another resource is not what was asked for
	case len(changes) > 0:
		tagged.Status = types.ResourceStatusUpdateInProgress
		if tagged.Next, err = c.seal(tagged.Stack, tagged.Name, c.properties); err != nil {
			return err
		}
	}
	if tagged.Properties, err = c.seal(tagged.Stack, tagged.Name, own); err != nil {
		return err
	}
	return c.note(ctx, imported.Stack, func(tx *state.Tx, s *state.Stack) {
		event(tx, s, &imported, "Resource import completed.", c.shown)
		begun := tagged
		begun.Status = types.ResourceStatusUpdateInProgress
		event(tx, s, &begun, "Apply stack-level tags to imported resource if applicable.", c.shown)
		tx.StackResources.Put(&tagged)
		if tagged.Status == types.ResourceStatusUpdateComplete {
			event(tx, s, &tagged, "", c.shown)
		}
	})
}

// checkIdentity checks that the resource to import is there, and that the template names no other.
func (c *construction) checkIdentity(ctx context.Context, step resources.Step, properties map[string]any) error {
	live, err := c.kind.Live(ctx, step, c.row.PhysicalID, properties)
	if err != nil {
		return err
	}
	identity, err := c.kind.Identify(ctx, step, c.row.PhysicalID, live)
	if err != nil {
		return err
	}
	for _, name := range c.kind.Identifier() {
		if said, isText := properties[name].(string); isText && said != identity[name] {
			return template.Errorf("The resource to import has the %s %s, and the template says %s", name, identity[name], said)
		}
	}
	return nil
}

// ownProperties evaluates a resource's properties without the stack's tags.
func (c *construction) ownProperties(ctx context.Context) (map[string]any, error) {
	row := *c.src.row
	row.Tags = nil
	untagged := *c.src
	untagged.row = &row
	properties, _, err := c.wanted(ctx, &untagged, c.resource)
	return properties, err
}

// unimport forgets the resources that a failed import has taken over, and those that it was to. They stay as they are.
func (l *Loop) unimport(ctx context.Context, s *state.Stack) error {
	return l.update(ctx, *s.StackId, func(tx *state.Tx, s *state.Stack) {
		for r := range tx.ResourcesOf(*s.StackId) {
			if _, isImported := s.Target.Imports[r.Name]; !isImported {
				continue
			}
			for _, status := range []types.ResourceStatus{types.ResourceStatusImportRollbackInProgress, types.ResourceStatusImportRollbackComplete} {
				left := *r
				left.Status, left.At = status, l.opts.Account.Now()
				event(tx, s, &left, "", "")
			}
			tx.StackResources.Delete(r.Key())
		}
		s.Target = nil
		l.Move(tx, s, types.StackStatusImportRollbackComplete, "")
	})
}

// Existing is a resource that is there already, under the name that a template gives to one that isn't the stack's yet.
type Existing struct {
	Resource *template.Resource
	ID       string
	// Identity are the properties and attributes that tell it from others, as NAME=VALUE.
	Identity []string
}

// Existing lists the resources of a source, among those with some names, that are there already.
func (l *Loop) Existing(ctx context.Context, v *state.View, s *state.Stack, row *state.StackSource, names []string) (list []Existing, err error) {
	src, err := l.parsed(ctx, v, s, row)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		r := src.Resource(name)
		kind := resources.Lookup(r.Type)
		if !kind.IsReadable() || len(kind.Identifier()) == 0 {
			continue
		}
		properties, err := object(src.Evaluation, r.Properties)
		if err != nil {
			return nil, err
		}
		step := l.stepOf(s, &state.StackResource{Stack: *s.StackId, Name: name})
		id := customID(kind, step, properties)
		if id == "" {
			continue
		}
		live, err := kind.Live(ctx, step, id, properties)
		if resources.IsMissing(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		identity, err := kind.Identify(ctx, step, id, live)
		if err != nil {
			return nil, err
		}
		list = append(list, Existing{r, id, pairs(identity)})
	}
	return list, nil
}

// customID returns the physical ID of a resource that has its name of the template, or "" if it hasn't.
func customID(kind resources.Type, step resources.Step, properties map[string]any) string {
	other := step
	step.Token, other.Token = "one", "other"
	if id := kind.ID(step, properties); id != "" {
		if id == kind.ID(other, properties) {
			return id
		}
		return "" // the name is a generated one
	}
	identifier := map[string]string{}
	for _, name := range kind.Identifier() {
		identifier[name], _ = template.Text(properties[name])
	}
	return kind.PhysicalID(identifier)
}

// pairs writes values as NAME=VALUE, sorted.
func pairs(values map[string]string) (list []string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		list = append(list, name+"="+values[name])
	}
	return list
}

// isImport reports whether a resource is taken over by the operation, and not made.
func (c *construction) isImport() bool {
	if c.row != nil && !isImport(c.row) || isBack(c.stack) {
		return false
	}
	_, isListed := c.src.row.Imports[c.resource.Name]
	return isListed || isImporting(c.stack)
}
