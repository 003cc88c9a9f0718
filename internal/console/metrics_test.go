package console

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/exposition"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
	"github.com/pintle/pintle/internal/wire/sign"
	"github.com/pintle/pintle/internal/wire/tally"
)

// metricsConsole is a control plane with a task that waits, a service, a queue, and a request that was answered.
func metricsConsole(t *testing.T, verifier *sign.Verifier, token string) http.Handler {
	store := statetest.Open(t)
	const cluster = "arn:aws:ecs:us-east-1:000000000000:cluster/c"
	statetest.Update(t, store, func(tx *state.Tx) {
		tx.Tasks.Put(&state.Task{ServiceArn: "s", Waiting: &state.Waiting{}, Task: types.Task{
			TaskArn: aws.String("t"), ClusterArn: aws.String(cluster), LastStatus: aws.String("PROVISIONING"), DesiredStatus: aws.String("RUNNING"), CreatedAt: new(time.Now()),
		}})
		tx.Services.Put(&state.Service{Service: types.Service{
			ServiceArn: aws.String("s"), ServiceName: aws.String(`a"b`), ClusterArn: aws.String(cluster), Status: aws.String("ACTIVE"), DesiredCount: 2,
		}})
	})
	statetest.Update(t, store, func(tx *state.Tx) {
		now := time.Now()
		tx.Owe(state.Delivery{Debt: delivery.Debt{Destination: "arn:aws:sqs:us-east-1:000000000000:q"}}, now.Add(-time.Minute))
		tx.Owe(state.Delivery{Debt: delivery.Debt{Destination: "arn:aws:made-up:::x"}}, now)
		tx.Owe(state.Delivery{Debt: delivery.Debt{Destination: "https://example.com/hook", NotBefore: now.Add(time.Hour)}}, now)
	})
	var workings Workings
	workings.Flushed("state")(3 * time.Millisecond)
	workings.Late("rollout")(20 * time.Millisecond)
	workings.Placed(2*time.Microsecond, true)
	workings.Placed(40*time.Microsecond, false)
	workings.Started(3 * time.Second)
	var requests tally.Tally
	requests.Answered(tally.Kind{Service: "ecs", Operation: "RunTask"}, 3*time.Millisecond)
	none := func() error { return nil }
	return New(store, nil, Options{
		Verifier: verifier, ScrapeToken: token, Writable: none, Failing: none, Requests: &requests, Workings: &workings, Now: time.Now,
		Spans:   func() (sent, dropped uint64) { return 7, 2 },
		Waiting: func() map[string]int { return map[string]int{"state": 4} },
		Queues:  func() []QueueDepth { return []QueueDepth{{"q", 5, 1, 0}} },
	}).Handlers()["/metrics"]
}

// TestMetrics: what Prometheus reads is what there is.
func TestMetrics(t *testing.T) {
	w := httptest.NewRecorder()
	metricsConsole(t, nil, "").ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://127.0.0.1/metrics", nil))
	samples, err := exposition.Parse(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	has := map[string]float64{}
	for _, s := range samples {
		name := s.Metric
		for _, l := range s.Labels {
			name += " " + l.Value
		}
		has[name] = s.Value
	}
	if late := has["pintle_owed_late_seconds"]; late < 60 || late > 600 {
		t.Errorf("what is owed is %v seconds late", late)
	}
	for name, want := range map[string]float64{
		"pintle_tasks c WAITING": 1, `pintle_service_tasks c a"b desired`: 2, `pintle_service_tasks c a"b pending`: 1, "pintle_queue_messages q visible": 5,
		"pintle_request_seconds_bucket ecs RunTask  0.0025": 0, "pintle_request_seconds_bucket ecs RunTask  0.005": 1, "pintle_request_seconds_count ecs RunTask ": 1,
		"pintle_flush_seconds_bucket state 0.0025": 0, "pintle_flush_seconds_bucket state 0.005": 1, "pintle_loop_late_seconds_bucket rollout 0.025": 1,
		"pintle_placement_seconds_bucket placed 2.5e-06": 1, "pintle_placement_seconds_count refused": 1, "pintle_task_start_seconds_bucket 5": 1,
		"pintle_trace_spans_total sent": 7, "pintle_trace_spans_total dropped": 2, "pintle_owed_messages sqs": 1, "pintle_owed_messages url": 1, "pintle_owed_messages other": 1, "pintle_waiting_invocations": 0, "pintle_waiting_changes state": 4,
		"pintle_writable": 1, "pintle_failing": 0,
	} {
		if got, ok := has[name]; !ok || got != want {
			t.Errorf("%s is %v, %v, want %v", name, got, ok, want)
		}
	}
}

// TestMetricsNeedToken: off loopback figures are for whoever has the operator's token alone.
func TestMetricsNeedToken(t *testing.T) {
	for _, c := range []struct {
		token, header string
		code          int
	}{
		{"", "", 403}, {"", "Bearer ", 403}, {"0123456789abcdef", "", 401}, {"0123456789abcdef", "0123456789abcdef", 401}, {"0123456789abcdef", "Bearer 0123456789abcde", 401},
		{"0123456789abcdef", "Basic 0123456789abcdef", 401}, {"0123456789abcdef", "Bearer 0123456789abcdef", 200},
	} {
		r := httptest.NewRequest(http.MethodGet, "http://pintle.example/metrics", nil)
		r.Header.Set("Authorization", c.header)
		w := httptest.NewRecorder()
		metricsConsole(t, &sign.Verifier{}, c.token).ServeHTTP(w, r)
		if w.Code != c.code || w.Code != 200 && strings.Contains(w.Body.String(), "pintle_tasks") {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
	}
}
