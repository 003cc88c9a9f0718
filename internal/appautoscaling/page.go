package appautoscaling

import (
	"iter"

	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"

	"github.com/pintle/pintle/internal/account"
)

// maxPage is the maximum number of results per call, and the default.
const maxPage = 50

// listing describes the pages of an operation.
func listing(operation string) account.List {
	return account.List{
		Kind: "application-autoscaling:" + operation,
		Most: maxPage,
		BadLimit: func(limit int) error {
			return invalid("1 validation error detected: Value '%d' at 'maxResults' failed to satisfy constraint: Member must have "+
				"value from 1 to %d", limit, maxPage)
		},
		BadToken: func() error {
			return &types.InvalidNextTokenException{
				Message: new("nextToken isn't one that this operation returned, or its record is gone"),
			}
		},
	}
}

func filter[R any](rows iter.Seq[R], keep func(R) bool) (out []R) {
	for r := range rows {
		if keep(r) {
			out = append(out, r)
		}
	}
	return out
}

// count counts rows, but no further than most.
func count[R any](rows iter.Seq[R], most int) (n int) {
	for range rows {
		if n++; n >= most {
			break
		}
	}
	return n
}
