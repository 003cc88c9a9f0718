package sts

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/account/accounttest"
)

func TestIssuerRecognizesItsOwn(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	acct := accounttest.New(func() time.Time { return now })
	i, err := NewIssuer(bytes.Repeat([]byte{7}, 32), acct)
	if err != nil {
		t.Fatal(err)
	}
	c := i.Issue("arn:task/default/abc", "arn:aws:iam::000000000000:role/worker", "TaskApplication")
	secret, arn, expires, err := i.Lookup(c.AccessKeyID, c.SessionToken)
	if err != nil || secret != c.SecretAccessKey || arn != "arn:aws:sts::000000000000:assumed-role/worker/abc" ||
		!expires.Equal(now.Add(6*time.Hour)) {
		t.Fatalf("got %q %q %v %v", secret, arn, expires, err)
	}
	if second := i.Issue("arn:task/default/abc", "arn:aws:iam::000000000000:role/worker", "TaskApplication"); second.ID != c.ID {
		t.Error("the id has changed")
	}
	other, err := NewIssuer(bytes.Repeat([]byte{8}, 32), acct)
	if err != nil {
		t.Fatal(err)
	}
	body, seal, _ := strings.Cut(c.SessionToken, ".")
	for name, try := range map[string]func() error{
		"another issuer":     func() error { _, _, _, err := other.Lookup(c.AccessKeyID, c.SessionToken); return err },
		"another key id":     func() error { _, _, _, err := i.Lookup("ASIAX", c.SessionToken); return err },
		"a changed token":    func() error { _, _, _, err := i.Lookup(c.AccessKeyID, "x"+body+"."+seal); return err },
		"no token":           func() error { _, _, _, err := i.Lookup(c.AccessKeyID, ""); return err },
		"a token of its own": func() error { _, _, _, err := i.Lookup(c.AccessKeyID, body+"."); return err },
	} {
		if err := try(); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewIssuer([]byte("short"), acct); err == nil {
		t.Error("a short key was taken")
	}
}
