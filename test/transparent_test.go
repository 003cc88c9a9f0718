package test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// oldBoto calls AWS by boto3 without an endpoint, as versions do that know none.
const oldBoto = `import os
del os.environ['AWS_ENDPOINT_URL']
import boto3
print(boto3.client('sts').get_caller_identity()['Arn'])
sqs = boto3.client('sqs')
url = sqs.create_queue(QueueName='old')['QueueUrl']
sqs.send_message(QueueUrl=url, MessageBody='hello')
print(url, sqs.receive_message(QueueUrl=url)['Messages'][0]['Body'])
s3 = boto3.client('s3')
s3.create_bucket(Bucket='an.old.bucket')
s3.put_object(Bucket='an.old.bucket', Key='a key', Body=b'x' * 2000000)
print(len(s3.get_object(Bucket='an.old.bucket', Key='a key')['Body'].read()))
try:
    boto3.client('dynamodb').list_tables()
except Exception as e:
    print(e)
`

// TestTransparentProcess: boto3 in a task of a plain process, and here by pintle proxy, reaches a control plane that checks signatures without
// being told of an endpoint.
func TestTransparentProcess(t *testing.T) {
	t.Parallel()
	p := UpSigned(t, "c5.large", "--transparent")
	script := filepath.Join(t.TempDir(), "old.py")
	if err := os.WriteFile(script, []byte(oldBoto), 0o644); err != nil {
		t.Fatal(err)
	}
	p.AWS("ecs", "register-task-definition", "--cli-input-json", fmt.Sprintf(`{"family":"old","taskRoleArn":"arn:aws:iam::000000000000:role/worker",
		"containerDefinitions":[{"name":"main","image":"i","memory":64,"command":["python3",%q],"environment":[{"name":"AWS_MAX_ATTEMPTS","value":"1"}],
			"logConfiguration":{"logDriver":"awslogs","options":{"awslogs-group":"old"}}}]}`, script))
	task, _ := p.run(t, "old", `{}`)
	p.Await(task, "STOPPED")
	said := p.AWS("logs", "filter-log-events", "--log-group-name", "old", "--query", "join('\n', events[].message)", "--output", "text")
	checkOld(t, said, "assumed-role/worker/")

	proxy := exec.Command(bin(t, "pintle"), "proxy", "--endpoint", p.Endpoint, "--listen", "127.0.0.1:0", "--data", t.TempDir())
	out, err := proxy.StdoutPipe()
	if err == nil {
		err = proxy.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { proxy.Process.Kill(); proxy.Wait() }) //nolint:errcheck // it is to end
	cmd := p.Command("python3", script)
	for lines := bufio.NewScanner(out); lines.Scan() && !strings.HasPrefix(lines.Text(), "#"); {
		for setting := range strings.FieldsSeq(strings.TrimPrefix(lines.Text(), "export ")) {
			cmd.Env = append(cmd.Env, setting)
		}
	}
	b, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	checkOld(t, string(b), ":root")
}

// checkOld checks what oldBoto says.
func checkOld(t *testing.T, said, caller string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(said), "\n")
	if len(lines) != 4 || !strings.Contains(lines[0], caller) || lines[1] != "https://sqs.us-east-1.amazonaws.com/000000000000/old hello" ||
		lines[2] != "2000000" || !strings.Contains(lines[3], "proxy") {
		t.Errorf("boto3 without an endpoint says %s", said)
	}
}

// transparent checks that a program that knows no endpoint but AWS's finds Pintle in its own network, and nothing else of AWS's.
func (c *containers) transparent(t *testing.T) {
	dir := t.TempDir()
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", filepath.Join(dir, "oldclient"), "./testdata/oldclient")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for network, option := range map[string]string{"bridge": "", "awsvpc": "awsvpcConfiguration={subnets=[subnet-1]}"} {
		group := "old-" + network
		c.register(t, group, "/old/oldclient; ls -l /etc/pintle/aws; touch /etc/pintle/aws/x",
			`,"mountPoints":[{"sourceVolume":"old","containerPath":"/old"}],"environment":[{"name":"NODE_EXTRA_CA_CERTS","value":"own"}],
			"logConfiguration":{"logDriver":"awslogs","options":{"awslogs-group":"`+group+`"}}`,
			`,"networkMode":"`+network+`","taskRoleArn":"arn:aws:iam::000000000000:role/worker","volumes":[{"name":"old","host":{"sourcePath":"`+dir+`"}}]`)
		options := []string{}
		if option != "" {
			options = []string{"--network-configuration", option}
		}
		c.finish(t, group, options...)
		said := c.AWS("logs", "filter-log-events", "--log-group-name", group, "--query", "join('\n', events[].message)", "--output", "text")
		for _, want := range []string{
			"<QueueUrl>https://sqs.us-east-1.amazonaws.com/000000000000/old</QueueUrl>", "<SendMessageResponse", "s3 200 OK content",
			"dynamodb failed: Get \"https://dynamodb.us-east-1.amazonaws.com/\": dial tcp: lookup dynamodb.us-east-1.amazonaws.com", "no such host",
			"bundle.pem", "Read-only file system",
		} {
			if !strings.Contains(said, want) {
				t.Errorf("%s: without %q, an old client says\n%s", network, want, said)
			}
		}
		if strings.Contains(said, "ca-key") {
			t.Errorf("%s: a container sees the authority's key:\n%s", network, said)
		}
	}
}
