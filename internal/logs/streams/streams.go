// Package streams stores log events on disk. Each group has a directory with a log, and an index in memory of its streams' batches. A
// catalog lists the groups. An append is on disk before it returns, and concurrent appends share one sync. The store knows groups,
// streams, times and text; what they mean is up to the Logs service, which calls it.
package streams

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/disk"
	"github.com/pintle/pintle/internal/file"
)

// Errors that callers check for.
var (
	ErrNoGroup  = errors.New("no such log group")
	ErrNoStream = errors.New("no such log stream")
	ErrExists   = errors.New("it exists already")
	// ErrProtected is returned for a group that is protected from deletion, and for its streams.
	ErrProtected = errors.New("the log group is protected from deletion")
)

// Group is a log group's description.
type Group struct {
	Name          string
	CreatedAt     int64 // milliseconds since 1970, like all times here
	RetentionDays int32 // 0 means forever
	Class         string
	KMSKeyID      string
	Tags          map[string]string
	// DeletionProtected keeps the group from being deleted.
	DeletionProtected bool `json:",omitzero"`
	// Filters are the group's filters, or nil if it has none. They are never modified: a change puts others in their place.
	Filters *Filters `json:",omitzero"`
	Bytes   int64    `json:"-"` // of its events, as they are stored
}

// Filters are what a group does with events as they arrive. They are part of the group's description, so they end with the group, and
// whoever appends has them at hand.
type Filters struct {
	Metric       []types.MetricFilter       // by name
	Subscription []types.SubscriptionFilter // by name
}

// Stream is a log stream's description.
type Stream struct {
	Name          string
	CreatedAt     int64
	First         int64 // time of the first event; 0 if there is none
	Last          int64 // time of the last event
	LastIngestion int64
}

// Event is one log event.
type Event struct {
	Stream    string
	Timestamp int64
	Ingested  int64
	Message   string
	ID        ID
}

// ID identifies an event of a group for good, and orders events with the same time.
type ID struct {
	Timestamp int64
	Segment   int
	Offset    int64 // of the batch in the segment
	Index     int   // in the batch
}

// Compare orders ids by time, then by their place in the log.
func (a ID) Compare(b ID) int {
	for _, d := range [...]int64{a.Timestamp - b.Timestamp, int64(a.Segment - b.Segment), a.Offset - b.Offset, int64(a.Index - b.Index)} {
		if d != 0 {
			return int(max(min(d, 1), -1))
		}
	}
	return 0
}

// Store stores all log groups of an account.
type Store struct {
	// Flushed, unless nil, is told how long each group of batches took to get onto the disk. It's set before anything is written.
	Flushed func(took time.Duration)

	dir string

	mu      sync.RWMutex
	groups  map[string]*group
	catalog catalog

	held   int   // backups that need all groups' directories
	doomed []int // groups whose directories go after them

	syncDir func(dir string) error // tests have it fail
}

// Open opens the store in dir, and creates it if needed.
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	if err := file.Clean(dir); err != nil {
		return nil, err
	}
	s := &Store{dir: dir, groups: map[string]*group{}, syncDir: file.SyncDir}
	if err := s.load(); err != nil {
		return nil, errors.Join(fmt.Errorf("streams: %w", err), s.Close())
	}
	return s, nil
}

// load opens the groups in the catalog. A directory that isn't in it belongs to a group that was being created or deleted during a crash.
func (s *Store) load() error {
	ids, err := groupIDs(s.dir)
	if err != nil {
		return err
	}
	if err := s.catalog.read(s.dir, ids); err != nil {
		return err
	}
	for _, id := range ids {
		if _, known := s.catalog.Groups[id]; !known && id < s.catalog.Next {
			if err := removeGroup(s.dir, id); err != nil {
				return err
			}
			continue
		}
		g, err := s.openGroup(id)
		if err != nil {
			return err
		}
		s.groups[g.meta.Name] = g
		s.catalog.add(id, g.meta.Name)
	}
	for id := range s.catalog.Groups {
		if !slices.Contains(ids, id) {
			return s.catalog.missing(s.dir, id)
		}
	}
	return nil
}

func (s *Store) openGroup(id int) (*group, error) {
	return openGroup(groupDir(s.dir, id), id, func(took time.Duration) {
		if s.Flushed != nil {
			s.Flushed(took)
		}
	})
}

// Close closes the files.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, g := range s.groups {
		errs = append(errs, g.close())
	}
	return errors.Join(errs...)
}

// CreateGroup creates a group.
func (s *Store) CreateGroup(meta Group) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.groups[meta.Name] != nil {
		return ErrExists
	}
	id := max(s.catalog.Next, 1)
	if err := makeGroup(s.dir, id, meta); err != nil {
		return disk.Unwritable(err)
	}
	next := s.catalog.clone()
	next.add(id, meta.Name)
	isTaken, failed := s.setCatalog(next)
	if !isTaken {
		return errors.Join(failed, removeGroup(s.dir, id))
	}
	g, err := s.openGroup(id)
	if err != nil {
		return err
	}
	s.groups[meta.Name] = g
	return failed
}

// setCatalog replaces the catalog. Where it was taken and there's an error all the same, a restart has the new one, and a power failure may
// bring the old one back: then the directories of both must be there.
func (s *Store) setCatalog(next catalog) (isTaken bool, err error) {
	if err := next.replace(s.dir); err != nil {
		return false, disk.Unwritable(err)
	}
	s.catalog = next
	return true, disk.Unwritable(s.syncDir(s.dir))
}

// DeleteGroup deletes a group and its events.
func (s *Store) DeleteGroup(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.groups[name]
	if g == nil {
		return ErrNoGroup
	}
	if g.describe().DeletionProtected {
		return ErrProtected
	}
	next := s.catalog.clone()
	delete(next.Groups, g.id)
	isTaken, failed := s.setCatalog(next)
	if !isTaken {
		return failed
	}
	delete(s.groups, name)
	if failed != nil {
		return errors.Join(failed, g.close()) // the next start removes what is left
	}
	if s.held > 0 {
		s.doomed = append(s.doomed, g.id)
		return g.close()
	}
	return errors.Join(g.close(), removeGroup(s.dir, g.id))
}

// UpdateGroup changes a group's description. If change fails, nothing changes.
func (s *Store) UpdateGroup(name string, change func(*Group) error) error {
	g, err := s.group(name)
	if err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return ErrNoGroup // another call deleted it
	}
	meta := g.meta
	if err := change(&meta); err != nil {
		return err
	}
	if err := replaceDescription(g.dir, meta); err != nil {
		return disk.Unwritable(err)
	}
	g.meta = meta // as a restart has it, whatever comes of the sync
	return disk.Unwritable(s.syncDir(g.dir))
}

// Groups lists the groups by name.
func (s *Store) Groups() []Group {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var out []Group
	for _, g := range s.groups {
		out = append(out, g.describe())
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// Group describes a group.
func (s *Store) Group(name string) (Group, error) {
	g, err := s.group(name)
	if err != nil {
		return Group{}, err
	}
	return g.describe(), nil
}

func (s *Store) group(name string) (*group, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	g := s.groups[name]
	if g == nil {
		return nil, ErrNoGroup
	}
	return g, nil
}

// CreateStream creates a stream.
func (s *Store) CreateStream(groupName, stream string, now int64) error {
	g, err := s.group(groupName)
	if err != nil {
		return err
	}
	return g.createStream(stream, now)
}

// DeleteStream deletes a stream and its events.
func (s *Store) DeleteStream(groupName, stream string) error {
	g, err := s.group(groupName)
	if err != nil {
		return err
	}
	if g.describe().DeletionProtected {
		return ErrProtected
	}
	return g.deleteStream(stream)
}

// Streams lists a group's streams by name.
func (s *Store) Streams(groupName string) ([]Stream, error) {
	g, err := s.group(groupName)
	if err != nil {
		return nil, err
	}
	return g.list(), nil
}

// HasStream returns an error if there is no such group or stream.
func (s *Store) HasStream(groupName, stream string) error {
	g, err := s.group(groupName)
	if err != nil {
		return err
	}
	if !g.has(stream) {
		return ErrNoStream
	}
	return nil
}

// Append adds events to a stream. They are on disk when it returns nil.
func (s *Store) Append(groupName, stream string, now int64, events []Event) error {
	g, err := s.group(groupName)
	if err != nil {
		return err
	}
	return g.append(record{Kind: eventBatch, Stream: stream, At: now, Events: events})
}

// Range selects the events of a group to read.
type Range struct {
	Streams  []string         // nil means all
	Start    int64            // earliest time
	End      int64            // latest time, inclusive; 0 for none
	After    *ID              // only events after this one
	Before   *ID              // only events before this one
	Backward bool             // newest first
	Limit    int              // how many to return
	Keep     func(Event) bool // a filter; nil keeps all
}

// Read returns events by time, oldest first, or newest first with Backward. more reports whether the limit cut something off.
func (s *Store) Read(ctx context.Context, groupName string, r Range) (events []Event, more bool, err error) {
	g, err := s.group(groupName)
	if err != nil {
		return nil, false, err
	}
	return g.read(ctx, r)
}

// Sweep removes segments whose events are all older than their group's retention.
func (s *Store) Sweep(now int64) error {
	s.mu.RLock()
	groups := slices.Collect(maps.Values(s.groups))
	s.mu.RUnlock()
	var errs []error
	for _, g := range groups {
		errs = append(errs, g.sweep(now))
	}
	return errors.Join(errs...)
}
