package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// serve serves with a configuration, and returns the address.
func serve(t *testing.T, c *tls.Config) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	web := &http.Server{Handler: http.NotFoundHandler()}
	web.ErrorLog = log.New(io.Discard, "", 0)
	go web.Serve(tls.NewListener(l, c)) //nolint:errcheck // it ends with the test
	t.Cleanup(func() { web.Close() })
	return l.Addr().String()
}

// get connects with a configuration, and returns the server's certificate.
func get(c *tls.Config, address string) (*tls.ConnectionState, error) {
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: c, DisableKeepAlives: true}}
	r, err := client.Get("https://" + address)
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	io.Copy(io.Discard, r.Body) //nolint:errcheck // it's empty
	return r.TLS, nil
}

// TestAuthority: who has an authority's certificate, or its fingerprint, reaches its server and no other.
func TestAuthority(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	clock := func() time.Time { return now }
	a, err := Open(dir, []string{"localhost"}, clock)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Open(dir, nil, clock)
	if err != nil || again.Fingerprint() != a.Fingerprint() {
		t.Fatalf("opened again it is another authority: %v", err)
	}
	if info, err := os.Stat(keyPath(dir)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file is %v, %v", info.Mode(), err)
	}
	other, err := Open(t.TempDir(), nil, clock)
	if err != nil {
		t.Fatal(err)
	}
	own := serve(t, a.Config())
	trusting, err := Trusting(a.PEM())
	if err != nil {
		t.Fatal(err)
	}
	trusting.Time = clock
	for _, c := range []struct {
		name   string
		client *tls.Config
		server string
		ok     bool
	}{
		{"trusting the authority", trusting, own, true},
		{"trusting none", &tls.Config{}, own, false},
		{"trusting it, with another's server", trusting, serve(t, other.Config()), false},
		{"with its fingerprint", Pinned(a.Fingerprint()), own, true},
		{"with another's fingerprint", Pinned(other.Fingerprint()), own, false},
	} {
		if _, err := get(c.client, c.server); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	wrongName := Pinned(a.Fingerprint())
	wrongName.ServerName = "example.com"
	if _, err := get(wrongName, own); err == nil {
		t.Error("a certificate for another name was taken")
	}
	if !HasFingerprint(a.PEM(), a.Fingerprint()) || HasFingerprint(a.PEM(), other.Fingerprint()) || HasFingerprint("x", "") {
		t.Error("HasFingerprint is wrong")
	}
	before, err := get(trusting, own)
	if err != nil {
		t.Fatal(err)
	}
	now = now.Add(servingLifetime - renewal + time.Hour)
	after, err := get(trusting, own)
	if err != nil || !after.PeerCertificates[0].NotAfter.After(before.PeerCertificates[0].NotAfter) {
		t.Errorf("the certificate isn't renewed: %v", err)
	}
}

// TestFiles: a certificate that changes on disk is served anew, and one that can't be read doesn't take the old one's place.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	if _, err := Open(dir, nil, time.Now); err != nil { // any pair of files will do
		t.Fatal(err)
	}
	f, err := OpenFiles(Path(dir), keyPath(dir))
	if err != nil {
		t.Fatal(err)
	}
	first, _ := f.forClient(nil)
	if err := os.WriteFile(Path(dir), []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(Path(dir), time.Now(), time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	if kept, err := f.forClient(nil); err != nil || kept != first {
		t.Errorf("a broken file is served: %v", err)
	}
	if _, err := OpenFiles(filepath.Join(dir, "none"), keyPath(dir)); err == nil {
		t.Error("a missing file was taken")
	}
}

// TestClockSetBack: a clock that was ahead when certificates were made leaves them usable once it's right.
func TestClockSetBack(t *testing.T) {
	now := time.Now().Add(365 * 24 * time.Hour)
	clock := func() time.Time { return now }
	a, err := Open(t.TempDir(), []string{"localhost"}, clock)
	if err != nil {
		t.Fatal(err)
	}
	server := serve(t, a.Config())
	trusting, err := Trusting(a.PEM())
	if err != nil {
		t.Fatal(err)
	}
	trusting.Time = clock
	if _, err := get(trusting, server); err != nil {
		t.Fatal(err)
	}
	now = time.Now()
	if _, err := get(trusting, server); err != nil {
		t.Error(err)
	}
}

// TestTrustInNoOther: an agent that has joined an authority's control plane takes no server for it that the system knows. Of a server's own
// certificate, the system may know the next.
func TestTrustInNoOther(t *testing.T) {
	a, err := Open(t.TempDir(), []string{"localhost"}, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	alone := x509.NewCertPool()
	alone.AddCert(a.certificate)
	if trusting, err := Trusting(a.PEM()); err != nil || !trusting.RootCAs.Equal(alone) {
		t.Errorf("others than the authority are trusted (%v)", err)
	}
	c, err := a.issue("")
	if err != nil {
		t.Fatal(err)
	}
	served, err := x509.SystemCertPool()
	if err != nil {
		t.Fatal(err)
	}
	served.AddCert(c.Leaf)
	leaf := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Leaf.Raw}))
	if trusting, err := Trusting(leaf); err != nil || !trusting.RootCAs.Equal(served) {
		t.Errorf("the system's authorities aren't trusted beside a server's certificate (%v)", err)
	}
}
