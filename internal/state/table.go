package state

import (
	"context"
	"fmt"
	"iter"
	"slices"

	"github.com/go-json-experiment/json"
	"github.com/hashicorp/go-memdb"
)

// Table reads, and inside an Update changes, the rows of one type. A row is never modified once it
// was put: to change one, put a changed copy under the same key.
type Table[R any] struct {
	view *View
	def  *def[R]
	tx   *Tx // nil outside an Update
}

// Get returns the row with the key, or nil.
func (t Table[R]) Get(key string) *R {
	ch, row, err := t.view.txn.FirstWatch(t.def.name, primary, key)
	must(err)
	t.view.saw(ch)
	r, _ := row.(*R)
	return r
}

// All returns every row, ordered by key.
func (t Table[R]) All() iter.Seq[*R] {
	it, err := t.view.txn.Get(t.def.name, primary+"_prefix", "")
	must(err)
	t.view.saw(it.WatchCh())
	return rows[R](it)
}

// By returns the rows that have the value in the index, ordered by key.
func (t Table[R]) By(index Index[R], value string) iter.Seq[*R] {
	it, err := t.view.txn.Get(t.def.name, index.name, value)
	must(err)
	t.view.saw(it.WatchCh())
	return rows[R](it)
}

// Watch has the view's Changed wait for a change of any row.
func (t Table[R]) Watch() { t.All() }

// WatchBy has the view's Changed wait for a change of the rows that have the value in the index.
func (t Table[R]) WatchBy(index Index[R], value string) { t.By(index, value) }

// After returns the rows that have the value in the index and a key behind the given one, ordered
// by key: the way to go on with a listing. It is not watched.
func (t Table[R]) After(index Index[R], value, key string) iter.Seq[*R] {
	it, err := t.view.txn.LowerBound(t.def.name, index.name, value, key)
	must(err)
	return func(yield func(*R) bool) {
		for row := it.Next(); row != nil; row = it.Next() {
			r := row.(*R)
			if !slices.Contains(index.values(r), value) {
				return
			}
			if t.def.keyOf(r) != key && !yield(r) {
				return
			}
		}
	}
}

// Behind returns the rows with a key behind the given one, ordered by key: the way to go on with a listing of all. It is not
// watched.
func (t Table[R]) Behind(key string) iter.Seq[*R] {
	it, err := t.view.txn.LowerBound(t.def.name, primary, key)
	must(err)
	return func(yield func(*R) bool) {
		for r := range rows[R](it) {
			if t.def.keyOf(r) != key && !yield(r) {
				return
			}
		}
	}
}

// Put adds the row, or takes the place of the one with the same key. Where rows count their versions, it gives the row its own.
func (t Table[R]) Put(row *R) {
	if before := t.Get(t.def.keyOf(row)); before != nil && t.def.revise != nil {
		t.def.revise(before, row)
	}
	t.tx.put(t.def, row)
}

// Delete removes the row with the key, if there is one.
func (t Table[R]) Delete(key string) {
	if row := t.Get(key); row != nil {
		t.tx.delete(t.def, row)
	}
}

func rows[R any](it memdb.ResultIterator) iter.Seq[*R] {
	return func(yield func(*R) bool) {
		for row := it.Next(); row != nil; row = it.Next() {
			if !yield(row.(*R)) {
				return
			}
		}
	}
}

// saw remembers what a watching view has read.
func (v *View) saw(ch <-chan struct{}) {
	if v.watch != nil {
		v.watch.Add(ch)
	}
}

// Changed waits until something that was read through a Watch's view has changed since. It may also
// return for a change nearby, most of all when what was read was not there.
func (v *View) Changed(ctx context.Context) error { return v.watch.WatchCtx(ctx) }

// ChangedCh is Changed for a select: the channel gets one value.
func (v *View) ChangedCh(ctx context.Context) <-chan error { return v.watch.WatchCh(ctx) }

// Tx is a view that can change rows. It is good inside its Update's function alone.
type Tx struct {
	*View
	store *Store
	log   []change // every change of the group so far, oldest first
}

// change is one row's step from before to after.
type change struct {
	table         definition
	before, after any // nil where there is none
}

func (tx *Tx) put(t definition, row any) {
	before, err := tx.txn.First(t.tableName(), primary, t.key(row))
	must(err)
	tx.do(change{t, before, row})
	tx.log = append(tx.log, change{t, before, row})
}

func (tx *Tx) delete(t definition, row any) {
	tx.do(change{t, row, nil})
	tx.log = append(tx.log, change{t, row, nil})
}

// do makes one step in the tables and tells the observers.
func (tx *Tx) do(c change) {
	if c.after != nil {
		must(tx.txn.Insert(c.table.tableName(), c.after))
	} else if c.before != nil {
		must(tx.txn.Delete(c.table.tableName(), c.before))
	}
	for _, o := range tx.store.observers {
		o.Change(c.before, c.after)
	}
}

// undo takes back the changes behind the mark, newest first.
func (tx *Tx) undo(mark int) {
	for i := len(tx.log) - 1; i >= mark; i-- {
		c := tx.log[i]
		tx.do(change{c.table, c.after, c.before})
	}
	tx.log = tx.log[:mark]
	tx.store.ledger.forget()
}

// check asks the ledger whether what was changed still holds together.
func (tx *Tx) check() error { return tx.store.ledger.check() }

// changes encodes the last version of every row that the group changed.
func (tx *Tx) changes() ([]Change, error) {
	type id struct{ table, key string }
	seen := make(map[id]bool, len(tx.log))
	var out []Change
	for i := len(tx.log) - 1; i >= 0; i-- {
		c := tx.log[i]
		row := c.after
		if row == nil {
			row = c.before
		}
		k := id{c.table.tableName(), c.table.key(row)}
		if seen[k] {
			continue
		}
		seen[k] = true
		e := Change{Table: k.table, Key: k.key}
		if c.after != nil {
			data, err := encode(c.after)
			if err != nil {
				return nil, fmt.Errorf("state: row %s of %s: %w", k.key, k.table, err)
			}
			e.Data = data
		}
		out = append(out, e)
	}
	return out, nil
}

// encode is how the journal keeps a row: JSON, so that an operator can read it with SQLite's own
// functions, without the many empty members of the SDK's structs.
func encode(row any) ([]byte, error) {
	return json.Marshal(row, json.OmitZeroStructFields(true), json.FormatNilSliceAsNull(true), json.FormatNilMapAsNull(true))
}

// Index finds a table's rows by a value other than their key.
type Index[R any] struct {
	name   string
	values func(*R) []string
}

// def defines a table.
type def[R any] struct {
	name    string
	keyOf   func(*R) string
	indexes []Index[R]
	// revise gives a row that takes another one's place its version; nil where rows have none.
	revise func(before, after *R)
}

// definition is a def whatever its row type.
type definition interface {
	tableName() string
	key(row any) string
	decode(data []byte) (any, error)
	schema() *memdb.TableSchema
}

const primary = "id"

func (d *def[R]) tableName() string  { return d.name }
func (d *def[R]) key(row any) string { return d.keyOf(row.(*R)) }
func (d *def[R]) decode(data []byte) (any, error) {
	row := new(R)
	if err := json.Unmarshal(data, row); err != nil {
		return nil, err
	}
	return row, nil
}

func (d *def[R]) schema() *memdb.TableSchema {
	s := &memdb.TableSchema{Name: d.name, Indexes: map[string]*memdb.IndexSchema{
		primary: {Name: primary, Unique: true, Indexer: keyIndexer[R]{d.keyOf}},
	}}
	for _, x := range d.indexes {
		s.Indexes[x.name] = &memdb.IndexSchema{Name: x.name, AllowMissing: true, Indexer: valueIndexer[R]{x.values}}
	}
	return s
}

// keyIndexer is a table's key as go-memdb wants it.
type keyIndexer[R any] struct{ key func(*R) string }

func (x keyIndexer[R]) FromObject(row any) (bool, []byte, error) {
	return true, terminated(x.key(row.(*R))), nil
}

func (x keyIndexer[R]) FromArgs(args ...any) ([]byte, error) {
	return terminated(args[0].(string)), nil
}

func (x keyIndexer[R]) PrefixFromArgs(args ...any) ([]byte, error) {
	return []byte(args[0].(string)), nil
}

// valueIndexer is an index as go-memdb wants it: value, NUL, and behind it go-memdb puts the key.
type valueIndexer[R any] struct{ values func(*R) []string }

func (x valueIndexer[R]) FromObject(row any) (bool, [][]byte, error) {
	values := x.values(row.(*R))
	out := make([][]byte, 0, len(values))
	for _, v := range values {
		out = append(out, terminated(v))
	}
	return len(out) > 0, out, nil
}

func (x valueIndexer[R]) FromArgs(args ...any) ([]byte, error) {
	b := terminated(args[0].(string))
	if len(args) > 1 { // LowerBound goes on from a key
		b = append(b, args[1].(string)...)
	}
	return b, nil
}

// terminated ends a value, so that no value is a prefix of another.
func terminated(s string) []byte {
	b := make([]byte, len(s)+1)
	copy(b, s)
	return b
}

// must stops on an error that only a wrong schema can cause.
func must(err error) {
	if err != nil {
		panic(err)
	}
}
