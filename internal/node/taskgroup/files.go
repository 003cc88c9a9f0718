package taskgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// setting is what a file of a group is to say. The file's name begins with its controller's.
type setting struct {
	file  string
	value int64
}

// createV1 makes a group in the trees of those controllers that limit it. runc makes it in the others, with its containers' in it.
func createV1(root, path string, l Limits) error {
	dir := func(controller string) string { return filepath.Join(root, controller, path) }
	for _, controller := range []string{"cpu", "memory"} {
		if _, err := os.Stat(filepath.Join(root, controller)); err != nil {
			return fmt.Errorf("the controller is not mounted: %w", err)
		}
		if err := os.MkdirAll(dir(controller), 0o755); err != nil {
			return err
		}
	}
	// Before Linux 5.11 a group's memory limit covers the groups in it only if this says so.
	os.WriteFile(filepath.Join(dir("memory"), "memory.use_hierarchy"), []byte("1"), 0o600) //nolint:errcheck // it may be gone
	for _, s := range l.v1() {
		controller, _, _ := strings.Cut(s.file, ".")
		if err := write(filepath.Join(dir(controller), s.file), strconv.FormatInt(s.value, 10)); err != nil {
			return err
		}
	}
	return nil
}

func (l Limits) v1() (out []setting) {
	if l.CPUShares > 0 {
		out = append(out, setting{"cpu.shares", l.CPUShares})
	}
	if l.CPUQuotaMilli > 0 {
		out = append(out, setting{"cpu.cfs_period_us", cpuPeriod}, setting{"cpu.cfs_quota_us", l.CPUQuotaMilli * cpuPeriod / 1000})
	}
	if l.MemoryBytes > 0 {
		out = append(out, setting{"memory.limit_in_bytes", l.MemoryBytes})
	}
	return out
}

// createV2 makes a group, and has the groups above it hand on the controllers that limit it.
func createV2(root, path string, l Limits) error {
	dir := root
	var handedOn error // only the last counts: those above may have been told by somebody else, and may not be ours to write
	for name := range strings.SplitSeq(strings.Trim(path, "/"), "/") {
		handedOn = write(filepath.Join(dir, "cgroup.subtree_control"), "+cpu +memory")
		dir = filepath.Join(dir, name)
		if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
			return err
		}
	}
	if handedOn != nil {
		return handedOn
	}
	for _, s := range l.v2() {
		value := strconv.FormatInt(s.value, 10)
		if s.file == "cpu.max" {
			value = fmt.Sprintf("%d %d", s.value, cpuPeriod)
		}
		if err := write(filepath.Join(dir, s.file), value); err != nil {
			return err
		}
	}
	return nil
}

func (l Limits) v2() (out []setting) {
	if l.CPUShares > 0 {
		out = append(out, setting{"cpu.weight", weight(l.CPUShares)})
	}
	if l.CPUQuotaMilli > 0 {
		out = append(out, setting{"cpu.max", l.CPUQuotaMilli * cpuPeriod / 1000})
	}
	if l.MemoryBytes > 0 {
		out = append(out, setting{"memory.max", l.MemoryBytes})
	}
	return out
}

// weight converts shares, 2 to 262144 and usually 1024, into a weight, 1 to 10000, along a line, as runc 1.1 does, which Debian has; later ones
// have a curve. systemd's slices and the kernel's files have the same, so that a task weighs the same against its neighbours either way.
func weight(shares int64) int64 {
	return 1 + (min(max(shares, 2), 262144)-2)*9999/262142
}

// write writes into a file of the kernel's, which is there or not.
func write(path, value string) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteString(value)
	return errors.Join(err, f.Close())
}

// remove removes groups with those in them. Their processes must have ended; the runtime may take a moment to remove its own.
func remove(groups ...string) error {
	delay := 10 * time.Millisecond
	for {
		var failed error
		for _, dir := range groups {
			failed = errors.Join(failed, os.RemoveAll(dir)) // it can't remove the kernel's files, which go with their directory
		}
		if failed == nil || delay > time.Second {
			return failed
		}
		time.Sleep(delay)
		delay *= 2
	}
}
