package sqlitefile

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"os"
)

// SQLite's log is a header followed by frames. Each frame is a header and a page. A frame's checksum continues that of the frame before,
// and its salts are those of the log's header: see "The WAL File Format" at sqlite.org.
const (
	pageSize    = 4096
	headerSize  = 32
	frameHead   = 24
	frameSize   = frameHead + pageSize
	magicLittle = 0x377f0682 // with its lowest bit set, the checksums read big-endian words
	logVersion  = 3007000
)

// frame is a frame's header.
type frame struct {
	page uint32
	size uint32 // of the database in pages if the frame ends a commit, else 0
	sum  [8]byte
	ours bool // it has the salts of the log's header, so it isn't left over from an earlier log
	good bool // and its checksum follows from the one that the frame before carries
}

// walLog is the content of a log's file.
type walLog struct {
	header [headerSize]byte
	valid  bool // the header's own checksum is right
	size   int64
	frames []frame // as many as the file has room for
}

// logSum continues a checksum over b, whose length is a multiple of 8.
func logSum(order binary.ByteOrder, sum [8]byte, b []byte) (out [8]byte) {
	s0 := binary.BigEndian.Uint32(sum[:])
	s1 := binary.BigEndian.Uint32(sum[4:])
	if order == binary.ByteOrder(binary.LittleEndian) {
		for ; len(b) >= 8; b = b[8:] {
			s0 += binary.LittleEndian.Uint32(b) + s1
			s1 += binary.LittleEndian.Uint32(b[4:]) + s0
		}
	}
	for ; len(b) >= 8; b = b[8:] {
		s0 += binary.BigEndian.Uint32(b) + s1
		s1 += binary.BigEndian.Uint32(b[4:]) + s0
	}
	binary.BigEndian.PutUint32(out[:], s0)
	binary.BigEndian.PutUint32(out[4:], s1)
	return out
}

func orderOf(header [headerSize]byte) binary.ByteOrder {
	if header[3]&1 == 1 {
		return binary.BigEndian
	}
	return binary.LittleEndian
}

// headerValid reports whether SQLite reads a log with this header.
func headerValid(h [headerSize]byte) bool {
	return binary.BigEndian.Uint32(h[:])&^1 == magicLittle && binary.BigEndian.Uint32(h[4:]) == logVersion &&
		binary.BigEndian.Uint32(h[8:]) == pageSize && logSum(orderOf(h), [8]byte{}, h[:24]) == [8]byte(h[24:])
}

// parseFrame reads a frame's header.
func parseFrame(b []byte, header [headerSize]byte) frame {
	return frame{
		page: binary.BigEndian.Uint32(b),
		size: binary.BigEndian.Uint32(b[4:]),
		sum:  [8]byte(b[16:24]),
		ours: [8]byte(b[8:16]) == [8]byte(header[16:24]),
	}
}

// checkFrame reports whether the frame in b follows a frame with the given checksum.
func checkFrame(b []byte, header [headerSize]byte, before [8]byte) bool {
	f := parseFrame(b, header)
	order := orderOf(header)
	return f.ours && f.page > 0 && logSum(order, logSum(order, before, b[:8]), b[frameHead:frameSize]) == f.sum
}

// readLog reads a log. If its header isn't valid, the frames are read with the expected header.
func readLog(path string, expected [headerSize]byte) (*walLog, error) {
	l := &walLog{header: expected}
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return l, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	l.size = info.Size()
	return l, l.read(bufio.NewReaderSize(f, 1<<20))
}

func (l *walLog) read(in io.Reader) error {
	var header [headerSize]byte
	if _, err := io.ReadFull(in, header[:]); err != nil {
		return ignoreEnd(err)
	}
	if l.valid = headerValid(header); l.valid {
		l.header = header
	}
	before := [8]byte(l.header[24:])
	var buf [frameSize]byte
	for {
		if _, err := io.ReadFull(in, buf[:]); err != nil {
			return ignoreEnd(err)
		}
		f := parseFrame(buf[:], l.header)
		f.good = checkFrame(buf[:], l.header, before)
		l.frames = append(l.frames, f)
		before = f.sum
	}
}

func ignoreEnd(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil
	}
	return err
}

// run returns how many frames are good from the start, as SQLite counts them.
func (l *walLog) run() (n uint32) {
	if !l.valid {
		return 0
	}
	for _, f := range l.frames {
		if !f.good {
			break
		}
		n++
	}
	return n
}

// whole returns how many frames SQLite uses: those of the run, up to its last commit.
func (l *walLog) whole() (n uint32) {
	for i, f := range l.frames[:l.run()] {
		if f.size > 0 {
			n = uint32(i + 1)
		}
	}
	return n
}

// markAt returns the mark after the log's first n frames. The mark before it may be of an earlier log.
func (l *walLog) markAt(n uint32, before mark) mark {
	m := mark{header: l.header, frames: n, sum: l.frames[n-1].sum}
	if before.header == l.header {
		m.folded = before.folded
	}
	return m
}

// broken reports whether a commit follows the run, and another good frame follows that commit. A commit only begins once the one before is
// on disk, so a crash can't have caused this.
func (l *walLog) broken() bool {
	committed := false
	for _, f := range l.frames[l.run():] {
		if committed && f.good {
			return true
		}
		committed = committed || f.ours && f.size > 0
	}
	return false
}

func frameOffset(i uint32) int64 { return headerSize + int64(i)*frameSize }
