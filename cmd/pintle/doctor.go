package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
)

// doctorCmd checks a machine before it's trusted with work. It changes nothing but for a file in the data directory that it removes again.
type doctorCmd struct {
	Role       string
	Data       string
	Listen     string
	Endpoint   string
	Runtime    string
	DockerHost string
	Instances  int
	JSON       bool
}

func (c *doctorCmd) define(f flags) {
	f.choice(&c.Role, "for", "both", "What the machine is to be.", "control-plane", "node", "both")
	f.path(&c.Data, "data", "DIRECTORY", "~/.pintle", "Directory for all state.")
	f.StringVar(&c.Listen, "listen", "127.0.0.1:4566", "Address that a control plane is to listen on here.")
	f.choice(&c.Runtime, "runtime", "auto", "What is to run containers.", "auto", "docker", "oci", "process")
	f.StringVar(&c.DockerHost, "docker-host", "", "Docker Engine, such as unix:///var/run/docker.sock.")
	f.endpoint(&c.Endpoint)
	c.Endpoint = ""
	flag := f.Lookup("endpoint")
	flag.DefValue, flag.Usage = "", "URL of a control plane that this machine must reach."
	f.env("endpoint", "AWS_ENDPOINT_URL")
	f.count(&c.Instances, "instances", "How many container instances a control plane here is to have.")
	f.BoolVar(&c.JSON, "json", false, "Print the findings as JSON.")
}

func (c *doctorCmd) verb() *cobra.Command {
	cmd := newVerb("doctor [flags]", "Check whether this machine is fit for Pintle, and say what to do about what isn't.", noArguments, c.Run)
	cmd.Long = "It ends with status 1 if something must be done. A warning says what works less well, or not for every task."
	c.define(flags{cmd.Flags()})
	return cmd
}

// verdict is what a check comes to.
type verdict string

const (
	fine    verdict = "ok"
	warning verdict = "warning"
	unfit   verdict = "fail"
)

// finding is what a check has found.
type finding struct {
	Check   string  `json:"check"`
	Verdict verdict `json:"verdict"`
	Found   string  `json:"found"`
	Do      string  `json:"do,omitempty"` // what to do about it
}

// Run checks everything, and exits with 1 if something must be done.
func (c *doctorCmd) Run(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	found := examine(ctx, *c, thisSystem(*c).hurried())
	if err := printFindings(found, c.JSON); err != nil {
		return err
	}
	for _, f := range found {
		if f.Verdict == unfit {
			return exitCode(1)
		}
	}
	return nil
}

// patience is how long somebody else may take to answer. One who hangs mustn't take the time of the other checks.
const patience = 10 * time.Second

// hurried returns the system with that patience.
func (s system) hurried() system {
	run, ask, docker, gpus := s.run, s.health, s.docker, s.gpus
	s.run = func(ctx context.Context, name string, args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return run(ctx, name, args...)
	}
	s.health = func(ctx context.Context, endpoint string) (health, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return ask(ctx, endpoint)
	}
	s.docker = func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return docker(ctx)
	}
	s.gpus = func(ctx context.Context) (string, error) {
		ctx, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		return gpus(ctx)
	}
	return s
}

func printFindings(found []finding, asJSON bool) error {
	if asJSON {
		return json.NewEncoder(os.Stdout).Encode(found)
	}
	w := newTable("", "CHECK", "FOUND")
	for _, f := range found {
		w.row(string(f.Verdict), f.Check, f.Found)
		if f.Do != "" {
			w.row("", "", "-> "+f.Do)
		}
	}
	return w.Flush()
}

// examine makes the checks that a machine's role needs.
func examine(ctx context.Context, c doctorCmd, s system) []finding {
	found := []finding{kernelCheck(s), clockCheck(s), filesCheck(c, s), diskCheck(c, s), speedCheck(c, s), ownerCheck(c, s)}
	if c.Role != "node" {
		found = append(found, portCheck(ctx, c, s))
	}
	if c.Role != "control-plane" {
		found = append(found, nodeChecks(ctx, c, s)...)
	}
	if c.Endpoint != "" {
		found = append(found, endpointCheck(ctx, c, s))
	}
	return found
}

// nodeChecks are those of a machine that runs containers.
func nodeChecks(ctx context.Context, c doctorCmd, s system) []finding {
	if c.Runtime == "process" {
		return []finding{{"containers", warning, "plain processes, without images, isolation and limits", ""}, gpuCheck(ctx, s)}
	}
	docker, oci := dockerCheck(ctx, s), runcCheck(ctx, s)
	found := []finding{cgroupCheck(s)}
	switch {
	case c.Runtime == "docker":
		found = append(found, docker)
	case c.Runtime == "oci":
		found = append(found, oci)
	case docker.Verdict == fine || oci.Verdict == fine: // one will do
		for _, f := range []finding{docker, oci} {
			if f.Verdict == fine {
				found = append(found, f)
			}
		}
	default:
		found = append(found, docker, oci)
	}
	return append(found, networkCheck(ctx, s), firewallCheck(s), gpuCheck(ctx, s))
}

// checks of the system, each from what it says of itself.

func kernelCheck(s system) finding {
	f := finding{Check: "kernel", Verdict: fine, Found: "Linux " + s.release}
	var major, minor int
	if _, err := fmt.Sscanf(s.release, "%d.%d", &major, &minor); err != nil || major < 5 || major == 5 && minor < 10 {
		f.Verdict, f.Do = warning, "Pintle has been tried on 5.10 and later: use a newer kernel if containers don't start"
	}
	return f
}

func clockCheck(s system) finding {
	synced, err := s.clockIsSynced()
	switch {
	case err != nil:
		return finding{"clock", warning, "whether it is synchronised can't be told: " + err.Error(), "run chrony or systemd-timesyncd"}
	case !synced:
		return finding{"clock", warning, "not synchronised by NTP, as far as the kernel knows",
			"run chrony or systemd-timesyncd: signatures are refused where clocks differ by more than 5 minutes"}
	}
	return finding{"clock", fine, "synchronised", ""}
}

const (
	// fewFiles is below what a control plane with some hundred nodes needs, half of it for connections.
	fewFiles = 4096
	// filesOfStores is room for what else a control plane has open, and unitFiles what its unit allows.
	filesOfStores, unitFiles = 1000, 65536
)

// filesFor returns how many files a control plane needs for container instances. Two web sockets of each share a half with the stores' files. The other
// half, for callers' connections, has room for one of each then.
func filesFor(instances int) uint64 { return 2 * (2*uint64(instances) + filesOfStores) }

func filesCheck(c doctorCmd, s system) finding {
	n := s.maxFiles()
	f := finding{Check: "open files", Verdict: fine, Found: fmt.Sprintf("at most %d", n)}
	do := func(needs uint64) string {
		return fmt.Sprintf("raise it: ulimit -n %[1]d, or LimitNOFILE=%[1]d in the unit; half of them are for connections", max(needs, unitFiles))
	}
	switch needs := filesFor(c.Instances); {
	case c.Instances > 0 && c.Role != "node" && n < needs:
		f.Verdict, f.Found, f.Do = unfit, fmt.Sprintf("at most %d, and %d container instances take %d", n, c.Instances, needs), do(needs)
	case n < fewFiles:
		f.Verdict, f.Do = warning, do(0)
	}
	return f
}

const (
	mega     = 1 << 20
	roomMust = 64 * mega       // what a control plane refuses changes below
	roomGood = 5 * 1024 * mega // for images, logs and objects
)

func diskCheck(c doctorCmd, s system) finding {
	free, err := s.freeBytes(c.Data)
	f := finding{Check: "disk space", Verdict: fine, Found: fmt.Sprintf("%d MB free on %s", free/mega, c.Data)}
	switch {
	case err != nil:
		return finding{"disk space", unfit, err.Error(), "choose another directory with --data"}
	case free < roomMust:
		f.Verdict, f.Do = unfit, "make room: below 64 MB changes are refused"
	case free < roomGood:
		f.Verdict, f.Do = warning, "make room for images, logs and objects: 5 GB at least"
	}
	return f
}

// slowSync is what makes each call that changes something slow, though all who wait share one.
const slowSync = 20 * time.Millisecond

func speedCheck(c doctorCmd, s system) finding {
	took, err := s.syncTime(c.Data)
	f := finding{Check: "disk speed", Verdict: fine, Found: fmt.Sprintf("%v for a write that is on the disk", took.Round(10*time.Microsecond))}
	switch {
	case err != nil:
		return finding{"disk speed", unfit, err.Error(), "see that this user can write there, or choose another directory with --data"}
	case took > slowSync:
		f.Verdict, f.Do = warning, "every change waits for one of these: put the data directory on a local SSD"
	}
	return f
}

func ownerCheck(c doctorCmd, s system) finding {
	owner, mode, err := s.owner(c.Data)
	f := finding{Check: "data directory", Verdict: fine, Found: c.Data}
	switch {
	case os.IsNotExist(err):
		f.Found += " isn't there yet, and is made at the first start"
	case err != nil:
		f.Verdict, f.Found, f.Do = unfit, err.Error(), "see that this user can read it, or choose another directory with --data"
	case owner != s.uid:
		f.Verdict = unfit
		f.Found = fmt.Sprintf("%s belongs to user %d, and this is user %d", c.Data, owner, s.uid)
		f.Do = fmt.Sprintf("run as that user, such as by: sudo -u '#%d' pintle doctor; or chown -R it", owner)
	case mode.Perm()&0o077 != 0:
		f.Verdict, f.Found = warning, fmt.Sprintf("%s can be read by others (mode %04o)", c.Data, mode.Perm())
		f.Do = "chmod 700 it: it holds keys and secrets; a control plane does so when it starts"
	}
	return f
}

func portCheck(ctx context.Context, c doctorCmd, s system) finding {
	f := finding{Check: "port", Verdict: fine, Found: c.Listen + " is free"}
	err := s.listen(c.Listen)
	if err == nil {
		return f
	}
	if h, asked := s.health(ctx, "http://"+c.Listen); asked == nil && h.version != "" {
		f.Found = fmt.Sprintf("a control plane listens on %s: pintle %s, %s", c.Listen, h.version, h.status)
		return f
	}
	do := "choose an address of this machine with --listen HOST:PORT"
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		do = "end what listens there, or choose another address with --listen"
	case errors.Is(err, syscall.EACCES):
		do = "choose a port above 1023 with --listen, or have systemd give the unit CAP_NET_BIND_SERVICE"
	}
	return finding{"port", unfit, err.Error(), do}
}

func cgroupCheck(s system) finding {
	const wants = "cpu memory"
	controllers, err := s.read("/sys/fs/cgroup/cgroup.controllers")
	if err != nil {
		return finding{"control groups", warning, "version 1, or none",
			"boot with systemd.unified_cgroup_hierarchy=1: with version 1, a task's CPU and memory may bind each container and not the task"}
	}
	has := strings.Fields(controllers)
	for _, want := range strings.Fields(wants) {
		if !slices.Contains(has, want) {
			return finding{"control groups", unfit, "version 2 without the controller " + want, "enable it: containers' limits need it; in a container, delegate it (Delegate=yes)"}
		}
	}
	return finding{"control groups", fine, "version 2: " + strings.Join(has, " "), ""}
}

func dockerCheck(ctx context.Context, s system) finding {
	if err := s.docker(ctx); err != nil {
		do := "start it: systemctl start docker; if there is none: apt-get install docker.io, or runc for the runtime oci"
		switch text := err.Error(); {
		case strings.Contains(text, "permission denied"):
			do = "run the agent as root, or as a user of the group docker, which may do as much"
		case strings.Contains(text, context.DeadlineExceeded.Error()):
			do = "it hangs: systemctl restart docker"
		}
		return finding{"docker", unfit, firstLine(err.Error()), do}
	}
	version, err := s.run(ctx, "docker", "version", "--format", "{{.Server.Version}}")
	if err != nil {
		version = "answers"
	}
	return finding{"docker", fine, "Docker Engine " + version, ""}
}

func runcCheck(ctx context.Context, s system) finding {
	version, err := s.run(ctx, "runc", "--version")
	switch {
	case err != nil:
		return finding{"runc", unfit, "runc can't be run: " + firstLine(err.Error()), "apt-get install runc containernetworking-plugins iptables"}
	case s.uid != 0:
		return finding{"runc", unfit, version + ", but this user isn't root", "run the agent as root: the runtime oci needs it"}
	}
	return finding{"runc", fine, version, ""}
}

// plugins are what the bridge's CNI configuration names.
var plugins = []string{"bridge", "host-local", "firewall", "portmap"}

func networkCheck(ctx context.Context, s system) finding {
	const do = "apt-get install containernetworking-plugins iptables: network modes bridge (of the runtime oci) and awsvpc need them"
	var missing []string
	for _, p := range plugins {
		if !s.hasPlugin(p) {
			missing = append(missing, p)
		}
	}
	if len(missing) > 0 {
		return finding{"networks", warning, "CNI plugins are missing: " + strings.Join(missing, ", "), do}
	}
	version, err := s.run(ctx, "iptables", "--version")
	if err != nil {
		return finding{"networks", warning, "iptables can't be run: " + firstLine(err.Error()), do}
	}
	return finding{"networks", fine, "CNI plugins, " + version, ""}
}

func firewallCheck(s system) finding {
	if !s.canRestrict() {
		return finding{"firewall", warning, "nftables can't be used", "run the agent as root on a kernel with nf_tables: security groups of tasks need it"}
	}
	return finding{"firewall", fine, "nftables", ""}
}

func gpuCheck(ctx context.Context, s system) finding {
	gpus, err := s.gpus(ctx)
	switch {
	case err == nil:
		return finding{"gpus", fine, gpus, ""}
	case gpus == "":
		return finding{"gpus", warning, "none: " + firstLine(err.Error()), "if this machine has GPUs, install NVIDIA's driver"}
	}
	return finding{"gpus", unfit, gpus + ", but containers can't have them", firstLine(err.Error())}
}

// What clocks may differ by: signatures are refused beyond five minutes, and times in logs and metrics are those of nodes.
const (
	clockGood = 5 * time.Second
	clockMust = 4 * time.Minute
)

func endpointCheck(ctx context.Context, c doctorCmd, s system) finding {
	h, err := s.health(ctx, c.Endpoint)
	if err != nil {
		return finding{"control plane", unfit, err.Error(), "see that it runs, and that nothing between drops the connection; for --tls auto set AWS_CA_BUNDLE"}
	}
	f := finding{Check: "control plane", Verdict: fine, Found: fmt.Sprintf("pintle %s at %s, %s", h.version, c.Endpoint, h.status)}
	apart := s.now().Sub(h.date).Abs()
	switch {
	case h.version == "":
		f.Verdict, f.Found, f.Do = unfit, "what answers at "+c.Endpoint+" is no control plane", "look at --endpoint"
	case apart > clockMust:
		f.Verdict, f.Do = unfit, fmt.Sprintf("set the clocks: they differ by %v, and signatures will be refused", apart.Round(time.Second))
	case apart > clockGood:
		f.Verdict, f.Do = warning, fmt.Sprintf("set the clocks: they differ by %v", apart.Round(time.Second))
	case h.status != "ok":
		f.Verdict, f.Do = warning, "look at its log: it takes no changes"
	}
	return f
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
