package keypair

import (
	"crypto/ed25519"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"strings"
	"testing"
)

// The fingerprints are those that ssh-keygen -l, and ssh-keygen -e -m PKCS8 with openssl md5 -c, tell of these keys.
const (
	ed25519Line = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIOz1sVipg6YZNAbRIg/RA8k4gF+eIqqYI5H7wfSOu8d"
	rsaLine     = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQC9hKfI3i1nvFjGEj49oiJywKCSuvtFZuYaaEwGkNWqCIL8DNOSsGHL/IS6g72yewbX0kpvL6j/BK1FZcBtVfwy7TA" +
		"0J8EPqhPOnlNTwGFCx73g6QeBORfVMfmzkqYj1i//5Z7Y72f0WChCWcu+/UmeQvV18f2uO9HpUrZsDTB18+QIRgsJuZBtVbRebcAB7+HyklOV7cVblhJHbtiWYLK/pLFs+eP9" +
		"k2BJdgF1pfsojQidH2bOXMNkZtGNl4ZHrlH/Adij2QMCkS3pT8RmNtp6G+F0z2lQnTyiIjDkGP9aj0bk4vCmotfz+/qESQttayA1oLtq3AAQq24v7z5tZzrZ"
)

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name, line, fingerprint string
		isEd25519               bool
	}{
		{"ed25519", ed25519Line, "zv8WWj8zqgwoddIBEMcTwfzbYw3Xr18120HBpXGSWTw=", true},
		{"rsa", rsaLine, "b9:44:81:9f:5e:c7:d1:fd:ed:68:3c:37:ec:73:ec:a5", false},
	} {
		got, err := Read(c.line+" me@home\n", "mine")
		if err != nil || got != (Public{c.line + " mine", c.fingerprint, c.isEd25519}) {
			t.Errorf("%s: got %+v, %v", c.name, got, err)
		}
	}
	for name, line := range map[string]string{
		"nothing":        "",
		"no key":         "ssh-rsa",
		"no base64":      "ssh-rsa !!",
		"another type":   strings.Replace(ed25519Line, "ssh-ed25519", "ssh-rsa", 1),
		"cut off":        "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIIOz1sVipg6YZNAbRIg/RA8k4gF+eIqqYI5H7wfSOu8=",
		"unknown":        "ssh-dss AAAAB3NzaC1kc3M=",
		"an odd size":    "ssh-rsa " + base64.StdEncoding.EncodeToString([]byte("\x00\x00\x00\x07ssh-rsa\x00\x00\x00\x03\x01\x00\x01\x00\x00\x00\x02\x7f\xff")),
		"too long by it": "ssh-rsa " + strings.Repeat("A", maxLine),
	} {
		if got, err := Read(line, "mine"); err == nil {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}

// TestNew: the two halves of a new pair belong together, and the fingerprint is what reading the public half gives, if it's ED25519.
func TestNew(t *testing.T) {
	for _, isEd25519 := range []bool{true, false} {
		p, err := New(isEd25519, "mine")
		if err != nil {
			t.Fatal(err)
		}
		read, err := Read(p.Line, "mine")
		if err != nil || read.Line != p.Line || read.IsEd25519 != isEd25519 || isEd25519 != (read.Fingerprint == p.Fingerprint) {
			t.Errorf("got %+v, %v of %+v", read, err, p.Public)
		}
		block, rest := pem.Decode([]byte(p.Private))
		if block == nil || len(rest) > 0 {
			t.Fatalf("no PEM: %s", p.Private)
		}
		if isEd25519 {
			// The last field but the comment is the private key, whose second half is the public one.
			at := strings.LastIndex(string(block.Bytes), "\x00\x00\x00\x40") + 4
			private := ed25519.PrivateKey(block.Bytes[at : at+ed25519.PrivateKeySize])
			if got := line(private.Public().(ed25519.PublicKey), "mine"); got != p.Line || len(p.Fingerprint) != 44 {
				t.Errorf("got %s of %s", got, p.Line)
			}
			continue
		}
		private, err := x509.ParsePKCS1PrivateKey(block.Bytes)
		if err != nil || line(&private.PublicKey, "mine") != p.Line || len(p.Fingerprint) != 59 {
			t.Errorf("got %v of %s", err, p.Line)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(ed25519Line)
	f.Add(rsaLine)
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Read(text, "mine")
		if err != nil {
			return
		}
		if again, err := Read(got.Line, "mine"); err != nil || again != got {
			t.Errorf("%q is read as %+v, and then as %+v, %v", text, got, again, err)
		}
	})
}
