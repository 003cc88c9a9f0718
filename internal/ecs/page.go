package ecs

import (
	"encoding/base64"
	"iter"
	"slices"
	"strings"
)

// maxPage is the most results of one list call, and the number where the caller names none.
const maxPage = 100

// page takes one page from a listing that is ordered by key. The token holds the last key of the
// page before; list may go on behind it, and keep picks what is listed.
func page[R any](maxResults *int32, token *string, list func(after string) iter.Seq[R], key func(R) string, keep func(R) bool) (keys []string, next *string, err error) {
	size, after, err := pageBounds(maxResults, token)
	if err != nil {
		return nil, nil, err
	}
	keys = []string{}
	for row := range list(after) {
		if key(row) <= after || !keep(row) {
			continue
		}
		if len(keys) == size {
			return keys, formatToken(keys[size-1]), nil
		}
		keys = append(keys, key(row))
	}
	return keys, nil, nil
}

// pageOf takes one page from a list in an order of its own.
func pageOf(keys []string, maxResults *int32, token *string) (out []string, next *string, err error) {
	size, after, err := pageBounds(maxResults, token)
	if err != nil {
		return nil, nil, err
	}
	if after != "" {
		keys = keys[slices.Index(keys, after)+1:]
	}
	if len(keys) > size {
		return keys[:size], formatToken(keys[size-1]), nil
	}
	return notNil(keys), nil, nil
}

func pageBounds(maxResults *int32, token *string) (size int, after string, err error) {
	size = maxPage
	if maxResults != nil {
		size = int(*maxResults)
	}
	if size < 1 || size > maxPage {
		return 0, "", invalidParameter("maxResults must be between 1 and %d, not %d.", maxPage, size)
	}
	after, err = parseToken(token)
	return size, after, err
}

const tokenPrefix = "v1:"

func formatToken(key string) *string {
	return new(base64.RawURLEncoding.EncodeToString([]byte(tokenPrefix + key)))
}

func parseToken(token *string) (string, error) {
	if token == nil || *token == "" {
		return "", nil
	}
	b, err := base64.RawURLEncoding.DecodeString(*token)
	if key, ok := strings.CutPrefix(string(b), tokenPrefix); err == nil && ok {
		return key, nil
	}
	return "", invalidParameter("Invalid token: nextToken is not one that a list call returned.")
}
