package main

import (
	"log/slog"
	"os"
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
