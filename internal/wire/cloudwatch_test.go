package wire_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/wire"
	"github.com/pintle/pintle/internal/wire/call"
)

// fakeCloudWatch records what was put, and returns prepared answers.
type fakeCloudWatch struct {
	put   *cloudwatch.PutMetricDataInput
	stats *cloudwatch.GetMetricStatisticsOutput
	err   error
}

func (f *fakeCloudWatch) PutMetricData(_ context.Context, in *cloudwatch.PutMetricDataInput) (*cloudwatch.PutMetricDataOutput, error) {
	f.put = in
	return &cloudwatch.PutMetricDataOutput{}, f.err
}

func (f *fakeCloudWatch) GetMetricStatistics(
	context.Context, *cloudwatch.GetMetricStatisticsInput,
) (*cloudwatch.GetMetricStatisticsOutput, error) {
	return f.stats, f.err
}

func (f *fakeCloudWatch) Operations() []call.Operation {
	return []call.Operation{
		call.Op("PutMetricData", f.PutMetricData),
		call.Op("GetMetricStatistics", f.GetMetricStatistics),
	}
}

func TestCloudWatchThroughTheSDK(t *testing.T) {
	at := time.UnixMilli(1700000000123).UTC()
	in := &cloudwatch.PutMetricDataInput{Namespace: aws.String("a/b"), MetricData: []types.MetricDatum{{
		MetricName:        aws.String("é"),
		Timestamp:         &at,
		Values:            []float64{1, -2.5},
		Counts:            []float64{3, 4},
		Unit:              types.StandardUnitPercent,
		StorageResolution: aws.Int32(1),
		Dimensions:        []types.Dimension{{Name: aws.String("d"), Value: aws.String("")}},
		StatisticValues: &types.StatisticSet{
			SampleCount: aws.Float64(1),
			Sum:         aws.Float64(2),
			Minimum:     aws.Float64(0),
			Maximum:     aws.Float64(2),
		},
	}}}
	fake := &fakeCloudWatch{stats: &cloudwatch.GetMetricStatisticsOutput{
		Label:      aws.String("l"),
		Datapoints: []types.Datapoint{{Timestamp: &at, Average: aws.Float64(0.5), ExtendedStatistics: map[string]float64{"p99": 1}}},
	}}
	client := cloudwatch.NewFromConfig(config(newHandler(t, wire.Options{}, wire.CloudWatch(fake))))
	if _, err := client.PutMetricData(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(fake.put, in) {
		t.Errorf("the service got %+v", fake.put)
	}
	got, err := client.GetMetricStatistics(t.Context(), &cloudwatch.GetMetricStatisticsInput{
		Namespace:  aws.String("n"),
		MetricName: aws.String("m"),
		StartTime:  &at,
		EndTime:    &at,
		Period:     aws.Int32(60),
	})
	if err != nil || len(got.Datapoints) != 1 || *got.Label != "l" {
		t.Fatalf("the client got %+v, %v", got, err)
	}
	if p := got.Datapoints[0]; !p.Timestamp.Equal(at) || *p.Average != 0.5 || p.ExtendedStatistics["p99"] != 1 {
		t.Errorf("the client got %+v, %v", got, err)
	}
	// The SDK compresses a large body.
	for range 999 {
		in.MetricData = append(in.MetricData, in.MetricData[0])
	}
	if _, err := client.PutMetricData(t.Context(), in); err != nil || len(fake.put.MetricData) != 1000 {
		t.Errorf("got %d of 1000, %v", len(fake.put.MetricData), err)
	}
	fake.err = &types.InvalidParameterValueException{Message: aws.String("no")}
	_, err = client.PutMetricData(t.Context(), in)
	var invalid *types.InvalidParameterValueException
	if !errors.As(err, &invalid) || invalid.ErrorMessage() != "no" {
		t.Errorf("got %#v", err)
	}
	fake.err = &smithy.GenericAPIError{Code: "ValidationError", Message: "no"}
	_, err = client.PutMetricData(t.Context(), in)
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != "ValidationError" {
		t.Errorf("got %#v", err)
	}
}

// TestErrorsOfAServiceThatBeganWithQuery checks one error in each protocol.
func TestErrorsOfAServiceThatBeganWithQuery(t *testing.T) {
	h := newHandler(t, wire.Options{}, wire.CloudWatch(&fakeCloudWatch{err: &types.ResourceNotFound{Message: aws.String("no")}}))
	const path = "/service/GraniteServiceVersion20100801/operation/PutMetricData"
	for _, c := range []struct {
		name, url    string
		header       map[string]string
		body         string
		contentType  string
		query        string
		wantInAnswer string
	}{
		{
			"CBOR", path, map[string]string{"Smithy-Protocol": "rpc-v2-cbor", "Content-Type": "application/cbor"}, "\xa0",
			"application/cbor", "ResourceNotFound;Sender", "\xbf\x66__type\x70ResourceNotFound\x67message\x62no\xff",
		},
		{
			"JSON", "/", map[string]string{"X-Amz-Target": "GraniteServiceVersion20100801.PutMetricData"}, "{}",
			"application/x-amz-json-1.0", "ResourceNotFound;Sender", `{"__type":"ResourceNotFound","message":"no"}`,
		},
		{
			"Query", "/", nil, "Action=PutMetricData&Version=2010-08-01", "text/xml", "ResourceNotFound;Sender",
			"<Code>ResourceNotFound</Code><Message>no</Message>",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, "http://x"+c.url, strings.NewReader(c.body))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			for k, v := range c.header {
				r.Header.Set(k, v)
			}
			if c.name == "JSON" {
				r.Header.Set("Content-Type", "application/x-amz-json-1.0")
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != 404 || w.Header().Get("Content-Type") != c.contentType || w.Header().Get("x-amzn-query-error") != c.query ||
				!strings.Contains(w.Body.String(), c.wantInAnswer) {
				t.Errorf("got %d %v %q", w.Code, w.Header(), w.Body)
			}
		})
	}
}

func TestQueryHasListsMapsAndTimestamps(t *testing.T) {
	at := time.UnixMilli(1700000000120).UTC()
	fake := &fakeCloudWatch{stats: &cloudwatch.GetMetricStatisticsOutput{
		Datapoints: []types.Datapoint{{Timestamp: &at, Maximum: aws.Float64(1.5), ExtendedStatistics: map[string]float64{"p99": 2}}},
	}}
	h := newHandler(t, wire.Options{}, wire.CloudWatch(fake))
	send := func(form string) string {
		r := httptest.NewRequest(http.MethodPost, "http://x/", strings.NewReader("Version=2010-08-01&"+form))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Body.String()
	}
	send("Action=PutMetricData&Namespace=n" +
		"&MetricData.member.1.MetricName=m" +
		"&MetricData.member.1.Values.member.1=1&MetricData.member.1.Values.member.2=2.5" +
		"&MetricData.member.1.Dimensions.member.1.Name=a&MetricData.member.1.Dimensions.member.1.Value=b" +
		"&MetricData.member.1.StatisticValues.Sum=4" +
		"&MetricData.member.1.Timestamp=2023-11-14T22%3A13%3A20.120Z" +
		"&EntityMetricData.member.1.Entity.Attributes.entry.1.key=k&EntityMetricData.member.1.Entity.Attributes.entry.1.value=v")
	want := &cloudwatch.PutMetricDataInput{
		Namespace: aws.String("n"),
		MetricData: []types.MetricDatum{{
			MetricName:      aws.String("m"),
			Values:          []float64{1, 2.5},
			Timestamp:       &at,
			StatisticValues: &types.StatisticSet{Sum: aws.Float64(4)},
			Dimensions:      []types.Dimension{{Name: aws.String("a"), Value: aws.String("b")}},
		}},
		EntityMetricData: []types.EntityMetricData{{Entity: &types.Entity{Attributes: map[string]string{"k": "v"}}}},
	}
	if !reflect.DeepEqual(fake.put, want) {
		t.Errorf("the service got %+v", fake.put)
	}
	got := send("Action=GetMetricStatistics")
	const answer = `<GetMetricStatisticsResult><Datapoints><member>` +
		`<ExtendedStatistics><entry><key>p99</key><value>2</value></entry></ExtendedStatistics>` +
		`<Maximum>1.5</Maximum><Timestamp>2023-11-14T22:13:20.120Z</Timestamp></member></Datapoints></GetMetricStatisticsResult>`
	if !strings.Contains(got, answer) {
		t.Errorf("got %s", got)
	}
}

func TestCompressedBodies(t *testing.T) {
	fake := &fakeCloudWatch{}
	h := newHandler(t, wire.Options{}, wire.CloudWatch(fake))
	send := func(encoding string, body []byte) int {
		r := httptest.NewRequest(http.MethodPost, "http://x/", bytes.NewReader(body))
		r.Header.Set("Content-Encoding", encoding)
		r.Header.Set("X-Amz-Target", "GraniteServiceVersion20100801.PutMetricData")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w.Code
	}
	compress := func(s string) []byte {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		w.Write([]byte(s)) //nolint:errcheck // writing to a buffer can't fail
		w.Close()
		return b.Bytes()
	}
	for _, c := range []struct {
		name, encoding string
		body           []byte
		want           int
	}{
		{"gzip in capitals", "GZIP", compress(`{"Namespace":"n"}`), 200},
		{"gzip", "gzip", compress(`{"Namespace":"n"}`), 200},
		{"no gzip", "gzip", []byte("{}"), 400},
		{"cut off", "gzip", compress(`{"Namespace":"n"}`)[:12], 400},
		{"another", "br", []byte("{}"), 415},
		{"a bomb", "gzip", compress(strings.Repeat(" ", 5<<20)), 413},
	} {
		if got := send(c.encoding, c.body); got != c.want {
			t.Errorf("%s: got %d", c.name, got)
		}
	}
}
