// Package bootstrap is what a machine does for itself before it's a node: it runs its instance's user data, with cfn-init and cfn-signal, as
// an instance of EC2 would. It runs beside agents, on machines whose owner allows it.
package bootstrap

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pintle/pintle/internal/cloudformation/cfninit"
)

// Machine is what configs are done on.
type Machine struct {
	Out io.Writer // gets what is being done, and the programs' output
	// Run runs a program; nil for cmd.Run.
	Run func(cmd *exec.Cmd) error
}

// Apply does what a config says, in cfn-init's order: packages, groups, users, files, commands, services. It ends with the first failure.
func (m Machine) Apply(ctx context.Context, c cfninit.Named) error {
	if m.Run == nil {
		m.Run = (*exec.Cmd).Run
	}
	err := m.apply(ctx, c.Config)
	if err != nil {
		return fmt.Errorf("config %s: %w", c.Name, err)
	}
	return nil
}

func (m Machine) apply(ctx context.Context, c cfninit.Config) error {
	if len(c.Sources) > 0 {
		return errors.New("pintle fetches no sources: use a command with curl and tar")
	}
	if err := m.packages(ctx, c.Packages); err != nil {
		return err
	}
	if err := m.accounts(ctx, c); err != nil {
		return err
	}
	changed := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(c.Files)) {
		written, err := file{c.Files[path]}.write(path)
		if err != nil {
			return fmt.Errorf("file %s: %w", path, err)
		}
		changed[path] = written
	}
	for _, name := range slices.Sorted(maps.Keys(c.Commands)) {
		if err := m.command(ctx, c.Commands[name]); err != nil {
			return fmt.Errorf("command %s: %w", name, err)
		}
	}
	return m.services(ctx, c.Services, changed)
}

// call runs a program, and says so.
func (m Machine) call(ctx context.Context, argv ...string) error {
	fmt.Fprintln(m.Out, "+", strings.Join(argv, " ")) //nolint:errcheck // it's only told
	if err := m.Run(m.program(ctx, argv)); err != nil {
		return fmt.Errorf("%s: %w", strings.Join(argv, " "), err)
	}
	return nil
}

func (m Machine) program(ctx context.Context, argv []string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Stdout = m.Out
	cmd.Stderr = m.Out
	return cmd
}

// manager is a package manager: how it installs packages, and what stands between a package's name and its version.
type manager struct {
	install []string
	version string
}

var managers = map[string]manager{
	"apt":    {[]string{"apt-get", "-y", "install"}, "="},
	"dnf":    {[]string{"dnf", "-y", "install"}, "-"},
	"python": {[]string{"python3", "-m", "pip", "install"}, "=="},
	"rpm":    {[]string{"rpm", "-U", "--replacepkgs"}, ""},
	"yum":    {[]string{"yum", "-y", "install"}, "-"},
	"zypper": {[]string{"zypper", "--non-interactive", "install"}, "="},
}

// words are what a manager calls the versions of a package. Those of rpm are the places that packages come from.
func (m manager) words(name string, all cfninit.Versions) (words []string) {
	if len(all) == 0 {
		return []string{name}
	}
	for _, v := range all {
		if m.version != "" {
			v = name + m.version + v
		}
		words = append(words, v)
	}
	return words
}

func (m Machine) packages(ctx context.Context, wanted map[string]map[string]cfninit.Versions) error {
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		manager, ok := managers[name]
		if !ok {
			return fmt.Errorf("packages: %s is none of %s", name, strings.Join(slices.Sorted(maps.Keys(managers)), ", "))
		}
		argv := slices.Clone(manager.install)
		for _, p := range slices.Sorted(maps.Keys(wanted[name])) {
			argv = append(argv, manager.words(p, wanted[name][p])...)
		}
		if err := m.call(ctx, argv...); err != nil {
			return err
		}
	}
	return nil
}

// accounts makes the groups and users that aren't there.
func (m Machine) accounts(ctx context.Context, c cfninit.Config) error {
	for _, name := range slices.Sorted(maps.Keys(c.Groups)) {
		if _, err := user.LookupGroup(name); err == nil {
			continue
		}
		argv := []string{"groupadd"}
		if id := c.Groups[name].GID; id != "" {
			argv = append(argv, "--gid="+string(id))
		}
		if err := m.call(ctx, append(argv, "--", name)...); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Users)) {
		if _, err := user.Lookup(name); err == nil {
			continue
		}
		if err := m.call(ctx, addUser(name, c.Users[name])...); err != nil {
			return err
		}
	}
	return nil
}

// addUser returns the command that makes a user.
func addUser(name string, a cfninit.User) []string {
	argv := []string{"useradd", "--system", "--shell=/sbin/nologin"}
	if a.UID != "" {
		argv = append(argv, "--uid="+string(a.UID))
	}
	if a.HomeDir != "" {
		argv = append(argv, "--create-home", "--home-dir="+a.HomeDir)
	}
	if len(a.Groups) > 0 {
		var groups []string
		for _, g := range a.Groups {
			groups = append(groups, string(g))
		}
		argv = append(argv, "--groups="+strings.Join(groups, ","))
	}
	return append(argv, "--", name)
}

// symbolicLink begins the mode of a file that is one.
const symbolicLink = "120"

// file is a file that is to be written.
type file struct{ cfninit.File }

// write writes the file, and reports whether there was another one, or none.
func (f file) write(path string) (changed bool, err error) {
	switch {
	case f.Source != "":
		return false, errors.New("pintle fetches no source: use a command with curl")
	case f.Context != nil:
		return false, errors.New("pintle has no context for Mustache templates: use Fn::Sub")
	case !filepath.IsAbs(path):
		return false, errors.New("the path must be absolute")
	}
	content, err := f.bytes()
	if err != nil {
		return false, err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return false, err
	}
	if strings.HasPrefix(f.Mode, symbolicLink) && len(f.Mode) == 6 {
		return link(string(content), path)
	}
	mode := uint64(0o644)
	if f.Mode != "" {
		if mode, err = strconv.ParseUint(f.Mode, 8, 32); err != nil || mode > 0o7777 {
			return false, fmt.Errorf("mode %q must be octal digits such as 000644", f.Mode)
		}
	}
	before, err := os.ReadFile(path)
	changed = err != nil || string(before) != string(content)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		return false, err
	}
	return changed, errors.Join(f.give(path), os.Chmod(path, fileMode(mode)))
}

// fileMode returns a mode of Unix as Go's.
func fileMode(mode uint64) os.FileMode {
	out := os.FileMode(mode & 0o777)
	for bit, special := range map[uint64]os.FileMode{0o4000: os.ModeSetuid, 0o2000: os.ModeSetgid, 0o1000: os.ModeSticky} {
		if mode&bit != 0 {
			out |= special
		}
	}
	return out
}

func link(to, path string) (changed bool, err error) {
	if there, err := os.Readlink(path); err == nil && there == to {
		return false, nil
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return false, err
	}
	return true, os.Symlink(to, path)
}

// bytes returns the content as it's written.
func (f file) bytes() ([]byte, error) {
	s, isText := f.Content.(string)
	switch {
	case !isText && f.Content != nil:
		return json.Marshal(f.Content)
	case f.Encoding == "" || f.Encoding == "plain":
		return []byte(s), nil
	case f.Encoding == "base64":
		return base64.StdEncoding.DecodeString(s)
	}
	return nil, fmt.Errorf("encoding %q must be plain or base64", f.Encoding)
}

// give gives the file to its owner and its group.
func (f file) give(path string) error {
	uid, gid := -1, -1
	if f.Owner != "" {
		u, err := user.Lookup(f.Owner)
		if err != nil {
			return err
		}
		uid, _ = strconv.Atoi(u.Uid)
	}
	if f.Group != "" {
		g, err := user.LookupGroup(f.Group)
		if err != nil {
			return err
		}
		gid, _ = strconv.Atoi(g.Gid)
	}
	return os.Chown(path, uid, gid)
}

// command runs a command, if its test succeeds.
func (m Machine) command(ctx context.Context, c cfninit.Command) error {
	if c.Test != nil {
		test, err := m.prepare(ctx, c, c.Test)
		if err != nil {
			return err
		}
		if m.Run(test) != nil {
			return nil
		}
	}
	cmd, err := m.prepare(ctx, c, c.Command)
	if err != nil {
		return err
	}
	fmt.Fprintln(m.Out, "+", strings.Join(cmd.Args, " ")) //nolint:errcheck // it's only told
	if err := m.Run(cmd); err != nil && !c.IgnoreErrors {
		return err
	}
	return nil
}

// prepare returns a line for the shell, or a program with its arguments, with the command's environment.
func (m Machine) prepare(ctx context.Context, c cfninit.Command, what any) (*exec.Cmd, error) {
	var argv []string
	switch what := what.(type) {
	case string:
		argv = []string{"/bin/sh", "-c", what}
	case []any:
		for _, word := range what {
			argv = append(argv, fmt.Sprint(word))
		}
	}
	if len(argv) == 0 || argv[0] == "" {
		return nil, fmt.Errorf("%v is neither a line for the shell nor a program with its arguments", what)
	}
	cmd := m.program(ctx, argv)
	cmd.Dir = c.Cwd
	cmd.Env = os.Environ()
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		cmd.Env = append(cmd.Env, fmt.Sprintf("%s=%v", name, c.Env[name]))
	}
	return cmd, nil
}

// services starts, stops, enables and disables services of systemd; those of sysvinit are systemd's, too, wherever it runs.
func (m Machine) services(ctx context.Context, wanted map[string]map[string]cfninit.Service, changed map[string]bool) error {
	for _, manager := range slices.Sorted(maps.Keys(wanted)) {
		if manager != "systemd" && manager != "sysvinit" {
			return fmt.Errorf("services: %s is neither systemd nor sysvinit", manager)
		}
		for _, name := range slices.Sorted(maps.Keys(wanted[manager])) {
			for _, verb := range verbsOf(wanted[manager][name], changed) {
				if err := m.call(ctx, "systemctl", verb, "--", name); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// verbsOf returns what systemctl is told of a service.
func verbsOf(s cfninit.Service, changed map[string]bool) (verbs []string) {
	if s.Enabled != nil {
		verbs = append(verbs, map[bool]string{true: "enable", false: "disable"}[bool(*s.Enabled)])
	}
	if s.EnsureRunning == nil {
		return verbs
	}
	switch {
	case !bool(*s.EnsureRunning):
		return append(verbs, "stop")
	case slices.ContainsFunc(s.Files, func(path string) bool { return changed[path] }):
		return append(verbs, "restart")
	}
	return append(verbs, "start")
}
