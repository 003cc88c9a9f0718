package awslogs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"

	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/runtime"
)

// cloud is CloudWatch Logs: groups of streams of messages.
type cloud struct {
	mu      sync.Mutex
	groups  map[string]map[string][]string
	puts    []put
	fail    []error // of the next calls of PutLogEvents
	regions map[string]bool
}

type put struct {
	at       time.Time
	messages int
	bytes    int
}

func newCloud(groups ...string) *cloud {
	c := &cloud{groups: map[string]map[string][]string{}, regions: map[string]bool{}}
	for _, g := range groups {
		c.groups[g] = map[string][]string{}
	}
	return c
}

// recordRegion notes the region of a call.
func (c *cloud) recordRegion(options []func(*cloudwatchlogs.Options)) {
	o := cloudwatchlogs.Options{Region: "us-east-1"}
	for _, f := range options {
		f(&o)
	}
	c.regions[o.Region] = true
}

func (c *cloud) CreateLogGroup(
	_ context.Context, in *cloudwatchlogs.CreateLogGroupInput, o ...func(*cloudwatchlogs.Options),
) (*cloudwatchlogs.CreateLogGroupOutput, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recordRegion(o)
	if c.groups[*in.LogGroupName] != nil {
		return nil, &types.ResourceAlreadyExistsException{}
	}
	c.groups[*in.LogGroupName] = map[string][]string{}
	return nil, nil
}

func (c *cloud) CreateLogStream(
	_ context.Context, in *cloudwatchlogs.CreateLogStreamInput, o ...func(*cloudwatchlogs.Options),
) (*cloudwatchlogs.CreateLogStreamOutput, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recordRegion(o)
	g := c.groups[*in.LogGroupName]
	if g == nil {
		return nil, &types.ResourceNotFoundException{}
	}
	if g[*in.LogStreamName] != nil {
		return nil, &types.ResourceAlreadyExistsException{}
	}
	g[*in.LogStreamName] = []string{}
	return nil, nil
}

func (c *cloud) PutLogEvents(
	_ context.Context, in *cloudwatchlogs.PutLogEventsInput, o ...func(*cloudwatchlogs.Options),
) (*cloudwatchlogs.PutLogEventsOutput, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recordRegion(o)
	if len(c.fail) > 0 {
		err := c.fail[0]
		c.fail = c.fail[1:]
		return nil, err
	}
	stream, ok := c.groups[*in.LogGroupName][*in.LogStreamName]
	if !ok {
		return nil, &types.ResourceNotFoundException{}
	}
	p := put{at: time.Now(), messages: len(in.LogEvents)}
	for i, e := range in.LogEvents {
		if *e.Message == "" || i > 0 && *e.Timestamp < *in.LogEvents[i-1].Timestamp {
			return nil, &types.InvalidParameterException{}
		}
		p.bytes += len(*e.Message) + eventBytes
		stream = append(stream, *e.Message)
	}
	c.groups[*in.LogGroupName][*in.LogStreamName] = stream
	c.puts = append(c.puts, p)
	return nil, nil
}

// printed is a runtime with one container, which prints lines with delays. Only Logs is ever called.
type printed struct {
	runtime.Runtime
	lines []line
}

type line struct {
	after time.Duration // since the line before
	text  string
}

func (p *printed) Logs(ctx context.Context, _, cursor string, _ bool, emit func(runtime.Line) error) error {
	from := 0
	fmt.Sscan(cursor, &from) //nolint:errcheck // an empty cursor is the beginning
	for i, l := range p.lines {
		if i < from {
			continue
		}
		select {
		case <-time.After(l.after):
		case <-ctx.Done():
			return ctx.Err()
		}
		if err := emit(runtime.Line{At: time.Now(), Text: l.text, Cursor: fmt.Sprint(i + 1)}); err != nil {
			return err
		}
	}
	return nil
}

func lines(texts ...string) *printed {
	p := &printed{}
	for _, t := range texts {
		p.lines = append(p.lines, line{0, t})
	}
	return p
}

func source(p *printed, options map[string]string) *engine.LogSource {
	o := map[string]string{"awslogs-group": "g", "awslogs-stream-prefix": "p"}
	for k, v := range options {
		o[k] = v
	}
	return &engine.LogSource{
		Driver:    "awslogs",
		Options:   o,
		TaskArn:   "arn:aws:ecs:us-east-1:0:task/default/t1",
		Container: "c",
		ID:        "t1-c",
		Output:    p,
	}
}

func quiet() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// ship prepares and ships a container's output from a cursor, and returns the last saved cursor.
func ship(t *testing.T, c *cloud, s *engine.LogSource, cursor string) string {
	t.Helper()
	d := New(c, false, quiet())
	if _, err := d.Prepare(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	if err := d.Ship(t.Context(), s, cursor, func(at string) { cursor = at }); err != nil {
		t.Fatal(err)
	}
	return cursor
}

func TestStreamNames(t *testing.T) {
	for _, c := range []struct{ name, prefix, stream, want string }{
		{"prefix", "p", "", "p/c/t1"},
		{"no prefix", "", "", "t1-c"},
		{"its own", "p", "mine", "mine"},
	} {
		s := source(lines(), map[string]string{"awslogs-stream-prefix": c.prefix, "awslogs-stream": c.stream})
		if got := New(nil, false, quiet()).destination(s); got.group != "g" || got.stream != c.want {
			t.Errorf("%s: %s %s", c.name, got.group, got.stream)
		}
	}
}

func TestPrepare(t *testing.T) {
	for _, c := range []struct {
		name    string
		groups  []string
		strict  bool
		options map[string]string
		noted   bool
		fails   bool
	}{
		{"a group that is there", []string{"g"}, true, nil, false, false},
		{"no group", nil, false, nil, true, false},
		{"no group, strict", nil, true, nil, false, true},
		{"no group, strict, asked for", nil, true, map[string]string{"awslogs-create-group": "true"}, false, false},
		{"no group named", nil, false, map[string]string{"awslogs-group": ""}, false, true},
		{"a bad pattern", []string{"g"}, false, map[string]string{"awslogs-multiline-pattern": "("}, false, true},
		{"two patterns", []string{"g"}, false, map[string]string{
			"awslogs-multiline-pattern": "x", "awslogs-datetime-format": "y",
		}, false, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			cl := newCloud(c.groups...)
			note, err := New(cl, c.strict, quiet()).Prepare(t.Context(), source(lines(), c.options))
			if (err != nil) != c.fails || (note != "") != c.noted {
				t.Fatalf("note %q, error %v", note, err)
			}
			if _, made := cl.groups["g"]["p/c/t1"]; made == c.fails {
				t.Errorf("the stream was made: %v", made)
			}
		})
	}
}

func TestLinesBecomeEvents(t *testing.T) {
	stack := []string{"2026-11-21 10:00:00 first", "  at a", "  at b", "2026-11-21 10:00:01 second", "", "2026-11-21 10:00:02 third"}
	joined := []string{"2026-11-21 10:00:00 first\n  at a\n  at b", "2026-11-21 10:00:01 second\n", "2026-11-21 10:00:02 third"}
	long := strings.Repeat("é", maxEvent/2+1)
	for _, c := range []struct {
		name    string
		options map[string]string
		in      []string
		want    []string
	}{
		{"one each, and no empty ones", nil, []string{"a", "", "b"}, []string{"a", "b"}},
		{"a pattern", map[string]string{"awslogs-multiline-pattern": `^\d{4}-`}, stack, joined},
		{"a time format", map[string]string{"awslogs-datetime-format": "%Y-%m-%d %H:%M:%S"}, stack, joined},
		{"a long one is cut between characters", nil, []string{long}, []string{long[:maxEvent], long[maxEvent:]}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cl := newCloud("g")
				at := ship(t, cl, source(lines(c.in...), c.options), "")
				got := cl.groups["g"]["p/c/t1"]
				if !slices.Equal(got, c.want) {
					t.Errorf("got %.200q", got)
				}
				for _, m := range got {
					if !utf8.ValidString(m) {
						t.Error("half a character")
					}
				}
				if want := fmt.Sprint(len(c.in)); at != want {
					t.Errorf("cursor %s, want %s", at, want)
				}
			})
		})
	}
}

func TestOpenEventIsFlushedInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := newCloud("g")
		p := &printed{lines: []line{{0, "START"}, {0, "more"}, {time.Minute, "START again"}}}
		ship(t, cl, source(p, map[string]string{"awslogs-multiline-pattern": "^START"}), "")
		if len(cl.puts) != 2 || cl.groups["g"]["p/c/t1"][0] != "START\nmore" {
			t.Errorf("puts %+v", cl.puts)
		}
	})
}

func TestBatches(t *testing.T) {
	big := strings.Repeat("x", 100<<10)
	var many, heavy []string
	for range maxEvents + 1 {
		many = append(many, "x")
	}
	for range 25 {
		heavy = append(heavy, big)
	}
	for name, in := range map[string][]string{"many": many, "heavy": heavy} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cl := newCloud("g")
				ship(t, cl, source(lines(in...), nil), "")
				if len(cl.puts) < 2 || len(cl.groups["g"]["p/c/t1"]) != len(in) {
					t.Errorf("%d puts", len(cl.puts))
				}
				for _, p := range cl.puts {
					if p.messages > maxEvents || p.bytes > maxBytes {
						t.Errorf("a batch of %+v", p)
					}
				}
			})
		})
	}
}

func TestFirstFlushComesSooner(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &printed{}
		for range 50 {
			p.lines = append(p.lines, line{100 * time.Millisecond, "x"})
		}
		cl, began := newCloud("g"), time.Now()
		ship(t, cl, source(p, nil), "")
		if first := cl.puts[0].at.Sub(began); first != 300*time.Millisecond {
			t.Errorf("the first after %v", first)
		}
		if n := len(cl.puts); n < 5 || n > 6 {
			t.Errorf("%d puts in five seconds", n)
		}
	})
}

func TestFailures(t *testing.T) {
	down := errors.New("connection refused")
	throttled := &types.ThrottlingException{}
	for _, c := range []struct {
		name string
		fail []error
		want []string
	}{
		{"down", []error{down, down, down}, []string{"a", "b"}},
		{"throttled", []error{throttled, throttled}, []string{"a", "b"}},
		{"refused", []error{&types.InvalidParameterException{}}, []string{"b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cl := newCloud("g")
				cl.fail = c.fail
				at := ship(t, cl, source(&printed{lines: []line{{0, "a"}, {time.Minute, "b"}}}, nil), "")
				if got := cl.groups["g"]["p/c/t1"]; !slices.Equal(got, c.want) || at != "2" {
					t.Errorf("got %v, cursor %s", got, at)
				}
			})
		})
	}
}

func TestDeletedStreamIsRecreated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := newCloud("g")
		go func() {
			time.Sleep(30 * time.Second)
			cl.mu.Lock()
			defer cl.mu.Unlock()
			delete(cl.groups, "g")
		}()
		ship(t, cl, source(&printed{lines: []line{{0, "a"}, {time.Minute, "b"}}}, nil), "")
		if got := cl.groups["g"]["p/c/t1"]; !slices.Equal(got, []string{"b"}) {
			t.Errorf("got %v", got)
		}
	})
}

func TestResumesFromCursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := newCloud("g")
		if at := ship(t, cl, source(lines("a", "b", "c"), nil), "2"); at != "3" || !slices.Equal(cl.groups["g"]["p/c/t1"], []string{"c"}) {
			t.Errorf("cursor %s, got %v", at, cl.groups)
		}
	})
}

func TestRegion(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cl := newCloud()
		ship(t, cl, source(lines("a"), map[string]string{"awslogs-region": "eu-west-1"}), "")
		if len(cl.regions) != 1 || !cl.regions["eu-west-1"] {
			t.Errorf("called in %v", cl.regions)
		}
	})
}
