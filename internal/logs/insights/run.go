package insights

import (
	"errors"
	"slices"
	"time"
)

// ErrTooLarge says that a query needs more memory than its run may have.
var ErrTooLarge = errors.New("the query needs too much memory")

// Run evaluates a query once. Events may be added in any order.
type Run struct {
	query   *Query
	now     time.Time
	memory  int // bytes that may still be held
	err     error
	first   sink
	matched int
}

// Field is a column of a result.
type Field struct{ Name, Value string }

// row is an event on its way through a query, or what stats made of events.
type row struct {
	run    *Run
	event  *Event // nil if the row has only the query's own fields
	parsed bool
	doc    any
	own    map[string]value
	sums   []value // what a row's aggregates came to, while stats makes it
	keys   []value // what it is sorted by
	at     int64   // the row's place among others: later ones come first
	place  [4]int64
	key    string // what dedup knows it by
	size   int    // what the row counts for in the run's memory
	made   int    // how much text the query gave it
	gone   bool
}

// sink takes all rows of a stage, and then gives the rows that go on.
type sink interface {
	add(*row)
	rows() []*row
}

// Run starts a run. now is the time for the query, and memory the number of bytes it may hold.
func (q *Query) Run(now time.Time, memory int) *Run {
	r := &Run{query: q, now: now, memory: memory}
	r.first = q.stages[0].sink(r)
	return r
}

// Add adds an event. After an error, the run is over.
func (r *Run) Add(e Event) error {
	r.feed(r.query.stages[0], r.first, &row{run: r, event: &e, at: e.Timestamp, place: e.Place}, &r.matched)
	return r.err
}

// feed sends a row through a stage's steps to its sink, and counts the rows that arrive there.
func (r *Run) feed(s *stage, into sink, row *row, arrived *int) {
	for _, step := range s.steps {
		if !step(row) || r.err != nil {
			return
		}
	}
	*arrived++
	into.add(row)
}

// Matched returns how many events matched so far.
func (r *Run) Matched() int { return r.matched }

// Settled reports whether no event up to a time can change the results any more.
func (r *Run) Settled(newest int64) bool {
	o, ok := r.first.(*ordered)
	return ok && o.by == nil && o.worst != nil && o.worst.at > newest
}

// Results returns the results.
func (r *Run) Results() ([][]Field, error) {
	rows := r.first.rows()
	for _, s := range r.query.stages[1:] {
		into := s.sink(r)
		arrived := 0
		for i, row := range rows {
			row.at = 0
			row.place = [4]int64{-int64(i)}
			r.release(row)
			r.feed(s, into, row, &arrived)
		}
		rows = into.rows()
	}
	if r.err != nil {
		return nil, r.err
	}
	out := make([][]Field, len(rows))
	for i, row := range rows {
		out[i] = row.fields(r.query)
	}
	return out, nil
}

func (r *Run) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

// hold counts memory that the run holds from now on.
func (r *Run) hold(bytes int) {
	if r.memory -= bytes; r.memory < 0 {
		r.fail(ErrTooLarge)
	}
}

func (r *Run) release(row *row) {
	r.memory += row.size
	row.size = 0
}

// perRow is about what a row costs besides its texts, and perValue what a value does.
const (
	perRow   = 300
	perValue = 100
)

// settle replaces a row's event by the fields that are needed from here on, which are often much less.
func (r *row) settle(names []string) {
	own := make(map[string]value, len(names))
	r.size = perRow + len(r.key)
	for _, name := range names {
		if v := r.get(name); v.kind != missing {
			own[name] = v.owned()
			r.size += perValue + len(v.text)
		}
	}
	r.own = own
	r.event = nil
	r.doc = nil
	r.run.hold(r.size)
}

func (r *row) get(name string) value {
	if v, ok := r.own[name]; ok {
		return v
	}
	if r.event == nil {
		return value{}
	}
	if v, ok := r.event.system(name); ok {
		return v
	}
	if !r.parsed {
		r.doc = document(r.event.Message)
		r.parsed = true
	}
	return lookup(r.doc, name)
}

// maxRow limits the text in the fields that a query gives one row.
const maxRow = 16 << 20

func (r *row) set(name string, v value) {
	if r.own == nil {
		r.own = map[string]value{}
	}
	if r.made += len(v.text); r.made > maxRow {
		r.run.fail(ErrTooLarge)
	}
	r.own[name] = v
}

// fields returns a row as a result. Fields without a value are left out.
func (r *row) fields(q *Query) []Field {
	out := []Field{}
	for _, name := range q.columns {
		if v := r.get(name); v.kind != missing {
			out = append(out, Field{name, v.String()})
		}
	}
	if q.events && !slices.Contains(q.columns, "@ptr") {
		out = append(out, Field{"@ptr", r.get("@ptr").String()})
	}
	return out
}
