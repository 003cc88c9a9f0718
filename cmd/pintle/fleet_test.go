package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestFleetFlags(t *testing.T) {
	dir := t.TempDir()
	program, text := filepath.Join(dir, "program"), filepath.Join(dir, "text")
	for path, mode := range map[string]os.FileMode{program: 0o700, text: 0o600} {
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range []struct {
		flags fleetFlags
		want  string // start of the error; "" for none
	}{
		{fleetFlags{}, ""},
		{fleetFlags{Fleet: "local"}, ""},
		{fleetFlags{Fleet: "static", FleetPool: text}, ""},
		{fleetFlags{Fleet: "command", FleetProgram: program}, ""},
		{fleetFlags{Fleet: "static"}, "--fleet static needs --fleet-pool"},
		{fleetFlags{Fleet: "command"}, "--fleet command needs --fleet-program"},
		{fleetFlags{FleetPool: text}, "--fleet-pool goes with --fleet static"},
		{fleetFlags{Fleet: "local", FleetProgram: program}, "--fleet-program goes with --fleet command"},
		{fleetFlags{Fleet: "command", FleetProgram: text}, "--fleet-program: "},
		{fleetFlags{Fleet: "command", FleetProgram: filepath.Join(dir, "none")}, "--fleet-program: "},
		{fleetFlags{Fleet: "local", FleetMost: -1}, "--fleet-most"},
	} {
		if x.flags.FleetMost == 0 {
			x.flags.FleetMost = 50
		}
		err := x.flags.check()
		if (err == nil) != (x.want == "") || err != nil && !strings.HasPrefix(err.Error(), x.want) {
			t.Errorf("%+v: got %v, want %q", x.flags, err, x.want)
		}
	}
}
