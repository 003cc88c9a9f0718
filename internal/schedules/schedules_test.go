package schedules

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/scheduler"
	"github.com/aws/aws-sdk-go-v2/service/scheduler/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/events/targets"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// world is a service, what its queue got, and the loop that delivers.
type world struct {
	*Service
	store *state.Store
	loop  *delivery.Loop
	got   []string
	fail  error          // what the queue answers
	count map[string]int // metrics, with their dimensions
}

func newWorld(t *testing.T) *world {
	w := &world{store: statetest.Open(t), count: map[string]int{}}
	owner := accounttest.New(time.Now)
	sender := targets.New(targets.Options{
		Account:  owner,
		Services: w,
		QueueURL: func(arn string) string { return arn },
		Trusts: func(role, service string) bool {
			return service == targets.Scheduler && !strings.HasSuffix(role, "/closed")
		},
		Count: func(_, metric string, by ...[]string) {
			for _, d := range by {
				w.count[strings.Join(append([]string{metric}, d...), " ")]++
			}
		},
		Log: slog.New(slog.DiscardHandler),
	})
	w.Service = New(w.store, Options{Account: owner, Targets: sender, Chance: func() float64 { return 0.5 }})
	w.loop = delivery.New(state.Outbox{Store: w.store, Now: time.Now}, delivery.Options{
		Now:    time.Now,
		Routes: []delivery.Route{{Prefix: ARNPrefix, Tell: w.Tell}},
		Log:    slog.New(slog.DiscardHandler),
	})
	return w
}

func (w *world) Call(_ context.Context, in any) (any, error) {
	if w.fail != nil {
		return nil, w.fail
	}
	w.got = append(w.got, *in.(*sqs.SendMessageInput).MessageBody)
	return nil, nil
}

// run runs the loop for a while, and returns what the queue got meanwhile.
func (w *world) run(t *testing.T, d time.Duration) (got []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	if err := w.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatal(err)
	}
	if err := w.loop.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
	got, w.got = w.got, nil
	return got
}

func in(expression string) *scheduler.CreateScheduleInput {
	return &scheduler.CreateScheduleInput{
		Name:               aws.String("s"),
		ScheduleExpression: &expression,
		FlexibleTimeWindow: &types.FlexibleTimeWindow{Mode: types.FlexibleTimeWindowModeOff},
		Target: &types.Target{
			Arn:     aws.String("arn:aws:sqs:us-east-1:000000000000:q"),
			RoleArn: aws.String("arn:aws:iam::000000000000:role/r"),
			Input:   aws.String(`{"at": "<aws.scheduler.scheduled-time>", "try": <aws.scheduler.attempt-number>}`),
		},
	}
}

// TestMetrics: invocations are counted by group of schedules.
func TestMetrics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		hourly := in("rate(1 hour)")
		hourly.Target.DeadLetterConfig = &types.DeadLetterConfig{} // which names no queue
		if _, err := w.CreateSchedule(t.Context(), hourly); err != nil {
			t.Fatal(err)
		}
		w.run(t, 90*time.Minute)
		w.fail = account.Refuse("AWS.SimpleQueueService.NonExistentQueue", "gone")
		w.run(t, time.Hour)
		of := " ScheduleGroup default"
		want := map[string]int{"InvocationAttemptCount" + of: 3, "TargetErrorCount" + of: 1, "InvocationDroppedCount" + of: 1}
		if !maps.Equal(w.count, want) {
			t.Errorf("counted %v", w.count)
		}
		w.store.Close() //nolint:errcheck // the bubble ends
	})
}

// TestOccurrences: the time in a bubble begins at midnight, UTC, of the first of January 2000, a Saturday.
func TestOccurrences(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*scheduler.CreateScheduleInput)
		of     string
		within time.Duration
		want   []string
		stays  bool
	}{
		"once": {of: "at(2000-01-01T02:00:00)", within: 3 * time.Hour, want: []string{"02:00:00"}, stays: true},
		"zone": {of: "at(2000-01-01T02:00:00)", within: 2 * time.Hour, want: []string{"01:00:00"}, stays: true, change: func(in *scheduler.CreateScheduleInput) { in.ScheduleExpressionTimezone = aws.String("Europe/Berlin") }},
		"gone": {of: "at(2000-01-01T02:00:00)", within: 3 * time.Hour, want: []string{"02:00:00"}, change: func(in *scheduler.CreateScheduleInput) { in.ActionAfterCompletion = "DELETE" }},
		"rate": {of: "rate(1 hour)", within: 150 * time.Minute, want: []string{"00:00:00", "01:00:00", "02:00:00"}, stays: true},
		"cron": {of: "cron(30 1,2 * * ? *)", within: 3 * time.Hour, want: []string{"01:30:00", "02:30:00"}, stays: true},
		"start": {of: "rate(1 hour)", within: 150 * time.Minute, want: []string{"01:10:00", "02:10:00"}, stays: true, change: func(in *scheduler.CreateScheduleInput) {
			in.StartDate = aws.Time(time.Date(2000, 1, 1, 1, 10, 0, 0, time.UTC))
		}},
		"end": {of: "rate(1 hour)", within: 5 * time.Hour, want: []string{"00:00:00", "01:00:00"}, change: func(in *scheduler.CreateScheduleInput) {
			in.EndDate = aws.Time(time.Date(2000, 1, 1, 1, 30, 0, 0, time.UTC))
			in.ActionAfterCompletion = "DELETE"
		}},
		"off": {of: "rate(1 hour)", within: 5 * time.Hour, stays: true, change: func(in *scheduler.CreateScheduleInput) { in.State = "DISABLED" }},
		"window": {of: "cron(0 1,2 * * ? *)", within: 135 * time.Minute, want: []string{"01:00:00"}, stays: true, change: func(in *scheduler.CreateScheduleInput) {
			in.FlexibleTimeWindow = &types.FlexibleTimeWindow{Mode: "FLEXIBLE", MaximumWindowInMinutes: aws.Int32(60)}
		}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t)
				asked := in(c.of)
				if c.change != nil {
					c.change(asked)
				}
				if _, err := w.CreateSchedule(t.Context(), asked); err != nil {
					t.Fatal(err)
				}
				got := w.run(t, c.within)
				if len(got) != len(c.want) {
					t.Fatalf("%d occurrences: %s", len(got), got)
				}
				for i, at := range c.want {
					if want := `{"at": "2000-01-01T` + at + `Z", "try": 1}`; got[i] != want {
						t.Errorf("%s, want %s", got[i], want)
					}
				}
				if _, err := w.GetSchedule(t.Context(), &scheduler.GetScheduleInput{Name: aws.String("s")}); (err == nil) != c.stays {
					t.Error(err)
				}
				w.store.Close() //nolint:errcheck // the bubble ends
			})
		})
	}
}

func TestRefusals(t *testing.T) {
	w := newWorld(t)
	refused := func(err error, code, message string) {
		t.Helper()
		var api smithy.APIError
		if !errors.As(err, &api) || api.ErrorCode() != code || !strings.Contains(api.ErrorMessage(), message) {
			t.Errorf("%v, want %s: %s", err, code, message)
		}
	}
	for _, expression := range []string{
		"cron(0 1 * * * *)", "cron(7 20 * * NOT *)", "cron(INVALID)", "cron()", "rate(10 seconds)", "rate(10 years)", "rate()", "rate(10)", "rate(10 minutess)",
		"rate(-10 minutes)", "rate( 10 minutes )", " rate(10 minutes)", "at(2021-12-31T23:59:59Z)", "at(2021-12-31)",
	} {
		_, err := w.CreateSchedule(t.Context(), in(expression))
		refused(err, "ValidationException", "Invalid Schedule Expression "+expression+".")
	}
	for _, expression := range []string{"cron(0-15/1 8-8 ? * 2,3,4,5,6,7 *)", "cron(30-30 13-13 ? * 2,4,6 *)", "cron(1-31/30 1-1 ? * 1,7 *)", "cron(*/15 * * * ? *)"} {
		ok := in(expression)
		ok.Name = aws.String("ok-" + strings.Map(func(r rune) rune {
			if strings.ContainsRune("0123456789", r) {
				return r
			}
			return -1
		}, expression))
		if _, err := w.CreateSchedule(t.Context(), ok); err != nil {
			t.Error(err)
		}
	}
	for message, change := range map[string]func(*scheduler.CreateScheduleInput){
		"must allow AWS EventBridge Scheduler to assume": func(in *scheduler.CreateScheduleInput) {
			in.Target.RoleArn = aws.String("arn:aws:iam::000000000000:role/closed")
		},
		"universal targets": func(in *scheduler.CreateScheduleInput) {
			in.Target.Arn = aws.String("arn:aws:scheduler:::aws-sdk:sqs:sendMessage")
		},
		"Invalid Schedule Expression Timezone Moon.": func(in *scheduler.CreateScheduleInput) { in.ScheduleExpressionTimezone = aws.String("Moon") },
		"MaximumWindowInMinutes":                     func(in *scheduler.CreateScheduleInput) { in.FlexibleTimeWindow.Mode = "FLEXIBLE" },
		"KmsKeyArn": func(in *scheduler.CreateScheduleInput) {
			in.KmsKeyArn = aws.String("arn:aws:kms:us-east-1:000000000000:key/k")
		},
	} {
		asked := in("rate(1 hour)")
		change(asked)
		_, err := w.CreateSchedule(t.Context(), asked)
		refused(err, "ValidationException", message)
	}
	asked := in("rate(1 hour)")
	asked.GroupName = aws.String("gone")
	_, err := w.CreateSchedule(t.Context(), asked)
	refused(err, "ResourceNotFoundException", "Schedule group gone does not exist.")
}
