package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestEnvFunction: after eval "$(pintle env)", every AWS CLI gets the endpoint until AWS_ENDPOINT_URL is unset.
func TestEnvFunction(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "aws"), []byte("#!/bin/sh\necho \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	withEndpoint := "--endpoint-url http://x:1 sqs list-queues\n"
	for _, x := range []struct{ shell, script, want string }{
		{"sh", "aws sqs list-queues", withEndpoint},
		{"sh", "unset AWS_ENDPOINT_URL; aws sqs list-queues", "sqs list-queues\n"},
		{"bash", "bash -c 'aws sqs list-queues'", withEndpoint},
	} {
		c := exec.Command(x.shell, "-euc", awsFunction+"\n"+exportFunction+"\nexport AWS_ENDPOINT_URL=http://x:1\n"+x.script)
		c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		if err != nil || string(out) != x.want {
			t.Errorf("%s: got %q, %v", x.script, out, err)
		}
	}
}
