package store

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
)

// Schema is a store's list of tables.
type Schema struct {
	tables []*table
	byName map[string]*table
}

// table is what the engine knows of a Definition. It sees rows as any, each the *R of its definition. Go compiles code with type
// parameters again for each type and in each package that sees one: with the engine generic, building took four times as long.
type table struct {
	name    string
	place   int // in the schema
	indexes []index
	key     func(row any) string
	json    json.Options
	decode  func(data []byte) (any, error)
	revise  func(before, after any)               // nil for rows without versions
	expired func(v *View, now time.Time) []string // nil for rows that live until they are deleted
}

// index is an Index of a table.
type index struct {
	name  string
	value func(row any) string
}

// NewSchema makes a schema. A table whose rows live as long as another's must come after that one.
func NewSchema(tables ...Declared) *Schema {
	s := &Schema{byName: map[string]*table{}}
	for i, d := range tables {
		t := d.declare(i)
		s.tables = append(s.tables, t)
		s.byName[t.name] = t
	}
	return s
}

func (s *Schema) empty() []*rows {
	out := make([]*rows, len(s.tables))
	for i, t := range s.tables {
		out[i] = newRows(t)
	}
	return out
}

// decode decodes a row from the journal.
func (s *Schema) decode(c Change) (*table, any, error) {
	t, ok := s.byName[c.Table]
	if !ok {
		return nil, nil, fmt.Errorf("store: the journal holds a table %q that this version does not know", c.Table)
	}
	row, err := t.decode(c.Data)
	if err != nil {
		return nil, nil, fmt.Errorf("store: row %s of %s: %w", c.Key, c.Table, err)
	}
	if t.key(row) != c.Key {
		return nil, nil, fmt.Errorf("store: row %s of %s is kept under the wrong key", c.Key, c.Table)
	}
	return t, row, nil
}

// written are the options by which rows are encoded for the journal: as JSON, so that an operator can read it with SQLite's own functions, without
// the many empty members of the SDK's structs.
var written = json.JoinOptions(json.OmitZeroStructFields(true), json.FormatNilSliceAsNull(true), json.FormatNilMapAsNull(true))

func (t *table) encode(row any) ([]byte, error) { return json.Marshal(row, t.json) }

// indexPlace finds an index by its name. Tables have few.
func (t *table) indexPlace(name string) int {
	for i := range t.indexes {
		if t.indexes[i].name == name {
			return i
		}
	}
	panic("store: table " + t.name + " has no index " + name)
}

// topics yields what a change touches.
func (t *table) topics(c change, yield func(topic)) {
	yield(topic{t.place, ofAll, ""})
	for _, row := range []any{c.before, c.after} {
		if row == nil {
			continue
		}
		yield(topic{t.place, ofKey, t.key(row)})
		for i := range t.indexes {
			if value := t.indexes[i].value(row); value != "" {
				yield(topic{t.place, i, value})
			}
		}
	}
}

// sweep deletes the rows whose time is up.
func (t *table) sweep(tx *Tx, now time.Time) {
	if t.expired == nil {
		return
	}
	for _, key := range t.expired(&tx.View, now) {
		tx.View.delete(t, key)
	}
}
