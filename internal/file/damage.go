package file

import (
	"errors"
	"fmt"
	"os"
)

// Damage is a place in a store's files that no longer holds what was written. Stores return it as an error when they open or read,
// and their Check functions list it.
type Damage struct {
	Path   string // the file
	Offset int64  // where the damage begins, in bytes; -1 for the whole file
	What   string // what is wrong there, such as "frame fails its checksum"
	// Repair says what a repair does about it and what is lost, such as "moves 3 messages to x.damaged".
	Repair string
}

func (d *Damage) Error() string {
	if d.Offset < 0 {
		return fmt.Sprintf("%s: %s", d.Path, d.What)
	}
	return fmt.Sprintf("%s: at byte %d: %s", d.Path, d.Offset, d.What)
}

// Quarantine keeps a damaged file beside its place as ….damaged, ….damaged.2 and so on. The repaired file is then renamed over the
// original, so the file is never missing.
func Quarantine(path string) error {
	kept := path + ".damaged"
	for n := 2; ; n++ {
		err := os.Link(path, kept)
		if errors.Is(err, os.ErrNotExist) {
			return nil // there is nothing to keep
		}
		if !errors.Is(err, os.ErrExist) {
			return err
		}
		kept = fmt.Sprintf("%s.damaged.%d", path, n)
	}
}
