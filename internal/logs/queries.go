package logs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/logs/insights"
	"github.com/pintle/pintle/internal/logs/searches"
	"github.com/pintle/pintle/internal/logs/streams"
)

// maxQueryGroups is how many log groups a query may read: API_StartQuery.
const maxQueryGroups = 50

// RunQueries runs queries until ctx ends. Until it is called, they stay scheduled.
func (s *Service) RunQueries(ctx context.Context) error { return s.searches.Run(ctx) }

// StartQuery starts a query of Logs Insights.
func (s *Service) StartQuery(_ context.Context, in *cloudwatchlogs.StartQueryInput) (*cloudwatchlogs.StartQueryOutput, error) {
	if err := checkLanguage(in.QueryLanguage); err != nil {
		return nil, err
	}
	groups, err := s.queriedGroups(in)
	if err != nil {
		return nil, err
	}
	start, end := aws.ToInt64(in.StartTime), aws.ToInt64(in.EndTime)
	if end < start || end > maxSeconds {
		return nil, invalidParameter("endTime must not be before startTime, and both are in seconds since 1970.")
	}
	parsed, err := insights.Parse(aws.ToString(in.QueryString), int(aws.ToInt32(in.Limit)))
	if err != nil {
		return nil, malformed(err)
	}
	id, err := s.searches.Start(searches.Query{
		Text:   aws.ToString(in.QueryString),
		Groups: groups,
		Start:  start * 1000,
		End:    end*1000 + 999, // the whole of its last second
	}, parsed)
	if errors.Is(err, searches.ErrBusy) {
		return nil, &types.LimitExceededException{
			Message: account.Message("Account maximum query concurrency limit of [%d] reached.", searches.MaxActive),
		}
	}
	if err != nil {
		return nil, err
	}
	return &cloudwatchlogs.StartQueryOutput{QueryId: &id}, nil
}

// maxSeconds is the last second of the year 9999.
const maxSeconds = 253402300799

// checkLanguage refuses the query languages of OpenSearch.
func checkLanguage(language types.QueryLanguage) error {
	if language != "" && language != types.QueryLanguageCwli {
		return invalidParameter("queryLanguage %s is not supported, only CWLI.", language)
	}
	return nil
}

// malformed refuses a query, and says where it is wrong.
func malformed(err error) error {
	refusal, ok := errors.AsType[*insights.Error](err)
	if !ok {
		return err
	}
	at := new(types.QueryCompileError)
	at.Message = &refusal.Message
	at.Location = &types.QueryCompileErrorLocation{
		StartCharOffset: aws.Int32(int32(refusal.Start)),
		EndCharOffset:   aws.Int32(int32(refusal.End)),
	}
	return &types.MalformedQueryException{Message: &refusal.Message, QueryCompileError: at}
}

// queriedGroups returns the log groups that a query names, each once.
func (s *Service) queriedGroups(in *cloudwatchlogs.StartQueryInput) ([]string, error) {
	var names []string
	ways := 0
	if in.LogGroupName != nil {
		names = []string{*in.LogGroupName}
		ways++
	}
	if len(in.LogGroupNames) > 0 {
		names = in.LogGroupNames
		ways++
	}
	for _, identifier := range in.LogGroupIdentifiers {
		names = append(names, nameInArn(identifier))
	}
	if len(in.LogGroupIdentifiers) > 0 {
		ways++
	}
	if ways != 1 || len(names) == 0 {
		return nil, invalidParameter("Exactly one of logGroupName, logGroupNames and logGroupIdentifiers must be given.")
	}
	if len(names) > maxQueryGroups {
		return nil, invalidParameter("A query can read at most %d log groups.", maxQueryGroups)
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	for _, name := range names {
		if _, err := s.store.Group(name); errors.Is(err, streams.ErrNoGroup) {
			return nil, &types.ResourceNotFoundException{
				Message: account.Message("Log group '%s' does not exist for account ID '%s'", name, s.opts.ID),
			}
		} else if err != nil {
			return nil, err
		}
	}
	return names, nil
}

// maxResults is the largest page of a query's results, and the default.
const maxResults = 10000

// GetQueryResults returns the results of a query. Until it has ended, there are none.
func (s *Service) GetQueryResults(
	_ context.Context, in *cloudwatchlogs.GetQueryResultsInput,
) (*cloudwatchlogs.GetQueryResultsOutput, error) {
	q, ok := s.searches.Get(*in.QueryId)
	if !ok {
		return nil, queryNotFound(*in.QueryId)
	}
	l := listing("GetQueryResults:"+q.ID, maxResults)
	limit := in.MaxItems
	if aws.ToInt32(limit) == 0 {
		limit = nil
	}
	size, after, err := l.Start(limit, in.NextToken)
	if err != nil {
		return nil, err
	}
	out := &cloudwatchlogs.GetQueryResultsOutput{
		QueryLanguage: types.QueryLanguageCwli,
		Results:       [][]types.ResultField{},
		Status:        q.Status,
		Statistics: &types.QueryStatistics{
			BytesScanned:     float64(q.Scanned.Bytes),
			LogGroupsScanned: float64(q.Scanned.Groups),
			RecordsMatched:   float64(q.Scanned.Matched),
			RecordsScanned:   float64(q.Scanned.Events),
		},
	}
	first := 0
	if after != "" {
		first, _ = strconv.Atoi(after) // it was sealed by us
	}
	last := min(first+size, len(q.Results))
	for _, row := range q.Results[min(first, last):last] {
		fields := make([]types.ResultField, len(row))
		for i := range row {
			fields[i] = types.ResultField{Field: &row[i].Name, Value: &row[i].Value}
		}
		out.Results = append(out.Results, fields)
	}
	if last < len(q.Results) {
		out.NextToken = l.Token(strconv.Itoa(last))
	}
	return out, nil
}

func queryNotFound(id string) error {
	return &types.ResourceNotFoundException{Message: account.Message("Query with id %s does not exist.", id)}
}

// StopQuery stops a query that has not ended.
func (s *Service) StopQuery(_ context.Context, in *cloudwatchlogs.StopQueryInput) (*cloudwatchlogs.StopQueryOutput, error) {
	found, stopped := s.searches.Stop(*in.QueryId)
	if !found {
		return nil, queryNotFound(*in.QueryId)
	}
	if !stopped {
		return nil, invalidParameter("Query with id %s is not running.", *in.QueryId)
	}
	return &cloudwatchlogs.StopQueryOutput{Success: true}, nil
}

// maxQueries is the largest page of queries or query definitions, and the default.
const maxQueries = 1000

// DescribeQueries lists queries, the newest first.
func (s *Service) DescribeQueries(
	_ context.Context, in *cloudwatchlogs.DescribeQueriesInput,
) (*cloudwatchlogs.DescribeQueriesOutput, error) {
	all := s.searches.List()
	found := slices.DeleteFunc(all, func(q searches.Query) bool {
		return in.LogGroupName != nil && !slices.Contains(q.Groups, *in.LogGroupName) ||
			in.Status != "" && in.Status != q.Status ||
			in.QueryLanguage != "" && in.QueryLanguage != types.QueryLanguageCwli
	})
	page, next, err := account.Ordered(listing("DescribeQueries", maxQueries), found, in.MaxResults, in.NextToken,
		func(q searches.Query) string { return q.ID })
	if err != nil {
		return nil, err
	}
	out := &cloudwatchlogs.DescribeQueriesOutput{Queries: []types.QueryInfo{}, NextToken: next}
	for _, q := range page {
		out.Queries = append(out.Queries, types.QueryInfo{
			BytesScanned:  aws.Float64(float64(q.Scanned.Bytes)),
			CreateTime:    aws.Int64(q.Created.UnixMilli()),
			LogGroupName:  aws.String(cmp.Or(aws.ToString(in.LogGroupName), q.Groups[0])),
			QueryDuration: aws.Int64(q.Took.Milliseconds()),
			QueryId:       &q.ID,
			QueryLanguage: types.QueryLanguageCwli,
			QueryString:   aws.String(described(&q)),
			Status:        q.Status,
		})
	}
	return out, nil
}

// described returns a query's text as DescribeQueries shows it: behind the groups that it reads, and from when to when. How AWS lists several
// groups wasn't recorded.
func described(q *searches.Query) string {
	var sources []string
	for _, group := range q.Groups {
		sources = append(sources, `"`+group+`"`)
	}
	return fmt.Sprintf("SOURCE %s START=%d END=%d | %s", strings.Join(sources, ", "), q.Start, q.End, q.Text)
}

// A pointer to an event, @ptr, is the event's id and the group's name.

func (s *Service) insightsEvent(group string, e streams.Event) insights.Event {
	return insights.Event{
		Timestamp: e.Timestamp,
		Ingested:  e.Ingested,
		Group:     s.opts.ID + ":" + group,
		Stream:    e.Stream,
		Message:   e.Message,
		Pointer:   formatID(e.ID) + "/" + group,
	}
}

// GetLogRecord returns all fields of the event that a @ptr points to.
func (s *Service) GetLogRecord(ctx context.Context, in *cloudwatchlogs.GetLogRecordInput) (*cloudwatchlogs.GetLogRecordOutput, error) {
	at, group, ok := strings.Cut(aws.ToString(in.LogRecordPointer), "/")
	id, err := parseID(at)
	if !ok || err != nil || formatID(id) != at {
		return nil, invalidParameter("The specified logRecordPointer is invalid.")
	}
	r := streams.Range{Start: id.Timestamp, End: id.Timestamp, Limit: 1, Keep: func(e streams.Event) bool { return e.ID == id }}
	if err := s.applyRetention(group, &r); err != nil {
		return nil, err
	}
	events, _, err := s.store.Read(ctx, group, r)
	if err != nil {
		return nil, failure(err)
	}
	if len(events) == 0 {
		return nil, &types.ResourceNotFoundException{Message: aws.String("The specified log record does not exist.")}
	}
	return &cloudwatchlogs.GetLogRecordOutput{LogRecord: insights.Fields(s.insightsEvent(group, events[0]))}, nil
}

// The events that GetLogGroupFields looks at: those of 15 minutes, or of 8 on both sides of a time, and no more than so many.
const (
	fieldsBefore  = 15 * time.Minute
	fieldsAround  = 8 * time.Minute
	fieldsSampled = 1000
	fieldsListed  = 10000
)

// GetLogGroupFields lists the fields of a group's recent events, and how many percent of them have each.
func (s *Service) GetLogGroupFields(
	ctx context.Context, in *cloudwatchlogs.GetLogGroupFieldsInput,
) (*cloudwatchlogs.GetLogGroupFieldsOutput, error) {
	name, err := group(in.LogGroupName, in.LogGroupIdentifier)
	if err != nil {
		return nil, err
	}
	end := s.opts.Now()
	start := end.Add(-fieldsBefore)
	if in.Time != nil {
		at := time.Unix(min(*in.Time, maxSeconds), 0)
		start, end = at.Add(-fieldsAround), at.Add(fieldsAround)
	}
	r := streams.Range{Start: start.UnixMilli(), End: max(end.UnixMilli(), 1), Limit: fieldsSampled, Backward: true}
	if err := s.applyRetention(name, &r); err != nil {
		return nil, err
	}
	events, _, err := s.store.Read(ctx, name, r)
	if err != nil {
		return nil, failure(err)
	}
	counts := map[string]int{}
	for _, e := range events {
		for field := range insights.Fields(s.insightsEvent(name, e)) {
			if counts[field] > 0 || len(counts) < fieldsListed {
				counts[field]++
			}
		}
	}
	out := &cloudwatchlogs.GetLogGroupFieldsOutput{LogGroupFields: []types.LogGroupField{}}
	for field, n := range counts {
		out.LogGroupFields = append(out.LogGroupFields, types.LogGroupField{Name: &field, Percent: int32(100 * n / len(events))})
	}
	sort.Slice(out.LogGroupFields, func(i, j int) bool {
		a, b := &out.LogGroupFields[i], &out.LogGroupFields[j]
		return cmp.Or(cmp.Compare(b.Percent, a.Percent), strings.Compare(*a.Name, *b.Name)) < 0
	})
	return out, nil
}
