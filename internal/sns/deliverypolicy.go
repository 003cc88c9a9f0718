package sns

import (
	"bytes"
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"time"

	"github.com/pintle/pintle/internal/state"
)

// retryPolicy says when a message that an endpoint didn't take is sent again. Its delays are in seconds:
// https://docs.aws.amazon.com/sns/latest/dg/sns-message-delivery-retries.html
type retryPolicy struct {
	MinDelayTarget     *int   `json:"minDelayTarget,omitempty"`
	MaxDelayTarget     *int   `json:"maxDelayTarget,omitempty"`
	NumRetries         *int   `json:"numRetries,omitempty"`
	NumMaxDelayRetries *int   `json:"numMaxDelayRetries,omitempty"`
	NumNoDelayRetries  *int   `json:"numNoDelayRetries,omitempty"`
	NumMinDelayRetries *int   `json:"numMinDelayRetries,omitempty"`
	BackoffFunction    string `json:"backoffFunction,omitempty"`
}

// requestPolicy says how messages are sent.
type requestPolicy struct {
	HeaderContentType string `json:"headerContentType,omitempty"`
}

// throttlePolicy would limit how many messages come in a second.
type throttlePolicy struct {
	MaxReceivesPerSecond *int `json:"maxReceivesPerSecond,omitempty"`
}

// topicDelivery is the attribute DeliveryPolicy of a topic. It's about HTTP alone.
type topicDelivery struct {
	HTTP struct {
		DefaultHealthyRetryPolicy    *retryPolicy    `json:"defaultHealthyRetryPolicy,omitempty"`
		DefaultThrottlePolicy        *throttlePolicy `json:"defaultThrottlePolicy,omitempty"`
		DisableSubscriptionOverrides bool            `json:"disableSubscriptionOverrides"`
		DefaultRequestPolicy         *requestPolicy  `json:"defaultRequestPolicy,omitempty"`
	} `json:"http"`
}

// subscriptionDelivery is the attribute of a subscription.
type subscriptionDelivery struct {
	HealthyRetryPolicy *retryPolicy    `json:"healthyRetryPolicy"`
	SicklyRetryPolicy  *retryPolicy    `json:"sicklyRetryPolicy"`
	ThrottlePolicy     *throttlePolicy `json:"throttlePolicy"`
	RequestPolicy      *requestPolicy  `json:"requestPolicy"`
	Guaranteed         bool            `json:"guaranteed"`
}

// The bounds and defaults of a retry policy.
const (
	defaultDelay   = 20
	defaultRetries = 3
	maxRetries     = 100
	maxDelay       = 3600 // seconds, also of all delays together
	defaultType    = "text/plain; charset=UTF-8"
)

// contentTypes are those that a request policy may ask for.
var contentTypes = []string{
	"application/json", "application/octet-stream", "application/soap+xml", "application/x-www-form-urlencoded", "application/xml",
	"text/css", "text/csv", "text/html", "text/plain", "text/plain; charset=UTF-8", "text/xml",
}

// readPolicy reads a document in which every member must be known.
func readPolicy(text string, into any) error {
	d := json.NewDecoder(bytes.NewReader([]byte(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return invalid("DeliveryPolicy: failed to parse JSON. %s", err)
	}
	return nil
}

func parseTopicDelivery(text string) (p topicDelivery, err error) {
	if text == "" {
		return p, nil
	}
	if err := readPolicy(text, &p); err != nil {
		return p, err
	}
	return p, cmp.Or(
		p.HTTP.DefaultHealthyRetryPolicy.check("http.defaultHealthyRetryPolicy"),
		p.HTTP.DefaultThrottlePolicy.check("http.defaultThrottlePolicy"),
		p.HTTP.DefaultRequestPolicy.check("http.defaultRequestPolicy"),
	)
}

func parseSubscriptionDelivery(text string) (p subscriptionDelivery, err error) {
	if text == "" {
		return p, nil
	}
	if err := readPolicy(text, &p); err != nil {
		return p, err
	}
	if p.SicklyRetryPolicy != nil || p.Guaranteed {
		return p, invalid("DeliveryPolicy: sicklyRetryPolicy and guaranteed are not for use")
	}
	return p, cmp.Or(
		p.HealthyRetryPolicy.check("healthyRetryPolicy"),
		p.ThrottlePolicy.check("throttlePolicy"),
		p.RequestPolicy.check("requestPolicy"),
	)
}

func (t *throttlePolicy) check(where string) error {
	if t != nil && t.MaxReceivesPerSecond != nil {
		return unsupported("DeliveryPolicy", "%s.maxReceivesPerSecond: Pintle doesn't throttle deliveries", where)
	}
	return nil
}

func (r *requestPolicy) check(where string) error {
	if r != nil && r.HeaderContentType != "" && !slices.Contains(contentTypes, r.HeaderContentType) {
		return invalid("DeliveryPolicy: %s.headerContentType can't be %s", where, r.HeaderContentType)
	}
	return nil
}

func (r *retryPolicy) check(where string) error {
	if r == nil {
		return nil
	}
	c := r.complete()
	for _, n := range []struct {
		name        string
		value       int
		least, most int
	}{
		{"maxDelayTarget", *c.MaxDelayTarget, 1, maxDelay},
		{"minDelayTarget", *c.MinDelayTarget, 1, *c.MaxDelayTarget},
		{"numRetries", *c.NumRetries, 0, maxRetries},
		{"numNoDelayRetries", *c.NumNoDelayRetries, 0, maxRetries},
		{"numMinDelayRetries", *c.NumMinDelayRetries, 0, maxRetries},
		{"numMaxDelayRetries", *c.NumMaxDelayRetries, 0, maxRetries},
	} {
		if n.value < n.least || n.value > n.most {
			return invalid("DeliveryPolicy: %s.%s must be between %d and %d", where, n.name, n.least, n.most)
		}
	}
	if *c.NumNoDelayRetries+*c.NumMinDelayRetries+*c.NumMaxDelayRetries > *c.NumRetries {
		return invalid("DeliveryPolicy: %s.numRetries must be greater than or equal to the sum of the other retries", where)
	}
	if !slices.Contains([]string{"arithmetic", "exponential", "geometric", "linear"}, c.BackoffFunction) {
		return invalid("DeliveryPolicy: %s.backoffFunction must be arithmetic, exponential, geometric or linear", where)
	}
	total := time.Duration(0)
	for tries := range *c.NumRetries {
		total += c.delay(tries)
	}
	if total > maxDelay*time.Second {
		return invalid("DeliveryPolicy: %s: all delays together are %d seconds, and can be %d", where, int(total.Seconds()), maxDelay)
	}
	return nil
}

// complete returns the policy with its defaults.
func (r *retryPolicy) complete() retryPolicy {
	c := retryPolicy{}
	if r != nil {
		c = *r
	}
	or := func(p **int, value int) {
		if *p == nil {
			*p = &value
		}
	}
	or(&c.MinDelayTarget, defaultDelay)
	or(&c.MaxDelayTarget, max(defaultDelay, *c.MinDelayTarget))
	or(&c.NumRetries, defaultRetries)
	or(&c.NumMaxDelayRetries, 0)
	or(&c.NumNoDelayRetries, 0)
	or(&c.NumMinDelayRetries, 0)
	c.BackoffFunction = cmp.Or(c.BackoffFunction, "linear")
	return c
}

// delay returns how long to wait after some failed tries, fewer than the policy's retries, of a complete policy: first not at all, then the
// least delay, then longer each time, then the longest.
func (r *retryPolicy) delay(tries int) time.Duration {
	least := float64(*r.MinDelayTarget)
	most := float64(*r.MaxDelayTarget)
	growing := *r.NumRetries - *r.NumNoDelayRetries - *r.NumMinDelayRetries - *r.NumMaxDelayRetries
	seconds := most
	switch step := tries - *r.NumNoDelayRetries - *r.NumMinDelayRetries; {
	case tries < *r.NumNoDelayRetries:
		seconds = 0
	case step < 0:
		seconds = least
	case step < growing:
		seconds = grow(r.BackoffFunction, least, most, float64(step+1)/float64(growing))
	}
	return time.Duration(seconds * float64(time.Second))
}

// grow returns the delay at a point between 0 and 1 of the way from the least to the longest.
func grow(function string, least, most, at float64) float64 {
	switch function {
	case "arithmetic":
		at *= at
	case "geometric":
		return least * math.Pow(most/least, at)
	case "exponential":
		at = (math.Pow(2, 10*at) - 1) / (math.Pow(2, 10) - 1)
	}
	return least + (most-least)*at
}

// effectiveOf returns a topic's delivery policy with its defaults.
func effectiveOf(t *state.Topic) string {
	p, _ := parseTopicDelivery(t.Attributes["DeliveryPolicy"]) // it was checked
	retries := p.HTTP.DefaultHealthyRetryPolicy.complete()
	p.HTTP.DefaultHealthyRetryPolicy = &retries
	p.HTTP.DefaultRequestPolicy = p.HTTP.DefaultRequestPolicy.complete()
	return encode(p)
}

func (r *requestPolicy) complete() *requestPolicy {
	if r == nil || r.HeaderContentType == "" {
		return &requestPolicy{HeaderContentType: defaultType}
	}
	return r
}

// deliveryOf returns what is done for a subscription: as it says itself, unless its topic doesn't let it, or else as the topic says.
func deliveryOf(t *state.Topic, sub *state.Subscription) subscriptionDelivery {
	of, _ := parseTopicDelivery(t.Attributes["DeliveryPolicy"]) // both were checked
	own, _ := parseSubscriptionDelivery(sub.Attributes["DeliveryPolicy"])
	if of.HTTP.DisableSubscriptionOverrides {
		own = subscriptionDelivery{}
	}
	retries := cmp.Or(own.HealthyRetryPolicy, of.HTTP.DefaultHealthyRetryPolicy).complete()
	own.HealthyRetryPolicy = &retries
	own.RequestPolicy = cmp.Or(own.RequestPolicy, of.HTTP.DefaultRequestPolicy).complete()
	return own
}

// encode returns a value as JSON, with characters as they are.
func encode(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // texts and numbers always marshal
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n")))
}

// ofQueues is how long to wait before a message is sent to a queue once more, after some failures:
// https://docs.aws.amazon.com/sns/latest/dg/sns-message-delivery-retries.html#creating-delivery-policy
func ofQueues(tries int) time.Duration {
	switch {
	case tries < 3:
		return 0
	case tries < 5:
		return time.Second
	}
	return min(time.Second<<min(tries-5, 10), longest)
}

// patience is how long messages to queues are retried.
const patience = 23 * 24 * time.Hour
