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

// failure turns the store's errors into AWS's.
func failure(err error) error {
	switch {
	case errors.Is(err, queues.ErrNoQueue):
		return errNoQueue
	case errors.Is(err, queues.ErrDeleted):
		return refuse(
			"QueueDeletedRecently", "You must wait 60 seconds after deleting a queue before you can create another with the same name.",
		)
	case errors.Is(err, queues.ErrInFlight):
		return refuse("OverLimit", "The queue has %d messages in flight, which is the most there can be.", queues.MaxInFlight)
	}
	return err
}
