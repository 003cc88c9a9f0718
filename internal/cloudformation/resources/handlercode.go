package resources

import (
	"regexp"

	"github.com/aws/smithy-go"
)

// HandlerCode returns the code by which CloudFormation sorts services' errors.
func HandlerCode(refused smithy.APIError) string {
	for _, c := range handlerCodes {
		if c.match.MatchString(refused.ErrorCode()) {
			return c.code
		}
	}
	return "GeneralServiceException"
}

var handlerCodes = []struct {
	match *regexp.Regexp
	code  string
}{
	{regexp.MustCompile(`AlreadyExists|AlreadyOwnedByYou|InUse|Duplicate`), "AlreadyExists"},
	{regexp.MustCompile(`NotFound|NoSuch|DoesNotExist|NonExistent`), "NotFound"},
	{regexp.MustCompile(`AccessDenied|Unauthorized`), "AccessDenied"},
	{regexp.MustCompile(`LimitExceeded|TooMany`), "ServiceLimitExceeded"},
	{regexp.MustCompile(`Throttl`), "Throttling"},
	{regexp.MustCompile(`Validation|Invalid|Malformed|ClientException`), "InvalidRequest"},
}
