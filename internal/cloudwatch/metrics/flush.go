package metrics

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/pintle/pintle/internal/wal"
)

// fanIn is how many blocks of a level become one of the next.
const fanIn = 8

// flush writes the frozen head into a block of each tier. Then the manifest names the blocks and the log's
// first segment that still counts. So flushed data counts exactly once, even if the process is killed at any moment.
func (s *Store) flush(number int) error {
	if err := s.saveSeries(); err != nil {
		return err
	}
	if s.frozen != nil { // otherwise an earlier attempt got this far
		if err := s.writeTiers(number); err != nil {
			return err
		}
	}
	if err := s.syncDir(); err != nil {
		return err
	}
	return s.log.RemoveBefore(number)
}

// writeTiers replaces the frozen head by blocks.
func (s *Store) writeTiers(number int) error {
	now := s.opts.Now().Unix()
	var made []*block
	for _, t := range tiers {
		b, err := s.writeTier(t, now, number)
		if err != nil {
			return errors.Join(err, s.discard(made))
		}
		if b != nil {
			made = append(made, b)
		}
	}
	return s.replace(nil, made, number)
}

// discard removes blocks that no manifest names, or has them removed after the backups that may need them.
func (s *Store) discard(made []*block) (err error) {
	s.heldMu.Lock()
	defer s.heldMu.Unlock()
	for _, b := range made {
		err = errors.Join(err, b.file.Close())
		if s.held > 0 {
			s.retired = append(s.retired, s.path(b.File))
			continue
		}
		err = errors.Join(err, os.Remove(s.path(b.File)))
	}
	return err
}

// saveSeries writes the series that aren't in the names log yet, so that the log's segments can be removed.
func (s *Store) saveSeries() error {
	s.mu.Lock()
	fresh := s.fresh
	s.fresh = nil
	s.mu.Unlock()
	return s.writeSeries(fresh, fresh)
}

// writeSeries writes series into the names log. If that fails, those that were fresh are so again.
func (s *Store) writeSeries(all, fresh []*series) error {
	err := s.names.Stalled()
	if err == nil {
		var written *wal.Group
		for _, one := range all {
			_, written = s.names.Append(func(b []byte) []byte { return appendSeries(b, one) }, nil)
		}
		err = written.Wait()
	}
	if err != nil {
		s.mu.Lock()
		s.fresh = append(fresh, s.fresh...)
		s.mu.Unlock()
	}
	return err
}

// writeTier writes what a tier keeps of the frozen head. Nothing changes that head anymore.
func (s *Store) writeTier(t tier, now int64, number int) (*block, error) {
	w, err := s.newBlock(blockInfo{Step: t.step, Log: number})
	if err != nil {
		return nil, err
	}
	for _, id := range s.frozen.ids() {
		bins := slices.DeleteFunc(slices.Clone(s.frozen.bins[id]), func(b bin) bool {
			return b.at < t.oldest(now) || t.step == 1 && !b.fine
		})
		if err := w.add(id, rollUp(bins, t.step)); err != nil {
			w.abort()
			return nil, err
		}
	}
	return w.close()
}

func (s *Store) newBlock(info blockInfo) (*blockWriter, error) {
	s.nextBlock++
	info.File = fmt.Sprintf("%09d.block", s.nextBlock)
	return createBlock(s.dir, info)
}

// replace replaces blocks by others, first on disk and then for readers. If log, a segment's number, isn't 0, the new
// blocks also replace the frozen head.
func (s *Store) replace(old, made []*block, log int) error {
	kept := slices.DeleteFunc(slices.Clone(s.blocks), func(b *block) bool { return slices.Contains(old, b) })
	kept = append(kept, made...)
	m := manifest{Log: max(s.manifest.Log, log)}
	for _, b := range kept {
		m.Blocks = append(m.Blocks, b.blockInfo)
	}
	if err := s.writeManifest(m); err != nil {
		return errors.Join(err, s.discard(made))
	}
	s.manifest = m
	s.blocksMu.Lock()
	defer s.blocksMu.Unlock()
	s.mu.Lock()
	if log > 0 {
		s.frozen = nil
	}
	s.mu.Unlock()
	s.blocks = kept
	if err := s.syncDir(); err != nil {
		return err // the old ones may still be needed after a power failure
	}
	return s.discard(old)
}

// tidy removes expired blocks, merges small ones, and forgets metrics.
func (s *Store) tidy(now int64) error {
	for _, t := range tiers {
		if err := s.expire(t, now); err != nil {
			return err
		}
		for level := 0; ; level++ {
			merged, err := s.mergeLevel(t, level, now)
			if err != nil {
				return err
			}
			if !merged {
				break
			}
		}
	}
	return s.forget(now)
}

func (s *Store) expire(t tier, now int64) error {
	var old []*block
	for _, b := range s.blocks {
		if b.Step == t.step && b.Last < t.oldest(now) {
			old = append(old, b)
		}
	}
	if len(old) == 0 {
		return nil
	}
	return s.replace(old, nil, 0)
}

// mergeLevel merges a level's first blocks into one, unless the result would span more than the tier keeps and so
// never expire. It reports whether it merged any.
func (s *Store) mergeLevel(t tier, level int, now int64) (bool, error) {
	var old []*block
	for _, b := range s.blocks {
		if b.Step == t.step && b.Level == level && len(old) < fanIn {
			old = append(old, b)
		}
	}
	if len(old) < fanIn || old[fanIn-1].Last-old[0].First > now-t.oldest(now) {
		return false, nil
	}
	info := blockInfo{Step: t.step, Level: level + 1}
	for _, b := range old {
		info.Of = append(info.Of, b.File)
		info.Log = max(info.Log, b.Log)
	}
	w, err := s.newBlock(info)
	if err != nil {
		return false, err
	}
	if err := merge(w, old, t.oldest(now), s.hasSeries); err != nil {
		w.abort()
		return false, err
	}
	b, err := w.close()
	if err != nil {
		return false, err
	}
	if b == nil {
		return true, s.replace(old, nil, 0)
	}
	return true, s.replace(old, []*block{b}, 0)
}
