package store

import "iter"

// Table reads, and inside an Update changes, the rows of one type. Never modify a row that was put: put a changed copy under the
// same key instead.
type Table[R any] struct {
	view  *View
	table *table
}

// View is the view that the table is read in.
func (t Table[R]) View() *View { return t.view }

// Len returns how many rows there are. It's no reason for a watch to end.
func (t Table[R]) Len() int { return t.view.rows(t.table).byKey.Len() }

// Get returns the row with the key, or nil.
func (t Table[R]) Get(key string) R {
	row, _ := t.view.get(t.table, key).(R)
	return row
}

// All returns every row, ordered by key. The loop doesn't see what its Update changes meanwhile.
func (t Table[R]) All() iter.Seq[R] { return each[R](t.view.all(t.table)) }

// By returns the rows that have the value in the index, ordered by key.
func (t Table[R]) By(index Index[R], value string) iter.Seq[R] {
	return each[R](t.view.allBy(t.table, index.Name, value))
}

// Watch makes the view's Changed wait for a change of any row.
func (t Table[R]) Watch() { t.view.watchAll(t.table) }

// WatchBy makes the view's Changed wait for a change of the rows that have the value in the index.
func (t Table[R]) WatchBy(index Index[R], value string) { t.view.by(t.table, index.Name, value) }

// InOrder returns every row that has a value in the index, ordered by that, and then by key.
func (t Table[R]) InOrder(index Index[R]) iter.Seq[R] {
	return each[R](t.view.inOrder(t.table, index.Name))
}

// InOrderAfter is InOrder for the values after the given one. Watches ignore it.
func (t Table[R]) InOrderAfter(index Index[R], value string) iter.Seq[R] {
	return each[R](t.view.inOrderAfter(t.table, index.Name, value))
}

// After returns the rows that have the value in the index and a key after the given one, ordered by key. Listings continue with
// it. Watches ignore it.
func (t Table[R]) After(index Index[R], value, key string) iter.Seq[R] {
	return each[R](t.view.after(t.table, index.Name, value, key))
}

// Behind returns the rows with a key after the given one, ordered by key. Listings of all rows continue with it. Watches ignore it.
func (t Table[R]) Behind(key string) iter.Seq[R] { return each[R](t.view.behind(t.table, key)) }

// Put adds the row, or replaces the one with the same key. If the table counts versions, Put sets the row's.
func (t Table[R]) Put(row R) { t.view.put(t.table, row) }

// Delete removes the row with the key, if there is one.
func (t Table[R]) Delete(key string) { t.view.delete(t.table, key) }

// each gives the rows their type.
func each[R any](rows iter.Seq[any]) iter.Seq[R] {
	return func(yield func(R) bool) {
		rows(func(row any) bool { return yield(row.(R)) })
	}
}
