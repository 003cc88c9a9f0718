package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/spf13/cobra"

	"github.com/pintle/pintle/internal/sidecar"
	"github.com/pintle/pintle/internal/worker"
)

type workerCmd struct {
	Command []string

	Queue string
	Input string
	Mode  string

	ResultBucket string
	ResultPrefix string

	Batch       int
	Parallel    int
	Wait        time.Duration
	Visibility  time.Duration
	Timeout     time.Duration
	RetryDelay  time.Duration
	StopTimeout time.Duration

	DeadLetterQueue string
	MaxReceives     int

	TempDir   string
	MaxInput  int64
	MaxOutput int64

	NoProtection    bool
	MetricsInterval time.Duration
	Cluster         string
	Service         string
}

func (c *workerCmd) define(f flags) {
	f.StringVar(
		&c.Queue, "queue-url", "",
		"The SQS queue. As for every AWS client, AWS_ENDPOINT_URL says where SQS and S3 are; without it, AWS itself.",
	)
	f.env("queue-url", "QUEUE_URL")
	f.required("queue-url")
	f.choice(&c.Input, "input", "s3", "What a message is: an S3 event, whose objects are the inputs, or the input itself.", "s3", "body")
	f.choice(
		&c.Mode, "mode", "argument",
		"How CMD gets an input: as a file whose path is its last argument, on standard input, or as a line of JSON, in which case it "+
			"keeps running for the next.",
		"argument", "stdin", "lines",
	)
	f.StringVar(&c.ResultBucket, "result-bucket", "", "The S3 bucket for results; without one, CMD's output goes to the worker's output.")
	f.env("result-bucket", "RESULT_BUCKET")
	f.StringVar(&c.ResultPrefix, "result-prefix", "", "Prefix for the keys of results.")
	f.env("result-prefix", "RESULT_PREFIX")
	f.IntVar(&c.Batch, "batch", 1, "Messages to receive at once, 10 at most. In mode lines CMD gets them together.")
	f.IntVar(&c.Parallel, "parallel", 1, "Batches to process at once, each with its own CMD.")
	f.DurationVar(&c.Wait, "wait", 20*time.Second, "How long a receive waits for messages, 20s at most.")
	f.DurationVar(
		&c.Visibility, "visibility", 2*time.Minute,
		"How long a message stays invisible to others if this worker dies; extended at half that time while CMD works, up to SQS's 12 "+
			"hours.",
	)
	f.DurationVar(
		&c.Timeout, "timeout", 0,
		"How long CMD may take for an input, or in mode lines for a batch, before it is killed. Default: 12 hours.",
	)
	f.DurationVar(
		&c.RetryDelay, "retry-delay", 5*time.Second, "How long a failed message waits for the next try; doubled each time, up to 15m.",
	)
	f.DurationVar(
		&c.StopTimeout, "stop-timeout", 30*time.Second, "The container's stopTimeout; messages not done 5s before it ends are given back.",
	)
	f.StringVar(
		&c.DeadLetterQueue, "dead-letter-queue-url", "",
		"Where failing messages go in the end; default the queue's own, from its redrive policy.",
	)
	f.IntVar(&c.MaxReceives, "max-receives", 0, "After how many receives a failing message goes there; default from the redrive policy.")
	f.directory(&c.TempDir, "temp-dir", "Directory for objects and results while CMD works.")
	f.bytes(&c.MaxInput, "max-input", 1<<30, "Maximum total size of CMD's inputs.")
	f.bytes(
		&c.MaxOutput, "max-output", 1<<30,
		"Maximum total size of its results, 5GiB at most. The disk must hold --parallel times both.",
	)
	f.BoolVar(&c.NoProtection, "no-protection", false, "Leave the task's scale-in protection alone.")
	f.DurationVar(&c.MetricsInterval, "metrics-interval", time.Minute, "How often to put the backlog per task into CloudWatch; 0 never.")
	f.StringVar(&c.Cluster, "cluster", "", "Cluster of the worker's service; default from the task metadata endpoint.")
	f.StringVar(&c.Service, "service", "", "Name of the worker's service; default from the task metadata endpoint.")
}

func (c *workerCmd) verb() *cobra.Command {
	const short = "Process an SQS queue with a command, without losing messages. Runs in a container, on Pintle and on AWS."
	cmd := newVerb("worker --queue-url URL [flags] -- CMD [argument…]", short, c.command, c.Run)
	cmd.Long = workerHelp
	f := flags{cmd.Flags()}
	f.SetInterspersed(false) // flags after CMD belong to CMD
	c.define(f)
	return checked(cmd, c.Validate)
}

// command takes CMD and its arguments.
func (c *workerCmd) command(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("which command? pintle worker -- CMD")
	}
	c.Command = args
	return nil
}

const workerHelp = `A message is deleted only once CMD has succeeded for all of it and the results are uploaded. With SQS, a message may be
processed more than once, so CMD must tolerate that. Events about S3 tests, removed objects and results are deleted.

CMD succeeds with exit code 0. Its environment has PINTLE_BUCKET, PINTLE_KEY, PINTLE_MESSAGE_ID, PINTLE_RECEIVE_COUNT and PINTLE_RESULT_DIR.
Results: what CMD writes to standard output becomes PREFIX + the object's key + ".out" (with --input body: the message's id), and each file
in PINTLE_RESULT_DIR becomes PREFIX + key + "/" + its name. So the objects of one queue should come from one bucket.

Mode lines: CMD is started once, and reads for each input one line from standard input:
  {"id":"…","path":"/tmp/…/cat.jpg","bucket":"b","key":"cat.jpg","size":123,"result_dir":"/tmp/…","message_id":"…","receive_count":1,"more":0}
and writes one line to standard output, with what should become PREFIX + key + ".json":
  {"id":"…","result":{"class":"cat"}}      or, if it failed:      {"id":"…","error":"no image"}
"more" is how many further lines of the same batch follow at once; answers may come in any order. Lines that do not begin with {
go to standard error. If CMD ends, its inputs have failed, and it is started again; if it ends five times in a row without an answer, the
worker ends too. At the end of its input CMD should end.

A failure's reason is logged. A message that has failed --max-receives times, or that a retry cannot help (no S3 event; no such object; too
large), is sent to the dead-letter queue with the attributes Reason, SourceMessageId, SourceQueueUrl and ReceiveCount. If that is not
allowed, SQS moves it there without them. To move such messages back, start-message-move-task needs a --destination-arn.

While there is work, the task is protected from scale-in through ECS_AGENT_URI, for no longer than 20 minutes if the worker is killed. After
SIGTERM no more messages are received, and work in progress is finished. Exit code: 0; 2 if work had to be given back, or the
command line is invalid; 1 if CMD or the queue is not available.

Metric: Pintle/Worker BacklogPerTask by ClusterName, ServiceName and QueueName: waiting messages divided by running tasks.

The task role needs sqs:ReceiveMessage, DeleteMessage, ChangeMessageVisibility and GetQueueAttributes; for the dead-letter queue
sqs:SendMessage and GetQueueUrl; s3:GetObject (and ListBucket, to tell a missing object from a forbidden one), s3:PutObject;
ecs:UpdateTaskProtection, ecs:DescribeServices; cloudwatch:PutMetricData.`

// Validate checks the ranges of the flags' values.
func (c *workerCmd) Validate() error {
	for _, b := range []struct {
		flag     string
		value    time.Duration
		min, max time.Duration
	}{
		{"visibility", c.Visibility, 2 * time.Second, 12 * time.Hour},
		{"wait", c.Wait, 0, 20 * time.Second},
		{"stop-timeout", c.StopTimeout, 0, 24 * time.Hour},
		{"retry-delay", c.RetryDelay, 0, 15 * time.Minute},
		{"timeout", c.Timeout, 0, 12 * time.Hour},
		{"metrics-interval", c.MetricsInterval, 0, 24 * time.Hour},
	} {
		if b.value < b.min || b.value > b.max {
			return fmt.Errorf("--%s %s: it must be from %s to %s", b.flag, b.value, b.min, b.max)
		}
	}
	switch {
	case c.Batch < 1 || c.Batch > 10:
		return fmt.Errorf("--batch %d: it must be from 1 to 10", c.Batch)
	case c.Parallel < 1 || c.Parallel > 1000:
		return fmt.Errorf("--parallel %d: it must be from 1 to 1000", c.Parallel)
	case c.MaxReceives < 0:
		return fmt.Errorf("--max-receives %d: it must not be negative", c.MaxReceives)
	case c.MaxOutput > 5<<30:
		return errors.New("--max-output: S3 takes at most 5GiB at once")
	case c.MetricsInterval > 0 && c.MetricsInterval < time.Second:
		return fmt.Errorf("--metrics-interval %s: it must be 0, or 1s or more", c.MetricsInterval)
	}
	return nil
}

// Run processes a queue until it's stopped.
func (c *workerCmd) Run(ctx context.Context) error {
	log := newLogger(os.Stderr, slog.LevelInfo)
	if _, err := exec.LookPath(c.Command[0]); err != nil {
		return err
	}
	if u, err := url.Parse(c.Queue); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("--queue-url is %q; aws sqs get-queue-url prints the right one", c.Queue)
	}
	task, err := ownTask(ctx, c.Cluster, c.Service)
	if err != nil {
		return err
	}
	cfg, err := sidecarConfig(task.Region)
	if err != nil {
		return err
	}
	queue := sqs.NewFromConfig(cfg)
	letters, err := c.deadLetters(ctx, queue, log)
	if err != nil {
		return err
	}
	o := worker.Options{
		SQS: queue,
		S3: s3.NewFromConfig(cfg, func(o *s3.Options) {
			o.UsePathStyle = os.Getenv("AWS_ENDPOINT_URL") != "" || os.Getenv("AWS_ENDPOINT_URL_S3") != ""
		}),
		Runner:      c.runner(log),
		Log:         log,
		Queue:       c.Queue,
		DeadLetters: letters,
		Bodies:      c.Input == "body",
		Results:     worker.Results{Bucket: c.ResultBucket, Prefix: c.ResultPrefix, Suffix: ".out"},
		Batch:       c.Batch,
		Parallel:    c.Parallel,
		Wait:        c.Wait,
		Visibility:  c.Visibility,
		Timeout:     c.Timeout,
		RetryDelay:  c.RetryDelay,
		StopTimeout: c.StopTimeout,
		TempDir:     c.TempDir,
		MaxInput:    c.MaxInput,
		MaxOutput:   c.MaxOutput,
	}
	if c.Mode == "lines" {
		o.Suffix = ".json"
	}
	if uri := os.Getenv("ECS_AGENT_URI"); uri != "" && !c.NoProtection && task.Service != "" {
		o.Protection = worker.Endpoint{AgentURI: uri}
	}
	defer c.backlog(ctx, cfg, queue, task, log)()
	givenBack, err := worker.New(o).Run(ctx)
	if err == nil && givenBack > 0 {
		log.Warn("work was given back; a longer stopTimeout lets it finish", "messages", givenBack)
		return exitCode(2)
	}
	return err
}

// deadLetters returns what the flags say, or else the queue's redrive policy. It fails if the queue doesn't exist.
func (c *workerCmd) deadLetters(ctx context.Context, queue *sqs.Client, log *slog.Logger) (worker.DeadLetters, error) {
	d := worker.DeadLetters{DeadLetterQueue: c.DeadLetterQueue, MaxReceives: c.MaxReceives}
	policy, err := redrivePolicy(ctx, queue, c.Queue)
	if missing := new(types.QueueDoesNotExist); errors.As(err, &missing) {
		return d, err
	}
	if err == nil && d.DeadLetterQueue == "" && policy.Target != "" {
		d.DeadLetterQueue, err = queueURL(ctx, queue, policy.Target)
	}
	if err != nil {
		log.Warn("cannot find the dead-letter queue; messages go there without a reason", "error", err)
	}
	if d.MaxReceives == 0 {
		d.MaxReceives = int(policy.MaxReceives)
	}
	return d, nil
}

// redrive is a queue's redrive policy: API_SetQueueAttributes. AWS returns the number as it was set, which may be a string.
type redrive struct {
	Target      string `json:"deadLetterTargetArn"`
	MaxReceives count  `json:"maxReceiveCount"`
}

type count int

func (n *count) UnmarshalJSON(b []byte) error {
	i, err := strconv.Atoi(strings.Trim(string(b), `"`))
	*n = count(i)
	return err
}

func redrivePolicy(ctx context.Context, queue *sqs.Client, url string) (p redrive, err error) {
	out, err := queue.GetQueueAttributes(ctx, &sqs.GetQueueAttributesInput{
		QueueUrl:       &url,
		AttributeNames: []types.QueueAttributeName{types.QueueAttributeNameRedrivePolicy},
	})
	if err != nil {
		return p, err
	}
	if text := out.Attributes[string(types.QueueAttributeNameRedrivePolicy)]; text != "" {
		err = json.Unmarshal([]byte(text), &p)
	}
	return p, err
}

func queueURL(ctx context.Context, queue *sqs.Client, arn string) (string, error) {
	p := strings.Split(arn, ":")
	if len(p) != 6 {
		return "", fmt.Errorf("%q is not a queue's ARN", arn)
	}
	out, err := queue.GetQueueUrl(ctx, &sqs.GetQueueUrlInput{QueueName: &p[5], QueueOwnerAWSAccountId: &p[4]})
	if err != nil {
		return "", err
	}
	return aws.ToString(out.QueueUrl), nil
}

func (c *workerCmd) runner(log *slog.Logger) func() worker.Runner {
	if c.Mode == "lines" {
		return func() worker.Runner {
			return &worker.Lines{Args: c.Command, Stdout: os.Stdout, Stderr: os.Stderr, Log: log}
		}
	}
	return func() worker.Runner {
		return &worker.Command{Args: c.Command, Stdin: c.Mode == "stdin", Stdout: os.Stdout, Stderr: os.Stderr}
	}
}

// backlog publishes the backlog metric until stop is called.
func (c *workerCmd) backlog(ctx context.Context, cfg aws.Config, queue *sqs.Client, t sidecar.Task, log *slog.Logger) (stop func()) {
	if c.MetricsInterval == 0 || t.Cluster == "" || t.Service == "" {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		(&worker.Backlog{
			SQS:        queue,
			ECS:        awsecs.NewFromConfig(cfg),
			CloudWatch: cloudwatch.NewFromConfig(cfg),
			Queue:      c.Queue,
			QueueName:  path.Base(c.Queue),
			Cluster:    t.Cluster,
			Service:    t.Service,
			Interval:   c.MetricsInterval,
			Log:        log,
		}).Run(ctx)
	}()
	return func() { cancel(); <-done }
}
