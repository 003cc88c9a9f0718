package ecs

import (
	"iter"

	"github.com/pintle/pintle/internal/account"
)

// maxPage bounds the results of one list call. It is also the default.
const maxPage = 100

// listing describes the pages of a list operation.
func listing(operation string) account.List {
	return listingOf(operation, maxPage, maxPage)
}

// listingOf describes the pages of a list operation with its own default and maximum number of results.
func listingOf(operation string, byDefault, most int) account.List {
	return account.List{
		Kind:    "ecs:" + operation,
		Default: byDefault,
		Most:    most,
		BadLimit: func(limit int) error {
			return invalidParameter("maxResults must be between 1 and %d, not %d.", most, limit)
		},
		BadToken: func() error {
			return invalidParameter("Invalid token: nextToken is not one that a list call returned.")
		},
	}
}

// page returns the keys of one page of rows. rows must be ordered by key, and may start after a given key.
func page[R any](
	l account.List, maxResults *int32, token *string, rows func(after string) iter.Seq[R], key func(R) string, keep func(R) bool,
) (keys []string, next *string, err error) {
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

// identity is the key function of rows that are their own keys.
func identity(key string) string { return key }
