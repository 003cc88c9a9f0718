// Package metrics stores metrics as CloudWatch does: for each series, statistic sets and values by the second
// or the minute, which may arrive in any order of time. Old data is rolled up and then deleted. A Put is on disk when
// it returns; concurrent puts share a sync. The store knows nothing about AWS's API or alarms. The CloudWatch
// service writes and reads it, and the alarms' loop reads it.
package metrics

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/wal"
)

// Dimension is a name and value that distinguishes metrics of the same name.
type Dimension struct{ Name, Value string }

// Metric names a metric. Its dimensions are sorted.
type Metric struct {
	Namespace, Name string
	Dimensions      []Dimension
}

// NewMetric returns the metric with these dimensions, in any order.
func NewMetric(namespace, name string, dimensions ...Dimension) Metric {
	m := Metric{namespace, name, slices.Clone(dimensions)}
	slices.SortFunc(m.Dimensions, func(a, b Dimension) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), strings.Compare(a.Value, b.Value))
	})
	return m
}

// Key returns the metric as one string. Metrics are listed in the order of their keys.
func (m *Metric) Key() string {
	var b strings.Builder
	b.WriteString(m.Namespace)
	b.WriteByte(0)
	b.WriteString(m.Name)
	for _, d := range m.Dimensions {
		b.WriteByte(0)
		b.WriteString(d.Name)
		b.WriteByte(0)
		b.WriteString(d.Value)
	}
	return b.String()
}

// Sample is a report of a metric.
type Sample struct {
	Metric Metric
	Unit   string
	At     int64 // seconds since 1970
	Fine   bool  // kept by the second, not by the minute
	Set    Set
}

// tier is a resolution and how long it is kept: the CloudWatch User Guide on metrics retention.
type tier struct {
	step int64 // seconds
	keep time.Duration
}

const day = 24 * time.Hour

var tiers = []tier{{1, 3 * time.Hour}, {60, 15 * day}, {300, 63 * day}, {3600, 455 * day}}

// oldest returns the earliest time that a tier keeps.
func (t tier) oldest(now int64) int64 { return now - int64(t.keep/time.Second) }

// Options configures a store. The zero value works.
type Options struct {
	Now func() time.Time
	// MaxHead limits the bins in memory. The store then writes them into blocks.
	MaxHead int
	// MaxMetrics limits the metrics. Beyond it the store forgets those reported longest ago, but never one
	// reported within three hours.
	MaxMetrics int
	// NoSync gives up durability, for a temporary store.
	NoSync bool
	// Flushed, unless nil, is told how long each group of samples took to get onto the disk.
	Flushed func(took time.Duration)
	// Note, unless nil, is called with samples once they can be read, before Put returns. It must not block.
	Note func([]Sample)
}

// defaultMaxHead takes some 50 MB of memory, and twice that during a flush.
const defaultMaxHead = 1 << 19

// defaultMaxMetrics takes some 300 MB of memory.
const defaultMaxMetrics = 500_000

// metricState is what the store knows about a metric besides its bins.
type metricState struct {
	Metric
	key     string
	series  []*series // one for each unit
	last    int64     // time of the latest bin
	lastPut int64     // when something was last put, since the store was opened
}

// series is a metric in one unit.
type series struct {
	id     uint32
	metric *metricState
	unit   string
}

// Store is the store. It is safe for concurrent use.
type Store struct {
	dir  string
	opts Options

	// blocksMu is held while blocks are read. Lock it before mu.
	blocksMu sync.RWMutex
	blocks   []*block

	mu      sync.RWMutex
	metrics map[string]*metricState
	sorted  []*metricState // by key; nil if it must be sorted again
	series  map[uint32]*series
	nextID  uint32
	fresh   []*series // series that aren't in names yet
	head    *head
	frozen  *head // the head being flushed into blocks, or nil

	err     error // why nothing can be put now
	closing chan struct{}

	log *wal.Log

	// Only written, which the log calls once a put is on disk, and rotate use these. Close waits for both first.
	nextSegment int       // the segment with which a new head begins; 0 while the head isn't full
	flushing    *flushing // the last flush; nil before the first

	// Only the flush uses these. It holds working, and so does who holds the store for a backup.
	working   sync.Mutex
	names     *wal.Log // of the series
	nextBlock int
	manifest  manifest
	orphans   int // samples in the log whose series is unknown

	heldMu  sync.Mutex
	held    int      // backups that need the blocks
	retired []string // paths of blocks that go after them
}

// manifest lists the files that make up the store.
type manifest struct {
	Log    int // the first segment of the log that counts
	Blocks []blockInfo
}

// Open opens the store in a directory and creates the directory if needed.
func Open(dir string, opts Options) (*Store, error) {
	if opts.Now == nil {
		opts.Now = time.Now
	}
	opts.MaxHead = cmp.Or(opts.MaxHead, defaultMaxHead)
	opts.MaxMetrics = cmp.Or(opts.MaxMetrics, defaultMaxMetrics)
	s := &Store{
		dir:     dir,
		opts:    opts,
		metrics: map[string]*metricState{},
		series:  map[uint32]*series{},
		head:    newHead(),
		closing: make(chan struct{}),
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := s.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("metrics: %w", err), s.closeFiles())
	}
	return s, nil
}

// The directories and kinds of the two logs: one for data that isn't in blocks yet, one for the series' names.
const (
	logDir    = "log"
	namesDir  = "series"
	logKind   = "metrics"
	namesKind = "series"
)

func (s *Store) load() (err error) {
	if err := file.Clean(s.dir); err != nil {
		return err
	}
	if err := s.loadManifest(); err != nil {
		return err
	}
	options := wal.Options{Kind: namesKind, NoSync: s.opts.NoSync}
	s.names, err = wal.Open(s.path(namesDir), options, func(_ wal.Position, payload []byte) error {
		d := &decoder{b: payload}
		s.restore(d.series())
		return d.err
	})
	if err != nil {
		return err
	}
	s.fresh = nil
	if err := s.loadBlocks(); err != nil {
		return err
	}
	options.Kind = logKind
	options.Flushed = s.opts.Flushed
	options.From = s.manifest.Log
	if s.log, err = wal.Open(s.path(logDir), options, s.replay); err != nil {
		return err
	}
	if s.orphans > 0 && !s.names.Repaired() && !s.log.Repaired() {
		return fmt.Errorf("%w: %d samples belong to unknown series", errCorrupt, s.orphans)
	}
	return nil
}

// loadManifest reads the manifest. In a new store it writes one before anything else.
func (s *Store) loadManifest() error {
	used, err := readManifest(s.dir, &s.manifest)
	if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if used {
		return &file.Damage{Path: s.path(manifestFile), Offset: -1, What: "is missing"}
	}
	s.manifest.Log = 1
	return errors.Join(s.writeManifest(s.manifest), s.syncDir())
}

const manifestFile = "manifest"

// readManifest reads the manifest, and reports whether there are files that it should list.
func readManifest(dir string, m *manifest) (used bool, err error) {
	for _, pattern := range []string{"*.block", logDir + "/*.log", namesDir + "/*.log"} {
		paths, err := file.Glob(dir, pattern)
		if err != nil {
			return false, err
		}
		used = used || len(paths) > 0
	}
	return used, file.ReadSealed(filepath.Join(dir, manifestFile), m)
}

func (s *Store) writeManifest(m manifest) error {
	return file.WriteSealed(s.path(manifestFile), m, !s.opts.NoSync)
}

// syncDir makes the names of the store's files durable.
func (s *Store) syncDir() error {
	if s.opts.NoSync {
		return nil
	}
	return file.SyncDir(s.dir)
}

// loadBlocks opens the blocks, notes when each metric was last reported, and removes blocks that a crash left behind.
func (s *Store) loadBlocks() error {
	known := map[string]bool{}
	for _, info := range s.manifest.Blocks {
		b, index, err := openBlock(s.dir, info)
		if err != nil {
			return err
		}
		s.blocks = append(s.blocks, b)
		known[info.File] = true
		s.nextBlock = max(s.nextBlock, fileNumber(info.File)+1)
		for ; len(index) > 0; index = index[indexEntry:] {
			e := parseEntry(index)
			s.nextID = max(s.nextID, e.id+1) // including forgotten series
			s.noteReported(e.id, e.last)
		}
	}
	paths, err := file.Glob(s.dir, "*.block")
	for _, p := range paths {
		if !known[filepath.Base(p)] {
			err = errors.Join(err, os.Remove(p))
		}
	}
	return err
}

// replay restores data that wasn't in blocks yet from the log.
func (s *Store) replay(_ wal.Position, payload []byte) error {
	made, samples, err := parseRecord(payload)
	if err != nil {
		return err
	}
	for _, n := range made {
		s.restore(n)
	}
	for _, sample := range samples {
		if s.series[sample.series] == nil { // its name was damaged
			s.orphans++
			s.nextID = max(s.nextID, sample.series+1)
			continue
		}
		s.head.add(sample)
		s.noteReported(sample.series, sample.at)
	}
	return nil
}

func (s *Store) path(name string) string { return filepath.Join(s.dir, name) }

// fileNumber returns the number in the name of a block or a log.
func fileNumber(file string) (n int) {
	fmt.Sscanf(file, "%d", &n) //nolint:errcheck // 0 for a file that isn't ours
	return n
}

// Close waits for writes under way and closes the store.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.err != ErrClosed { //nolint:errorlint // it is set as it is
		s.err = ErrClosed
		close(s.closing)
	}
	s.mu.Unlock()
	s.log.Drain()
	if s.flushing != nil {
		<-s.flushing.done
	}
	return s.closeFiles()
}

func (s *Store) closeFiles() (err error) {
	for _, log := range []*wal.Log{s.log, s.names} {
		if log != nil {
			err = errors.Join(err, log.Close())
		}
	}
	for _, b := range s.blocks {
		err = errors.Join(err, b.file.Close())
	}
	return err
}

// find returns the series of a metric in a unit, and makes it if there's none. The caller holds mu.
func (s *Store) find(m Metric, unit string, now int64) (found *series, made bool) {
	state := s.state(m)
	state.lastPut = now
	for _, found := range state.series {
		if found.unit == unit {
			return found, false
		}
	}
	return s.add(s.nextID, state, unit), true
}

// state returns a metric's state, and makes it if there's none.
func (s *Store) state(m Metric) *metricState {
	key := m.Key()
	state := s.metrics[key]
	if state == nil {
		state = &metricState{Metric: m, key: key}
		s.metrics[key] = state
		s.sorted = nil
	}
	return state
}

func (s *Store) add(id uint32, m *metricState, unit string) *series {
	one := &series{id, m, unit}
	m.series = append(m.series, one)
	s.series[id] = one
	s.fresh = append(s.fresh, one)
	s.nextID = max(s.nextID, id+1)
	return one
}

// restore adds a series from disk, unless it's there already.
func (s *Store) restore(n storedSeries) {
	if s.series[n.id] == nil {
		s.add(n.id, s.state(n.metric), n.unit)
	}
}

// noteReported notes when a series was last reported, unless it was forgotten. The caller holds mu, or is the only user.
func (s *Store) noteReported(id uint32, at int64) {
	if one := s.series[id]; one != nil {
		one.metric.last = max(one.metric.last, at)
	}
}
