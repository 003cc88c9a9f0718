package ecs

import (
	"iter"

	"github.com/pintle/pintle/internal/account"
)

// maxPage is the most results of one list call, and the number where the caller names none.
const maxPage = 100

// listing is the pages of an operation that lists.
func listing(operation string) account.List {
	return listingOf(operation, maxPage, maxPage)
}

// listingOf is the pages of an operation with a number of its own where the caller names none.
func listingOf(operation string, otherwise, most int) account.List {
	return account.List{
		Kind:    "ecs:" + operation,
		Default: otherwise,
		Most:    most,
		BadLimit: func(limit int) error {
			return invalidParameter("maxResults must be between 1 and %d, not %d.", most, limit)
		},
		BadToken: func() error {
			return invalidParameter("Invalid token: nextToken is not one that a list call returned.")
		},
	}
}

// page takes one page of a sequence that is ordered by key and may begin behind one, and returns its keys.
func page[R any](l account.List, maxResults *int32, token *string, rows func(after string) iter.Seq[R], key func(R) string, keep func(R) bool) (keys []string, next *string, err error) {
	found, next, err := account.Behind(l, maxResults, token, rows, key, keep)
	if err != nil {
		return nil, nil, err
	}
	keys = make([]string, len(found))
	for i, row := range found {
		keys[i] = key(row)
	}
	return keys, next, nil
}

// itself is the key of what is its own key.
func itself(key string) string { return key }
