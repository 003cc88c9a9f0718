package delivery

import (
	"errors"
	"strings"

	"github.com/aws/smithy-go"
)

// IsLasting reports whether another try would end alike: the destination is gone, or refuses the call for what it is.
func IsLasting(err error) bool {
	if errors.Is(err, ErrGone) || errors.Is(err, ErrForbidden) {
		return true
	}
	refused, isAPI := errors.AsType[smithy.APIError](err)
	if !isAPI || strings.HasPrefix(refused.ErrorCode(), "TooManyRequests") { // Lambda's, whose fault is said to be the client's
		return false
	}
	if status, ok := refused.(interface{ HTTPStatusCode() int }); ok {
		return status.HTTPStatusCode() < 500 && status.HTTPStatusCode() != 429
	}
	return refused.ErrorFault() == smithy.FaultClient
}
