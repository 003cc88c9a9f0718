package test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/autoscaling"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/pintle/pintle/internal/sdkhttp"
)

var (
	fleetImages = flag.Int("fleet.images", 130, "images that a queue-driven fleet works off")
	fleetKills  = flag.Int("fleet.kills", 5, "how often something of that fleet is killed; the first ones are one of each kind")
	fleetSeed   = flag.Uint64("fleet.seed", 0, "which kills, and when; 0 is another one each time")
)

// queueFleet is examples/3-queue-fleet, run by its own script.
type queueFleet struct {
	*Pintle
	env []string
}

const (
	fleetBucket  = "ml-gpu-example"
	fleetGroup   = "ml-gpu-example"
	fleetCluster = "gpu-example-cluster"
	fleetQueue   = "example-gpu-queue"
)

func newQueueFleet(t *testing.T, env ...string) *queueFleet {
	t.Helper()
	p := UpWithFleet(t, "--settle", "1s")
	f := &queueFleet{p, append([]string{"AWS_MAX_ATTEMPTS=10", "AWS_RETRY_MODE=standard", "WORKDIR=" + t.TempDir(), "PERIOD=10"}, env...)}
	f.runScript("up")
	return f
}

// awaitEmpty waits until the fleet is empty. S3 sends a test message to the queue, which counts too and may launch an instance.
func (f *queueFleet) awaitEmpty() {
	f.t.Helper()
	Eventually(f.t, "an empty queue", func() bool {
		return f.AWS("cloudwatch", "describe-alarms", "--query", "MetricAlarms[0].StateValue", "--output", "text") == "ALARM"
	})
	f.AWS("autoscaling", "set-desired-capacity", "--auto-scaling-group-name", fleetGroup, "--desired-capacity", "0")
	Eventually(f.t, "an empty fleet", func() bool { return f.machines() == 0 })
}

func (f *queueFleet) script(args ...string) *exec.Cmd {
	path, err := filepath.Abs("../examples/3-queue-fleet/fleet.sh")
	if err != nil {
		f.t.Fatal(err)
	}
	cmd := f.Command(path, args...)
	cmd.Env = append(cmd.Env, f.env...)
	return cmd
}

func (f *queueFleet) runScript(args ...string) string {
	f.t.Helper()
	out, err := f.script(args...).CombinedOutput()
	if err != nil {
		f.t.Fatalf("fleet.sh %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// load makes the script upload the images of a directory and follow the fleet until it's idle again.
func (f *queueFleet) load(dir string) (out *strings.Builder, done <-chan error) {
	f.t.Helper()
	cmd := f.script("load", dir)
	out = new(strings.Builder)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		f.t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	return out, ended
}

// moment is the state of a fleet at one time.
type moment struct {
	desired   int
	inService int
	tasks     int
	waiting   int
	worked    int
}

// watched records the moments at which something changed.
type watched struct {
	mu    sync.Mutex
	began time.Time
	lines []string
	last  moment
	most  moment
}

func (w *watched) note(m moment) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.desired != w.last.desired || m.inService != w.last.inService || m.tasks != w.last.tasks {
		w.lines = append(w.lines, fmt.Sprintf("%5.1fs  wanted %d, in service %d, tasks %d, messages %d+%d", time.Since(w.began).Seconds(),
			m.desired, m.inService, m.tasks, m.waiting, m.worked))
	}
	w.last = m
	w.most = moment{max(w.most.desired, m.desired), max(w.most.inService, m.inService), max(w.most.tasks, m.tasks),
		max(w.most.waiting, m.waiting), max(w.most.worked, m.worked)}
}

func (w *watched) now() moment {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last
}

func (w *watched) greatest() moment {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.most
}

// watch polls the fleet five times a second until the test ends. It ignores failed calls.
func (f *queueFleet) watch() *watched {
	config := aws.Config{
		Region:           "us-east-1",
		BaseEndpoint:     &f.Endpoint,
		Credentials:      credentials.NewStaticCredentialsProvider("k", "s", ""),
		RetryMaxAttempts: 1,
		HTTPClient:       sdkhttp.New(),
	}
	groups, services, queues := autoscaling.NewFromConfig(config), ecs.NewFromConfig(config), sqs.NewFromConfig(config)
	url := f.queueURL(fleetQueue)
	look := func(ctx context.Context) (m moment, err error) {
		g, err := groups.DescribeAutoScalingGroups(ctx, &autoscaling.DescribeAutoScalingGroupsInput{})
		if err != nil || len(g.AutoScalingGroups) == 0 {
			return m, errors.Join(err, errors.New("there is no group"))
		}
		s, err := services.DescribeServices(ctx, &ecs.DescribeServicesInput{
			Cluster:  aws.String(fleetCluster),
			Services: []string{"gpu-worker"},
		})
		if err != nil {
			return m, err
		}
		q, err := queues.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
			QueueUrl:       &url,
			AttributeNames: []sqstypes.QueueAttributeName{"All"},
		})
		if err != nil {
			return m, err
		}
		m.desired = int(*g.AutoScalingGroups[0].DesiredCapacity)
		m.tasks = int(s.Services[0].RunningCount)
		for _, i := range g.AutoScalingGroups[0].Instances {
			if i.LifecycleState == "InService" {
				m.inService++
			}
		}
		m.waiting, _ = strconv.Atoi(q.Attributes["ApproximateNumberOfMessages"])
		m.worked, _ = strconv.Atoi(q.Attributes["ApproximateNumberOfMessagesNotVisible"])
		return m, nil
	}
	w := &watched{began: time.Now(), last: moment{desired: -1}}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			if m, err := look(ctx); err == nil {
				w.note(m)
			}
			time.Sleep(200 * time.Millisecond)
		}
	}()
	f.t.Cleanup(func() {
		stop()
		<-done
		f.t.Logf("the fleet over time:\n%s", strings.Join(w.lines, "\n"))
	})
	return w
}

func (f *queueFleet) queueURL(name string) string {
	f.t.Helper()
	return f.AWS("sqs", "get-queue-url", "--queue-name", name, "--query", "QueueUrl", "--output", "text")
}

// writeImages writes n images to a directory.
func writeImages(t *testing.T, dir string, n int) (names []string) {
	t.Helper()
	for i := range n {
		names = append(names, fmt.Sprintf("image-%d.jpg", i))
	}
	for i, name := range names {
		if err := os.WriteFile(filepath.Join(dir, name), slices.Repeat([]byte{byte(i)}, 1000+i), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return names
}

// results returns the images that have a result, and checks that each result is at its own key and about its own image.
func (f *queueFleet) results() (names []string) {
	f.t.Helper()
	dir := f.t.TempDir()
	f.AWS("s3", "cp", "--recursive", "--quiet", "s3://"+fleetBucket+"/results", dir)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var r struct{ Image, Class string }
		if err := json.Unmarshal(b, &r); err != nil || r.Class == "" || filepath.Base(name) != r.Image+".json" {
			f.t.Errorf("the result %s is %s: %v", name, b, err)
		}
		names = append(names, strings.TrimSuffix(name, ".json"))
		return nil
	})
	if err != nil {
		f.t.Fatal(err)
	}
	slices.Sort(names)
	return names
}

// predicted returns the images for which a worker logged a result.
func (f *queueFleet) predicted() (names []string) {
	f.t.Helper()
	out := f.AWS("logs", "filter-log-events", "--log-group-name", "/ecs/ml-gpu-worker", "--filter-pattern", "Predicted",
		"--query", "events[].message", "--output", "json")
	var lines []string
	if err := json.Unmarshal([]byte(out), &lines); err != nil {
		f.t.Fatal(err)
	}
	for _, line := range lines {
		_, rest, _ := strings.Cut(line, "'image': '")
		name, _, _ := strings.Cut(rest, "'")
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// deadLetters returns the dead letters: the reason of each by its body, and how many there are.
func (f *queueFleet) deadLetters() (reasons map[string]string, letters int) {
	f.t.Helper()
	reasons = map[string]string{}
	url := f.queueURL(fleetQueue + "-dead")
	for {
		out := f.AWS("sqs", "receive-message", "--queue-url", url, "--message-attribute-names", "All", "--max-number-of-messages", "10",
			"--visibility-timeout", "600", "--query", "Messages[].[Body,MessageAttributes.Reason.StringValue]", "--output", "json")
		var page [][2]string
		if out == "" {
			return reasons, letters
		}
		if err := json.Unmarshal([]byte(out), &page); err != nil {
			f.t.Fatalf("%v: %s", err, out)
		}
		if len(page) == 0 {
			return reasons, letters
		}
		for _, m := range page {
			letters++
			reasons[m[0]] = m[1]
		}
	}
}

// tasks returns the processes of the fleet's tasks: workers and their children.
func (p *Pintle) tasks(containing string) (pids []int) {
	paths, _ := filepath.Glob("/proc/[0-9]*/environ")
	for _, path := range paths {
		environ, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(environ), "AWS_ENDPOINT_URL="+p.Endpoint+"\x00") ||
			!strings.Contains(string(environ), "ECS_CONTAINER_METADATA_URI_V4=") {
			continue
		}
		cmdline, err := os.ReadFile(filepath.Join(filepath.Dir(path), "cmdline"))
		pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil && pid > 0 && strings.Contains(string(cmdline), containing) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// signal sends a signal to all processes of the tasks.
func (f *queueFleet) signal(s syscall.Signal) {
	f.t.Helper()
	for _, pid := range f.tasks("") {
		syscall.Kill(pid, s) //nolint:errcheck // it may have ended
	}
}

// awaitNothingLeft waits until all machines with their agents and tasks, all container instances and all EC2 instances are gone.
func (f *queueFleet) awaitNothingLeft() {
	f.t.Helper()
	Eventually(f.t, "the end of all machines and tasks", func() bool { return f.nothingLeft() && len(f.tasks("")) == 0 })
	Eventually(f.t, "the end of all container instances", func() bool {
		return f.AWS("ecs", "list-container-instances", "--cluster", fleetCluster, "--query", "length(containerInstanceArns)") == "0"
	})
	Eventually(f.t, "the end of all instances", func() bool {
		return f.AWS("ec2", "describe-instances", "--query", "Reservations[].Instances[?State.Name!='terminated'][].InstanceId",
			"--output", "text") == ""
	})
}

// TestQueueFleet runs the examples' queue-driven fleet from an empty queue to an empty queue, with either worker. The first
// message launches an instance, more than a hundred launch another, and every image gets a result.
func TestQueueFleet(t *testing.T) {
	t.Parallel()
	for _, worker := range []string{"pintle", "python"} {
		t.Run(worker, func(t *testing.T) {
			t.Parallel()
			f := newQueueFleet(t, "WORKER="+worker, "MODEL_SECONDS=0.1", "WARMUP=5")
			f.awaitEmpty()
			w := f.watch()
			first := t.TempDir()
			writeImages(t, first, 1)
			f.runScript("upload", first)
			Eventually(t, "an instance for the first message", func() bool { now := w.now(); return now.inService == 1 && now.tasks == 1 })
			if most := w.greatest(); most.desired != 1 || most.inService != 1 {
				t.Errorf("one message has %+v come", most)
			}
			rest := t.TempDir()
			names := writeImages(t, rest, 150)
			os.Remove(filepath.Join(rest, names[0])) //nolint:errcheck // it would be processed twice, and the results would show that
			// The workers are paused until there are two instances, however long the upload takes. Otherwise one might process
			// messages as fast as they arrive. No instance is terminated before then. The guide's worker loses its message for
			// 8,000 s when its instance ends, so with it none is terminated until the work is done.
			f.AWS("autoscaling", "suspend-processes", "--auto-scaling-group-name", fleetGroup, "--scaling-processes", "Terminate")
			f.signal(syscall.SIGSTOP)
			out, loaded := f.load(rest)
			Eventually(t, "another instance for more than a hundred messages", func() bool {
				now := w.now()
				return now.inService == 2 && now.tasks == 2
			})
			f.signal(syscall.SIGCONT)
			if worker == "python" {
				Eventually(t, "the end of the work", func() bool { now := w.now(); return now.waiting == 0 && now.worked == 0 })
			}
			f.AWS("autoscaling", "resume-processes", "--auto-scaling-group-name", fleetGroup)
			if err := <-loaded; err != nil {
				t.Fatalf("fleet.sh load: %v\n%s", err, out)
			}
			if most := w.greatest(); most.desired != 2 || most.inService != 2 {
				t.Errorf("150 messages have at most %+v come", most)
			}
			slices.Sort(names)
			got := map[string]func() []string{"pintle": f.results, "python": f.predicted}[worker]()
			if !slices.Equal(got, names) || !strings.Contains(out.String(), "results: 150\n") {
				t.Errorf("%d results: %v\n%s", len(got), got, out)
			}
			if reasons, _ := f.deadLetters(); len(reasons) != 0 {
				t.Errorf("dead letters: %v", reasons)
			}
			f.awaitNothingLeft()
			f.runScript("down")
		})
	}
}

// TestTheFleetScriptTwice: taking away what isn't there says no more than that it isn't, and a second up changes nothing.
func TestTheFleetScriptTwice(t *testing.T) {
	f := newQueueFleet(t)
	if out, err := f.script("up").CombinedOutput(); err == nil || !strings.Contains(string(out), "there is a fleet already") {
		t.Errorf("a second up: %v\n%s", err, out)
	}
	for range 2 {
		if out := f.runScript("down"); strings.Contains(out, "error") || strings.Count(out, "\n") != 1 {
			t.Errorf("down says\n%s", out)
		}
	}
	if left := f.AWS("sqs", "list-queues", "--query", "QueueUrls", "--output", "text"); left != "None" {
		t.Errorf("left are %s", left)
	}
}

// The kinds of kills.
const (
	killTask      = "task"          // the worker's process or the model's
	killAgent     = "agent"         // only the agent: its tasks keep running
	killInstance  = "instance"      // the agent with its tasks, as a power cut would
	killTerminate = "terminate"     // through EC2's API
	killPlane     = "control plane" // for up to a second
)

// kill kills something of a kind and returns what. It returns "" if there is nothing to kill now.
func (f *queueFleet) kill(kind string, rnd *rand.Rand) (victim string) {
	pick := func(pids []int) string {
		if len(pids) == 0 {
			return ""
		}
		pid := pids[rnd.IntN(len(pids))]
		if syscall.Kill(pid, syscall.SIGKILL) != nil {
			return ""
		}
		return strconv.Itoa(pid)
	}
	switch kind {
	case killTask:
		return pick(f.tasks(""))
	case killAgent:
		return pick(f.processes("agent\x00--ephemeral"))
	case killInstance:
		dirs, _ := filepath.Glob(filepath.Join(f.data, "fleet", "i-*"))
		if len(dirs) == 0 || len(f.tasks("")) == 0 {
			return ""
		}
		id := filepath.Base(dirs[rnd.IntN(len(dirs))])
		for _, pid := range f.processes(id) {
			syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
		}
		return id
	case killTerminate:
		id := f.AWS("ec2", "describe-instances", "--filters", "Name=instance-state-name,Values=running",
			"--query", "Reservations[].Instances[].InstanceId|[0]", "--output", "text")
		if id == "None" {
			return ""
		}
		f.AWS("ec2", "terminate-instances", "--instance-ids", id)
		return id
	}
	f.Kill()
	time.Sleep(time.Duration(rnd.IntN(1000)) * time.Millisecond)
	f.Start()
	return "it"
}

// TestQueueFleetSurvivesKills kills workers, agents, whole instances and the control plane at random while the examples' fleet
// processes its queue. At the end every image has exactly one result. The dead-letter queue holds the bad messages and no
// others, each with its reason. Nothing of the fleet is left.
func TestQueueFleetSurvivesKills(t *testing.T) {
	t.Parallel()
	seed := *fleetSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("-fleet.seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	const between = 2500 * time.Millisecond // between kills, on average
	seconds := 2 * between.Seconds() * float64(*fleetKills) / float64(*fleetImages)
	// A good message whose worker is killed often must not reach its last attempt while the control plane is down. Nor may SQS
	// move a bad message to the dead-letter queue before the worker can say why it's bad.
	receives := 5 + *fleetKills/5
	f := newQueueFleet(t, fmt.Sprintf("MODEL_SECONDS=%.2f", seconds), "WARMUP=0", "VISIBILITY=5s", "RETRY_DELAY=0s",
		fmt.Sprint("MAX_RECEIVES=", receives), fmt.Sprint("QUEUE_RECEIVES=", 3*receives))
	dir := t.TempDir()
	names := writeImages(t, dir, *fleetImages)
	names = append(names, "an image with spaces.jpg")
	bad := map[string]string{"no event": "is no S3 event", `{"Records":[{"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"` +
		fleetBucket + `"},"object":{"key":"gone.jpg"}}}]}`: "NoSuchKey"}
	for body := range bad {
		f.AWS("sqs", "send-message", "--queue-url", f.queueURL(fleetQueue), "--message-body", body)
	}
	for name, text := range map[string]string{"an image with spaces.jpg": "x", "empty-1.jpg": "", "empty-2.jpg": ""} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	w := f.watch()
	out, loaded := f.load(dir)

	Eventually(t, "the first task", func() bool { return w.now().tasks > 0 })
	kinds := []string{killTask, killAgent, killInstance, killTerminate, killPlane}
	killed := map[string]int{}
	var ended error
	over := false
	for i := 0; i < *fleetKills && !over; i++ {
		if i%len(kinds) == 0 {
			rnd.Shuffle(len(kinds), func(a, b int) { kinds[a], kinds[b] = kinds[b], kinds[a] })
		}
		wait := time.After(between/2 + time.Duration(rnd.Int64N(int64(between)))) // so that all kills happen while there is work
		for kind, victim := kinds[i%len(kinds)], ""; victim == "" && !over; wait = time.After(200 * time.Millisecond) {
			select {
			case ended = <-loaded:
				over = true
			case <-wait:
				if victim = f.kill(kind, rnd); victim != "" {
					killed[kind]++
					t.Logf("%5.1fs  killed: %s, %s", time.Since(w.began).Seconds(), kind, victim)
				}
			}
		}
	}
	if !over {
		ended = <-loaded
	}
	took := time.Since(w.began)
	if ended != nil {
		t.Errorf("fleet.sh load: %v\n%s", ended, out)
	}
	if len(killed) < min(len(kinds), *fleetKills) {
		t.Errorf("it was over before there were kills of each kind: %v", killed)
	}
	slices.Sort(names)
	if got := f.results(); !slices.Equal(got, names) {
		t.Errorf("%d results: %v", len(got), got)
	}
	reasons, letters := f.deadLetters()
	for body, reason := range reasons {
		want, planted := bad[body]
		if strings.Contains(body, `"key":"empty-`) {
			want, planted = "the image is empty", true
		}
		if !planted || !strings.Contains(reason, want) {
			t.Errorf("the dead letter %s has the reason %q", body, reason)
		}
	}
	if len(reasons) != len(bad)+2 {
		t.Errorf("the dead letters are %v", reasons)
	}
	f.awaitNothingLeft()
	sum := func(metric string) float64 {
		out := f.AWS("cloudwatch", "get-metric-statistics", "--namespace", "AWS/SQS", "--metric-name", metric,
			"--dimensions", "Name=QueueName,Value="+fleetQueue, "--statistics", "Sum", "--period", "3600",
			"--start-time", w.began.Add(-time.Hour).UTC().Format(time.RFC3339),
			"--end-time", time.Now().Add(time.Hour).UTC().Format(time.RFC3339), "--query", "sum(Datapoints[].Sum)")
		n, _ := strconv.ParseFloat(out, 64)
		return n
	}
	t.Logf("%d images of %.2f s in %s; kills: %v; messages sent %.0f, received %.0f, deleted %.0f; dead letters %d; instances launched: %s",
		len(names), seconds, took.Round(time.Second), killed,
		sum("NumberOfMessagesSent"), sum("NumberOfMessagesReceived"), sum("NumberOfMessagesDeleted"), letters,
		f.AWS("autoscaling", "describe-scaling-activities", "--query", "length(Activities[?starts_with(Description, `Launching`)])"))
}
