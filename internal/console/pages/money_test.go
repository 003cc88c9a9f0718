package pages

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/console/login"
)

// machines answers for four p3.2xlarge in the first hour of a month, one since, and a machine without a price.
type machines struct {
	first time.Duration // how late in that hour the first minute with machines was
}

func (ms machines) Call(_ context.Context, in any) (any, error) {
	switch in := in.(type) {
	case *cloudwatch.ListMetricsInput:
		return &cloudwatch.ListMetricsOutput{Metrics: []types.Metric{{Dimensions: []types.Dimension{{Name: aws.String("InstanceType"), Value: aws.String("own")}}}}}, nil
	case *cloudwatch.GetMetricDataInput:
		out := &cloudwatch.GetMetricDataOutput{}
		for _, q := range in.MetricDataQueries {
			m := q.MetricStat.Metric
			values := map[string][2]float64{ // in the first hour, and in the second
				"Instances p3.2xlarge": {4, 1}, "InstanceSeconds p3.2xlarge": {4 * 3600, 3600},
				"Instances own": {1, 1}, "InstanceSeconds own": {3600, 3600},
				"GPUSeconds": {4 * 3600, 3600}, "GPUSecondsHeld": {3600, 0},
			}
			name := *m.MetricName
			for _, d := range m.Dimensions {
				name += " " + *d.Value
			}
			r := types.MetricDataResult{Id: q.Id, Label: q.Label}
			for hour, v := range values[name] {
				at := time.Date(2026, 3, 1, hour, 0, 0, 0, time.UTC)
				if hour == 0 {
					at = at.Add(ms.first.Truncate(time.Duration(*q.MetricStat.Period) * time.Second))
				}
				if !at.Before(*in.StartTime) && at.Before(*in.EndTime) {
					r.Timestamps = append(r.Timestamps, at)
					r.Values = append(r.Values, v)
				}
			}
			out.MetricDataResults = append(out.MetricDataResults, r)
		}
		return out, nil
	}
	return nil, fmt.Errorf("nobody expects %T", in)
}

// TestMoney: two hours into a month, five machine hours were paid for, where the busiest moment's machines would have taken eight.
func TestMoney(t *testing.T) {
	now := func() time.Time { return time.Date(2026, 3, 1, 2, 0, 0, 0, time.UTC) }
	o := Options{Now: now, Services: machines{}, Sessions: login.New(login.Options{Now: time.Now}), Prices: map[string]float64{"p3.2xlarge": 3}}
	page := send(New(o), "GET", "/console/money", nil).Body.String()
	for _, want := range []string{
		"<b>15.00</b> cost", "<b>24.00</b> with as many", "<b>9.00</b> saved", "<b>1</b> of <b>5</b> GPU-hours", "(20 %)", "doesn&#39;t have own",
		`<td>p3.2xlarge</td><td class="number">5.00</td><td class="number">4</td><td class="number">3</td><td class="number">15.00</td>`,
	} {
		if strings.Count(page, want) != 2 { // today, and this month
			t.Errorf("the page has %s %d times: %s", want, strings.Count(page, want), page)
		}
	}
	o.Prices = nil
	if page := send(New(o), "GET", "/console/money", nil).Body.String(); !strings.Contains(page, "--prices FILE") || !strings.Contains(page, "<b>0.00</b> cost") {
		t.Errorf("without prices: %s", page)
	}
}

// TestMoneySince: an hour whose machines came half an hour late isn't counted as a whole one, of which half was saved.
func TestMoneySince(t *testing.T) {
	now := func() time.Time { return time.Date(2026, 3, 1, 1, 0, 0, 0, time.UTC) }
	o := Options{Now: now, Services: machines{30 * time.Minute}, Sessions: login.New(login.Options{Now: time.Now}), Prices: map[string]float64{"p3.2xlarge": 3}}
	page := send(New(o), "GET", "/console/money", nil).Body.String()
	if strings.Count(page, `datetime="2026-03-01T00:30:00Z"`) != 2 {
		t.Errorf("neither day nor month is counted since half past midnight: %s", page)
	}
}
