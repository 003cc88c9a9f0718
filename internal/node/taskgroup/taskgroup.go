// Package taskgroup binds all containers of a task together: each task with limits of its own has a control group (cgroup), in which the
// runtime makes those of its containers. They are named as Amazon's agent names them: /ecs/TASK, or ecstasks-TASK.slice where systemd
// manages control groups. The engine calls it. It needs root.
package taskgroup

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/containerd/cgroups/v3"
)

// Limits are what a task's containers may use together. 0 is no limit.
type Limits struct {
	CPUShares     int64 // the weight against other tasks
	CPUQuotaMilli int64 // thousandths of a core
	MemoryBytes   int64
}

const (
	root      = "/sys/fs/cgroup"
	cpuPeriod = 100_000 // microseconds
)

// Groups makes the control groups of one machine's tasks.
type Groups struct {
	systemd bool
	run     func(ctx context.Context, args ...string) error // systemctl
}

// Open returns the groups of a machine, or why there can be none. systemd says that the runtime leaves control groups to systemd.
func Open(systemd bool) (*Groups, error) {
	if os.Geteuid() != 0 {
		return nil, errors.New("the agent is not root")
	}
	g := &Groups{systemd: systemd, run: systemctl}
	if systemd {
		_, err := exec.LookPath("systemctl")
		return g, err
	}
	const probe = "0-pintle-probe" // shows whether groups can be made, as they can't where they are mounted read-only
	ctx := context.Background()
	_, err := g.Create(ctx, probe, Limits{CPUShares: 2, MemoryBytes: 64 << 20})
	if cgroups.Mode() == cgroups.Hybrid {
		removeLeftovers(root)
	}
	return g, errors.Join(err, g.Delete(ctx, probe))
}

func path(task string) string { return "/ecs/" + task }

// slice names a task's group for systemd, which reads a - as a level.
func slice(task string) string { return "ecstasks-" + strings.ReplaceAll(task, "-", "_") + ".slice" }

// Create makes a task's group, or sets its limits anew, and returns what the runtime takes as the parent of its containers'.
func (g *Groups) Create(ctx context.Context, task string, l Limits) (parent string, err error) {
	switch {
	case g.systemd:
		return slice(task), g.createSlice(ctx, slice(task), l)
	case cgroups.Mode() == cgroups.Unified:
		err = createV2(root, path(task), l)
	case cgroups.Mode() == cgroups.Unavailable:
		err = errors.New("no control groups are mounted at " + root)
	default:
		err = createV1(root, path(task), l)
	}
	if err != nil {
		return "", fmt.Errorf("control group %s: %w", path(task), err)
	}
	return path(task), nil
}

// createSlice makes a slice with limits. They hold until the slice is deleted, or the machine boots.
func (g *Groups) createSlice(ctx context.Context, name string, l Limits) error {
	args := []string{"set-property", "--runtime", name, "CPUAccounting=true", "MemoryAccounting=true"}
	if l.CPUShares > 0 {
		args = append(args, "CPUWeight="+strconv.FormatInt(weight(l.CPUShares), 10))
	}
	if l.CPUQuotaMilli > 0 {
		args = append(args, fmt.Sprintf("CPUQuota=%d.%d%%", l.CPUQuotaMilli/10, l.CPUQuotaMilli%10))
	}
	if l.MemoryBytes > 0 {
		args = append(args, "MemoryMax="+strconv.FormatInt(l.MemoryBytes, 10))
	}
	if err := g.run(ctx, args...); err != nil {
		return err
	}
	return g.run(ctx, "start", name)
}

func systemctl(ctx context.Context, args ...string) error {
	if out, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("systemctl %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return nil
}

// Delete removes a task's group, whose containers have ended. A missing one is no error.
func (g *Groups) Delete(ctx context.Context, task string) error {
	switch {
	case g.systemd:
		return errors.Join(g.run(ctx, "stop", slice(task)), g.run(ctx, "revert", slice(task)))
	case cgroups.Mode() == cgroups.Unified:
		return remove(filepath.Join(root, path(task)))
	}
	groups, _ := filepath.Glob(filepath.Join(root, "*", path(task))) // the pattern is well-formed
	return remove(groups...)
}
