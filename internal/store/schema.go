package store

import (
	"fmt"
	"time"

	"github.com/go-json-experiment/json"
)

// Definition declares a table.
type Definition[R any] struct {
	// Name is the table's name in the journal.
	Name string
	// Key returns a row's key.
	Key func(*R) string
	// Indexes find rows by other values than the key.
	Indexes []Index[R]
	// Revise gives a row that replaces another its version; nil for rows without versions.
	Revise func(before, after *R)
	// Lifetime is how long rows live; nil is until they are deleted.
	Lifetime Lifetime[R]

	place int // in the schema
}

// Index finds a table's rows by a value other than their key.
type Index[R any] struct {
	Name string
	// Value returns a row's value. A row with "" isn't in the index.
	Value func(*R) string
}

// Schema is a store's list of tables.
type Schema struct {
	tables []Declared
	byName map[string]Declared
}

// Declared is a Definition of any row type.
type Declared interface {
	tableName() string
	placed() int
	takePlace(place int)
	empty() contents
	key(row any) string
	decode(data []byte) (any, error)
	topics(c change, yield func(topic))
	sweep(tx *Tx, now time.Time)
}

// NewSchema makes a schema. A table whose rows live as long as another's must come after that one.
func NewSchema(tables ...Declared) *Schema {
	s := &Schema{tables: tables, byName: map[string]Declared{}}
	for i, t := range tables {
		t.takePlace(i)
		s.byName[t.tableName()] = t
	}
	return s
}

func (s *Schema) empty() []contents {
	out := make([]contents, len(s.tables))
	for i, t := range s.tables {
		out[i] = t.empty()
	}
	return out
}

// decode decodes a row from the journal.
func (s *Schema) decode(c Change) (Declared, any, error) {
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

func (d *Definition[R]) tableName() string   { return d.Name }
func (d *Definition[R]) placed() int         { return d.place }
func (d *Definition[R]) takePlace(place int) { d.place = place }
func (d *Definition[R]) key(row any) string  { return d.Key(row.(*R)) }

func (d *Definition[R]) decode(data []byte) (any, error) {
	row := new(R)
	if err := json.Unmarshal(data, row); err != nil {
		return nil, err
	}
	return row, nil
}

// encode encodes a row for the journal: as JSON, so that an operator can read it with SQLite's own functions, without the
// many empty members of the SDK's structs.
func encode(row any) ([]byte, error) {
	return json.Marshal(row, json.OmitZeroStructFields(true), json.FormatNilSliceAsNull(true), json.FormatNilMapAsNull(true))
}

// indexPlace finds an index by its name. Tables have few.
func (d *Definition[R]) indexPlace(index Index[R]) int {
	for i := range d.Indexes {
		if d.Indexes[i].Name == index.Name {
			return i
		}
	}
	panic("store: table " + d.Name + " has no index " + index.Name)
}
