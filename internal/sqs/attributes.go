package sqs

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/pintle/pintle/internal/sqs/queues"
)

// attribute is a queue attribute that can be set: API_SetQueueAttributes.
type attribute struct {
	standard    string // the default; "" if there is none
	check       func(value string) bool
	onlyForFIFO bool
}

var attributes = map[string]attribute{
	"DelaySeconds":                  {"0", between(0, 900), false},
	"MaximumMessageSize":            {strconv.Itoa(maxMessage), between(1024, maxMessage), false},
	"MessageRetentionPeriod":        {"345600", between(60, 1209600), false},
	"ReceiveMessageWaitTimeSeconds": {"0", between(0, 20), false},
	"VisibilityTimeout":             {"30", between(0, 43200), false},
	"Policy":                        {"", isPolicy, false},
	"RedrivePolicy":                 {"", anything, false}, // setRedrive checks it
	"RedriveAllowPolicy":            {"", isAllowPolicy, false},
	"KmsMasterKeyId":                {"", anything, false},
	"KmsDataKeyReusePeriodSeconds":  {"", between(60, 86400), false},
	"SqsManagedSseEnabled":          {"true", oneOf("true", "false"), false},
	"FifoQueue":                     {"", oneOf("true"), true},
	"ContentBasedDeduplication":     {"false", oneOf("true", "false"), true},
	"DeduplicationScope":            {"queue", oneOf("queue", "messageGroup"), true},
	"FifoThroughputLimit":           {"perQueue", oneOf("perQueue", "perMessageGroupId"), true},
}

func anything(string) bool { return true }

func between(least, most int) func(string) bool {
	return func(value string) bool {
		n, err := strconv.Atoi(value)
		return err == nil && n >= least && n <= most && strconv.Itoa(n) == value
	}
}

func oneOf(values ...string) func(string) bool {
	return func(value string) bool { return slices.Contains(values, value) }
}

// maxPolicy is the most bytes in a policy: "Amazon SQS policy quotas" in the developer guide.
const maxPolicy = 8192

// isPolicy reports whether a policy can be stored. An empty one can, and means none.
func isPolicy(value string) bool {
	_, err := parsePolicy(value)
	return err == nil && len(value) <= maxPolicy
}

// isAllowPolicy reports whether a redrive allow policy is valid: "sourceQueueArns" goes with byQueue and only with that.
func isAllowPolicy(value string) bool {
	if value == "" {
		return true
	}
	p, err := parseAllowPolicy(value)
	return err == nil && oneOf("allowAll", "denyAll", "byQueue")(p.Permission) && (p.Permission == "byQueue") == (len(p.Sources) > 0) &&
		len(p.Sources) <= 10
}

type allowPolicy struct {
	Permission string   `json:"redrivePermission"`
	Sources    []string `json:"sourceQueueArns"`
}

func parseAllowPolicy(value string) (p allowPolicy, err error) {
	if value == "" {
		return allowPolicy{Permission: "allowAll"}, nil
	}
	return p, json.Unmarshal([]byte(value), &p)
}

// allows reports whether a dead-letter queue takes messages from the queue with this ARN.
func (p allowPolicy) allows(arn string) bool {
	return p.Permission == "allowAll" || p.Permission == "byQueue" && slices.Contains(p.Sources, arn)
}

// redrivePolicy names a dead-letter queue, and after how many receives a message goes there.
type redrivePolicy struct {
	Target      string      `json:"deadLetterTargetArn"`
	MaxReceives json.Number `json:"maxReceiveCount"` // some clients send it as text
}

// set sets a queue's attributes, or returns a refusal and changes nothing.
func (s *Service) set(q *queues.Queue, values map[string]string) error {
	next := maps.Clone(q.Attributes)
	for _, name := range slices.Sorted(maps.Keys(values)) {
		a, ok := attributes[name]
		switch value := values[name]; {
		case !ok || !q.FIFO && (name == "FifoQueue" || name == "ContentBasedDeduplication"):
			return refuse("InvalidAttributeName", "Unknown Attribute %s.", name)
		case a.onlyForFIFO && !q.FIFO:
			return refuse("InvalidAttributeName", "You can specify the %s only when FifoQueue is set to true.", name)
		case !a.check(value) && (value != "" || a.standard == ""):
			return refuse("InvalidAttributeValue", "Invalid value for the parameter %s.", name)
		case value == "":
			next[name] = a.standard // "" restores the default
		default:
			next[name] = value
		}
	}
	if next["KmsMasterKeyId"] != "" {
		if values["SqsManagedSseEnabled"] == "true" {
			return refuse(
				"InvalidAttributeName",
				"You can use one type of server-side encryption (SSE) at one time. You can either enable KMS SSE or SQS SSE.",
			)
		}
		next["SqsManagedSseEnabled"] = "false"
	}
	if next["FifoThroughputLimit"] == "perMessageGroupId" && next["DeduplicationScope"] != "messageGroup" {
		return refuse(
			"InvalidAttributeValue",
			"Invalid value for the parameter FifoThroughputLimit. Reason: perMessageGroupId needs a DeduplicationScope of messageGroup.",
		)
	}
	if _, ok := values["RedrivePolicy"]; ok {
		if err := s.setRedrive(q, next["RedrivePolicy"]); err != nil {
			return err
		}
	}
	q.Attributes = next
	q.Delay = milliseconds(next["DelaySeconds"])
	q.Retention = milliseconds(next["MessageRetentionPeriod"])
	q.GroupDedup = next["DeduplicationScope"] == "messageGroup"
	return nil
}

// booleans are the attributes that are true or false. AWS takes them in any case: Python's str(True) is "True".
var booleans = []string{"FifoQueue", "ContentBasedDeduplication", "SqsManagedSseEnabled"}

// plain returns attributes with their booleans in lower case.
func plain(values map[string]string) map[string]string {
	out := maps.Clone(values)
	for _, name := range booleans {
		if value, ok := out[name]; ok {
			out[name] = strings.ToLower(value)
		}
	}
	return out
}

// milliseconds converts a checked number of seconds.
func milliseconds(seconds string) int64 {
	n, _ := strconv.ParseInt(seconds, 10, 64)
	return n * 1000
}

// setRedrive sets the dead-letter queue, and how many receives move a message there.
func (s *Service) setRedrive(q *queues.Queue, value string) error {
	if value == "" {
		q.MaxReceives = 0
		q.DeadLetter = ""
		return nil
	}
	var p redrivePolicy
	refused := func(reason string, args ...any) error { return invalidValue(value, "RedrivePolicy", reason, args...) }
	if err := json.Unmarshal([]byte(value), &p); err != nil {
		return refused("Redrive policy is not a valid JSON map.")
	}
	if p.Target == "" {
		return refused("Redrive policy does not contain mandatory attribute: deadLetterTargetArn.")
	}
	if p.MaxReceives == "" {
		return refused("Redrive policy does not contain mandatory attribute: maxReceiveCount.")
	}
	n, err := strconv.Atoi(p.MaxReceives.String())
	if err != nil || n < 1 || n > 1000 {
		return refused("Invalid value for maxReceiveCount: %s, valid values are from 1 to 1000 both inclusive.", p.MaxReceives)
	}
	name, ok := s.nameInArn(p.Target)
	if !ok {
		return refused("Dead letter target does not exist, or is not a queue of this account and region.")
	}
	target, err := s.store.Queue(name)
	if err != nil {
		return refused("Dead letter target does not exist.")
	}
	if target.FIFO != q.FIFO {
		return refused("Dead-letter queue must be same type of queue as the source.")
	}
	if allow, _ := parseAllowPolicy(target.Attributes["RedriveAllowPolicy"]); !allow.allows(s.queueArn(q.Name)) {
		return refused("The RedriveAllowPolicy of the dead-letter queue does not permit this source.")
	}
	q.MaxReceives = n
	q.DeadLetter = name
	return nil
}

// describe returns what GetQueueAttributes says about a queue.
func (s *Service) describe(q queues.Queue, c queues.Counts) map[string]string {
	out := map[string]string{
		"QueueArn":                              s.queueArn(q.Name),
		"CreatedTimestamp":                      strconv.FormatInt(q.CreatedAt/1000, 10),
		"LastModifiedTimestamp":                 strconv.FormatInt(q.ModifiedAt/1000, 10),
		"ApproximateNumberOfMessages":           strconv.Itoa(c.Visible),
		"ApproximateNumberOfMessagesNotVisible": strconv.Itoa(c.InFlight),
		"ApproximateNumberOfMessagesDelayed":    strconv.Itoa(c.Delayed),
	}
	for name, value := range q.Attributes {
		if value != "" {
			out[name] = value
		}
	}
	if out["KmsMasterKeyId"] != "" && out["KmsDataKeyReusePeriodSeconds"] == "" {
		out["KmsDataKeyReusePeriodSeconds"] = "300"
	}
	return out
}

// queueAttributes lists the names that GetQueueAttributes accepts.
var queueAttributes = types.QueueAttributeName("").Values()

// defaultAttributes returns a new queue's attributes.
func defaultAttributes(fifo bool) map[string]string {
	out := map[string]string{}
	for name, a := range attributes {
		if a.standard != "" && (fifo || !a.onlyForFIFO) {
			out[name] = a.standard
		}
	}
	if fifo {
		out["FifoQueue"] = "true"
	}
	return out
}

// Recover gives a queue whose own record was lost the attributes of a new one, so that its messages can be received and deleted. Its messages
// are kept for as long as the store has said.
func Recover(q *queues.Queue) {
	q.Attributes = defaultAttributes(q.FIFO)
	q.Attributes["MessageRetentionPeriod"] = strconv.FormatInt(q.Retention/1000, 10)
}

// isFIFO reports whether a new queue is FIFO. Its name and its attributes must agree.
func isFIFO(name string, values map[string]string) (bool, error) {
	fifo := values["FifoQueue"] == "true"
	if fifo && !strings.HasSuffix(name, fifoSuffix) {
		return false, invalid(
			"The name of a FIFO queue can only include alphanumeric characters, hyphens, or underscores, must end with .fifo " +
				"suffix and be 1 to 80 in length.",
		)
	}
	if !fifo && strings.HasSuffix(name, fifoSuffix) {
		return false, invalid("Can only include alphanumeric characters, hyphens, or underscores. 1 to 80 in length")
	}
	return fifo, nil
}
