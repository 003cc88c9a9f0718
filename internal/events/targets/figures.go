package targets

import (
	"errors"

	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/smithy-go"
)

// Count adds one to a metric by each list of dimensions, in which names and values take turns.
type Count func(namespace, metric string, by ...[]string)

// Dimensions are those by which a letter is counted: its rule or its group of schedules, everything, and the bus.
type Dimensions [][]string

// figure is what is counted of letters.
type figure int

const (
	attempted figure = iota
	retried
	succeeded
	erred
	throttled
	ended  // whatever the end
	failed // for good
	buried // in the dead-letter queue
	unburied
)

// metric is a metric's name, and how many of a letter's dimensions it has.
type metric struct {
	name string
	by   int
}

// namespaces are where the services' metrics are.
var namespaces = map[string]string{Events: "AWS/Events", Scheduler: "AWS/Scheduler"}

// counted are the metrics of each service: "Monitoring Amazon EventBridge", and "Monitoring Amazon EventBridge Scheduler with Amazon CloudWatch".
var counted = map[string]map[figure]metric{
	Events: {
		attempted: {"InvocationAttempts", 3},
		retried:   {"RetryInvocationAttempts", 3},
		succeeded: {"SuccessfulInvocationAttempts", 3},
		ended:     {"Invocations", 2},
		failed:    {"FailedInvocations", 1},
		buried:    {"InvocationsSentToDlq", 1},
		unburied:  {"InvocationsFailedToBeSentToDlq", 1},
	},
	Scheduler: {
		attempted: {"InvocationAttemptCount", 1},
		erred:     {"TargetErrorCount", 1},
		throttled: {"TargetErrorThrottledCount", 1},
		failed:    {"InvocationDroppedCount", 1},
		buried:    {"InvocationsSentToDeadLetterCount", 1},
		unburied:  {"InvocationsFailedToBeSentToDeadLetterCount", 1},
	},
}

func (s *Sender) count(l Letter, figures ...figure) {
	if s.opts.Count == nil {
		return
	}
	for _, f := range figures {
		if m := counted[l.Service][f]; m.name != "" {
			s.opts.Count(namespaces[l.Service], m.name, l.By[:min(m.by, len(l.By))]...)
		}
	}
}

// Tried counts a try to send a letter.
func (s *Sender) Tried(l Letter, err error) {
	s.count(l, attempted)
	if l.Tries > 0 {
		s.count(l, retried)
	}
	switch {
	case err == nil:
		s.count(l, succeeded, ended)
	case isThrottled(err):
		s.count(l, erred, throttled)
	default:
		s.count(l, erred)
	}
}

// Lost counts a letter that nobody will get.
func (s *Sender) Lost(l Letter) { s.count(l, ended, failed) }

// isThrottled reports whether a target had too much to do.
func isThrottled(err error) bool {
	if _, many := errors.AsType[*lambdatypes.TooManyRequestsException](err); many {
		return true
	}
	refused, isAPI := errors.AsType[smithy.APIError](err)
	return isAPI && refused.ErrorCode() == "ThrottlingException"
}
