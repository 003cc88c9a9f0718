package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestEnvFunction: after eval "$(pintle env)" any AWS CLI is told the endpoint, and no more once it is unset.
func TestEnvFunction(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "aws"), []byte("#!/bin/sh\necho \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	for script, want := range map[string]string{
		"aws sqs list-queues":                         "--endpoint-url http://x:1 sqs list-queues\n",
		"unset AWS_ENDPOINT_URL; aws sqs list-queues": "sqs list-queues\n",
	} {
		c := exec.Command("sh", "-euc", awsFunction+"\nexport AWS_ENDPOINT_URL=http://x:1\n"+script)
		c.Env = append(os.Environ(), "PATH="+bin+":"+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("%s: got %q, %v", script, out, err)
		}
	}
}
