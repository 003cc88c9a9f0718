package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/network"
	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/runtime/docker"
	"github.com/pintle/pintle/internal/node/runtime/oci"
)

// system is what pintle doctor asks of a machine. Tests have one of their own.
type system struct {
	uid           int
	release       string // of the kernel
	now           func() time.Time
	read          func(path string) (string, error)
	run           func(ctx context.Context, name string, args ...string) (line string, err error)
	clockIsSynced func() (bool, error)
	maxFiles      func() uint64
	freeBytes     func(dir string) (uint64, error)
	syncTime      func(dir string) (time.Duration, error)
	owner         func(path string) (uid int, mode fs.FileMode, err error)
	listen        func(address string) error
	health        func(ctx context.Context, endpoint string) (health, error)
	docker        func(context.Context) error
	hasPlugin     func(name string) bool
	canRestrict   func() bool
	// gpus describes the GPUs that there are. With an error, too, containers can't have them.
	gpus func(context.Context) (string, error)
}

// health is what a control plane says of itself.
type health struct {
	version, status string
	date            time.Time
}

func thisSystem(c doctorCmd) system {
	return system{
		uid:           os.Geteuid(),
		release:       kernelRelease(),
		now:           time.Now,
		read:          func(path string) (string, error) { b, err := os.ReadFile(path); return string(b), err },
		run:           runLine,
		clockIsSynced: clockIsSynced,
		maxFiles:      maxFiles,
		freeBytes:     freeBytes,
		syncTime:      syncTime,
		owner:         ownerOf,
		listen:        tryListen,
		health:        askHealth,
		docker:        c.askDocker,
		hasPlugin:     hasPlugin,
		canRestrict:   network.CanRestrict,
		gpus:          c.describeGPUs,
	}
}

func kernelRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return "of an unknown version"
	}
	return unix.ByteSliceToString(u.Release[:])
}

// runLine returns the first line that a program prints.
func runLine(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).CombinedOutput()
	if exited := (*exec.ExitError)(nil); errors.As(err, &exited) {
		return "", fmt.Errorf("%s: %w: %s", name, err, firstLine(string(out)))
	}
	return firstLine(string(out)), err
}

// clockIsSynced asks the kernel, which whoever sets the clock tells.
func clockIsSynced() (bool, error) {
	var t unix.Timex
	state, err := unix.Adjtimex(&t)
	return state != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0, err
}

// maxFiles returns how many files a process may have open. Go raises that to what it may be raised to.
func maxFiles() uint64 {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0
	}
	return l.Cur
}

// nearest returns a directory, or if it isn't there the nearest above it that is.
func nearest(dir string) string {
	for {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

func freeBytes(dir string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(nearest(dir), &s); err != nil {
		return 0, fmt.Errorf("%s: %w", dir, err)
	}
	return s.Bavail * uint64(s.Bsize), nil
}

// syncTime returns how long a small write and its sync take, of several the middle one.
func syncTime(dir string) (time.Duration, error) {
	f, err := os.CreateTemp(nearest(dir), file.Unfinished+"*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name()) //nolint:errcheck // a control plane removes it otherwise
	defer f.Close()           //nolint:errcheck // it's removed
	var all []time.Duration
	for range 9 {
		began := time.Now()
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

func ownerOf(path string) (int, fs.FileMode, error) {
	info, err := os.Stat(path)
	if err != nil {
		return 0, 0, err
	}
	return int(info.Sys().(*syscall.Stat_t).Uid), info.Mode(), nil
}

func tryListen(address string) error {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	return l.Close()
}

// askHealth asks a control plane how it is.
func askHealth(ctx context.Context, endpoint string) (h health, err error) {
	config, err := awsConfig(endpoint)
	if err != nil {
		return h, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint+"/pintle/health", nil)
	if err != nil {
		return h, err
	}
	resp, err := config.HTTPClient.Do(r)
	if err != nil {
		return h, notReached(err)
	}
	defer resp.Body.Close()
	if wantsTLS(resp) {
		return h, errors.New(askByTLS(resp))
	}
	h.date, _ = http.ParseTime(resp.Header.Get("Date")) //nolint:errcheck // then the clocks differ
	var said struct{ Version, Status string }
	if resp.StatusCode == http.StatusOK && json.NewDecoder(io.LimitReader(resp.Body, 1<<16)).Decode(&said) == nil {
		h.version, h.status = said.Version, said.Status
	}
	return h, nil
}

// askDocker reaches the Docker Engine as an agent does.
func (c doctorCmd) askDocker(ctx context.Context) error {
	rt, err := docker.New(ctx, c.DockerHost)
	if err != nil {
		return err
	}
	return rt.Close()
}

func hasPlugin(name string) bool {
	return slices.ContainsFunc(network.PluginDirs, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, name))
		return err == nil
	})
}

// describeGPUs finds the GPUs as an agent does, and asks the runtime as an agent does whether containers can have them. It claims none.
func (c doctorCmd) describeGPUs(ctx context.Context) (string, error) {
	source, err := nodeFlags{}.findGPUs(ctx, slog.New(slog.DiscardHandler))
	if err != nil {
		return "", err
	}
	devices := source.Devices()
	what := counted(len(devices), "GPU")
	if len(devices) > 0 {
		what += ", " + devices[0].Model
	}
	if d, ok := source.(interface{ Driver() string }); ok {
		what += ", driver " + d.Driver()
	}
	rt, err := c.gpuRuntime(ctx)
	if err != nil || rt == nil {
		return what, err
	}
	return what, checkGPUs(ctx, rt, source)
}

// gpuRuntime returns what would give containers GPUs, as an agent chooses it; nil for processes, which need nothing.
func (c doctorCmd) gpuRuntime(ctx context.Context) (runtime.Runtime, error) {
	if c.Runtime == "process" {
		return nil, nil
	}
	if rt, err := docker.New(ctx, c.DockerHost); c.Runtime != "oci" && (err == nil || c.Runtime == "docker") {
		return rt, err
	}
	return new(oci.Runtime), nil // what it says of GPUs is in CDI files, for which it needs no directory
}
