// Command console measures what the web console costs a control plane with thousands of nodes, and how fast its page is there. It plays the nodes:
// each has both of its web sockets and tells of its eight GPUs every second. Then Chromium loads the cluster's page, and as many browsers as asked
// for watch it. What they cost is the processor time that the control plane needs then beyond what it needs unwatched, before and after.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ecs"

	"github.com/pintle/pintle/bench/load"
)

type options struct {
	binary   string
	nodes    int
	busy     int
	every    time.Duration
	browsers int
	readers  int
	pages    int
	duration time.Duration
}

func main() {
	var o options
	flag.StringVar(&o.binary, "pintle", "bin/pintle", "the binary to measure")
	flag.IntVar(&o.nodes, "nodes", 5000, "simulated nodes, of eight GPUs each")
	flag.IntVar(&o.busy, "busy", 50, "percent of the nodes whose GPUs are held by a task, and change all the time")
	flag.DurationVar(&o.every, "every", time.Second, "how often a node tells of its GPUs")
	flag.IntVar(&o.browsers, "browsers", 10, "how many Chromiums watch")
	flag.IntVar(&o.readers, "readers", 0, "programs that read a page's changes as a browser does, and show nothing")
	flag.IntVar(&o.pages, "pages", 1, "how many of the cluster's pages they look at, of 512 nodes each")
	flag.DurationVar(&o.duration, "duration", time.Minute, "how long each turn takes")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, o); err != nil {
		fmt.Fprintln(os.Stderr, "console:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, o options) error {
	dir, err := os.MkdirTemp("", "console")
	if err != nil {
		return err
	}
	address := load.FreeAddress()
	api := ecs.New(ecs.Options{
		Region:       "us-east-1",
		BaseEndpoint: aws.String("http://" + address),
		Credentials:  credentials.NewStaticCredentialsProvider("any", "any", ""),
	})
	// The nodes' metrics in CloudWatch would cost many times what is measured here, with a console and without.
	cmd := exec.Command(o.binary, "serve", "--listen", address, "--data", dir, "--no-gpu-metrics")
	cmd.Stderr = os.Stderr
	server, err := load.Start(cmd, dir, func() error {
		_, err := api.ListClusters(ctx, nil)
		return err
	})
	if err != nil {
		return err
	}
	defer server.Stop()
	return server.Explain(measure(ctx, api, address, server, o))
}

// measure measures a control plane that runs.
func measure(ctx context.Context, api *ecs.Client, address string, server *load.Process, o options) error {
	if err := startNodes(ctx, api, address, o); err != nil {
		return err
	}
	w := newWatchers(ctx, "http://"+address)
	defer w.close()
	if err := w.paint(); err != nil {
		return err
	}
	before := turn(ctx, server, o.duration)
	fmt.Printf("unwatched: %s\n", before)
	if err := w.watch(o); err != nil {
		return err
	}
	time.Sleep(5 * time.Second) // what loading the pages took isn't what watching them costs
	w.start()
	during := turn(ctx, server, o.duration)
	fmt.Printf("watched:   %s; %s\n", during, w.told(o.duration))
	w.leave()
	after := turn(ctx, server, o.duration)
	fmt.Printf("unwatched: %s\n", after)
	fmt.Printf("%d browsers and %d readers of %d pages cost %.1f %% of a core\n",
		o.browsers, o.readers, o.pages, during.percent-(before.percent+after.percent)/2)
	return nil
}

// cost is what a control plane needs of a processor and of memory.
type cost struct {
	percent  float64 // of a core
	memoryMB float64
}

func (c cost) String() string {
	return fmt.Sprintf("%.1f %% of a core, %.0f MB", c.percent, c.memoryMB)
}

// turn measures a control plane for a while.
func turn(ctx context.Context, server *load.Process, d time.Duration) cost {
	began, used := time.Now(), server.CPU()
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return cost{100 * (server.CPU() - used).Seconds() / time.Since(began).Seconds(), server.RSS()}
}
