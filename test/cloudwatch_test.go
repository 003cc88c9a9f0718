package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

func (p *Pintle) cloudWatch() *cloudwatch.Client {
	return cloudwatch.New(cloudwatch.Options{
		Region:           "us-east-1",
		BaseEndpoint:     &p.Endpoint,
		Credentials:      credentials.NewStaticCredentialsProvider(p.key, p.secret, ""),
		RetryMaxAttempts: 1,
	})
}

// postForm sends a raw Query request, as older clients do.
func (p *Pintle) postForm(pairs ...string) (status int, answer string) {
	p.t.Helper()
	values := url.Values{"Version": {"2010-08-01"}}
	for i := 0; i < len(pairs); i += 2 {
		values.Set(pairs[i], pairs[i+1])
	}
	resp, err := http.PostForm(p.Endpoint, values)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(b)
}

// TestCloudWatch puts metrics, alarms and a dashboard with each client in its own protocol, kills Pintle, and reads everything
// back with the other clients.
func TestCloudWatch(t *testing.T) {
	t.Parallel()
	p := Up(t, "g4dn.xlarge=1")
	now := time.Now().UTC().Truncate(time.Minute)
	at := now.Add(-time.Minute)
	client := p.cloudWatch()

	// CBOR: the Go SDK and the AWS CLI.
	_, err := client.PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{
		Namespace: aws.String("Seed"),
		MetricData: []types.MetricDatum{
			{
				MetricName: aws.String("load"),
				Timestamp:  &at,
				Values:     []float64{1, 100},
				Counts:     []float64{99, 1},
				Unit:       types.StandardUnitPercent,
			},
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.AWS("cloudwatch", "put-metric-data", "--namespace", "Seed", "--metric-name", "load", "--value", "3", "--unit", "Percent",
		"--timestamp", at.Format(time.RFC3339))
	p.AWS("cloudwatch", "put-metric-alarm", "--alarm-name", "by-cli", "--namespace", "Nothing", "--metric-name", "load",
		"--statistic", "Average", "--period", "60",
		"--evaluation-periods", "3", "--threshold", "75", "--comparison-operator", "GreaterThanThreshold", "--treat-missing-data", "ignore")
	p.AWS("cloudwatch", "put-dashboard", "--dashboard-name", "d", "--dashboard-body", `{"widgets":[]}`)
	p.AWS("cloudwatch", "set-alarm-state", "--alarm-name", "by-cli", "--state-value", "ALARM", "--state-reason", "a test")

	// JSON 1.0.
	status, answer, err := p.Post("GraniteServiceVersion20100801.PutMetricData",
		fmt.Sprintf(`{"Namespace":"Seed","MetricData":[{"MetricName":"load","Timestamp":%d,"Value":5,"Unit":"Percent"}]}`, at.Unix()))
	if err != nil || status != 200 {
		t.Fatalf("JSON: %d %s %v", status, answer, err)
	}
	// Query.
	status, answer = p.postForm("Action", "PutMetricData", "Namespace", "Seed", "MetricData.member.1.MetricName", "load",
		"MetricData.member.1.Unit", "Percent",
		"MetricData.member.1.Timestamp", at.Format(time.RFC3339), "MetricData.member.1.StatisticValues.SampleCount", "1",
		"MetricData.member.1.StatisticValues.Sum", "7",
		"MetricData.member.1.StatisticValues.Minimum", "7", "MetricData.member.1.StatisticValues.Maximum", "7")
	if status != 200 || !strings.Contains(answer, "<PutMetricDataResponse") {
		t.Fatalf("Query: %d %s", status, answer)
	}

	// One alarm with each protocol.
	_, err = client.PutMetricAlarm(t.Context(), &cloudwatch.PutMetricAlarmInput{
		AlarmName:          aws.String("in-cbor"),
		Namespace:          aws.String("Nothing"),
		MetricName:         aws.String("load"),
		Statistic:          types.StatisticSum,
		Period:             aws.Int32(10),
		EvaluationPeriods:  aws.Int32(1),
		Threshold:          aws.Float64(1),
		ComparisonOperator: types.ComparisonOperatorGreaterThanThreshold,
	})
	if err != nil {
		t.Fatal(err)
	}
	status, answer, err = p.Post("GraniteServiceVersion20100801.PutMetricAlarm",
		`{"AlarmName":"in-json","Namespace":"Nothing","MetricName":"load","Statistic":"Sum","Period":20,"EvaluationPeriods":1,`+
			`"Threshold":1,"ComparisonOperator":"GreaterThanThreshold"}`)
	if err != nil || status != 200 {
		t.Fatalf("JSON: %d %s %v", status, answer, err)
	}
	status, answer = p.postForm("Action", "PutMetricAlarm", "AlarmName", "in-query", "Namespace", "Nothing", "MetricName", "load",
		"ExtendedStatistic", "p99", "Period", "30", "EvaluationPeriods", "1", "Threshold", "1",
		"ComparisonOperator", "GreaterThanThreshold", "AlarmActions.member.1", "http://127.0.0.1:1/")
	if status != 200 {
		t.Fatalf("Query: %d %s", status, answer)
	}

	p.Kill()
	p.Start()

	const inAll = "in-cbor 10 in-json 20 in-query 30"
	by, err := client.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{AlarmNamePrefix: aws.String("in-")})
	var alarms []string
	for _, a := range by.MetricAlarms {
		alarms = append(alarms, fmt.Sprint(*a.AlarmName, " ", *a.Period))
	}
	if got := strings.Join(alarms, " "); err != nil || got != inAll {
		t.Errorf("CBOR: %s, %v", got, err)
	}
	byCLI := strings.Fields(p.AWS("cloudwatch", "describe-alarms", "--alarm-name-prefix", "in-",
		"--query", "MetricAlarms[].[AlarmName,Period]", "--output", "text"))
	if strings.Join(byCLI, " ") != inAll {
		t.Errorf("CLI: %s", byCLI)
	}
	status, answer, err = p.Post("GraniteServiceVersion20100801.DescribeAlarms", `{"AlarmNames":["in-query"]}`)
	if err != nil || status != 200 || !strings.Contains(answer, `"ExtendedStatistic":"p99"`) ||
		!strings.Contains(answer, `"AlarmActions":["http://127.0.0.1:1/"]`) {
		t.Errorf("JSON: %d %s %v", status, answer, err)
	}
	if status, answer = p.postForm("Action", "DescribeAlarms", "AlarmNames.member.1", "in-json"); status != 200 ||
		!strings.Contains(answer, "<AlarmName>in-json</AlarmName>") || !strings.Contains(answer, "<Period>20</Period>") {
		t.Errorf("Query: %d %s", status, answer)
	}

	got, err := client.GetMetricStatistics(t.Context(), &cloudwatch.GetMetricStatisticsInput{
		Namespace:          aws.String("Seed"),
		MetricName:         aws.String("load"),
		StartTime:          aws.Time(now.Add(-10 * time.Minute)),
		EndTime:            &now,
		Period:             aws.Int32(60),
		Statistics:         []types.Statistic{types.StatisticSum, types.StatisticSampleCount},
		ExtendedStatistics: []string{"p50", "p100"},
	})
	if err != nil || len(got.Datapoints) != 1 {
		t.Fatalf("got %+v, %v", got, err)
	}
	d := got.Datapoints[0]
	if *d.Sum != 99+100+3+5+7 || *d.SampleCount != 103 || d.ExtendedStatistics["p50"] != 1 || d.ExtendedStatistics["p100"] != 100 ||
		!d.Timestamp.Equal(at) {
		t.Errorf("got %+v", d)
	}
	status, answer = p.postForm("Action", "GetMetricData", "StartTime", now.Add(-time.Hour).Format(time.RFC3339), "EndTime",
		now.Format(time.RFC3339), "MetricDataQueries.member.1.Id", "m1", "MetricDataQueries.member.1.MetricStat.Metric.Namespace", "Seed",
		"MetricDataQueries.member.1.MetricStat.Metric.MetricName", "load",
		"MetricDataQueries.member.1.MetricStat.Period", "60", "MetricDataQueries.member.1.MetricStat.Stat", "Maximum")
	if status != 200 || !strings.Contains(answer, "<Values><member>100</member></Values>") ||
		!strings.Contains(answer, at.Format("<member>2006-01-02T15:04:05.000Z</member>")) {
		t.Errorf("Query: %d %s", status, answer)
	}
	listed := p.AWS("cloudwatch", "list-metrics", "--namespace", "Seed", "--query", "Metrics[].MetricName", "--output", "text")
	if listed != "load" {
		t.Errorf("list-metrics: %s", listed)
	}
	byName, err := client.DescribeAlarms(t.Context(), &cloudwatch.DescribeAlarmsInput{AlarmNamePrefix: aws.String("by-")})
	if err != nil || len(byName.MetricAlarms) != 1 || byName.MetricAlarms[0].StateValue != types.StateValueAlarm ||
		*byName.MetricAlarms[0].Threshold != 75 {
		t.Errorf("DescribeAlarms: %+v, %v", byName, err)
	}
	if status, answer = p.postForm("Action", "DescribeAlarms"); status != 200 ||
		!strings.Contains(answer, "<AlarmName>by-cli</AlarmName>") {
		t.Errorf("Query: %d %s", status, answer)
	}
	history := p.AWS("cloudwatch", "describe-alarm-history", "--alarm-name", "by-cli", "--history-item-type", "StateUpdate",
		"--query", "AlarmHistoryItems[].HistorySummary", "--output", "text")
	if history != "Alarm updated from INSUFFICIENT_DATA to ALARM" {
		t.Errorf("describe-alarm-history: %s", history)
	}
	dashboard := p.AWS("cloudwatch", "get-dashboard", "--dashboard-name", "d", "--query", "DashboardBody", "--output", "text")
	if dashboard != `{"widgets":[]}` {
		t.Errorf("get-dashboard: %s", dashboard)
	}
}

// TestCloudWatchRefuses: in every protocol, bad input is refused with AWS's error, which names the parameter, and stores
// nothing.
func TestCloudWatchRefuses(t *testing.T) {
	t.Parallel()
	p := Up(t, "g4dn.xlarge=1")
	_, err := p.cloudWatch().PutMetricData(t.Context(), &cloudwatch.PutMetricDataInput{
		Namespace: aws.String("n"),
		MetricData: []types.MetricDatum{
			{MetricName: aws.String("good"), Value: aws.Float64(1)}, {
				MetricName:        aws.String("bad"),
				Value:             aws.Float64(1),
				StorageResolution: aws.Int32(7),
			},
		},
	})
	var invalid *types.InvalidParameterValueException
	if !errors.As(err, &invalid) || !strings.Contains(invalid.ErrorMessage(), "MetricData.member.2.StorageResolution") {
		t.Errorf("CBOR: %v", err)
	}
	out, err := p.TryAWS("cloudwatch", "put-metric-data", "--namespace", "n", "--metric-name", "m", "--value", "1",
		"--timestamp", "2020-01-01T00:00:00Z")
	if err == nil || !strings.Contains(out, "(InvalidParameterValue)") || !strings.Contains(out, "MetricData.member.1.Timestamp") {
		t.Errorf("CLI: %s", out)
	}
	status, answer, err := p.Post("GraniteServiceVersion20100801.DescribeAlarms", `{"MaxRecords":101}`)
	if err != nil || status != 400 || !strings.Contains(answer, "ValidationException") || !strings.Contains(answer, "maxRecords") {
		t.Errorf("JSON: %d %s %v", status, answer, err)
	}
	status, answer, err = p.Post("GraniteServiceVersion20100801.DescribeAlarms", `{"maxRecords":1}`)
	if err != nil || status != 400 || !strings.Contains(answer, "SerializationException") {
		t.Errorf("JSON: %d %s %v", status, answer, err)
	}
	for _, c := range []struct {
		form []string
		code string
		says string
	}{
		{[]string{"Action", "PutMetricData"}, "MissingParameter", "Namespace"},
		{[]string{"Action", "PutMetricData", "Namespace", ":n"}, "InvalidParameterValue", "Namespace"},
		{[]string{"Action", "PutMetricData", "Namespace", "n"}, "MissingParameter", "MetricData"},
		{[]string{"Action", "PutMetricData", "Namespace", "n", "MetricData.member.1.MetricName", "m", "MetricData.member.1.Value", "inf"},
			"InvalidParameterValue", "MetricData.member.1.Value"},
		{[]string{"Action", "PutMetricData", "Namespace", "n", "MetricData.member.1.MetricName", "m", "MetricData.member.1.Value", "x"},
			"MalformedInput", "MetricData.1.Value"},
		{[]string{"Action", "GetDashboard", "DashboardName", "none"}, "ResourceNotFound", "none"},
		{[]string{"Action", "PutInsightRule"}, "NotImplemented", "PutInsightRule"},
		{[]string{"Action", "Dance"}, "InvalidAction", "Dance"},
	} {
		if status, answer := p.postForm(c.form...); status < 400 || !strings.Contains(answer, "<Code>"+c.code+"</Code>") ||
			!strings.Contains(answer, c.says) {
			t.Errorf("%v: %d %s", c.form, status, answer)
		}
	}
	if got := p.AWS("cloudwatch", "list-metrics", "--namespace", "n", "--query", "Metrics"); got != "[]" {
		t.Errorf("what was refused is listed: %s", got)
	}
}

// TestAlarmsAct: an alarm with a period of ten seconds sees reported data, a composite alarm follows it, and a webhook is
// notified of both.
func TestAlarmsAct(t *testing.T) {
	t.Parallel()
	type notification struct{ Type, Subject, Message string }
	heard := make(chan notification, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var n notification
		if err := json.NewDecoder(r.Body).Decode(&n); err != nil || n.Type != "Notification" ||
			!strings.Contains(n.Message, `"NewStateValue":"ALARM"`) {
			t.Errorf("the webhook got %+v, %v", n, err)
		}
		heard <- n
	}))
	defer hook.Close()
	p := Up(t, "g4dn.xlarge=1", "--webhook-to", "127.0.0.1")
	p.AWS("cloudwatch", "put-metric-alarm", "--alarm-name", "fast", "--namespace", "Seed", "--metric-name", "load",
		"--statistic", "Maximum", "--period", "10",
		// passed as an argument, the CLI would fetch the URL
		"--evaluation-periods", "1", "--threshold", "75", "--comparison-operator", "GreaterThanThreshold",
		"--cli-input-json", `{"AlarmActions":["`+hook.URL+`"]}`)
	p.AWS("cloudwatch", "put-composite-alarm", "--alarm-name", "above", "--alarm-rule", "ALARM(fast)",
		"--cli-input-json", `{"AlarmActions":["`+hook.URL+`"]}`)
	p.AWS("cloudwatch", "put-metric-data", "--namespace", "Seed", "--metric-name", "load", "--value", "90", "--storage-resolution", "1")
	all := map[string]string{} // in either order: one alarm's actions don't wait for another's
	for range 2 {
		select {
		case n := <-heard:
			all[n.Subject] = n.Message
		case <-time.After(patience):
			t.Fatalf("nothing was heard but %q", all)
		}
	}
	for subject, reason := range map[string]string{
		`ALARM: "above" in us-east-1`: `alarm:fast transitioned to ALARM`,
		`ALARM: "fast" in us-east-1`:  `"NewStateReason":"Threshold Crossed: 1 out of the last 1 datapoints [90.0 (`,
	} {
		if !strings.Contains(all[subject], reason) {
			t.Errorf("heard %q, want %s because of %s", all, subject, reason)
		}
	}
	Eventually(t, "the action in the history", func() bool {
		return strings.Contains(p.AWS("cloudwatch", "describe-alarm-history", "--alarm-name", "fast", "--history-item-type", "Action"),
			"Successfully executed action")
	})
}
