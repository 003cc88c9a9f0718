package cloudformation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

// prepareAll makes the change set c of the stack s with those of the stacks in it.
func (w *world) prepareAll(kind types.ChangeSetType, text string) *cloudformation.DescribeChangeSetOutput {
	w.t.Helper()
	_, err := w.CreateChangeSet(w.t.Context(), &cloudformation.CreateChangeSetInput{
		StackName: aws.String("s"), ChangeSetName: aws.String("c"), ChangeSetType: kind, TemplateBody: &text,
		Capabilities: acknowledgedAll, IncludeNestedStacks: aws.Bool(true),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return w.changeSetOf("c")
}

// changeSetOf describes a change set by its ID, or by its name in the stack s.
func (w *world) changeSetOf(id string) *cloudformation.DescribeChangeSetOutput {
	w.t.Helper()
	set, err := w.DescribeChangeSet(w.t.Context(), &cloudformation.DescribeChangeSetInput{StackName: aws.String("s"), ChangeSetName: &id})
	if err != nil {
		w.t.Fatal(err)
	}
	return set
}

// shownChanges lists what a change set changes, with the change sets of nested stacks in brackets.
func (w *world) shownChanges(set *cloudformation.DescribeChangeSetOutput) string {
	var list []string
	for _, c := range set.Changes {
		line := fmt.Sprint(c.ResourceChange.Action, " ", *c.ResourceChange.LogicalResourceId)
		if id := c.ResourceChange.ChangeSetId; id != nil {
			line += " [" + w.shownChanges(w.changeSetOf(*id)) + "]"
		}
		list = append(list, line)
	}
	return strings.Join(list, ", ")
}

// statuses lists the statuses of all stacks.
func (w *world) statuses() string {
	var list []string
	for s := range w.store.View().Stacks.All() {
		list = append(list, string(s.StackStatus))
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// TestNestedChangeSets: a change set shows what changes in the stacks in its stack, and is executed and deleted with theirs.
func TestNestedChangeSets(t *testing.T) {
	w := newWorld(t, nil)
	root := w.prepareAll(types.ChangeSetTypeCreate, deeper)
	if got := w.shownChanges(root); got != "Add After, Add N [Add M [Add A]], Add P" || !*root.IncludeNestedStacks || root.RootChangeSetId != nil {
		t.Fatalf("it changes %s: %+v", got, root)
	}
	nested := w.changeSetOf(*root.Changes[1].ResourceChange.ChangeSetId)
	deepest := w.changeSetOf(*nested.Changes[0].ResourceChange.ChangeSetId)
	if *nested.ParentChangeSetId != *root.ChangeSetId || *nested.RootChangeSetId != *root.ChangeSetId ||
		*deepest.ParentChangeSetId != *nested.ChangeSetId || *deepest.RootChangeSetId != *root.ChangeSetId {
		t.Errorf("%v and %v are those of %s", nested, deepest, *root.ChangeSetId)
	}
	if p := nested.Parameters[0]; *p.ParameterValue != "{{changeSet:KNOWN_AFTER_APPLY}}" {
		t.Errorf("the parameter is %s", *p.ParameterValue)
	}
	if got := w.statuses(); got != "REVIEW_IN_PROGRESS, REVIEW_IN_PROGRESS, REVIEW_IN_PROGRESS" {
		t.Errorf("the stacks are %s", got)
	}
	alone := "ChangeSet [" + *nested.ChangeSetId + "] belongs to a nested stack and can only be %s with its root change set [" + *root.ChangeSetId + "]"
	_, err := w.ExecuteChangeSet(t.Context(), &cloudformation.ExecuteChangeSetInput{ChangeSetName: nested.ChangeSetId})
	check(t, "alone", err, fmt.Sprintf(alone, "executed"))
	_, err = w.DeleteChangeSet(t.Context(), &cloudformation.DeleteChangeSetInput{ChangeSetName: deepest.ChangeSetId})
	if err == nil {
		t.Error("a nested change set was deleted alone")
	}
	if _, err := w.DeleteChangeSet(t.Context(), &cloudformation.DeleteChangeSetInput{ChangeSetName: root.ChangeSetId}); err != nil {
		t.Fatal(err)
	}
	if got := w.statuses(); got != "DELETE_COMPLETE, DELETE_COMPLETE, REVIEW_IN_PROGRESS" || w.store.View().ChangeSets.Len() != 0 {
		t.Errorf("the stacks are %s, with %d change sets", got, w.store.View().ChangeSets.Len())
	}
	w.prepareAll(types.ChangeSetTypeCreate, deeper)
	w.put("two") // too late
	w.executes()
	w.expect(types.StackStatusCreateComplete)
	if got := w.parameters(); got != "the parent is one, the parent is one, parent" {
		t.Errorf("there are %s: %s", got, w.reasons())
	}
	for c := range w.store.View().ChangeSets.All() {
		if c.ExecutionStatus != types.ExecutionStatusExecuteComplete {
			t.Errorf("%s is %s", c.Name, c.ExecutionStatus)
		}
	}
	update := w.prepareAll(types.ChangeSetTypeUpdate, deeper)
	if got := w.shownChanges(update); got != "Modify After, Modify N [Modify M [Modify A]]" {
		t.Errorf("it changes %s", got)
	}
	w.put("one") // which it is already
	w.executes()
	w.expect(types.StackStatusUpdateComplete)
	if got := w.parameters(); got != "the parent is two, the parent is two, parent" {
		t.Errorf("there are %s: %s", got, w.reasons())
	}
	w.remove("s")
	if got := w.parameters(); got != "" {
		t.Errorf("%s are left", got)
	}
}

// TestNestedChangeSetsWithout: stacks in which nothing changes have no change set, and aren't touched.
func TestNestedChangeSetsWithout(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", deeper)
	if set := w.prepareAll(types.ChangeSetTypeUpdate, deeper); set.Status != types.ChangeSetStatusFailed || *set.StatusReason != noChanges {
		t.Errorf("got %s: %v", set.Status, set.StatusReason)
	}
	if _, err := w.DeleteChangeSet(t.Context(), &cloudformation.DeleteChangeSetInput{StackName: aws.String("s"), ChangeSetName: aws.String("c")}); err != nil {
		t.Fatal(err)
	}
	set := w.prepareAll(types.ChangeSetTypeUpdate, strings.Replace(deeper, "Outputs: {", "Outputs: {More: {Value: more}, ", 1))
	if got := w.shownChanges(set); got != "" || set.Status != types.ChangeSetStatusCreateComplete {
		t.Errorf("%s: it changes %s", set.Status, got)
	}
	w.put("two")
	w.executes()
	w.expect(types.StackStatusUpdateComplete)
	if got := w.statuses(); got != "CREATE_COMPLETE, CREATE_COMPLETE, UPDATE_COMPLETE" {
		t.Errorf("the stacks are %s", got)
	}
	if got := w.parameters(); got != "the parent is one, the parent is one, parent" {
		t.Errorf("there are %s", got)
	}
}

// TestNestedChangeSetsFail: what is wrong in a nested stack fails its change set and those that it belongs to.
func TestNestedChangeSetsFail(t *testing.T) {
	itself := "Resources: {N: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: 'https://b.s3.amazonaws.com/own.yml'}}}"
	for _, c := range []struct{ name, text, want string }{
		{"no template", at("nope.yml"), "S3 error: The specified key does not exist."},
		{"itself", itself, "Stacks may be nested 8 deep"},
		{"unknown", strings.Replace(nesting, "https://b.s3.amazonaws.com/one.yml", "!Ref P", 1), "The TemplateURL of a nested stack must be known when a change set is created that includes it"},
		{"parameters", strings.Replace(nesting, "{Given: ", "{Other: ", 1), "Parameters: [Other] do not exist in the template"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, nil)
			root := w.prepareAll(types.ChangeSetTypeCreate, c.text)
			set := root
			for range 20 {
				want := c.want
				at := slices.IndexFunc(set.Changes, func(c types.Change) bool { return c.ResourceChange.ChangeSetId != nil })
				if at >= 0 {
					want = "Nested change set " + *set.Changes[at].ResourceChange.ChangeSetId + " was not successfully created: Currently in FAILED."
				}
				if set.Status != types.ChangeSetStatusFailed || set.ExecutionStatus != types.ExecutionStatusUnavailable || *set.StatusReason != want {
					t.Fatalf("%s is %s: %v, want %s", *set.ChangeSetName, set.Status, aws.ToString(set.StatusReason), want)
				}
				if at < 0 {
					break
				}
				set = w.changeSetOf(*set.Changes[at].ResourceChange.ChangeSetId)
			}
			if set == root {
				t.Error("there are no nested change sets")
			}
			w.remove("s")
			if got := w.statuses(); strings.Contains(got, "REVIEW") || w.store.View().ChangeSets.Len() != 0 {
				t.Errorf("the stacks are %s, with %d change sets", got, w.store.View().ChangeSets.Len())
			}
		})
	}
}

// TestNestedChangeSetGone: a root change set isn't executed once one of its nested stacks has changed.
func TestNestedChangeSetGone(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", nesting)
	w.put("two")
	w.prepareAll(types.ChangeSetTypeUpdate, nesting)
	id := w.ids()["N"]
	_, err := w.CreateChangeSet(t.Context(), &cloudformation.CreateChangeSetInput{
		StackName: &id, ChangeSetName: aws.String("own"), TemplateBody: aws.String(nestable["b two.yml"]),
		Parameters: []types.Parameter{{ParameterKey: aws.String("Given"), UsePreviousValue: aws.Bool(true)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.ExecuteChangeSet(t.Context(), &cloudformation.ExecuteChangeSetInput{StackName: &id, ChangeSetName: aws.String("own")}); err != nil {
		t.Fatal(err)
	}
	w.settle()
	_, err = w.ExecuteChangeSet(t.Context(), &cloudformation.ExecuteChangeSetInput{StackName: aws.String("s"), ChangeSetName: aws.String("c")})
	check(t, "gone", err, "The change set of the nested stack N is not there any more. Create another change set.")
}

// TestNestedChangeSetsRolledBack: of a creation that fails, no stack stays in review.
func TestNestedChangeSetsRolledBack(t *testing.T) {
	w := newWorld(t, nil)
	w.take("taken")
	text := strings.Replace(nesting, "Value: parent", "Value: parent, Name: taken", 1)
	w.prepareAll(types.ChangeSetTypeCreate, text)
	w.executes()
	w.expect(types.StackStatusRollbackComplete)
	if got := w.statuses(); got != "DELETE_COMPLETE, ROLLBACK_COMPLETE" {
		t.Errorf("the stacks are %s", got)
	}
}

// TestNestedChangeSetsKilledAtEachWrite: the execution of change sets ends as it would have, whenever it's killed.
func TestNestedChangeSetsKilledAtEachWrite(t *testing.T) {
	for _, c := range []struct {
		name    string
		prepare func(*world)
		want    types.StackStatus
	}{
		{"create", func(w *world) { w.prepareAll(types.ChangeSetTypeCreate, deeper) }, types.StackStatusCreateComplete},
		{"create, failing", func(w *world) { w.prepareAll(types.ChangeSetTypeCreate, changedDeeperBad) }, types.StackStatusRollbackComplete},
		{"update", func(w *world) { w.create("s", nesting); w.put("two"); w.prepareAll(types.ChangeSetTypeUpdate, changed) }, types.StackStatusUpdateComplete},
		{"update, failing", func(w *world) {
			w.create("s", nesting)
			w.put("two")
			w.prepareAll(types.ChangeSetTypeUpdate, changedBad)
		}, types.StackStatusUpdateRollbackComplete},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.take("taken")
			c.prepare(w)
			from := len(w.wrote)
			delete(w.texts, "b one.yml") // nobody reads it any more
			w.executes()
			w.expect(c.want)
			want := w.summary()
			tried := 0
			for i, rows := range kills(w.wrote[from:]) {
				again := newWorld(t, rows)
				delete(again.texts, "b one.yml")
				if s := find(again.store.View(), again.onlyStack()); s.InReview() || !s.Busy() {
					continue
				}
				tried++
				again.settle()
				if got := again.summary(); got != want {
					t.Fatalf("killed after write %d of %d:\n%s\n\nwithout:\n%s", i+1, len(w.wrote)-from, got, want)
				}
			}
			if tried < 10 / *killsEvery {
				t.Errorf("only %d kills were tried", tried)
			}
		})
	}
}
