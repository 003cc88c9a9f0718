package cloudformation

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/cloudformation/stacks"
	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
)

// maxHierarchy is how many change sets one may have for the stacks in its stack: each template can have many others.
const maxHierarchy = 200

// hierarchy is a change set that is being made, with those of the stacks in its stack. See
// https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/change-sets-for-nested-stacks.html
type hierarchy struct {
	*Service
	view   *state.View
	in     *cloudformation.CreateChangeSetInput
	root   *state.ChangeSet
	made   []*state.ChangeSet // without the root
	stacks []*state.Stack     // the new ones
	tried  int                // stacks in stacks
}

// plan finds out what a change set changes.
func (h *hierarchy) plan(ctx context.Context, stack *state.Stack, c *state.ChangeSet) (err error) {
	if c.Changes, err = h.planned(ctx, stack, c); err != nil {
		return err
	}
	if c.ImportsExisting {
		if err := h.importExisting(ctx, stack, c); err != nil {
			return err
		}
	}
	if c.Changes, err = h.loop.Explain(ctx, h.view, stack, &c.Source, c.Changes, c.Type == types.ChangeSetTypeImport); err != nil {
		return refused(err)
	}
	isNone, err := h.isNone(ctx, h.view, stack, &c.Source, c.Changes)
	if isNone && c.Status != types.ChangeSetStatusFailed {
		failChangeSet(c, noChanges)
	}
	return err
}

func failChangeSet(c *state.ChangeSet, reason string) {
	c.Status, c.ExecutionStatus, c.Reason = types.ChangeSetStatusFailed, types.ExecutionStatusUnavailable, reason
}

// nested returns what makes the change sets of the stacks in a stack.
func (h *hierarchy) nested(ctx context.Context, parent *state.Stack, of *state.ChangeSet) stacks.Nested {
	return func(r *template.Resource, row *state.StackResource, properties map[string]any) (string, bool, error) {
		stack, token, err := h.child(parent, r, row)
		if err != nil {
			return "", false, err
		}
		if h.tried++; h.tried > maxHierarchy {
			return "", false, invalid("A change set may have change sets of %d nested stacks", maxHierarchy)
		}
		if row == nil {
			h.stacks = append(h.stacks, stack)
		}
		c := h.changeSetIn(of, stack, r.Name, row == nil)
		err = h.planIn(ctx, stack, c, properties)
		var refused smithy.APIError
		switch {
		case errors.As(err, &refused) && refused.ErrorFault() != smithy.FaultServer:
			failChangeSet(c, refused.ErrorMessage())
		case err != nil:
			return "", false, err
		case c.Reason == noChanges:
			return "", false, nil
		}
		h.made = append(h.made, c)
		if c.Status == types.ChangeSetStatusFailed {
			failChangeSet(of, "Nested change set "+c.ID+" was not successfully created: Currently in FAILED.")
		}
		of.Source.Nested[r.Name] = state.NestedChangeSet{ID: c.ID, Stack: *stack.StackId, Token: token}
		return c.ID, true, nil
	}
}

// child returns the stack that a resource is, or a new one and the token that the resource will have.
func (h *hierarchy) child(parent *state.Stack, r *template.Resource, row *state.StackResource) (*state.Stack, string, error) {
	if row != nil {
		if stack := h.view.Stacks.Get(row.PhysicalID); stack != nil {
			return stack, "", nil
		}
		return nil, "", template.Errorf("Stack [%s] does not exist", row.PhysicalID)
	}
	token := state.NewID()
	step := resources.Step{Stack: *parent.StackName, StackID: *parent.StackId, Name: r.Name, Token: token}
	stack, err := h.newStack(step.NestedName())
	if err != nil {
		return nil, "", err
	}
	stack.ParentId, stack.RootId = parent.StackId, parent.StackId
	if parent.RootId != nil {
		stack.RootId = parent.RootId
	}
	return stack, token, nil
}

// changeSetIn returns a new change set that belongs to another one.
func (h *hierarchy) changeSetIn(of *state.ChangeSet, stack *state.Stack, logical string, isNew bool) *state.ChangeSet {
	kind := types.ChangeSetTypeUpdate
	if isNew {
		kind = types.ChangeSetTypeCreate
	}
	id := state.NewUUID()
	name := h.root.Name[:min(len(h.root.Name), 60)] + "-" + logical[:min(len(logical), 30)] + "-" + id
	return &state.ChangeSet{
		ID:              h.opts.Account.ARN("cloudformation", "changeSet/"+name+"/"+id),
		Name:            name,
		Stack:           *stack.StackId,
		Type:            kind,
		Created:         h.root.Created,
		Status:          types.ChangeSetStatusCreateComplete,
		ExecutionStatus: types.ExecutionStatusAvailable,
		OnFailure:       h.root.OnFailure,
		RoleARN:         h.root.RoleARN,
		IncludesNested:  true,
		ImportsExisting: h.root.ImportsExisting,
		Parent:          of.ID,
		Root:            h.root.ID,
	}
}

// planIn finds out what changes in a stack in a stack, by the properties of the resource that it is.
func (h *hierarchy) planIn(ctx context.Context, stack *state.Stack, c *state.ChangeSet, properties map[string]any) error {
	if stacks.Depth(stack, h.find) > resources.MaxNested {
		return invalid("Stacks may be nested %d deep", resources.MaxNested)
	}
	if stack.Source != nil {
		if err := goesOnFrom(stack); err != nil {
			return err
		}
	}
	d, err := deploymentOf(properties)
	if err != nil {
		return err
	}
	d.capabilities = h.in.Capabilities
	src, err := h.source(ctx, stack, d)
	if err != nil {
		return err
	}
	c.Source = *src
	return h.plan(ctx, stack, c)
}

// find returns the stack with an ID, which may be a new one, or nil.
func (h *hierarchy) find(id string) *state.Stack {
	if at := slices.IndexFunc(h.stacks, func(s *state.Stack) bool { return *s.StackId == id }); at >= 0 {
		return h.stacks[at]
	}
	return h.view.Stacks.Get(id)
}

// deploymentOf returns what the properties of a nested stack ask it to be made of.
func deploymentOf(properties map[string]any) (deployment, error) {
	d := deployment{isReviewed: true, isNested: true, tags: []types.Tag{}}
	location, isText := template.Text(properties["TemplateURL"])
	if !isText || isLater(location) {
		return d, invalid("The TemplateURL of a nested stack must be known when a change set is created that includes it")
	}
	d.location = &location
	parameters, _ := properties["Parameters"].(map[string]any)
	for name, value := range parameters {
		text, isText := template.Text(value)
		if !isText || isLater(text) {
			d.unknown = append(d.unknown, name)
			continue
		}
		d.parameters = append(d.parameters, types.Parameter{ParameterKey: &name, ParameterValue: &text})
	}
	tags, _ := properties["Tags"].([]any)
	for _, tag := range tags {
		pair, _ := tag.(map[string]any)
		key, _ := template.Text(pair["Key"])
		value, _ := template.Text(pair["Value"])
		d.tags = append(d.tags, types.Tag{Key: &key, Value: &value})
	}
	return d, nil
}

// isLater reports whether a text has a dynamic reference, which is looked up when the stack is made.
func isLater(text string) bool { return strings.Contains(text, "{{resolve:") }

// notAlone refuses to do something with a change set that belongs to another one.
func notAlone(c *state.ChangeSet, verb string) error {
	return invalid("ChangeSet [%s] belongs to a nested stack and can only be %s with its root change set [%s]", c.ID, verb, c.Root)
}

// hasNested checks that the change sets that belong to a source are still there, and their stacks can be updated.
func hasNested(v *state.View, src *state.StackSource) error {
	for name, n := range src.Nested {
		c, stack := v.ChangeSets.Get(n.ID), v.Stacks.Get(n.Stack)
		switch {
		case c == nil || stack == nil || c.ExecutionStatus != types.ExecutionStatusAvailable:
			return invalid("The change set of the nested stack %s is not there any more. Create another change set.", name)
		case stack.InReview():
		case goesOnFrom(stack) != nil:
			return goesOnFrom(stack)
		}
		if err := hasNested(v, &c.Source); err != nil {
			return err
		}
	}
	return nil
}

// toMake returns the stack that a call makes: a new one, or the one that a change set of its parent has put into review, and that one's own.
func (s *Service) toMake(ctx context.Context, v *state.View, name string) (*state.Stack, *state.ChangeSet, error) {
	if reviewed := v.StackNamed(name); reviewed != nil && reviewed.InReview() {
		if c, err := plannedFor(v, parentOf(ctx, v, reviewed), reviewed); c != nil || err != nil {
			stack := *reviewed
			return &stack, c, err
		}
	}
	stack, err := s.newStack(name)
	return stack, nil, err
}

// plannedFor returns the change set by which the operation of a stack's parent makes or updates it, or nil if that has none for it.
func plannedFor(v *state.View, parent, stack *state.Stack) (*state.ChangeSet, error) {
	if parent == nil || parent.Target == nil {
		return nil, nil
	}
	for _, n := range parent.Target.Nested {
		if n.Stack != *stack.StackId {
			continue
		}
		if c := v.ChangeSets.Get(n.ID); c != nil {
			return c, nil
		}
		return nil, invalid("ChangeSet [%s] does not exist", n.ID)
	}
	return nil, nil
}

// sourceOf returns what a change set makes a stack of; nil if there is no change set.
func sourceOf(c *state.ChangeSet) *state.StackSource {
	if c == nil {
		return nil
	}
	return &c.Source
}
