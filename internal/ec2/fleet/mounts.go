package fleet

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// removeAll removes a directory in which an agent may have left mounts, which it unmounts: what is mounted is others', such as a shared file
// system. If it can't, it removes nothing.
func removeAll(dir string) error {
	at, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	mounts, err := mountsBelow(at)
	if err != nil {
		return err
	}
	for _, path := range slices.Backward(mounts) { // the later ones may be in the earlier ones
		if err := syscall.Unmount(path, syscall.MNT_DETACH); err != nil {
			return &os.PathError{Op: "unmount", Path: path, Err: err}
		}
	}
	if left, err := mountsBelow(at); err != nil || len(left) > 0 {
		return errors.Join(err, fmt.Errorf("still mounted in %s: %s", dir, strings.Join(left, ", ")))
	}
	return os.RemoveAll(dir)
}

// mountsBelow lists the mounts in a directory, oldest first.
func mountsBelow(dir string) (mounts []string, err error) {
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		const mountPoint = 4 // of the fields that proc_pid_mountinfo(5) lists
		fields := strings.Fields(lines.Text())
		if len(fields) <= mountPoint {
			continue
		}
		if path := unescape(fields[mountPoint]); strings.HasPrefix(path, dir+"/") {
			mounts = append(mounts, path)
		}
	}
	return mounts, lines.Err()
}

// unescape undoes how the kernel writes spaces, and what else would end a field: as a backslash and three octal digits.
func unescape(field string) string {
	first, rest, found := strings.Cut(field, `\`)
	if !found || len(rest) < 3 {
		return field
	}
	c, err := strconv.ParseUint(rest[:3], 8, 8)
	if err != nil {
		return field
	}
	return first + string([]byte{byte(c)}) + unescape(rest[3:])
}
