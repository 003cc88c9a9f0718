package sqlitefile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/pintle/pintle/internal/file"
)

// findings are what a database's files hold, before SQLite sees them.
type findings struct {
	path   string
	fresh  bool   // no commit was ever acknowledged
	guard  *guard // never nil
	log    *walLog
	pages  uint32 // whole pages in the database's file
	bad    []uint32
	damage []file.Damage
}

func (f *findings) add(path string, offset int64, format string, args ...any) {
	f.damage = append(f.damage, file.Damage{Path: path, Offset: offset, What: fmt.Sprintf(format, args...)})
}

// err returns the first damage, or nil.
func (f *findings) err() error {
	if len(f.damage) == 0 {
		return nil
	}
	return &f.damage[0]
}

// inspect looks at a database that nobody has open.
func inspect(path string) (*findings, error) {
	f := &findings{path: path, guard: &guard{}}
	if err := f.readGuard(); err != nil {
		return nil, err
	}
	var err error
	if f.log, err = readLog(logPath(path), f.guard.header); err != nil {
		return nil, err
	}
	if f.fresh || len(f.damage) > 0 {
		return f, nil
	}
	f.checkLog()
	return f, f.checkPages()
}

// readGuard reads the guard. A guard without sums means that the process ended while it was creating the database.
func (f *findings) readGuard() error {
	path := guardPath(f.path)
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		if f.fresh = isEmpty(f.path) && isEmpty(logPath(f.path)); !f.fresh {
			f.add(path, -1, "the file is missing, which has the checksums of %s", filepath.Base(f.path))
		}
		return nil
	}
	if err != nil {
		return err
	}
	g, err := decodeGuard(b)
	if err != nil {
		f.add(path, 0, "%v", err)
		return nil
	}
	f.guard = g
	f.fresh = len(g.sums) == 0
	return nil
}

func isEmpty(path string) bool {
	info, err := os.Stat(path)
	return errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0
}

// checkLog compares the log with the mark.
func (f *findings) checkLog() {
	l, m := f.log, f.guard.mark
	path := logPath(f.path)
	run := l.run()
	switch {
	case m.frames == m.folded: // the log holds nothing that isn't in the file
		if l.header != m.header && l.broken() {
			f.add(path, frameOffset(run), "a frame of the log fails its checksum, and commits follow it")
		}
	case l.size == 0:
		f.add(path, -1, "the log is missing or empty; it has commits that %s has not", filepath.Base(f.path))
	case !l.valid:
		f.add(path, 0, "the log's header fails its checksum")
	case l.header != m.header:
		f.add(path, 0, "it is another log than the one that was written last")
	case run < m.frames && uint32(len(l.frames)) <= run:
		f.add(path, l.size, "the log ends here; commits reached to byte %d", frameOffset(m.frames))
	case run < m.frames || l.broken():
		f.add(path, frameOffset(run), "a frame of the log fails its checksum, and commits reached to byte %d", frameOffset(m.frames))
	case l.frames[m.frames-1].sum != m.sum:
		f.add(path, frameOffset(m.frames-1), "the log has another commit here than the one that was written")
	}
}

// first returns the first frame of the log whose page may not be in the database's file.
func (f *findings) first() uint32 {
	if f.log.header != f.guard.header {
		return 0
	}
	return f.guard.folded
}

// logged returns the pages for which the log has a version that is or may be newer than the file's. For a damaged log, these are the
// pages of all readable frames.
func (f *findings) logged() map[uint32]bool {
	pages := map[uint32]bool{}
	end := f.log.whole()
	if len(f.damage) > 0 {
		end = uint32(len(f.log.frames))
	}
	for i := f.first(); i < end; i++ {
		if fr := f.log.frames[i]; fr.good {
			pages[fr.page] = true
		}
	}
	return pages
}

// checkPages compares the database's file with the checksums of its pages.
func (f *findings) checkPages() error {
	in, err := os.Open(f.path)
	if errors.Is(err, os.ErrNotExist) {
		f.add(f.path, -1, "the file is missing")
		f.lose(1)
		return nil
	}
	if err != nil {
		return err
	}
	defer in.Close() //nolint:errcheck // it was only read
	logged := f.logged()
	size, err := eachPage(in, func(page uint32, b []byte) {
		f.pages = page
		if page > uint32(len(f.guard.sums)) || logged[page] {
			return
		}
		if sum := f.guard.sums[page-1]; sum != 0 && sum != pageSum(b) {
			f.bad = append(f.bad, page)
			f.add(f.path, int64(page-1)*pageSize, "a page fails its checksum")
		}
	})
	if err != nil {
		return err
	}
	f.checkSize(size, logged)
	return nil
}

// eachPage reads a file's whole pages and returns the file's length.
func eachPage(in *os.File, visit func(page uint32, b []byte)) (int64, error) {
	info, err := in.Stat()
	if err != nil {
		return 0, err
	}
	r := io.NewSectionReader(in, 0, info.Size())
	chunk := make([]byte, 256*pageSize)
	for page := uint32(1); ; {
		n, err := io.ReadFull(r, chunk)
		for b := chunk[:n]; len(b) >= pageSize; b = b[pageSize:] {
			visit(page, b[:pageSize])
			page++
		}
		if err != nil {
			return info.Size(), ignoreEnd(err)
		}
	}
}

// checkSize finds pages that are missing at the end of the file, and surplus ones. An interrupted checkpoint may have made the file as
// long as the log says.
func (f *findings) checkSize(size int64, logged map[uint32]bool) {
	most := uint32(len(f.guard.sums))
	for page := range logged {
		most = max(most, page)
	}
	if size > int64(most)*pageSize {
		f.add(f.path, int64(most)*pageSize, "the file is %d bytes too long", size-int64(most)*pageSize)
	}
	for page := f.pages + 1; page <= uint32(len(f.guard.sums)); page++ {
		if f.guard.sums[page-1] != 0 && !logged[page] || f.pages == 0 { // SQLite ignores the log of an empty file
			f.add(f.path, size, "the file ends here; it had %d pages of %d bytes", len(f.guard.sums), pageSize)
			f.lose(f.pages + 1)
			return
		}
	}
}

// lose marks all pages from one on as bad.
func (f *findings) lose(from uint32) {
	for page := from; page <= uint32(len(f.guard.sums)); page++ {
		f.bad = append(f.bad, page)
	}
}

// prepare gets the files ready for SQLite.
func (f *findings) prepare() error {
	// SQLite recreates this file, and would trust what a crash left in it.
	if err := remove(f.path + "-shm"); err != nil {
		return err
	}
	if f.fresh {
		return f.begin()
	}
	// If everything is in the file, a log that can't be read to its end would put older pages over newer ones.
	if f.guard.frames == f.guard.folded && f.log.header == f.guard.header && f.log.run() < f.guard.frames || !f.log.valid {
		if err := remove(logPath(f.path)); err != nil {
			return err
		}
		f.log = &walLog{header: f.guard.header}
	}
	if err := f.cutTorn(); err != nil {
		return err
	}
	for _, path := range []string{f.path, logPath(f.path), guardPath(f.path), f.path + ".lock"} {
		if err := os.Chmod(path, 0o600); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
	}
	return nil
}

// cutTorn cuts off what a killed commit has left at the end of the log. Its last frame may have a header, which says that a commit ends
// there, and no page yet. SQLite ignores it, but look reads headers only.
func (f *findings) cutTorn() error {
	path, end := logPath(f.path), frameOffset(f.log.whole())
	if f.log.size <= end {
		return nil
	}
	return os.Truncate(path, end)
}

// begin creates the guard of a new database, and removes what an earlier attempt left. SQLite gives its other files the mode of the
// first.
func (f *findings) begin() error {
	for _, suffix := range []string{"", "-wal", "-journal"} {
		if err := remove(f.path + suffix); err != nil {
			return err
		}
	}
	f.guard, f.log = &guard{}, &walLog{}
	if err := file.Replace(guardPath(f.path), f.guard.encode(), true); err != nil {
		return err
	}
	if err := file.SyncDir(filepath.Dir(f.path)); err != nil {
		return err
	}
	return os.WriteFile(f.path, nil, 0o600)
}

func remove(path string) error {
	if err := os.Remove(path); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}
