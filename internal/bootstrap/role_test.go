package bootstrap

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
)

// TestRole: scripts of an instance with a role get its credentials by a token of their own, and nobody without that does.
func TestRole(t *testing.T) {
	u, _ := userData(t, "")
	answer, fails := &Credentials{RoleArn: "arn:role", AccessKeyID: "ASIA", SecretAccessKey: "s", Token: "t", Expiration: "2026-11-24T00:00:00Z"}, error(nil)
	u.Credentials = func(context.Context) (*Credentials, error) { return answer, fails }
	env, stop, err := u.serveRole(t.Context())
	if err != nil || len(env) != 2 {
		t.Fatalf("%q, %v", env, err)
	}
	defer stop()
	url := strings.TrimPrefix(env[0], "AWS_CONTAINER_CREDENTIALS_FULL_URI=")
	token := strings.TrimPrefix(env[1], "AWS_CONTAINER_AUTHORIZATION_TOKEN=")
	get := func(token string) (int, map[string]string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", token)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		var got map[string]string
		json.NewDecoder(resp.Body).Decode(&got) //nolint:errcheck // an error's text is no JSON
		return resp.StatusCode, got
	}
	if code, got := get(token); code != http.StatusOK || got["AccessKeyId"] != "ASIA" || got["SecretAccessKey"] != "s" || got["Token"] != "t" ||
		got["RoleArn"] != "arn:role" || got["Expiration"] != answer.Expiration {
		t.Errorf("%d, %v", code, got)
	}
	for _, wrong := range []string{"", "x", token + "x"} {
		if code, got := get(wrong); code != http.StatusForbidden || len(got) != 0 {
			t.Errorf("with the token %q: %d, %v", wrong, code, got)
		}
	}
	answer = nil
	if code, _ := get(token); code != http.StatusNotFound {
		t.Errorf("without a role: %d", code)
	}
	fails = errors.New("away")
	if code, _ := get(token); code != http.StatusBadGateway {
		t.Errorf("without a control plane: %d", code)
	}
}

// TestNoRole: scripts of an instance without a role see nothing of roles, and those of one whose credentials can't be had run all the same.
func TestNoRole(t *testing.T) {
	for name, fails := range map[string]error{"no role": nil, "refused": errors.New("AccessDenied")} {
		u, log := userData(t, "")
		u.Credentials = func(context.Context) (*Credentials, error) { return nil, fails }
		env, stop, err := u.serveRole(t.Context())
		if err != nil || len(env) != 0 {
			t.Errorf("%s: %q, %v", name, env, err)
		}
		stop()
		if got := strings.Contains(log.String(), "AccessDenied"); got != (fails != nil) {
			t.Errorf("%s: the log is %s", name, log)
		}
	}
}
