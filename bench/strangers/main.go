// Command strangers measures what callers without a key cost a control plane that checks signatures. It opens thousands of hostile
// connections, which send nothing, headers or bodies byte by byte, or forged signatures, and holds large bodies open on others.
// Meanwhile it calls DescribeTasks with a signature, on a connection that it keeps and on new ones, and watches the server's memory.
// The load comes from this process, on the same machine and, by default, from the address of the signed caller.
package main

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/pintle/pintle/bench/load"
)

// The key that signed calls use. Its id is no secret: some of the strangers forge signatures with it.
const (
	keyID  = "AKIASTRANGERSBENCH"
	secret = "only-for-this-benchmark"
)

type options struct {
	binary      string
	connections int
	bodies      int
	addresses   int
	duration    time.Duration
	decoy       string
}

func main() {
	var o options
	flag.StringVar(&o.binary, "pintle", "bin/pintle", "the binary to measure")
	flag.IntVar(&o.connections, "connections", 10_000, "hostile connections")
	flag.IntVar(&o.bodies, "bodies", 250, "connections that each hold a body of 8 MiB")
	flag.IntVar(&o.addresses, "addresses", 1, "how many addresses they come from; with 1, the signed caller's own")
	flag.DurationVar(&o.duration, "duration", 30*time.Second, "how long to measure, quiet and under attack")
	flag.StringVar(&o.decoy, "decoy", "", "an address to attack instead, which tells what the attack alone costs a machine that two share")
	flag.Parse()
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "strangers:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	dir, err := os.MkdirTemp("", "strangers")
	if err != nil {
		return err
	}
	address := load.FreeAddress()
	cmd := exec.Command(o.binary, "serve", "--listen", address, "--data", dir)
	cmd.Env = append(os.Environ(), "PINTLE_ACCESS_KEY_ID="+keyID, "PINTLE_SECRET_ACCESS_KEY="+secret)
	c := newCaller(address)
	server, err := load.Start(cmd, dir, func() error { return c.call(true) })
	if err != nil {
		return err
	}
	defer server.Stop()
	quiet := observe(o.duration/3, c, server)
	fmt.Printf("quiet:        %s\n", quiet)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	crowd := attack(ctx, cmp.Or(o.decoy, address), o)
	attacked := observe(o.duration, c, server)
	fmt.Printf("under attack: %s\n", attacked)
	fmt.Printf("%d connections were opened, %d are open; health answers: %v\n", crowd.opened.Load(), crowd.open.Load(), healthy(address))
	fmt.Printf("resident memory grew by %.0f MB; kept connection x%.1f, new connections x%.1f (medians)\n",
		attacked.memory-quiet.memory, ratio(attacked.kept, quiet.kept), ratio(attacked.fresh, quiet.fresh))
	return nil
}

// observation is what a signed caller sees.
type observation struct {
	kept, fresh []time.Duration // sorted
	failed      int
	memory      float64 // the most, in MB
	cpu         time.Duration
}

func (o observation) String() string {
	return fmt.Sprintf("kept connection: median %s, 99%% %s; new connections: median %s, 99%% %s; %d calls, %d failed; %.0f MB, %.1f s CPU",
		at(o.kept, 50), at(o.kept, 99), at(o.fresh, 50), at(o.fresh, 99), len(o.kept)+len(o.fresh), o.failed, o.memory, o.cpu.Seconds())
}

// observe calls again and again.
func observe(d time.Duration, c *caller, server *load.Process) (o observation) {
	used := server.CPU()
	for began := time.Now(); time.Since(began) < d; time.Sleep(20 * time.Millisecond) {
		for _, kept := range []bool{true, false} {
			start := time.Now()
			if err := c.call(kept); err != nil {
				if o.failed++; o.failed == 1 {
					fmt.Println("the first failed call:", err)
				}
				continue
			}
			if kept {
				o.kept = append(o.kept, time.Since(start))
			} else {
				o.fresh = append(o.fresh, time.Since(start))
			}
		}
		o.memory = max(o.memory, server.RSS())
	}
	slices.Sort(o.kept)
	slices.Sort(o.fresh)
	o.cpu = server.CPU() - used
	return o
}

// at returns a percentile of sorted times.
func at(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[(len(sorted)-1)*percent/100].Round(10 * time.Microsecond)
}

func ratio(a, b []time.Duration) float64 {
	return float64(at(a, 50)) / float64(max(at(b, 50), 1))
}

func healthy(address string) bool {
	c := http.Client{Timeout: 5 * time.Second}
	resp, err := c.Get("http://" + address + "/pintle/health")
	if err != nil {
		return false
	}
	resp.Body.Close() //nolint:errcheck // it was only asked
	return resp.StatusCode == http.StatusOK
}
