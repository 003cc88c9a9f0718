package events

import "github.com/pintle/pintle/internal/account"

// refuse returns an error with a code of EventBridge's, as its clients know them.
func refuse(code, format string, args ...any) error { return account.Refuse(code, format, args...) }

// invalid returns the error of a parameter that makes no sense.
func invalid(format string, args ...any) error { return refuse("ValidationException", format, args...) }

// unsupported returns the error of something that EventBridge has and Pintle doesn't.
func unsupported(parameter, why string) error {
	return invalid("Parameter %s is not valid. Reason: %s", parameter, why)
}

func noBus(name string) error {
	return refuse("ResourceNotFoundException", "Event bus %s does not exist.", name)
}

func noRule(name, bus string) error {
	return refuse("ResourceNotFoundException", "Rule %s does not exist on EventBus %s.", name, bus)
}

// errTooMany is what AWS answers whatever there are too many of.
var errTooMany = account.Refuse("LimitExceededException", "The requested resource exceeds the maximum number allowed.")
