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
	c := i.Issue("arn:task/default/abc", "arn:aws:iam::000000000000:role/worker", "", "TaskApplication")
	got, err := i.Lookup(c.AccessKeyID, c.SessionToken)
	want := Session{
		SecretAccessKey: c.SecretAccessKey,
		Arn:             "arn:aws:sts::000000000000:assumed-role/worker/abc",
		Task:            "arn:task/default/abc",
		Role:            "arn:aws:iam::000000000000:role/worker",
		Expires:         time.Unix(now.Add(6*time.Hour).Unix(), 0),
	}
	if err != nil || got != want {
		t.Fatalf("got %+v %v", got, err)
	}
	if second := i.Issue("arn:task/default/abc", "arn:aws:iam::000000000000:role/worker", "", "TaskApplication"); second.ID != c.ID {
		t.Error("the id has changed")
	}
	other, err := NewIssuer(bytes.Repeat([]byte{8}, 32), acct)
	if err != nil {
		t.Fatal(err)
	}
	body, seal, _ := strings.Cut(c.SessionToken, ".")
	for name, try := range map[string]func() error{
		"another issuer":     func() error { _, err := other.Lookup(c.AccessKeyID, c.SessionToken); return err },
		"another key id":     func() error { _, err := i.Lookup("ASIAX", c.SessionToken); return err },
		"a changed token":    func() error { _, err := i.Lookup(c.AccessKeyID, "x"+body+"."+seal); return err },
		"no token":           func() error { _, err := i.Lookup(c.AccessKeyID, ""); return err },
		"a token of its own": func() error { _, err := i.Lookup(c.AccessKeyID, body+"."); return err },
	} {
		if err := try(); !errors.Is(err, ErrUnknown) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewIssuer([]byte("short"), acct); err == nil {
		t.Error("a short key was taken")
	}
}
