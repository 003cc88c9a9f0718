package ecs

import (
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// TestCheckCommand: what can't be a command is refused before anybody is asked.
func TestCheckCommand(t *testing.T) {
	id := aws.String(strings.Repeat("a", 32))
	for want, in := range map[string]*ecs.ExecuteCommandInput{
		"":                         {Task: id, Command: aws.String("sh -c 'echo a'"), Interactive: true},
		"taskId can not be null":   {Command: aws.String("sh"), Interactive: true},
		"taskId length":            {Task: aws.String("None"), Command: aws.String("sh"), Interactive: true},
		"Interactive is the only":  {Task: id, Command: aws.String("sh")},
		"command must not be":      {Task: id, Command: aws.String(" "), Interactive: true},
		"quotation mark":           {Task: id, Command: aws.String("sh -c 'x"), Interactive: true},
		"command has 70000 bytes,": {Task: id, Command: aws.String(strings.Repeat("x", 70000)), Interactive: true},
	} {
		_, err := checkCommand(in)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// TestExecutable: commands are executed in the container that is named, or the only one, once its agent runs.
func TestExecutable(t *testing.T) {
	agent := func(status string) []types.ManagedAgent {
		return []types.ManagedAgent{{Name: types.ManagedAgentNameExecuteCommandAgent, LastStatus: &status}}
	}
	task := func(desired string, exec bool, containers ...types.Container) *state.Task {
		return &state.Task{Task: types.Task{
			LastStatus: aws.String("RUNNING"), DesiredStatus: &desired, EnableExecuteCommand: exec, Containers: containers,
		}}
	}
	a := types.Container{Name: aws.String("a"), ManagedAgents: agent("RUNNING")}
	b := types.Container{Name: aws.String("b"), ManagedAgents: agent("RUNNING")}
	pending := types.Container{Name: aws.String("a"), ManagedAgents: agent("PENDING")}
	for name, c := range map[string]struct {
		task            *state.Task
		container, want string
		fails           string
	}{
		"the only one":  {task: task("RUNNING", true, a), want: "a"},
		"by name":       {task: task("RUNNING", true, a, b), container: "b", want: "b"},
		"of several":    {task: task("RUNNING", true, a, b), fails: "2 containers"},
		"no such":       {task: task("RUNNING", true, a), container: "x", fails: "no container x"},
		"not enabled":   {task: task("RUNNING", false, a), fails: "not enabled"},
		"not there yet": {task: task("RUNNING", true, pending), fails: "not enabled"},
		"stopping":      {task: task("STOPPED", true, a), fails: "stopping"},
	} {
		got, err := executable(c.task, c.container)
		switch {
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%s: %v, want %q", name, err, c.fails)
		case c.fails == "" && (err != nil || *got.Name != c.want):
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestSessionLog: transcripts go where the cluster's configuration says. What it asks for and isn't there ends the session before it begins.
func TestSessionLog(t *testing.T) {
	td := &state.TaskDefinition{TaskDefinition: types.TaskDefinition{ContainerDefinitions: []types.ContainerDefinition{{
		Name: aws.String("a"),
		LogConfiguration: &types.LogConfiguration{
			LogDriver: types.LogDriverAwslogs, Options: map[string]string{"awslogs-group": "own"},
		},
	}, {Name: aws.String("b")}}}}
	override := func(l types.ExecuteCommandLogConfiguration) *types.ExecuteCommandConfiguration {
		return &types.ExecuteCommandConfiguration{Logging: types.ExecuteCommandLoggingOverride, LogConfiguration: &l}
	}
	for name, c := range map[string]struct {
		config    *types.ExecuteCommandConfiguration
		container string
		want      *acs.SessionLog
		fails     string
	}{
		"not configured":  {container: "a", want: &acs.SessionLog{Group: "own"}},
		"no awslogs":      {container: "b"},
		"NONE":            {config: &types.ExecuteCommandConfiguration{Logging: types.ExecuteCommandLoggingNone}, container: "a"},
		"DEFAULT":         {config: &types.ExecuteCommandConfiguration{Logging: types.ExecuteCommandLoggingDefault}, container: "a", want: &acs.SessionLog{Group: "own"}},
		"OVERRIDE":        {config: override(types.ExecuteCommandLogConfiguration{S3BucketName: aws.String("k"), S3KeyPrefix: aws.String("p")}), container: "a", want: &acs.SessionLog{Bucket: "k", Prefix: "p"}},
		"OVERRIDE, empty": {config: override(types.ExecuteCommandLogConfiguration{}), container: "a"},
		"KMS":             {config: &types.ExecuteCommandConfiguration{KmsKeyId: aws.String("k")}, container: "a", fails: "kmsKeyId"},
		"KMS of logs":     {config: override(types.ExecuteCommandLogConfiguration{CloudWatchEncryptionEnabled: true}), container: "a", fails: "cloudWatchEncryptionEnabled"},
	} {
		cluster := &state.Cluster{}
		if c.config != nil {
			cluster.Configuration = &types.ClusterConfiguration{ExecuteCommandConfiguration: c.config}
		}
		got, err := sessionLog(cluster, td, c.container)
		switch {
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%s: %v, want %q", name, err, c.fails)
		case c.fails == "" && (err != nil || (got == nil) != (c.want == nil) || got != nil && *got != *c.want):
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}
