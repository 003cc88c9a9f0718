package plane

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/ecs/enrollment"
)

// TestTokenNamesWhereItWasAskedFor: a join token leads to where its maker reached the control plane, unless no other machine does there.
func TestTokenNamesWhereItWasAskedFor(t *testing.T) {
	p, err := Open(t.Context(), Options{
		Listen: "127.0.0.1:0", Data: t.TempDir(), Region: "us-east-1", Account: "000000000000",
		Lost: time.Minute, Settle: time.Minute, Log: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.Close() }) //nolint:errcheck // the test is over
	for _, c := range []struct{ advertise, reached, want string }{
		{"", "http://10.0.0.1:4566", "http://10.0.0.1:4566"},
		{"", "https://pintle.example:4566", "https://pintle.example:4566"},
		{"", "http://127.0.0.1:4566", p.Endpoint()},
		{"", "http://localhost:4566", p.Endpoint()},
		{"", "http://ecs.us-east-1.amazonaws.com", p.Endpoint()},
		{"https://front.example", "http://10.0.0.1:4566", "https://front.example"},
	} {
		p.options.Advertise = c.advertise
		r := httptest.NewRequest(http.MethodPost, c.reached+"/pintle/tokens/new", strings.NewReader(`{"Seconds":60,"Uses":1}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		p.handler.ServeHTTP(w, r)
		var text string
		if err := json.Unmarshal(w.Body.Bytes(), &text); err != nil {
			t.Fatal(w.Code, err)
		}
		i, err := enrollment.ParseInvitation(text)
		if err != nil || i.Endpoint != c.want {
			t.Errorf("%+v: got %s, %v", c, i.Endpoint, err)
		}
	}
}
