// Package live keeps pages up to date. It renders a page again when something has changed, once for all who look at it with the same rights, and sends
// them what is different. It never renders faster than viewers can read, nor so often that it costs the control plane much, and it waits for nobody:
// who is slow is told to load the page anew.
package live

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// pace is the least time between two renderings of a page.
	pace = 300 * time.Millisecond
	// share is how much longer no page is rendered than all of them took: together they cost at most a twentieth of a core.
	share = 20
	// linger is how long a page is remembered that nobody looks at: a browser connects after it has loaded the page.
	linger = 15 * time.Second
	// maxQueue is how many changes a viewer may be behind, and kept those that one that has been away may catch up with. Neither may have more
	// bytes than maxBehind.
	maxQueue, kept = 16, 32
	maxBehind      = 1 << 20
	// maxPages is the most pages that there may be at once, and maxPagesOf and maxViewersOf the most pages and viewers of somebody.
	maxPages, maxPagesOf, maxViewersOf = 1000, 100, 300
)

// ErrBehind means that a viewer must load the page anew.
var ErrBehind = errors.New("the page must be loaded anew")

// ErrFull means that there are too many pages, or somebody has too many.
var ErrFull = errors.New("too many pages are open; close some")

// Source is where a page comes from.
type Source struct {
	Key string // of whom and what: sources with the same key render the same
	Of  string // whose: nobody's pages keep others out
	// Render renders the page.
	Render func(ctx context.Context) (Fragment, error)
	// Arm is called before each rendering. What it returns waits until something that the page shows may have changed since.
	Arm func() (wait func(context.Context) error)
	// Every is how often the page is rendered at least, for what changes without anybody's telling.
	Every time.Duration
	// Pace is the least time between two renderings; 0 means a third of a second, or longer where other pages are dear.
	Pace time.Duration
}

// Hub has all pages that somebody looks at.
type Hub struct {
	mu      sync.Mutex
	pages   map[string]*page
	viewers map[string]int // by whose they are

	took atomic.Int64 // the processor time of one rendering of each page that somebody looks at, added up, in nanoseconds
}

// New returns a hub.
func New() *Hub { return &Hub{pages: map[string]*page{}, viewers: map[string]int{}} }

// Batch is a set of changes that belong together.
type Batch struct {
	Version string // of the page that has them
	Ops     []Op
	JSON    func() []byte // the changes, encoded once for all who are sent them
	size    int           // bytes of HTML
}

func newBatch(version string, ops ...Op) Batch {
	b := Batch{Version: version, Ops: ops, JSON: sync.OnceValue(func() []byte {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false) // it isn't in a page
		e.Encode(ops)          //nolint:errcheck // they are texts
		return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	})}
	for _, o := range ops {
		b.size += len(o.HTML)
	}
	return b
}

// page is a page and who looks at it.
type page struct {
	hub    *Hub
	source Source
	epoch  string // tells pages with the same key apart, and the same page before and after a restart

	rendering sync.Mutex // held to render: the last rendering is the newest

	mu      sync.Mutex
	now     Fragment
	made    time.Time // when it was rendered
	seq     int
	past    []Batch // the last changes
	size    int     // of past
	viewers map[*viewer]bool
	stop    context.CancelFunc // of the loop; nil if nobody looks
	expiry  *time.Timer
}

type viewer struct {
	queue  chan Batch // closed when the viewer is too far behind
	queued int        // bytes in the queue; the page's mutex guards it
}

// Render renders a page and returns it with its version.
func (h *Hub) Render(ctx context.Context, s Source) (Fragment, string, error) {
	p, err := h.page(s)
	if err != nil {
		return Fragment{}, "", err
	}
	if err := p.render(ctx); err != nil {
		return Fragment{}, "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.now, p.versionLocked(), nil
}

// Watch sends changes of a page until ctx ends, sending fails, or the viewer is too far behind. The viewer has seen a version.
func (h *Hub) Watch(ctx context.Context, s Source, seen string, send func(Batch) error) error {
	if err := h.comes(s.Of); err != nil {
		return err
	}
	defer h.goes(s.Of)
	p, err := h.page(s)
	if err != nil {
		return err
	}
	if err := p.renderNew(ctx); err != nil {
		return ErrBehind // loading it says why
	}
	v, missed := p.join(seen)
	defer p.leave(v)
	for _, b := range missed {
		if err := send(b); err != nil {
			return err
		}
	}
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case b, ok := <-v.queue:
			if !ok {
				return ErrBehind
			}
			err := send(b)
			p.sent(v, b)
			if err != nil {
				return err
			}
		}
	}
}

// comes counts one more viewer of somebody, unless there are too many.
func (h *Hub) comes(of string) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.viewers[of] >= maxViewersOf {
		return ErrFull
	}
	h.viewers[of]++
	return nil
}

// goes counts one viewer less.
func (h *Hub) goes(of string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.viewers[of]--; h.viewers[of] == 0 {
		delete(h.viewers, of)
	}
}

// page returns the page of a source.
func (h *Hub) page(s Source) (*page, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	p := h.pages[s.Key]
	if p == nil {
		if err := h.makeRoomLocked(s.Of); err != nil {
			return nil, err
		}
		p = &page{hub: h, source: s, epoch: rand.Text()[:8], viewers: map[*viewer]bool{}}
		p.expiry = time.AfterFunc(linger, p.expire)
		h.pages[s.Key] = p
	}
	p.expiry.Reset(linger)
	return p, nil
}

// makeRoomLocked forgets a page that nobody looks at if there are too many, and one of somebody's own who has too many.
func (h *Hub) makeRoomLocked(of string) error {
	theirs := 0
	var unseen, unseenOfTheirs *page
	for _, p := range h.pages {
		isUnseen := p.viewerCount() == 0
		if isUnseen {
			unseen = p
		}
		if p.source.Of != of {
			continue
		}
		theirs++
		if isUnseen {
			unseenOfTheirs = p
		}
	}
	switch {
	case theirs >= maxPagesOf:
		unseen = unseenOfTheirs
	case len(h.pages) < maxPages:
		return nil
	}
	if unseen == nil {
		return ErrFull
	}
	delete(h.pages, unseen.source.Key)
	return nil
}

func (p *page) viewerCount() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.viewers)
}

// expire forgets the page if nobody looks at it.
func (p *page) expire() {
	p.hub.mu.Lock()
	defer p.hub.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.viewers) == 0 && p.hub.pages[p.source.Key] == p {
		delete(p.hub.pages, p.source.Key)
	}
}

// versionLocked returns the page's version.
func (p *page) versionLocked() string { return p.epoch + "." + strconv.Itoa(p.seq) }

// render renders the page and tells its viewers what is different.
func (p *page) render(ctx context.Context) error {
	p.rendering.Lock()
	defer p.rendering.Unlock()
	now, err := p.source.Render(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		p.failLocked()
		return err
	}
	p.made = time.Now()
	ops := diff(p.now, now)
	if len(ops) == 0 {
		return nil
	}
	p.now = now
	p.seq++
	p.tellLocked(newBatch(p.versionLocked(), ops...))
	return nil
}

// renderNew renders the page unless that was just done. What was rendered before may be what the viewer mustn't see any more.
func (p *page) renderNew(ctx context.Context) error {
	p.mu.Lock()
	isNew := time.Since(p.made) < time.Second
	p.mu.Unlock()
	if isNew {
		return nil
	}
	return p.render(ctx)
}

// failLocked forgets a page that can't be shown any more, because it isn't there or its viewers mustn't see it. They load it anew, which says why.
func (p *page) failLocked() {
	p.now, p.past, p.size, p.made = Fragment{}, nil, 0, time.Time{}
	for v := range p.viewers {
		p.dismissLocked(v)
	}
}

// dismissLocked tells a viewer to load the page anew.
func (p *page) dismissLocked(v *viewer) {
	close(v.queue)
	delete(p.viewers, v)
}

// tellLocked keeps a change for those who come back, and passes it on to the viewers. Who is too far behind is told to load the page anew.
func (p *page) tellLocked(b Batch) {
	p.past = append(p.past, b)
	p.size += b.size
	for len(p.past) > kept || p.size > maxBehind {
		p.size -= p.past[0].size
		p.past = slices.Delete(p.past, 0, 1)
	}
	for v := range p.viewers {
		if len(v.queue) < maxQueue && (v.queued == 0 || v.queued+b.size <= maxBehind) {
			v.queue <- b
			v.queued += b.size
			continue
		}
		p.dismissLocked(v)
	}
}

// sent notes that a viewer has a change that was in its queue.
func (p *page) sent(v *viewer, b Batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v.queued -= b.size
}

// join adds a viewer, and returns what it has missed.
func (p *page) join(seen string) (*viewer, []Batch) {
	p.mu.Lock()
	defer p.mu.Unlock()
	v := &viewer{queue: make(chan Batch, maxQueue)}
	p.viewers[v] = true
	if p.stop == nil {
		var ctx context.Context
		ctx, p.stop = context.WithCancel(context.Background())
		go p.run(ctx)
	}
	return v, p.missedLocked(seen)
}

// missedLocked returns the changes after a version: those that there were, or the whole page.
func (p *page) missedLocked(seen string) []Batch {
	if seen == p.versionLocked() || p.seq == 0 {
		return nil
	}
	for i, b := range p.past {
		if b.Version == seen {
			return append([]Batch(nil), p.past[i+1:]...)
		}
	}
	return []Batch{newBatch(p.versionLocked(), Op{"set", p.now.ID, p.now.String()})}
}

// leave removes a viewer.
func (p *page) leave(v *viewer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.viewers, v)
	if len(p.viewers) == 0 && p.stop != nil {
		p.stop()
		p.stop = nil
		p.expiry.Reset(linger)
	}
}

// run renders the page whenever it may have changed, until ctx ends.
func (p *page) run(ctx context.Context) {
	var took time.Duration
	defer func() { p.hub.took.Add(-int64(took)) }()
	for ctx.Err() == nil {
		due, cancel := context.WithTimeout(ctx, p.source.Every)
		wait := p.source.Arm()
		before := took
		took = processorTime(func() {
			p.render(ctx) //nolint:errcheck // its viewers load it anew, which says why
		})
		all := time.Duration(p.hub.took.Add(int64(took - before)))
		if p.source.Pace > 0 {
			all = took // it answers to keys, whatever else somebody looks at
		}
		rest(ctx, max(cmp.Or(p.source.Pace, pace), share*all))
		wait(due) //nolint:errcheck // either way it's time to look again
		cancel()
	}
}

// processorTime returns how long a function keeps a processor busy. How long it takes would say more of what else the machine has to do.
func processorTime(do func()) time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := threadTime()
	do()
	return threadTime() - began
}

func threadTime() time.Duration {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// rest waits for a time, or until ctx ends.
func rest(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}
