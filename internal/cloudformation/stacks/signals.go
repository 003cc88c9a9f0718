package stacks

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/cloudformation/template"
	"github.com/pintle/pintle/internal/state"
)

// hasSignals reports whether a resource has the signals that its creation policy waits for. It counts those that came since it was made.
func (c *construction) hasSignals(ctx context.Context) (bool, error) {
	policy, err := c.src.creationPolicy(c.resource)
	if err != nil || policy.ResourceSignal == nil || !c.isNew() {
		return err == nil, err
	}
	timeout, err := policy.ResourceSignal.timeout()
	if err != nil {
		return false, err
	}
	if err := c.hear(ctx); err != nil {
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
	count := or(policy.ResourceSignal.Count, 1)
	percent := or(policy.AutoScalingCreationPolicy.MinSuccessfulInstancesPercent, 100)
	late := c.opts.Account.Now().Sub(c.row.At) > timeout
	switch {
	case good >= count || isEnough(good, count, percent) && (good+bad >= count || late):
		return true, nil
	case !isEnough(count-bad, count, percent):
		return false, tooFew(bad, count, percent)
	case late:
		return false, template.Errorf("Failed to receive %d resource signal(s) within the specified duration", count-good)
	}
	return false, nil
}

// isEnough reports whether so many of a number are at least a share of it.
func isEnough(good, count, percent int) bool { return good*100 >= count*percent }

func tooFew(bad, count, percent int) error {
	return template.Errorf("Received %d FAILURE signal(s) out of %d.  Unable to satisfy %d%% MinSuccessfulInstancesPercent requirement", bad, count, percent)
}

// signalled notes a signal for a resource, with an event, and returns the row.
func signalled(
	tx *state.Tx, s *state.Stack, r *state.StackResource, from string, status types.ResourceSignalStatus, now time.Time,
) *state.StackResource {
	row := *r
	if row.Signals = maps.Clone(r.Signals); row.Signals == nil {
		row.Signals = map[string]types.ResourceSignalStatus{}
	}
	row.Signals[from] = status
	tx.StackResources.Put(&row)
	told := row
	told.At = now
	event(tx, s, &told, fmt.Sprintf("Received %s signal with UniqueId %s", status, from), "")
	return &row
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
