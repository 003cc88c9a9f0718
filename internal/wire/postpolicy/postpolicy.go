// Package postpolicy reads the policies of forms that upload objects to S3, and says whether a form keeps to its policy:
// https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-HTTPPOSTConstructPolicy.html
// It is pure. Package rest calls it, and has checked the signature, which covers the policy and nothing else of the form.
package postpolicy

import (
	"encoding/base64"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// Policy is what a form may have in its fields, how large its file may be, and until when.
type Policy struct {
	Expires    time.Time
	Size       Range
	conditions []condition
}

// Range is how large a file may be, in bytes.
type Range struct{ Least, Most int64 }

// Any is the range of a form without a policy.
var Any = Range{0, math.MaxInt64}

// condition is what one field may be. The field's name has small letters.
type condition struct {
	startsWith bool
	field      string
	value      string
}

// document is a policy as it's written.
type document struct {
	Expiration *string          `json:"expiration"`
	Conditions []jsontext.Value `json:"conditions"`
}

// problem is the end of one of S3's messages.
type problem string

func (p problem) Error() string { return string(p) }

// Parse reads a policy from base64. Its errors are the ends of S3's messages about invalid policies.
func Parse(encoded string) (*Policy, error) {
	text, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil {
		return nil, problem("Invalid 'policy': it is not base64.")
	}
	var d document
	if err := json.Unmarshal(text, &d, json.RejectUnknownMembers(true)); err != nil {
		return nil, problem("Invalid JSON.")
	}
	if d.Expiration == nil {
		return nil, problem("Policy missing expiration.")
	}
	if d.Conditions == nil {
		return nil, problem("Policy missing conditions.")
	}
	p := &Policy{Size: Any}
	if p.Expires, err = time.Parse(time.RFC3339, *d.Expiration); err != nil {
		return nil, problem("Invalid 'expiration' value: '" + *d.Expiration + "'")
	}
	for _, c := range d.Conditions {
		if err := p.add(c); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// add adds a condition: {"field": "value"}, ["eq" or "starts-with", "$field", "value"], or ["content-length-range", least, most].
func (p *Policy) add(text jsontext.Value) error {
	if text.Kind() == '{' {
		var one map[string]string
		if err := json.Unmarshal(text, &one); err != nil || len(one) != 1 {
			return problem("Invalid Simple-Condition: Simple-Conditions must have exactly one property specified.")
		}
		for field, value := range one {
			p.conditions = append(p.conditions, condition{false, strings.ToLower(field), value})
		}
		return nil
	}
	var list []any
	if err := json.Unmarshal(text, &list); err != nil || len(list) != 3 {
		return problem("Invalid Condition: a condition must have an operation, a field and a value.")
	}
	operation, _ := list[0].(string)
	switch operation = strings.ToLower(operation); operation {
	case "content-length-range":
		least, ok := size(list[1])
		most, ok2 := size(list[2])
		if !ok || !ok2 {
			return problem("Invalid content-length-range: it must have two numbers.")
		}
		p.Size = Range{max(p.Size.Least, least), min(p.Size.Most, most)}
		return nil
	case "eq", "starts-with":
		field, _ := list[1].(string)
		value, ok := list[2].(string)
		name, named := strings.CutPrefix(field, "$")
		if !ok || !named {
			return problem("Invalid Condition: its field must begin with $, and its value must be a text.")
		}
		p.conditions = append(p.conditions, condition{operation == "starts-with", strings.ToLower(name), value})
		return nil
	}
	return problem("Invalid Condition: its operation must be eq, starts-with or content-length-range.")
}

// size reads a number of bytes, which policies may also have as a text.
func size(v any) (int64, bool) {
	switch v := v.(type) {
	case float64:
		return int64(v), v >= 0 && v == math.Trunc(v) && v < 1<<53
	case string:
		n, err := strconv.ParseInt(v, 10, 64)
		return n, err == nil && n >= 0
	}
	return 0, false
}

// Check returns why a form's fields aren't what the policy allows, as the end of S3's message, or nil. The fields' names have small letters;
// the bucket, which is in the form's address, counts as one that a policy must name.
func (p *Policy) Check(now time.Time, bucket string, fields map[string]string) error {
	if !now.Before(p.Expires) {
		return problem("Policy expired.")
	}
	for _, c := range p.conditions {
		value, has := fields[c.field]
		if c.field == "bucket" {
			value, has = bucket, true
		}
		if !has || !c.holds(value) {
			return problem("Policy Condition failed: " + c.String())
		}
	}
	if !slices.ContainsFunc(p.conditions, func(c condition) bool { return c.field == "bucket" }) {
		return problem("Extra input fields: bucket") // else the policy would open every bucket that its signer may write
	}
	var extra []string
	for name := range fields {
		if isCovered(name) && !slices.ContainsFunc(p.conditions, func(c condition) bool { return c.field == name }) {
			extra = append(extra, name)
		}
	}
	if len(extra) > 0 {
		return problem("Extra input fields: " + slices.Min(extra))
	}
	return nil
}

// isCovered reports whether a policy must have a condition on a field: all but those that make up the signature.
func isCovered(field string) bool {
	switch field {
	case "policy", "file", "signature", "awsaccesskeyid", "x-amz-signature", "bucket":
		return false
	}
	return !strings.HasPrefix(field, "x-ignore-")
}

func (c condition) holds(value string) bool {
	if !c.startsWith {
		return value == c.value
	}
	if c.field != "content-type" || !strings.Contains(value, ",") {
		return strings.HasPrefix(value, c.value)
	}
	for one := range strings.SplitSeq(value, ",") { // a list, whose members must all be allowed
		if !strings.HasPrefix(strings.TrimSpace(one), c.value) {
			return false
		}
	}
	return true
}

// String returns the condition as S3's message has it.
func (c condition) String() string {
	operation := "eq"
	if c.startsWith {
		operation = "starts-with"
	}
	return fmt.Sprintf("[%q, %q, %q]", operation, "$"+c.field, c.value)
}
