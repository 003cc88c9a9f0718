package ec2

import (
	"encoding/base64"
	"slices"
	"strings"
)

// The bounds of MaxResults, which EC2 has in common for what describes instances and their types.
const minPage = 5

const tokenPrefix = "v1:"

// page takes one page of what is ordered by key. The token holds the last key of the page before;
// without MaxResults there is one page of all, up to the most.
func page[T any](all []T, maxResults *int32, most int, token *string, key func(T) string) ([]T, *string, error) {
	size := most
	if maxResults != nil {
		size = int(*maxResults)
	}
	switch {
	case size < minPage:
		return nil, nil, refuse("InvalidParameterValue", "Value ( %d ) for parameter maxResults is invalid. Expecting a value greater than %d.", size, minPage)
	case size > most:
		return nil, nil, refuse("InvalidParameterValue", "Value ( %d ) for parameter maxResults is invalid. Expecting a value less than %d.", size, most)
	}
	if token != nil && *token != "" {
		b, err := base64.RawURLEncoding.DecodeString(*token)
		after, ok := strings.CutPrefix(string(b), tokenPrefix)
		if err != nil || !ok {
			return nil, nil, refuse("InvalidNextToken", "The specified NextToken is not one that this operation returned")
		}
		i, found := slices.BinarySearchFunc(all, after, func(t T, after string) int { return strings.Compare(key(t), after) })
		if found {
			i++
		}
		all = all[i:]
	}
	if len(all) <= size {
		return all, nil, nil
	}
	return all[:size], new(base64.RawURLEncoding.EncodeToString([]byte(tokenPrefix + key(all[size-1])))), nil
}
