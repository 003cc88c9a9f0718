package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCompare compares what two control planes, one of them in AWS's place, and a published schema say of a template. Nothing is left of it.
func TestCompare(t *testing.T) {
	t.Parallel()
	here, there := Up(t, "c5.large"), Up(t, "c5.large")
	dir := t.TempDir()
	file := filepath.Join(dir, "jobs.yml")
	compare := func(template, want string, args ...string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(template), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := here.Command(bin(t, "pintle"), append([]string{"compare", "--exit-code", file}, args...)...)
		out, err := cmd.CombinedOutput()
		if code := cmd.ProcessState.ExitCode(); (code == 0) != (want == "nothing differs") || code != 0 && code != 3 {
			t.Errorf("it exits with %d (%v): %s", code, err, out)
		}
		if got := strings.Join(strings.Fields(string(out)), " "); !strings.Contains(got, want) {
			t.Errorf("%s\nis not in: %s", want, got)
		}
	}
	const good = "Resources: {Jobs: {Type: AWS::SQS::Queue, Properties: {VisibilityTimeout: 40}}}"
	compare(good, "nothing differs", "--aws-endpoint", there.Endpoint)
	if err := os.WriteFile(file, []byte(strings.Replace(good, "40", "30", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	there.AWS("cloudformation", "deploy", "--stack-name", "jobs", "--template-file", file)
	compare(good, "Jobs Modify AWS::SQS::Queue, because of VisibilityTimeout Add AWS::SQS::Queue", "--aws-endpoint", there.Endpoint)
	compare(strings.Replace(good, "Queue,", "Kiosk,", 1), "refused: Template format error: Unrecognized resource types: [AWS::SQS::Kiosk]",
		"--aws-endpoint", there.Endpoint)

	schema := `{"typeName": "AWS::SQS::Queue", "properties": {"QueueName": {"type": "string"}}, "additionalProperties": false}`
	if err := os.WriteFile(filepath.Join(dir, "queue.json"), []byte(schema), 0o600); err != nil {
		t.Fatal(err)
	}
	compare("Resources: {Jobs: {Type: AWS::SQS::Queue}}", "nothing differs", "--schemas", dir)
	compare(good, "Jobs VisibilityTimeout: AWS has no such property -", "--schemas", dir)

	if got := here.AWS("cloudformation", "list-stacks", "--query", "StackSummaries[?StackStatus!='DELETE_COMPLETE']", "--output", "text"); got != "" {
		t.Errorf("there are stacks: %s", got)
	}
}
