package store

import (
	"iter"

	"github.com/pintle/pintle/internal/store/radix"
)

// View is a snapshot of the tables; in an Update, it is what the transaction sees.
type View struct {
	tables []contents
	watch  *watch // of a watching view
	tx     *Tx    // in an Update
}

// Table reads, and inside an Update changes, the rows of one type. Never modify a row that was put: put a changed copy under the
// same key instead.
type Table[R any] struct {
	view *View
	def  *Definition[R]
}

// In is the table in a view.
func (d *Definition[R]) In(v *View) Table[R] { return Table[R]{v, d} }

// View is the view that the table is read in.
func (t Table[R]) View() *View { return t.view }

// Len returns how many rows there are. It's no reason for a watch to end.
func (t Table[R]) Len() int { return t.rows().byKey.Len() }

// Get returns the row with the key, or nil.
func (t Table[R]) Get(key string) *R {
	row, _ := t.rows().byKey.Get(key)
	t.view.recordRead(topic{t.def.place, ofKey, key}, row)
	return row
}

// All returns every row, ordered by key. The loop doesn't see what its Update changes meanwhile.
func (t Table[R]) All() iter.Seq[*R] {
	t.Watch()
	t.view.keepLoops()
	return t.rows().byKey.All()
}

// By returns the rows that have the value in the index, ordered by key.
func (t Table[R]) By(index Index[R], value string) iter.Seq[*R] {
	t.view.keepLoops()
	return t.by(index, value).All()
}

func (t Table[R]) by(index Index[R], value string) radix.Tree[*R] {
	i := t.def.indexPlace(index)
	rows, _ := t.rows().byIndex[i].Get(value)
	t.view.recordRead(topic{t.def.place, i, value}, rows.Version())
	return rows
}

// Watch makes the view's Changed wait for a change of any row.
func (t Table[R]) Watch() { t.view.recordRead(topic{t.def.place, ofAll, ""}, t.rows().byKey.Version()) }

// WatchBy makes the view's Changed wait for a change of the rows that have the value in the index.
func (t Table[R]) WatchBy(index Index[R], value string) { t.by(index, value) }

// After returns the rows that have the value in the index and a key after the given one, ordered by key. Listings continue with
// it. Watches ignore it.
func (t Table[R]) After(index Index[R], value, key string) iter.Seq[*R] {
	t.view.keepLoops()
	rows, _ := t.rows().byIndex[t.def.indexPlace(index)].Get(value)
	return rows.After(key)
}

// Behind returns the rows with a key after the given one, ordered by key. Listings of all rows continue with it. Watches ignore it.
func (t Table[R]) Behind(key string) iter.Seq[*R] {
	t.view.keepLoops()
	return t.rows().byKey.After(key)
}

// Put adds the row, or replaces the one with the same key. If the table counts versions, Put sets the row's.
func (t Table[R]) Put(row *R) {
	before, there := t.rows().byKey.Get(t.def.Key(row))
	if !there {
		t.view.tx.change(change{t.def, nil, row})
		return
	}
	if t.def.Revise != nil {
		t.def.Revise(before, row)
	}
	t.view.tx.change(change{t.def, before, row})
}

// Delete removes the row with the key, if there is one.
func (t Table[R]) Delete(key string) {
	if row, there := t.rows().byKey.Get(key); there {
		t.view.tx.change(change{t.def, row, nil})
	}
}

func (t Table[R]) rows() *rows[R] { return t.view.tables[t.def.place].(*rows[R]) }

// contents is one version of a table of any row type.
type contents interface {
	clone() contents
	change(edit uint64, before, after any)
	// version is equal for two versions of a table only if the topic is unchanged between them.
	version(about topic) any
}

// rows is one version of a table.
type rows[R any] struct {
	def     *Definition[R]
	byKey   radix.Tree[*R]
	byIndex []radix.Tree[radix.Tree[*R]] // by value, and then by key
}

func (d *Definition[R]) empty() contents {
	return &rows[R]{def: d, byIndex: make([]radix.Tree[radix.Tree[*R]], len(d.Indexes))}
}

func (r *rows[R]) clone() contents {
	c := *r
	c.byIndex = append([]radix.Tree[radix.Tree[*R]](nil), r.byIndex...)
	return &c
}

func (r *rows[R]) change(edit uint64, before, after any) {
	old, _ := before.(*R)
	row, _ := after.(*R)
	var key string
	if row != nil {
		key = r.def.Key(row)
		r.byKey.Put(edit, key, row)
	} else {
		key = r.def.Key(old)
		r.byKey.Delete(edit, key)
	}
	for i := range r.byIndex {
		had, has := r.valueOf(i, old), r.valueOf(i, row)
		if had != "" && had != has {
			r.changeIndex(i, had, func(t *radix.Tree[*R]) { t.Delete(edit, key) }, edit)
		}
		if has != "" {
			r.changeIndex(i, has, func(t *radix.Tree[*R]) { t.Put(edit, key, row) }, edit)
		}
	}
}

// changeIndex changes the rows of one value, and drops a value without rows.
func (r *rows[R]) changeIndex(index int, value string, change func(*radix.Tree[*R]), edit uint64) {
	found, _ := r.byIndex[index].Get(value)
	change(&found)
	if found.Len() == 0 {
		r.byIndex[index].Delete(edit, value)
		return
	}
	r.byIndex[index].Put(edit, value, found)
}

func (r *rows[R]) valueOf(index int, row *R) string {
	if row == nil {
		return ""
	}
	return r.def.Indexes[index].Value(row)
}

func (r *rows[R]) version(about topic) any {
	switch about.of {
	case ofAll:
		return r.byKey.Version()
	case ofKey:
		row, _ := r.byKey.Get(about.value)
		return row
	}
	found, _ := r.byIndex[about.of].Get(about.value)
	return found.Version()
}
