package fleet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/instancetype"
	"github.com/pintle/pintle/internal/pattern"
	"github.com/pintle/pintle/internal/shellword"
)

// Host is one of the user's own machines. Its JSON is the pool file's: docs/fleet.md.
type Host struct {
	Name string `json:"name"`
	// Address is how ssh reaches it: [user@]host[:port]. The host may be one of ~/.ssh/config.
	Address      string `json:"address"`
	InstanceType string `json:"instanceType"` // the type that it stands for
	// Zone is where it stands. "" stands for every zone.
	Zone string `json:"availabilityZone,omitempty"`
	// Wake and Sleep are programs with their arguments. They run on the control plane's machine, without a shell.
	Wake  []string `json:"wake,omitempty"`
	Sleep []string `json:"sleep,omitempty"`
	// WakeSeconds is how long it may take from waking to its first answer, including the wake command.
	WakeSeconds int `json:"wakeSeconds,omitempty"`
	// Program is the pintle binary on the machine, Agent are flags of its agent, and Data is its instance's directory.
	Program string   `json:"program,omitempty"`
	Agent   []string `json:"agent,omitempty"`
	Data    string   `json:"data,omitempty"`
	// IdentityFile and KnownHostsFile override ssh's configuration.
	IdentityFile   string `json:"identityFile,omitempty"`
	KnownHostsFile string `json:"knownHostsFile,omitempty"`
}

const (
	defaultWake   = 10 * time.Minute // a server's firmware takes minutes
	defaultAnswer = 30 * time.Second // for a machine that nobody wakes
	maxWake       = time.Hour
)

var (
	hostName    = pattern.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`, 63) // it's a file name, too
	hostAddress = regexp.MustCompile(`^(?:([A-Za-z_][A-Za-z0-9._-]{0,31})@)?` +
		`([A-Za-z0-9][A-Za-z0-9._-]*|\[[0-9A-Fa-f:.]+(?:%[A-Za-z0-9]+)?\])(?::([0-9]{1,5}))?$`)
	// sshPath matches paths that ssh takes literally. It splits others at spaces, and expands % and ~ in them.
	sshPath = regexp.MustCompile(`^/[A-Za-z0-9_./+:@,=-]+$`)
)

// ReadPool reads a region's pool file. Errors name the machine and the field.
func ReadPool(path, region string) ([]Host, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var pool struct {
		Machines []Host `json:"machines"`
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&pool); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: there is something behind the object", path)
	}
	if len(pool.Machines) == 0 {
		return nil, fmt.Errorf("%s: machines is empty", path)
	}
	for i := range pool.Machines {
		if err := pool.Machines[i].check(region, pool.Machines[:i]); err != nil {
			return nil, fmt.Errorf("%s: machines[%d] (%s): %w", path, i, pool.Machines[i].Name, err)
		}
	}
	return pool.Machines, nil
}

// check refuses invalid values, naming the field, and fills in defaults. before are the machines before it in the file.
func (h *Host) check(region string, before []Host) error {
	if h.Program == "" {
		h.Program = "pintle"
	}
	if h.Data == "" {
		h.Data = ".pintle/machine" // in the user's home
	}
	if h.WakeSeconds == 0 {
		h.WakeSeconds = int(defaultAnswer.Seconds())
		if len(h.Wake) > 0 {
			h.WakeSeconds = int(defaultWake.Seconds())
		}
	}
	switch {
	case !hostName.MatchString(h.Name):
		return errors.New("name must have 1 to 63 letters, digits, dots, underscores and hyphens, and begin with a letter or digit")
	case slices.ContainsFunc(before, func(o Host) bool { return o.Name == h.Name }):
		return errors.New("name is another machine's, too")
	case !hostAddress.MatchString(h.Address):
		return fmt.Errorf("address %q must be [user@]host[:port]", h.Address)
	case slices.ContainsFunc(before, func(o Host) bool { return o.Address == h.Address && o.Data == h.Data }):
		return errors.New("address is another machine's, too")
	case h.Zone != "" && (len(h.Zone) != len(region)+1 || !strings.HasPrefix(h.Zone, region)):
		return fmt.Errorf("availabilityZone %q must be one of the region, such as %sa", h.Zone, region)
	case h.WakeSeconds < 1 || h.WakeSeconds > int(maxWake.Seconds()):
		return fmt.Errorf("wakeSeconds must be from 1 to %.0f", maxWake.Seconds())
	case h.IdentityFile != "" && !sshPath.MatchString(h.IdentityFile):
		return fmt.Errorf("identityFile %q must be an absolute path of letters, digits and _./+:@,=-", h.IdentityFile)
	case h.KnownHostsFile != "" && !sshPath.MatchString(h.KnownHostsFile):
		return fmt.Errorf("knownHostsFile %q must be an absolute path of letters, digits and _./+:@,=-", h.KnownHostsFile)
	}
	if _, err := instancetype.Lookup(h.InstanceType); err != nil {
		return fmt.Errorf("instanceType: %w", err)
	}
	for field, program := range map[string][]string{"wake": h.Wake, "sleep": h.Sleep} {
		if len(program) == 0 {
			continue
		}
		if _, err := exec.LookPath(program[0]); err != nil {
			return fmt.Errorf("%s: %w", field, err)
		}
	}
	return h.checkThere()
}

// checkThere refuses what couldn't be passed to the machine's shell.
func (h *Host) checkThere() error {
	for field, words := range map[string][]string{"program": {h.Program}, "data": {h.Data}, "agent": h.Agent} {
		for _, word := range words {
			if word == "" || len(word) > 4096 || strings.ContainsAny(word, "\x00\r\n") {
				return fmt.Errorf("%s %q must not be empty, long, or of several lines", field, word)
			}
		}
	}
	if filepath.Clean(h.Data) == "." || strings.HasPrefix(filepath.Clean(h.Data), "..") || strings.HasPrefix(h.Data, "-") {
		return fmt.Errorf("data %q must be a directory of its own", h.Data)
	}
	return nil
}

// ssh returns the command that runs a program on the machine. ssh's own configuration applies (jump hosts, agents,
// keys), except that nobody is prompted, and that the machine's host key must be known.
func (h *Host) ssh(words ...string) []string {
	part := hostAddress.FindStringSubmatch(h.Address)
	out := []string{
		"ssh", "-T", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5",
		"-o", "ClearAllForwardings=yes", "-o", "ControlPath=none", "-o", "LogLevel=ERROR",
	}
	if h.IdentityFile != "" {
		out = append(out, "-i", h.IdentityFile, "-o", "IdentitiesOnly=yes")
	}
	if h.KnownHostsFile != "" {
		out = append(out, "-o", "UserKnownHostsFile="+h.KnownHostsFile, "-o", "GlobalKnownHostsFile=/dev/null")
	}
	if part[1] != "" {
		out = append(out, "-l", part[1])
	}
	if part[3] != "" {
		out = append(out, "-p", part[3])
	}
	out = append(out, "--", strings.Trim(part[2], "[]"))
	for _, word := range words {
		out = append(out, shellword.Quote(word))
	}
	return out
}
