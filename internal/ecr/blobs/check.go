package blobs

import (
	"context"
	"errors"
	"io/fs"
	"os"

	"github.com/pintle/pintle/internal/file"
)

// Check lists the damaged blobs of a store that nobody has open: those whose bytes aren't those of their digests. With repair they are put
// aside. Whoever pulls one then hears that it isn't there, and it can be pushed again.
func Check(ctx context.Context, dir string, repair bool) (damage []file.Damage, err error) {
	s := &Store{dir: dir}
	if _, err := os.Stat(s.blobs()); errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	err = s.each(func(path, digest string) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		is, err := digestOfFile(path)
		if err != nil || is == digest {
			return err
		}
		d := file.Damage{Path: path, Offset: 0, What: "the bytes aren't those of the digest", Repair: "puts the blob aside; images that have it must be pushed again"}
		if repair {
			d.Repair = "the blob was put aside; images that have it must be pushed again"
			if err := file.Quarantine(path); err != nil {
				return err
			}
			if err := os.Remove(path); err != nil {
				return err
			}
		}
		damage = append(damage, d)
		return nil
	})
	return damage, err
}
