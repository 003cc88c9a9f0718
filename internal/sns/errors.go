package sns

import (
	"strings"

	"github.com/pintle/pintle/internal/account"
)

// refuse returns an error with a code of SNS's, as its clients know them.
func refuse(code, format string, args ...any) error { return account.Refuse(code, format, args...) }

// invalid returns the error of a parameter that makes no sense. SNS begins all of them alike.
func invalid(format string, args ...any) error {
	return refuse("InvalidParameter", "Invalid parameter: "+format, args...)
}

// unsupported returns the error of something that SNS has and Pintle doesn't.
func unsupported(parameter, format string, args ...any) error {
	return invalid("%s Reason: "+format, append([]any{parameter}, args...)...)
}

// errNoTopic and errNoSubscription are what calls get that name one that isn't there.
var (
	errNoTopic        = account.RefuseWith(404, "NotFound", "Topic does not exist")
	errNoSubscription = account.RefuseWith(404, "NotFound", "Subscription does not exist")
)

// checkARN refuses what is no ARN.
func checkARN(parameter, arn string) error {
	if arn == "" {
		return invalid("%s Reason: no value for required parameter", parameter)
	}
	if n := strings.Count(arn, ":") + 1; n < 6 || !strings.HasPrefix(arn, "arn:") {
		return invalid("%s Reason: An ARN must have at least 6 elements, not %d", parameter, n)
	}
	return nil
}
