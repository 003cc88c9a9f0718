package metrics

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/wal"
)

// A block is an immutable file with the bins of one tier, series by series in the order of their ids. After
// them comes an index with an entry for each series:
//
//	id 4 bytes, length 4, offset 8, time of the last bin 8, CRC-32C of the bins and of these 4
//
// and a footer: the block's info as sealed JSON, and its length, 4 bytes. The manifest has the same info.
const (
	indexEntry = 28
	entrySum   = 24 // offset of an entry's checksum
)

// blockInfo describes a block in the manifest.
type blockInfo struct {
	File        string
	Step        int64
	Level       int
	First, Last int64 // times of bins
	Series      int
	Index       int64    // the index's offset
	IndexSum    uint32   // the index's CRC-32C
	Log         int      // everything in the log before this segment is in blocks
	Of          []string // the blocks that were merged into this one
}

type block struct {
	blockInfo
	file *os.File
}

// openBlock opens a block and returns its index.
func openBlock(dir string, info blockInfo) (b *block, index []byte, err error) {
	path := filepath.Join(dir, info.File)
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, &file.Damage{Path: path, Offset: -1, What: "is missing"}
	}
	if err != nil {
		return nil, nil, err
	}
	tail, err := io.ReadAll(io.NewSectionReader(f, info.Index, math.MaxInt64-info.Index))
	if err != nil {
		return nil, nil, errors.Join(err, f.Close())
	}
	size := info.Series * indexEntry
	if len(tail) < size || !bytes.Equal(tail[size:], info.footer()) || wal.Checksum(tail[:size]) != info.IndexSum {
		f.Close() //nolint:errcheck // we only read it
		return nil, nil, &file.Damage{Path: path, Offset: info.Index, What: "the index fails its checksum"}
	}
	return &block{info, f}, tail[:size], nil
}

func (i *blockInfo) footer() []byte {
	b, err := json.Marshal(i)
	if err != nil {
		panic(err) // can't happen: it holds only numbers and text
	}
	b = file.Seal(b)
	return binary.LittleEndian.AppendUint32(b, uint32(len(b)))
}

// parseFooter parses the info at the end of a block.
func parseFooter(b []byte) (info blockInfo, ok bool) {
	if len(b) < 4 {
		return info, false
	}
	size := int(binary.LittleEndian.Uint32(b[len(b)-4:]))
	b = b[:len(b)-4]
	if size > len(b) {
		return info, false
	}
	b, ok = file.Unseal(b[len(b)-size:])
	return info, ok && json.Unmarshal(b, &info) == nil
}

// entry is one series in a block's index.
type entry struct {
	id     uint32
	length uint32
	offset int64
	last   int64
	sum    uint32
}

// append appends the entry, with its checksum, to b. data holds the entry's bins.
func (e *entry) append(b, data []byte) []byte {
	start := len(b)
	b = binary.LittleEndian.AppendUint32(b, e.id)
	b = binary.LittleEndian.AppendUint32(b, e.length)
	b = binary.LittleEndian.AppendUint64(b, uint64(e.offset))
	b = binary.LittleEndian.AppendUint64(b, uint64(e.last))
	return binary.LittleEndian.AppendUint32(b, wal.Checksum(data, b[start:]))
}

// matches reports whether the entry's checksum matches these bins.
func (e *entry) matches(data []byte) bool {
	var b [indexEntry]byte
	return binary.LittleEndian.Uint32(e.append(b[:0], data)[entrySum:]) == e.sum
}

func parseEntry(b []byte) entry {
	return entry{
		id:     binary.LittleEndian.Uint32(b),
		length: binary.LittleEndian.Uint32(b[4:]),
		offset: int64(binary.LittleEndian.Uint64(b[8:])),
		last:   int64(binary.LittleEndian.Uint64(b[16:])),
		sum:    binary.LittleEndian.Uint32(b[entrySum:]),
	}
}

// read calls visit with each bin of a series, if the block has any.
func (b *block) read(id uint32, visit func(bin)) error {
	var buf [indexEntry]byte
	var failed error
	at := func(i int) entry {
		if _, err := b.file.ReadAt(buf[:], b.Index+int64(i)*indexEntry); err != nil && failed == nil {
			failed = err
		}
		return parseEntry(buf[:])
	}
	i := sort.Search(b.Series, func(i int) bool { return at(i).id >= id })
	if failed != nil || i == b.Series {
		return failed
	}
	e := at(i)
	if failed != nil || e.id != id {
		return failed
	}
	data := make([]byte, e.length)
	if n, err := b.file.ReadAt(data, e.offset); n < len(data) {
		return &file.Damage{Path: b.file.Name(), Offset: e.offset, What: fmt.Sprintf("cannot be read: %v", err)}
	}
	return b.decode(e, data, visit)
}

func (b *block) decode(e entry, data []byte, visit func(bin)) error {
	if !e.matches(data) {
		return &file.Damage{Path: b.file.Name(), Offset: e.offset, What: fmt.Sprintf("the points of series %d fail their checksum", e.id)}
	}
	d := &decoder{b: data}
	at := int64(0)
	for len(d.b) > 0 {
		at += d.varint() * b.Step
		set := d.set()
		if d.err != nil {
			return fmt.Errorf("%w: series %d of %s", d.err, e.id, b.File)
		}
		visit(bin{at: at, fine: b.Step == 1, Set: set})
	}
	return nil
}

// blockWriter writes a block, series by series in the order of their ids.
type blockWriter struct {
	blockInfo
	dir    string
	file   *os.File
	out    *bufio.Writer
	offset int64
	index  []byte
	data   []byte
}

func createBlock(dir string, info blockInfo) (*blockWriter, error) {
	f, err := os.OpenFile(filepath.Join(dir, info.File), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &blockWriter{blockInfo: info, dir: dir, file: f, out: bufio.NewWriterSize(f, 1<<18)}, nil
}

// add writes a series. Its bins are in order, one for each time.
func (w *blockWriter) add(id uint32, bins []bin) error {
	if len(bins) == 0 {
		return nil
	}
	w.data = w.data[:0]
	before := int64(0)
	for i := range bins {
		w.data = appendSet(binary.AppendVarint(w.data, (bins[i].at-before)/w.Step), &bins[i].Set)
		before = bins[i].at
	}
	return w.write(id, bins[0].at, bins[len(bins)-1].at, w.data)
}

// write writes a series whose bins are encoded already.
func (w *blockWriter) write(id uint32, first, last int64, data []byte) error {
	if w.Series == 0 || first < w.First {
		w.First = first
	}
	if w.Series == 0 || last > w.Last {
		w.Last = last
	}
	e := entry{id: id, length: uint32(len(data)), offset: w.offset, last: last}
	w.index = e.append(w.index, data)
	w.Series++
	w.offset += int64(len(data))
	_, err := w.out.Write(data)
	return err
}

// close makes the block durable and returns it for reading. It removes an empty block and returns nil.
func (w *blockWriter) close() (*block, error) {
	if w.Series == 0 {
		return nil, errors.Join(w.file.Close(), os.Remove(w.file.Name()))
	}
	w.Index = w.offset
	w.IndexSum = wal.Checksum(w.index)
	_, err := w.out.Write(append(w.index, w.footer()...))
	if err = errors.Join(err, w.out.Flush()); err == nil {
		err = w.file.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, w.file.Close())
	}
	return &block{w.blockInfo, w.file}, nil
}

func (w *blockWriter) abort() {
	w.file.Close()           //nolint:errcheck // the file is removed
	os.Remove(w.file.Name()) //nolint:errcheck // opening the store removes it otherwise
}

// cursor iterates over a block's series.
type cursor struct {
	block *block
	index *bufio.Reader
	data  *bufio.Reader
	entry
	left int
}

func newCursor(b *block) (*cursor, error) {
	c := &cursor{
		block: b,
		left:  b.Series,
		index: bufio.NewReader(io.NewSectionReader(b.file, b.Index, int64(b.Series)*indexEntry)),
		data:  bufio.NewReaderSize(io.NewSectionReader(b.file, 0, b.Index), 1<<16),
	}
	return c, c.next()
}

// next moves to the next series and decrements left, which is -1 after the last one.
func (c *cursor) next() error {
	if c.left--; c.left < 0 {
		return nil
	}
	var buf [indexEntry]byte
	if _, err := io.ReadFull(c.index, buf[:]); err != nil {
		return err
	}
	c.entry = parseEntry(buf[:])
	return nil
}

func (c *cursor) bins(bins []bin) ([]bin, error) {
	data := make([]byte, c.length)
	if _, err := io.ReadFull(c.data, data); err != nil {
		return nil, err
	}
	err := c.block.decode(c.entry, data, func(b bin) { bins = append(bins, b) })
	return bins, err
}

// merge writes the bins of several blocks of a tier as one block, without bins before keep and without forgotten series.
func merge(w *blockWriter, blocks []*block, keep int64, known func(id uint32) bool) error {
	var cursors []*cursor
	for _, b := range blocks {
		c, err := newCursor(b)
		if err != nil {
			return err
		}
		cursors = append(cursors, c)
	}
	for {
		cursors = slices.DeleteFunc(cursors, func(c *cursor) bool { return c.left < 0 })
		if len(cursors) == 0 {
			return nil
		}
		id := slices.MinFunc(cursors, func(a, b *cursor) int { return int(int64(a.id) - int64(b.id)) }).id
		if err := mergeSeries(w, id, cursors, keep, known(id)); err != nil {
			return err
		}
	}
}

func mergeSeries(w *blockWriter, id uint32, cursors []*cursor, keep int64, known bool) (err error) {
	var bins []bin
	for _, c := range cursors {
		if c.id != id {
			continue
		}
		if bins, err = c.bins(bins); err != nil {
			return err
		}
		if err := c.next(); err != nil {
			return err
		}
	}
	bins = slices.DeleteFunc(bins, func(b bin) bool { return !known || b.at < keep })
	slices.SortStableFunc(bins, func(a, b bin) int { return int(a.at - b.at) })
	return w.add(id, rollUp(bins, w.Step))
}

// rollUp adds up sorted bins into bins of one step.
func rollUp(bins []bin, step int64) []bin {
	var out []bin
	for _, b := range bins {
		b.at = floor(b.at, step)
		if n := len(out); n > 0 && out[n-1].at == b.at {
			out[n-1].Add(b.Set)
			continue
		}
		out = append(out, b)
	}
	return out
}

// floor rounds a time down to a step.
func floor(at, step int64) int64 {
	at, rest := at-at%step, at%step
	if rest < 0 {
		at -= step
	}
	return at
}
