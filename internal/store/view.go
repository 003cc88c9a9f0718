package store

import (
	"iter"

	"github.com/pintle/pintle/internal/store/radix"
)

// View is a snapshot of the tables; in an Update, it is what the transaction sees.
type View struct {
	tables []*rows // in the order of the schema
	watch  *watch  // of a watching view
	tx     *Tx     // in an Update
}

func (v *View) rows(t *table) *rows { return v.tables[t.place] }

// get returns the row with the key, or nil.
func (v *View) get(t *table, key string) any {
	row, _ := v.rows(t).byKey.Get(key)
	v.recordRead(topic{t.place, ofKey, key}, row)
	return row
}

// all returns every row.
func (v *View) all(t *table) iter.Seq[any] {
	v.watchAll(t)
	v.keepLoops()
	return v.rows(t).byKey.All()
}

// by returns the rows that have the value in the index.
func (v *View) by(t *table, index, value string) radix.Tree[any] {
	i := t.indexPlace(index)
	found, _ := v.rows(t).byIndex[i].Get(value)
	v.recordRead(topic{t.place, i, value}, found.Version())
	return found
}

func (v *View) allBy(t *table, index, value string) iter.Seq[any] {
	v.keepLoops()
	return v.by(t, index, value).All()
}

func (v *View) inOrder(t *table, index string) iter.Seq[any] {
	v.watchAll(t)
	return v.inOrderAfter(t, index, "")
}

func (v *View) inOrderAfter(t *table, index, value string) iter.Seq[any] {
	v.keepLoops()
	values := v.rows(t).byIndex[t.indexPlace(index)]
	return func(yield func(any) bool) {
		for rows := range values.After(value) {
			for row := range rows.All() {
				if !yield(row) {
					return
				}
			}
		}
	}
}

func (v *View) watchAll(t *table) { v.recordRead(topic{t.place, ofAll, ""}, v.rows(t).byKey.Version()) }

func (v *View) after(t *table, index, value, key string) iter.Seq[any] {
	v.keepLoops()
	found, _ := v.rows(t).byIndex[t.indexPlace(index)].Get(value)
	return found.After(key)
}

func (v *View) behind(t *table, key string) iter.Seq[any] {
	v.keepLoops()
	return v.rows(t).byKey.After(key)
}

func (v *View) put(t *table, row any) {
	before, there := v.rows(t).byKey.Get(t.key(row))
	if there && t.revise != nil {
		t.revise(before, row)
	}
	v.tx.change(change{t, before, row})
}

func (v *View) delete(t *table, key string) {
	if row, there := v.rows(t).byKey.Get(key); there {
		v.tx.change(change{t, row, nil})
	}
}
