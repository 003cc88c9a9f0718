package objects

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"sync"

	"github.com/pintle/pintle/internal/file"
)

// Files are written and read in blocks. The index has a CRC-32C for each, which is checked before any of the block's bytes is handed out.
// So reading a range costs only the blocks that it touches, and a reader holds one block in memory.
const (
	blockSize = 256 << 10
	sumSize   = 4
)

type buffer = [blockSize]byte

var (
	buffers    = sync.Pool{New: func() any { return new(buffer) }}
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
)

// appendSums appends the checksums of the blocks that the bytes fill.
func appendSums(sums, b []byte) []byte {
	for len(b) > 0 {
		n := min(len(b), blockSize)
		sums = binary.LittleEndian.AppendUint32(sums, crc32.Checksum(b[:n], castagnoli))
		b = b[n:]
	}
	return sums
}

// writeBlocks writes the n bytes that are in the buffer already, and then the rest of r.
func writeBlocks(w io.Writer, buf *buffer, n int, r io.Reader) (size int64, sums []byte, err error) {
	for {
		more, ended, err := file.Fill(r, buf[n:])
		if err != nil {
			return 0, nil, err
		}
		block := buf[:n+more]
		if _, err := w.Write(block); err != nil {
			return 0, nil, err
		}
		size += int64(len(block))
		sums = appendSums(sums, block)
		if ended {
			return size, sums, nil
		}
		n = 0
	}
}

// body reads a stretch across several files, and opens each when it gets there.
type body struct {
	store *Store
	files []*File
	skip  int64 // bytes to skip of the first file, or of the next block
	left  int64
	pins  []*File

	file  *os.File // the first of files, once it is open
	next  int64    // the number of the file's next block
	buf   *buffer
	block []byte // checked, but not handed out yet
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	next, err := b.peek(len(p))
	n := copy(p, next)
	b.skipOver(n)
	return n, err
}

// mostWritten limits a single write, because a slow client gets its time limit for each write.
const mostWritten = 32 << 10

// WriteTo implements io.WriterTo. It saves a copy.
func (b *body) WriteTo(w io.Writer) (written int64, err error) {
	for {
		next, err := b.peek(mostWritten)
		if err == io.EOF {
			return written, nil
		}
		if err != nil {
			return written, err
		}
		n, err := w.Write(next)
		b.skipOver(n)
		written += int64(n)
		if err != nil {
			return written, err
		}
	}
}

// peek returns what comes next, up to most bytes. These have been checked.
func (b *body) peek(most int) ([]byte, error) {
	if b.left == 0 {
		return nil, io.EOF
	}
	for len(b.block) == 0 {
		if err := b.load(); err != nil {
			return nil, logDamage(missing(err))
		}
	}
	return b.block[:min(int64(most), int64(len(b.block)), b.left)], nil
}

func (b *body) skipOver(n int) {
	b.block = b.block[n:]
	b.left -= int64(n)
}

// errShort is deliberately not io.ErrUnexpectedEOF, which whoever copies the body would take for its normal end.
var errShort = errors.New("object store: the object's files are shorter than the object")

// load reads and checks the next block, which is empty at the end of a file.
func (b *body) load() error {
	if len(b.files) == 0 {
		return errShort
	}
	f := b.files[0]
	if f.name == "" {
		return b.loadKept(f)
	}
	if b.file == nil {
		if err := b.open(f); err != nil {
			return err
		}
	}
	at := b.next * blockSize
	if at >= f.Size {
		b.files = b.files[1:]
		return b.closeFile()
	}
	if b.buf == nil {
		b.buf = buffers.Get().(*buffer)
	}
	block := b.buf[:min(blockSize, f.Size-at)]
	if _, err := b.file.ReadAt(block, at); err != nil {
		return damaged(b.file.Name(), at, fmt.Sprintf("a block of %d bytes cannot be read: %v", len(block), err))
	}
	if !f.matches(b.next, block) {
		return damaged(b.file.Name(), at, fmt.Sprintf("a block of %d bytes fails its checksum", len(block)))
	}
	b.block = block[b.skip:]
	b.skip = 0
	b.next++
	return nil
}

// matches reports whether a block holds what was written.
func (f *File) matches(block int64, b []byte) bool {
	at := block * sumSize
	return at+sumSize <= int64(len(f.sums)) && binary.LittleEndian.Uint32(f.sums[at:]) == crc32.Checksum(b, castagnoli)
}

// loadKept takes the bytes from the index.
func (b *body) loadKept(f *File) error {
	if int64(len(f.data)) != f.Size || f.Size > 0 && !f.matches(0, f.data) {
		return damaged(b.store.index(), -1, "an object's bytes fail their checksum")
	}
	b.block = f.data[b.skip:]
	b.skip = 0
	b.files = b.files[1:]
	return nil
}

// open opens a file at the block in which the stretch starts.
func (b *body) open(f *File) error {
	path := b.store.path(f.name)
	opened, err := os.Open(path)
	if err != nil {
		return err
	}
	info, err := opened.Stat()
	if err == nil && info.Size() != f.Size {
		err = damaged(path, min(info.Size(), f.Size), fmt.Sprintf("the file has %d bytes; it was written with %d", info.Size(), f.Size))
	}
	if err != nil {
		return errors.Join(err, opened.Close())
	}
	b.file = opened
	b.next = b.skip / blockSize
	b.skip %= blockSize
	return nil
}

func (b *body) closeFile() error {
	if b.file == nil {
		return nil
	}
	err := b.file.Close()
	b.file = nil
	return err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.store.unpin(b.pins)
	b.pins = nil
	if b.buf != nil {
		buffers.Put(b.buf)
		b.buf = nil
	}
	b.block = nil
	b.left = 0
	return b.closeFile()
}

// damaged returns the error for a place that doesn't hold what was written.
func damaged(path string, offset int64, what string) error {
	return &file.Damage{Path: path, Offset: offset, What: what}
}

// missing turns the error of a missing file into damage.
func missing(err error) error {
	var at *fs.PathError
	if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &at) {
		return err
	}
	return damaged(at.Path, -1, "the file is missing")
}

// logDamage logs damage, since a caller that has begun to send an object can only cut its connection.
func logDamage(err error) error {
	var d *file.Damage
	if errors.As(err, &d) {
		slog.Error("an object is damaged", "file", d.Path, "offset", d.Offset, "what", d.What)
	}
	return err
}
