package main

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestOwnKeysAreNotInherited: what the control plane starts finds none of its keys in the environment.
func TestOwnKeysAreNotInherited(t *testing.T) {
	t.Setenv("PINTLE_SECRETS_KEY", "k")
	t.Setenv("PINTLE_SECRET_ACCESS_KEY", "s")
	before := slog.Default()
	defer slog.SetDefault(before)
	f := serverFlags{Heartbeat: time.Second, Lost: time.Minute}
	f.FleetMost = 1
	if _, err := f.options(); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"PINTLE_SECRETS_KEY", "PINTLE_SECRET_ACCESS_KEY"} {
		if value, there := os.LookupEnv(name); there {
			t.Errorf("%s is still %q", name, value)
		}
	}
}

// TestScrapeTokenNeedsNoPrices: the token for Prometheus counts whether there is a list of prices or not.
func TestScrapeTokenNeedsNoPrices(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := serverFlags{ScrapeToken: path}.options()
	if err != nil || o.ScrapeToken != "0123456789abcdef" {
		t.Errorf("the token is %q: %v", o.ScrapeToken, err)
	}
	if err := os.WriteFile(path, []byte("short"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := (serverFlags{ScrapeToken: path}).options(); err == nil {
		t.Error("a short token is taken")
	}
}
