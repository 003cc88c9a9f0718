package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestStackVerb deploys a template with pintle stack, changes it, has it fail, and deletes it.
func TestStackVerb(t *testing.T) {
	t.Parallel()
	p := Up(t, "c5.large")
	template := filepath.Join(t.TempDir(), "jobs.yml")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(template, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	stack := func(code int, args ...string) string {
		t.Helper()
		cmd := p.Command(bin(t, "pintle"), append([]string{"stack"}, args...)...)
		out, _ := cmd.CombinedOutput() //nolint:errcheck // the exit code says more
		if got := cmd.ProcessState.ExitCode(); got != code {
			t.Fatalf("pintle stack %v exits with %d: %s", args, got, out)
		}
		return string(out)
	}
	expect := func(got string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(strings.Join(strings.Fields(got), " "), part) {
				t.Errorf("%q is missing in:\n%s", part, got)
			}
		}
	}
	const good = `
Parameters: {Wait: {Type: Number, Default: 30}}
Resources:
  Jobs: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: !Ref Wait}}
Outputs: {Queue: {Value: !GetAtt Jobs.QueueName, Description: where jobs go}}
`
	write(good)
	expect(stack(3, "diff", "--exit-code", template), "Add Jobs AWS::SQS::Queue")
	if got := stack(0, "ls"); strings.Contains(got, "jobs") {
		t.Errorf("the comparison has left a stack: %s", got)
	}
	expect(stack(0, "up", template, "--set", "Wait=40"), "CREATE_COMPLETE Jobs AWS::SQS::Queue", "CREATE_COMPLETE jobs", "Queue jobs-Jobs-")
	expect(stack(0, "up", template), "nothing changes") // what was set stays
	expect(stack(0, "diff", template, "--set", "Wait=50"), "Modify Jobs AWS::SQS::Queue", "False VisibilityTimeout")
	expect(stack(0, "show", "jobs"), "jobs CREATE_COMPLETE", "Wait 40", "Jobs CREATE_COMPLETE AWS::SQS::Queue", "where jobs go")
	write(strings.Replace(good, "Outputs:", "  Bad: {Type: AWS::SQS::Queue, Properties: {DelaySeconds: 1000000}}\nOutputs:", 1))
	expect(stack(1, "up", template), "the stack jobs is UPDATE_ROLLBACK_COMPLETE", "Bad: ")
	expect(stack(0, "ls"), "jobs UPDATE_ROLLBACK_COMPLETE")
	expect(stack(1, "up", template, "--name", "late"), "the stack late is ROLLBACK_COMPLETE")
	expect(stack(1, "up", template, "--name", "late"), "late is ROLLBACK_COMPLETE: it can only be deleted: pintle stack rm late")
	keep := func(code int) string { return stack(code, "up", "--disable-rollback", template, "--name", "kept") }
	expect(keep(1), "the stack kept is CREATE_FAILED", "Bad: ")
	expect(keep(1), "the stack kept is UPDATE_FAILED", "Bad: ")
	bad, err := os.ReadFile(template)
	if err != nil {
		t.Fatal(err)
	}
	write(strings.Replace(string(bad), "1000000", "10", 1))
	expect(keep(0), "CREATE_COMPLETE Bad AWS::SQS::Queue", "UPDATE_COMPLETE kept")
	write(strings.Replace(string(bad), "1000000", "2000000", 1))
	expect(keep(1), "the stack kept is UPDATE_FAILED")
	expect(stack(1, "up", template, "--name", "kept"), "kept is UPDATE_FAILED: what was made stays until", "pintle stack rollback kept")
	expect(stack(0, "rollback", "kept"), "UPDATE_ROLLBACK_COMPLETE kept")
	expect(stack(1, "rollback", "kept"), "UPDATE_ROLLBACK_COMPLETE")
	expect(stack(0, "rm", "kept"), "DELETE_COMPLETE kept")
	expect(stack(0, "rm", "jobs"), "DELETE_COMPLETE Jobs AWS::SQS::Queue")
	expect(stack(1, "show", "jobs"), "there is no stack jobs: pintle stack ls lists them")
	expect(stack(0, "types", "--prefix", "AWS::SQS::Queue"), "AWS::SQS::Queue")
	expect(stack(2, "up"), "expected a template")
}
