package sidecar

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

// fakeCloudWatch stores what is put, except while it's down.
type fakeCloudWatch struct {
	down    func() bool
	refused float64 // a value that it refuses
	calls   int
	got     []float64
}

func (f *fakeCloudWatch) PutMetricData(
	_ context.Context, in *cloudwatch.PutMetricDataInput, _ ...func(*cloudwatch.Options),
) (*cloudwatch.PutMetricDataOutput, error) {
	f.calls++
	if f.down != nil && f.down() {
		return nil, errors.New("down")
	}
	if len(in.MetricData) > maxPending {
		return nil, errors.New("too many")
	}
	if slices.ContainsFunc(in.MetricData, func(m types.MetricDatum) bool { return slices.Contains(m.Values, f.refused) }) {
		return nil, &types.InvalidParameterValueException{}
	}
	for _, m := range in.MetricData {
		f.got = append(f.got, m.Values...)
	}
	return &cloudwatch.PutMetricDataOutput{}, nil
}

// publisher returns a publisher that reads a GPU whose utilization is the number of reads so far.
func publisher(cw CloudWatch, interval time.Duration) *Publisher {
	n := 0.0
	read := func(context.Context) ([]Sample, error) {
		n++
		return []Sample{{"util", "GPU-a", n}}, nil
	}
	return New(Options{
		Read:       read,
		CloudWatch: cw,
		Namespace:  "n",
		Interval:   interval,
		Log:        slog.New(slog.DiscardHandler),
		Selection:  Selection{Task: Task{Cluster: "c", Service: "s"}, Metrics: []string{"util"}},
	})
}

// numbers returns the numbers from first to n.
func numbers(first, n int) (out []float64) {
	for i := first; i <= n; i++ {
		out = append(out, float64(i))
	}
	return out
}

func TestPublisher(t *testing.T) {
	start := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // synctest's
	for _, c := range []struct {
		name    string
		lasts   time.Duration
		down    time.Duration // from the start
		refused float64
		want    []float64
		calls   int
	}{
		{"once more at the end", 25 * time.Second, 0, -1, numbers(1, 4), 4},
		{"failed puts are repeated", 65 * time.Second, 45 * time.Second, -1, numbers(1, 8), 8},
		{"the oldest data are dropped", 1004*10*time.Second + 5*time.Second, 1004 * 10 * time.Second, -1, numbers(6, 1006), 1006},
		{
			"only refused data are dropped", 65 * time.Second, 35 * time.Second, 3,
			append(numbers(1, 2), numbers(4, 8)...), 12,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cw := &fakeCloudWatch{down: func() bool { return time.Since(start) < c.down }, refused: c.refused}
				ctx, cancel := context.WithTimeout(t.Context(), c.lasts)
				defer cancel()
				publisher(cw, 10*time.Second).Run(ctx)
				if !slices.Equal(cw.got, c.want) || cw.calls != c.calls {
					t.Errorf("in %d calls got %v", cw.calls, cw.got)
				}
			})
		})
	}
}

func TestReadTask(t *testing.T) {
	for _, c := range []struct {
		name     string
		metadata string
		want     Task
	}{
		{
			"on EC2", `{"Cluster":"c","TaskARN":"arn:aws:ecs:eu-west-1:1:task/c/t","ServiceName":"s","Family":"f"}`,
			Task{"c", "s", "t", "eu-west-1", "arn:aws:ecs:eu-west-1:1:task/c/t"},
		},
		{
			"on Fargate", `{"Cluster":"arn:aws:ecs:eu-west-1:1:cluster/c","TaskARN":"arn:aws:ecs:eu-west-1:1:task/c/t","ServiceName":"s"}`,
			Task{"c", "s", "t", "eu-west-1", "arn:aws:ecs:eu-west-1:1:task/c/t"},
		},
		{"without a service", `{"Cluster":"c","TaskARN":"arn:aws:ecs:r:1:task/t"}`, Task{"c", "", "t", "r", "arn:aws:ecs:r:1:task/t"}},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path != "/v4/token/task" {
				http.NotFound(w, r)
			}
			w.Write([]byte(c.metadata)) //nolint:errcheck // the client would notice
		}))
		got, err := ReadTask(t.Context(), s.URL+"/v4/token")
		if err != nil || got != c.want {
			t.Errorf("%s: got %+v, %v", c.name, got, err)
		}
		if _, err := ReadTask(t.Context(), s.URL); err == nil {
			t.Errorf("%s: metadata of nobody's", c.name)
		}
		s.Close()
	}
}
