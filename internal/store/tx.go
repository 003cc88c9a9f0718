package store

import (
	"fmt"
	"slices"
)

// Tx is a view that can change rows. It is valid only inside its Update's function.
type Tx struct {
	View
	store *Store
	edit  uint64 // nodes that this edit made may be changed in place
	owned []bool // tables that the group has copied
	log   []change
	bound any
}

// change is one row's step from before to after.
type change struct {
	table         *table
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

// Bound returns what bind makes of the transaction's view, made once per commit. A schema names its tables with it.
func (tx *Tx) Bound(bind func(*View) any) any {
	if tx.bound == nil {
		tx.bound = bind(&tx.View)
	}
	return tx.bound
}

// keepLoops begins a new edit, so that a loop over rows goes on unharmed while its transaction changes them.
func (v *View) keepLoops() {
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
	place := c.table.place
	if !tx.owned[place] {
		tx.tables[place] = tx.tables[place].clone()
		tx.owned[place] = true
	}
	tx.tables[place].change(tx.edit, c.before, c.after)
	for _, o := range tx.store.observers {
		o.Change(c.before, c.after)
	}
}

// undo takes back all changes from start on, newest first.
func (tx *Tx) undo(start int) {
	for i := len(tx.log) - 1; i >= start; i-- {
		c := tx.log[i]
		tx.do(change{c.table, c.after, c.before})
	}
	tx.log = tx.log[:start]
	for _, i := range tx.store.invariants {
		i.Undone()
	}
}

// check asks the invariants to accept the changes.
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
		k := id{c.table.place, c.table.key(row)}
		if seen[k] {
			continue
		}
		seen[k] = true
		e := Change{Table: c.table.name, Key: k.key}
		if c.after != nil {
			data, err := c.table.encode(c.after)
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
