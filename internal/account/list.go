package account

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"iter"
	"slices"
	"sort"
)

// List is one kind of list that callers get in pages. A page's token holds the key of its last row, and is good for lists
// of the same kind alone.
type List struct {
	Kind    string // "ecs:ListTasks"
	Default int    // the rows of a page where the caller does not say; Most where it is 0
	Least   int    // the fewest a caller may ask for; 1 where it is 0
	Most    int    // and the most
	// Descending says that the rows' keys fall, for Sorted.
	Descending bool
	// BadLimit and BadToken are the service's refusals.
	BadLimit func(limit int) error
	BadToken func() error
}

// Start checks what a caller says of the page: how many rows it has at most, and the key behind which it begins.
func (l List) Start(limit *int32, token *string) (size int, after string, err error) {
	if size, err = l.Size(limit); err != nil {
		return 0, "", err
	}
	after, ok := l.parse(token)
	if !ok {
		return 0, "", l.BadToken()
	}
	return size, after, nil
}

// Size is how many rows a page has at most, for lists whose tokens are of another kind.
func (l List) Size(limit *int32) (int, error) {
	size := cmp.Or(l.Default, l.Most)
	if limit != nil {
		size = int(*limit)
	}
	if size < max(l.Least, 1) || size > l.Most {
		return 0, l.BadLimit(size)
	}
	return size, nil
}

// A token is base64 of a seal and a key. The seal is no secret: it tells a token of this list from any other text.
const sealSize = 6

func (l List) seal(key string) []byte {
	sum := sha256.Sum256([]byte(l.Kind + "\x00" + key))
	return sum[:sealSize]
}

// Token is the token of the page behind the row with a key.
func (l List) Token(key string) *string {
	return new(base64.RawURLEncoding.EncodeToString(append(l.seal(key), key...)))
}

// parse returns the key in a token, "" where there is none. It reports whether the token is one of this list's.
func (l List) parse(token *string) (key string, ok bool) {
	if token == nil || *token == "" {
		return "", true
	}
	b, err := base64.RawURLEncoding.DecodeString(*token)
	if err != nil || len(b) <= sealSize {
		return "", false
	}
	key = string(b[sealSize:])
	return key, bytes.Equal(b[:sealSize], l.seal(key))
}

// Sorted takes a page of rows that are sorted by their keys. The row that a token stands for may be gone.
func Sorted[R any](l List, rows []R, limit *int32, token *string, key func(R) string) (page []R, next *string, err error) {
	size, after, err := l.Start(limit, token)
	if err != nil {
		return nil, nil, err
	}
	if after != "" {
		i := sort.Search(len(rows), func(i int) bool { return key(rows[i]) > after != l.Descending && key(rows[i]) != after })
		rows = rows[i:]
	}
	return first(l, rows, size, key)
}

// Ordered takes a page of rows in an order of their own. Where the row is gone that a token stands for, the token is refused.
func Ordered[R any](l List, rows []R, limit *int32, token *string, key func(R) string) (page []R, next *string, err error) {
	size, after, err := l.Start(limit, token)
	if err != nil {
		return nil, nil, err
	}
	if after != "" {
		last := slices.IndexFunc(rows, func(r R) bool { return key(r) == after })
		if last < 0 {
			return nil, nil, l.BadToken()
		}
		rows = rows[last+1:]
	}
	return first(l, rows, size, key)
}

// first is the first page of the rows.
func first[R any](l List, rows []R, size int, key func(R) string) ([]R, *string, error) {
	if len(rows) <= size {
		return rows, nil, nil
	}
	return rows[:size], l.Token(key(rows[size-1])), nil
}

// Behind takes a page of a sequence that is sorted by its keys and may begin behind one of them. keep picks what is listed.
func Behind[R any](l List, limit *int32, token *string, rows func(after string) iter.Seq[R], key func(R) string, keep func(R) bool) (page []R, next *string, err error) {
	size, after, err := l.Start(limit, token)
	if err != nil {
		return nil, nil, err
	}
	page = []R{}
	for row := range rows(after) {
		if key(row) <= after || !keep(row) {
			continue
		}
		if len(page) == size {
			return page, l.Token(key(page[size-1])), nil
		}
		page = append(page, row)
	}
	return page, nil, nil
}
