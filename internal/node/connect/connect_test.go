package connect

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/vishvananda/netns"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/connect/traffic"
	"github.com/pintle/pintle/internal/node/kernel"
	"github.com/pintle/pintle/internal/node/nameserver"
	"github.com/pintle/pintle/internal/node/network"
)

const verb = "proxy-of-a-test"

// The main goroutine keeps the main thread, whose namespaces /proc/self shows.
func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == verb {
		if err := Main(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestHosts(t *testing.T) {
	c := &acs.ServiceConnect{Aliases: []acs.ConnectAlias{{Name: "b", Port: 80}, {Name: "a", Port: 80}, {Name: "b", Port: 81}}}
	if got := Hosts(&acs.Task{ServiceConnect: c}); strings.Join(got, " ") != "a:127.255.0.2 b:127.255.0.1" {
		t.Error(got)
	}
	if got := Hosts(&acs.Task{}); got != nil {
		t.Error(got)
	}
}

func TestPlan(t *testing.T) {
	p := planOf(&acs.ServiceConnect{
		Aliases: []acs.ConnectAlias{
			{Name: "a", Port: 80, Protocol: "http", Endpoint: "srv-1"},
			{Name: "a", Port: 6379, Endpoint: "srv-2"},
			{Name: "b", Port: 80, Protocol: "grpc", Endpoint: "srv-1", IdleSeconds: new(int32(0)), RequestSeconds: new(int32(0))},
			{Name: "a", Port: 80, Protocol: "http", Endpoint: "srv-3"}, // whose place is taken
		},
		Ingress: []acs.ConnectIngress{{Port: 8081, ContainerPort: 80}},
	})
	want := []traffic.Listener{
		{Name: "a:80", Protocol: "http", Endpoint: "srv-1", Idle: 5 * time.Minute, Request: 15 * time.Second},
		{Name: "a:6379", Endpoint: "srv-2", Idle: time.Hour},
		{Name: "b:80", Protocol: "grpc", Endpoint: "srv-1"},
		{Name: "ingress 8081", Endpoint: "ingress 8081"},
	}
	if !reflect.DeepEqual(p.listeners, want) || len(p.aliases) != 3 || len(p.of) != 3 || strings.Join(p.endpoints, " ") != "srv-1 srv-2" ||
		p.aliases[2].String() != "127.255.0.2:80" || p.fixed["ingress 8081"][0].Address != "127.0.0.1:80" {
		t.Errorf("%+v", p)
	}
}

// world is a network namespace with a task in it, and the names of a node.
type world struct {
	t     *testing.T
	netns string
	names *nameserver.Names
	dir   string
	task  *acs.Task
}

func newWorld(t *testing.T) *world {
	t.Helper()
	holder := exec.CommandContext(t.Context(), "unshare", "--net", "cat")
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal("this test needs root: ", err)
	}
	t.Cleanup(func() { in.Close(); holder.Wait() }) //nolint:errcheck // it ends with its input
	dir := t.TempDir()
	names, err := nameserver.Load(filepath.Join(dir, "names.json"))
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, netns: fmt.Sprintf("/proc/%d/ns/net", holder.Process.Pid), names: names, dir: filepath.Join(dir, strings.Repeat("long", 40)),
		task: &acs.Task{Arn: "arn:aws:ecs:r:1:task/c/" + strconv.Itoa(os.Getpid()) + "x" + t.Name(), ServiceConnect: &acs.ServiceConnect{
			Aliases: []acs.ConnectAlias{{Name: "www", Port: 80, Protocol: "http", Endpoint: "srv-1"}},
			Ingress: []acs.ConnectIngress{{Port: 8081, ContainerPort: 7000}},
		}},
	}
	own, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	w.until("the namespace is there", func() bool {
		there, err := os.Readlink(w.netns)
		return err == nil && there != own
	})
	return w
}

// until waits until something holds.
func (w *world) until(what string, holds func() bool) {
	w.t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatal(what + " did not happen")
		}
	}
}

// serve serves a name at a port of the namespace. It's to be called before a proxy is there, whose redirections it would end.
func (w *world) serve(port uint16, name string) {
	w.t.Helper()
	sockets, err := network.ListenAliases(w.netns, nil, []uint16{port})
	if err != nil {
		w.t.Fatal(err)
	}
	l, err := net.FileListener(sockets[0])
	if err != nil {
		w.t.Fatal(err)
	}
	sockets[0].Close()
	s := &http.Server{Handler: http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) { fmt.Fprint(out, name) })}
	go s.Serve(l) //nolint:errcheck // it ends with the test
	w.t.Cleanup(func() { s.Close() })
}

// move says at which port the endpoint's task is.
func (w *world) move(port uint16) {
	w.t.Helper()
	err := w.names.Learn(&acs.PintleNames{Services: []acs.NamedService{{ID: "srv-1", Instances: []acs.NamedInstance{{ID: "i", IPv4: "127.0.0.1", Port: port}}}}})
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) proxies() *Proxies {
	return New(Options{
		Dir:     w.dir,
		Program: []string{"/proc/self/exe", verb},
		Names:   w.names,
		Machine: func() netip.Addr { return netip.MustParseAddr("127.0.0.1") },
		Log:     slog.New(slog.DiscardHandler),
	})
}

func (w *world) attend(p *Proxies) (end, leave func()) {
	w.t.Helper()
	end, leave, err := p.Attend(w.netns, w.task, "main")
	if err != nil {
		w.t.Fatal(err)
	}
	w.until("the process is seen", func() bool { return w.process() != 0 }) // its command line isn't there at once
	return end, leave
}

// get asks an address from within the namespace.
func (w *world) get(address string) string {
	dial := func(ctx context.Context, _, _ string) (c net.Conn, err error) {
		return c, kernel.OnThread(func() error {
			ns, err := netns.GetFromPath(w.netns)
			if err != nil {
				return err
			}
			defer ns.Close()
			if err := netns.Set(ns); err != nil {
				return err
			}
			c, err = new(net.Dialer).DialContext(ctx, "tcp", address)
			return err
		})
	}
	client := &http.Client{Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp, err := client.Get("http://www/")
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return string(b)
}

// process returns the id of the task's proxy, or 0.
func (w *world) process() int {
	all, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, path := range all {
		b, _ := os.ReadFile(path) //nolint:errcheck // it may have ended
		if strings.HasSuffix(string(b), nameOf(w.task.Arn, "main")+"\x00") {
			id, _ := strconv.Atoi(strings.Split(path, "/")[2]) //nolint:errcheck // it's a number
			return id
		}
	}
	return 0
}

const alias = "127.255.0.1:80"

// TestLife: a proxy follows its endpoint, goes on between two agents and without rights, is started again when it was killed, and ends.
func TestLife(t *testing.T) {
	w := newWorld(t)
	w.serve(7000, "one")
	w.serve(7001, "two")
	w.serve(80, "own") // a container may have the alias's port
	w.move(7000)
	_, leave := w.attend(w.proxies())
	if got := w.get(alias); got != "one" {
		t.Fatalf("at first: %q", got)
	}
	if got := w.get("127.0.0.1:8081"); got != "one" {
		t.Errorf("by the ingress: %q", got)
	}
	w.move(7001)
	w.until("the proxy follows", func() bool { return w.get(alias) == "two" })
	id := w.process()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", id))
	if err != nil || !strings.Contains(string(status), "Uid:\t65534\t65534\t65534\t65534") || !strings.Contains(string(status), "CapPrm:\t0000000000000000") {
		t.Errorf("its rights: %s, %v", status, err)
	}
	leave()
	if got := w.get(alias); got != "two" {
		t.Errorf("without an agent: %q", got)
	}
	next := w.proxies()
	end, _ := w.attend(next)
	usage := next.Usage(t.Context())[w.task.Arn]
	if w.process() != id || len(usage) != 1 || usage[0].Requests < 3 || usage[0].Endpoint != "srv-1" || usage[0].Classes[2] != usage[0].Requests {
		t.Errorf("the next agent: process %d after %d, %+v", w.process(), id, usage)
	}
	if err := syscall.Kill(id, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.until("it's started again", func() bool { return w.get(alias) == "two" && w.process() != id })
	end()
	w.until("it has ended", func() bool { return w.process() == 0 })
	if left, _ := os.ReadDir(w.dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestHung: a proxy that doesn't answer is killed, whether another is started in its place or it's to end, by this agent or the next.
func TestHung(t *testing.T) {
	w := newWorld(t)
	w.serve(7000, "one")
	w.move(7000)
	p := w.proxies()
	p.opts.Patience = 100 * time.Millisecond
	end, _ := w.attend(p)
	stop := func() (id int) {
		id = w.process()
		if err := syscall.Kill(id, syscall.SIGSTOP); err != nil {
			t.Fatal(err)
		}
		w.until("all of it stops", func() bool {
			threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", id))
			return err == nil && !slices.ContainsFunc(threads, func(path string) bool {
				b, err := os.ReadFile(path)
				return err == nil && !strings.Contains(string(b), "\nState:\tT")
			})
		})
		return id
	}
	id := stop()
	w.move(7001)
	w.move(7000)
	w.until("it's killed", func() bool { return syscall.Kill(id, 0) != nil })
	w.until("another takes its place", func() bool { return w.get(alias) == "one" })
	id = stop()
	end()
	w.until("it's killed at its end", func() bool { return syscall.Kill(id, 0) != nil })
	if left, _ := os.ReadDir(w.dir); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// TestSweep: the proxy of a task that has gone while there was no agent ends, and others don't.
func TestSweep(t *testing.T) {
	w := newWorld(t)
	p := w.proxies()
	_, leave := w.attend(p)
	p.Sweep(func(string) bool { return false })
	if w.process() == 0 {
		t.Error("a proxy that is looked after is swept away")
	}
	leave()
	p.Sweep(func(task string) bool { return strings.HasSuffix(w.task.Arn, "/"+task) })
	if w.process() == 0 {
		t.Error("the proxy of a task that is there is swept away")
	}
	p.Sweep(func(string) bool { return false })
	w.until("it has ended", func() bool { return w.process() == 0 })
}

// TestOtherNamespace: a container that was made anew has a proxy in its own namespace.
func TestOtherNamespace(t *testing.T) {
	w := newWorld(t)
	p := w.proxies()
	_, leave := w.attend(p)
	first := w.process()
	leave()
	other := newWorld(t)
	other.task, other.dir = w.task, w.dir
	other.serve(7000, "anew")
	other.move(7000)
	end, _ := other.attend(other.proxies())
	defer end()
	if got := other.get(alias); got != "anew" {
		t.Errorf("%q", got)
	}
	other.until("the first proxy has ended", func() bool { return syscall.Kill(first, 0) != nil })
}

// TestNoProxy: a task that takes no part, or only reaches nobody, needs none.
func TestNoProxy(t *testing.T) {
	for _, c := range []*acs.ServiceConnect{nil, {}} {
		end, leave, err := New(Options{}).Attend("/nowhere", &acs.Task{ServiceConnect: c}, "")
		if err != nil {
			t.Error(err)
		}
		leave()
		end()
	}
}
