package store

import (
	"reflect"
	"time"

	"github.com/go-json-experiment/json"
)

// Definition declares a table. R is a pointer to what a row is.
type Definition[R any] struct {
	// Name is the table's name in the journal.
	Name string
	// Key returns a row's key.
	Key func(R) string
	// Indexes find rows by other values than the key.
	Indexes []Index[R]
	// Revise gives a row that replaces another its version; nil for rows without versions.
	Revise func(before, after R)
	// Lifetime is how long rows live; nil is until they are deleted.
	Lifetime Lifetime[R]
	// JSON has how rows are kept whose members JSON doesn't know how to write or read; nil for others.
	JSON json.Options

	table *table // once it is in a schema
}

// Index finds a table's rows by a value other than their key.
type Index[R any] struct {
	Name string
	// Value returns a row's value. A row with "" isn't in the index.
	Value func(R) string
}

// Declared is a Definition of any row type.
type Declared interface {
	declare(place int) *table
}

// declare makes the engine's picture of the table.
func (d *Definition[R]) declare(place int) *table {
	d.table = &table{
		name:  d.Name,
		place: place,
		key:   func(row any) string { return d.Key(row.(R)) },
		json:  json.JoinOptions(written, d.JSON),
		decode: func(data []byte) (any, error) {
			row := reflect.New(reflect.TypeFor[R]().Elem()).Interface()
			return row, json.Unmarshal(data, row, d.JSON)
		},
	}
	for _, i := range d.Indexes {
		d.table.indexes = append(d.table.indexes, index{i.Name, func(row any) string { return i.Value(row.(R)) }})
	}
	if d.Revise != nil {
		d.table.revise = func(before, after any) { d.Revise(before.(R), after.(R)) }
	}
	if d.Lifetime != nil {
		d.table.expired = func(v *View, now time.Time) []string { return d.Lifetime(d.In(v), now) }
	}
	return d.table
}

// In is the table in a view.
func (d *Definition[R]) In(v *View) Table[R] { return Table[R]{v, d.table} }
