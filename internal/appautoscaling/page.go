package appautoscaling

import (
	"encoding/base64"
	"iter"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
)

// maxPage is the most results of one call, and the number where the caller names none.
const maxPage = 50

const tokenPrefix = "v1:"

// page takes one page of the rows. The token holds the key of the last row of the page before.
func page[R any](rows []R, maxResults *int32, token *string, key func(R) string) ([]R, *string, error) {
	size := maxPage
	if maxResults != nil {
		size = int(*maxResults)
	}
	if size < 1 || size > maxPage {
		return nil, nil, invalid("1 validation error detected: Value '%d' at 'maxResults' failed to satisfy constraint: Member must have value from 1 to %d", size, maxPage)
	}
	if token != nil && *token != "" {
		b, err := base64.RawURLEncoding.DecodeString(*token)
		after, ok := strings.CutPrefix(string(b), tokenPrefix)
		last := slices.IndexFunc(rows, func(r R) bool { return key(r) == after })
		if err != nil || !ok || last < 0 {
			return nil, nil, &types.InvalidNextTokenException{Message: new("nextToken is not one that this call returned, or what it stands for is gone")}
		}
		rows = rows[last+1:]
	}
	if len(rows) <= size {
		return rows, nil, nil
	}
	return rows[:size], new(base64.RawURLEncoding.EncodeToString([]byte(tokenPrefix + key(rows[size-1])))), nil
}

func filter[R any](rows iter.Seq[R], keep func(R) bool) (out []R) {
	for r := range rows {
		if keep(r) {
			out = append(out, r)
		}
	}
	return out
}

// count counts rows, up to a number.
func count[R any](rows iter.Seq[R], most int) (n int) {
	for range rows {
		if n++; n >= most {
			break
		}
	}
	return n
}
