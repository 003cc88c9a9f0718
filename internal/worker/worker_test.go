package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
)

func TestMessages(t *testing.T) {
	const failed = "a message that fails"
	for _, c := range []struct {
		name    string
		body    string
		objects map[string]string
		o       func(*Options)
		results string // KEY=TEXT of each
		left    int    // messages
		dead    int    // messages
		reason  string // part of the dead message's
	}{
		{
			name:    "an object",
			body:    put("cat.jpg"),
			objects: map[string]string{"cat.jpg": "meow"},
			results: "results/r/cat.jpg.out=seen meow",
		},
		{
			name:    "a key with spaces and signs",
			body:    put("a+b/red%2Bgreen+%C3%A4.jpg"),
			objects: map[string]string{"a b/red+green ä.jpg": "x"},
			results: "results/r/a b/red+green ä.jpg.out=seen x",
		},
		{
			name:    "a key that is no file name",
			body:    put("a/.."),
			objects: map[string]string{"a/..": "x"},
			results: "results/r/a/...out=seen x",
		},
		{
			name:    "several records",
			body:    put("1", "2"),
			objects: map[string]string{"1": "one", "2": "two"},
			results: "results/r/1.out=seen one results/r/2.out=seen two",
		},
		{name: "the test of S3", body: `{"Service":"Amazon S3","Event":"s3:TestEvent","Time":"2026-11-21T00:00:00.000Z","Bucket":"b"}`},
		{name: "a removed object", body: strings.Replace(put("gone"), "ObjectCreated:Put", "ObjectRemoved:Delete", 1)},
		{name: "a result", body: put("r/cat.jpg.out"), o: func(o *Options) { o.Results.Bucket = "b" }},
		{
			name:   "results among the inputs",
			body:   put("cat.jpg"),
			o:      func(o *Options) { o.Results = Results{Bucket: "b"} },
			dead:   1,
			reason: "without a prefix",
		},
		{name: "no JSON", body: `{"Records":[{"s3":`, dead: 1, reason: "is no S3 event: unexpected end of JSON input"},
		{name: "another event", body: `{"hello":"world"}`, dead: 1, reason: "no Records"},
		{name: "no key", body: put(""), dead: 1, reason: "Records[0] names no bucket and key"},
		{name: "a key that cannot be decoded", body: put("%zz"), dead: 1, reason: "Records[0] names no bucket and key"},
		{name: "an object that is gone", body: put("gone"), dead: 1, reason: "get s3://b/gone: NoSuchKey"},
		{
			name:    "one of two gone",
			body:    put("gone", "cat.jpg"),
			objects: map[string]string{"cat.jpg": "meow"},
			results: "results/r/cat.jpg.out=seen meow",
			dead:    1,
			reason:  "get s3://b/gone: NoSuchKey",
		},
		{
			name:    "an object that is too large",
			body:    put("large"),
			objects: map[string]string{"large": strings.Repeat("x", 1001)},
			dead:    1,
			reason:  "1001 bytes, more than the 1000",
		},
		{
			name:    "the command fails",
			body:    put(failed),
			objects: map[string]string{failed: "bad"},
			dead:    1,
			reason:  "exit status 1: no image",
		},
		{
			name:    "results that are too large",
			body:    put("blows up"),
			objects: map[string]string{"blows up": "blow"},
			dead:    1,
			reason:  "more than 1000 bytes",
		},
		{
			name:    "results that are no files",
			body:    put("link"),
			objects: map[string]string{"link": "link"},
			dead:    1,
			reason:  "passwd is no plain file",
		},
		{
			name:    "files",
			body:    put("files"),
			objects: map[string]string{"files": "files"},
			results: "results/r/files.out=seen files results/r/files/a/b.txt=b results/r/files/c.txt=c",
		},
		{name: "no dead-letter queue", body: put("gone"), o: func(o *Options) { o.DeadLetterQueue = "" }, left: 1},
		{name: "a message is the input", body: "hello", o: func(o *Options) { o.Bodies = true }, results: "results/r/m0.out=seen hello"},
		{
			name:    "results are nobody's",
			body:    put("cat.jpg"),
			objects: map[string]string{"cat.jpg": "meow"},
			o:       func(o *Options) { o.Results.Bucket = "" },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cloud := newCloud()
				for k, v := range c.objects {
					cloud.objects["b/"+k] = v
				}
				cloud.send(c.body)
				o := options(t, cloud, &fakeCommand{do: func(_ context.Context, in *Input, text string) error {
					switch text {
					case "bad":
						return errors.New("exit status 1: no image")
					case "blow":
						return os.WriteFile(filepath.Join(in.ResultDir, "big"), make([]byte, 1001), 0o600)
					case "link":
						return os.Symlink("/etc/passwd", filepath.Join(in.ResultDir, "passwd"))
					case "files":
						return errors.Join(
							os.Mkdir(filepath.Join(in.ResultDir, "a"), 0o700),
							os.WriteFile(filepath.Join(in.ResultDir, "a/b.txt"), []byte("b"), 0o600),
							os.WriteFile(filepath.Join(in.ResultDir, "c.txt"), []byte("c"), 0o600),
						)
					}
					return nil
				}})
				if c.o != nil {
					c.o(&o)
				}
				work(t, o, 10*time.Minute)
				var results []string
				for _, k := range slices.Sorted(maps.Keys(cloud.objects)) {
					if strings.HasPrefix(k, "results/") {
						results = append(results, k+"="+cloud.objects[k])
					}
				}
				if got := strings.Join(results, " "); got != c.results {
					t.Errorf("results: %s, want %s", got, c.results)
				}
				if len(cloud.queue) != c.left || len(cloud.dead) != c.dead {
					t.Fatalf("%d messages left and %d dead, want %d and %d", len(cloud.queue), len(cloud.dead), c.left, c.dead)
				}
				if c.dead > 0 {
					if reason := aws.ToString(cloud.dead[0].MessageAttributes["Reason"].StringValue); !strings.Contains(reason, c.reason) {
						t.Errorf("reason %q, want %q", reason, c.reason)
					}
				}
			})
		})
	}
}

// TestRetries: failures that may pass are retried as often as the redrive policy says, with growing delays.
func TestRetries(t *testing.T) {
	for _, c := range []struct {
		name   string
		fault  func(*cloud)
		reason string
	}{
		{"S3 refuses objects", func(c *cloud) { c.fail = failing("GetObject", errors.New("AccessDenied")) }, "AccessDenied"},
		{"objects end early", func(c *cloud) { c.truncate = true }, "has 4 bytes, but 2 came"},
		{
			"S3 refuses results",
			func(c *cloud) { c.fail = failing("PutObject", errors.New("SlowDown")) },
			"put s3://results/r/cat.out: SlowDown",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cloud := newCloud()
				cloud.objects["b/cat"] = "meow"
				c.fault(cloud)
				cloud.send(put("cat"))
				work(t, options(t, cloud, &fakeCommand{}), 10*time.Minute)
				if len(cloud.queue) != 0 || len(cloud.dead) != 1 || cloud.count("ReceiveMessage") < 3 {
					t.Fatalf("%d messages left, %d dead", len(cloud.queue), len(cloud.dead))
				}
				a := cloud.dead[0].MessageAttributes
				if got := aws.ToString(a["Reason"].StringValue); !strings.Contains(got, c.reason) ||
					*a["ReceiveCount"].StringValue != "3" || *a["SourceMessageId"].StringValue != "m0" {
					t.Errorf("reason %q, attributes %v", got, a)
				}
				if cloud.count("ChangeMessageVisibility 5") != 1 || cloud.count("ChangeMessageVisibility 10") != 1 {
					t.Errorf("delays: %q", cloud.calls)
				}
			})
		})
	}
}

func failing(call string, err error) func(string) error {
	return func(name string) error {
		if name == call {
			return err
		}
		return nil
	}
}

// TestMissingTempDir: while there's no place for files, messages come again; they're processed once there is one.
func TestMissingTempDir(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := newCloud()
		cloud.objects["b/cat"] = "meow"
		cloud.send(put("cat"))
		o := options(t, cloud, &fakeCommand{})
		o.MaxReceives = 100
		dir := ""
		cloud.fail = func(string) error { // the worker creates its directory before its first call
			if dir == "" {
				dirs, err := filepath.Glob(filepath.Join(o.TempDir, "*"))
				if err != nil || len(dirs) != 1 {
					t.Errorf("got %v, %v", dirs, err)
					return nil
				}
				dir = dirs[0]
				go func() {
					time.Sleep(time.Minute)
					os.Mkdir(dir, 0o700) //nolint:errcheck // the results would be missing
				}()
				return os.Remove(dir)
			}
			return nil
		}
		work(t, o, 10*time.Minute)
		if len(cloud.queue) != 0 || len(cloud.dead) != 0 || cloud.objects["results/r/cat.out"] != "seen meow" {
			t.Errorf("%d messages left, %d dead, objects %v", len(cloud.queue), len(cloud.dead), cloud.objects)
		}
	})
}

func TestDeadLetterAttributes(t *testing.T) {
	for _, c := range []struct {
		attributes int
		dead       int
		has        []string
	}{
		{0, 1, []string{"Reason", "ReceiveCount", "SourceMessageId", "SourceQueueUrl"}},
		{8, 1, []string{"Reason", "SourceMessageId"}},
		{10, 0, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			cloud := newCloud()
			cloud.send("no event")
			cloud.queue[0].attributes = map[string]types.MessageAttributeValue{}
			for i := range c.attributes {
				cloud.queue[0].attributes[fmt.Sprint("a", i)] = types.MessageAttributeValue{
					DataType:    aws.String("String"),
					StringValue: aws.String("v"),
				}
			}
			work(t, options(t, cloud, &fakeCommand{}), time.Minute)
			if len(cloud.dead) != c.dead || len(cloud.queue) != 1-c.dead {
				t.Fatalf("%d attributes: %d dead, %d left", c.attributes, len(cloud.dead), len(cloud.queue))
			}
			if c.dead == 0 {
				return
			}
			got := slices.Sorted(maps.Keys(cloud.dead[0].MessageAttributes))
			own := slices.DeleteFunc(slices.Clone(got), func(k string) bool { return k[0] == 'a' })
			if !slices.Equal(own, c.has) || len(got) != c.attributes+len(c.has) {
				t.Errorf("%d attributes: %q", c.attributes, got)
			}
		})
	}
}

func TestFIFO(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := newCloud()
		cloud.send("no event")
		o := options(t, cloud, &fakeCommand{})
		o.DeadLetterQueue = "dead.fifo"
		work(t, o, time.Minute)
		if m := cloud.dead[0]; aws.ToString(m.MessageGroupId) != "g" || aws.ToString(m.MessageDeduplicationId) != "m0" {
			t.Errorf("got %v", m)
		}
	})
}

// TestVisibility: a message stays invisible as long as the command works, even if SQS doesn't always answer.
func TestVisibility(t *testing.T) {
	for _, faulty := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			cloud := newCloud()
			cloud.objects["b/1"] = "one"
			cloud.objects["b/2"] = "two"
			cloud.send(put("1"), put("2"))
			n := 0
			cloud.fail = func(call string) error {
				if strings.HasPrefix(call, "ChangeMessageVisibilityBatch") {
					if n++; faulty && n%3 != 0 { // two of three calls fail
						return errors.New("ServiceUnavailable")
					}
				}
				return nil
			}
			o := options(t, cloud, &fakeCommand{takes: 5 * time.Hour})
			o.Batch = 2
			work(t, o, 10*time.Hour+time.Minute) // the command runs twice, one after the other
			if len(cloud.queue) != 0 || cloud.count("GetObject") != 2 {
				t.Errorf("%d messages left; %d objects fetched", len(cloud.queue), cloud.count("GetObject"))
			}
		})
	}
}

// TestParallelLoops: while one loop has a message, the others don't get it.
func TestParallelLoops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := newCloud()
		cloud.objects["b/1"] = "one"
		cloud.send(put("1"))
		runs := 0
		o := options(t, cloud, &fakeCommand{takes: time.Hour, do: func(context.Context, *Input, string) error { runs++; return nil }})
		o.Parallel = 3
		work(t, o, 3*time.Hour)
		if runs != 1 || len(cloud.queue) != 0 {
			t.Errorf("%d runs, %d left", runs, len(cloud.queue))
		}
	})
}

// TestFailureInABatch: a failed message becomes visible again while the rest of its batch is still being processed.
func TestFailureInABatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := newCloud()
		cloud.objects["b/bad"] = "bad"
		cloud.objects["b/long"] = "long"
		cloud.send(put("bad"), put("long"))
		o := options(t, cloud, &fakeCommand{do: func(ctx context.Context, _ *Input, text string) error {
			if text == "bad" {
				return errors.New("exit status 1")
			}
			sleep(ctx, time.Hour)
			return nil
		}})
		o.Parallel = 2
		o.Batch = 2
		o.Visibility = 10 * time.Second
		o.StopTimeout = 2 * time.Hour
		go func() {
			time.Sleep(5 * time.Minute)
			cloud.mu.Lock()
			defer cloud.mu.Unlock()
			if len(cloud.dead) != 1 || len(cloud.queue) != 1 {
				t.Errorf("%d dead, %d left", len(cloud.dead), len(cloud.queue))
			}
		}()
		work(t, o, 6*time.Minute)
	})
}

// TestTwelveHours: work is aborted when SQS's limit on visibility is near, and its message is settled.
func TestTwelveHours(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := newCloud()
		cloud.objects["b/1"] = "one"
		cloud.send(put("1"))
		work(t, options(t, cloud, &fakeCommand{takes: 13 * time.Hour}), 40*time.Hour)
		if len(cloud.dead) != 1 || len(cloud.queue) != 0 {
			t.Fatalf("%d dead, %d left", len(cloud.dead), len(cloud.queue))
		}
		if got := *cloud.dead[0].MessageAttributes["Reason"].StringValue; !strings.Contains(got, "12h0m0s") {
			t.Errorf("reason %q", got)
		}
	})
}

func TestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := newCloud()
		cloud.objects["b/1"] = "one"
		cloud.send(put("1"))
		o := options(t, cloud, &fakeCommand{takes: time.Hour})
		o.Timeout = time.Minute
		work(t, o, time.Hour)
		if len(cloud.dead) != 1 || !strings.Contains(*cloud.dead[0].MessageAttributes["Reason"].StringValue, "not done within 1m0s") {
			t.Errorf("dead: %v", cloud.dead)
		}
	})
}

// TestDrain: after a stop, the worker finishes what it can and gives back the rest.
func TestDrain(t *testing.T) {
	for _, c := range []struct {
		name      string
		takes     time.Duration
		results   int
		givenBack int64
		took      time.Duration
	}{
		{"short work", 20 * time.Second, 1, 0, 10 * time.Second},
		{"long work", time.Hour, 0, 1, 25 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cloud := newCloud()
				cloud.objects["b/1"] = "one"
				cloud.objects["b/2"] = "two"
				cloud.send(put("1"))
				go func() {
					time.Sleep(11 * time.Second) // after the stop
					cloud.send(put("2"))
				}()
				givenBack, took := work(t, options(t, cloud, &fakeCommand{takes: c.takes}), 10*time.Second)
				if took != c.took || givenBack != c.givenBack {
					t.Errorf("it took %s and gave %d back", took, givenBack)
				}
				if n := len(cloud.keys()) - 2; n != c.results {
					t.Errorf("%d results", n)
				}
				synctest.Wait()
				for _, s := range cloud.queue {
					if s.visible.After(time.Now()) || s.id != "m0" && s.receives > 0 {
						t.Errorf("message %s is invisible, or was received", s.id)
					}
				}
			})
		})
	}
}

// TestStoppedWhileReceiving: messages that are on their way when the worker is stopped are processed, not left invisible.
func TestStoppedWhileReceiving(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := newCloud()
		cloud.latency = 100 * time.Millisecond
		cloud.objects["b/1"] = "one"
		cloud.send(put("1"))
		if _, took := work(t, options(t, cloud, &fakeCommand{}), 50*time.Millisecond); took > time.Second {
			t.Errorf("it took %s", took)
		}
		if len(cloud.queue) != 0 || len(cloud.keys()) != 2 {
			t.Errorf("there are %d messages and the objects %v", len(cloud.queue), cloud.keys())
		}
	})
}

// TestBatches: a command that takes several inputs gets as many as fit. If it breaks on them, it gets each one alone.
func TestBatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cloud := newCloud()
		for _, k := range []string{"1", "2", "3", "4"} {
			cloud.objects["b/"+k] = strings.Repeat(k, 400)
			cloud.send(put(k))
		}
		var ran []string
		command := &fakeCommand{batches: true, ran: &ran}
		o := options(t, cloud, command)
		o.Batch = 10
		o.MaxOutput = 10000
		o.Runner = func() Runner { return &breaking{fakeCommand: command, key: "2"} }
		o.MaxReceives = 1
		work(t, o, time.Minute)
		if got := strings.Join(ran, " "); got != "| 1 2 | 1 | 2 | 3 4" {
			t.Errorf("ran %s", got)
		}
		if len(cloud.dead) != 1 || !strings.Contains(*cloud.dead[0].MessageBody, `"2"`) || len(cloud.queue) != 0 {
			t.Errorf("dead: %v", cloud.dead)
		}
	})
}

// breaking breaks on all inputs of a run if one of them has the key.
type breaking struct {
	*fakeCommand
	key string
}

func (b *breaking) Run(ctx context.Context, inputs []*Input) []error {
	errs := b.fakeCommand.Run(ctx, inputs)
	if slices.ContainsFunc(inputs, func(in *Input) bool { return in.Key == b.key }) {
		for i := range errs {
			errs[i] = broken{errors.New("signal: segmentation fault")}
		}
	}
	return errs
}

// fakeProtection records its calls.
type fakeProtection struct {
	began time.Time
	calls []string
	err   error
}

func (p *fakeProtection) Protect(_ context.Context, d time.Duration) error {
	p.calls = append(p.calls, fmt.Sprintf("%s protect %s", time.Since(p.began), d))
	return p.err
}

func (p *fakeProtection) Unprotect(context.Context) error {
	p.calls = append(p.calls, fmt.Sprintf("%s clear", time.Since(p.began)))
	return p.err
}

// TestProtection: the task is protected before and while it works, and not while it's idle.
func TestProtection(t *testing.T) {
	for _, c := range []struct {
		name  string
		takes time.Duration
		work  time.Duration
		err   error
		want  []string
	}{
		{"short work", time.Second, time.Minute, nil, []string{"10s protect 20m0s", "16s clear"}},
		{
			"long work", 25 * time.Minute, time.Hour, nil,
			[]string{"10s protect 20m0s", "10m10s protect 20m0s", "20m10s protect 20m0s", "25m15s clear"},
		},
		{"stopped while it works", time.Minute, 12 * time.Second, nil, []string{"10s protect 20m0s", "37s clear"}},
		{
			"it is refused", 150 * time.Second, time.Hour, errors.New("TASK_NOT_VALID"),
			[]string{"10s protect 20m0s", "1m10s protect 20m0s", "2m10s protect 20m0s"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cloud := newCloud()
				cloud.objects["b/1"] = "one"
				p := &fakeProtection{began: time.Now(), err: c.err}
				go func() {
					time.Sleep(9500 * time.Millisecond) // the guard updates every second
					cloud.send(put("1"))
				}()
				o := options(t, cloud, &fakeCommand{takes: c.takes})
				o.Protection = p
				work(t, o, c.work)
				if !slices.Equal(p.calls, c.want) {
					t.Errorf("got %q, want %q", p.calls, c.want)
				}
			})
		})
	}
}
