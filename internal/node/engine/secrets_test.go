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
	"github.com/pintle/pintle/internal/node/runtime"
)

// TestSecrets: a container has its secrets in its environment, over its own variables, and no record has them.
func TestSecrets(t *testing.T) {
	task := newFakeTask("t", box("a", "run"))
	task.Containers[0].Environment = map[string]string{"A": "own", "AA": "kept"}
	task.Containers[0].Secrets = []acs.Secret{
		{Name: "A", ValueFrom: "/a", Provider: "ssm"},
		{Name: "B", ValueFrom: "/b", Provider: "ssm"},
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

// TestEnvironmentFiles: a container's own variables count before its files', an earlier file's before a later one's.
func TestEnvironmentFiles(t *testing.T) {
	task := newFakeTask("t", box("a", "run"))
	task.Containers[0].Environment = map[string]string{"OWN": "1"}
	task.Containers[0].EnvironmentFiles = []acs.EnvironmentFile{{Type: "s3", Value: "first"}, {Type: "s3", Value: "second"}}
	task.ExecutionRoleCredentials = &acs.IAMRoleCredentials{AccessKeyID: "AK"}
	files := map[string]string{"first": "OWN=2\nA=1\nA=2\nAGENT=mine\n", "second": "A=3\r\n# C=4\r\nB=a=\"b\" \r\nNONE=\r\nno\r\n=x"}
	for fail, want := range map[string]string{
		"":                  "",
		"unable to find it": "ResourceInitializationError: failed to download env files: unable to find it",
	} {
		alone(t, func(t *testing.T, a *agent) {
			a.take(t, task)
			later(time.Minute)
			if r := a.last(task.Arn); want != "" && (r.Status != "STOPPED" || r.Containers[0].Reason != want) {
				t.Errorf("got %s, %q", r.Status, r.Containers[0].Reason)
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			for _, c := range a.containers {
				slices.Sort(c.spec.Env)
				if got := c.spec.Env; !slices.Equal(got, []string{"A=2", "AGENT=mine", `B=a="b" `, "OWN=1"}) {
					t.Errorf("got %q", got)
				}
			}
			if want == "" && len(a.containers) != 1 {
				t.Errorf("%d containers", len(a.containers))
			}
		}, func(o *Options) {
			o.Environment = func(*acs.Task, string) map[string]string { return map[string]string{"AGENT": "its own"} }
			o.EnvironmentFile = func(_ context.Context, role acs.IAMRoleCredentials, arn string) (string, error) {
				if fail != "" || role.AccessKeyID != "AK" {
					return "", errors.New(fail)
				}
				return files[arn], nil
			}
		})
	}
}

func FuzzParseVariables(f *testing.F) {
	f.Add("A=1\r\n#B=2\n\nC = \"x\"\n=3\nD=")
	f.Fuzz(func(t *testing.T, text string) {
		for _, v := range parseVariables(text) {
			if v.name == "" || v.value == "" || strings.HasPrefix(v.name, "#") || strings.Contains(v.name, "=") || strings.Contains(v.name+v.value, "\n") {
				t.Errorf("%q: %+v", text, v)
			}
			if !strings.Contains(text, v.name+"="+v.value) {
				t.Errorf("%q has no %+v", text, v)
			}
		}
	})
}

// TestRegistryCredentials: an image is pulled with the user name and password of a secret, which no error repeats.
func TestRegistryCredentials(t *testing.T) {
	task := newFakeTask("t", box("a", "run"))
	task.ExecutionRoleCredentials = &acs.IAMRoleCredentials{AccessKeyID: "AK"}
	task.Containers[0].RegistryAuthentication = &acs.RegistryAuthentication{
		Type: "asm", ASMAuthData: &acs.ASMAuthData{CredentialsParameter: "s", Region: "r"},
	}
	const malformed = "ResourceInitializationError: unable to pull secrets or registry auth: the secret s isn't a JSON object with a username and a password"
	for _, c := range []struct{ secret, want string }{
		{`{"username": "me", "password": "hunter2"}`, ""},
		{`{"username": "me"}`, malformed},
		{`hunter2`, malformed},
	} {
		alone(t, func(t *testing.T, a *agent) {
			a.take(t, task)
			later(time.Minute)
			r := a.last(task.Arn)
			if c.want != "" && (r.Status != "STOPPED" || r.Containers[0].Reason != c.want) {
				t.Errorf("got %s, %q", r.Status, r.Containers[0].Reason)
			}
			a.mu.Lock()
			defer a.mu.Unlock()
			if want := (runtime.RegistryAuth{Username: "me", Password: "hunter2"}); c.want == "" && (a.pulledWith == nil || *a.pulledWith != want) {
				t.Errorf("pulled with %v", a.pulledWith)
			}
		}, func(o *Options) {
			o.Secrets = func(_ context.Context, _ acs.IAMRoleCredentials, wanted []acs.Secret) (map[string]string, error) {
				if len(wanted) != 1 || wanted[0].Provider != "asm" || wanted[0].Region != "r" {
					return nil, errors.New("wrong call")
				}
				return map[string]string{"s": c.secret}, nil
			}
		})
	}
}

// TestSecretLogOptions: the router has them in its environment, and its configuration refers to them. Other log drivers have none.
func TestSecretLogOptions(t *testing.T) {
	web := routed(box("web", "run"))
	web.Secrets = []acs.Secret{{Name: "own", ValueFrom: "/own"}, {Name: "apikey", ValueFrom: "/key", Provider: "ssm", Target: "LOG_DRIVER"}}
	task := newFakeTask("t", logRouter(box("router", "run")), web)
	task.ExecutionRoleCredentials = &acs.IAMRoleCredentials{}
	alone(t, func(t *testing.T, a *agent) {
		a.take(t, task)
		later(time.Minute)
		a.mu.Lock()
		defer a.mu.Unlock()
		read := 0
		for _, c := range a.containers {
			if has := slices.Contains(c.spec.Env, "LOG_SECRET_1_1=hunter2"); has != strings.Contains(c.spec.ID, "router") {
				t.Errorf("%s has %q", c.spec.ID, c.spec.Env)
			}
			for _, m := range c.spec.Mounts {
				if filepath.Base(m.Source) != "fluent.conf" {
					continue
				}
				b, err := os.ReadFile(m.Source)
				if read++; err != nil || !bytes.Contains(b, []byte("apikey ${LOG_SECRET_1_1}\n")) || bytes.Contains(b, []byte("hunter")) {
					t.Errorf("the configuration is %s, %v", b, err)
				}
			}
		}
		if read != 1 {
			t.Errorf("%d configurations", read)
		}
	}, func(o *Options) {
		o.Shippers = map[string]Shipper{routing: stuck{}}
		o.Secrets = func(_ context.Context, _ acs.IAMRoleCredentials, wanted []acs.Secret) (map[string]string, error) {
			return map[string]string{"/own": "x", "/key": "hunter2"}, nil
		}
	})
	if err := checkLogSecrets(&acs.Container{Secrets: web.Secrets}); err == nil || !strings.Contains(err.Error(), "awsfirelens") {
		t.Errorf("a plain log driver: %v", err)
	}
}
