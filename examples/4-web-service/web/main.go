// Command web-service is the program of a service behind a load balancer, and the clients that ask it.
//
//	web-service                    answers at port PORT, else 80: / with the task's name, /work after some work for the CPU, /health
//	web-service load FLAGS URL     asks URL until it's told to end, and writes how many requests were answered, and how many failed
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/signal"
	"path"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

func main() {
	log.SetFlags(0)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	run := serve
	if len(os.Args) > 1 && os.Args[1] == "load" {
		run = load
	}
	if err := run(ctx); err != nil {
		log.Fatal(err)
	}
}

// serve answers requests until the task is to stop, and then those that are under way.
func serve(ctx context.Context) error {
	name, address := task()
	port := os.Getenv("PORT")
	if port == "" {
		port = "80"
	}
	http.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("GET /work", func(w http.ResponseWriter, r *http.Request) {
		millions, _ := strconv.Atoi(r.FormValue("millions"))
		fmt.Fprintf(w, "%s %d\n", name, work(min(max(millions, 1), 10_000)))
	})
	http.HandleFunc("GET /", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintf(w, "%s\n", name) })
	s := &http.Server{Addr: net.JoinHostPort(address, port)}
	log.Printf("%s answers at %s", name, s.Addr)
	ended := make(chan error, 1)
	go func() {
		<-ctx.Done()
		ended <- s.Shutdown(context.Background())
	}()
	if err := s.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return <-ended
}

// task returns the task's name, and its own address if it has one. In Pintle's runtime process tasks share the machine's network, so each listens
// at its own address alone.
func task() (name, address string) {
	name, _ = os.Hostname()
	resp, err := http.Get(os.Getenv("ECS_CONTAINER_METADATA_URI_V4") + "/task")
	if err != nil {
		return name, ""
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	var t struct {
		TaskARN    string
		Containers []struct {
			Networks []struct {
				NetworkMode   string
				IPv4Addresses []string
			}
		}
	}
	if json.NewDecoder(resp.Body).Decode(&t) != nil || t.TaskARN == "" {
		return name, ""
	}
	for _, c := range t.Containers {
		for _, n := range c.Networks {
			if n.NetworkMode == "awsvpc" && len(n.IPv4Addresses) > 0 {
				address = n.IPv4Addresses[0]
			}
		}
	}
	return path.Base(t.TaskARN), address
}

// work keeps a CPU busy for so many million steps, some half a millisecond each.
func work(millions int) uint64 {
	sum := uint64(1)
	for range millions * 1_000_000 {
		sum = sum*6364136223846793005 + 1442695040888963407
	}
	return sum
}

// counts is what has become of requests.
type counts struct{ answered, failed atomic.Int64 }

// load asks until ctx ends, and waits for what was asked by then.
func load(ctx context.Context) error {
	f := flag.NewFlagSet("load", flag.ExitOnError)
	clients := f.Int("clients", 1, "how many ask at the same time")
	pause := f.Duration("pause", 0, "how long each waits between an answer and its next request")
	file := f.String("counts", "", "file that is to hold how many requests were answered and how many failed, each second")
	f.Parse(os.Args[2:]) //nolint:errcheck // it exits
	c := new(counts)
	var group sync.WaitGroup
	for range *clients {
		group.Go(func() { c.ask(ctx, f.Arg(0), *pause) })
	}
	for ctx.Err() == nil {
		if err := c.write(*file); err != nil {
			return err
		}
		rest(ctx, time.Second)
	}
	group.Wait()
	return c.write(*file)
}

// ask asks one request after the other.
func (c *counts) ask(ctx context.Context, url string, pause time.Duration) {
	client := &http.Client{Transport: new(http.Transport), Timeout: time.Minute}
	for ctx.Err() == nil {
		if err := get(client, url); err != nil {
			c.failed.Add(1)
			log.Print(err)
			rest(ctx, time.Second)
		} else {
			c.answered.Add(1)
		}
		rest(ctx, pause)
	}
}

func get(client *http.Client, url string) error {
	resp, err := client.Get(url)
	if err != nil {
		return err
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	if _, err := io.Copy(io.Discard, resp.Body); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", url, resp.Status)
	}
	return nil
}

// write writes the counts so that a reader finds either the old or the new ones.
func (c *counts) write(file string) error {
	line := fmt.Sprintln(c.answered.Load(), c.failed.Load())
	if file == "" {
		fmt.Print(line)
		return nil
	}
	if err := os.WriteFile(file+".new", []byte(line), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

func rest(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
