package queues

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"github.com/google/uuid"

	"github.com/pintle/pintle/internal/disk"
	"github.com/pintle/pintle/internal/wal"
)

// MoveStatus is the status of a move.
type MoveStatus string

// The states of a move: API_ListMessageMoveTasks.
const (
	MoveRunning    MoveStatus = "RUNNING"
	MoveCompleted  MoveStatus = "COMPLETED"
	MoveCancelling MoveStatus = "CANCELLING"
	MoveCancelled  MoveStatus = "CANCELLED"
	MoveFailed     MoveStatus = "FAILED"
)

// Move is a task that moves a dead-letter queue's messages to one queue, or each to where it came from.
type Move struct {
	ID        string
	From      string
	To        string // "" for where each came from
	PerSecond int    // messages a second; 0 for no limit
	StartedAt int64
	Status    MoveStatus
	Moved     int64
	ToMove    int64
	Failure   string

	in *segment
}

// Errors of moves.
var (
	ErrMoving = errors.New("queues: the queue's messages are being moved already")
	ErrNoMove = errors.New("queues: there is no such move under way")
)

// maxMoves is how many moves a queue remembers.
const maxMoves = 10

// failureOf returns why a message cannot be moved.
func failureOf(m *Move, found *message) string {
	if m.To == "" && found.from == "" {
		return "CouldNotDetermineMessageSource"
	}
	return "AWS.SimpleQueueService.NonExistentQueue"
}

// StartMove starts to move a queue's messages.
func (s *Store) StartMove(m Move) error {
	s.mu.Lock()
	now := s.now()
	q, err := s.findToChange(m.From, now)
	if err == nil && m.To != "" {
		_, err = s.find(m.To, now)
	}
	if err == nil &&
		slices.ContainsFunc(s.movesOf(m.From), func(m Move) bool { return m.Status == MoveRunning || m.Status == MoveCancelling }) {
		err = ErrMoving
	}
	if err != nil {
		s.mu.Unlock()
		return err
	}
	m.StartedAt, m.Status, m.ToMove = now, MoveRunning, int64(q.counts[visible])
	b := s.commit([]record{m.record()}, true)
	s.tasks.Go(func() { s.move(m.ID) })
	s.mu.Unlock()
	return b.Wait()
}

// CancelMove cancels a move and returns how many messages it has moved.
func (s *Store) CancelMove(id string) (int64, error) {
	s.mu.Lock()
	m := s.moves[id]
	stalled := s.log.Stalled()
	if m == nil || m.Status != MoveRunning || s.err != nil || stalled != nil {
		defer s.mu.Unlock()
		return 0, cmp.Or(s.err, stalled, ErrNoMove)
	}
	next := *m
	next.Status = MoveCancelling
	b := s.commit([]record{next.record()}, true)
	s.mu.Unlock()
	return next.Moved, b.Wait()
}

// Moves returns a queue's latest moves, the newest first.
func (s *Store) Moves(from string) []Move {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.movesOf(from)
}

func (s *Store) movesOf(from string) []Move {
	var out []Move
	for _, m := range s.moves {
		if m.From == from {
			out = append(out, *m)
		}
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := &out[i], &out[j]
		return cmp.Or(cmp.Compare(b.StartedAt, a.StartedAt), cmp.Compare(a.ID, b.ID)) < 0
	})
	return out
}

func (m *Move) record() record {
	b, err := json.Marshal(m)
	if err != nil {
		panic(err) // a Move is numbers and text
	}
	return record{kind: moveIs, json: b}
}

// applyMove applies a move's record, and forgets the queue's older moves.
func (s *Store) applyMove(r *record, g *segment) error {
	m := &Move{in: g}
	if err := json.Unmarshal(r.json, m); err != nil {
		return fmt.Errorf("%w: %w", errCorrupt, err)
	}
	s.moves[m.ID] = m
	if all := s.movesOf(m.From); len(all) > maxMoves {
		delete(s.moves, all[maxMoves].ID)
	}
	return nil
}

// resume continues moves that were running when the store was last closed.
func (s *Store) resume() {
	for _, m := range s.moves {
		if m.Status == MoveRunning || m.Status == MoveCancelling {
			s.tasks.Go(func() { s.move(m.ID) })
		}
	}
}

// move moves messages until there are none, or the move or the store ends.
func (s *Store) move(id string) {
	for {
		pause, b, done := s.moveSome(id)
		if err := b.Wait(); done || err != nil && !disk.IsUnwritable(err) {
			return
		}
		select {
		case <-s.done:
			return
		case <-time.After(pause):
		}
	}
}

// moveSome moves the next messages. pause is how long to wait before the ones behind them.
func (s *Store) moveSome(id string) (pause time.Duration, b *wal.Group, done bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.moves[id]
	if m == nil || s.err != nil {
		return 0, nil, true
	}
	if s.log.Stalled() != nil {
		return time.Second, nil, false
	}
	next, now := *m, s.now()
	q, err := s.find(m.From, now)
	if next.Status == MoveCancelling || err != nil {
		next.Status = MoveCancelled
		return 0, s.commit([]record{next.record()}, true), true
	}
	limit := 100
	if m.PerSecond > 0 {
		limit = min(limit, max(1, m.PerSecond/10))
		pause = time.Second * time.Duration(limit) / time.Duration(m.PerSecond)
	}
	var records []record
	targets := map[*queue]bool{}
	for _, found := range q.take(limit) {
		to := s.names[cmp.Or(m.To, found.from)]
		if to == nil || to == q || found.from == "" && m.To == "" {
			next.Status, next.Failure = MoveFailed, failureOf(&next, found)
			break
		}
		s.last++
		r := record{kind: redriven, queue: q.ID, seq: found.seq, at: now, to: to.ID, toSeq: s.last, id: uuid.New()}
		records, targets[to] = append(records, r), true
		next.Moved++
	}
	if len(records) == 0 && next.Status == MoveRunning {
		next.Status = MoveCompleted
	}
	q.flow.begin(q, now)
	for to := range targets {
		to.flow.begin(to, now)
	}
	b = s.commit(append(records, next.record()), true)
	for to := range targets {
		s.wakeNext(to)
	}
	return pause, b, next.Status != MoveRunning
}
