package stacks

import (
	"context"
	"encoding/json"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
)

// KnownAfterApply is what CloudFormation shows for a value that isn't known before a change set is executed.
const KnownAfterApply = "{{changeSet:KNOWN_AFTER_APPLY}}"

// Explain returns a source's changes with what they come from, and what the resources are before and after: as JSON, with what the templates
// conceal concealed.
func (l *Loop) Explain(
	ctx context.Context, v *state.View, s *state.Stack, row *state.StackSource, changes []types.Change, isImport bool,
) ([]types.Change, error) {
	after, err := l.parsed(ctx, v, s, row)
	if err != nil {
		return nil, err
	}
	before := &source{Template: &template.Template{}}
	if latest := s.Latest(); latest != nil {
		if before, err = l.parsed(ctx, v, s, latest); err != nil {
			return nil, err
		}
	}
	changes = explained(before, after, changes, isImport)
	addContexts(before, after, changes)
	return changes, nil
}

// addContexts adds to changes what the resources are before and after.
func addContexts(before, after *source, changes []types.Change) {
	for _, c := range changes {
		r := c.ResourceChange
		if isRestatement(r) {
			continue
		}
		if r.Replacement == types.ReplacementFalse {
			after.rows[*r.LogicalResourceId] = unsettled(after.rows[*r.LogicalResourceId])
		} else {
			delete(after.rows, *r.LogicalResourceId)
		}
	}
	for _, c := range changes {
		r := c.ResourceChange
		r.BeforeContext = before.context(*r.LogicalResourceId)
		r.AfterContext = after.context(*r.LogicalResourceId)
	}
}

// unsettled returns the row of a resource that changes in place, whose attributes aren't known before it has.
func unsettled(row *state.StackResource) *state.StackResource {
	kept := *row
	kept.Next, kept.Attributes = nil, map[string]any{}
	for _, name := range resources.Lookup(row.Type).Attributes() {
		kept.Attributes[name] = template.Unknown{}
	}
	return &kept
}

// resourceContext is a resource as BeforeContext and AfterContext of a change show it.
type resourceContext struct {
	Properties          any             `json:",omitempty"`
	Metadata            json.RawMessage `json:",omitempty"`
	UpdateReplacePolicy string          `json:",omitempty"`
	DeletionPolicy      string          `json:",omitempty"`
}

// context shows a resource as a source has it; nil if it hasn't, or if it can't be told any more.
func (src *source) context(name string) *string {
	r := src.Resource(name)
	if r == nil || !src.Has(r.Condition) {
		return nil
	}
	properties, err := object(src.shown, r.Properties)
	if err != nil {
		return nil
	}
	if resources.Lookup(r.Type).HasTags() {
		addTags(properties, src.row.Tags)
	}
	shown := resourceContext{UpdateReplacePolicy: r.UpdateReplacePolicy, DeletionPolicy: r.DeletionPolicy}
	if len(properties) > 0 {
		shown.Properties = asTexts(properties)
	}
	if metadata := src.metadata(r); metadata != "" {
		shown.Metadata = json.RawMessage(metadata)
	}
	text, err := json.Marshal(shown)
	if err != nil {
		return nil
	}
	return new(string(text))
}

// asTexts returns an evaluated value with texts for its scalars, as CloudFormation shows them.
func asTexts(v any) any {
	switch v := v.(type) {
	case template.Unknown:
		return KnownAfterApply
	case map[string]any:
		out := map[string]any{}
		for name, field := range v {
			out[name] = asTexts(field)
		}
		return out
	case []any:
		out := []any{}
		for _, item := range v {
			out = append(out, asTexts(item))
		}
		return out
	}
	text, _ := template.Text(v)
	return text
}
