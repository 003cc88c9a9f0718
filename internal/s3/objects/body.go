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

// A file is written and read in blocks, each with a CRC-32C that the index keeps. A block is checked before any of its bytes
// is handed out, so a range costs the blocks that it touches, and a reader one block of memory.
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

// fill reads until the buffer is full or the reader has ended. io.ReadFull cannot tell that end from a reader's own
// io.ErrUnexpectedEOF.
func fill(r io.Reader, buf []byte) (n int, ended bool, err error) {
	for n < len(buf) {
		read, err := r.Read(buf[n:])
		n += read
		if err == io.EOF {
			return n, true, nil
		}
		if err != nil {
			return n, false, err
		}
	}
	return n, false, nil
}

// writeBlocks writes the n bytes that the buffer has already, and what r has behind them.
func writeBlocks(w io.Writer, buf *buffer, n int, r io.Reader) (size int64, sums []byte, err error) {
	for {
		more, ended, err := fill(r, buf[n:])
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

// body reads a stretch of files one behind the other, and opens each when it comes to it.
type body struct {
	store *Store
	files []*File
	skip  int64 // of the first file, or of the next block
	left  int64
	pins  []*File

	file  *os.File // the first of files, once it is open
	next  int64    // the number of the file's next block
	buf   *buffer
	block []byte // checked, and not handed out yet
}

// Read is io.Reader's.
func (b *body) Read(p []byte) (int, error) {
	next, err := b.peek(len(p))
	n := copy(p, next)
	b.skipOver(n)
	return n, err
}

// mostWritten is how much of a block is written at once: a slow client has its time for each write.
const mostWritten = 32 << 10

// WriteTo is io.WriterTo's. It saves copying what was read and checked.
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

// peek is what comes next, up to most bytes, and has been checked.
func (b *body) peek(most int) ([]byte, error) {
	if b.left == 0 {
		return nil, io.EOF
	}
	for len(b.block) == 0 {
		if err := b.load(); err != nil {
			return nil, told(missing(err))
		}
	}
	return b.block[:min(int64(most), int64(len(b.block)), b.left)], nil
}

func (b *body) skipOver(n int) {
	b.block = b.block[n:]
	b.left -= int64(n)
}

// errShort is no error of package io's: whoever copies the body would take that for its end.
var errShort = errors.New("object store: the object's files are shorter than the object")

// load reads and checks the next block, which is empty where a file has ended.
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

// matches reports whether a block is what was written.
func (f *File) matches(block int64, b []byte) bool {
	at := block * sumSize
	return at+sumSize <= int64(len(f.sums)) && binary.LittleEndian.Uint32(f.sums[at:]) == crc32.Checksum(b, castagnoli)
}

// loadKept takes the bytes that the index has.
func (b *body) loadKept(f *File) error {
	if int64(len(f.data)) != f.Size || f.Size > 0 && !f.matches(0, f.data) {
		return damaged(b.store.index(), -1, "an object's bytes fail their checksum")
	}
	b.block = f.data[b.skip:]
	b.skip = 0
	b.files = b.files[1:]
	return nil
}

// open opens a file at the block that the stretch begins in.
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

// Close is io.Closer's.
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

// damaged is the error of a place that does not hold what was written.
func damaged(path string, offset int64, what string) error {
	return &file.Damage{Path: path, Offset: offset, What: what}
}

// missing is the error of a file that is not there, and ought to be.
func missing(err error) error {
	var at *fs.PathError
	if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &at) {
		return err
	}
	return damaged(at.Path, -1, "the file is missing")
}

// told logs damage, since a caller that is sending an object's bytes already can only cut its connection.
func told(err error) error {
	var d *file.Damage
	if errors.As(err, &d) {
		slog.Error("an object is damaged", "file", d.Path, "offset", d.Offset, "what", d.What)
	}
	return err
}
