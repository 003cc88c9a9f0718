package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"

	"github.com/pintle/pintle/internal/file"
)

// TestUsageErrors: an invalid command line is refused and exits with 2.
func TestUsageErrors(t *testing.T) {
	t.Setenv("QUEUE_URL", "")
	dir := t.TempDir()
	t.Setenv("HOME", dir)
	ended, end := context.WithCancel(t.Context()) // a control plane that starts all the same should end
	end()
	for want, args := range map[string]string{
		`unknown command "bogus" for "pintle"`:                 "bogus",
		"unknown flag: --bogus":                                "up --bogus",
		`unknown command "nosuch" for "pintle"`:                "help nosuch",
		`unknown command "bsh" for "pintle completion"`:        "completion bsh",
		`unknown command "bogus" for "pintle gpus"`:            "help gpus bogus",
		"unexpected argument extra":                            "up extra",
		"unexpected argument b":                                "logs a b",
		"unexpected argument other":                            "gpus other",
		"expected a task":                                      "logs",
		"expected tasks":                                       "stop",
		"expected an image":                                    "run --gpus 1",
		"expected the id of a GPU":                             "gpus clear",
		"expected launch, terminate or list":                   "machine",
		"flash: it must be launch or":                          "machine flash",
		`required flag(s) "trace", "policy" not set`:           "sim",
		"which command?":                                       "worker --queue-url q --",
		"--batch 11: it must be from 1 to 10":                  "worker --queue-url q --batch 11 cmd",
		"it must be docker or oci or process":                  "agent --runtime podman",
		"it must be faithful or fast":                          "serve --reaction=",
		"it must be task or gpu":                               "metrics --by task,node",
		`invalid duration "soon"`:                              "up --lost soon",
		`"x" is not of the form NAME=VALUE`:                    "agent --attribute a=b;x",
		`"x" for "--gpus"`:                                     "run img --gpus x",
		`"-1" for "--gpus" flag: it must be a whole number`:    "run img --gpus -1",
		"it must be a URL such as http://":                     "ps --endpoint 127.0.0.1:4566",
		`"nosuch" for "--endpoint"`:                            "env --endpoint nosuch",
		`"10.0.0.1:4566" for "--endpoint"`:                     "agent --endpoint 10.0.0.1:4566",
		"--lost -1s: it must not be negative":                  "up --lost -1s",
		"--settle -1s: it must not be negative":                "serve --settle -1s",
		"--account 12: an account's id has 12 digits":          "serve --account 12",
		"it is a directory":                                    "sim --trace " + dir,
		"no such file":                                         "sim --policy " + dir + "/none",
		"it is no directory":                                   "worker --temp-dir main.go",
		`unknown instance type "nosuch"`:                       "up --instances nosuch",
		"--listen nosuch: it must be an address and a port":    "serve --listen nosuch",
		"--listen x: it must be an address and a port":         "up --listen x --runtime process",
		"--webhook-to:":                                        "serve --webhook-to nosuch",
		"--tls-certificate and --tls-key go together":          "serve --tls-key main.go",
		"--uses must be from 1 to 10000":                       "token --uses 0",
		"--expires must be":                                    "token --expires 0s",
		"invalid suffix":                                       "worker --max-input 1x",
		"it is no size":                                        "worker --max-output 0",
		"flag needs an argument: --region":                     "up --region",
		`"maybe" for "--no-gpu-metrics" flag: strconv.ParseBo`: "up --no-gpu-metrics=maybe",
	} {
		root := newRoot()
		root.SetArgs(strings.Fields(args))
		cmd, err := root.ExecuteContextC(ended)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", args, err, want)
		} else if code := explain(cmd, err); code != 2 {
			t.Errorf("%s exits with %d", args, code)
		}
	}
}

// TestSimilarFlags: a flag of which only a part was given, or one letter too many, is named.
func TestSimilarFlags(t *testing.T) {
	for args, want := range map[string]string{
		"up --instance x":       ". There is --instances",
		"worker --queue q cmd":  ". There is --queue-url",
		"logs --following task": ". There is --follow",
		"up --bogus":            "",
		"up --region":           "",
		"up -x":                 "",
	} {
		root := newRoot()
		root.SetArgs(strings.Fields(args))
		cmd, err := root.ExecuteContextC(t.Context())
		if got := similarFlags(cmd, err); got != want {
			t.Errorf("%s: %v%s, want %q", args, err, got, want)
		}
	}
}

// TestExitCodes: an error of the verb itself isn't reported as a mistake on the command line.
func TestExitCodes(t *testing.T) {
	for want, err := range map[int]error{0: nil, 1: errors.New("some"), 2: exitCode(2), 137: exitCode(137)} {
		cmd := newVerb("verb", "A verb.", noArguments, func(context.Context) error { return err })
		cmd.SilenceErrors = true
		cmd.SilenceUsage = true
		cmd.SetArgs(nil)
		if code := explain(cmd.ExecuteContextC(t.Context())); code != want {
			t.Errorf("%v: exits with %d, want %d", err, code, want)
		}
	}
}

// parseAs parses a command line without running the verb.
func parseAs(t *testing.T, verb *cobra.Command, args ...string) {
	t.Helper()
	verb.RunE = func(*cobra.Command, []string) error { return nil }
	verb.SetArgs(args)
	if err := verb.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%q: %v", args, err)
	}
}

// TestRunArguments: flags may come before or right after the image. What follows belongs to the command, including flags.
func TestRunArguments(t *testing.T) {
	for _, x := range []struct {
		args    []string
		gpus    int
		env     map[string]string
		command []string
	}{
		{args: []string{"img"}},
		{args: []string{"--gpus", "2", "img", "python", "--gpus", "3"}, gpus: 2, command: []string{"python", "--gpus", "3"}},
		{args: []string{"img", "--gpus=2", "-e", "A=1", "python"}, gpus: 2, env: map[string]string{"A": "1"}, command: []string{"python"}},
		{args: []string{"-e", `A=1;B=x\;y`, "--env", "C=", "img"}, env: map[string]string{"A": "1", "B": "x;y", "C": ""}},
		{args: []string{"img", "--unknown"}, command: []string{"--unknown"}},
		{args: []string{"img", "--", "--gpus"}, command: []string{"--", "--gpus"}},
	} {
		c := &runCmd{}
		parseAs(t, c.verb(), x.args...)
		if c.Image != "img" || c.GPUs != x.gpus || c.Memory != 512 || !reflect.DeepEqual(c.Env, x.env) ||
			strings.Join(c.Command, " ") != strings.Join(x.command, " ") {
			t.Errorf("%q: %+v", x.args, c)
		}
	}
}

// TestEnvironment: a flag overrides its environment variable, which overrides the default. An empty variable counts too.
func TestEnvironment(t *testing.T) {
	t.Setenv("ECS_CLUSTER", "from-environment")
	t.Setenv("AWS_ENDPOINT_URL", "")
	t.Setenv("QUEUE_URL", "https://queue")
	c := &psCmd{}
	parseAs(t, c.verb())
	if c.Cluster != "from-environment" || c.Endpoint != "" {
		t.Errorf("%+v", c)
	}
	c = &psCmd{}
	parseAs(t, c.verb(), "--cluster", "given")
	if c.Cluster != "given" {
		t.Errorf("%+v", c)
	}
	w := &workerCmd{}
	parseAs(t, w.verb(), "--", "cmd", "--batch", "3")
	if w.Queue != "https://queue" || w.Batch != 1 || strings.Join(w.Command, " ") != "cmd --batch 3" {
		t.Errorf("%+v", w)
	}
}

// TestHome: ~ is $HOME, or else the password file's home, and never a directory of that name in the working directory.
func TestHome(t *testing.T) {
	t.Chdir(t.TempDir())
	for given, want := range map[string]string{"/home/ada": "/home/ada/.pintle", "": "", "relative": ""} {
		t.Setenv("HOME", given)
		got := expand("~/.pintle")
		if want != "" && got != want || strings.Contains(got, "~") || strings.Contains(got, "relative") || !filepath.IsAbs(got) {
			t.Errorf("with HOME=%q: %s, want %s", given, got, want)
		}
	}
}

// TestMakeData: where the data directory can't be, the error says how to choose another.
func TestMakeData(t *testing.T) {
	taken := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(taken, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	root := newRoot()
	root.SetArgs([]string{"up", "--runtime", "process", "--instances", "c5.large", "--data", filepath.Join(taken, "data")})
	for verb, err := range map[string]error{"agent": makeData(filepath.Join(taken, "data")), "up": root.ExecuteContext(t.Context())} {
		if err == nil || !strings.Contains(err.Error(), "the data directory:") || !strings.Contains(err.Error(), "--data") {
			t.Errorf("%s: got %v", verb, err)
		}
	}
}

// TestCheckData: a directory of others is refused, and stays as it is.
func TestCheckData(t *testing.T) {
	dir := t.TempDir()
	for name, ours := range map[string]bool{"": true, "lost+found": true, "pintle.lock": true, "state.db": true, "agent": true, "letter": false} {
		data := filepath.Join(dir, "with-"+name)
		if err := os.MkdirAll(filepath.Join(data, name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := checkData(data); (err == nil) != ours {
			t.Errorf("with %q in it: %v", name, err)
		}
	}
	if err := checkData(filepath.Join(dir, "new")); err != nil {
		t.Error(err)
	}
}

// TestStrangersData: a directory of others is neither checked, which would close it to them, nor set aside.
func TestStrangersData(t *testing.T) {
	ended, end := context.WithCancel(t.Context())
	end()
	parent := t.TempDir()
	data := filepath.Join(parent, "work")
	if err := os.Mkdir(data, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "letter"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"check", "check --repair", "up --fresh --runtime process --listen 127.0.0.1:0 --metrics="} {
		root := newRoot()
		root.SetArgs(append(strings.Fields(args), "--data", data))
		if err := root.ExecuteContext(ended); err == nil || !strings.Contains(err.Error(), "--data") {
			t.Errorf("%s: %v", args, err)
		}
	}
	info, err := os.Stat(data)
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("it is %v, %v", info, err)
	}
	for dir, want := range map[string]int{parent: 1, data: 1} {
		if entries, err := os.ReadDir(dir); err != nil || len(entries) != want {
			t.Errorf("%s has %v, %v", dir, entries, err)
		}
	}
}

// TestDataInUse: what another control plane is using is left alone, and nothing is said of its nodes.
func TestDataInUse(t *testing.T) {
	c := upCmd{serverFlags: serverFlags{Data: t.TempDir()}}
	lock, err := file.Lock(filepath.Join(c.Data, "pintle.lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := c.prepareData(0); !errors.Is(err, file.ErrLocked) || !strings.Contains(err.Error(), "--data") {
		t.Errorf("got %v", err)
	}
}

// TestNodeInUse: a second agent is told that its directory has one.
func TestNodeInUse(t *testing.T) {
	c := agentCmd{Data: t.TempDir()}
	lock, err := c.lock()
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if _, err := c.lock(); !errors.Is(err, file.ErrLocked) || !strings.Contains(err.Error(), "another agent") || !strings.Contains(err.Error(), "--data") {
		t.Errorf("got %v", err)
	}
}

// TestFlagKinds: the values of each kind of flag, given and not given.
func TestFlagKinds(t *testing.T) {
	home, work := t.TempDir(), t.TempDir()
	t.Setenv("HOME", home)
	t.Chdir(work)
	file := filepath.Join(work, "file.json")
	if err := os.WriteFile(file, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	up := &upCmd{}
	parseAs(t, up.verb())
	if up.Data != filepath.Join(home, ".pintle") || up.Prices != "" || !up.GPUMetrics || up.Lost != 5*time.Minute || up.Runtime != "" ||
		up.Instances != nil {
		t.Errorf("without flags: %+v", up)
	}
	up = &upCmd{}
	parseAs(
		t, up.verb(), "--data=there", "--no-gpu-metrics", "--instances", "c5.large=2,g5.xlarge", "--instances=p2.xlarge", "--fleet-agent=--x=1,2",
		"--fleet-agent=-v", "-v", "--runtime=",
	)
	if up.Data != filepath.Join(work, "there") || up.GPUMetrics || !up.Verbose ||
		strings.Join(up.Instances, " ") != "c5.large=2 g5.xlarge p2.xlarge" ||
		strings.Join(up.FleetAgent, " ") != "--x=1,2 -v" {
		t.Errorf("with flags: %+v", up)
	}
	up = &upCmd{}
	parseAs(t, up.verb(), "--gpu-metrics=false")
	if up.GPUMetrics {
		t.Error("--gpu-metrics=false is ignored")
	}
	sim := &simCmd{}
	parseAs(t, sim.verb(), "--trace", "file.json", "--policy", "file.json", "--policy", file, "--work", "A=1s;B=2ms", "--reaction", "fast")
	if sim.Trace != file || strings.Join(sim.Policy, " ") != file+" "+file || sim.Work["A"] != time.Second ||
		sim.Work["B"] != 2*time.Millisecond || strings.Join(sim.Reaction, " ") != "fast" ||
		strings.Join(sim.Fleet, " ") != "g4dn.xlarge=100" {
		t.Errorf("sim: %+v", sim)
	}
	w := &workerCmd{}
	parseAs(t, w.verb(), "--queue-url", "q", "--max-input", "512MiB", "--temp-dir", ".", "cmd")
	if w.MaxInput != 512<<20 || w.MaxOutput != 1<<30 || w.TempDir != work {
		t.Errorf("worker: %+v", w)
	}
}

// TestHelp: pintle alone and --help show verbs and flags, except hidden ones.
func TestHelp(t *testing.T) {
	root := newRoot()
	for args, want := range map[string][]string{
		"":               {"Usage: pintle <command>", "up          Run a control plane", "--version"},
		"gpus --help":    {"Usage: pintle gpus [flags]", "fault       Simulate", "--cluster"},
		"run img --help": {"Usage: pintle run [flags] IMAGE", "-e, --env NAME=VALUE"},
		"worker -h": {
			"Mode lines: CMD is started once", `  {"id":"…","result":{"class":"cat"}}`, "--max-input SIZE", "(default 1GiB)",
			"($QUEUE_URL)",
		},
		"agent --help":    {"--runtime docker|oci|process", "--data DIRECTORY"},
		"up --help":       {"--settle DURATION", "--scale-in DURATION"},
		"help gpus fault": {"Usage: pintle gpus fault [flags] GPU"},
	} {
		var out bytes.Buffer
		root.SetOut(&out)
		root.SetArgs(strings.Fields(args))
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Errorf("%s: %v", args, err)
		}
		for _, text := range append(want, "-h, --help") {
			if !strings.Contains(out.String(), text) {
				t.Errorf("pintle %s does not say %q:\n%s", args, text, &out)
			}
		}
		if strings.Contains(out.String(), "\n  machine ") || strings.Contains(out.String(), "lock-fd") {
			t.Errorf("pintle %s shows what is hidden:\n%s", args, &out)
		}
		if strings.Contains(out.String(), "default 0s") {
			t.Errorf("pintle %s shows a default that isn't:\n%s", args, &out)
		}
	}
}

func TestWrap(t *testing.T) {
	const text = "one two three\nfour\n\n  as it is, however long\nfive sixseven"
	if got, want := wrap(text, 9), "one two\nthree\nfour\n\n  as it is, however long\nfive\nsixseven"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestQuote: what a shell would take apart is quoted, and nothing else.
func TestQuote(t *testing.T) {
	for word, want := range map[string]string{
		"http://127.0.0.1:4566": "http://127.0.0.1:4566",
		"a+b/c=":                "a+b/c=",
		"":                      "''",
		"a b":                   "'a b'",
		"$(reboot)":             "'$(reboot)'",
		"it's":                  `'it'\''s'`,
	} {
		if got := quote(word); got != want {
			t.Errorf("%q is %s, not %s", word, got, want)
		}
	}
}

// TestMessageOf: an error of an AWS API is told without the SDK's words around it.
func TestMessageOf(t *testing.T) {
	api := &smithy.GenericAPIError{Code: "ClusterNotFoundException", Message: "Cluster not found."}
	failed := fmt.Errorf("stop x: %w", &smithy.OperationError{ServiceID: "ECS", OperationName: "StopTask", Err: api})
	if got := messageOf(failed); got != "stop x: Cluster not found. aws ecs list-clusters lists those that there are." {
		t.Errorf("it says %q", got)
	}
	noQueue := &smithy.GenericAPIError{Code: "AWS.SimpleQueueService.NonExistentQueue", Message: "The specified queue does not exist."}
	failed = &smithy.OperationError{ServiceID: "SQS", OperationName: "GetQueueAttributes", Err: noQueue}
	if got := messageOf(failed); got != "The specified queue does not exist. aws sqs list-queues lists those that there are." {
		t.Errorf("it says %q", got)
	}
	unknown := &smithy.GenericAPIError{Code: "UnrecognizedClientException", Message: "The security token included in the request is invalid."}
	failed = &smithy.OperationError{ServiceID: "ECS", OperationName: "ListTasks", Err: unknown}
	const advised = "is invalid. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to the key that the control plane was started with, " +
		"or unset them if it was started without one."
	if got := messageOf(failed); !strings.HasSuffix(got, advised) {
		t.Errorf("it says %q", got)
	}
	if got := messageOf(errors.New("no space")); got != "no space" {
		t.Errorf("it says %q", got)
	}
}

// TestLogOfErrors: a log tells an API's error as the screen does, and others in their own words.
func TestLogOfErrors(t *testing.T) {
	var out strings.Builder
	unsent := &url.Error{Op: "Post", URL: "http://127.0.0.1:1/", Err: errors.New("connection refused")}
	newLogger(&out, slog.LevelInfo).Warn("cannot register", "error", &smithy.OperationError{ServiceID: "ECS", OperationName: "X", Err: unsent})
	newLogger(&out, slog.LevelInfo).Warn("cannot write", "error", errors.New("no space"), "n", 1)
	if got := out.String(); strings.Contains(got, "operation error") ||
		!strings.Contains(got, `error="cannot call http://127.0.0.1:1/: connection refused"`) || !strings.Contains(got, `error="no space" n=1`) {
		t.Errorf("it says %s", got)
	}
}

// TestMessageOfStrangers: what answers in another protocol, or with a certificate that nobody knows, is told with what to do.
func TestMessageOfStrangers(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AWS_CA_BUNDLE", "")
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	plain, secure := httptest.NewServer(http.NotFoundHandler()), httptest.NewUnstartedServer(http.NotFoundHandler())
	pages := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html;charset=utf-8")
		w.WriteHeader(http.StatusNotImplemented)
		io.WriteString(w, "<html><head><meta></head></html>\n") //nolint:errcheck // the client sees
	}))
	t.Cleanup(pages.Close)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	t.Cleanup(plain.Close)
	t.Cleanup(secure.Close)
	for endpoint, want := range map[string]string{
		strings.Replace(plain.URL, "http:", "https:", 1):  "server gave HTTP response to HTTPS client: use http:// with --endpoint",
		strings.Replace(secure.URL, "https:", "http:", 1): "the control plane speaks TLS: use --endpoint " + secure.URL,
		pages.URL:  noControlPlane,
		secure.URL: "set AWS_CA_BUNDLE to the authority's own, which is DATA/tls/ca.pem",
	} {
		flags := endpointFlags{endpoint}
		for _, err := range []error{
			(&healthCmd{flags}).Run(t.Context()),
			(&psCmd{clientFlags: clientFlags{flags, "default"}}).Run(t.Context()),
			(&gpuListCmd{endpointFlags: flags}).Run(t.Context()),
			(&costCmd{endpointFlags: flags}).Run(t.Context()),
		} {
			if err == nil {
				t.Errorf("%s: no error", endpoint)
			} else if got := messageOf(err); !strings.Contains(got, want) || strings.Contains(got, "operation error") || strings.Contains(got, "<html") {
				t.Errorf("%s: it says %q, want %q", endpoint, got, want)
			}
		}
	}
}

// TestStartNotes: who follows a task that doesn't start is told so after some seconds, and now and then.
func TestStartNotes(t *testing.T) {
	var out strings.Builder
	n := startNotes{began: time.Now(), next: firstNote}
	for second := range 70 {
		status := "PENDING"
		if second > 50 {
			status = "RUNNING"
		}
		n.tell(&out, status, n.began.Add(time.Duration(second)*time.Second))
	}
	const want = "the task has been PENDING for 3s: its node may be pulling an image\n" +
		"the task has been PENDING for 33s: its node may be pulling an image\n"
	if out.String() != want {
		t.Errorf("it says %s", out.String())
	}
}

// TestOutcome: pintle run tells why a task was stopped that didn't end by itself, and ends with its container's code.
func TestOutcome(t *testing.T) {
	for _, c := range []struct {
		stopCode     types.TaskStopCode
		code         *int32
		reason       string
		said, failed string
	}{
		{types.TaskStopCodeEssentialContainerExited, aws.Int32(0), "", "", ""},
		{types.TaskStopCodeEssentialContainerExited, aws.Int32(137), "OutOfMemoryError", "pintle: OutOfMemoryError\n", "exit code 137"},
		{types.TaskStopCodeTerminationNotice, aws.Int32(143), "", "pintle: the task was stopped: why\n", "exit code 143"},
		{types.TaskStopCodeTaskFailedToStart, nil, "", "", "the task stopped: why"},
	} {
		var out strings.Builder
		container := types.Container{ExitCode: c.code, Reason: &c.reason}
		err := outcome(&out, types.Task{StopCode: c.stopCode, StoppedReason: aws.String("why"), Containers: []types.Container{container}})
		if failed := fmt.Sprint(err); out.String() != c.said || failed != c.failed && (err != nil || c.failed != "") {
			t.Errorf("%+v: %q, %q", c, out.String(), failed)
		}
	}
}

// TestLostTask: where the control plane goes away, pintle run says how to find its task again.
func TestLostTask(t *testing.T) {
	t.Setenv("HOME", t.TempDir())
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	var server *httptest.Server
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch _, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), "."); operation {
		case "RegisterTaskDefinition":
			fmt.Fprint(w, `{"taskDefinition": {"taskDefinitionArn": "run-i:1"}}`)
		case "RunTask":
			fmt.Fprint(w, `{"tasks": [{"taskArn": "arn/t1", "containerInstanceArn": "arn/n1"}]}`)
		default:
			server.CloseClientConnections()
		}
	}))
	t.Cleanup(server.Close)
	c := runCmd{clientFlags: clientFlags{endpointFlags{server.URL}, "default"}, Image: "i"}
	err := c.Run(t.Context())
	if err == nil {
		t.Fatal("no error")
	}
	if got := messageOf(err); !strings.Contains(got, "pintle logs -f t1") || strings.Contains(got, "operation error") {
		t.Errorf("it says %q", got)
	}
}

// TestStandIns: commands for images come from a file and from flags, which count more.
func TestStandIns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "images")
	if err := os.WriteFile(path, []byte("# images\n\na=one\nb=two=2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := nodeFlags{ImagesFile: path, Images: []string{"a=own"}}.standIns()
	if want := map[string]string{"a": "own", "b": "two=2"}; err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"a", "a=", "=b"} {
		if got, err := (nodeFlags{Images: []string{bad}}).standIns(); err == nil {
			t.Errorf("%q is %v", bad, got)
		}
	}
}
