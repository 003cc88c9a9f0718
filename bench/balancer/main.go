// Command balancer measures what pintle balancer carries beside nginx and HAProxy: the same targets (an nginx of their own), the same load (wrk
// as fast as it goes, and requests at one rate), on the same cores, in turns. Debian has all three: nginx-light, haproxy, wrk.
package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pintle/pintle/bench/load"
)

type options struct {
	binary      string
	connections int
	rounds      int
	duration    time.Duration
	rate        int
	only        string
}

func main() {
	var o options
	flag.StringVar(&o.binary, "pintle", "bin/pintle", "the binary to measure")
	flag.IntVar(&o.connections, "connections", 64, "connections of clients")
	flag.IntVar(&o.rounds, "rounds", 15, "how often each balancer has its turn in each case")
	flag.DurationVar(&o.duration, "duration", 2*time.Second, "how long a turn takes")
	flag.IntVar(&o.rate, "rate", 1500, "requests per second in the case with a rate")
	flag.StringVar(&o.only, "case", "", "the only case to measure: part of its name")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "balancer:", err)
		os.Exit(1)
	}
}

// cases are what clients do.
var cases = []struct {
	name string
	load func(address string, o options) (turn, int, error)
}{
	{"1 KiB, kept connections", func(a string, o options) (turn, int, error) { return wrk(a, "/small", false, o) }},
	{"1 KiB, new connections", func(a string, o options) (turn, int, error) { return wrk(a, "/small", true, o) }},
	{"1 MiB, kept connections", func(a string, o options) (turn, int, error) { return wrk(a, "/large", false, o) }},
	{"1 MiB, new connections", func(a string, o options) (turn, int, error) { return wrk(a, "/large", true, o) }},
	{"1 KiB, kept connections, all at the same rate", func(a string, o options) (turn, int, error) { return pace(a, "/small", o) }},
}

func run(o options) error {
	dir, err := os.MkdirTemp("", "balancer")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	targets, err := startTargets(filepath.Join(dir, "targets"))
	if err != nil {
		return err
	}
	defer targets.Stop()
	var rivals []*rival
	for _, start := range []func(dir string, targets []string, o options) (*rival, error){startNginx, startPintle, startHAProxy} {
		r, err := start(filepath.Join(dir, fmt.Sprint(len(rivals))), targets.addresses, o)
		if err != nil {
			return err
		}
		defer r.Stop()
		rivals = append(rivals, r)
	}
	for _, c := range cases {
		if !strings.Contains(c.name, o.only) {
			continue
		}
		for range o.rounds {
			for _, r := range rivals {
				if err := r.take(c.load, o); err != nil {
					return err
				}
			}
		}
		fmt.Println(c.name)
		for _, r := range rivals {
			fmt.Printf("  %s\n", r.tell(rivals[0]))
		}
		for _, r := range rivals {
			r.turns = nil
		}
	}
	return nil
}

// turn is what a balancer did in one turn.
type turn struct {
	perSecond float64
	p50, p99  time.Duration
	processor time.Duration // of the balancer, by request
}

// rival is a balancer that is measured.
type rival struct {
	*load.Process
	name    string
	address string
	turns   []turn
}

// take has the rival carry requests for a while.
func (r *rival) take(put func(string, options) (turn, int, error), o options) error {
	before := cpu(r.Process)
	t, requests, err := put(r.address, o)
	if err != nil {
		return fmt.Errorf("%s: %w", r.name, err)
	}
	t.processor = (cpu(r.Process) - before) / time.Duration(max(requests, 1))
	r.turns = append(r.turns, t)
	return nil
}

// tell says how the rival did, and how that compares with another: turn by turn, since a busy machine slows neighbours in time alike.
func (r *rival) tell(other *rival) string {
	rate := func(t turn) float64 { return t.perSecond }
	p99 := func(t turn) float64 { return float64(t.p99) }
	p50 := func(t turn) float64 { return float64(t.p50) }
	processor := func(t turn) float64 { return float64(t.processor) }
	return fmt.Sprintf("%-8s %8.0f/s (x%.2f)   p50 %8v   p99 %8v (x%.2f)   %8v of processor a request",
		r.name, median(r.turns, rate), ratio(r, other, rate), show(median(r.turns, p50)), show(median(r.turns, p99)), ratio(r, other, p99),
		show(median(r.turns, processor)))
}

func show(nanoseconds float64) time.Duration {
	return time.Duration(nanoseconds).Round(time.Microsecond)
}

func median(turns []turn, of func(turn) float64) float64 {
	all := make([]float64, len(turns))
	for i, t := range turns {
		all[i] = of(t)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// ratio is the median of what one rival did in its turns by what the other did in those beside them.
func ratio(r, other *rival, of func(turn) float64) float64 {
	all := make([]float64, len(r.turns))
	for i := range r.turns {
		all[i] = of(r.turns[i]) / of(other.turns[i])
	}
	slices.Sort(all)
	return all[len(all)/2]
}
