package scaling

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling/types"
)

// TestCrontabs: the recurrences of Auto Scaling groups count the days of the week as crontabs do.
func TestCrontabs(t *testing.T) {
	for recurrence, want := range map[string]string{ // after a Saturday noon
		"0 8 * * *":       "2026-11-22 08:00:00",
		"0 8 ? * *":       "2026-11-22 08:00:00",
		"0 8 1 * *":       "2026-12-01 08:00:00",
		"0 8 * * 0":       "2026-11-22 08:00:00",
		"0 8 * * 7":       "2026-11-22 08:00:00",
		"0 8 * * 1-5":     "2026-11-23 08:00:00",
		"0 8 * * mon-fri": "2026-11-23 08:00:00",
		"0 8 * * 1/2":     "2026-11-23 08:00:00",
		"0 8 * * 2/3":     "2026-11-24 08:00:00",
		"0 8 * 12 */2":    "2026-12-01 08:00:00", // a Tuesday
		"0 8 * * 2#1":     "2026-12-01 08:00:00",
		"0 13 * * 0-7":    "2026-11-21 13:00:00", // every day
		"0 13 * * 5-7":    "2026-11-21 13:00:00",
		"0 8 * * 5-7":     "2026-11-22 08:00:00",
		"0 8 * * 4-7/2":   "2026-11-26 08:00:00", // Thursday and Saturday
		"0 8 * * fri-mon": "2026-11-22 08:00:00",
	} {
		got, err := NextOfGroup(&types.ScheduledUpdateGroupAction{Recurrence: aws.String(recurrence)}, at("2026-11-21 12:00:00"))
		if err != nil || got == nil || got.Format(layout) != want {
			t.Errorf("%s: %v, %v; want %s", recurrence, got, err, want)
		}
	}
}
