package objects

import (
	"context"
	"strings"
)

// Query says what to list.
type Query struct {
	Prefix    string
	Delimiter string
	After     string // the listing starts after this key
	Skip      bool   // After's common prefix was on the last page: leave out all its keys
	Limit     int
}

// Page is a page of a listing: objects and common prefixes, merged in order.
type Page struct {
	Objects  []*Object
	Prefixes []string
	More     bool
	Last     string // key or common prefix on the page
}

// batch is how many rows are read at a time.
const batch = 1000

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
	for from != "" || !behind {
		objects, err := s.scan(ctx, bucketName, from, min(batch, q.Limit+1))
		if err != nil {
			return nil, err
		}
		full := len(objects) == min(batch, q.Limit+1)
		if from, full, err = page.take(q, objects, full); err != nil || !full {
			return page, err
		}
		behind = true
	}
	return page, nil
}

// start returns the first key that can be on the page. behind reports that no key can be.
func (q Query) start() (from string, behind bool) {
	from = q.After + "\x00" // nothing is between a key and this
	if q.After == "" {
		from = ""
	} else if p := q.common(q.After); q.Skip && p != "" {
		from = successor(p)
		behind = from == ""
	}
	return max(from, q.Prefix), behind
}

// common returns a key's common prefix, "" if it has none.
func (q Query) common(key string) string {
	rest, ok := strings.CutPrefix(key, q.Prefix)
	if !ok || q.Delimiter == "" {
		return ""
	}
	i := strings.Index(rest, q.Delimiter)
	if i < 0 {
		return ""
	}
	return key[:len(q.Prefix)+i+len(q.Delimiter)]
}

// take puts objects on the page. It returns where to continue, and whether the page may have room for more.
func (p *Page) take(q Query, objects []*Object, full bool) (next string, more bool, err error) {
	for i := 0; i < len(objects); i++ {
		o := objects[i]
		if !strings.HasPrefix(o.Key, q.Prefix) {
			return "", false, nil
		}
		if len(p.Objects)+len(p.Prefixes) == q.Limit {
			p.More = true
			return "", false, nil
		}
		next = o.Key + "\x00"
		common := q.common(o.Key)
		if common == "" {
			p.Objects = append(p.Objects, o)
			p.Last = o.Key
			continue
		}
		p.Prefixes = append(p.Prefixes, common)
		p.Last = common
		for i+1 < len(objects) && strings.HasPrefix(objects[i+1].Key, common) {
			i++
		}
		if next = successor(common); next == "" {
			return "", false, nil
		}
	}
	return next, full && next != "", nil
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

func (s *Store) scan(ctx context.Context, bucketName, from string, limit int) ([]*Object, error) {
	rows, err := s.reads.QueryContext(
		ctx,
		`SELECT `+objectColumns+` FROM objects WHERE bucket = ? AND key >= ? ORDER BY key LIMIT ?`,
		bucketName,
		[]byte(from),
		limit,
	)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var out []*Object
	for rows.Next() {
		o, err := scanObject(rows.Scan)
		if err != nil {
			return nil, err
		}
		out = append(out, o)
	}
	return out, rows.Err()
}
