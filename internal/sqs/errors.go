package sqs

import (
	"errors"
	"fmt"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/sqs/queues"
)

// refuse returns an error with a code from SQS's model. The wire knows the Query protocol's name for it.
func refuse(code, format string, args ...any) error {
	return account.Refuse(code, format, args...)
}

// invalid and missing use codes that aren't in SQS's model, spelled as in the JSON protocol: "Common errors" in the API
// reference.
func invalid(format string, args ...any) error {
	return refuse("InvalidParameterValueException", format, args...)
}

func invalidValue(value any, parameter, format string, args ...any) error {
	return invalid("Value %v for parameter %s is invalid. Reason: %s", value, parameter, fmt.Sprintf(format, args...))
}

func missing(parameter string) error {
	return refuse("MissingRequiredParameterException", "The request must contain the parameter %s.", parameter)
}

var errNoQueue = refuse("QueueDoesNotExist", "The specified queue does not exist.")

// failure turns the store's error for a queue that isn't there into AWS's.
func failure(err error) error {
	if errors.Is(err, queues.ErrNoQueue) {
		return errNoQueue
	}
	return err
}
