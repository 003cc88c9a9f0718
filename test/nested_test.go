package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestNestedStacks deploys a stack in a stack, with a part that it includes, by the AWS CLI, and changes what lies in S3 between.
func TestNestedStacks(t *testing.T) {
	t.Parallel()
	p := Up(t, "c5.large")
	dir := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	put := func(value string) {
		t.Helper()
		p.AWS("s3", "cp", write("child.yml", "Resources: {A: {Type: AWS::SSM::Parameter, Properties: {Name: /a, Type: String, Value: "+value+"}}}\n"+
			"Outputs: {Value: {Value: !GetAtt A.Value}}"), "s3://templates/child.yml")
	}
	root := write("root.yml", `
Resources:
  N: {Type: AWS::CloudFormation::Stack, Properties: {TemplateURL: '`+p.Endpoint+`/templates/child.yml'}}
  After: {Type: AWS::SSM::Parameter, Properties: {Name: /after, Type: String, Value: !GetAtt N.Outputs.Value}}
  Fn::Transform: {Name: AWS::Include, Parameters: {Location: 's3://templates/part.yml'}}
`)
	values := func() string {
		t.Helper()
		got := p.AWS("ssm", "get-parameters", "--names", "/a", "/after", "/part", "--query", "Parameters[].Value", "--output", "text")
		return strings.Join(strings.Fields(got), " ")
	}
	p.AWS("s3", "mb", "s3://templates")
	p.AWS("s3", "cp", write("part.yml", "Part: {Type: AWS::SSM::Parameter, Properties: {Name: /part, Type: String, Value: {Ref: After}}}"), "s3://templates/part.yml")
	put("one")
	changeSet := []string{"--stack-name", "s", "--change-set-name", "c"}
	p.AWS(append([]string{"cloudformation", "create-change-set", "--change-set-type", "CREATE", "--template-body", "file://" + root,
		"--include-nested-stacks", "--capabilities", "CAPABILITY_AUTO_EXPAND"}, changeSet...)...)
	p.AWS(append([]string{"cloudformation", "wait", "change-set-create-complete"}, changeSet...)...)
	nested := p.AWS(append([]string{"cloudformation", "describe-change-set", "--output", "text",
		"--query", "Changes[?ResourceChange.LogicalResourceId=='N'].ResourceChange.ChangeSetId"}, changeSet...)...)
	added := p.AWS("cloudformation", "describe-change-set", "--change-set-name", nested, "--output", "text",
		"--query", "Changes[].ResourceChange.[Action,LogicalResourceId]")
	if got := strings.Join(strings.Fields(added), " "); got != "Add A" {
		t.Errorf("the nested change set %s has %s", nested, got)
	}
	p.AWS(append([]string{"cloudformation", "execute-change-set"}, changeSet...)...)
	p.AWS("cloudformation", "wait", "stack-create-complete", "--stack-name", "s")
	if got := values(); got != "one one /after" {
		t.Errorf("the parameters are %s", got)
	}
	put("two")
	p.AWS("cloudformation", "deploy", "--stack-name", "s", "--template-file", root, "--capabilities", "CAPABILITY_AUTO_EXPAND")
	if got := values(); got != "two two /after" {
		t.Errorf("after the child's change the parameters are %s", got)
	}
	p.AWS("cloudformation", "delete-stack", "--stack-name", "s")
	p.AWS("cloudformation", "wait", "stack-delete-complete", "--stack-name", "s")
}
