package logs

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/logs/searches"
	"github.com/pintle/pintle/internal/logs/streams"
	"github.com/pintle/pintle/internal/state/statetest"
)

// newQueried returns a service with the groups a and b. Every second one of them gets an event, in turn, with the number of the second.
func newQueried(t *testing.T, events int) *Service {
	t.Helper()
	store, err := streams.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() }) //nolint:errcheck // the test is over
	s := New(store, Options{Account: accounttest.New(time.Now), State: statetest.Open(t), Log: slog.New(slog.DiscardHandler)})
	first := time.Now().UnixMilli() - int64(events)*1000
	for i, group := range []string{"a", "b"} {
		if err := store.CreateGroup(streams.Group{Name: group}); err != nil {
			t.Fatal(err)
		}
		if err := store.CreateStream(group, "s", first); err != nil {
			t.Fatal(err)
		}
		for from := i; from < events; from += 100 {
			var batch []streams.Event
			for n := from; n < min(from+100, events); n += 2 {
				batch = append(batch, streams.Event{Timestamp: first + int64(n)*1000, Message: fmt.Sprintf(`{"n":%d}`, n)})
			}
			if err := store.Append(group, "s", first, batch); err != nil {
				t.Fatal(err)
			}
		}
	}
	return s
}

// query starts a query over the last hour of both groups.
func query(t *testing.T, s *Service, text string, limit *int32) string {
	t.Helper()
	out, err := s.StartQuery(t.Context(), &cloudwatchlogs.StartQueryInput{
		LogGroupIdentifiers: []string{"b", s.groupArn("a"), "a"},
		StartTime:           aws.Int64(time.Now().Add(-time.Hour).Unix()),
		EndTime:             aws.Int64(time.Now().Unix()),
		QueryString:         &text,
		Limit:               limit,
	})
	if err != nil {
		t.Fatal(err)
	}
	return *out.QueryId
}

func resultsOf(t *testing.T, s *Service, in cloudwatchlogs.GetQueryResultsInput) *cloudwatchlogs.GetQueryResultsOutput {
	t.Helper()
	out, err := s.GetQueryResults(t.Context(), &in)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// values returns a column of results.
func values(out *cloudwatchlogs.GetQueryResultsOutput, column string) string {
	var all []string
	for _, row := range out.Results {
		for _, f := range row {
			if *f.Field == column {
				all = append(all, *f.Value)
			}
		}
	}
	return strings.Join(all, " ")
}

func TestQuery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newQueried(t, 1000)
		id := query(t, s, "fields n, @log | filter n % 3 = 0 | limit 7", nil)
		if out := resultsOf(t, s, cloudwatchlogs.GetQueryResultsInput{QueryId: &id}); out.Status != types.QueryStatusScheduled {
			t.Errorf("before anything runs, it is %s", out.Status)
		}
		go s.RunQueries(t.Context()) //nolint:errcheck // it ends with the test
		synctest.Wait()
		out := resultsOf(t, s, cloudwatchlogs.GetQueryResultsInput{QueryId: &id, MaxItems: aws.Int32(4)})
		if got := values(out, "n"); out.Status != types.QueryStatusComplete || got != "999 996 993 990" {
			t.Errorf("%s: %s", out.Status, got)
		}
		if got := values(out, "@log"); got != "000000000000:b 000000000000:a 000000000000:b 000000000000:a" {
			t.Error(got)
		}
		if n := out.Statistics; n.RecordsMatched != 334 || n.RecordsScanned != 1000 || n.LogGroupsScanned != 2 || n.BytesScanned == 0 {
			t.Errorf("%+v", *n)
		}
		rest := resultsOf(t, s, cloudwatchlogs.GetQueryResultsInput{QueryId: &id, NextToken: out.NextToken})
		if got := values(rest, "n"); got != "987 984 981" || rest.NextToken != nil {
			t.Error(got)
		}
		record, err := s.GetLogRecord(t.Context(), &cloudwatchlogs.GetLogRecordInput{
			LogRecordPointer: aws.String(strings.Fields(values(out, "@ptr"))[1]),
		})
		if err != nil || record.LogRecord["n"] != "996" || record.LogRecord["@message"] != `{"n":996}` {
			t.Errorf("%v %+v", err, record)
		}
		id = query(t, s, "stats sum(n) as total by @log | sort @log", aws.Int32(1))
		synctest.Wait()
		if got := values(resultsOf(t, s, cloudwatchlogs.GetQueryResultsInput{QueryId: &id}), "total"); got != "249500" {
			t.Error(got)
		}
	})
}

// TestQueriesEnd: they are stopped, run out of time and are forgotten.
func TestQueriesEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newQueried(t, 10)
		stopped := query(t, s, "limit 1", nil)
		if out, err := s.StopQuery(t.Context(), &cloudwatchlogs.StopQueryInput{QueryId: &stopped}); err != nil || !out.Success {
			t.Error(err)
		}
		for range searches.MaxActive {
			query(t, s, "limit 1", nil)
		}
		_, err := s.StartQuery(t.Context(), &cloudwatchlogs.StartQueryInput{
			LogGroupName: aws.String("a"), StartTime: aws.Int64(0), EndTime: aws.Int64(1), QueryString: aws.String("limit 1"),
		})
		refusedAs(t, err, "LimitExceededException", "[100]")
		ctx, cancel := context.WithCancel(t.Context())
		go s.RunQueries(ctx) //nolint:errcheck // it ends with ctx
		synctest.Wait()
		cancel()
		synctest.Wait()
		count := func(in cloudwatchlogs.DescribeQueriesInput) (n int) {
			for {
				out, err := s.DescribeQueries(t.Context(), &in)
				if err != nil {
					t.Fatal(err)
				}
				n += len(out.Queries)
				if in.NextToken = out.NextToken; in.NextToken == nil {
					return n
				}
			}
		}
		if n := count(cloudwatchlogs.DescribeQueriesInput{MaxResults: aws.Int32(30)}); n != 101 {
			t.Errorf("%d queries", n)
		}
		if n := count(cloudwatchlogs.DescribeQueriesInput{Status: types.QueryStatusCancelled, LogGroupName: aws.String("b")}); n != 1 {
			t.Errorf("%d were stopped", n)
		}
		_, err = s.StopQuery(t.Context(), &cloudwatchlogs.StopQueryInput{QueryId: &stopped})
		refusedAs(t, err, "InvalidParameterException", "not running")
		time.Sleep(25 * time.Hour) // in the bubble
		if n := count(cloudwatchlogs.DescribeQueriesInput{}); n != 0 {
			t.Errorf("%d are left a day later", n)
		}
		_, err = s.GetQueryResults(t.Context(), &cloudwatchlogs.GetQueryResultsInput{QueryId: &stopped})
		refusedAs(t, err, "ResourceNotFoundException", stopped)
	})
}

func refusedAs(t *testing.T, err error, code, message string) {
	t.Helper()
	refusal, ok := err.(smithy.APIError)
	if !ok || refusal.ErrorCode() != code || !strings.Contains(refusal.ErrorMessage(), message) {
		t.Errorf("%v, want %s with %q", err, code, message)
	}
}

func TestQueryRefusals(t *testing.T) {
	s := newQueried(t, 0)
	for _, c := range []struct {
		code, message string
		change        func(*cloudwatchlogs.StartQueryInput)
	}{
		{"InvalidParameterException", "SQL", func(in *cloudwatchlogs.StartQueryInput) { in.QueryLanguage = types.QueryLanguageSql }},
		{"InvalidParameterException", "Exactly one", func(in *cloudwatchlogs.StartQueryInput) { in.LogGroupNames = []string{"a"} }},
		{"InvalidParameterException", "Exactly one", func(in *cloudwatchlogs.StartQueryInput) { in.LogGroupName = nil }},
		{"ResourceNotFoundException", "Log group 'c' does not exist for account ID '", func(in *cloudwatchlogs.StartQueryInput) { in.LogGroupName = aws.String("c") }},
		{"InvalidParameterException", "endTime", func(in *cloudwatchlogs.StartQueryInput) { in.EndTime = aws.Int64(1) }},
		{"InvalidParameterException", "at most 50", func(in *cloudwatchlogs.StartQueryInput) {
			in.LogGroupName, in.LogGroupNames = nil, strings.Split(strings.Repeat("a", 51), "")
		}},
		{"MalformedQueryException", "pattern is not supported", func(in *cloudwatchlogs.StartQueryInput) { in.QueryString = aws.String("pattern x") }},
	} {
		in := &cloudwatchlogs.StartQueryInput{
			LogGroupName: aws.String("a"), StartTime: aws.Int64(2), EndTime: aws.Int64(2), QueryString: aws.String("limit 1"),
		}
		c.change(in)
		_, err := s.StartQuery(t.Context(), in)
		refusedAs(t, err, c.code, c.message)
		if malformed, ok := err.(*types.MalformedQueryException); ok && *malformed.QueryCompileError.Location.EndCharOffset != 7 {
			t.Errorf("%+v", *malformed.QueryCompileError.Location)
		}
	}
	for _, pointer := range []string{"", "x/a", "1.2.3.4/a", "../../x"} {
		_, err := s.GetLogRecord(t.Context(), &cloudwatchlogs.GetLogRecordInput{LogRecordPointer: &pointer})
		refusedAs(t, err, "InvalidParameterException", "logRecordPointer")
	}
	pointer := formatID(streams.ID{Timestamp: 1}) + "/a"
	_, err := s.GetLogRecord(t.Context(), &cloudwatchlogs.GetLogRecordInput{LogRecordPointer: &pointer})
	refusedAs(t, err, "ResourceNotFoundException", "log record")
}

func TestLogGroupFields(t *testing.T) {
	s := newQueried(t, 100)
	out, err := s.GetLogGroupFields(t.Context(), &cloudwatchlogs.GetLogGroupFieldsInput{LogGroupName: aws.String("a")})
	if err != nil || len(out.LogGroupFields) != 7 || *out.LogGroupFields[6].Name != "n" || out.LogGroupFields[6].Percent != 100 {
		t.Errorf("%v %+v", err, out)
	}
	out, err = s.GetLogGroupFields(t.Context(), &cloudwatchlogs.GetLogGroupFieldsInput{LogGroupName: aws.String("a"), Time: aws.Int64(0)})
	if err != nil || len(out.LogGroupFields) != 0 {
		t.Errorf("%v %+v", err, out)
	}
}

func TestQueryDefinitions(t *testing.T) {
	s := newQueried(t, 0)
	put := func(in cloudwatchlogs.PutQueryDefinitionInput) (string, error) {
		in.Name = aws.String("errors")
		out, err := s.PutQueryDefinition(t.Context(), &in)
		if err != nil {
			return "", err
		}
		return *out.QueryDefinitionId, nil
	}
	token := aws.String(strings.Repeat("t", 36))
	id, err := put(cloudwatchlogs.PutQueryDefinitionInput{QueryString: aws.String("limit 1"), LogGroupNames: []string{"a"}, ClientToken: token})
	again, errAgain := put(cloudwatchlogs.PutQueryDefinitionInput{QueryString: aws.String("limit 1"), ClientToken: token})
	if err != nil || errAgain != nil || id != again {
		t.Errorf("%s %v, %s %v", id, err, again, errAgain)
	}
	if _, err := put(cloudwatchlogs.PutQueryDefinitionInput{QueryString: aws.String("limit 2"), QueryDefinitionId: &id}); err != nil {
		t.Error(err)
	}
	_, err = put(cloudwatchlogs.PutQueryDefinitionInput{QueryString: aws.String("limit 2"), QueryDefinitionId: aws.String("none")})
	refusedAs(t, err, "ResourceNotFoundException", "query definition")
	out, err := s.DescribeQueryDefinitions(t.Context(), &cloudwatchlogs.DescribeQueryDefinitionsInput{QueryDefinitionNamePrefix: aws.String("err")})
	if err != nil || len(out.QueryDefinitions) != 1 {
		t.Fatalf("%v %+v", err, out)
	}
	if d := out.QueryDefinitions[0]; *d.QueryString != "limit 2" || len(d.LogGroupNames) != 0 || *d.QueryDefinitionId != id {
		t.Errorf("%+v", d)
	}
	if _, err := s.DeleteQueryDefinition(t.Context(), &cloudwatchlogs.DeleteQueryDefinitionInput{QueryDefinitionId: &id}); err != nil {
		t.Error(err)
	}
	_, err = s.DeleteQueryDefinition(t.Context(), &cloudwatchlogs.DeleteQueryDefinitionInput{QueryDefinitionId: &id})
	refusedAs(t, err, "ResourceNotFoundException", "query definition")
}

// TestDescribedQueries: a query is described with what it reads before its text.
func TestDescribedQueries(t *testing.T) {
	s := newQueried(t, 0)
	_, err := s.StartQuery(t.Context(), &cloudwatchlogs.StartQueryInput{
		LogGroupName: aws.String("a"), StartTime: aws.Int64(5), EndTime: aws.Int64(7), QueryString: aws.String("fields @message"),
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.DescribeQueries(t.Context(), &cloudwatchlogs.DescribeQueriesInput{})
	if err != nil || len(out.Queries) != 1 || *out.Queries[0].QueryString != `SOURCE "a" START=5000 END=7999 | fields @message` {
		t.Errorf("%+v, %v", out, err)
	}
}
