package store

import (
	"fmt"
	"slices"
)

// Tx is a view that can change rows. It is good inside its Update's function alone.
type Tx struct {
	View
	store *Store
	edit  uint64 // of the trees: what it has made may be changed in place
	owned []bool // tables that the group has a copy of
	log   []change
	bound any
}

// change is one row's step from before to after.
type change struct {
	table         Declared
	before, after any // nil where there is none
}

// begin starts a group of transactions.
func (s *Store) begin() *Tx {
	s.edit++
	tables := slices.Clone(s.version.Load().tables)
	tx := &Tx{store: s, edit: s.edit, owned: make([]bool, len(tables))}
	tx.tables = tables
	tx.tx = tx
	return tx
}

// Bound is what bind makes of the transaction, made once for all that share a commit: a schema's own names for the tables.
func (tx *Tx) Bound(bind func(*View) any) any {
	if tx.bound == nil {
		tx.bound = bind(&tx.View)
	}
	return tx.bound
}

// keep has what is read now not be changed in place any more: a listing goes on while the transaction changes rows.
func (v *View) keep() {
	if v.tx != nil {
		v.tx.store.edit++
		v.tx.edit = v.tx.store.edit
	}
}

func (tx *Tx) change(c change) {
	tx.do(c)
	tx.log = append(tx.log, c)
}

// do makes one step in the tables and tells the observers.
func (tx *Tx) do(c change) {
	place := c.table.placed()
	if !tx.owned[place] {
		tx.tables[place] = tx.tables[place].clone()
		tx.owned[place] = true
	}
	tx.tables[place].change(tx.edit, c.before, c.after)
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
	for _, i := range tx.store.invariants {
		i.Undone()
	}
}

// check asks the invariants whether what was changed still holds together.
func (tx *Tx) check() error {
	for _, i := range tx.store.invariants {
		if err := i.Check(); err != nil {
			return err
		}
	}
	return nil
}

// changes encodes the last version of every row that the group changed, in the order of their last changes.
func (tx *Tx) changes() ([]Change, error) {
	type id struct {
		table int
		key   string
	}
	seen := make(map[id]bool, len(tx.log))
	var out []Change
	for _, c := range slices.Backward(tx.log) {
		row := c.after
		if row == nil {
			row = c.before
		}
		k := id{c.table.placed(), c.table.key(row)}
		if seen[k] {
			continue
		}
		seen[k] = true
		e := Change{Table: c.table.tableName(), Key: k.key}
		if c.after != nil {
			data, err := encode(c.after)
			if err != nil {
				return nil, fmt.Errorf("store: row %s of %s: %w", e.Key, e.Table, err)
			}
			e.Data = data
		}
		out = append(out, e)
	}
	slices.Reverse(out)
	return out, nil
}
