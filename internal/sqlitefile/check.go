package sqlitefile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/pintle/pintle/internal/file"
)

// Check lists the damage of a database that nobody has open. A repair turns back flipped bits. If more is lost, it puts all rows
// that can be read into a new file. The old file is kept beside it, as NAME.damaged.
func Check(ctx context.Context, path string, o Options, repair bool) ([]file.Damage, error) {
	lock, err := file.Lock(path + ".lock")
	if err != nil {
		return nil, err
	}
	damage, err := check(ctx, path, o, repair)
	return damage, errors.Join(err, lock.Close())
}

func check(ctx context.Context, path string, o Options, repair bool) ([]file.Damage, error) {
	f, err := inspect(path)
	if err != nil || len(f.damage) == 0 {
		return nil, err
	}
	damage := f.damage
	if !repair {
		describeRepair(damage, "turns back a bit that has flipped, else keeps the rows that can be read")
		return damage, nil
	}
	if f, err = mend(path, f); err != nil {
		return damage, err
	}
	if len(f.damage) == 0 {
		describeRepair(damage, "what had changed was turned back; nothing is lost")
		return damage, nil
	}
	rows, err := f.rebuild(ctx, o)
	if err != nil {
		return damage, fmt.Errorf("repair %s: %w", path, err)
	}
	describeRepair(damage, fmt.Sprintf("%d rows are kept; what else was on it, or was committed in it, is lost", rows))
	return damage, nil
}

func describeRepair(damage []file.Damage, text string) {
	for i := range damage {
		damage[i].Repair = text
	}
}

// rebuild makes a new database of what can be read, and replaces the damaged one by it.
func (f *findings) rebuild(ctx context.Context, o Options) (rows int, err error) {
	made := f.path + ".repaired"
	for _, suffix := range []string{"", "-wal", "-guard"} {
		if err := remove(made + suffix); err != nil {
			return 0, err
		}
	}
	if rows, err = f.copyRows(ctx, made, o); err != nil {
		return 0, err
	}
	for _, path := range []string{f.path, logPath(f.path), guardPath(f.path)} {
		if err := file.Quarantine(path); err != nil {
			return 0, err
		}
	}
	err = errors.Join(os.Rename(made, f.path), os.Rename(guardPath(made), guardPath(f.path)), remove(made+".lock"), remove(logPath(f.path)))
	return rows, errors.Join(err, file.SyncDir(filepath.Dir(f.path)))
}

func (f *findings) copyRows(ctx context.Context, made string, o Options) (rows int, err error) {
	p, err := f.picture()
	if err != nil {
		return 0, err
	}
	defer p.close()
	db, err := Open(ctx, made, o)
	if err != nil {
		return 0, err
	}
	tx, err := db.Begin()
	if err == nil {
		if rows, err = p.salvage(ctx, tx); err == nil {
			err = db.Commit(tx)
		} else {
			err = errors.Join(err, tx.Rollback())
		}
	}
	return rows, errors.Join(err, db.Close())
}

// picture collects the latest version of each page.
func (f *findings) picture() (*picture, error) {
	p := &picture{at: map[uint32]int64{}, bad: map[uint32]bool{}, old: map[uint32]bool{}}
	var err error
	if p.file, err = openIfThere(f.path); err != nil {
		return nil, err
	}
	if p.log, err = openIfThere(logPath(f.path)); err != nil {
		return nil, errors.Join(err, p.close())
	}
	p.pages = uint32(len(f.guard.sums))
	if p.file != nil {
		size, err := eachPage(p.file, func(page uint32, _ []byte) { p.pages = max(p.pages, page) })
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		f.pages = uint32(size / pageSize)
	}
	for _, page := range f.bad {
		p.bad[page] = true
	}
	if f.log.header == f.guard.header || f.guard.frames == f.guard.folded {
		p.addLog(f.log, f.first())
	}
	return p, nil
}

// addLog adds the pages of the log's readable frames, up to its last commit.
func (p *picture) addLog(l *walLog, first uint32) {
	end := len(l.frames)
	for end > int(first) && !(l.frames[end-1].good && l.frames[end-1].size > 0) {
		end--
	}
	for i := int(first); i < end; i++ {
		f := l.frames[i]
		p.old[f.page] = !f.good
		if f.good {
			p.at[f.page] = frameOffset(uint32(i)) + frameHead
			p.pages = max(p.pages, f.page)
		}
	}
}

func (p *picture) close() (err error) {
	for _, f := range []*os.File{p.file, p.log} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

func openIfThere(path string) (*os.File, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	return f, err
}

// mend turns back single bits as long as that reduces the damage.
func mend(path string, f *findings) (*findings, error) {
	for len(f.damage) > 0 {
		changed, err := f.mendOne()
		if err != nil || !changed {
			return f, err
		}
		before := len(f.damage) + len(f.bad)
		run := f.log.run()
		if f, err = inspect(path); err != nil {
			return nil, err
		}
		if len(f.damage)+len(f.bad) >= before && f.log.run() <= run {
			return f, nil
		}
	}
	return f, nil
}

// mendOne turns back the first flipped bit that it can identify.
func (f *findings) mendOne() (changed bool, err error) {
	for _, page := range f.bad {
		if changed, err = f.mendPage(page); err != nil || changed {
			return changed, err
		}
	}
	l := f.log
	if f.guard.frames == f.guard.folded || l.size == 0 {
		return false, nil
	}
	if !l.valid {
		return true, overwrite(logPath(f.path), 0, f.guard.header[:])
	}
	if run := l.run(); l.header == f.guard.header && run < uint32(len(l.frames)) {
		return f.mendFrame(run)
	}
	return false, nil
}

func (f *findings) mendPage(page uint32) (bool, error) {
	b, err := readAt(f.path, int64(page-1)*pageSize, pageSize)
	if err != nil || b == nil || !turnBack(b, f.guard.sums[page-1]) {
		return false, err
	}
	return true, overwrite(f.path, int64(page-1)*pageSize, b)
}

// mendFrame turns back a bit of a frame. The frame's checksum doesn't tell which bit it was, so all are tried. It's a weak checksum, so if
// two bits would do, neither is turned.
func (f *findings) mendFrame(i uint32) (bool, error) {
	path := logPath(f.path)
	b, err := readAt(path, frameOffset(i), frameSize)
	if err != nil || b == nil {
		return false, err
	}
	before := [8]byte(f.log.header[24:])
	if i > 0 {
		before = f.log.frames[i-1].sum
	}
	var fits []int
	for bit := range 8 * len(b) {
		b[bit/8] ^= 1 << (bit % 8)
		if checkFrame(b, f.log.header, before) {
			fits = append(fits, bit)
		}
		b[bit/8] ^= 1 << (bit % 8)
	}
	if len(fits) != 1 {
		return false, nil
	}
	b[fits[0]/8] ^= 1 << (fits[0] % 8)
	return true, overwrite(path, frameOffset(i), b)
}

// turnBack finds the bit to turn so that a page matches its checksum. How a turned bit changes a CRC depends only on the bit's place.
func turnBack(page []byte, want uint32) bool {
	differs := pageSum(page) ^ want
	var change [8]uint32
	for bit := range change {
		change[bit] = castagnoli[1<<bit]
	}
	for at := len(page) - 1; at >= 0; at-- {
		if bit := slices.Index(change[:], differs); bit >= 0 {
			page[at] ^= 1 << bit
			return true
		}
		for bit, c := range change {
			change[bit] = castagnoli[byte(c)] ^ c>>8
		}
	}
	return false
}

// readAt reads part of a file, or returns nil if the file ends before.
func readAt(path string, offset int64, length int) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	b := make([]byte, length)
	if _, err := f.ReadAt(b, offset); err != nil {
		return nil, ignoreEnd(err)
	}
	return b, nil
}

// overwrite changes part of a file, durably, and keeps a copy of the file as it was.
func overwrite(path string, offset int64, b []byte) error {
	whole, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := file.Quarantine(path); err != nil {
		return err
	}
	if int(offset)+len(b) > len(whole) {
		return fmt.Errorf("%s is shorter than it was", path)
	}
	copy(whole[offset:], b)
	return file.Replace(path, whole, true)
}
