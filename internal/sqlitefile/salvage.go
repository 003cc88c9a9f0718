package sqlitefile

import (
	"context"
	"database/sql"
	"encoding/binary"
	"fmt"
	"os"
	"slices"
	"strings"
)

// picture is the readable part of a damaged database: the latest version of each page, from the log or the file.
type picture struct {
	file, log *os.File // nil if missing
	pages     uint32
	at        map[uint32]int64 // where pages are in the log
	bad       map[uint32]bool  // pages that cannot be read
	old       map[uint32]bool  // pages of which only an older version can be read

	seen map[uint32]bool // pages that belong to a tree, or are free
}

// page returns a page, or nil if it can't be read.
func (p *picture) page(n uint32) []byte {
	b := make([]byte, pageSize)
	if at, ok := p.at[n]; ok && p.log != nil {
		if _, err := p.log.ReadAt(b, at); err == nil {
			return b
		}
	}
	if n == 0 || p.bad[n] || p.file == nil {
		return nil
	}
	if _, err := p.file.ReadAt(b, int64(n-1)*pageSize); err != nil {
		return nil
	}
	return b
}

func (p *picture) node(n uint32) *node {
	b := p.page(n)
	if b == nil {
		return nil
	}
	return parseNode(n, b)
}

// whole returns a cell's payload including its overflow pages.
func (p *picture) whole(c cell) ([]byte, bool) {
	b := slices.Clone(c.payload)
	next := c.rest
	for next != 0 && len(b) < c.length {
		page := p.page(next)
		if page == nil || p.old[next] {
			return nil, false
		}
		p.seen[next] = true
		b = append(b, page[4:min(pageSize, 4+c.length-len(b))]...)
		next = binary.BigEndian.Uint32(page)
	}
	return b, len(b) == c.length
}

// table is a table or an index whose rows we look for.
type table struct {
	name    string
	index   bool // an index, which is rebuilt rather than copied
	root    uint32
	rowids  bool
	columns []string // their types
	alias   int      // the column that is the rowid, or -1
	hurt    bool     // a page of its tree is damaged
	put     *sql.Stmt
	keep    *sql.Stmt // doesn't replace a newer row
	rows    int
}

// walk visits the rows of a tree below a trusted page.
func (p *picture) walk(t *table, n uint32, visit func(t *table, c cell) error) error {
	if p.seen[n] {
		return nil
	}
	node := p.node(n)
	if node == nil || p.old[n] || isIndex(node.kind) == t.rowids {
		t.hurt = true
		return nil // leftovers comes back to it if it's an older version
	}
	p.seen[n] = true
	for _, c := range node.cells {
		if c.child != 0 {
			if err := p.walk(t, c.child, visit); err != nil {
				return err
			}
		}
		if c.length > 0 {
			if err := visit(t, c); err != nil {
				return err
			}
		}
	}
	if node.right == 0 {
		return nil
	}
	return p.walk(t, node.right, visit)
}

// leftovers visits the rows of pages that no tree reaches, because a page above is damaged, or because only an older version of the page is
// left. A row's form tells which tables it may belong to.
func (p *picture) leftovers(tables []*table, visit func(t *table, c cell) error) error {
	p.skipFree()
	for n := uint32(1); n <= p.pages; n++ {
		if p.seen[n] {
			continue
		}
		node := p.node(n)
		if node == nil {
			continue
		}
		for _, c := range node.cells {
			if t := p.owner(tables, node.kind, c); t != nil {
				if err := visit(t, c); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// skipFree marks the free pages, which may hold deleted rows.
func (p *picture) skipFree() {
	first := p.page(1)
	if first == nil {
		return
	}
	for n := binary.BigEndian.Uint32(first[32:]); n != 0 && !p.seen[n]; {
		p.seen[n] = true
		trunk := p.page(n)
		if trunk == nil {
			return
		}
		for i := range min(binary.BigEndian.Uint32(trunk[4:]), pageSize/4-2) {
			p.seen[binary.BigEndian.Uint32(trunk[8+4*i:])] = true
		}
		n = binary.BigEndian.Uint32(trunk)
	}
}

// owner returns the first damaged table that a row can belong to, or nil. Indexes come first; nobody wants their rows.
func (p *picture) owner(tables []*table, kind byte, c cell) *table {
	if kind == innerTable {
		return nil
	}
	b, ok := p.whole(c)
	if !ok {
		return nil
	}
	values, ok := parseRecord(b)
	if !ok {
		return nil
	}
	for _, t := range tables {
		if t.hurt && t.rowids != isIndex(kind) && t.fits(values) {
			return t
		}
	}
	return nil
}

// fits reports whether values can be a row.
func (t *table) fits(values []any) bool {
	if len(values) != len(t.columns) {
		return false
	}
	for i, v := range values {
		if !fitsType(t.columns[i], v) {
			return false
		}
	}
	return true
}

func fitsType(declared string, v any) bool {
	switch v.(type) {
	case nil:
		return true
	case int64:
		return declared == "INTEGER"
	case string:
		return declared == "TEXT"
	case []byte:
		return declared == "BLOB"
	}
	return false
}

// describe lists the tables of an undamaged database with the same schema.
func describe(ctx context.Context, tx *sql.Tx) ([]*table, error) {
	rows, err := tx.QueryContext(ctx, `SELECT type, name, rootpage FROM sqlite_schema WHERE rootpage > 0 ORDER BY type, rootpage`)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []*table
	for rows.Next() {
		var kind string
		t := &table{alias: -1}
		if err := rows.Scan(&kind, &t.name, &t.root); err != nil {
			return nil, err
		}
		t.index = kind == "index" || strings.HasPrefix(t.name, "sqlite_")
		out = append(out, t)
	}
	return out, rows.Err()
}

// prepare reads a table's columns and prepares the statements that add rows.
func (t *table) prepare(ctx context.Context, tx *sql.Tx) error {
	if err := tx.QueryRowContext(ctx, `SELECT NOT wr FROM pragma_table_list WHERE name = ?`, t.name).Scan(&t.rowids); err != nil {
		return fmt.Errorf("table %s: %w", t.name, err)
	}
	rows, err := tx.QueryContext(ctx, `SELECT type, pk FROM pragma_table_info(?) ORDER BY cid`, t.name)
	if err != nil {
		return err
	}
	defer rows.Close()
	keys := 0
	for rows.Next() {
		var declared string
		var key int
		if err := rows.Scan(&declared, &key); err != nil {
			return err
		}
		if key > 0 {
			keys++
			t.alias = len(t.columns)
		}
		t.columns = append(t.columns, declared)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if !t.rowids || keys != 1 || t.columns[t.alias] != "INTEGER" {
		t.alias = -1
	}
	into := " INTO " + t.name + " VALUES (?" + strings.Repeat(", ?", len(t.columns)-1) + ")"
	t.put, err = tx.PrepareContext(ctx, "INSERT OR REPLACE"+into)
	if err != nil {
		return err
	}
	t.keep, err = tx.PrepareContext(ctx, "INSERT OR IGNORE"+into)
	return err
}

// salvage puts the readable rows into a new database and returns how many there are.
func (p *picture) salvage(ctx context.Context, tx *sql.Tx) (rows int, err error) {
	tables, err := describe(ctx, tx)
	if err != nil {
		return 0, err
	}
	p.seen = map[uint32]bool{}
	insert := func(statement func(*table) *sql.Stmt) func(*table, cell) error {
		return func(t *table, c cell) error { return p.insert(t, c, statement(t)) }
	}
	none := func(*table, cell) error { return nil }
	var own []*table
	for _, t := range tables {
		visit := none
		if !t.index {
			if err := t.prepare(ctx, tx); err != nil {
				return 0, err
			}
			own = append(own, t)
			visit = insert(func(t *table) *sql.Stmt { return t.put })
		} else {
			t.rowids = strings.HasPrefix(t.name, "sqlite_sequence")
		}
		if err := p.walk(t, t.root, visit); err != nil {
			return 0, err
		}
	}
	p.walk(&table{rowids: true}, 1, none) //nolint:errcheck // this only marks the schema's pages; it has no rows to fail on
	if err := p.leftovers(own, insert(func(t *table) *sql.Stmt { return t.keep })); err != nil {
		return 0, err
	}
	for _, t := range own {
		rows += t.rows
	}
	return rows, nil
}

// insert puts a row into its table. A row that can't be read is lost.
func (p *picture) insert(t *table, c cell, statement *sql.Stmt) error {
	b, ok := p.whole(c)
	if !ok {
		return nil
	}
	values, ok := parseRecord(b)
	if !ok || len(values) != len(t.columns) {
		return nil
	}
	if t.alias >= 0 && values[t.alias] == nil {
		values[t.alias] = c.rowid
	}
	if _, err := statement.Exec(values...); err != nil {
		return fmt.Errorf("keep a row of %s: %w", t.name, err)
	}
	t.rows++
	return nil
}
