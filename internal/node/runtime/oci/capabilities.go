package oci

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pintle/pintle/internal/node/runtime"
)

// defaultCapabilities are Docker's defaults.
var defaultCapabilities = []string{
	"CAP_AUDIT_WRITE", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_MKNOD", "CAP_NET_BIND_SERVICE",
	"CAP_NET_RAW", "CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID", "CAP_SYS_CHROOT",
}

// allCapabilities lists Linux's capabilities by number.
var allCapabilities = []string{
	"CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_DAC_READ_SEARCH", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_SETGID", "CAP_SETUID",
	"CAP_SETPCAP", "CAP_LINUX_IMMUTABLE", "CAP_NET_BIND_SERVICE", "CAP_NET_BROADCAST", "CAP_NET_ADMIN", "CAP_NET_RAW", "CAP_IPC_LOCK",
	"CAP_IPC_OWNER", "CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_SYS_CHROOT", "CAP_SYS_PTRACE", "CAP_SYS_PACCT", "CAP_SYS_ADMIN",
	"CAP_SYS_BOOT", "CAP_SYS_NICE", "CAP_SYS_RESOURCE", "CAP_SYS_TIME", "CAP_SYS_TTY_CONFIG", "CAP_MKNOD", "CAP_LEASE",
	"CAP_AUDIT_WRITE", "CAP_AUDIT_CONTROL", "CAP_SETFCAP", "CAP_MAC_OVERRIDE", "CAP_MAC_ADMIN", "CAP_SYSLOG", "CAP_WAKE_ALARM",
	"CAP_BLOCK_SUSPEND", "CAP_AUDIT_READ", "CAP_PERFMON", "CAP_BPF", "CAP_CHECKPOINT_RESTORE",
}

// capabilities returns the defaults, plus what the spec adds and minus what it drops.
func capabilities(s *runtime.Spec) ([]string, error) {
	if s.Privileged {
		return ownCapabilities()
	}
	out := slices.Clone(defaultCapabilities)
	drop, err := parseCapabilities(s.CapDrop)
	if err != nil {
		return nil, err
	}
	add, err := parseCapabilities(s.CapAdd)
	if err != nil {
		return nil, err
	}
	out = slices.DeleteFunc(out, func(c string) bool { return slices.Contains(drop, c) })
	for _, c := range add {
		if !slices.Contains(out, c) {
			out = append(out, c)
		}
	}
	return out, nil
}

// parseCapabilities reads names such as ALL, SYS_ADMIN or CAP_SYS_ADMIN.
func parseCapabilities(in []string) ([]string, error) {
	var out []string
	for _, c := range in {
		c = strings.ToUpper(c)
		if c == "ALL" {
			return ownCapabilities()
		}
		if !strings.HasPrefix(c, "CAP_") {
			c = "CAP_" + c
		}
		if !slices.Contains(allCapabilities, c) {
			return nil, fmt.Errorf("there is no Linux capability %s", c)
		}
		out = append(out, c)
	}
	return out, nil
}

// ownCapabilities returns the capabilities of this process, which can't grant any others.
func ownCapabilities() ([]string, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(b)) {
		text, ok := strings.CutPrefix(line, "CapEff:")
		if !ok {
			continue
		}
		mask, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
		if err != nil {
			return nil, err
		}
		var out []string
		for i, name := range allCapabilities {
			if mask&(1<<i) != 0 {
				out = append(out, name)
			}
		}
		return out, nil
	}
	return nil, errors.New("/proc/self/status does not say what this process may do")
}
