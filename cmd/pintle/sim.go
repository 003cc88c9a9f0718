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

func (c *simCmd) define(f flags) {
	f.file(&c.Trace, "trace", "CSV of requests, with a header. The first column is when each arrived: a date and time, or seconds.")
	f.required("trace")
	pairs(
		f, &c.Work, "work", "", "COLUMN=TIME;...",
		"How long a request takes for each unit of a column: ContextTokens=125us;GeneratedTokens=30ms.", time.ParseDuration,
	)
	f.DurationVar(&c.Fixed, "fixed", 0, "How long every request takes in addition.")
	f.DurationVar(&c.Length, "length", 0, "How long the replay lasts; the trace is repeated or cut. Default: as long as the trace.")
	f.IntVar(&c.Slots, "slots", 1, "How many requests a task processes at a time.")
	f.DurationVar(&c.Start, "start", 30*time.Second, "How long a task takes to start.")
	f.DurationVar(&c.SLO, "slo", 5*time.Second, "The longest that a request may wait.")
	f.files(
		&c.Policy, "policy",
		"Policy to replay: what put-scaling-policy takes as --cli-input-json, for step scaling with \"Alarms\" as put-metric-alarm "+
			"takes them; or only a target tracking configuration. Repeat to compare several. The service is service/default/sim, and "+
			"requests wait in the queue sim.",
	)
	f.required("policy")
	f.list(
		&c.Reaction, "reaction", "faithful|fast", "faithful,fast",
		"How fast the control plane reacts; every policy is replayed with each reaction.", "faithful", "fast",
	)
	f.IntVar(&c.Min, "min", 1, "The service's minimum number of tasks.")
	f.IntVar(&c.Max, "max", 100, "The service's maximum number of tasks.")
	f.list(&c.Fleet, "fleet", "TYPE[=N],...", "g4dn.xlarge=100", "The nodes, by instance type.")
	f.file(&c.Task, "task-definition", "What register-task-definition takes; default one container with one GPU.")
	f.Float64Var(&c.Price, "price", 0, "What a GPU costs an hour; adds a column.")
	f.BoolVar(&c.Timeline, "timeline", false, "Also print what each policy did, and why.")
	f.StringVar(&c.JSON, "json", "", "Write everything as JSON; - for standard output instead of the table.")
	f.placeholder("json", "FILE")
	f.StringVar(&c.Plot, "plot", "", "Draw tasks and waiting requests over time, as SVG; FILE ends in .svg.")
	f.placeholder("plot", "FILE")
}

// maxFleet is the maximum number of nodes in a replay, which is ECS's quota of container instances in a cluster.
const maxFleet = 5000

func (c *simCmd) verb() *cobra.Command {
	cmd := newVerb(
		"sim --trace FILE --policy FILE [flags]", "Replay a load against scaling policies in simulated time, and compare them.",
		noArguments, c.Run,
	)
	cmd.Long = simHelp
	c.define(flags{cmd.Flags()})
	return cmd
}

const simHelp = `Each policy runs in the control plane itself, in simulated time. The metrics that policies can use:
  ECS/ContainerInsights/Prometheus DCGM_FI_DEV_GPU_UTIL and AWS/ECS CPUUtilization: the share of busy slots
  ECS/ContainerInsights RunningTaskCount            all by ClusterName default and ServiceName sim
  AWS/SQS ApproximateNumberOfMessagesVisible, ApproximateNumberOfMessagesNotVisible, NumberOfMessagesSent,
          NumberOfMessagesDeleted, ApproximateAgeOfOldestMessage                  by QueueName sim
Yardsticks: the clairvoyant knows all requests beforehand, pays for the time that tasks take to start, and lets none wait.
"peak, fixed" runs as many tasks as the busiest moment needs, all the time. Requests that never got a slot count as beyond the SLO,
and aren't included in the waits.`

// Run replays a load under each policy and compares the results.
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

// scenario returns the scenario that the flags describe.
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
		Name:                 aws.String("main"),
		Image:                aws.String("sim"),
		Memory:               aws.Int32(512),
		ResourceRequirements: []types.ResourceRequirement{{Type: types.ResourceTypeGpu, Value: aws.String("1")}},
	}}}, nil
}

// replay replays each policy with each reaction. It runs as many replays in parallel as there are processors.
func (c *simCmd) replay(ctx context.Context, scenario sim.Scenario) ([]sim.Named, error) {
	policies := make([]*sim.Policy, len(c.Policy))
	for i, path := range c.Policy {
		var err error
		if policies[i], err = readPolicy(path); err != nil {
			return nil, err
		}
	}
	runs := make([]sim.Named, len(policies)*len(c.Reaction)) // never grows, because the replays write to its elements
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
			if s.Min > 0 && run.Result.Held == 0 {
				return errors.New("no task ran, as no node of --fleet takes one: it asks for what --task-definition says, one GPU by default")
			}
			fmt.Fprintf(os.Stderr, "%s: %s replayed in %.1f s\n", run.Name, s.Length, time.Since(began).Seconds())
			return nil
		})
	}
	return runs, g.Wait()
}

// readPolicy reads a policy, or only a target tracking configuration.
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

// decode decodes a file's JSON into v, and refuses unknown members.
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
	best, peak := sim.Clairvoyant(s), sim.Static(s)
	fmt.Printf("%d requests in %s; %d at a time a task; %s to start a task; simulated nodes\n", len(s.Requests), s.Length, s.Slots, s.Start)
	w := tabwriter.NewWriter(os.Stdout, 0, 4, 2, ' ', 0)
	fmt.Fprintf(
		w, "POLICY\tWAITED AT MOST %s\tWAIT P50\tP95\tP99\tMOST TASKS\tSCALED\tGPU-HOURS\tOF CLAIRVOYANT'S%s\n", s.SLO, c.cost("\tCOST"),
	)
	gpus := 0.0
	for _, run := range runs {
		r := run.Result
		gpus = float64(max(1, r.GPUs))
		cost := c.cost(fmt.Sprintf("\t%.2f", r.GPUHours()*c.Price))
		fmt.Fprintf(
			w, "%s\t%.1f %%\t%s\t%s\t%s\t%d\t%d\t%.3f\t%.2f%s\n", run.Name, 100*r.Attainment(), wait(r, 50), wait(r, 95), wait(r, 99),
			r.Peak, countScalings(r), r.GPUHours(), r.Held.Hours()/best.Held.Hours(), cost,
		)
	}
	for _, y := range []struct {
		name string
		sim.Yardstick
	}{{"clairvoyant", best}, {"peak, fixed", peak}} {
		hours := y.Held.Hours() * gpus
		cost := c.cost(fmt.Sprintf("\t%.2f", hours*c.Price))
		fmt.Fprintf(
			w, "%s\t100.0 %%\t0s\t0s\t0s\t%d\t\t%.3f\t%.2f%s\n", y.name, y.Tasks, hours, y.Held.Hours()/best.Held.Hours(), cost,
		)
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

// cost returns the text of the cost column, or "" without a price.
func (c *simCmd) cost(s string) string {
	if c.Price == 0 {
		return ""
	}
	return s
}

// wait returns a percentile of the requests' waits.
func wait(r *sim.Result, percent int) time.Duration {
	if len(r.Waits) == 0 {
		return 0
	}
	return r.Waits[min(len(r.Waits)*percent/100, len(r.Waits)-1)].Round(10 * time.Millisecond)
}

// countScalings returns how often the desired count was set.
func countScalings(r *sim.Result) int {
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
		Policy    string
		Requests  int
		WithinSLO int
		WaitP50   float64 // seconds
		WaitP95   float64 // seconds
		WaitP99   float64 // seconds
		MostTasks int
		GPUHours  float64
		Cost      float64
		Scalings  []sim.Scaling
		Timeline  []sim.Moment
	}
	type yardstick struct {
		MostTasks int
		TaskHours float64
	}
	best, peak := sim.Clairvoyant(s), sim.Static(s)
	out := struct {
		Clairvoyant yardstick
		PeakFixed   yardstick
		Policies    []summary
	}{Clairvoyant: yardstick{best.Tasks, best.Held.Hours()}, PeakFixed: yardstick{peak.Tasks, peak.Held.Hours()}}
	for _, run := range runs {
		r := run.Result
		out.Policies = append(out.Policies, summary{
			Policy:    run.Name,
			Requests:  r.Requests,
			WithinSLO: r.Met,
			WaitP50:   wait(r, 50).Seconds(),
			WaitP95:   wait(r, 95).Seconds(),
			WaitP99:   wait(r, 99).Seconds(),
			MostTasks: r.Peak,
			GPUHours:  r.GPUHours(),
			Cost:      r.GPUHours() * c.Price,
			Scalings:  r.Scalings,
			Timeline:  sim.ByMinute(r.Timeline),
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
