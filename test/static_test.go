package test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// sshServer is OpenSSH's server on loopback, with keys of its own.
type sshServer struct{ address, identity, knownHosts string }

// startSSH starts one for the test.
func startSSH(t *testing.T) sshServer {
	t.Helper()
	dir := t.TempDir()
	for _, key := range []string{"host", "identity"} {
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	s := sshServer{freeAddress(t), filepath.Join(dir, "identity"), filepath.Join(dir, "known_hosts")}
	_, port, _ := strings.Cut(s.address, ":")
	host, _ := os.ReadFile(filepath.Join(dir, "host.pub"))
	write(t, s.knownHosts, "[127.0.0.1]:"+port+" "+string(host))
	config := filepath.Join(dir, "sshd_config")
	write(t, config, fmt.Sprintf("Port %s\nListenAddress 127.0.0.1\nHostKey %s/host\nAuthorizedKeysFile %s/identity.pub\nAuthenticationMethods publickey\nPidFile none\nUsePAM no\nStrictModes no\n", port, dir, dir))
	if os.Geteuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // as its service would
			t.Fatal(err)
		}
	}
	cmd := exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", config)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // sshd has its own
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatalf("sshd: %v: install openssh-server", err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
		cmd.Wait()                          //nolint:errcheck // by the signal
		if b, _ := os.ReadFile(filepath.Join(dir, "log")); t.Failed() {
			t.Logf("sshd says:\n%s", b)
		}
	})
	return s
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
}

// pool is a pool of machines that are all this one, in directories of their own.
type pool struct {
	*Pintle
	dir string
}

// upWithPool starts pintle up with machines that are described by what differs from the others.
func upWithPool(t *testing.T, machines ...map[string]any) *pool {
	t.Helper()
	ssh, dir := startSSH(t), t.TempDir()
	write(t, filepath.Join(dir, "power"), "#!/bin/sh\necho \"$1 $2\" >> "+dir+"/calls\n[ \"$1\" = \"wake\" ] && [ \"$2\" = mars ] && { echo 'no power' >&2; exit 3; }\nexit 0\n")
	var all []map[string]any
	for _, m := range machines {
		name := m["name"].(string)
		one := map[string]any{
			"address": ssh.address, "instanceType": "g4dn.xlarge", "program": bin(t, "pintle"), "data": filepath.Join(dir, "it's $(touch oops)", name),
			"wake": []string{filepath.Join(dir, "power"), "wake", name}, "sleep": []string{filepath.Join(dir, "power"), "sleep", name}, "wakeSeconds": 120,
			"identityFile": ssh.identity, "knownHostsFile": ssh.knownHosts,
			"agent": []string{"--runtime=process", "--instance-type=g4dn.xlarge", "--metrics="},
		}
		for k, v := range m {
			one[k] = v
		}
		all = append(all, one)
	}
	b, err := json.Marshal(map[string]any{"machines": all})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "pool.json"), string(b))
	address := freeAddress(t)
	p := &Pintle{t: t, Endpoint: "http://" + address, data: t.TempDir(), key: "test", secret: "test"}
	p.args = []string{"up", "--listen", address, "--data", p.data, "--fleet", "static", "--fleet-pool", filepath.Join(dir, "pool.json"), "--metrics=", "--runtime", "process", "--reaction", "fast"}
	p.Start()
	w := &pool{p, dir}
	t.Cleanup(func() {
		for pid := range w.processes() { // none, unless the test has failed
			syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
		}
	})
	t.Cleanup(p.Interrupt)
	return w
}

// processes are those of the machines: agents, shims and containers, by their numbers.
func (p *pool) processes() map[int]string {
	out := map[int]string{}
	paths, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, path := range paths {
		pid, _ := strconv.Atoi(strings.Split(path, "/")[2])
		if b, err := os.ReadFile(path); err == nil && pid != p.cmd.Process.Pid && strings.Contains(string(b), p.dir) {
			out[pid] = string(b)
		}
	}
	return out
}

// agents are the numbers of the agents' processes.
func (p *pool) agents() (out []int) {
	for pid, cmdline := range p.processes() {
		if strings.Contains(cmdline, "\x00agent\x00") {
			out = append(out, pid)
		}
	}
	slices.Sort(out)
	return out
}

func (p *pool) calls() string {
	b, _ := os.ReadFile(filepath.Join(p.dir, "calls"))
	return string(b)
}

// nothingStays waits until nothing is left of instances.
func (p *pool) nothingStays() {
	p.t.Helper()
	for _, pattern := range []string{filepath.Join(p.dir, "*", "*", "i-*"), filepath.Join(p.data, "pool", "*")} {
		Eventually(p.t, "the end of "+pattern, func() bool {
			left, err := filepath.Glob(pattern)
			return err == nil && len(left) == 0
		})
	}
}

func (p *pool) desire(n string) {
	p.AWS("autoscaling", "set-desired-capacity", "--auto-scaling-group-name", "pool", "--desired-capacity", n)
}

// TestStaticFleet scales a group from nothing to two machines of one's own and back, over SSH, while the control plane is killed
// again and again. One machine does not wake: another takes its place, and the activities say why. The agents and their
// tasks outlive the control plane; in the end nothing is left of them, and all machines sleep.
func TestStaticFleet(t *testing.T) {
	t.Parallel()
	p := upWithPool(t, map[string]any{"name": "mars"}, map[string]any{"name": "venus"}, map[string]any{"name": "earth"})
	p.gpuGroup("pool", "default")
	p.desire("1")
	activities := func(query string) string {
		return p.AWS("autoscaling", "describe-scaling-activities", "--query", "Activities["+query+"].StatusMessage", "--output", "text")
	}
	Eventually(t, "the reason why one is left out", func() bool {
		return strings.Contains(activities(""), "mars: wake: exit status 3: no power")
	})
	p.desire("2")
	p.Kill()
	p.Start()
	Eventually(t, "two instances in service", func() bool {
		return p.AWS("autoscaling", "describe-auto-scaling-groups", "--query", "AutoScalingGroups[0].Instances[].LifecycleState", "--output", "text") == "InService\tInService"
	})
	agents := p.agents()
	if calls := p.calls(); len(agents) != 2 || !strings.Contains(calls, "wake venus\n") || !strings.Contains(calls, "wake earth\n") {
		t.Errorf("%d agents run: %v; the machines were told %s", len(agents), p.processes(), calls)
	}
	p.AWS("ecs", "register-task-definition", "--family", "job", "--container-definitions",
		`[{"name":"main","image":"i","memory":64,"command":["sh","-c","sleep 600; : `+p.dir+`"],"stopTimeout":2,"resourceRequirements":[{"type":"GPU","value":"1"}]}]`)
	for _, task := range strings.Fields(p.AWS("ecs", "run-task", "--task-definition", "job", "--count", "2", "--query", "tasks[].taskArn", "--output", "text")) {
		p.Await(task, "RUNNING")
	}
	p.desire("3") // there is no third one
	Eventually(t, "the reason", func() bool {
		return strings.Contains(activities("?StatusCode==`Failed`"), "Server.InsufficientInstanceCapacity: the pool has no free g4dn.xlarge in us-east-1a: 2 in use; left out for ")
	})
	p.desire("2")
	p.Kill()
	p.Start()
	Eventually(t, "the agents' return", func() bool {
		return p.AWS("ecs", "describe-clusters", "--query", "clusters[0].[registeredContainerInstancesCount,runningTasksCount]", "--output", "text") == "2\t2"
	})
	if got := p.agents(); !slices.Equal(got, agents) {
		t.Errorf("the agents were %v, and are %v", agents, got)
	}

	p.desire("0")
	time.Sleep(300 * time.Millisecond)
	p.Kill()
	p.Start()
	Eventually(t, "the end", func() bool {
		return len(p.processes()) == 0 && p.AWS("autoscaling", "describe-auto-scaling-instances", "--query", "length(AutoScalingInstances)") == "0" &&
			p.AWS("ecs", "describe-clusters", "--query", "clusters[0].[registeredContainerInstancesCount,runningTasksCount]", "--output", "text") == "0\t0"
	})
	Eventually(t, "the sleep of both machines", func() bool {
		calls := p.calls()
		return strings.Contains(calls, "sleep venus\n") && strings.Contains(calls, "sleep earth\n")
	})
	p.nothingStays()
	if _, err := os.Stat(filepath.Join(os.Getenv("HOME"), "oops")); err == nil {
		t.Error("a shell has run what a directory's name says")
	}
}

// TestStaticSurvivesKills has a group's capacity changed while the control plane, and in the end an agent, is killed again and
// again: no machine is ever two instances, and in the end there are as many as were asked for. Its access key is on no command
// line but its own.
func TestStaticSurvivesKills(t *testing.T) {
	t.Parallel()
	p := upWithPool(t, map[string]any{"name": "venus"}, map[string]any{"name": "earth"}, map[string]any{"name": "pluto"})
	p.Kill()
	p.key, p.secret = "AKIDPOOL", "a-secret-of-the-pool"
	p.args = append(p.args, "--access-key-id", p.key, "--secret-access-key", p.secret)
	p.Start()
	p.gpuGroup("pool", "default")
	for i := range 8 {
		p.desire(strconv.Itoa((i*2 + 1) % 4))
		time.Sleep(time.Duration(i*i*40) * time.Millisecond)
		is, who := map[string]string{}, map[string]string{} // which instance each machine is, and the other way round
		paths, _ := filepath.Glob(filepath.Join(p.dir, "*", "*", "i-*"))
		for _, path := range paths {
			machine, id := filepath.Base(filepath.Dir(path)), filepath.Base(path)
			if is[machine] != "" || who[id] != "" {
				t.Errorf("a machine is two instances, or an instance two machines: %v", paths)
			}
			is[machine], who[id] = id, machine
		}
		p.Kill()
		p.Start()
	}
	p.desire("2")
	two := func() bool {
		return len(p.agents()) == 2 && p.AWS("ecs", "list-container-instances", "--query", "length(containerInstanceArns)") == "2" &&
			p.AWS("autoscaling", "describe-auto-scaling-groups", "--query", "AutoScalingGroups[0].Instances[].LifecycleState", "--output", "text") == "InService\tInService"
	}
	Eventually(t, "two machines", two)
	for pid, cmdline := range p.processes() {
		if strings.Contains(cmdline, p.secret) {
			t.Errorf("the process %d tells the secret: %s", pid, cmdline)
		}
	}

	dead := p.agents()[0] // as if its machine had been switched off and on
	if err := syscall.Kill(dead, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.Kill()
	p.Start() // which asks the machines at once what they are
	Eventually(t, "the agent's return", func() bool { return two() && !slices.Contains(p.agents(), dead) })
	p.AWS("autoscaling", "delete-auto-scaling-group", "--auto-scaling-group-name", "pool", "--force-delete")
	Eventually(t, "the group's end", func() bool {
		return len(p.processes()) == 0 && p.AWS("autoscaling", "describe-auto-scaling-groups", "--query", "length(AutoScalingGroups)") == "0"
	})
	p.nothingStays()
}

// TestStaticTrust: a machine whose host key is unknown, or that does not take the key, gets no agent, and the activities say so at
// once. A pool that is wrong starts nothing.
func TestStaticTrust(t *testing.T) {
	t.Parallel()
	nobody := filepath.Join(t.TempDir(), "known_hosts")
	write(t, nobody, "")
	key := filepath.Join(t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	p := upWithPool(t, map[string]any{"name": "stranger", "knownHostsFile": nobody, "wakeSeconds": 600}, map[string]any{"name": "stubborn", "identityFile": key, "wakeSeconds": 600})
	p.gpuGroup("pool", "default")
	p.desire("2")
	said := func(what string) {
		Eventually(t, what, func() bool {
			return strings.Contains(p.AWS("autoscaling", "describe-scaling-activities", "--query", "Activities[].StatusMessage", "--output", "text"), what)
		})
	}
	said("stranger: ssh: exit status 255: ")
	said("Host key verification failed")
	said("stubborn: ssh: exit status 255: ")
	said("Permission denied (publickey)")
	p.desire("0")
	if got := p.agents(); len(got) != 0 {
		t.Errorf("agents run: %v", got)
	}

	bad := filepath.Join(t.TempDir(), "pool.json")
	write(t, bad, `{"machines":[{"name":"a","address":"x y","instanceType":"g4dn.xlarge"}]}`)
	out, err := exec.Command(bin(t, "pintle"), "serve", "--listen", freeAddress(t), "--data", t.TempDir(), "--fleet", "static", "--fleet-pool", bad).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "machines[0] (a): address") {
		t.Errorf("%v: %s", err, out)
	}
}
