// Package test holds the acceptance tests. They build the pintle binary, run it, and drive it with clients written by others:
// the AWS CLI, boto3 and the Go SDK. The tests fail if a client is missing.
package test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// cli is the directory of the aws program that aws.py creates. python is the interpreter that has the CLI and boto3, resolved
// past any wrapper that selects a version for the name python3.
var cli, python string

// StartCLI prepares the AWS CLI for all tests, and returns a function that ends it.
func StartCLI() (stop func(), err error) {
	if cli, err = os.MkdirTemp("", "pintle-aws-"); err != nil { // socket paths are limited in length
		return nil, err
	}
	cmd := exec.Command("python3", "aws.py", cli)
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop = func() {
		in.Close() //nolint:errcheck // closing stdin ends it
		cmd.Wait() //nolint:errcheck // it was asked to end
		os.RemoveAll(cli)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return nil, errors.New("the AWS CLI is missing: install it (pip install awscli)")
	}
	python = strings.TrimSpace(line)
	return stop, nil
}

// Pintle is a running pintle up.
type Pintle struct {
	t        testing.TB
	Endpoint string
	data     string
	key      string // clients sign with it; any key works if signatures aren't checked
	secret   string
	ca       string // the certificate authority that clients trust; "" is the system's
	program  string // what Start runs; "" is the built program
	args     []string
	cmd      *exec.Cmd
	out      *output // since the last Start
}

// output is what a program has printed so far.
type output struct {
	mu   sync.Mutex
	text []byte
}

// Write implements io.Writer.
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text = append(o.text, b...)
	return len(b), nil
}

// Printed returns what it has printed since it was started.
func (p *Pintle) Printed() string {
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	return string(p.out.text)
}

// bin returns the path of a program in bin: pintle, or one of the examples.
func bin(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs("../bin/" + name)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Fatalf("%s is not built: run make build", path)
	}
	return path
}

// Up starts pintle up on a free port with simulated nodes and plain processes. The test's end stops it and its tasks.
func Up(t testing.TB, instances string, args ...string) *Pintle {
	t.Helper()
	return UpProgram(t, bin(t, "pintle"), instances, args...)
}

// UpProgram is Up with a pintle at another path.
func UpProgram(t testing.TB, program, instances string, args ...string) *Pintle {
	t.Helper()
	address := freeAddress(t)
	p := &Pintle{t: t, Endpoint: "http://" + address, data: t.TempDir(), key: "test", secret: "test", program: program}
	p.args = append([]string{"up", "--listen", address, "--data", p.data, "--instances", instances, "--metrics="}, args...)
	if !slices.Contains(args, "--runtime") {
		p.args = append(p.args, "--runtime", "process")
	}
	p.Start()
	t.Cleanup(p.Interrupt)
	return p
}

// UpSigned is Up with an access key, so that the control plane checks every signature.
func UpSigned(t testing.TB, instances string, args ...string) *Pintle {
	t.Helper()
	p := Up(t, instances, append(args, "--access-key-id", "AKID", "--secret-access-key", "secret")...)
	p.key, p.secret = "AKID", "secret"
	return p
}

// lastPort is the port that freeAddress tried last.
var lastPort = func() *atomic.Int32 {
	n := new(atomic.Int32)
	n.Store(10_000 + rand.Int32N(12_000))
	return n
}()

// freeAddress returns an unused loopback address, a different one on each call. The port lies outside the range from which
// Linux picks ports for outgoing connections (net.ipv4.ip_local_port_range). Otherwise a connection could take it while the
// process listening on it is killed and restarted.
func freeAddress(t testing.TB) string {
	t.Helper()
	for range 10_000 {
		l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", lastPort.Add(1)))
		if err == nil {
			defer l.Close() //nolint:errcheck // only its address was needed
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

// Start starts it, or restarts it after Kill, and waits until its nodes are connected.
func (p *Pintle) Start() {
	p.t.Helper()
	p.cmd = exec.Command(cmp.Or(p.program, bin(p.t, "pintle")), p.args...)
	p.cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(bin(p.t, "pintle"))+":"+os.Getenv("PATH"))
	p.out = new(output)
	p.cmd.Stdout = p.out
	p.cmd.WaitDelay = time.Second // what it leaves running may hold the pipe
	p.cmd.Stderr = os.Stderr
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	Eventually(p.t, "pintle up is up", func() bool { return strings.Contains(p.Printed(), " is up at ") })
}

// Kill kills it with SIGKILL, as a power cut would.
func (p *Pintle) Kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	p.cmd.Wait() //nolint:errcheck // it was killed
}

// Interrupt ends it as ctrl-C does.
func (p *Pintle) Interrupt() {
	p.cmd.Process.Signal(syscall.SIGINT) //nolint:errcheck // it may have ended
	done := make(chan error, 1)
	go func() { done <- p.cmd.Wait() }()
	select {
	case <-done:
	case <-time.After(patience):
		p.cmd.Process.Kill() //nolint:errcheck // it hangs
		p.t.Errorf("pintle up did not end within %s of ctrl-C", patience)
	}
}

// Env is the environment that points clients here and nowhere else.
func (p *Pintle) Env() []string {
	return append(os.Environ(), "AWS_CA_BUNDLE="+p.ca, "AWS_ENDPOINT_URL="+p.Endpoint, "AWS_DISABLE_HOST_PREFIX_INJECTION=true", "AWS_REGION=us-east-1", "AWS_DEFAULT_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID="+p.key, "AWS_SECRET_ACCESS_KEY="+p.secret, "AWS_PAGER=", "AWS_MAX_ATTEMPTS=1", "AWS_EC2_METADATA_DISABLED=true",
		"PATH="+cli+":"+filepath.Dir(bin(p.t, "pintle"))+":"+os.Getenv("PATH"))
}

// Command prepares a program to run against it.
func (p *Pintle) Command(name string, args ...string) *exec.Cmd {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Minute)
	p.t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = p.Env()
	return cmd
}

// AWS runs the AWS CLI and returns what it prints.
func (p *Pintle) AWS(args ...string) string {
	p.t.Helper()
	out, err := p.TryAWS(args...)
	if err != nil {
		p.t.Fatalf("aws %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(out)
}

// Await waits until a task reaches a status. The AWS CLI's own waiters are slower: they poll every six seconds.
func (p *Pintle) Await(task, status string) {
	p.t.Helper()
	Eventually(p.t, task+" "+status, func() bool {
		return p.AWS("ecs", "describe-tasks", "--tasks", task, "--query", "tasks[0].lastStatus", "--output", "text") == status
	})
}

// TryAWS runs the AWS CLI and returns its error, if any.
func (p *Pintle) TryAWS(args ...string) (string, error) {
	p.t.Helper()
	// Older CLIs ignore AWS_ENDPOINT_URL and would call AWS itself, so the endpoint is passed explicitly.
	out, err := p.Command(filepath.Join(cli, "aws"), append([]string{"--endpoint-url", p.Endpoint}, args...)...).CombinedOutput()
	return string(out), err
}

// Post sends a raw body to an operation.
func (p *Pintle) Post(target, body string) (status int, answer string, err error) {
	r, err := http.NewRequest(http.MethodPost, p.Endpoint, strings.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	r.Header.Set("X-Amz-Target", target)
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b), err
}

// patience is how long the tests wait for anything. It's far longer than needed, because the machine may be busy with something
// else.
const patience = 3 * time.Minute

// Eventually waits until ok returns true.
func Eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	if !waitFor(ok) {
		t.Fatalf("%s did not happen within %s", what, patience)
	}
}

// waitFor polls until ok returns true. It spends at most half of the time polling, because polling takes CPU from what it waits
// for.
func waitFor(ok func() bool) bool {
	for deadline := time.Now().Add(patience); ; {
		asked := time.Now()
		if ok() {
			return true
		}
		if time.Now().After(deadline) {
			return false
		}
		time.Sleep(max(20*time.Millisecond, time.Since(asked)))
	}
}
