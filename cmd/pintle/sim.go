package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/applicationautoscaling"
	autoscalingtypes "github.com/aws/aws-sdk-go-v2/service/applicationautoscaling/types"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/instancetype"
	"github.com/pintle/pintle/internal/sim"
)

type simCmd struct {
	Trace    string
	Work     map[string]time.Duration
	Fixed    time.Duration
	Length   time.Duration
	Slots    int
	Start    time.Duration
	SLO      time.Duration
	Policy   []string
	Reaction []string
	Min      int
	Max      int
	Fleet    []string
	Task     string
	Price    float64
	Timeline bool
	JSON     string
	Plot     string
}

// define defines the flags.
func (c *simCmd) define(f flags) {
	f.file(&c.Trace, "trace", "CSV of requests, with a line of names. The first column is when each came: a date and time, or seconds.")
	f.required("trace")
	pairs(f, &c.Work, "work", "", "COLUMN=TIME;...", "How long a request is worked on for each unit of a column: ContextTokens=125us;GeneratedTokens=30ms.", time.ParseDuration)
	f.DurationVar(&c.Fixed, "fixed", 0, "How long any request is worked on, besides.")
	f.DurationVar(&c.Length, "length", 0, "How long the replay lasts; the trace is repeated, or cut. Default: as long as the trace.")
	f.IntVar(&c.Slots, "slots", 1, "How many requests a task works on at a time.")
	f.DurationVar(&c.Start, "start", 30*time.Second, "How long a task takes to start.")
	f.DurationVar(&c.SLO, "slo", 5*time.Second, "The longest that a request may wait.")
	f.files(&c.Policy, "policy", "Policy to replay: what put-scaling-policy takes as --cli-input-json, with \"Alarms\" as put-metric-alarm takes them where it is step scaling; or a target tracking configuration alone. Once for each that is compared. The service is service/default/sim, the requests wait in the queue sim.")
	f.required("policy")
	f.list(&c.Reaction, "reaction", "faithful|fast", "faithful,fast", "How fast the control plane reacts; each policy is replayed with each.", "faithful", "fast")
	f.IntVar(&c.Min, "min", 1, "The service's least tasks.")
	f.IntVar(&c.Max, "max", 100, "The service's most tasks.")
	f.list(&c.Fleet, "fleet", "TYPE[=N],...", "g4dn.xlarge=100", "The nodes that there are, by instance type.")
	f.file(&c.Task, "task-definition", "What register-task-definition takes; default one container with one GPU.")
	f.Float64Var(&c.Price, "price", 0, "What a GPU costs an hour; adds a column.")
	f.BoolVar(&c.Timeline, "timeline", false, "Also print what each policy did, and why.")
	f.StringVar(&c.JSON, "json", "", "Write all of it as JSON; - for standard output instead of the table.")
	f.placeholder("json", "FILE")
	f.StringVar(&c.Plot, "plot", "", "Draw tasks and waiting requests over time, as SVG; FILE ends in .svg.")
	f.placeholder("plot", "FILE")
}

// maxFleet is the most nodes of a replay, ECS's quota of container instances in a cluster.
const maxFleet = 5000

// verb is the command line of the verb.
func (c *simCmd) verb() *cobra.Command {
	cmd := newVerb("sim --trace FILE --policy FILE [flags]", "Replay a load against scaling policies in simulated time, and compare them.", noArguments, c.Run)
	cmd.Long = simHelp
	c.define(flags{cmd.Flags()})
	return cmd
}

const simHelp = `Each policy runs in the control plane itself, in simulated time. The metrics that policies can use:
  ECS/ContainerInsights/Prometheus DCGM_FI_DEV_GPU_UTIL and AWS/ECS CPUUtilization: the part of the slots that are busy
  ECS/ContainerInsights RunningTaskCount            all by ClusterName default and ServiceName sim
  AWS/SQS ApproximateNumberOfMessagesVisible, ApproximateNumberOfMessagesNotVisible, NumberOfMessagesSent,
          NumberOfMessagesDeleted, ApproximateAgeOfOldestMessage                  by QueueName sim
Yardsticks: the clairvoyant knows all requests beforehand, pays for the time that tasks take to start, and lets none wait;
"peak, fixed" is as many tasks as the busiest moment needs, all the time. Requests that never had a slot count as beyond the SLO,
and are not among the waits.`

// Run replays a load under each policy and compares.
func (c *simCmd) Run(ctx context.Context) error {
	if c.Plot != "" && !strings.EqualFold(filepath.Ext(c.Plot), ".svg") {
		return fmt.Errorf("--plot %s: plots are SVG; name a file that ends in .svg", c.Plot)
	}
	scenario, err := c.scenario()
	if err != nil {
		return err
	}
	runs, err := c.replay(ctx, scenario)
	if err != nil {
		return err
	}
	if c.Plot != "" {
		if err := writeFile(c.Plot, func(f *os.File) error { return sim.Plot(f, scenario, runs) }); err != nil {
			return err
		}
	}
	if c.JSON != "" {
		if err := c.writeJSON(scenario, runs); err != nil || c.JSON == "-" {
			return err
		}
	}
	return c.table(scenario, runs)
}

// scenario is what the flags describe.
func (c *simCmd) scenario() (sim.Scenario, error) {
	s := sim.Scenario{Slots: c.Slots, Start: c.Start, SLO: c.SLO, Min: c.Min, Max: c.Max}
	if len(c.Work) == 0 && c.Fixed == 0 {
		return s, errors.New("how long is a request worked on? Say it with --work COLUMN=TIME or --fixed TIME")
	}
	f, err := os.Open(c.Trace)
	if err != nil {
		return s, err
	}
	defer f.Close()
	if s.Requests, err = sim.ReadTrace(f, c.Work, c.Fixed); err != nil {
		return s, fmt.Errorf("%s: %w", c.Trace, err)
	}
	if s.Length = c.Length; s.Length != 0 {
		s.Requests = sim.Repeat(s.Requests, s.Length)
	} else if n := len(s.Requests); n > 0 {
		s.Length = s.Requests[n-1].At.Truncate(time.Minute) + time.Minute
	}
	names, err := parseInstances("--fleet", c.Fleet, maxFleet)
	if err != nil {
		return s, err
	}
	for _, name := range names {
		t, err := instancetype.Lookup(name)
		if err != nil {
			return s, err
		}
		s.Fleet = append(s.Fleet, t)
	}
	s.TaskDefinition, err = c.taskDefinition()
	return s, err
}

func (c *simCmd) taskDefinition() (*awsecs.RegisterTaskDefinitionInput, error) {
	if c.Task != "" {
		b, err := os.ReadFile(c.Task)
		if err != nil {
			return nil, err
		}
		in := &awsecs.RegisterTaskDefinitionInput{}
		return in, decode(c.Task, b, in)
	}
	return &awsecs.RegisterTaskDefinitionInput{Family: aws.String("sim"), ContainerDefinitions: []types.ContainerDefinition{{
		Name: aws.String("main"), Image: aws.String("sim"), Memory: aws.Int32(512),
		ResourceRequirements: []types.ResourceRequirement{{Type: types.ResourceTypeGpu, Value: aws.String("1")}},
	}}}, nil
}

// replay replays each policy with each reaction, as many at a time as there are processors.
func (c *simCmd) replay(ctx context.Context, scenario sim.Scenario) ([]sim.Named, error) {
	policies := make([]*sim.Policy, len(c.Policy))
	for i, path := range c.Policy {
		var err error
		if policies[i], err = readPolicy(path); err != nil {
			return nil, err
		}
	}
	runs := make([]sim.Named, len(policies)*len(c.Reaction)) // all there before the first replay writes its own
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range runs {
		run, policy, reaction := &runs[i], i/len(c.Reaction), c.Reaction[i%len(c.Reaction)]
		run.Name = strings.TrimSuffix(filepath.Base(c.Policy[policy]), ".json") + ", " + reaction
		s := scenario
		s.Fast = reaction == "fast"
		g.Go(func() (err error) {
			began := time.Now()
			if run.Result, err = sim.Run(ctx, s, policies[policy]); err != nil {
				return fmt.Errorf("%s: %w", run.Name, err)
			}
			fmt.Fprintf(os.Stderr, "%s: %s replayed in %.1f s\n", run.Name, s.Length, time.Since(began).Seconds())
			return nil
		})
	}
	return runs, g.Wait()
}

// readPolicy reads a policy, or a target tracking configuration alone.
func readPolicy(path string) (*sim.Policy, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var probe struct{ TargetValue *float64 }
	if json.Unmarshal(b, &probe) != nil || probe.TargetValue == nil {
		p := &sim.Policy{}
		return p, decode(path, b, p)
	}
	p := &sim.Policy{PutScalingPolicyInput: applicationautoscaling.PutScalingPolicyInput{
		PolicyType:                               autoscalingtypes.PolicyTypeTargetTrackingScaling,
		TargetTrackingScalingPolicyConfiguration: &autoscalingtypes.TargetTrackingScalingPolicyConfiguration{},
	}}
	return p, decode(path, b, p.TargetTrackingScalingPolicyConfiguration)
}

// decode reads a file's JSON, which is to hold members of v and no others.
func decode(path string, b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func writeFile(path string, write func(*os.File) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(write(f), f.Close())
}

// table prints the comparison.
func (c *simCmd) table(s sim.Scenario, runs []sim.Named) error {
	know, peak := sim.Clairvoyant(s), sim.Static(s)
	fmt.Printf("%d requests in %s; %d at a time a task; %s to start a task; simulated nodes\n", len(s.Requests), s.Length, s.Slots, s.Start)
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "POLICY\tWAITED AT MOST %s\tWAIT P50\tP95\tP99\tMOST TASKS\tSCALED\tGPU-HOURS\tOF CLAIRVOYANT'S%s\n", s.SLO, c.cost("\tCOST"))
	gpus := 0.0
	for _, run := range runs {
		r := run.Result
		gpus = float64(max(1, r.GPUs))
		fmt.Fprintf(w, "%s\t%.1f %%\t%s\t%s\t%s\t%d\t%d\t%.3f\t%.2f%s\n", run.Name, 100*r.Attainment(), wait(r, 50), wait(r, 95), wait(r, 99),
			r.Peak, scaled(r), r.GPUHours(), r.Held.Hours()/know.Held.Hours(), c.cost(fmt.Sprintf("\t%.2f", r.GPUHours()*c.Price)))
	}
	for _, y := range []struct {
		name string
		sim.Yardstick
	}{{"clairvoyant", know}, {"peak, fixed", peak}} {
		hours := y.Held.Hours() * gpus
		fmt.Fprintf(w, "%s\t100.0 %%\t0s\t0s\t0s\t%d\t\t%.3f\t%.2f%s\n", y.name, y.Tasks, hours, y.Held.Hours()/know.Held.Hours(), c.cost(fmt.Sprintf("\t%.2f", hours*c.Price)))
	}
	if err := w.Flush(); err != nil || !c.Timeline {
		return err
	}
	for _, run := range runs {
		fmt.Printf("\n%s\n", run.Name)
		for _, a := range run.Result.Scalings {
			what := cmp.Or(a.Reason, fmt.Sprintf("desired %d", a.Desired))
			fmt.Printf("%8s  %-26s  %s\n", a.At, what, strings.TrimSpace(a.Cause+". "+a.Details))
		}
	}
	return nil
}

// cost is a column that is there where a price is.
func (c *simCmd) cost(s string) string {
	if c.Price == 0 {
		return ""
	}
	return s
}

// wait is how long the given percentage of the requests waited at most.
func wait(r *sim.Result, percent int) time.Duration {
	if len(r.Waits) == 0 {
		return 0
	}
	return r.Waits[min(len(r.Waits)*percent/100, len(r.Waits)-1)].Round(10 * time.Millisecond)
}

// scaled is how often the desired count was set.
func scaled(r *sim.Result) int {
	n := 0
	for _, a := range r.Scalings {
		if a.Reason == "" {
			n++
		}
	}
	return n
}

// writeJSON writes everything, with the timeline by the minute.
func (c *simCmd) writeJSON(s sim.Scenario, runs []sim.Named) error {
	type summary struct {
		Policy                    string
		Requests, WithinSLO       int
		WaitP50, WaitP95, WaitP99 float64 // seconds
		MostTasks                 int
		GPUHours, Cost            float64
		Scalings                  []sim.Scaling
		Timeline                  []sim.Moment
	}
	type yardstick struct {
		MostTasks int
		TaskHours float64
	}
	know, peak := sim.Clairvoyant(s), sim.Static(s)
	out := struct {
		Clairvoyant, PeakFixed yardstick
		Policies               []summary
	}{Clairvoyant: yardstick{know.Tasks, know.Held.Hours()}, PeakFixed: yardstick{peak.Tasks, peak.Held.Hours()}}
	for _, run := range runs {
		r := run.Result
		out.Policies = append(out.Policies, summary{
			run.Name, r.Requests, r.Met, wait(r, 50).Seconds(), wait(r, 95).Seconds(), wait(r, 99).Seconds(), r.Peak, r.GPUHours(), r.GPUHours() * c.Price,
			r.Scalings, sim.ByMinute(r.Timeline),
		})
	}
	encode := func(f *os.File) error {
		e := json.NewEncoder(f)
		e.SetIndent("", " ")
		return e.Encode(out)
	}
	if c.JSON == "-" {
		return encode(os.Stdout)
	}
	return writeFile(c.JSON, encode)
}
