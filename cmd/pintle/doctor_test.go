package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// fit is a system that nothing is wrong with.
func fit() system {
	now := time.Date(2026, 11, 26, 8, 0, 0, 0, time.UTC)
	return system{
		uid: 0, release: "6.1.0-18-amd64", now: func() time.Time { return now },
		read:          func(string) (string, error) { return "cpuset cpu io memory pids\n", nil },
		run:           func(_ context.Context, name string, _ ...string) (string, error) { return name + " 1.0", nil },
		clockIsSynced: func() (bool, error) { return true, nil },
		maxFiles:      func() uint64 { return 1 << 20 },
		freeBytes:     func(string) (uint64, error) { return 1 << 40, nil },
		syncTime:      func(string) (time.Duration, error) { return time.Millisecond, nil },
		owner:         func(string) (int, fs.FileMode, error) { return 0, fs.ModeDir | 0o700, nil },
		listen:        func(string) error { return nil },
		health:        func(context.Context, string) (health, error) { return health{"0.1", "ok", now}, nil },
		docker:        func(context.Context) error { return nil },
		hasPlugin:     func(string) bool { return true },
		canRestrict:   func() bool { return true },
		gpus:          func(context.Context) (string, error) { return "8 GPUs", nil },
	}
}

var errBroken = errors.New("broken")

// TestDoctor: each thing that is wrong with a machine is found by one check, which says what to do; nothing is found on one that is fit.
func TestDoctor(t *testing.T) {
	for name, c := range map[string]struct {
		change  func(*system)
		check   string
		verdict verdict
		found   string
	}{
		"fit":           {func(*system) {}, "", "", ""},
		"old kernel":    {func(s *system) { s.release = "4.19.0" }, "kernel", warning, "4.19"},
		"odd kernel":    {func(s *system) { s.release = "?" }, "kernel", warning, "?"},
		"clock":         {func(s *system) { s.clockIsSynced = func() (bool, error) { return false, nil } }, "clock", warning, "not synchronised"},
		"clock unknown": {func(s *system) { s.clockIsSynced = func() (bool, error) { return false, errBroken } }, "clock", warning, "broken"},
		"few files":     {func(s *system) { s.maxFiles = func() uint64 { return 1024 } }, "open files", warning, "1024"},
		"full disk":     {func(s *system) { s.freeBytes = func(string) (uint64, error) { return mega, nil } }, "disk space", unfit, "1 MB free"},
		"little room":   {func(s *system) { s.freeBytes = func(string) (uint64, error) { return 1000 * mega, nil } }, "disk space", warning, "1000 MB"},
		"no disk":       {func(s *system) { s.freeBytes = func(string) (uint64, error) { return 0, errBroken } }, "disk space", unfit, "broken"},
		"slow disk":     {func(s *system) { s.syncTime = func(string) (time.Duration, error) { return time.Second, nil } }, "disk speed", warning, "1s"},
		"read-only":     {func(s *system) { s.syncTime = func(string) (time.Duration, error) { return 0, errBroken } }, "disk speed", unfit, "broken"},
		"another's":     {func(s *system) { s.owner = func(string) (int, fs.FileMode, error) { return 7, 0o700, nil } }, "data directory", unfit, "user 7"},
		"open to all":   {func(s *system) { s.owner = func(string) (int, fs.FileMode, error) { return 0, 0o755, nil } }, "data directory", warning, "0755"},
		"port taken": {func(s *system) {
			s.listen = func(string) error { return errBroken }
			s.health = onlyAt("http://c", s.health)
		}, "port", unfit, "broken"},
		"cgroups 1":        {func(s *system) { s.read = func(string) (string, error) { return "", fs.ErrNotExist } }, "control groups", warning, "version 1"},
		"not delegated":    {func(s *system) { s.read = func(string) (string, error) { return "cpu pids", nil } }, "control groups", unfit, "memory"},
		"no plugin":        {func(s *system) { s.hasPlugin = func(p string) bool { return p != "portmap" } }, "networks", warning, "portmap"},
		"no iptables":      {func(s *system) { s.run = missing("iptables") }, "networks", warning, "iptables"},
		"no nftables":      {func(s *system) { s.canRestrict = func() bool { return false } }, "firewall", warning, "nftables"},
		"no GPUs":          {func(s *system) { s.gpus = func(context.Context) (string, error) { return "", errBroken } }, "gpus", warning, "none"},
		"GPUs, no toolkit": {func(s *system) { s.gpus = func(context.Context) (string, error) { return "1 GPU", errBroken } }, "gpus", unfit, "1 GPU"},
		"no endpoint":      {func(s *system) { s.health = noHealth }, "control plane", unfit, "broken"},
		"another server":   {func(s *system) { s.health = answers(health{}) }, "control plane", unfit, "no control plane"},
		"clocks apart":     {func(s *system) { s.health = late(s, time.Minute) }, "control plane", warning, "0.1"},
		"clocks far apart": {func(s *system) { s.health = late(s, 10*time.Minute) }, "control plane", unfit, "0.1"},
		"read-only plane":  {func(s *system) { s.health = answers(health{"0.1", "read-only", s.now()}) }, "control plane", warning, "read-only"},
	} {
		t.Run(name, func(t *testing.T) {
			s := fit()
			c.change(&s)
			var wrong []finding
			for _, f := range examine(t.Context(), doctorCmd{Role: "both", Data: "/data", Listen: "127.0.0.1:4566", Runtime: "auto", Endpoint: "http://c"}, s) {
				if f.Verdict != fine {
					wrong = append(wrong, f)
				} else if f.Do != "" || f.Found == "" {
					t.Errorf("%+v", f)
				}
			}
			if c.check == "" {
				if len(wrong) > 0 {
					t.Errorf("found are %+v", wrong)
				}
				return
			}
			if len(wrong) != 1 || wrong[0].Check != c.check || wrong[0].Verdict != c.verdict || !strings.Contains(wrong[0].Found, c.found) || wrong[0].Do == "" {
				t.Errorf("found are %+v", wrong)
			}
		})
	}
}

// TestDoctorOfFiles: the packages' units allow what 5,000 nodes take, and a limit that is too low for as many as asked for is found.
func TestDoctorOfFiles(t *testing.T) {
	for _, unit := range []string{"pintle.service", "pintle-agent.service"} {
		b, err := os.ReadFile("../../packaging/" + unit)
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("\nLimitNOFILE=%d\n", unitFiles); !strings.Contains(string(b), want) || filesFor(5000) > unitFiles {
			t.Errorf("%s lacks %s, or that isn't enough", unit, want)
		}
	}
	for _, c := range []struct {
		role      string
		instances int
		files     uint64
		want      verdict
		do        string
	}{
		{"both", 5000, 20000, unfit, "LimitNOFILE=65536"},
		{"both", 5000, 22000, fine, ""},
		{"control-plane", 50000, 65536, unfit, "LimitNOFILE=202000"},
		{"control-plane", 100, 2400, warning, "LimitNOFILE=65536"},
		{"node", 5000, 4096, fine, ""},
	} {
		s := fit()
		s.maxFiles = func() uint64 { return c.files }
		if f := filesCheck(doctorCmd{Role: c.role, Instances: c.instances}, s); f.Verdict != c.want || !strings.Contains(f.Do, c.do) {
			t.Errorf("%+v: found is %+v", c, f)
		}
	}
}

func noHealth(context.Context, string) (health, error) { return health{}, errBroken }

func onlyAt(endpoint string, ask func(context.Context, string) (health, error)) func(context.Context, string) (health, error) {
	return func(ctx context.Context, at string) (health, error) {
		if at != endpoint {
			return noHealth(ctx, at)
		}
		return ask(ctx, at)
	}
}

func answers(h health) func(context.Context, string) (health, error) {
	return func(context.Context, string) (health, error) { return h, nil }
}

func late(s *system, by time.Duration) func(context.Context, string) (health, error) {
	return answers(health{"0.1", "ok", s.now().Add(-by)})
}

func missing(program string) func(context.Context, string, ...string) (string, error) {
	return func(_ context.Context, name string, _ ...string) (string, error) {
		if name == program {
			return "", errBroken
		}
		return name, nil
	}
}

// TestDoctorOfRuntimes: one runtime is enough unless one is named, and a control plane needs none.
func TestDoctorOfRuntimes(t *testing.T) {
	for _, c := range []struct {
		role, runtime string
		docker, runc  bool
		want          string // checks of containers
		fails         bool
	}{
		{"node", "auto", true, true, "docker runc", false},
		{"node", "auto", false, true, "runc", false},
		{"node", "auto", true, false, "docker", false},
		{"node", "auto", false, false, "docker runc", true},
		{"node", "oci", true, false, "runc", true},
		{"node", "docker", false, true, "docker", true},
		{"node", "process", false, false, "containers", false},
		{"control-plane", "auto", false, false, "", false},
	} {
		s := fit()
		if !c.docker {
			s.docker = func(context.Context) error { return errBroken }
		}
		if !c.runc {
			s.run = missing("runc")
		}
		var names []string
		fails := false
		for _, f := range examine(t.Context(), doctorCmd{Role: c.role, Runtime: c.runtime}, s) {
			fails = fails || f.Verdict == unfit
			if f.Check == "docker" || f.Check == "runc" || f.Check == "containers" {
				names = append(names, f.Check)
			}
		}
		if got := strings.Join(names, " "); got != c.want || fails != c.fails {
			t.Errorf("%+v: checks %q, fails %v", c, got, fails)
		}
	}
}

// TestDoctorsAdvice is for what is wrong, and not for what is usually wrong.
func TestDoctorsAdvice(t *testing.T) {
	docker := func(err error) func(*system) {
		return func(s *system) { s.docker = func(context.Context) error { return err } }
	}
	listen := func(err error) func(*system) {
		return func(s *system) { s.listen, s.health = func(string) error { return err }, noHealth }
	}
	for name, c := range map[string]struct {
		change func(*system)
		want   string
	}{
		"no engine":       {docker(errors.New("dial unix /var/run/docker.sock: no such file or directory")), "apt-get install docker.io"},
		"another's":       {docker(errors.New("permission denied while trying to connect")), "group docker"},
		"a hanging one":   {func(s *system) { s.docker = func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() } }, "systemctl restart docker"},
		"taken port":      {listen(syscall.EADDRINUSE), "end what listens there"},
		"low port":        {listen(syscall.EACCES), "above 1023"},
		"another address": {listen(syscall.EADDRNOTAVAIL), "address of this machine"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := fit()
				c.change(&s)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				found := examine(ctx, doctorCmd{Role: "both", Data: "/data", Listen: "127.0.0.1:4566", Runtime: "docker"}, s.hurried())
				wrong := slices.DeleteFunc(found, func(f finding) bool { return f.Verdict == fine })
				if len(wrong) != 1 || !strings.Contains(wrong[0].Do, c.want) || ctx.Err() != nil {
					t.Errorf("found are %+v", wrong)
				}
			})
		})
	}
}
