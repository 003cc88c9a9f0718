package metrics

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
)

// A block is a file that never changes: the bins of one tier for some series, series by series in the
// order of their ids, and behind them an index with an entry for each:
//
//	id 4 bytes, length 4, offset 8, time of the last bin 8, CRC-32C of the bins 4
const indexEntry = 28

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// blockInfo is what the manifest knows of a block.
type blockInfo struct {
	File        string
	Step        int64
	Level       int
	First, Last int64 // times of bins
	Series      int
	Index       int64 // where it begins
}

type block struct {
	blockInfo
	file *os.File
}

func openBlock(dir string, info blockInfo) (*block, error) {
	f, err := os.Open(filepath.Join(dir, info.File))
	if err != nil {
		return nil, err
	}
	return &block{info, f}, nil
}

// entry is one series in a block's index.
type entry struct {
	id     uint32
	length uint32
	offset int64
	last   int64
	sum    uint32
}

func parseEntry(b []byte) entry {
	return entry{
		id: binary.LittleEndian.Uint32(b), length: binary.LittleEndian.Uint32(b[4:]),
		offset: int64(binary.LittleEndian.Uint64(b[8:])), last: int64(binary.LittleEndian.Uint64(b[16:])), sum: binary.LittleEndian.Uint32(b[24:]),
	}
}

// read hands the bins of a series to visit; none where the block has none of it.
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
	if _, err := b.file.ReadAt(data, e.offset); err != nil {
		return err
	}
	return b.decode(e, data, visit)
}

func (b *block) decode(e entry, data []byte, visit func(bin)) error {
	if crc32.Checksum(data, castagnoli) != e.sum {
		return fmt.Errorf("%w: series %d of %s", errCorrupt, e.id, b.File)
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

// entries reads the whole index.
func (b *block) entries(visit func(entry)) error {
	in := bufio.NewReader(io.NewSectionReader(b.file, b.Index, int64(b.Series)*indexEntry))
	var buf [indexEntry]byte
	for range b.Series {
		if _, err := io.ReadFull(in, buf[:]); err != nil {
			return err
		}
		visit(parseEntry(buf[:]))
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

func createBlock(dir, name string, step int64, level int) (*blockWriter, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	return &blockWriter{blockInfo: blockInfo{File: name, Step: step, Level: level}, dir: dir, file: f, out: bufio.NewWriterSize(f, 1<<18)}, nil
}

// add writes a series; bins are in order, one for each time.
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
	first, last := bins[0].at, bins[len(bins)-1].at
	if w.Series == 0 || first < w.First {
		w.First = first
	}
	if w.Series == 0 || last > w.Last {
		w.Last = last
	}
	w.index = binary.LittleEndian.AppendUint32(w.index, id)
	w.index = binary.LittleEndian.AppendUint32(w.index, uint32(len(w.data)))
	w.index = binary.LittleEndian.AppendUint64(w.index, uint64(w.offset))
	w.index = binary.LittleEndian.AppendUint64(w.index, uint64(last))
	w.index = binary.LittleEndian.AppendUint32(w.index, crc32.Checksum(w.data, castagnoli))
	w.Series++
	w.offset += int64(len(w.data))
	_, err := w.out.Write(w.data)
	return err
}

// close makes the block durable and opens it for reading. An empty one is removed: it is nil.
func (w *blockWriter) close() (*block, error) {
	if w.Series == 0 {
		return nil, errors.Join(w.file.Close(), os.Remove(w.file.Name()))
	}
	w.Index = w.offset
	_, err := w.out.Write(w.index)
	if err = errors.Join(err, w.out.Flush()); err == nil {
		err = w.file.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, w.file.Close())
	}
	return &block{w.blockInfo, w.file}, nil
}

func (w *blockWriter) abort() {
	w.file.Close()           //nolint:errcheck // it is removed
	os.Remove(w.file.Name()) //nolint:errcheck // what stays is removed when the store is opened
}

// cursor goes through a block series by series.
type cursor struct {
	block *block
	index *bufio.Reader
	data  *bufio.Reader
	entry
	left int
}

func newCursor(b *block) (*cursor, error) {
	c := &cursor{
		block: b, left: b.Series,
		index: bufio.NewReader(io.NewSectionReader(b.file, b.Index, int64(b.Series)*indexEntry)),
		data:  bufio.NewReaderSize(io.NewSectionReader(b.file, 0, b.Index), 1<<16),
	}
	return c, c.next()
}

// next goes on to the next series; left is then one fewer, and -1 behind the last.
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

// merge writes the bins of several blocks of a tier as one, without those before keep, and those of series that are not
// known any more.
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

// rollUp adds bins that are in order up to those of a step.
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
