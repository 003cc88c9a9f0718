package stacks

import (
	"encoding/json"
	"regexp"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/cloudformation/template"
)

// signalled reports whether a resource has the signals that its creation policy waits for. It counts those that came since it was made.
func (c *construction) signalled() (bool, error) {
	if c.resource.CreationPolicy == nil || !isCreation(c.row) {
		return true, nil
	}
	policy, err := object(c.src.Evaluation, c.resource.CreationPolicy)
	if err != nil {
		return false, err
	}
	wanted, ok := policy["ResourceSignal"].(map[string]any)
	if !ok {
		return true, nil
	}
	count, timeout, err := signalPolicy(wanted)
	if err != nil {
		return false, err
	}
	good, bad := 0, 0
	for _, status := range c.row.Signals {
		if status == types.ResourceSignalStatusSuccess {
			good++
		} else {
			bad++
		}
	}
	switch {
	case good >= count:
		return true, nil
	case bad > 0:
		return false, template.Errorf("Received %d FAILURE signal(s) out of %d.  Unable to satisfy 100%% MinSuccessfulInstancesPercent requirement", bad, count)
	case c.opts.Account.Now().Sub(c.row.At) > timeout:
		return false, template.Errorf("Failed to receive %d resource signal(s) within the specified duration", count-good)
	}
	return false, nil
}

// signalPolicy reads how many signals are waited for, and how long. AWS's defaults are one and five minutes.
func signalPolicy(policy map[string]any) (count int, timeout time.Duration, err error) {
	count, timeout = 1, 5*time.Minute
	if text, ok := template.Text(policy["Count"]); ok {
		if count, err = strconv.Atoi(text); err != nil {
			return 0, 0, template.Errorf("Template error: the Count of a ResourceSignal must be a number")
		}
	}
	if text, ok := template.Text(policy["Timeout"]); ok {
		timeout, err = duration(text)
	}
	return count, timeout, err
}

var isoDuration = regexp.MustCompile(`^PT(?:(\d{1,4})H)?(?:(\d{1,5})M)?(?:(\d{1,6})S)?$`)

// duration reads an ISO 8601 duration of hours, minutes and seconds.
func duration(text string) (time.Duration, error) {
	m := isoDuration.FindStringSubmatch(text)
	if m == nil || text == "PT" {
		return 0, template.Errorf("Template error: %s is no duration such as PT15M", text)
	}
	var d time.Duration
	for i, unit := range []time.Duration{time.Hour, time.Minute, time.Second} {
		n, _ := strconv.Atoi("0" + m[i+1])
		d += time.Duration(n) * unit
	}
	return d, nil
}

// metadata returns a resource's metadata as JSON, evaluated as far as it can be.
func (src *source) metadata(r *template.Resource) string {
	if r.Metadata == nil {
		return ""
	}
	got, err := src.shown.Value(r.Metadata)
	if err != nil {
		return ""
	}
	text, err := json.Marshal(got)
	if err != nil {
		return ""
	}
	return string(text)
}

// handlerCode returns the code by which CloudFormation sorts services' errors.
func handlerCode(refused smithy.APIError) string {
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
