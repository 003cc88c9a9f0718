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

// List describes one kind of paged list. A page's token holds the key of the page's last row, and is only valid for lists of
// the same kind.
type List struct {
	Kind    string // such as "ecs:ListTasks"
	Default int    // the page size if the caller gives none; 0 means Most
	Least   int    // the smallest page size a caller may ask for; 0 means 1
	Most    int    // the largest
	// Descending means that the rows' keys fall. Sorted uses it.
	Descending bool
	// BadLimit and BadToken return the service's refusals.
	BadLimit func(limit int) error
	BadToken func() error
}

// Start checks the caller's limit and token. It returns the page size, and the key after which the page begins.
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

// Size checks the limit and returns the page size, for lists whose tokens are of another kind.
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

// A token is the base64 of a seal and a key. The seal is no secret. It only distinguishes this list's tokens from any other
// text.
const sealSize = 6

func (l List) seal(key string) []byte {
	sum := sha256.Sum256([]byte(l.Kind + "\x00" + key))
	return sum[:sealSize]
}

// Token returns the token of the page after the row with a key.
func (l List) Token(key string) *string {
	return new(base64.RawURLEncoding.EncodeToString(append(l.seal(key), key...)))
}

// parse returns the key in a token, or "" without a token. It reports whether the token is one of this list's.
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

// Sorted returns a page of rows that are sorted by their keys. The row of the token may be gone.
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

// SortBy sorts rows by their keys. The standard library's generic sort is compiled anew for each type of rows, which are many: each takes 24 KB
// of the program.
func SortBy[R any, K cmp.Ordered](rows []R, key func(R) K) {
	sort.Slice(rows, func(i, j int) bool { return key(rows[i]) < key(rows[j]) })
}

// Ordered returns a page of rows in any order. If the row of the token is gone, it refuses the token.
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

// first returns the first page of the rows.
func first[R any](l List, rows []R, size int, key func(R) string) ([]R, *string, error) {
	if len(rows) <= size {
		return rows, nil, nil
	}
	return rows[:size], l.Token(key(rows[size-1])), nil
}

// Behind returns a page of a sequence that is sorted by keys and can start after one of them. Only rows that keep accepts are
// listed.
func Behind[R any](
	l List, limit *int32, token *string, rows func(after string) iter.Seq[R], key func(R) string, keep func(R) bool,
) (page []R, next *string, err error) {
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
