package store

import (
	"slices"

	"github.com/pintle/pintle/internal/store/radix"
)

// rows is one version of a table.
type rows struct {
	table   *table
	byKey   radix.Tree[any]
	byIndex []radix.Tree[radix.Tree[any]] // by value, and then by key
}

func newRows(t *table) *rows {
	return &rows{table: t, byIndex: make([]radix.Tree[radix.Tree[any]], len(t.indexes))}
}

func (r *rows) clone() *rows {
	c := *r
	c.byIndex = slices.Clone(r.byIndex)
	return &c
}

func (r *rows) change(edit uint64, before, after any) {
	var key string
	if after != nil {
		key = r.table.key(after)
		r.byKey.Put(edit, key, after)
	} else {
		key = r.table.key(before)
		r.byKey.Delete(edit, key)
	}
	for i := range r.byIndex {
		had, has := r.valueOf(i, before), r.valueOf(i, after)
		if had != "" && had != has {
			r.changeIndex(i, had, func(t *radix.Tree[any]) { t.Delete(edit, key) }, edit)
		}
		if has != "" {
			r.changeIndex(i, has, func(t *radix.Tree[any]) { t.Put(edit, key, after) }, edit)
		}
	}
}

// changeIndex changes the rows of one value, and drops a value without rows.
func (r *rows) changeIndex(index int, value string, change func(*radix.Tree[any]), edit uint64) {
	found, _ := r.byIndex[index].Get(value)
	change(&found)
	if found.Len() == 0 {
		r.byIndex[index].Delete(edit, value)
		return
	}
	r.byIndex[index].Put(edit, value, found)
}

func (r *rows) valueOf(index int, row any) string {
	if row == nil {
		return ""
	}
	return r.table.indexes[index].value(row)
}

// version is equal for two versions of a table only if the topic is unchanged between them.
func (r *rows) version(about topic) any {
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
