package cloudformation

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// stumbling has a resource that can't be made while there is a parameter "taken", one that needs it, and two that don't.
const stumbling = `
Parameters: {Say: {Type: String, Default: one}}
Resources:
  A: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: !Ref Say}}
  X: {Type: AWS::SSM::Parameter, DependsOn: A, Properties: {Name: taken, Type: String, Value: !GetAtt A.Value}}
  Y: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: !Ref X}}
  Z: {Type: AWS::SSM::Parameter, DependsOn: A, Properties: {Type: String, Value: z}}
Outputs: {Y: {Value: !GetAtt Y.Value}}
`

// sound is stumbling without what can't be made.
var sound = func() string {
	text, _, _ := strings.Cut(stumbling, "  X:")
	return text
}()

// createKeeping creates a stack that stays as a failure leaves it.
func (w *world) createKeeping(text string) {
	w.t.Helper()
	in := &cloudformation.CreateStackInput{StackName: aws.String("s"), TemplateBody: &text, DisableRollback: aws.Bool(true), Capabilities: acknowledgedAll}
	if _, err := w.CreateStack(w.t.Context(), in); err != nil {
		w.t.Fatal(err)
	}
	w.settle()
}

// becomeKeeping updates a stack so that it stays as a failure leaves it. Without a template it's the last one again.
func (w *world) becomeKeeping(text string) {
	w.t.Helper()
	in := &cloudformation.UpdateStackInput{StackName: aws.String("s"), DisableRollback: aws.Bool(true), Capabilities: acknowledgedAll}
	if in.TemplateBody = &text; text == "" {
		in.TemplateBody, in.UsePreviousTemplate = nil, aws.Bool(true)
	}
	if _, err := w.UpdateStack(w.t.Context(), in); err != nil {
		w.t.Fatal(err)
	}
	w.settle()
}

func (w *world) rollBack() {
	w.t.Helper()
	out, err := w.RollbackStack(w.t.Context(), &cloudformation.RollbackStackInput{StackName: aws.String("s")})
	if err != nil || *out.StackId != w.onlyStack() {
		w.t.Fatalf("got %+v, %v", out, err)
	}
	w.settle()
}

// release deletes what stood in a resource's way.
func (w *world) release() {
	statetest.Update(w.t, w.store, func(tx *state.Tx) { tx.Parameters.Delete("taken") })
}

// TestFailureIsKept: what doesn't need the resource that failed is made, and stays. An update goes on from there.
func TestFailureIsKept(t *testing.T) {
	w := newWorld(t, nil)
	w.take("taken")
	w.createKeeping(stumbling)
	w.expect(types.StackStatusCreateFailed)
	s := find(w.store.View(), "s")
	if got := *s.StackStatusReason; got != "The following resource(s) failed to create: [X]. " {
		t.Errorf("the reason is %q", got)
	}
	first := w.ids()
	if len(first) != 3 || first["A"] == "" || first["Z"] == "" || first["X"] != "" {
		t.Fatalf("there are %v", first)
	}
	in := &cloudformation.UpdateStackInput{StackName: aws.String("s"), UsePreviousTemplate: aws.Bool(true)}
	_, err := w.UpdateStack(t.Context(), in)
	check(t, "update", err, "This stack is currently in a non-terminal [CREATE_FAILED] state. To update the stack from this state, please use the "+
		"disable-rollback parameter with update-stack API. To rollback to the last known good state, use the rollback-stack API")
	w.release()
	w.becomeKeeping("")
	w.expect(types.StackStatusUpdateComplete)
	then := w.ids()
	if then["A"] != first["A"] || then["Z"] != first["Z"] || then["X"] != "taken" || then["Y"] == "" {
		t.Errorf("there are %v, and were %v", then, first)
	}
}

// TestFailureOfCreationIsRolledBack: a stack that never stood has nothing left.
func TestFailureOfCreationIsRolledBack(t *testing.T) {
	for name, more := range map[string]func(*world){
		"created": func(*world) {},
		"updated": func(w *world) { w.becomeKeeping(""); w.expect(types.StackStatusUpdateFailed) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.take("taken")
			w.createKeeping(stumbling)
			more(w)
			w.rollBack()
			w.expect(types.StackStatusRollbackComplete)
			if got := w.parameters(); got != "mine" {
				t.Errorf("there are %s", got)
			}
		})
	}
}

// TestFailureOfUpdateIsRolledBack: after however many failed updates, a rollback leads to where the stack stood.
func TestFailureOfUpdateIsRolledBack(t *testing.T) {
	w := newWorld(t, nil)
	w.take("taken")
	w.create("s", sound)
	was := w.standing()
	w.becomeKeeping(strings.Replace(stumbling, "Default: one", "Default: two", 1))
	w.expect(types.StackStatusUpdateFailed)
	if got := w.parameters(); got != "two, z, mine" {
		t.Errorf("after the first update there are %s", got)
	}
	if s := find(w.store.View(), "s"); *s.StackStatusReason != "The following resource(s) failed to create: [X]. " {
		t.Errorf("the reason is %q", *s.StackStatusReason)
	}
	w.becomeKeeping(strings.NewReplacer("Default: one", "Default: three", "Value: z", "Value: y").Replace(stumbling))
	w.expect(types.StackStatusUpdateFailed)
	if got := w.parameters(); got != "three, y, mine" {
		t.Errorf("after the second update there are %s", got)
	}
	out, err := w.DescribeStacks(t.Context(), &cloudformation.DescribeStacksInput{StackName: aws.String("s")})
	if err != nil || *out.Stacks[0].Parameters[0].ParameterValue != "three" {
		t.Errorf("got %+v, %v", out, err)
	}
	w.rollBack()
	w.expect(types.StackStatusUpdateRollbackComplete)
	if got := w.standing(); got != was {
		t.Errorf("got:\n%s\nwas:\n%s", got, was)
	}
	_, err = w.RollbackStack(t.Context(), &cloudformation.RollbackStackInput{StackName: aws.String("s")})
	check(t, "again", err, "Stack:"+w.onlyStack()+" is in UPDATE_ROLLBACK_COMPLETE state and can not be rolled back.")
}

// TestFailureIsMadeAgain: what was made and failed then is made anew.
func TestFailureIsMadeAgain(t *testing.T) {
	const text = `
Resources:
  H: {Type: AWS::CloudFormation::WaitConditionHandle}
  W: {Type: AWS::CloudFormation::WaitCondition, CreationPolicy: {ResourceSignal: {Count: 1}}, DependsOn: H}
  A: {Type: AWS::SSM::Parameter, DependsOn: W, Properties: {Type: String, Value: a}}
`
	w := newWorld(t, nil)
	signal := func(status types.ResourceSignalStatus) {
		t.Helper()
		_, err := w.SignalResource(t.Context(), &cloudformation.SignalResourceInput{
			StackName: aws.String("s"), LogicalResourceId: aws.String("W"), UniqueId: aws.String("me"), Status: status,
		})
		if err != nil {
			t.Fatal(err)
		}
		w.settle()
	}
	w.createKeeping(text)
	signal(types.ResourceSignalStatusFailure)
	w.expect(types.StackStatusCreateFailed)
	w.becomeKeeping("")
	signal(types.ResourceSignalStatusSuccess)
	w.expect(types.StackStatusUpdateComplete)
	if got := w.parameters(); got != "a" {
		t.Errorf("there are %s", got)
	}
}

// TestFailureInNestedStack: a nested stack stays as it was left, too, goes on with its parent, and is rolled back with it.
func TestFailureInNestedStack(t *testing.T) {
	t.Run("created", func(t *testing.T) {
		w := newWorld(t, nil)
		w.take("taken")
		w.createKeeping(at("bad.yml"))
		w.expect(types.StackStatusCreateFailed)
		was := w.ids()["N"]
		if nested := find(w.store.View(), was); nested.StackStatus != types.StackStatusCreateFailed {
			t.Errorf("the nested stack is %s", nested.StackStatus)
		}
		w.release()
		w.becomeKeeping("")
		w.expect(types.StackStatusUpdateComplete)
		if got := w.parameters(); got != "the parent is two, the parent is two, parent, x" || w.ids()["N"] != was {
			t.Errorf("there are %s", got)
		}
	})
	t.Run("updated", func(t *testing.T) {
		w := newWorld(t, nil)
		w.take("taken")
		w.create("s", nesting)
		was := w.standing()
		for _, text := range []string{at("bad.yml"), strings.Replace(at("bad.yml"), "Value: parent", "Value: father", 1)} {
			w.becomeKeeping(text)
			w.expect(types.StackStatusUpdateFailed)
			if nested := find(w.store.View(), w.ids()["N"]); nested.StackStatus != types.StackStatusUpdateFailed {
				t.Errorf("the nested stack is %s", nested.StackStatus)
			}
		}
		w.rollBack()
		w.expect(types.StackStatusUpdateRollbackComplete)
		if got := w.standing(); got != was {
			t.Errorf("got:\n%s\nwas:\n%s", got, was)
		}
		for s := range w.store.View().Stacks.All() {
			if s.Former != nil || s.StackStatus != types.StackStatusUpdateRollbackComplete {
				t.Errorf("%s is %s", *s.StackName, s.StackStatus)
			}
		}
	})
}

// TestFailureRefusals: what AWS doesn't do for stacks that stay as a failure leaves them.
func TestFailureRefusals(t *testing.T) {
	w := newWorld(t, nil)
	w.take("taken")
	in := &cloudformation.CreateStackInput{StackName: aws.String("s"), TemplateBody: aws.String(stumbling), OnFailure: types.OnFailureDoNothing}
	if _, err := w.CreateStack(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.expect(types.StackStatusCreateFailed)
	_, err := w.UpdateStack(t.Context(), &cloudformation.UpdateStackInput{
		StackName: aws.String("s"), UsePreviousTemplate: aws.Bool(true), DisableRollback: aws.Bool(true),
	})
	check(t, "on-failure", err, "This stack cannot be updated from [CREATE_FAILED] state because it contains [on-failure: DO_NOTHING]. "+
		"Please use disable-rollback option instead during stack creation.")
	w.rollBack()
	w.expect(types.StackStatusRollbackComplete)

	w = newWorld(t, nil)
	const cluster = "Resources: {C: {Type: AWS::ECS::Cluster, Properties: {ClusterName: first}}}"
	w.create("s", cluster)
	w.becomeKeeping(strings.Replace(cluster, "first", "second", 1))
	w.expect(types.StackStatusUpdateFailed)
	if !w.says("Replacement type updates not supported on stack with disable-rollback.") {
		t.Error(w.reasons())
	}
	w.rollBack()
	w.expect(types.StackStatusUpdateRollbackComplete)
}

// TestFailureAndChangeSets: a change set goes on from a failure if it may fail in the same way, and what is retained but made in vain goes with
// the rollback if it's asked to.
func TestFailureAndChangeSets(t *testing.T) {
	w := newWorld(t, nil)
	w.take("taken")
	w.createKeeping(strings.Replace(stumbling, "  Z: {", "  Z: {DeletionPolicy: Retain, ", 1))
	w.expect(types.StackStatusCreateFailed)
	set := &cloudformation.CreateChangeSetInput{
		StackName: aws.String("s"), ChangeSetName: aws.String("c"), UsePreviousTemplate: aws.Bool(true),
	}
	if _, err := w.CreateChangeSet(t.Context(), set); err != nil {
		t.Fatal(err)
	}
	out, err := w.DescribeChangeSet(t.Context(), &cloudformation.DescribeChangeSetInput{StackName: set.StackName, ChangeSetName: set.ChangeSetName})
	if err != nil || len(out.Changes) != 2 || out.Changes[0].ResourceChange.Action != types.ChangeActionAdd {
		t.Fatalf("got %+v, %v", out, err)
	}
	execute := &cloudformation.ExecuteChangeSetInput{StackName: set.StackName, ChangeSetName: set.ChangeSetName}
	_, err = w.ExecuteChangeSet(t.Context(), execute)
	check(t, "with rollback", err, "This stack is currently in a non-terminal [CREATE_FAILED] state. To update the stack from this state, please use "+
		"the disable-rollback parameter with execute-change-set API. To rollback to the last known good state, use the rollback-stack API")
	execute.DisableRollback = aws.Bool(true)
	if _, err := w.ExecuteChangeSet(t.Context(), execute); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.expect(types.StackStatusUpdateFailed)
	_, err = w.RollbackStack(t.Context(), &cloudformation.RollbackStackInput{StackName: aws.String("s"), RetainExceptOnCreate: aws.Bool(true)})
	if err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.expect(types.StackStatusRollbackComplete)
	if got := w.parameters(); got != "mine" {
		t.Errorf("there are %s", got)
	}
}

// TestFailuresAddUpToNoMore: a stack that fails over and over doesn't grow, and its rollback takes all of it back.
func TestFailuresAddUpToNoMore(t *testing.T) {
	w := newWorld(t, nil)
	w.take("taken")
	w.create("s", nesting)
	was := w.standing()
	size := 0
	for n := range 12 {
		w.becomeKeeping(strings.Replace(at("bad.yml"), "Value: parent", fmt.Sprintf("Value: parent%02d", n), 1))
		w.expect(types.StackStatusUpdateFailed)
		row, err := json.Marshal(find(w.store.View(), "s"))
		if err != nil {
			t.Fatal(err)
		}
		if n == 1 {
			size = len(row)
		} else if n > 1 && len(row) > size+10 {
			t.Fatalf("after %d failures the stack's row has %d bytes, and had %d after two", n+1, len(row), size)
		}
	}
	w.rollBack()
	w.expect(types.StackStatusUpdateRollbackComplete)
	if got := w.standing(); got != was {
		t.Errorf("got:\n%s\nwas:\n%s", got, was)
	}
}

// TestCancelKeepsToken: the events of a rollback have the update's token if the cancellation has none.
func TestCancelKeepsToken(t *testing.T) {
	for cancels, want := range map[string]string{"": "update", "cancel": "cancel"} {
		w := newWorld(t, nil)
		w.create("s", sound)
		_, err := w.UpdateStack(t.Context(), &cloudformation.UpdateStackInput{
			StackName: aws.String("s"), TemplateBody: aws.String(strings.Replace(sound, "one", "two", 1)), ClientRequestToken: aws.String("update"),
		})
		if err != nil {
			t.Fatal(err)
		}
		_, err = w.CancelUpdateStack(t.Context(), &cloudformation.CancelUpdateStackInput{StackName: aws.String("s"), ClientRequestToken: optional(cancels)})
		if err != nil {
			t.Fatal(err)
		}
		w.settle()
		for e := range w.store.View().EventsOf(w.onlyStack()) { // the newest is the first
			if got := aws.ToString(e.ClientRequestToken); e.ResourceStatus != "UPDATE_ROLLBACK_COMPLETE" || got != want {
				t.Errorf("the last event is %s with the token %q, not %q", e.ResourceStatus, got, want)
			}
			break
		}
	}
}

// TestFailureMakesInVain: a rollback deletes what the attempts before have made, also if it's retained otherwise and has changed since.
func TestFailureMakesInVain(t *testing.T) {
	const retained = "  Q: {Type: AWS::SSM::Parameter, DeletionPolicy: RetainExceptOnCreate, Properties: {Type: String, Value: q}}\n"
	text := strings.Replace(stumbling, "  Z: {", retained+"  Z: {", 1)
	for name, first := range map[string]func(*world){
		"creation": func(w *world) { w.createKeeping(text) },
		"update":   func(w *world) { w.create("s", sound); w.becomeKeeping(text) },
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.take("taken")
			first(w)
			w.becomeKeeping(strings.Replace(text, "Value: q", "Value: q2", 1))
			w.rollBack()
			if got := w.parameters(); strings.Contains(got, "q2") {
				t.Errorf("there are %s", got)
			}
		})
	}
	w := newWorld(t, nil)
	w.take("taken")
	w.create("s", sound+retained)
	w.becomeKeeping(strings.Replace(text, "Value: q", "Value: q2", 1))
	w.becomeKeeping(stumbling)
	w.rollBack()
	if got := w.parameters(); !strings.Contains(got, "q,") {
		t.Errorf("what stood before is gone: there are %s", got)
	}
}

// TestFailureKilledAtEachWrite: whatever write of the journal was the last before a kill, what follows a failure ends as it would have without.
func TestFailureKilledAtEachWrite(t *testing.T) {
	two := strings.Replace(stumbling, "Default: one", "Default: two", 1)
	for _, c := range []struct {
		name  string
		first func(*world)
		then  func(*world)
		want  types.StackStatus
	}{
		{"creation fails", func(*world) {}, func(w *world) { w.createKeeping(stumbling) }, types.StackStatusCreateFailed},
		{"it goes on", func(w *world) { w.createKeeping(stumbling); w.release() }, func(w *world) { w.becomeKeeping(two) }, types.StackStatusUpdateComplete},
		{"it fails again", func(w *world) { w.createKeeping(stumbling) }, func(w *world) { w.becomeKeeping(two) }, types.StackStatusUpdateFailed},
		{"it's rolled back", func(w *world) { w.createKeeping(stumbling) }, (*world).rollBack, types.StackStatusRollbackComplete},
		{"an update fails", func(w *world) { w.create("s", sound) }, func(w *world) { w.becomeKeeping(two) }, types.StackStatusUpdateFailed},
		{"the update goes on", func(w *world) { w.create("s", sound); w.becomeKeeping(stumbling); w.release() }, func(w *world) { w.becomeKeeping(two) }, types.StackStatusUpdateComplete},
		{"the update is rolled back", func(w *world) { w.create("s", sound); w.becomeKeeping(stumbling) }, (*world).rollBack, types.StackStatusUpdateRollbackComplete},
		{"two updates are rolled back", func(w *world) { w.create("s", sound); w.becomeKeeping(stumbling); w.becomeKeeping(two) }, (*world).rollBack, types.StackStatusUpdateRollbackComplete},
		{"a nested one's creation goes on", func(w *world) { w.createKeeping(at("bad.yml")); w.release() }, func(w *world) { w.becomeKeeping("") }, types.StackStatusUpdateComplete},
		{"a nested one's update goes on", func(w *world) { w.create("s", nesting); w.becomeKeeping(at("bad.yml")); w.release() }, func(w *world) { w.becomeKeeping("") }, types.StackStatusUpdateComplete},
		{"a nested one's update is rolled back", func(w *world) { w.create("s", nesting); w.becomeKeeping(at("bad.yml")); w.becomeKeeping("") }, (*world).rollBack, types.StackStatusUpdateRollbackComplete},
		{"a failed import goes on", func(w *world) { w.failImport() }, func(w *world) { w.becomeKeeping(importing) }, types.StackStatusUpdateComplete},
		{"a failed import is rolled back", func(w *world) { w.failImport(); w.take("loose") }, (*world).rollBack, types.StackStatusUpdateRollbackComplete},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.take("taken")
			c.first(w)
			begun := len(w.wrote)
			c.then(w)
			w.expect(c.want)
			want := w.summary()
			for i, rows := range kills(w.wrote[begun:]) {
				again := newWorld(t, rows)
				again.settle()
				if got := again.summary(); got != want {
					t.Fatalf("killed after write %d of %d:\n%s\n\nwithout:\n%s", i+1, len(w.wrote)-begun, got, want)
				}
			}
			if len(w.wrote)-begun < 3 {
				t.Errorf("there were only %d writes", len(w.wrote)-begun)
			}
		})
	}
}
