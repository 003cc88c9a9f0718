package engine

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/acs"
)

// TestSecrets: a container has its secrets in its environment, over its own variables, and no record has them.
func TestSecrets(t *testing.T) {
	task := newFakeTask("t", box("a", "run"))
	task.Containers[0].Environment = map[string]string{"A": "own", "AA": "kept"}
	task.Containers[0].Secrets = []acs.Secret{
		{Name: "A", ValueFrom: "/a", Provider: "ssm"},
		{Name: "B", ValueFrom: "/b", Provider: "ssm"},
		{Name: "option", ValueFrom: "/c", Provider: "ssm", Target: "LOG_DRIVER"},
	}
	task.ExecutionRoleCredentials = &acs.IAMRoleCredentials{AccessKeyID: "AK"}
	for _, c := range []struct {
		name   string
		fetch  func(context.Context, acs.IAMRoleCredentials, []acs.Secret) (map[string]string, error)
		noRole bool
		reason string // "" if it runs
	}{
		{"fetched", func(_ context.Context, role acs.IAMRoleCredentials, wanted []acs.Secret) (map[string]string, error) {
			if role.AccessKeyID != "AK" || len(wanted) != 2 {
				return nil, errors.New("wrong call")
			}
			return map[string]string{"/a": "hunter2", "/b": "x=y\nz"}, nil
		}, false, ""},
		{"refused", func(context.Context, acs.IAMRoleCredentials, []acs.Secret) (map[string]string, error) {
			return nil, errors.New("invalid parameters: /a")
		}, false, "invalid parameters: /a"},
		{"too slow", func(ctx context.Context, _ acs.IAMRoleCredentials, _ []acs.Secret) (map[string]string, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}, false, "context deadline exceeded"},
		{"no environment variable", func(context.Context, acs.IAMRoleCredentials, []acs.Secret) (map[string]string, error) {
			return map[string]string{"/a": "hunter2\x00", "/b": ""}, nil
		}, false, "the value of /a can't be an environment variable"},
		{"no role", nil, true, "this node can't fetch secrets"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var dir string
			task := task
			if c.noRole {
				task.ExecutionRoleCredentials = nil
			}
			alone(t, func(t *testing.T, a *agent) {
				a.take(t, task)
				later(2 * time.Minute)
				if c.reason != "" {
					want := "ResourceInitializationError: unable to pull secrets or registry auth: " + c.reason
					if r := a.last(task.Arn); r.Status != "STOPPED" || r.Containers[0].Reason != want {
						t.Errorf("got %s, %q", r.Status, r.Containers[0].Reason)
					}
					return
				}
				checkSecrets(t, a, dir)
			}, func(o *Options) { o.Secrets, dir = c.fetch, o.Dir })
		})
	}
}

func checkSecrets(t *testing.T, a *agent, dir string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.containers) != 1 {
		t.Fatalf("%d containers", len(a.containers))
	}
	for _, c := range a.containers {
		for _, want := range []string{"A=hunter2", "AA=kept", "B=x=y\nz"} {
			if !slices.Contains(c.spec.Env, want) {
				t.Errorf("%q is not in %q", want, c.spec.Env)
			}
		}
		if strings.Contains(strings.Join(c.spec.Env, " "), "A=own") {
			t.Errorf("two values: %q", c.spec.Env)
		}
	}
	records, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(records) != 1 {
		t.Fatal(records, err)
	}
	b, err := os.ReadFile(records[0])
	if err != nil || bytes.Contains(b, []byte("hunter2")) {
		t.Errorf("the record has the secret: %v", err)
	}
}
