package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
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
