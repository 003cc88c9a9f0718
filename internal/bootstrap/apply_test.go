package bootstrap

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/cloudformation/cfninit"
)

// applied does what a config of the default name says, and returns what it ran and wrote.
func applied(t *testing.T, config string, run func(*exec.Cmd) error) (out string, err error) {
	t.Helper()
	configs, err := cfninit.Select(`{"AWS::CloudFormation::Init": {"config": `+config+`}}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	err = Machine{Out: &said, Run: run}.Apply(t.Context(), configs[0])
	return said.String(), err
}

// TestFilesAndCommands really writes and runs.
func TestFilesAndCommands(t *testing.T) {
	dir := t.TempDir()
	out, err := applied(t, strings.ReplaceAll(`{
		"files": {
			"DIR/sub/ecs.config": {"content": "ECS_CLUSTER=gpu\n", "mode": "000600"},
			"DIR/settings.json": {"content": {"a": [1, "two"]}},
			"DIR/binary": {"content": "aGVsbG8=", "encoding": "base64", "mode": "000755"},
			"DIR/link": {"content": "DIR/binary", "mode": "120644"}},
		"commands": {
			"03-last": {"command": ["cat", "DIR/binary"]},
			"01-first": {"command": "echo $WHO in $PWD", "env": {"WHO": 7}, "cwd": "DIR/sub"},
			"02-skipped": {"command": "echo never", "test": "test -f DIR/nothing"},
			"02-tried": {"command": "exit 3", "ignoreErrors": "true"}}}`, "DIR", dir), nil)
	if err != nil {
		t.Fatal(err)
	}
	if want := "7 in " + dir + "/sub\n"; !strings.Contains(out, want) || strings.Contains(out, "\nnever") || !strings.HasSuffix(out, "hello") {
		t.Errorf("the commands say %s", out)
	}
	for name, want := range map[string]string{"sub/ecs.config": "ECS_CLUSTER=gpu\n", "settings.json": `{"a":[1,"two"]}`, "link": "hello"} {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(b) != want {
			t.Errorf("%s: %q, %v", name, b, err)
		}
	}
	for name, want := range map[string]os.FileMode{"sub/ecs.config": 0o600, "settings.json": 0o644, "binary": 0o755} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
}

// TestPrograms: packages, accounts and services are left to the machine's own programs, in cfn-init's order.
func TestPrograms(t *testing.T) {
	dir := t.TempDir()
	var ran []string
	_, err := applied(t, strings.ReplaceAll(`{
		"packages": {"yum": {"git": [], "php": ["7.4"]}, "rpm": {"epel": "https://example.com/epel.rpm"}},
		"groups": {"root": {}, "pintle-test-workers": {"gid": "4711"}},
		"users": {"pintle-test-worker": {"uid": 4712, "groups": ["pintle-test-workers", "root"], "homeDir": "/srv"}},
		"files": {"DIR/unit": {"content": "new"}},
		"services": {"sysvinit": {
			"agent": {"enabled": "true", "ensureRunning": true, "files": ["DIR/unit"]},
			"other": {"enabled": false, "ensureRunning": "true"}, "third": {"ensureRunning": false}}}}`, "DIR", dir),
		func(cmd *exec.Cmd) error { ran = append(ran, strings.Join(cmd.Args, " ")); return nil })
	want := `rpm -U --replacepkgs https://example.com/epel.rpm
yum -y install git php-7.4
groupadd --gid=4711 -- pintle-test-workers
useradd --system --shell=/sbin/nologin --uid=4712 --create-home --home-dir=/srv --groups=pintle-test-workers,root -- pintle-test-worker
systemctl enable -- agent
systemctl restart -- agent
systemctl disable -- other
systemctl start -- other
systemctl stop -- third`
	if got := strings.Join(ran, "\n"); err != nil || got != want {
		t.Errorf("%v:\n%s", err, got)
	}
}

// TestRefused: what can't be done is named, and nothing behind it is done.
func TestRefused(t *testing.T) {
	for config, want := range map[string]string{
		`{"sources": {"/srv": "https://example.com/a.tgz"}}`:                                  "pintle fetches no sources",
		`{"packages": {"msi": {"x": []}}}`:                                                    "packages: msi is none of apt, dnf",
		`{"files": {"/srv/x": {"source": "https://example.com/x"}}}`:                          "file /srv/x: pintle fetches no source",
		`{"files": {"x": {"content": "y"}}}`:                                                  "the path must be absolute",
		`{"files": {"/nowhere/x": {"content": "y", "encoding": "rot13"}}}`:                    `encoding "rot13" must be plain or base64`,
		`{"files": {"/dev/shm/pintle-x": {"content": "y", "mode": "rw"}}}`:                    `mode "rw" must be octal digits`,
		`{"commands": {"1": {"command": "failing"}, "2": {"command": "never"}}}`:              "config config: command 1: it failed",
		`{"commands": {"1": {"command": {}}}}`:                                                "neither a line for the shell",
		`{"services": {"windows": {"w3svc": {"ensureRunning": true}}}}`:                       "windows is neither systemd nor sysvinit",
		`{"services": {"systemd": {"x": {"ensureRunning": true}, "y": {"enabled": "true"}}}}`: "systemctl start -- x: it failed",
	} {
		calls := 0
		_, err := applied(t, config, func(*exec.Cmd) error { calls++; return errors.New("it failed") })
		if err == nil || !strings.Contains(err.Error(), want) || calls > 1 {
			t.Errorf("%s: %v after %d calls", config, err, calls)
		}
	}
}
