package test

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// ip runs iproute2's ip.
func ip(t testing.TB, args string) {
	t.Helper()
	if out, err := exec.Command("ip", strings.Fields(args)...).CombinedOutput(); err != nil {
		t.Fatalf("this test needs root and iproute2: ip %s: %v\n%s", args, err, out)
	}
}

// oneCable is held by the test that has a second machine: there is one address for it.
var oneCable sync.Mutex

// secondMachine makes a network namespace, which stands for a machine on a cable, and returns its name, the cable's end here, and this
// machine's address on it.
func secondMachine(t *testing.T) (netns, cable, address string) {
	t.Helper()
	oneCable.Lock()
	t.Cleanup(oneCable.Unlock)
	netns, cable = fmt.Sprint("pintle-test-", os.Getpid()), fmt.Sprint("pt", os.Getpid())
	ip(t, "netns add "+netns)
	t.Cleanup(func() { ip(t, "netns delete "+netns) })
	ip(t, "link add "+cable+" type veth peer name eth0 netns "+netns)
	t.Cleanup(func() { ip(t, "link delete "+cable) }) // the namespace may live a little longer than its name
	ip(t, "address add 10.231.77.1/30 dev "+cable)
	ip(t, "link set "+cable+" up")
	ip(t, "-n "+netns+" address add 10.231.77.2/30 dev eth0")
	ip(t, "-n "+netns+" link set eth0 up")
	ip(t, "-n "+netns+" link set lo up")
	return netns, cable, "10.231.77.1"
}

// startProgram starts a program that ends with the test, as on ctrl-C.
func startProgram(t *testing.T, env []string, name string, args ...string) {
	t.Helper()
	cmd := exec.Command(name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGINT) //nolint:errcheck // it may have ended
		late := time.AfterFunc(patience, func() { cmd.Process.Kill() })
		defer late.Stop()
		cmd.Wait() //nolint:errcheck // it was told to end
	})
}

// TestTwoMachines follows docs/nodes.md: a control plane that listens on all addresses, and a second machine that joins it. Then the
// cable between them is cut, and mended.
func TestTwoMachines(t *testing.T) {
	t.Parallel()
	netns, cable, address := secondMachine(t)
	_, port, _ := strings.Cut(freeAddress(t), ":")
	key := []string{"PINTLE_ACCESS_KEY_ID=AKID", "PINTLE_SECRET_ACCESS_KEY=secret"}
	startProgram(t, key, bin(t, "pintle"), "serve", "--listen", "0.0.0.0:"+port, "--data", t.TempDir(), "--heartbeat", "1s")
	p := &Pintle{t: t, Endpoint: "http://127.0.0.1:" + port, key: "AKID", secret: "secret"}
	Eventually(t, "the control plane", func() bool { _, err := p.TryAWS("ecs", "list-clusters"); return err == nil })
	startProgram(t, []string{"AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=secret"}, "ip", "netns", "exec", netns,
		bin(t, "pintle"), "agent", "--endpoint", "http://"+address+":"+port, "--data", t.TempDir(),
		"--runtime", "process", "--metrics=", "--ephemeral")
	connected := func(want string) func() bool {
		return func() bool {
			return p.AWS("ecs", "list-container-instances", "--filter", "agentConnected=="+want,
				"--query", "length(containerInstanceArns)", "--output", "text") == "1"
		}
	}
	Eventually(t, "the second machine's connection", connected("true"))
	p.AWS("ecs", "register-task-definition", "--family", "sleep", "--container-definitions",
		`[{"name":"main","image":"busybox","command":["sleep","3600"],"memory":16}]`)
	run := func(query string) string {
		return p.AWS("ecs", "run-task", "--task-definition", "sleep", "--query", query, "--output", "text")
	}
	p.Await(run("tasks[0].taskArn"), "RUNNING")

	ip(t, "link set "+cable+" down")
	Eventually(t, "agentConnected false", connected("false"))
	if reason := run("failures[0].reason"); reason != "AGENT" && !strings.HasPrefix(reason, "RESOURCE") {
		t.Errorf("a task for a machine that is away: %s", reason)
	}
	ip(t, "link set "+cable+" up")
	Eventually(t, "the second machine's return", connected("true"))
	p.Await(run("tasks[0].taskArn"), "RUNNING")
}
