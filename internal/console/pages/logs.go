package pages

import (
	"bufio"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/console/live"
	"github.com/pintle/pintle/internal/console/markup"
)

// linesShown is how many of a stream's last lines are shown and searched. Of a longer line the first lineShown bytes are shown, and of longer ones
// than usual fewer, so that all have bytesShown at most: a page is kept in memory as long as somebody looks at it.
const linesShown, lineShown, bytesShown = 1000, 4 << 10, 256 << 10

// logsView lists log groups, and the streams of one.
func (p *Pages) logsView() view {
	return view{
		path:  "/console/logs",
		nav:   "Logs",
		title: func(v *visit) string { return strings.TrimSpace("Logs " + v.query("group")) },
		body:  logsBody,
		every: often,
	}
}

func logsBody(v *visit) ([]live.Fragment, error) {
	group := v.query("group")
	if group == "" {
		return groupsBody(v)
	}
	out, err := ask[cloudwatchlogs.DescribeLogStreamsOutput](v, &cloudwatchlogs.DescribeLogStreamsInput{
		LogGroupName: &group, OrderBy: types.OrderByLastEventTime, Descending: aws.Bool(true), Limit: aws.Int32(50),
	})
	if err != nil {
		return nil, err
	}
	var rows []markup.Node
	for _, s := range out.LogStreams {
		rows = append(rows, row(link(with("/console/log", "group", group, "stream", *s.LogStreamName), *s.LogStreamName), atMillis(s.LastEventTimestamp), atMillis(s.CreationTime)))
	}
	return []live.Fragment{section("streams", "Streams, those with the newest lines first", table("Log streams", columns("Stream", "Last line", "Created"), rows...))}, nil
}

func groupsBody(v *visit) ([]live.Fragment, error) {
	var rows []markup.Node
	in := &cloudwatchlogs.DescribeLogGroupsInput{}
	for len(rows) < 500 {
		out, err := ask[cloudwatchlogs.DescribeLogGroupsOutput](v, in)
		if err != nil {
			return nil, err
		}
		for _, g := range out.LogGroups {
			rows = append(rows, row(link(with("/console/logs", "group", *g.LogGroupName), *g.LogGroupName), int(aws.ToInt64(g.StoredBytes)), atMillis(g.CreationTime)))
		}
		if in.NextToken = out.NextToken; in.NextToken == nil {
			break
		}
	}
	return []live.Fragment{section("groups", "Log groups", table("Log groups", columns("Group", "#Bytes", "Created"), rows...))}, nil
}

func atMillis(ms *int64) markup.Node {
	if ms == nil {
		return markup.Text("–")
	}
	return moment(aws.Time(time.UnixMilli(*ms)))
}

// logView shows the end of a stream as it grows.
func (p *Pages) logView() view {
	return view{
		path:  "/console/log",
		title: func(v *visit) string { return "Log " + v.query("stream") },
		head:  logHead,
		body:  logBody,
		every: often,
		gets:  map[string]func(http.ResponseWriter, *visit){"/console/log/download": downloadLog},
	}
}

func logHead(v *visit) (markup.Node, error) {
	group, stream := v.query("group"), v.query("stream")
	keep := func(name, value string) markup.Node {
		return markup.E("input", markup.A("type", "hidden"), markup.A("name", name), markup.A("value", value))
	}
	return markup.E("div", markup.Class("tools"),
		markup.E("span", "Group ", link(with("/console/logs", "group", group), group)),
		v.search(fmt.Sprintf("In the last %d lines", linesShown), keep("group", group), keep("stream", stream)),
		link(with("/console/log/download", "group", group, "stream", stream), "Download all"),
	), nil
}

func logBody(v *visit) ([]live.Fragment, error) {
	out, err := ask[cloudwatchlogs.GetLogEventsOutput](v, &cloudwatchlogs.GetLogEventsInput{
		LogGroupName: aws.String(v.query("group")), LogStreamName: aws.String(v.query("stream")), Limit: aws.Int32(linesShown), StartFromHead: aws.Bool(false),
	})
	if err != nil {
		return nil, err
	}
	lines := live.Fragment{
		ID: "lines", End: "</div>",
		HTML: markup.Start("div", markup.ID("lines"), markup.Class("log"), markup.A("role", "log"), markup.A("aria-label", "Lines"), markup.A("tabindex", "0"),
			markup.A("data-follow", "yes")),
	}
	seen := map[string]int{}
	for _, e := range v.linesOf(out.Events) {
		id := lineID(e, seen)
		at := time.UnixMilli(aws.ToInt64(e.Timestamp)).UTC()
		lines.Children = append(lines.Children, live.Fragment{ID: id, HTML: markup.String(markup.E("div", markup.ID(id),
			markup.E("span", markup.A("title", at.Format(time.RFC3339Nano)), at.Format("15:04:05.000")+" "), shortened(aws.ToString(e.Message))))})
	}
	return []live.Fragment{lines}, nil
}

// linesOf returns the last lines that are searched for, as many as are shown.
func (v *visit) linesOf(events []types.OutputLogEvent) (lines []types.OutputLogEvent) {
	bytes := 0
	for _, e := range slices.Backward(events) {
		if !v.matches(aws.ToString(e.Message)) {
			continue
		}
		if bytes += min(len(aws.ToString(e.Message)), lineShown); bytes > bytesShown {
			break
		}
		lines = append(lines, e)
	}
	slices.Reverse(lines)
	return lines
}

// shortened is a line, or the beginning of a long one.
func shortened(line string) string {
	if len(line) <= lineShown {
		return line
	}
	return fmt.Sprintf("%s … (%d bytes in all)", strings.ToValidUTF8(line[:lineShown], ""), len(line))
}

// lineID names a line by what it is. Lines that are the same are numbered.
func lineID(e types.OutputLogEvent, seen map[string]int) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%d %d %s", aws.ToInt64(e.Timestamp), aws.ToInt64(e.IngestionTime), aws.ToString(e.Message))
	id := fmt.Sprintf("l-%x", h.Sum64())
	seen[id]++
	return fmt.Sprintf("%s-%d", id, seen[id])
}

// downloadLog answers with a stream's lines as they are, each after its time.
func downloadLog(w http.ResponseWriter, v *visit) {
	in := &cloudwatchlogs.GetLogEventsInput{
		LogGroupName: aws.String(v.query("group")), LogStreamName: aws.String(v.query("stream")), StartFromHead: aws.Bool(true),
	}
	out, err := ask[cloudwatchlogs.GetLogEventsOutput](v, in)
	if err != nil {
		status, text := sayOf(err)
		v.pages.refuse(w, status, text)
		return
	}
	attach(w, "log.txt")
	b := bufio.NewWriter(w)
	defer b.Flush() //nolint:errcheck // nobody is left to tell
	for err == nil && len(out.Events) > 0 {
		for _, e := range out.Events {
			fmt.Fprintf(b, "%s %s\n", time.UnixMilli(aws.ToInt64(e.Timestamp)).UTC().Format(time.RFC3339Nano), aws.ToString(e.Message)) //nolint:errcheck // as above
		}
		in.NextToken = out.NextForwardToken
		out, err = ask[cloudwatchlogs.GetLogEventsOutput](v, in)
	}
}

// attach has the browser save what is answered, whatever it is.
func attach(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Type", "application/octet-stream")
	w.Header().Set("Content-Disposition", "attachment; filename*=UTF-8''"+escapeName(name))
}

// escapeName writes a file's name for a header.
func escapeName(name string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' || c == '_' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
