package delivery

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"
)

// TestHookClientKeepsOffThisMachine: by any of its names and addresses, unless they are allowed.
func TestHookClientKeepsOffThisMachine(t *testing.T) {
	called := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called++ }))
	defer server.Close()
	port := server.URL[strings.LastIndex(server.URL, ":"):]
	tell := Webhooks(HookClient(5*time.Second, nil))[0].Tell
	for _, host := range []string{"127.0.0.1", "localhost", "0.0.0.0", "[::1]", "[::ffff:127.0.0.1]", "127.1.2.3", "169.254.170.2", "[fd00:ec2::254]", "[64:ff9b::a9fe:a9fe]", "[fe80::1%25lo]"} {
		if err := tell(t.Context(), Debt{Destination: "http://" + host + port}); !errors.Is(err, ErrForbidden) {
			t.Errorf("%s: %v", host, err)
		}
	}
	if called > 0 {
		t.Errorf("it was called %d times", called)
	}
	tell = Webhooks(HookClient(5*time.Second, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}))[0].Tell
	if err := tell(t.Context(), Debt{Destination: server.URL}); err != nil || called != 1 {
		t.Errorf("an allowed address: %v, called %d times", err, called)
	}
}

// TestHookClientFollowsNoRedirect: a hook could send the control plane to itself, or to anywhere that it alone can reach.
func TestHookClientFollowsNoRedirect(t *testing.T) {
	called := 0
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called++ }))
	defer target.Close()
	hook := httptest.NewServer(http.RedirectHandler(target.URL, http.StatusFound))
	defer hook.Close()
	tell := Webhooks(HookClient(5*time.Second, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}))[0].Tell
	if err := tell(t.Context(), Debt{Destination: hook.URL}); err == nil || called > 0 {
		t.Errorf("a redirect: %v, its target was called %d times", err, called)
	}
}

// TestHookClientHoldsLittle: an answer's header, which is held in memory, is small.
func TestHookClientHoldsLittle(t *testing.T) {
	hook := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("X", strings.Repeat("x", 1<<20)) }))
	defer hook.Close()
	tell := Webhooks(HookClient(5*time.Second, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}))[0].Tell
	if err := tell(t.Context(), Debt{Destination: hook.URL}); err == nil {
		t.Error("a header of a megabyte was taken")
	}
}

// TestOwnAddresses: those of the machine's interfaces are its own.
func TestOwnAddresses(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1": true, "192.0.2.1": false, "2001:db8::1": false} {
		if own, err := isOwn(netip.MustParseAddr(address)); err != nil || own != want {
			t.Errorf("%s: %t, %v", address, own, err)
		}
	}
}
