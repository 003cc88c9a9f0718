// Command sqs measures Pintle's queues over HTTP as clients see them. 64 clients send messages of 1 KB, each durable before
// it's acknowledged, and then receive and delete them. The same run measures moto's server and goaws, if installed, which keep
// nothing on disk. It counts lost and duplicate messages, and checks the order in a FIFO queue's groups. The load comes from
// this process, on the same machine.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pintle/pintle/bench/load"
)

const clients = 64

func main() {
	binary := flag.String("pintle", "bin/pintle", "the binary to measure")
	messages := flag.Int("messages", 100_000, "how many messages; moto gets a hundredth")
	flag.Parse()
	if err := run(*binary, *messages); err != nil {
		fmt.Fprintln(os.Stderr, "sqs:", err)
		os.Exit(1)
	}
}

func run(binary string, messages int) error {
	if err := measure("Pintle", messages, func(address, dir string) *exec.Cmd {
		return exec.Command(binary, "serve", "--listen", address, "--data", dir)
	}); err != nil {
		return err
	}
	for _, p := range peers {
		if _, err := exec.LookPath(p.program); err != nil {
			fmt.Printf("%s is not installed: without it\n", p.program)
			continue
		}
		if err := measure(p.name, messages/p.part, p.command); err != nil {
			return err
		}
	}
	return nil
}

// peers are the servers to compare Pintle with. moto is too slow for Pintle's number of messages, so it gets a hundredth.
var peers = []struct {
	name, program string
	part          int
	command       func(address, dir string) *exec.Cmd
}{
	{"moto", "moto_server", 100, func(address, _ string) *exec.Cmd {
		host, port, _ := strings.Cut(address, ":")
		return exec.Command("moto_server", "-H", host, "-p", port)
	}},
	{"goaws", "goaws", 1, func(address, dir string) *exec.Cmd {
		host, port, _ := strings.Cut(address, ":")
		config := filepath.Join(dir, "goaws.yaml")
		text := fmt.Sprintf("Local: {Host: %s, Port: %s, Region: us-east-1, AccountId: \"123456789012\"}\n", host, port)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			panic(err) // the directory is new and ours
		}
		return exec.Command("goaws", "-loglevel", "error", "-config", config)
	}},
}

// server is a running server and one of its queues.
type server struct {
	*load.Process
	address string
	queue   string // its URL
}

// measure starts a server and measures both kinds of queues.
func measure(name string, messages int, command func(address, dir string) *exec.Cmd) error {
	dir, err := os.MkdirTemp("", "pintle-bench-")
	if err != nil {
		return err
	}
	s := &server{address: load.FreeAddress()}
	s.Process, err = load.Start(command(s.address, dir), dir, func() error {
		c := &load.Client{Address: s.address}
		defer c.Close()
		_, err := c.Do(s.request("ListQueues", struct{}{}))
		return err
	})
	if err != nil {
		return err
	}
	defer s.Stop()
	text, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("%s: load average %.14s, memory %.0f MB\n", name, text, s.RSS())
	for _, fifo := range []bool{false, true} {
		if err := s.run(name, messages, fifo); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// request returns a request as bytes, ready to send.
func (s *server) request(operation string, input any) []byte {
	body, err := json.Marshal(input)
	if err != nil {
		panic(err) // inputs are text and numbers
	}
	return fmt.Appendf(nil, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Type: application/x-amz-json-1.0\r\nX-Amz-Target: AmazonSQS.%s\r\n"+
		"Authorization: AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0\r\n"+
		"X-Amz-Date: 20260101T000000Z\r\nContent-Length: %d\r\n\r\n%s", s.address, operation, len(body), body)
}

// input is the input of this benchmark's calls.
type input struct {
	QueueName              string            `json:",omitempty"`
	QueueUrl               string            `json:",omitempty"`
	MessageBody            string            `json:",omitempty"`
	MessageGroupId         string            `json:",omitempty"`
	MessageDeduplicationId string            `json:",omitempty"`
	Attributes             map[string]string `json:",omitempty"`
	MaxNumberOfMessages    int               `json:",omitempty"`
	VisibilityTimeout      int               `json:",omitempty"`
	Entries                []entry           `json:",omitempty"`
}

type entry struct{ Id, ReceiptHandle string }

// run measures one queue.
func (s *server) run(name string, messages int, fifo bool) error {
	queue := "bench"
	var attributes map[string]string
	if fifo {
		queue = "bench.fifo"
		attributes = map[string]string{"FifoQueue": "true"}
	}
	c := &load.Client{Address: s.address}
	defer c.Close()
	answer, err := c.Do(s.request("CreateQueue", input{QueueName: queue, Attributes: attributes}))
	if err != nil {
		return err
	}
	var made struct{ QueueUrl string }
	if err := json.Unmarshal(answer, &made); err != nil {
		return err
	}
	s.queue = made.QueueUrl
	sending, err := s.phase(func(c *load.Client, i int, timed func(func() error) error) error {
		return s.send(c, i, messages/clients, fifo, timed)
	})
	if err != nil {
		return err
	}
	sending.print(name, queue+", SendMessage", messages/clients*clients, s)
	got := &ledger{want: int64(messages / clients * clients), next: make([]int, clients), seen: map[string]bool{}}
	receiving, err := s.phase(func(c *load.Client, _ int, timed func(func() error) error) error {
		return s.receive(c, got, fifo, timed)
	})
	if err != nil {
		return err
	}
	receiving.print(name, queue+", ReceiveMessage and DeleteMessageBatch of 10", int(got.want), s)
	fmt.Printf("%-7s %-62s lost %d, twice %d, out of order %d\n", name, "", int(got.want)-len(got.seen), got.twice, got.disorder)
	// the others' results are for the reader to judge
	if name == "Pintle" && (len(got.seen) != int(got.want) || got.twice+got.disorder > 0) {
		return errors.New("the queue does not do what it must")
	}
	return nil
}

// phase is the result of what all clients did at the same time.
type phase struct {
	took  time.Duration
	times []time.Duration
	cpu   time.Duration
}

func (p *phase) print(server, what string, messages int, s *server) {
	slices.Sort(p.times)
	fmt.Printf("%-7s %-62s %8.0f messages/s, a call's p50 %6.1f ms, p99 %6.1f ms; the server's CPU %4.0f µs a message, memory %4.0f MB\n",
		server, what, float64(messages)/p.took.Seconds(), ms(p.times[len(p.times)/2]), ms(p.times[len(p.times)*99/100]),
		float64(p.cpu.Microseconds())/float64(messages), s.RSS())
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// phase runs all clients.
func (s *server) phase(do func(c *load.Client, i int, timed func(func() error) error) error) (*phase, error) {
	times := make([][]time.Duration, clients)
	errs := make([]error, clients)
	began := time.Now()
	cpu := s.CPU()
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			c := &load.Client{Address: s.address}
			defer c.Close()
			errs[i] = do(c, i, func(call func() error) error {
				at := time.Now()
				err := call()
				times[i] = append(times[i], time.Since(at))
				return err
			})
		})
	}
	wg.Wait()
	return &phase{time.Since(began), slices.Concat(times...), s.CPU() - cpu}, errors.Join(errs...)
}

var padding = strings.Repeat("x", 1010)

// send sends one client's messages, "<client> <number> xxx", each client's in its own group.
func (s *server) send(c *load.Client, i, n int, fifo bool, timed func(func() error) error) error {
	for k := range n {
		in := input{QueueUrl: s.queue, MessageBody: fmt.Sprintf("%02d %06d %s", i, k, padding)}
		if fifo {
			in.MessageGroupId = fmt.Sprint(i)
			in.MessageDeduplicationId = fmt.Sprintf("%02d-%06d", i, k)
		}
		request := s.request("SendMessage", in)
		if err := timed(func() error { _, err := c.Do(request); return err }); err != nil {
			return err
		}
	}
	return nil
}

// ledger is what was received.
type ledger struct {
	want     int64
	received atomic.Int64

	mu       sync.Mutex
	seen     map[string]bool
	next     []int // the next number, by group
	twice    int
	disorder int
}

func (l *ledger) record(body string, fifo bool) error {
	var group, number int
	if _, err := fmt.Sscanf(body, "%d %d", &group, &number); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.seen[body[:9]] {
		l.twice++
		return nil
	}
	l.seen[body[:9]] = true
	if fifo && l.next[group] != number {
		l.disorder++
	}
	l.next[group] = number + 1
	l.received.Add(1)
	return nil
}

// receive receives and deletes messages until all have come. It gives up after ten seconds without any.
func (s *server) receive(c *load.Client, l *ledger, fifo bool, timed func(func() error) error) error {
	request := s.request("ReceiveMessage", input{QueueUrl: s.queue, MaxNumberOfMessages: 10, VisibilityTimeout: 120})
	for last := time.Now(); l.received.Load() < l.want && time.Since(last) < 10*time.Second; {
		var out struct {
			Messages []struct{ Body, ReceiptHandle string }
		}
		err := timed(func() error {
			answer, err := c.Do(request)
			return cmp.Or(err, json.Unmarshal(answer, &out))
		})
		if err != nil {
			return err
		}
		if len(out.Messages) == 0 {
			time.Sleep(time.Millisecond) // a FIFO queue's groups, or all remaining messages, are in flight
			continue
		}
		last = time.Now()
		var entries []entry
		for i, m := range out.Messages {
			if err := l.record(m.Body, fifo); err != nil {
				return err
			}
			entries = append(entries, entry{fmt.Sprint(i), m.ReceiptHandle})
		}
		if err := timed(func() error {
			_, err := c.Do(s.request("DeleteMessageBatch", input{QueueUrl: s.queue, Entries: entries}))
			return err
		}); err != nil {
			return err
		}
	}
	return nil
}
