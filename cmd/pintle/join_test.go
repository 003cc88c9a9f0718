package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"github.com/pintle/pintle/internal/ecs/enrollment"
)

// TestJoinTakesOnlyKeys: what is joined may be no control plane, and its answer becomes lines of an agent's environment.
func TestJoinTakesOnlyKeys(t *testing.T) {
	key := enrollment.Key{AccessKeyID: "AKIAABCDEFGH", SecretAccessKey: "abc+/="}
	for _, c := range []struct {
		name   string
		answer enrollment.Answer
		ok     bool
	}{
		{"a key", enrollment.Answer{Key: key, Region: "us-east-1"}, true},
		{"no key", enrollment.Answer{Region: "us-east-1"}, false},
		{"a line in the region", enrollment.Answer{Key: key, Region: "us-east-1\nECS_INSTANCE_ATTRIBUTES={}"}, false},
		{"a line in the key", enrollment.Answer{Key: enrollment.Key{AccessKeyID: "A\nB=C", SecretAccessKey: "abc"}, Region: "us-east-1"}, false},
		{"a line in the secret", enrollment.Answer{Key: enrollment.Key{AccessKeyID: "A", SecretAccessKey: "abc\nB=C"}, Region: "us-east-1"}, false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			json.NewEncoder(w).Encode(c.answer) //nolint:errcheck // the client would notice
		}))
		_, err := join(t.Context(), enrollment.Invitation{Endpoint: server.URL, ID: "1", Secret: "2"}, t.TempDir())
		server.Close()
		if (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// TestJoinKeepsTheToken: a machine that has no place for the authority's certificate asks for nothing, or its token would be used up.
func TestJoinKeepsTheToken(t *testing.T) {
	asked := 0
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		w.WriteHeader(http.StatusForbidden)
	}))
	defer server.Close()
	sum := sha256.Sum256(server.Certificate().Raw)
	i := enrollment.Invitation{Endpoint: server.URL, ID: "1", Secret: "2", Fingerprint: hex.EncodeToString(sum[:])}
	dir := t.TempDir()
	taken := filepath.Join(dir, "file")
	if err := os.WriteFile(taken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := join(t.Context(), i, filepath.Join(taken, "ecs")); err == nil || asked != 0 {
		t.Errorf("below a file: %v, after %d requests", err, asked)
	}
	if _, err := join(t.Context(), i, filepath.Join(dir, "new", "ecs")); err == nil || asked != 1 {
		t.Errorf("in a new directory: %v, after %d requests", err, asked)
	}
}

// TestJoinElsewhere: an agent asks the control plane where --endpoint says, also once it has joined, and never a known one without TLS.
func TestJoinElsewhere(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		key := enrollment.Key{AccessKeyID: "AKIAABCDEFGH", SecretAccessKey: "abc"}
		json.NewEncoder(w).Encode(enrollment.Answer{Key: key, Region: "us-east-1"}) //nolint:errcheck // the client would notice
	}))
	defer server.Close()
	nowhere := enrollment.Invitation{Endpoint: "http://127.0.0.1:1", ID: "1", Secret: "2"}
	c := &agentCmd{Join: nowhere.String(), Endpoint: server.URL, Data: t.TempDir(), Elsewhere: true}
	for _, moved := range []string{server.URL, "http://127.0.0.1:2"} { // where it joins, and where the control plane is later
		c.Endpoint = moved
		l, err := c.login(t.Context())
		if err != nil || l.Endpoint != moved || l.AccessKeyID != "AKIAABCDEFGH" {
			t.Errorf("%s: %+v, %v", moved, l, err)
		}
	}
	c = &agentCmd{Data: c.Data, Endpoint: "http://127.0.0.1:4566"}
	if l, err := c.login(t.Context()); err != nil || l.Endpoint != server.URL {
		t.Errorf("afterwards it calls %s, %v", l.Endpoint, err)
	}
	nowhere.Fingerprint = "00"
	c = &agentCmd{Join: nowhere.String(), Endpoint: server.URL, Data: t.TempDir(), Elsewhere: true}
	if _, err := c.login(t.Context()); err == nil || asked != 1 {
		t.Errorf("%v after %d requests", err, asked)
	}
}

// TestEndpointOfAgents: the environment's endpoint doesn't overrule a join token, which the command line's does.
func TestEndpointOfAgents(t *testing.T) {
	t.Setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
	for _, args := range [][]string{nil, {"--endpoint", "http://127.0.0.1:2"}} {
		c := new(agentCmd)
		cmd := c.verb()
		if err := cmd.ParseFlags(args); err != nil {
			t.Fatal(err)
		}
		if err := cmd.PreRunE(cmd, nil); err != nil || c.Elsewhere != (args != nil) {
			t.Errorf("%v: %v, %v", args, c.Elsewhere, err)
		}
	}
}
