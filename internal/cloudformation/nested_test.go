package cloudformation

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// nestable are the templates that stacks in stacks are made from.
var nestable = bucket{
	"b one.yml": nestedText("one", ""),
	"b two.yml": nestedText("two", ""),
	"b bad.yml": nestedText("two", "  X: {Type: AWS::SSM::Parameter, DependsOn: A, Properties: {Name: taken, Type: String, Value: x}}\n"),
	"b middle.yml": "Parameters: {Given: {Type: String}}\nResources: {M: {Type: AWS::CloudFormation::Stack, Properties: " +
		"{TemplateURL: 'https://b.s3.amazonaws.com/one.yml', Parameters: {Given: !Ref Given}}}}\nOutputs: {Value: {Value: !GetAtt M.Outputs.Value}}",
	"b own.yml": "Resources: {N: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: 'https://b.s3.amazonaws.com/own.yml'}}}",
}

func nestedText(value, more string) string {
	return fmt.Sprintf(`
Parameters: {Given: {Type: String}}
Resources:
  A: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: !Sub 'the ${Given} is %s'}}
%sOutputs: {Value: {Value: !GetAtt A.Value}}
`, value, more)
}

const nesting = `
Resources:
  P: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: parent}}
  N:
    Type: AWS::CloudFormation::Stack
    Properties:
      TemplateURL: https://b.s3.amazonaws.com/one.yml
      Parameters: {Given: !GetAtt P.Value}
      Tags: [{Key: own, Value: tag}]
  After: {Type: AWS::SSM::Parameter, Properties: {Type: String, Value: !GetAtt N.Outputs.Value}}
Outputs: {Nested: {Value: !GetAtt N.Outputs.Value}}
`

// changed is nesting that says something else of its own, and changedBad fails after what it nests.
var (
	changed    = strings.Replace(nesting, "Value: parent", "Value: father", 1)
	changedBad = strings.Replace(nestingBad, "two.yml", "one.yml", 1)
)

// Of these, the nested stack has one of its own.
var (
	deeper           = strings.Replace(nesting, "one.yml", "middle.yml", 1)
	changedDeeperBad = strings.Replace(changedBad, "one.yml", "middle.yml", 1)
)

// put puts another template where that of nested stacks lies.
func (w *world) put(name string) { w.texts["b one.yml"] = nestable["b "+name+".yml"] }

// at is nesting with another template for its nested stack, and nestingBad fails once that is updated.
func at(template string) string { return strings.Replace(nesting, "one.yml", template, 1) }

var nestingBad = strings.Replace(at("two.yml"), "  P:", "  X: {Type: AWS::SSM::Parameter, DependsOn: After, Properties: {Name: taken, Type: String, Value: x}}\n  P:", 1)

// TestNestedStack follows a stack in a stack: it gets parameters, gives outputs, and is updated and deleted with its parent.
func TestNestedStack(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", nesting)
	parent := find(w.store.View(), "s")
	if parent.StackStatus != types.StackStatusCreateComplete {
		t.Fatalf("%s: %s", parent.StackStatus, w.reasons())
	}
	id := w.ids()["N"]
	out, err := w.DescribeStacks(t.Context(), &cloudformation.DescribeStacksInput{StackName: &id})
	if err != nil {
		t.Fatal(err)
	}
	nested := out.Stacks[0]
	if !strings.HasPrefix(*nested.StackName, "s-N-") || *nested.ParentId != *parent.StackId || *nested.RootId != *parent.StackId ||
		len(nested.Tags) != 1 || *nested.Outputs[0].OutputValue != "the parent is one" {
		t.Errorf("got %+v", nested)
	}
	if got := w.parameters(); got != "the parent is one, the parent is one, parent" {
		t.Errorf("there are %s", got)
	}
	w.become("s", at("two.yml"))
	if got := w.parameters(); got != "the parent is two, the parent is two, parent" {
		t.Errorf("after the update there are %s: %s", got, w.reasons())
	}
	w.remove("s")
	if got := w.parameters(); got != "" {
		t.Errorf("%s are left: %s", got, w.reasons())
	}
	if s := find(w.store.View(), id); s.StackStatus != types.StackStatusDeleteComplete {
		t.Errorf("the nested stack is %s", s.StackStatus)
	}
}

// parameters lists the values of all parameters.
func (w *world) parameters() string {
	var values []string
	for line := range strings.Lines(w.summary()) {
		if words := strings.Fields(line); words[0] == "parameter" {
			values = append(values, strings.ReplaceAll(strings.Join(words[2:], " "), "-", " "))
		}
	}
	return strings.Join(values, ", ")
}

// says reports whether the reason of an event has a text.
func (w *world) says(text string) bool {
	for e := range w.store.View().StackEvents.All() {
		if strings.Contains(aws.ToString(e.ResourceStatusReason), text) {
			return true
		}
	}
	return false
}

// TestNestedStackFails: what fails in a nested stack fails in its parent, which says so.
func TestNestedStackFails(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		status           types.StackStatus
	}{
		{"create", at("bad.yml"), "was not successfully created: The following resource(s) failed to create: [X].", types.StackStatusRollbackComplete},
		{"no template", at("nope.yml"), "The specified key does not exist.", types.StackStatusRollbackComplete},
		{"without end", "Resources: {N: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: 'https://b.s3.amazonaws.com/own.yml'}}}",
			"Stacks may be nested 8 deep", types.StackStatusRollbackComplete},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.take("taken")
			w.create("s", c.text)
			if s := find(w.store.View(), "s"); s.StackStatus != c.status || !w.says(c.want) {
				t.Errorf("it is %s: %s", s.StackStatus, w.reasons())
			}
			if got := w.parameters(); got != "mine" {
				t.Errorf("%s are left", got)
			}
			for s := range w.store.View().Stacks.All() {
				if s.ParentId != nil && s.StackStatus != types.StackStatusDeleteComplete {
					t.Errorf("%s is %s", *s.StackName, s.StackStatus)
				}
			}
		})
	}
}

// TestNestedReason: what failed in a nested stack is told by its parent, also if that looks only once the nested one was rolled back.
func TestNestedReason(t *testing.T) {
	for name, c := range map[string]struct {
		first, text, want string
	}{
		"create": {"", at("bad.yml"), " was not successfully created: The following resource(s) failed to create: [X]."},
		"update": {nesting, at("bad.yml"), " was not successfully updated. Currently in UPDATE_ROLLBACK_COMPLETE with reason: The following resource(s) failed to create: [X]."},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.take("taken")
			if c.first == "" {
				in := &cloudformation.CreateStackInput{StackName: aws.String("s"), TemplateBody: &c.text}
				if _, err := w.CreateStack(t.Context(), in); err != nil {
					t.Fatal(err)
				}
			} else {
				w.create("s", c.first)
				in := &cloudformation.UpdateStackInput{StackName: aws.String("s"), TemplateBody: &c.text}
				if _, err := w.UpdateStack(t.Context(), in); err != nil {
					t.Fatal(err)
				}
			}
			w.childFirst()
			w.settle()
			if !w.says(c.want) {
				t.Error(w.reasons())
			}
		})
	}
}

// childFirst carries out operations, and those of nested stacks to their end before their parents look at them.
func (w *world) childFirst() {
	w.t.Helper()
	for range 20 {
		for s := range w.store.View().Stacks.All() {
			for moved := s.ParentId != nil; moved; {
				var err error
				if moved, err = w.loop.Step(w.t.Context(), *s.StackId); err != nil {
					w.t.Fatal(err)
				}
			}
		}
		if _, err := w.loop.Step(w.t.Context(), w.onlyStack()); err != nil {
			w.t.Fatal(err)
		}
	}
}

// TestNestedRollback: an update that fails in a nested stack, or after it was updated, leaves both as they were.
func TestNestedRollback(t *testing.T) {
	for name, text := range map[string]string{"in it": at("bad.yml"), "after it": nestingBad} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.take("taken")
			w.create("s", nesting)
			was := w.parameters()
			w.become("s", text)
			if s := find(w.store.View(), "s"); s.StackStatus != types.StackStatusUpdateRollbackComplete || w.parameters() != was {
				t.Errorf("it is %s with %s: %s", s.StackStatus, w.parameters(), w.reasons())
			}
		})
	}
}

// TestNestedTemplateChanges: an update looks at what a nested stack's URL leads to now, however deep, and its rollback takes that back.
func TestNestedTemplateChanges(t *testing.T) {
	for _, middle := range []bool{false, true} {
		deep := func(text string) string {
			if middle {
				return strings.Replace(text, "one.yml", "middle.yml", 1)
			}
			return text
		}
		for _, c := range []struct {
			name, object, text, want string
			status                   types.StackStatus
		}{
			{"changed", "two", nesting, "the parent is two, the parent is two, parent", types.StackStatusUpdateComplete},
			{"both changed", "two", changed, "father, the father is two, the father is two", types.StackStatusUpdateComplete},
			{"the same", "one", changed, "father, the father is one, the father is one", types.StackStatusUpdateComplete},
			{"failing in it", "bad", changed, "mine, parent, the parent is one, the parent is one", types.StackStatusUpdateRollbackComplete},
			{"failing after it", "two", changedBad, "mine, parent, the parent is one, the parent is one", types.StackStatusUpdateRollbackComplete},
		} {
			t.Run(fmt.Sprint(c.name, ", deeper ", middle), func(t *testing.T) {
				w := newWorld(t, nil)
				w.create("s", deep(nesting))
				w.take("taken")
				w.put(c.object)
				w.become("s", deep(c.text))
				s := find(w.store.View(), "s")
				values := strings.Split(w.parameters(), ", ")
				slices.Sort(values)
				want := strings.Split(c.want, ", ")
				if c.status == types.StackStatusUpdateComplete {
					want = append(want, "mine")
				}
				slices.Sort(want)
				if s.StackStatus != c.status || !slices.Equal(values, want) {
					t.Errorf("it is %s with %q, want %q: %s", s.StackStatus, values, want, w.reasons())
				}
				for s := range w.store.View().Stacks.All() {
					if s.Former != nil || s.FormerOf != "" || s.StackStatus != c.status {
						t.Errorf("%s is %s, and keeps %v of %s", *s.StackName, s.StackStatus, s.Former, s.FormerOf)
					}
				}
			})
		}
	}
}

// TestNestedStackIsAlwaysAChange: nobody knows before an update what became of a nested stack's template.
func TestNestedStackIsAlwaysAChange(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", nesting)
	in := &cloudformation.CreateChangeSetInput{StackName: aws.String("s"), ChangeSetName: aws.String("c"), TemplateBody: aws.String(nesting)}
	if _, err := w.CreateChangeSet(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	set, err := w.DescribeChangeSet(t.Context(), &cloudformation.DescribeChangeSetInput{StackName: in.StackName, ChangeSetName: in.ChangeSetName})
	if err != nil || len(set.Changes) != 2 {
		t.Fatalf("got %+v, %v", set, err)
	}
	n := set.Changes[1].ResourceChange
	if *n.LogicalResourceId != "N" || n.Replacement != types.ReplacementFalse || n.Details[0].ChangeSource != types.ChangeSourceAutomatic ||
		n.Details[0].Evaluation != types.EvaluationTypeDynamic {
		t.Errorf("got %+v", n)
	}
	w.executes()
	w.expect(types.StackStatusUpdateComplete)
	nested := find(w.store.View(), w.ids()["N"])
	if nested.StackStatus != types.StackStatusUpdateComplete {
		t.Errorf("the nested stack is %s", nested.StackStatus)
	}
}

// TestNestedStackProtected: a stack policy keeps a nested stack as it is, whatever became of its template.
func TestNestedStackProtected(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", nesting)
	body := `{"Statement": [{"Effect": "Allow", "Action": "Update:*", "Principal": "*", "Resource": "*"},
		{"Effect": "Deny", "Action": "Update:*", "Principal": "*", "Resource": "LogicalResourceId/N"}]}`
	if _, err := w.SetStackPolicy(t.Context(), &cloudformation.SetStackPolicyInput{StackName: aws.String("s"), StackPolicyBody: &body}); err != nil {
		t.Fatal(err)
	}
	w.put("two")
	w.become("s", strings.Replace(nesting, "Outputs: {", "Outputs: {More: {Value: more}, ", 1))
	w.expect(types.StackStatusUpdateComplete)
	if got := w.parameters(); got != "the parent is one, the parent is one, parent" {
		t.Errorf("there are %s", got)
	}
}

// TestForceDelete: a stack that couldn't be deleted goes by force, and leaves what can't be deleted.
func TestForceDelete(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", "Resources: {C: {Type: AWS::ECS::Cluster, Properties: {ClusterName: c}}, D: {Type: AWS::ECS::Cluster, Properties: {ClusterName: d}}}")
	var held string
	statetest.Update(t, w.store, func(tx *state.Tx) {
		for c := range tx.Clusters.All() {
			if *c.ClusterName == "c" {
				held = *c.ClusterArn
			}
		}
		arn := strings.Replace(held, "cluster/", "container-instance/", 1) + "/1"
		tx.ContainerInstances.Put(&state.ContainerInstance{
			ContainerInstance: ecstypes.ContainerInstance{ContainerInstanceArn: &arn, Status: aws.String("ACTIVE")}, ClusterArn: held,
		})
	})
	remove := func(mode types.DeletionMode) error {
		_, err := w.DeleteStack(t.Context(), &cloudformation.DeleteStackInput{StackName: aws.String("s"), DeletionMode: mode})
		w.settle()
		return err
	}
	id := *find(w.store.View(), "s").StackId
	check(t, "by force before it has failed", remove(types.DeletionModeForceDeleteStack),
		"Invalid operation on stack ["+id+"]. FORCE_DELETE_STACK can be specified only for stacks in DELETE_FAILED state")
	for _, c := range []struct {
		mode types.DeletionMode
		want types.StackStatus
	}{
		{"", types.StackStatusDeleteFailed},
		{types.DeletionModeStandard, types.StackStatusDeleteFailed},
		{types.DeletionModeForceDeleteStack, types.StackStatusDeleteComplete},
	} {
		if err := remove(c.mode); err != nil {
			t.Fatal(err)
		}
		if got := find(w.store.View(), id).StackStatus; got != c.want {
			t.Errorf("deleted with mode %q, it is %s", c.mode, got)
		}
	}
	if got := w.store.View().Clusters.Get(held); got == nil || aws.ToString(got.Status) != "ACTIVE" {
		t.Errorf("what can't be deleted is %v", got)
	}
}

// TestContinueNestedRollback: a rollback that failed in a nested stack goes on there, too.
func TestContinueNestedRollback(t *testing.T) {
	w := newWorld(t, nil)
	nested := "Resources: {C: {Type: AWS::ECS::Cluster, Properties: {ClusterName: c, ClusterSettings: [{Name: containerInsights, Value: %s}]}}}"
	text := "Resources: {N: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: 'https://b.s3.amazonaws.com/one.yml'}}}"
	w.texts["b one.yml"] = fmt.Sprintf(nested, "disabled")
	w.create("s", text)
	w.texts["b one.yml"] = fmt.Sprintf(nested, "enabled")
	_, err := w.UpdateStack(t.Context(), &cloudformation.UpdateStackInput{
		StackName: aws.String("s"), TemplateBody: &text, RollbackConfiguration: &types.RollbackConfiguration{MonitoringTimeInMinutes: aws.Int32(60)},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.settle()
	var cluster *state.Cluster
	for cluster = range w.store.View().Clusters.All() {
	}
	statetest.Update(t, w.store, func(tx *state.Tx) { tx.Clusters.Delete(*cluster.ClusterArn) }) // so that it can't be changed back
	if _, err := w.CancelUpdateStack(t.Context(), &cloudformation.CancelUpdateStackInput{StackName: aws.String("s")}); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.expect(types.StackStatusUpdateRollbackFailed)
	statetest.Update(t, w.store, func(tx *state.Tx) { tx.Clusters.Put(cluster) })
	if _, err := w.ContinueUpdateRollback(t.Context(), &cloudformation.ContinueUpdateRollbackInput{StackName: aws.String("s")}); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.expect(types.StackStatusUpdateRollbackComplete)
	if s := find(w.store.View(), w.ids()["N"]); s.StackStatus != types.StackStatusUpdateRollbackComplete {
		t.Errorf("the nested stack is %s", s.StackStatus)
	}
	if got := w.store.View().Clusters.Get(*cluster.ClusterArn); *got.Settings[0].Value != "disabled" {
		t.Errorf("the setting is %s", *got.Settings[0].Value)
	}
}

// TestForcedRollback: a rollback that failed is over at once where what has failed is left as it is.
func TestForcedRollback(t *testing.T) {
	w := newWorld(t, nil)
	text := "Resources: {C: {Type: AWS::ECS::Cluster, Properties: {ClusterName: c, ClusterSettings: [{Name: containerInsights, Value: %s}]}}}"
	w.create("s", fmt.Sprintf(text, "disabled"))
	_, err := w.UpdateStack(t.Context(), &cloudformation.UpdateStackInput{
		StackName:             aws.String("s"),
		TemplateBody:          aws.String(fmt.Sprintf(text, "enabled")),
		RollbackConfiguration: &types.RollbackConfiguration{MonitoringTimeInMinutes: aws.Int32(60)},
	})
	if err != nil {
		t.Fatal(err)
	}
	w.settle()
	statetest.Update(t, w.store, func(tx *state.Tx) {
		for cluster := range tx.Clusters.All() { // so that it can't be changed back
			tx.Clusters.Delete(*cluster.ClusterArn)
		}
	})
	if _, err := w.CancelUpdateStack(t.Context(), &cloudformation.CancelUpdateStackInput{StackName: aws.String("s")}); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.expect(types.StackStatusUpdateRollbackFailed)
	in := &cloudformation.ContinueUpdateRollbackInput{
		StackName: aws.String("s"), ForceRollback: aws.Bool(true), ResourcesToSkip: []string{"C"},
	}
	if _, err := w.ContinueUpdateRollback(t.Context(), in); err == nil {
		t.Error("ForceRollback and ResourcesToSkip are taken together")
	}
	in.ResourcesToSkip = nil
	if _, err := w.ContinueUpdateRollback(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	w.settle()
	w.expect(types.StackStatusUpdateRollbackComplete)
}
