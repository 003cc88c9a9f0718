package objects

import (
	"context"
	"database/sql"
	"math"
	"strings"
)

// Query says what to list.
type Query struct {
	Prefix       string
	Delimiter    string
	After        string // the listing starts after this key
	AfterVersion string // with Versions: after this version of that key, "" for after all of them
	Skip         bool   // After's common prefix was on the last page: leave out all its keys
	Versions     bool   // list all versions, the newest of a key first, and delete markers
	Limit        int
}

// Page is a page of a listing: objects and common prefixes, merged in order.
type Page struct {
	Objects     []*Object
	Prefixes    []string
	More        bool
	Last        string // key or common prefix on the page
	LastVersion string // "" if Last is a common prefix
}

// List returns a page of a bucket's objects, ordered by the bytes of their keys. Keys that contain the delimiter after the prefix are
// grouped into one common prefix.
func (s *Store) List(ctx context.Context, bucketName string, q Query) (*Page, error) {
	if _, err := s.Bucket(ctx, bucketName); err != nil {
		return nil, err
	}
	page := &Page{}
	if q.Limit == 0 {
		return page, nil
	}
	from, behind := q.start()
	for seek := !behind; seek; {
		var err error
		if from, seek, err = s.fillPage(ctx, bucketName, q, from, page); err != nil {
			return nil, err
		}
	}
	return page, nil
}

// start returns the first key that can be on the page. behind reports that no key can be.
func (q Query) start() (from string, behind bool) {
	from = q.After + "\x00" // nothing is between a key and this
	if q.After == "" || q.AfterVersion != "" {
		from = q.After
	}
	if p := q.common(q.After); q.Skip && p != "" {
		from = successor(p)
		behind = from == ""
	}
	return max(from, q.Prefix), behind
}

// common returns a key's common prefix, "" if it has none.
func (q Query) common(key string) string { return CommonPrefix(key, q.Prefix, q.Delimiter) }

// CommonPrefix returns what stands for a key in a list of the keys with a prefix by delimiter, or "" if the key stands for itself.
func CommonPrefix(key, prefix, delimiter string) string {
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok || delimiter == "" {
		return ""
	}
	i := strings.Index(rest, delimiter)
	if i < 0 {
		return ""
	}
	return key[:len(prefix)+i+len(delimiter)]
}

// worthSeeking is how many keys of a common prefix are read over, before it's quicker to seek the next key behind them.
const worthSeeking = 8

// fillPage puts objects on the page, from a key on. It returns where to continue if it is to seek.
func (s *Store) fillPage(ctx context.Context, bucketName string, q Query, from string, page *Page) (next string, seek bool, err error) {
	rows, err := s.scan(ctx, bucketName, q, from)
	if err != nil {
		return "", false, err
	}
	defer rows.Close()
	grouped := "" // the common prefix that was put on the page last
	over := 0     // number of its keys that were read
	for rows.Next() {
		o, err := scanObject(rows.Scan)
		switch {
		case err != nil:
			return "", false, err
		case !strings.HasPrefix(o.Key, q.Prefix):
			return "", false, nil
		case grouped != "" && strings.HasPrefix(o.Key, grouped):
			if over++; over >= worthSeeking {
				next = successor(grouped)
				return next, next != "", nil
			}
			continue
		case len(page.Objects)+len(page.Prefixes) == q.Limit:
			page.More = true
			return "", false, nil
		}
		over = 0
		if grouped = q.common(o.Key); grouped == "" {
			page.Objects = append(page.Objects, o)
			page.Last, page.LastVersion = o.Key, o.Version
			continue
		}
		page.Prefixes = append(page.Prefixes, grouped)
		page.Last, page.LastVersion = grouped, ""
	}
	return "", false, rows.Err()
}

// successor returns the least text after all texts with the prefix; "" if there is none.
func successor(prefix string) string {
	b := []byte(prefix)
	for i := len(b) - 1; i >= 0; i-- {
		if b[i] < 0xff {
			b[i]++
			return string(b[:i+1])
		}
	}
	return ""
}

// scan reads objects from a key on, as they are asked for.
func (s *Store) scan(ctx context.Context, bucketName string, q Query, from string) (*sql.Rows, error) {
	if !q.Versions {
		return s.reads.QueryContext(
			ctx,
			`SELECT `+objectColumns+`, 1 FROM objects WHERE bucket = ? AND key >= ? AND NOT marker ORDER BY key`,
			bucketName,
			[]byte(from),
		)
	}
	below := int64(math.MaxInt64) // sequence numbers of the first key's versions
	if q.AfterVersion != "" && from == q.After {
		if n, ok := sequenceOf(q.AfterVersion); ok {
			below = n
		} else if null, err := object(ctx, s.reads, bucketName, from, Null); err == nil {
			below = null.Sequence
		}
	}
	return s.reads.QueryContext(
		ctx,
		`SELECT `+objectColumns+`, 1 FROM objects WHERE bucket = ?1 AND key >= ?2 AND (key > ?2 OR sequence < ?3)
			UNION ALL SELECT `+objectColumns+`, 0 FROM versions WHERE bucket = ?1 AND key >= ?2 AND (key > ?2 OR sequence < ?3)
			ORDER BY key, sequence DESC`,
		bucketName,
		[]byte(from),
		below,
	)
}
