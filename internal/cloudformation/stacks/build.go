package stacks

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/cloudformation/plan"
	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/cloudformation/stackpolicy"
	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/cloudformation/underway"
	"github.com/pintle/pintle/internal/state"
)

// atOnce is how many resources of a stack are worked on at once.
const atOnce = 8

// build brings a stack's resources nearer to what its source says.
func (l *Loop) build(ctx context.Context, s *state.Stack) (moved bool, err error) {
	v := l.rows.View()
	src, err := l.parsed(ctx, v, s, goal(s))
	if err != nil {
		return true, l.abandon(ctx, s, err)
	}
	if s.StackStatus == types.StackStatusCreateInProgress && len(src.rows) == 0 {
		_, err := l.Changes(ctx, v, s, goal(s)) // before a resource is made
		switch {
		case isServers(err):
			return false, err
		case err != nil:
			return true, l.abandon(ctx, s, err)
		}
	}
	switch reason, err := l.obstacle(ctx, v, s); {
	case err != nil:
		return false, err
	case reason != "":
		return true, l.stop(ctx, s, reason)
	}
	return l.goTowards(ctx, s, src)
}

// goTowards does what can be done now to bring a stack's resources to what its source says, or ends that part of the operation.
func (l *Loop) goTowards(ctx context.Context, s *state.Stack, src *source) (moved bool, err error) {
	policy, err := guard(s)
	if err != nil {
		return false, err
	}
	b := &building{Loop: l, stack: s, src: src, policy: policy}
	if failed, err := b.keepProtected(ctx); failed || err != nil {
		return failed, err
	}
	err = src.needs.Walk(src.Template, func(r *template.Resource, ready bool) (bool, error) { return b.isDone(ctx, r, ready) })
	if err != nil {
		return false, err
	}
	if len(b.todo) > 0 {
		return together(ctx, b.todo)
	}
	if failed := failures(l.rows.View(), s); len(failed) > 0 {
		return true, l.stop(ctx, s, haveFailed(failed))
	}
	if waits, moved, err := l.lingers(ctx, s); waits || err != nil {
		return moved, err
	}
	return true, l.built(ctx, s, src)
}

// job is something that can be done for a resource now. It reports whether anything came of it.
type job func(context.Context) (moved bool, err error)

// together does jobs at the same time.
func together(ctx context.Context, jobs []job) (moved bool, err error) {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(atOnce)
	results := make([]bool, len(jobs))
	for i, do := range jobs {
		group.Go(func() (err error) {
			results[i], err = underway.Safely(func() (bool, error) { return do(ctx) })
			return err
		})
	}
	err = group.Wait()
	for _, r := range results {
		moved = moved || r
	}
	return moved, err
}

// building finds out what can be done for a stack's resources.
type building struct {
	*Loop
	stack *state.Stack
	src   *source
	// policy is the stack policy that the resources' changes are held to, or nil.
	policy *stackpolicy.Policy
	todo   []job
}

// isDone reports whether a resource is as it's to be. If it isn't, and can be worked on, that is put on the list. It's ready once those are
// done that it needs.
func (b *building) isDone(ctx context.Context, r *template.Resource, ready bool) (bool, error) {
	if !b.src.Has(r.Condition) {
		return true, nil
	}
	if row := b.src.rows[r.Name]; !ready || row != nil && row.Failed {
		return false, nil
	}
	do, err := b.next(ctx, r)
	if do != nil {
		b.todo = append(b.todo, do)
	}
	return do == nil && err == nil, err
}

// next returns what is to be done for a resource whose needs are done, or nil if nothing is.
func (b *building) next(ctx context.Context, r *template.Resource) (job, error) {
	c := &construction{building: b, resource: r, kind: resources.Lookup(r.Type), row: b.src.rows[r.Name]}
	if c.row != nil && isSkipped(b.stack, c.row) {
		return nil, nil
	}
	if c.row != nil && isUnderWay(c.row) && !isImport(c.row) {
		c.since = c.row.At
		return c.goOn, nil
	}
	if c.row != nil && isUnmade(c.row) && !isBack(b.stack) {
		return func(ctx context.Context) (bool, error) { return b.remove(ctx, b.stack, c.row) }, nil
	}
	var err error
	if c.properties, c.shown, err = b.wanted(ctx, b.src, r); err != nil {
		return c.refused(err), nil
	}
	if c.isImport() {
		return c.imported(ctx), nil
	}
	if c.row == nil {
		return c.begin, nil
	}
	if isBack(b.stack) {
		if old, err := c.former(); old != nil || err != nil {
			return c.takeBack(old), err
		}
	}
	return c.change()
}

// construction is a resource that is being made or changed.
type construction struct {
	*building
	resource   *template.Resource
	kind       resources.Type
	row        *state.StackResource // nil if there is none yet
	properties map[string]any       // as they are to be
	shown      string
	kept       map[string]string // the attributes of the resource just created that aren't to be shown
	moved      string            // the physical ID of the resource that a change has put in the place of this one; "" if none is
	since      time.Time         // when an earlier process began to make it
}

// refused returns the job that notes that a resource's properties can't be evaluated.
func (c *construction) refused(err error) job {
	return func(ctx context.Context) (bool, error) {
		row := c.row
		if row == nil {
			row = c.fresh()
		}
		return true, c.fail(ctx, row, err)
	}
}

// fresh returns the row of a resource that isn't made yet.
func (c *construction) fresh() *state.StackResource {
	status := types.ResourceStatusCreateInProgress
	if isImporting(c.stack) {
		status = types.ResourceStatusImportInProgress
	}
	row := c.stated(state.StackResource{
		Stack:  *c.stack.StackId,
		Name:   c.resource.Name,
		Token:  tokenFor(c.stack, c.resource.Name),
		Type:   c.resource.Type,
		Status: status,
		At:     c.opts.Account.Now(),
		MadeBy: c.stack.Operation,
	})
	row.Operation = operationFor(c.stack, row)
	return row
}

// stated returns a row with what the template says of the resource besides its properties, which no call tells anybody.
func (c *construction) stated(row state.StackResource) *state.StackResource {
	row.Needs = c.src.needs[c.resource.Name]
	row.Metadata = c.src.metadata(c.resource)
	row.DeletionPolicy = c.resource.DeletionPolicy
	row.UpdateReplacePolicy = c.resource.UpdateReplacePolicy
	return &row
}

// begin makes a resource that isn't there.
func (c *construction) begin(ctx context.Context) (bool, error) {
	return true, c.start(ctx, c.fresh(), "")
}

// start notes that a resource is about to be made, and makes it.
func (c *construction) start(ctx context.Context, row *state.StackResource, reason string) error {
	old := c.row
	if err := c.kind.Check(row.Name, c.properties); err != nil {
		return c.fail(ctx, row, err)
	}
	if err := c.refuseTaken(ctx, row); err != nil {
		return c.fail(ctx, row, err)
	}
	sealed, err := c.seal(row.Stack, row.Name, c.properties)
	if err != nil {
		return err
	}
	row.Next = sealed
	err = c.note(ctx, row.Stack, func(tx *state.Tx, s *state.Stack) {
		if old != nil {
			replaced := *old
			replaced.Superseded = true
			tx.StackResources.Put(&replaced)
		}
		put(tx, s, row, reason, c.shown)
	})
	if err != nil {
		return err
	}
	c.row = row
	_, err = c.goOn(ctx)
	return err
}

// refuseTaken refuses to make a resource whose ID another one has.
func (c *construction) refuseTaken(ctx context.Context, row *state.StackResource) error {
	s := c.step(row)
	id := c.kind.ID(s, c.properties)
	if id == "" {
		return nil
	}
	there, err := c.kind.Exists(ctx, s, id, c.properties)
	switch {
	case err != nil || !there:
		return err
	case c.row != nil && c.row.PhysicalID == id:
		return template.Errorf("CloudFormation cannot update a stack when a custom-named resource requires replacing. "+
			"Rename %s and update the stack again.", id)
	}
	return template.Errorf("%s already exists", id)
}

func (c *construction) step(row *state.StackResource) resources.Step {
	s := c.stepOf(c.stack, row)
	c.kept = map[string]string{}
	s.Keep = func(attribute, secret string) { c.kept[attribute] = secret }
	s.Moved = func(id string) { c.moved = id }
	if s.Since = c.since; s.Since.IsZero() {
		return s
	}
	for r := range c.rows.View().ResourcesOf(row.Stack) {
		if r.Name == row.Name && r.Superseded {
			s.Former = append(s.Former, r.PhysicalID)
		}
	}
	return s
}

// stepOf returns what the calls for a resource need to know.
func (l *Loop) stepOf(s *state.Stack, row *state.StackResource) resources.Step {
	step := resources.Step{
		Services: l.opts.Services,
		Account:  l.opts.Account,
		Stack:    *s.StackName,
		StackID:  *s.StackId,
		Name:     row.Name,
		Token:    row.Token,
		Back:     isBack(s),

		NoRollback: s.KeepsFailures(),
		Depth:      func() int { return Depth(s, l.rows.View().Stacks.Get) },

		HandleURL: func() string { return l.handleURL(row) },
		Heard:     func(handle string) ([]state.WaitSignal, error) { return l.heard(row, handle) },
		Ask: func(ctx context.Context, q resources.Question) (*resources.Answer, error) {
			return l.ask(ctx, s.Operation, row, q)
		},
		Answered: func() (*resources.Answer, error) { return l.answered(row) },
	}
	if src := goal(s); src != nil {
		step.Capabilities = src.Capabilities
	}
	return step
}

// Depth returns how many stacks a stack is in, with itself. find returns the stack with an ID, or nil.
func Depth(s *state.Stack, find func(id string) *state.Stack) (n int) {
	for ; s != nil; n++ {
		s = find(aws.ToString(s.ParentId))
	}
	return n
}

// goOn makes or changes a resource whose row says that this has begun, and notes that it's complete once it is.
func (c *construction) goOn(ctx context.Context) (moved bool, err error) {
	if c.row.Next != nil {
		err := c.act(ctx)
		if errors.Is(err, resources.ErrPending) {
			return false, nil
		}
		if err != nil || c.row.Status == failedStatus(c.row) {
			return true, err
		}
		moved = true
	}
	settled, err := c.settle(ctx)
	return moved || settled, err
}

// act makes the call that makes or changes the resource, and notes that it was made.
func (c *construction) act(ctx context.Context) error {
	next, err := c.unseal(c.row.Stack, c.row.Name, c.row.Next)
	if err != nil {
		return err
	}
	row := *c.row
	if row.PhysicalID == "" {
		row.PhysicalID, err = c.make(ctx, next)
	} else {
		err = c.modify(ctx, next)
	}
	if errors.Is(err, resources.ErrPending) {
		return err
	}
	if err != nil {
		return c.fail(ctx, c.row, err)
	}
	made := c.row.PhysicalID == ""
	row.Properties, row.Next = row.Next, nil
	if len(c.kept) > 0 {
		if row.Secrets, err = c.seal(row.Stack, secretsOf(&row), c.kept); err != nil {
			return err
		}
	}
	former := c.row
	if c.row = &row; c.moved != "" {
		row.PhysicalID, row.Token = c.moved, state.NewID()
	}
	return c.note(ctx, row.Stack, func(tx *state.Tx, s *state.Stack) {
		if c.moved != "" {
			supersede(tx, former, &row)
		}
		tx.StackResources.Put(&row)
		if made {
			event(tx, s, &row, "Resource creation Initiated", c.shown)
		}
	})
}

// supersede has a resource deleted whose function says that another one stands for it now. What it told of that is the other one's.
func supersede(tx *state.Tx, former, by *state.StackResource) {
	old := *former
	old.Superseded, old.Next = true, nil
	tx.StackResources.Put(&old)
	if asked := tx.CustomRequests.Get(former.Key()); asked != nil {
		moved := *asked
		moved.Resource = by.Key()
		tx.CustomRequests.Delete(former.Key())
		tx.CustomRequests.Put(&moved)
	}
}

// make creates the resource. One that an earlier process made before it was killed is found again.
func (c *construction) make(ctx context.Context, properties map[string]any) (string, error) {
	s := c.step(c.row)
	if id := c.kind.ID(s, properties); id != "" {
		there, err := c.kind.Exists(ctx, s, id, properties)
		if err != nil {
			return "", err
		}
		if there {
			return id, c.kind.Complete(ctx, s, id, properties)
		}
	}
	return c.kind.Create(ctx, s, properties)
}

func (c *construction) modify(ctx context.Context, next map[string]any) error {
	before, err := c.unseal(c.row.Stack, c.row.Name, c.row.Properties)
	if err != nil {
		return err
	}
	if err := c.withoutSizes(before, next); err != nil {
		return err
	}
	s := c.step(c.row)
	err = c.kind.Update(ctx, s, c.row.PhysicalID, before, next)
	if err != nil && isBack(c.stack) && !errors.Is(err, resources.ErrPending) { // what the failed update asked for may be nothing that a call can take back
		return c.kind.Update(ctx, s, c.row.PhysicalID, next, next)
	}
	return err
}

// settle notes that a resource is complete, if it is.
func (c *construction) settle(ctx context.Context) (bool, error) {
	properties, err := c.unseal(c.row.Stack, c.row.Name, c.row.Properties)
	if err != nil {
		return false, err
	}
	s := c.step(c.row)
	settled, err := c.kind.Settled(ctx, s, c.row.PhysicalID, properties)
	if err == nil && settled {
		settled, err = c.hasSignals(ctx)
	}
	if err == nil && settled {
		settled, err = c.hasRolled(ctx)
	}
	if err != nil {
		return true, c.fail(ctx, c.row, err)
	}
	if !settled {
		return false, nil
	}
	made, err := c.kind.Read(ctx, s, c.row.PhysicalID, properties)
	if err != nil {
		return true, c.fail(ctx, c.row, err)
	}
	row := *c.row
	row.Status, row.At, row.Reason, row.Rolling = completeStatus(&row), c.opts.Account.Now(), "", nil
	row.Ref, row.Attributes = made.Ref, made.Attributes
	if isBack(c.stack) {
		row.Operation = ""
	}
	return true, c.note(ctx, row.Stack, func(tx *state.Tx, s *state.Stack) { put(tx, s, &row, "", c.shown) })
}

// change returns what changes a resource that is complete into what it's to be, or nil if it's that.
func (c *construction) change() (job, error) {
	have, err := c.standing(c.row)
	if err != nil {
		return nil, err
	}
	want := &plan.Wanted{Type: c.resource.Type, Kind: c.kind, Properties: c.properties}
	if want.WillReplace, err = c.src.replacing(c.resource); err != nil {
		return c.refused(err), nil
	}
	decided := plan.Decide(have, want).Action
	if decided != plan.Keep {
		if err := c.kind.Check(c.row.Name, c.properties); err != nil {
			return c.refused(err), nil
		}
	}
	switch decided {
	case plan.Replace, plan.MayReplace:
		if outlasts(c.stack) {
			return c.refused(template.Errorf("Replacement type updates not supported on stack with disable-rollback.")), nil
		}
		return c.allowed(stackpolicy.Replace, c.replace), nil
	case plan.Update:
		return c.allowed(stackpolicy.Modify, c.modifyInPlace), nil
	}
	return c.touch(), nil
}

// touch returns what is done for a resource that is asked for nothing else, or nil if nothing is.
func (c *construction) touch() job {
	switch {
	case isDue(c.stack, c.row) && c.forbids(stackpolicy.Modify, c.row) == nil:
		return c.modifyInPlace
	case c.isTriedAgain():
		return c.allowed(stackpolicy.Modify, c.modifyInPlace)
	case c.row.Status == types.ResourceStatusUpdateFailed:
		return c.restore
	case c.isRestated():
		return c.restate
	}
	return nil
}

// isTriedAgain reports whether a resource that has failed is to be changed once more, though it's asked for nothing else: it may have been made
// or changed and then not have become what it was to be.
func (c *construction) isTriedAgain() bool {
	hasFailed := c.row.Status == types.ResourceStatusUpdateFailed || c.row.Status == types.ResourceStatusCreateFailed
	return hasFailed && c.stack.TriesAgain() && !isBack(c.stack)
}

// isRestated reports whether something changes that no call tells anybody.
func (c *construction) isRestated() bool {
	old, now := c.row, c.stated(*c.row)
	return now.Metadata != old.Metadata || now.DeletionPolicy != old.DeletionPolicy ||
		now.UpdateReplacePolicy != old.UpdateReplacePolicy || !slices.Equal(now.Needs, old.Needs)
}

// restate notes what changes without a call.
func (c *construction) restate(ctx context.Context) (bool, error) {
	row := c.stated(*c.row)
	return true, c.note(ctx, row.Stack, func(tx *state.Tx, s *state.Stack) {
		if row.Metadata == c.row.Metadata {
			tx.StackResources.Put(row)
			return
		}
		row.Status, row.At, row.Reason = types.ResourceStatusUpdateComplete, c.opts.Account.Now(), ""
		put(tx, s, row, "", c.shown)
	})
}

// restore notes that a resource whose change was refused before a call was made is as it's to be.
func (c *construction) restore(ctx context.Context) (bool, error) {
	row := c.stated(*c.row)
	row.Status, row.At, row.Reason = types.ResourceStatusUpdateComplete, c.opts.Account.Now(), ""
	return true, c.note(ctx, row.Stack, func(tx *state.Tx, s *state.Stack) { put(tx, s, row, "", c.shown) })
}

const replacing = "Requested update requires the creation of a new physical resource; hence creating one."

func (c *construction) replace(ctx context.Context) (bool, error) {
	row := c.fresh()
	row.Status = types.ResourceStatusUpdateInProgress
	return true, c.start(ctx, row, replacing)
}

func (c *construction) modifyInPlace(ctx context.Context) (bool, error) {
	row := c.stated(*c.row)
	sealed, err := c.seal(row.Stack, row.Name, c.properties)
	if err != nil {
		return false, err
	}
	if row.Next != nil {
		row.Properties = row.Next // of an update that failed halfway, which is what there is to change
	}
	row.Status, row.At, row.Reason, row.Next = types.ResourceStatusUpdateInProgress, c.opts.Account.Now(), "", sealed
	if !isBack(c.stack) {
		row.Operation = operationFor(c.stack, row)
	}
	if err := c.note(ctx, row.Stack, func(tx *state.Tx, s *state.Stack) { put(tx, s, row, "", c.shown) }); err != nil {
		return false, err
	}
	c.row = row
	return c.goOn(ctx)
}

// former returns the resource that the one that stands has replaced, if that is what a rollback wants back.
func (c *construction) former() (*state.StackResource, error) {
	for r := range c.rows.View().ResourcesOf(c.row.Stack) {
		if r.Name != c.row.Name || !r.Superseded || isGone(r) || r.PhysicalID == "" || r.Type != c.resource.Type {
			continue
		}
		have, err := c.unseal(r.Stack, r.Name, r.Properties)
		if err != nil {
			return nil, err
		}
		if changes := c.kind.Changes(have, c.properties); !plan.Replaces(changes) {
			return r, nil
		}
	}
	return nil, nil
}

// takeBack returns the job that puts a former resource in the place of the one that replaced it.
func (c *construction) takeBack(old *state.StackResource) job {
	if old == nil {
		return nil
	}
	return func(ctx context.Context) (bool, error) {
		back, gone := *old, *c.row
		back.Superseded, gone.Superseded = false, true
		back.Status, back.At = types.ResourceStatusUpdateComplete, c.opts.Account.Now()
		return true, c.note(ctx, back.Stack, func(tx *state.Tx, s *state.Stack) {
			tx.StackResources.Put(&gone)
			put(tx, s, &back, "", c.shown)
		})
	}
}
