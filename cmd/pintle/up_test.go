package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestParseInstances(t *testing.T) {
	got, err := parseInstances("--fleet", []string{"p3.16xlarge=2", "c5.2xlarge"}, 3)
	if err != nil || len(got) != 3 || got[0] != "p3.16xlarge" || got[2] != "c5.2xlarge" {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"p3.16xlarge=0", "p3.16xlarge=x", "nothing", "c5.large=4", "c5.large=9000000000000000000"} {
		if got, err := parseInstances("--fleet", []string{bad}, 3); err == nil || !strings.HasPrefix(err.Error(), "--fleet") {
			t.Errorf("%s is %d nodes, error %v", bad, len(got), err)
		}
	}
	if got, err := parseInstances("--fleet", []string{"c5.large=2", "c5.large=2"}, 3); err == nil {
		t.Errorf("together they are %v", got)
	}
}

// TestContainerFlags: what pintle up was told of containers holds for those of the local fleet's machines too.
func TestContainerFlags(t *testing.T) {
	file := filepath.Join(t.TempDir(), "a file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	given := []string{
		"--runtime=process", "--image=a=echo $X, and more", "--image=b=sleep 1", "--images=" + file, "--task-network=" + file, "--keep=5m", "--strict",
		"--awsvpc-block-imds", "--subnet=10.1.0.0/16", "--docker-host=unix:///d",
	}
	up, agent := &upCmd{}, &agentCmd{}
	parseAs(t, up.verb(), given...)
	parseAs(t, agent.verb(), up.containerFlags()...)
	agent.Metrics = up.Metrics // each node has its own
	if !reflect.DeepEqual(agent.nodeFlags, up.nodeFlags) {
		t.Errorf("the agents get %+v, want %+v", agent.nodeFlags, up.nodeFlags)
	}
	up = &upCmd{}
	parseAs(t, up.verb(), "--runtime=process")
	if got := strings.Join(up.containerFlags(), " "); got != "--runtime=process --subnet=10.213.0.0/16 --docker-host=" {
		t.Errorf("with nothing else said the agents get %s", got)
	}
}

// TestEnvironmentOfOtherShells: the command that pintle up prints leads other shells to what was started.
func TestEnvironmentOfOtherShells(t *testing.T) {
	t.Setenv("HOME", "/home/ada")
	for args, want := range map[string]string{
		"":                              `eval "$(pintle env)"`,
		"--region eu-west-1":            `eval "$(pintle env --region eu-west-1)"`,
		"--tls auto":                    `eval "$(pintle env)"`,
		"--tls auto --data /srv/pintle": `export AWS_CA_BUNDLE=/srv/pintle/tls/ca.pem && eval "$(pintle env)"`,
		"--access-key-id k --secret-access-key s": `export AWS_ACCESS_KEY_ID=k AWS_SECRET_ACCESS_KEY=… && eval "$(pintle env)"`,
	} {
		up := &upCmd{}
		parseAs(t, up.verb(), strings.Fields(args)...)
		if got := up.environment("http://127.0.0.1:4566"); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
	if got := new(upCmd).environment("http://127.0.0.1:1"); !strings.Contains(got, "--endpoint http://127.0.0.1:1") {
		t.Errorf("with another port: %s", got)
	}
}
