package network

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/node/kernel"
	"github.com/pintle/pintle/internal/node/runtime/runtimetest"
)

// These tests make network namespaces, so they need root. They also need Debian's containernetworking-plugins and iptables. They leave the
// bridge pintle0 behind, which every Pintle on the machine uses.

// patience is how long a test waits for what should come soon, so that it passes on a busy machine too.
const patience = time.Minute

// As in cmd/pintle: /proc/self shows the main thread's namespaces, which must stay the machine's.
func init() { goruntime.LockOSThread() }

func open(t *testing.T, dir string) *Networks {
	t.Helper()
	n, err := OpenBridge(t.Context(), dir, netip.MustParsePrefix("10.213.0.0/16"))
	if err != nil {
		t.Fatal("these tests need root, containernetworking-plugins and iptables: ", err)
	}
	return n
}

func attach(t *testing.T, n *Networks, name string, ports ...Port) Address {
	t.Helper()
	id := unique(t, name)
	a, err := n.Attach(t.Context(), id, ports)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := n.Detach(context.Background(), id); err != nil {
			t.Error(err)
		}
	})
	return a
}

// TestAnotherSubnet: the bridge has one subnet, so an agent that is told another one would fail every task, and its rules would cut off
// the first agent's containers.
func TestAnotherSubnet(t *testing.T) {
	attach(t, open(t, t.TempDir()), "first")
	other := netip.MustParsePrefix("10.214.0.0/16")
	_, err := OpenBridge(t.Context(), t.TempDir(), other)
	if err == nil || !strings.Contains(err.Error(), "10.213.0.1/16") {
		t.Errorf("a second subnet: %v", err)
	}
}

// unique returns an ID that no other run of the tests has used, so that what a failed run left behind doesn't matter.
func unique(t *testing.T, name string) string {
	return t.Name() + "-" + runtimetest.Mark + "-" + name
}

// inside calls do on a thread inside a network namespace.
func inside(t *testing.T, a Address, do func() error) {
	t.Helper()
	if err := onThreadInside(a, do); err != nil {
		t.Fatal(err)
	}
}

func onThreadInside(a Address, do func() error) error {
	return kernel.OnThread(func() error {
		ns, err := netns.GetFromPath(a.NetNS)
		if err != nil {
			return err
		}
		defer ns.Close()
		if err := netns.Set(ns); err != nil {
			return err
		}
		return do()
	})
}

// greet serves a greeting on a port inside a network namespace.
func greet(t *testing.T, a Address, port int, greeting string) {
	t.Helper()
	var l net.Listener
	inside(t, a, func() (err error) {
		l, err = net.Listen("tcp4", fmt.Sprintf("0.0.0.0:%d", port))
		return err
	})
	serve(t, l, greeting)
}

func serve(t *testing.T, l net.Listener, greeting string) {
	t.Helper()
	s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, greeting+r.URL.Path) })}
	go s.Serve(l)
	t.Cleanup(func() { s.Close() })
}

// get makes a request over a connection of its own, and returns the body or the error.
func get(address, path string, dial func() (net.Conn, error)) string {
	transport := &http.Transport{DisableKeepAlives: true}
	transport.DialContext = func(_ context.Context, _, addr string) (net.Conn, error) {
		if dial != nil {
			return dial()
		}
		return net.DialTimeout("tcp", addr, patience)
	}
	c := http.Client{Timeout: patience, Transport: transport}
	resp, err := c.Get("http://" + address + path)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return string(b)
}

func TestAddressAndPublishedPort(t *testing.T) {
	n := open(t, t.TempDir())
	port := runtimetest.FreePort(t)
	a := attach(t, n, "one", Port{HostPort: port, ContainerPort: 80, Protocol: "tcp"})
	if a.MAC == "" || !strings.HasPrefix(a.IP, "10.213.") {
		t.Fatalf("got %+v", a)
	}
	greet(t, a, 80, "hello")
	for _, address := range []string{a.IP + ":80", fmt.Sprintf("127.0.0.1:%d", port), fmt.Sprintf("10.213.0.1:%d", port)} {
		if got := get(address, "/x", nil); got != "hello/x" {
			t.Errorf("%s answers %q", address, got)
		}
	}
	other := attach(t, n, "two")
	for _, address := range []string{a.IP + ":80", fmt.Sprintf("10.213.0.1:%d", port)} {
		var c net.Conn
		inside(t, other, func() (err error) {
			c, err = net.DialTimeout("tcp4", address, patience)
			return err
		})
		if got := get(address, "/", func() (net.Conn, error) { return c, nil }); got != "hello/" {
			t.Errorf("from another container, %s answers %q", address, got)
		}
	}
}

func TestAttachAndDetachAreIdempotent(t *testing.T) {
	dir := t.TempDir()
	n := open(t, dir)
	port := runtimetest.FreePort(t)
	publish := Port{HostPort: port, ContainerPort: 80, Protocol: "tcp"}
	first := attach(t, n, "one", publish)
	if again := attach(t, open(t, dir), "one", publish); again != first {
		t.Errorf("another agent gets %+v, want %+v", again, first)
	}
	for range 2 {
		if err := n.Detach(t.Context(), unique(t, "one")); err != nil {
			t.Fatal(err)
		}
	}
	if entries, _ := os.ReadDir(dir); len(entries) > 1 { // CNI's cache stays
		t.Errorf("there are still %v", entries)
	}
	second := attach(t, n, "two", publish) // the port is free again
	greet(t, second, 80, "second")
	if got := get(fmt.Sprintf("127.0.0.1:%d", port), "", nil); got != "second/" {
		t.Errorf("got %q", got)
	}
}

func TestPortIsReservedOnce(t *testing.T) {
	port := Port{HostPort: runtimetest.FreePort(t), ContainerPort: 80, Protocol: "tcp"}
	one, two := open(t, t.TempDir()), open(t, t.TempDir()) // two agents on one machine
	attach(t, one, "one", port)
	if _, err := two.Attach(t.Context(), unique(t, "two"), []Port{port}); err == nil || !strings.Contains(err.Error(), unique(t, "one")) {
		t.Errorf("the second agent gets %v", err)
	}
	if err := one.Detach(t.Context(), unique(t, "one")); err != nil {
		t.Fatal(err)
	}
	attach(t, two, "two", port)
}

func TestAfterAReboot(t *testing.T) {
	n := open(t, t.TempDir())
	a := attach(t, n, "one")
	id := unique(t, "one") // a reboot removes rules, addresses and mounts, but no files
	if err := n.cni.DelNetworkList(t.Context(), n.list, n.runtimeConf(id, nil)); err != nil {
		t.Fatal(err)
	}
	if err := kernel.Unmount(a.NetNS); err != nil {
		t.Fatal(err)
	}
	greet(t, attach(t, n, "one"), 80, "hello")
}

// TestInterruptedAttach interrupts Attach at many points, as killing the agent does, and lets the next agent attach again.
func TestInterruptedAttach(t *testing.T) {
	n := open(t, t.TempDir())
	port := runtimetest.FreePort(t)
	for i := range 12 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i*8)*time.Millisecond)
		id := unique(t, fmt.Sprint("cut", i))
		dir := n.dir + "/" + id
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		publish := []Port{{HostPort: port, ContainerPort: 80, Protocol: "tcp"}}
		n.connect(ctx, id, publish, makeNetNS) //nolint:errcheck // it's interrupted
		cancel()
		a, err := n.Attach(t.Context(), id, publish)
		if err != nil {
			t.Fatalf("after %d ms: %v", i*8, err)
		}
		greet(t, a, 80, id)
		if got := get(fmt.Sprintf("127.0.0.1:%d", port), "/", nil); got != id+"/" {
			t.Errorf("after %d ms, the port answers %q", i*8, got)
		}
		if err := n.Detach(t.Context(), id); err != nil {
			t.Fatal(err)
		}
	}
	rules, err := exec.Command("iptables", "--wait", "-t", "nat", "-S").Output()
	if err != nil || strings.Contains(string(rules), unique(t, "cut")) {
		t.Errorf("rules stay behind, %v", err)
	}
}

func TestConcurrentAttaches(t *testing.T) {
	n := open(t, t.TempDir())
	seen := map[string]bool{}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			a, err := n.Attach(t.Context(), unique(t, fmt.Sprint(i)), []Port{
				{HostPort: runtimetest.FreePort(t), ContainerPort: 80, Protocol: "tcp"},
			})
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if seen[a.IP] {
				t.Errorf("%s is given twice", a.IP)
			}
			seen[a.IP] = true
		})
	}
	all.Wait()
	for i := range 12 {
		if err := n.Detach(context.Background(), unique(t, fmt.Sprint(i))); err != nil {
			t.Error(err)
		}
	}
}

func TestLinkLocal(t *testing.T) {
	n := open(t, t.TempDir())
	for _, name := range []string{"one", "two"} { // each namespace has its own listeners
		a := attach(t, n, name)
		if err := Redirect(a.NetNS, false); err != nil {
			t.Fatal(err)
		}
		metadata, api, err := Listen(a.NetNS)
		if err != nil {
			t.Fatal(err)
		}
		serve(t, metadata, "metadata of "+name)
		plane, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		serve(t, plane, "control plane")
		ctx, cancel := context.WithCancel(t.Context())
		var forwarding sync.WaitGroup
		forwarding.Go(func() { Forward(ctx, api, plane.Addr().String(), nil) })
		greet(t, a, 80, "the container")
		for address, want := range map[string]string{
			"169.254.170.2:80":    "metadata of " + name + "/v4",
			"169.254.170.2:51679": "metadata of " + name + "/v4",
			"169.254.170.2:51678": "control plane/v4",
			"127.0.0.1:80":        "the container/v4",
		} {
			var c net.Conn
			inside(t, a, func() (err error) {
				c, err = net.DialTimeout("tcp4", address, patience)
				return err
			})
			if got := get(address, "/v4", func() (net.Conn, error) { return c, nil }); got != want {
				t.Errorf("%s answers %q, want %q", address, got, want)
			}
		}
		if got := get(a.IP+":51679", "", nil); !strings.Contains(got, "refused") {
			t.Errorf("from outside, the metadata endpoint answers %q", got)
		}
		cancel()
		forwarding.Wait()
		metadata.Close()
		if metadata, api, err = Listen(a.NetNS); err != nil { // as the next agent does
			t.Fatal(err)
		}
		metadata.Close()
		api.Close()
	}
}

// TestOtherContainersCannotReachTheAgent dials the agent's ports in one namespace from another namespace on the same bridge, with a route
// to them.
func TestOtherContainersCannotReachTheAgent(t *testing.T) {
	n := open(t, t.TempDir())
	one, two := attach(t, n, "one"), attach(t, n, "two")
	if err := Redirect(one.NetNS, false); err != nil {
		t.Fatal(err)
	}
	metadata, api, err := Listen(one.NetNS)
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	serve(t, metadata, "metadata of one")
	inside(t, two, func() error {
		if out, err := exec.Command("ip", "route", "add", LinkLocal, "via", one.IP).CombinedOutput(); err != nil {
			return fmt.Errorf("%w: %s", err, out)
		}
		for _, port := range []int{MetadataPort, APIPort} {
			if c, err := net.DialTimeout("tcp4", fmt.Sprintf("%s:%d", LinkLocal, port), time.Second); err == nil {
				c.Close()
				t.Errorf("port %d answers another container", port)
			}
		}
		return nil
	})
}

// begin does what an agent does in a namespace before it listens for what every container asks.
func begin(t *testing.T, a Address) {
	t.Helper()
	if err := Redirect(a.NetNS, true); err != nil {
		t.Fatal(err)
	}
	udp, tcp, err := ListenNames(a.NetNS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { udp.Close(); tcp.Close() })
	l, err := ListenAWS(a.NetNS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
}

// TestHoldBack calls the agent in namespaces where it doesn't listen yet. The calls wait for it.
func TestHoldBack(t *testing.T) {
	n := open(t, t.TempDir())
	for range 2 { // two agents
		rule, err := HoldBack(bridgeName, InstanceMetadata)
		if err != nil {
			t.Fatal(err)
		}
		defer rule.Close()
	}
	for i, tt := range []struct {
		address string
		port    int
		begun   bool // so that the kernel already looks at rules for addresses
		want    string
	}{
		{LinkLocal, 80, false, "80/v4"},
		{LinkLocal, APIPort, false, fmt.Sprint(APIPort, "/v4")},
		{LinkLocal, 80, true, "80/v4"},
		{InstanceMetadata, 80, false, "instance/v4"},
		{InstanceMetadata, 80, true, "instance/v4"},
	} {
		a := attach(t, n, fmt.Sprint(i, "-", tt.port))
		if tt.begun {
			begin(t, a)
		}
		answered := make(chan string, 1)
		go func() {
			var c net.Conn
			err := onThreadInside(a, func() (err error) {
				c, err = net.DialTimeout("tcp4", fmt.Sprintf("%s:%d", tt.address, tt.port), patience)
				return err
			})
			answered <- get(tt.address, "/v4", func() (net.Conn, error) { return c, err })
		}()
		awaitCall(t, a, answered)
		if !tt.begun {
			begin(t, a)
		}
		metadata, api, err := Listen(a.NetNS)
		if err != nil {
			t.Fatal(err)
		}
		serve(t, metadata, "80")
		serve(t, api, fmt.Sprint(APIPort))
		instance, err := ListenInstance(a.NetNS)
		if err != nil {
			t.Fatal(err)
		}
		serve(t, instance, "instance")
		if got := <-answered; got != tt.want {
			t.Errorf("%s:%d answers %q, want %q", tt.address, tt.port, got, tt.want)
		}
	}
}

// TestRedirectForgetsNobody has a container call all the while that the agent sets its rules up. Whatever the kernel has seen of a call before
// there were rules, the call is answered.
func TestRedirectForgetsNobody(t *testing.T) {
	n := open(t, t.TempDir())
	rule, err := HoldBack(bridgeName)
	if err != nil {
		t.Fatal(err)
	}
	defer rule.Close()
	for round := range 5 {
		a := attach(t, n, fmt.Sprint(round))
		ready := make(chan struct{})
		calls := make(chan []int)
		go func() {
			var sockets []int
			err := onThreadInside(a, func() (err error) {
				sockets, err = callUntil(ready)
				return err
			})
			if err != nil {
				t.Error(err)
			}
			calls <- sockets
		}()
		awaitCall(t, a, nil)
		begin(t, a)
		close(ready)
		sockets := <-calls
		metadata, api, err := Listen(a.NetNS)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range sockets {
			if err := connected(s); err != nil {
				t.Errorf("round %d: one of %d calls that came before the agent ends with: %v", round, len(sockets), err)
			}
			unix.Close(s)
		}
		metadata.Close()
		api.Close()
	}
}

// callUntil calls the agent's address again and again, without waiting for an answer, until ready is closed. It gives up all calls but the
// latest ones.
func callUntil(ready chan struct{}) (sockets []int, err error) {
	to := &unix.SockaddrInet4{Port: 80, Addr: netip.MustParseAddr(LinkLocal).As4()}
	for {
		if len(sockets) == 1000 {
			unix.Close(sockets[0])
			sockets = sockets[1:]
		}
		select {
		case <-ready:
			return sockets, nil
		default:
		}
		s, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			return sockets, err
		}
		sockets = append(sockets, s)
		if err := unix.Connect(s, to); err != unix.EINPROGRESS {
			return sockets, fmt.Errorf("connect: %w", err)
		}
	}
}

// connected waits until a socket that connects has done so.
func connected(socket int) error {
	for end := time.Now().Add(patience); time.Now().Before(end); {
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(socket), Events: unix.POLLOUT}}, 1000)
		if err != nil && err != unix.EINTR {
			return err
		}
		if n == 0 {
			continue
		}
		failed, err := unix.GetsockoptInt(socket, unix.SOL_SOCKET, unix.SO_ERROR)
		if err != nil || failed == 0 {
			return err
		}
		return unix.Errno(failed)
	}
	return errors.New("no answer")
}

// awaitCall waits until a call from a namespace is on its way.
func awaitCall(t *testing.T, a Address, ended chan string) {
	t.Helper()
	const synSent = " 02 "
	inside(t, a, func() error {
		for len(ended) == 0 {
			b, err := os.ReadFile("/proc/thread-self/net/tcp")
			if err != nil || strings.Contains(string(b), synSent) {
				return err
			}
			time.Sleep(time.Millisecond)
		}
		return nil
	})
}

// TestHoldBackLeavesNothing: the rule ends with its agent, however that ends.
func TestHoldBackLeavesNothing(t *testing.T) {
	var left []int
	inside(t, attach(t, open(t, t.TempDir()), "one"), func() error {
		first, err := HoldBack("docker0")
		if err != nil {
			return err
		}
		second, err := HoldBack("docker0")
		if err != nil {
			return err
		}
		for _, rule := range []io.Closer{second, first, nil} {
			tables, err := new(nftables.Conn).ListTables()
			if err != nil {
				return err
			}
			left = append(left, len(tables))
			if rule != nil {
				rule.Close()
			}
		}
		return nil
	})
	if !slices.Equal(left, []int{2, 1, 0}) {
		t.Errorf("as agents end, there are %v tables, want 2, 1, 0", left)
	}
}

// TestContainersCannotReachLoopback dials a program on the machine's loopback from a container, by way of the bridge.
func TestContainersCannotReachLoopback(t *testing.T) {
	n := open(t, t.TempDir())
	a := attach(t, n, "one", Port{HostPort: runtimetest.FreePort(t), ContainerPort: 80, Protocol: "tcp"})
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l, "the machine's own")
	inside(t, a, func() error {
		for _, args := range [][]string{
			{"sysctl", "-q", "-w", "net.ipv4.conf.all.route_localnet=1"},
			{"ip", "route", "del", "table", "local", "127.0.0.0/8", "dev", "lo"},
			{"ip", "route", "add", "127.0.0.0/8", "via", "10.213.0.1", "src", a.IP},
		} {
			exec.Command(args[0], args[1:]...).Run() //nolint:errcheck // if it fails, the dial below fails too
		}
		if c, err := net.DialTimeout("tcp4", l.Addr().String(), time.Second); err == nil {
			c.Close()
			t.Error("a program on the machine's loopback answers a container")
		}
		return nil
	})
}

func TestPortInUseIsRefused(t *testing.T) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	n := open(t, t.TempDir())
	p := Port{HostPort: uint16(l.Addr().(*net.TCPAddr).Port), ContainerPort: 80, Protocol: "tcp"}
	if _, err := n.Attach(t.Context(), unique(t, "one"), []Port{p}); err == nil || p.Free() {
		t.Errorf("a port that a program listens on was taken: %v", err)
	}
}

func TestListenRefusesTheMachinesNetwork(t *testing.T) {
	if _, _, err := Listen("/proc/self/ns/net"); err == nil {
		t.Error("the agent listens in the machine's network as if it were a container's")
	}
}

func TestMissingPluginIsNamed(t *testing.T) {
	config := `{"cniVersion":"1.0.0","name":"x","plugins":[{"type":"no-such-plugin"}]}`
	if _, err := Open(t.Context(), t.TempDir(), []byte(config)); err == nil || !strings.Contains(err.Error(), "no-such-plugin") {
		t.Errorf("got %v", err)
	}
	if _, err := Open(t.Context(), t.TempDir(), []byte(`{"name":1}`)); err == nil {
		t.Error("an invalid configuration was accepted")
	}
}

// TestInstanceMetadata serves the instance metadata service in a namespace, beside the task's own, and blocks it in another.
func TestInstanceMetadata(t *testing.T) {
	n := open(t, t.TempDir())
	a := attach(t, n, "one")
	if err := Redirect(a.NetNS, true); err != nil {
		t.Fatal(err)
	}
	metadata, api, err := Listen(a.NetNS)
	if err != nil {
		t.Fatal(err)
	}
	defer api.Close()
	serve(t, metadata, "of the task")
	for range 2 { // as the next agent does
		instance, err := ListenInstance(a.NetNS)
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "of the instance") })}
		go s.Serve(instance)
		restrict(t, a, Firewall{}) // leaves it alone
		for address, want := range map[string]string{"169.254.169.254:80": "of the instance", "169.254.170.2:80": "of the task/"} {
			var c net.Conn
			inside(t, a, func() (err error) { c, err = net.DialTimeout("tcp4", address, patience); return err })
			if got := get(address, "/", func() (net.Conn, error) { return c, nil }); got != want {
				t.Errorf("%s answers %q, want %q", address, got, want)
			}
		}
		s.Close()
	}
	greet(t, a, 80, "the container can have port 80 itself")
	two := attach(t, n, "two")
	for range 2 {
		if err := BlockInstance(two.NetNS); err != nil {
			t.Fatal(err)
		}
	}
	if c, err := onThreadDial(two, "169.254.169.254:80"); err == nil {
		c.Close()
		t.Error("what is blocked answers")
	} else if strings.Contains(err.Error(), "timeout") {
		t.Error("what is blocked keeps its callers waiting: ", err)
	}
}

func onThreadDial(a Address, address string) (c net.Conn, err error) {
	err = onThreadInside(a, func() (err error) {
		c, err = net.DialTimeout("tcp4", address, patience)
		return err
	})
	return c, err
}
