package plane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/disk"
	"github.com/pintle/pintle/internal/ecr/blobs"
	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/logs/streams"
	"github.com/pintle/pintle/internal/s3/objects"
	"github.com/pintle/pintle/internal/sqs/queues"
	"github.com/pintle/pintle/internal/store/sqlite"
)

// lockData locks the data directory for this process and makes it private: it holds tasks' environments and the credentials'
// key.
func lockData(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o700); err != nil { // it may have existed already
		return nil, err
	}
	lock, err := file.Lock(filepath.Join(dir, "pintle.lock"))
	if errors.Is(err, file.ErrLocked) {
		return nil, fmt.Errorf("another pintle is using %s (%w): stop that one, or choose another directory with --data", dir, err)
	}
	return lock, err
}

// CheckUnused returns an error if another process is using a data directory.
func CheckUnused(dir string) error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	lock, err := lockData(dir)
	if err != nil {
		return err
	}
	return lock.Close()
}

// balancerEnd is how long the load balancers' process of a directory that is set aside may take to end.
const balancerEnd = 40 * time.Second

// SetAside renames a data directory that nobody is using, so that the next Open begins with nothing. It returns the new name, or "" if there
// was no directory.
func SetAside(dir string, now time.Time) (aside string, err error) {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	lock, err := lockData(dir)
	if err != nil {
		return "", err
	}
	defer lock.Close() //nolint:errcheck // nothing was written
	ending, cancel := context.WithTimeout(context.Background(), balancerEnd)
	defer cancel()
	if err := stopBalancer(ending, dir); err != nil { // or it would go on beside the next one
		return "", err
	}
	aside = dir + now.UTC().Format(".before-20060102T150405Z")
	if err := os.Rename(dir, aside); err != nil {
		return "", fmt.Errorf("set %s aside: %w; remove its files yourself if it is a mount point", dir, err)
	}
	return aside, nil
}

// openData locks the data directory, with room to open the stores in it if that can be had.
func (p *Plane) openData() (*os.File, error) {
	dir := p.options.Data
	if err := os.MkdirAll(dir, 0o700); errors.Is(err, syscall.EROFS) {
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("the data directory: %w: choose another with --data", err)
	}
	if err := refusePartial(dir); err != nil {
		return nil, err
	}
	if p.options.Simulated == nil {
		p.space = disk.OpenSpace(dir)
	}
	return lockData(dir)
}

// advise adds what to do to an error of damaged files or of a disk that can't be written.
func advise(err error, dir string) error {
	if errors.Is(err, syscall.EROFS) {
		return fmt.Errorf("%w; Pintle starts only where it can write: dmesg says why it cannot, and mount -o remount,rw may end that", err)
	}
	var damage *file.Damage
	if !errors.As(err, &damage) {
		return err
	}
	return fmt.Errorf("%w; to see all damage, and repair it, run: pintle check --data %s", err, dir)
}

// Check lists the damage of all stores in a data directory that nobody is using, and repairs it if told to. If a store can't be
// checked, that is the error, and the other stores are still checked.
func Check(ctx context.Context, dir string, repair bool) ([]file.Damage, error) {
	if _, err := os.Stat(dir); err != nil {
		return nil, err
	}
	lock, err := lockData(dir)
	if err != nil {
		return nil, err
	}
	var all []file.Damage
	for _, check := range checks {
		damage, failed := check.run(ctx, filepath.Join(dir, check.folder), repair)
		all = append(all, damage...)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("check %s: %w", filepath.Join(dir, check.folder), failed))
		}
	}
	return all, errors.Join(err, lock.Close())
}

// checks holds the stores' checks, with their folders.
var checks = []struct {
	folder string
	run    func(ctx context.Context, dir string, repair bool) ([]file.Damage, error)
}{
	{"", checkTaskKey},
	{"", sqlite.Check},
	{"", checkVault}, // rows tell whether a key that is missing is missed
	{"objects", objects.Check},
	{"images", blobs.Check},
	{"queues", withoutContext(queues.Check)},
	{"logs", withoutContext(streams.Check)},
	{"metrics", withoutContext(metrics.Check)},
}

// withoutContext adapts a check that can't be interrupted.
func withoutContext(check func(dir string, repair bool) ([]file.Damage, error)) func(context.Context, string, bool) ([]file.Damage, error) {
	return func(_ context.Context, dir string, repair bool) ([]file.Damage, error) { return check(dir, repair) }
}
