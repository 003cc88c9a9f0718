package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
)

// inputs makes inputs with texts, as fetch does.
func inputs(t *testing.T, output bool, texts ...string) []*Input {
	t.Helper()
	dir := t.TempDir()
	var out []*Input
	for i, text := range texts {
		in := &Input{
			ID:           fmt.Sprintf("m%d.0", i),
			MessageID:    fmt.Sprint("m", i),
			ReceiveCount: 2,
			Bucket:       "b",
			Key:          fmt.Sprint("k ", i),
			Size:         int64(len(text)),
		}
		in.Path = filepath.Join(dir, fmt.Sprint("in", i))
		in.ResultDir = filepath.Join(dir, fmt.Sprint(i), "files")
		if output {
			in.Output = filepath.Join(dir, fmt.Sprint(i), "output")
		}
		if err := errors.Join(in.clear(), os.WriteFile(in.Path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		out = append(out, in)
	}
	return out
}

// output returns the command's answer, or its error.
func output(t *testing.T, in *Input, err error) string {
	t.Helper()
	if err != nil {
		return "error: " + err.Error()
	}
	b, err := os.ReadFile(in.Output)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(b))
}

func TestCommand(t *testing.T) {
	for _, c := range []struct {
		name   string
		script string
		stdin  bool
		want   string
	}{
		{"argument", `cat "$0"`, false, "meow"},
		{"standard input", `cat`, true, "meow"},
		{"environment", `echo "$PINTLE_BUCKET/$PINTLE_KEY $PINTLE_MESSAGE_ID $PINTLE_RECEIVE_COUNT"`, false, "b/k 0 m0 2"},
		{"nothing on standard input", `cat; echo end`, false, "end"},
		{"failure", `echo "no image" >&2; exit 3`, false, "error: sh: exit status 3: no image"},
		{"killed", `kill -9 $$`, false, "error: sh: signal: killed"},
		{"an orphan that holds the output", `sleep 600 & echo done`, false, "done"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			in := inputs(t, true, "meow")
			r := &Command{Args: []string{"sh", "-c", c.script}, Stdin: c.stdin, Stdout: io.Discard, Stderr: io.Discard}
			if got := output(t, in[0], r.Run(t.Context(), in)[0]); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
	t.Run("results are nobody's", func(t *testing.T) {
		in := inputs(t, false, "meow")
		var out bytes.Buffer
		r := &Command{Args: []string{"cat"}, Stdout: &out, Stderr: io.Discard}
		if err := r.Run(t.Context(), in)[0]; err != nil || out.String() != "meow" {
			t.Errorf("got %q, %v", out.String(), err)
		}
	})
	t.Run("no such command", func(t *testing.T) {
		in := inputs(t, true, "meow")
		if err := (&Command{Args: []string{"/no/such"}, Stderr: io.Discard}).Run(t.Context(), in)[0]; err == nil {
			t.Error("it ran")
		}
	})
}

// TestCommandIsKilled: when the context ends, the command and its children are killed even if they ignore SIGTERM.
func TestCommandIsKilled(t *testing.T) {
	in := inputs(t, true, "meow")
	pids := filepath.Join(t.TempDir(), "pids")
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		for ctx.Err() == nil {
			if b, err := os.ReadFile(pids); err == nil && bytes.Count(b, []byte("\n")) == 2 {
				cancel()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	const script = `trap "" TERM; sleep 600 & echo $! > $1.new; echo $$ >> $1.new; mv $1.new $1; wait; sleep 600`
	r := &Command{Args: []string{"sh", "-c", script, "sh", pids}, Stderr: io.Discard}
	if err := r.Run(ctx, in)[0]; err == nil {
		t.Error("it succeeded")
	}
	b, err := os.ReadFile(pids)
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range strings.Fields(string(b)) {
		for range 3000 { // a minute
			stat, err := os.ReadFile("/proc/" + pid + "/stat")
			if err != nil || strings.Contains(string(stat), ") Z ") {
				break
			}
			time.Sleep(20 * time.Millisecond)
		}
		var n int
		fmt.Sscan(pid, &n) //nolint:errcheck // the shell wrote a number
		stat, _ := os.ReadFile("/proc/" + pid + "/stat")
		if syscall.Kill(n, 0) == nil && !strings.Contains(string(stat), ") Z ") {
			t.Errorf("process %s still runs", pid)
		}
	}
}

// model is a Python process for mode lines. It does what an input's text says.
const model = `
import json, os, sys
print("the model is loaded")
sys.stdout.flush()
while True:
    batch = []
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    batch.append(json.loads(line))
    while batch[-1]["more"]:
        batch.append(json.loads(sys.stdin.readline()))
    for request in reversed(batch):
        text = open(request["path"]).read()
        answer = {"id": request["id"], "result": {"text": text, "of": len(batch), "process": os.getppid() and os.getpid()}}
        if text == "bad":
            answer = {"id": request["id"], "error": "no image"}
        if text == "crash":
            os.kill(os.getpid(), 9)
        if text == "exit":
            sys.stderr.write("out of memory\n")
            sys.exit(1)
        if text == "stranger":
            answer["id"] = "stranger"
        if text == "garbage":
            print("{garbage")
        if text == "hang":
            import time
            time.sleep(600)
        if text == "long":
            answer["result"] = "x" * (17 << 20)
        print(json.dumps(answer))
        sys.stdout.flush()
`

func newLines(script ...string) *Lines {
	return &Lines{
		Args:   append([]string{"python3", "-c"}, script...),
		Stdout: io.Discard,
		Stderr: io.Discard,
		Log:    slog.New(slog.NewTextHandler(io.Discard, nil)),
	}
}

func TestLines(t *testing.T) {
	l := newLines(model)
	defer l.Close()
	type result struct {
		Text    string
		Of      int // the size of the batch
		Process int
	}
	process := 0
	for _, c := range []struct {
		name  string
		texts []string
		want  []string // texts, or a part of the error
		same  bool     // the process stays for the next case
	}{
		{"one", []string{"a"}, []string{"a"}, true},
		{"a batch", []string{"a", "b", "c"}, []string{"a", "b", "c"}, true},
		{"an error of its own", []string{"a", "bad"}, []string{"a", "no image"}, true},
		{"killed in the middle", []string{"a", "crash", "c"}, []string{"signal: killed", "signal: killed", "c"}, false},
		{"after that", []string{"a"}, []string{"a"}, true},
		{"it ends", []string{"exit"}, []string{"exit status 1: out of memory"}, false},
		{"an answer that nobody asked for", []string{"stranger"}, []string{`with id "stranger"`}, false},
		{"garbage", []string{"garbage"}, []string{`answers none of those`}, false},
		{"a line that is too long", []string{"long"}, []string{"python3"}, false},
		{"and again", []string{"a"}, []string{"a"}, true},
	} {
		in := inputs(t, true, c.texts...)
		errs := l.Run(t.Context(), in)
		for i, want := range c.want {
			got := output(t, in[i], errs[i])
			var r result
			if json.Unmarshal([]byte(got), &r) == nil {
				got = r.Text
				if r.Of != len(c.texts) {
					t.Errorf("%s: it saw a batch of %d", c.name, r.Of)
				}
				if c.same && process != 0 && r.Process != process {
					t.Errorf("%s: process %d, not %d as before", c.name, r.Process, process)
				}
				process = r.Process
			}
			if !strings.Contains(got, want) {
				t.Errorf("%s: got %q, want %q", c.name, got, want)
			}
		}
		if !c.same {
			process = 0
		}
	}
}

func TestLinesTimeout(t *testing.T) {
	l := newLines(model)
	defer l.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	errs := l.Run(ctx, inputs(t, true, "hang"))
	if !errors.Is(errs[0], context.DeadlineExceeded) || l.process != nil {
		t.Errorf("got %v", errs[0])
	}
}

// TestLinesGiveUp: a command that keeps ending without an answer ends the worker.
func TestLinesGiveUp(t *testing.T) {
	l := newLines("exit(1)")
	l.failures = maxFailures - 1
	if err := l.start(); err != nil {
		t.Fatal(err)
	}
	<-l.process.ended
	if err := l.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "5 times in a row") {
		t.Errorf("got %v", err)
	}
	if err := newLines().start(); err != nil { // python3 -c without a script starts, complains and ends
		t.Error(err)
	}
	none := &Lines{Args: []string{"/no/such"}, Stderr: io.Discard}
	if err := none.Ready(t.Context()); err == nil {
		t.Error("a command that is not there has started")
	}
}

// TestLinesWithoutResults: without a place for results, answers are printed.
func TestLinesWithoutResults(t *testing.T) {
	l := newLines(model)
	var out, err bytes.Buffer
	l.Stdout = &out
	l.Stderr = &err
	if errs := l.Run(t.Context(), inputs(t, false, "a")); errs[0] != nil {
		t.Fatal(errs[0])
	}
	l.Close()
	if !strings.Contains(out.String(), `"text":"a"`) && !strings.Contains(out.String(), `"text": "a"`) ||
		!strings.Contains(err.String(), "the model is loaded") {
		t.Errorf("got %q and %q", out.String(), err.String())
	}
}

// TestProcesses runs a whole worker with real processes, in real time.
func TestProcesses(t *testing.T) {
	for name, runner := range map[string]func() Runner{
		"argument": func() Runner { return &Command{Args: []string{"cat"}, Stdout: io.Discard, Stderr: io.Discard} },
		"lines":    func() Runner { return newLines(model) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cloud := newCloud()
			for i := range 20 {
				key := fmt.Sprint(i)
				cloud.objects["b/"+key] = "good"
				if name == "lines" && i == 7 {
					cloud.objects["b/"+key] = "crash"
				}
				cloud.send(put(key))
			}
			o := options(t, cloud, nil)
			o.Runner = runner
			o.Batch = 4
			o.Parallel = 2
			o.MaxReceives = 1
			o.Wait = 0
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
			defer cancel()
			var mu sync.Mutex
			cloud.deleting = func(*stored) {
				mu.Lock()
				defer mu.Unlock()
				if len(cloud.queue) == 1 {
					cancel()
				}
			}
			if _, err := New(o).Run(ctx); err != nil {
				t.Fatal(err)
			}
			done := len(slices.DeleteFunc(cloud.keys(), func(k string) bool { return !strings.HasPrefix(k, "results/") }))
			if done+len(cloud.dead) != 20 || len(cloud.queue) != 0 || name == "lines" && len(cloud.dead) != 1 {
				t.Errorf("%d done, %d dead, %d left", done, len(cloud.dead), len(cloud.queue))
			}
		})
	}
}

func TestEndpoint(t *testing.T) {
	var got []string
	status, answer := http.StatusOK, `{"protection":{"ProtectionEnabled":true}}`
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = append(got, r.Method+" "+r.URL.Path+" "+string(b))
		w.WriteHeader(status)
		io.WriteString(w, answer) //nolint:errcheck // the client would see it
	}))
	defer web.Close()
	e := Endpoint{AgentURI: web.URL + "/api/token"}
	if err := errors.Join(e.Protect(t.Context(), 20*time.Minute), e.Unprotect(t.Context())); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`PUT /api/token/task-protection/v1/state {"ExpiresInMinutes":20,"ProtectionEnabled":true}`,
		`PUT /api/token/task-protection/v1/state {"ProtectionEnabled":false}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	for _, c := range []struct {
		status int
		answer string
		want   string
	}{
		{200, `{"failure":{"Arn":"a","Reason":"TASK_NOT_VALID","Detail":"no service"}}`, "TASK_NOT_VALID no service"},
		{400, `{"error":{"Arn":"a","Code":"AccessDeniedException","Message":"no role"}}`, "AccessDeniedException: no role"},
		{500, `{}`, "500 Internal Server Error"},
		{200, `<html>`, "invalid character"},
	} {
		status, answer = c.status, c.answer
		if err := e.Protect(t.Context(), time.Minute); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", c.answer, err)
		}
	}
}

// service is a service with a queue, and collects the metrics that are put.
type service struct {
	waiting string
	running []int32
	put     []string
}

func (s *service) GetQueueAttributes(
	context.Context, *sqs.GetQueueAttributesInput, ...func(*sqs.Options),
) (*sqs.GetQueueAttributesOutput, error) {
	return &sqs.GetQueueAttributesOutput{Attributes: map[string]string{"ApproximateNumberOfMessages": s.waiting}}, nil
}

func (s *service) DescribeServices(
	context.Context, *ecs.DescribeServicesInput, ...func(*ecs.Options),
) (*ecs.DescribeServicesOutput, error) {
	out := &ecs.DescribeServicesOutput{}
	for _, n := range s.running {
		out.Services = append(out.Services, types.Service{RunningCount: n})
	}
	return out, nil
}

func (s *service) PutMetricData(
	_ context.Context, in *cloudwatch.PutMetricDataInput, _ ...func(*cloudwatch.Options),
) (*cloudwatch.PutMetricDataOutput, error) {
	for _, m := range in.MetricData {
		text := *in.Namespace + " " + *m.MetricName
		for _, d := range m.Dimensions {
			text += " " + *d.Name + "=" + *d.Value
		}
		s.put = append(s.put, fmt.Sprintf("%s %g", text, *m.Value))
	}
	return &cloudwatch.PutMetricDataOutput{}, nil
}

func TestBacklog(t *testing.T) {
	const metric = "Pintle/Worker BacklogPerTask ClusterName=c ServiceName=s QueueName=q "
	for _, c := range []struct {
		name    string
		waiting string
		running []int32
		want    string
	}{
		{"shared by three", "10", []int32{3}, metric + "3.3333333333333335"},
		{"none runs", "10", []int32{0}, metric + "10"},
		{"none waits", "0", []int32{3}, metric + "0"},
		{"no service", "10", nil, ""},
		{"no number", "", []int32{1}, ""},
	} {
		s := &service{waiting: c.waiting, running: c.running}
		b := &Backlog{SQS: s, ECS: s, CloudWatch: s, Queue: "https://host/0/q", QueueName: "q", Cluster: "c", Service: "s"}
		err := b.put(t.Context())
		if got := strings.Join(s.put, ""); got != c.want || (err == nil) != (c.want != "") {
			t.Errorf("%s: got %q, %v", c.name, got, err)
		}
	}
}
