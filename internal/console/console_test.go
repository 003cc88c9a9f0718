package console

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/wire/call"
	"github.com/pintle/pintle/internal/wire/sign"

	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
)

// TestHealthTellsStrangersLittle: why a control plane takes no changes names its data directory, which is for the account's owner.
func TestHealthTellsStrangersLittle(t *testing.T) {
	verifier := &sign.Verifier{Region: "us-east-1", Lookup: func(_ context.Context, id, _ string) (sign.Credential, error) {
		return sign.Credential{SecretAccessKey: "secret", Identity: call.Identity{Node: id == "node"}}, nil
	}}
	for _, c := range []struct {
		who      string
		verifier *sign.Verifier
		key      string
		told     bool
	}{
		{"anybody on loopback", nil, "", true},
		{"a stranger", verifier, "", false},
		{"a node", verifier, "node", false},
		{"the owner", verifier, "owner", true},
	} {
		console := New(nil, nil, Options{
			Verifier: c.verifier,
			Writable: func() error { return errors.New("no space left on /data") },
			Failing:  func() error { return errors.New("moving /data failed") },
		})
		r := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/pintle/health", nil)
		if c.key != "" {
			key := aws.Credentials{AccessKeyID: c.key, SecretAccessKey: "secret"}
			empty := sha256.Sum256(nil)
			err := v4.NewSigner().SignHTTP(t.Context(), key, r, hex.EncodeToString(empty[:]), "pintle", "us-east-1", time.Now())
			if err != nil {
				t.Fatal(err)
			}
		}
		w := httptest.NewRecorder()
		console.Handlers()["/pintle/health"].ServeHTTP(w, r)
		body := w.Body.String()
		if w.Code != http.StatusOK || !strings.Contains(body, "read-only") || !strings.Contains(body, `"warning"`) ||
			strings.Count(body, "/data") == 2 != c.told || strings.Contains(body, "/data") != c.told {
			t.Errorf("%s gets %d, %s", c.who, w.Code, body)
		}
	}
}
