package cloudformation

import (
	"fmt"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

// nestable are the templates that stacks in stacks are made from.
var nestable = bucket{
	"b one.yml": nestedText("one", ""),
	"b two.yml": nestedText("two", ""),
	"b bad.yml": nestedText("two", "  X: {Type: AWS::SSM::Parameter, DependsOn: A, Properties: {Name: taken, Type: String, Value: x}}\n"),
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

// TestIncludeNestedStacks: clients that ask for nested stacks in all change sets get them, unless there are some.
func TestIncludeNestedStacks(t *testing.T) {
	w := newWorld(t, nil)
	in := &cloudformation.CreateChangeSetInput{
		StackName: aws.String("s"), ChangeSetName: aws.String("c"), ChangeSetType: types.ChangeSetTypeCreate, TemplateBody: aws.String(nesting),
		Capabilities: acknowledgedAll, IncludeNestedStacks: aws.Bool(true),
	}
	_, err := w.CreateChangeSet(t.Context(), in)
	check(t, "a nested stack", err, "Pintle does not plan what changes in nested stacks, of which this one has some: leave IncludeNestedStacks out.")
	in.TemplateBody = aws.String(before)
	if _, err := w.CreateChangeSet(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	made, err := w.DescribeChangeSet(t.Context(), &cloudformation.DescribeChangeSetInput{StackName: in.StackName, ChangeSetName: in.ChangeSetName})
	if err != nil || !*made.IncludeNestedStacks {
		t.Errorf("got %v, %v", made, err)
	}
}
