package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestAWSBefore: an AWS CLI that doesn't take each service's endpoint from the environment gets it by a program that stands before it, also
// if no shell starts it; others are left alone.
func TestAWSBefore(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("AWS_ENDPOINT_URL", "http://x:1")
	for version, passes := range map[string]bool{"1.45.11": true, "2.9.19": true, "2.13.0": false, "2.30.1": false, "?": true} {
		bin := t.TempDir()
		script := fmt.Sprintf("#!/bin/sh\nif [ \"$1\" = --version ]; then echo aws-cli/%s Python/3; else echo \"$@\"; fi\n", version)
		if err := os.WriteFile(filepath.Join(bin, "aws"), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
		for range 2 { // the second time the program itself is on the PATH
			dir, err := awsBefore(t.Context())
			if err != nil || dir != "" != passes {
				t.Fatalf("version %s: %q, %v", version, dir, err)
			}
			if !passes {
				break
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
		}
		want := "sqs list-queues\n"
		if passes {
			want = "--endpoint-url http://x:1 " + want
		}
		if out, err := exec.Command("timeout", "60", "aws", "sqs", "list-queues").Output(); err != nil || string(out) != want {
			t.Errorf("version %s: got %q, %v", version, out, err)
		}
	}
}

// TestKeyHere: the AWS CLI's key counts, else the one that a control plane in the same shell is started with.
func TestKeyHere(t *testing.T) {
	for _, c := range []struct{ awsID, awsSecret, ownID, ownSecret, id, secret string }{
		{id: "pintle", secret: "pintle"},
		{ownID: "own", ownSecret: "s", id: "own", secret: "s"},
		{awsID: "a", awsSecret: "b", ownID: "own", ownSecret: "s", id: "a", secret: "b"},
		{awsID: "a", ownSecret: "s", id: "a", secret: "pintle"},
	} {
		t.Setenv("AWS_ACCESS_KEY_ID", c.awsID)
		t.Setenv("AWS_SECRET_ACCESS_KEY", c.awsSecret)
		t.Setenv("PINTLE_ACCESS_KEY_ID", c.ownID)
		t.Setenv("PINTLE_SECRET_ACCESS_KEY", c.ownSecret)
		if key := keyHere(); key.AccessKeyID != c.id || key.SecretAccessKey != c.secret {
			t.Errorf("%+v: %+v", c, key)
		}
	}
}

// TestDockerForCDK: what the CDK asks of docker about the account's registry is about the one at the control plane's address.
func TestDockerForCDK(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "docker"), []byte("#!/bin/sh\nprintf '<%s>' \"$@\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("AWS_ENDPOINT_URL", "http://x:1")
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	docker, err := dockerForCDK()
	if err != nil {
		t.Fatal(err)
	}
	const registry = "000000000000.dkr.ecr.us-east-1.amazonaws.com"
	for _, c := range []struct {
		words []string
		want  string
	}{
		{[]string{"login", "--username", "AWS", "--password-stdin", "https://" + registry}, "<login><--username><AWS><--password-stdin><x:1>"},
		{[]string{"tag", "cdkasset-a", registry + "/assets:a"}, "<tag><cdkasset-a><x:1/assets:a>"},
		{[]string{"build", "--build-arg", "A=a b", "--tag", "cdkasset-a", "."}, "<build><--build-arg><A=a b><--tag><cdkasset-a><.>"},
	} {
		if out, err := exec.Command(docker, c.words...).Output(); err != nil || string(out) != c.want {
			t.Errorf("%v: %s, %v", c.words, out, err)
		}
	}
}
