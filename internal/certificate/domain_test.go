package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"testing"
	"time"
)

// TestDomain: an authority for a domain signs for the names that it may, and even its key is good for nothing outside.
func TestDomain(t *testing.T) {
	dir := t.TempDir()
	may := func(name string) bool { return name != "absent.aws.example" }
	a, err := OpenFor(dir, "aws.example", may, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(keyPath(dir)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the key's file is %v, %v", info.Mode(), err)
	}
	trusted, err := Trusting(a.PEM())
	if err != nil {
		t.Fatal(err)
	}
	address := serve(t, a.Config())
	for name, works := range map[string]bool{
		"sqs.us-east-1.aws.example": true, "a.b.s3.aws.example": true, "SQS.aws.example": true, "absent.aws.example": false,
		"example.org": false, "aws.example.evil.example": false, "evilaws.example": false, "aws.example": false,
	} {
		c := trusted.Clone()
		c.ServerName = name
		if _, err := get(c, address); (err == nil) != works {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, stolen := range []string{"example.org", "127.0.0.1", "::1"} {
		c, err := a.issue(stolen)
		if err != nil {
			t.Fatal(err)
		}
		host := stolen
		if net.ParseIP(stolen) != nil {
			host = "[" + stolen + "]"
		}
		if _, err := c.Leaf.Verify(x509.VerifyOptions{Roots: trusted.RootCAs, DNSName: host}); err == nil {
			t.Errorf("a certificate for %s is trusted", stolen)
		}
	}
	if _, err := OpenFor(dir, "other.example", may, time.Now); err == nil {
		t.Error("it was opened for another domain")
	}
	if again, err := OpenFor(dir, "aws.example", may, time.Now); err != nil || again.Fingerprint() != a.Fingerprint() {
		t.Errorf("opened again it's another: %v", err)
	}
	general := t.TempDir()
	if _, err := Open(general, nil, time.Now); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFor(general, "aws.example", may, time.Now); err == nil {
		t.Error("an authority for everything was taken")
	}
}

// TestManyNames: certificates for ever more names don't fill the memory.
func TestManyNames(t *testing.T) {
	a, err := OpenFor(t.TempDir(), "aws.example", func(string) bool { return true }, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	for i := range maxServing {
		a.serving[string(rune(i))] = nil
	}
	if _, err := a.forClient(&tls.ClientHelloInfo{ServerName: "one.more.aws.example"}); err != nil || len(a.serving) != 1 {
		t.Errorf("%d certificates are kept, %v", len(a.serving), err)
	}
}
