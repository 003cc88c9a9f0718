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

// sshServer is an OpenSSH server on loopback with its own keys.
type sshServer struct {
	address    string
	identity   string
	knownHosts string
}

// startSSH starts an SSH server for the test.
func startSSH(t *testing.T) sshServer {
	t.Helper()
	dir := t.TempDir()
	for _, key := range []string{"host", "identity"} {
		path := filepath.Join(dir, key)
		if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	s := sshServer{freeAddress(t), filepath.Join(dir, "identity"), filepath.Join(dir, "known_hosts")}
	_, port, _ := strings.Cut(s.address, ":")
	host, _ := os.ReadFile(filepath.Join(dir, "host.pub"))
	write(t, s.knownHosts, "[127.0.0.1]:"+port+" "+string(host))
	config := filepath.Join(dir, "sshd_config")
	write(t, config,
		fmt.Sprintf(
			"Port %s\nListenAddress 127.0.0.1\nHostKey %s/host\nAuthorizedKeysFile %s/identity.pub\nAuthenticationMethods "+
				"publickey\nPidFile none\nUsePAM no\nStrictModes no\n", port, dir, dir))
	if os.Geteuid() == 0 {
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil { // as sshd's service does
			t.Fatal(err)
		}
	}
	cmd := exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", config)
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close() //nolint:errcheck // sshd has its own descriptor
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatalf("sshd: %v: install openssh-server", err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
		cmd.Wait()                          //nolint:errcheck // the signal ends it
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

// pool is a pool of machines that are all this one, in separate directories.
type pool struct {
	*Pintle
	dir string
}

// upWithPool starts pintle up with a pool. Each machine is given as its differences from the defaults.
func upWithPool(t *testing.T, machines ...map[string]any) *pool {
	t.Helper()
	ssh, dir := startSSH(t), t.TempDir()
	write(t, filepath.Join(dir, "power"), "#!/bin/sh\necho \"$1 $2\" >> "+dir+
		"/calls\n[ \"$1\" = \"wake\" ] && [ \"$2\" = mars ] && { echo 'no power' >&2; exit 3; }\nexit 0\n")
	var all []map[string]any
	for _, m := range machines {
		name := m["name"].(string)
		one := map[string]any{
			"address": ssh.address, "instanceType": "g4dn.xlarge", "program": bin(t, "pintle"),
			"data": filepath.Join(dir, "it's $(touch oops)", name),
			"wake": []string{filepath.Join(dir, "power"), "wake", name}, "sleep": []string{filepath.Join(dir, "power"), "sleep", name},
			"wakeSeconds": 120, "identityFile": ssh.identity, "knownHostsFile": ssh.knownHosts,
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
	p.args = []string{"up", "--listen", address, "--data", p.data, "--fleet", "static", "--fleet-pool", filepath.Join(dir, "pool.json"),
		"--metrics=", "--runtime", "process", "--reaction", "fast"}
	p.Start()
	w := &pool{p, dir}
	t.Cleanup(func() {
		for pid := range w.processes() { // none, unless the test failed
			syscall.Kill(pid, syscall.SIGKILL) //nolint:errcheck // it may have ended
		}
	})
	t.Cleanup(p.Interrupt)
	return w
}

// processes returns the machines' processes (agents, shims and containers) by pid.
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

// agents returns the pids of the agents.
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

// awaitNothingLeft waits until no instance has left anything behind.
func (p *pool) awaitNothingLeft() {
	p.t.Helper()
	for _, pattern := range []string{filepath.Join(p.dir, "*", "*", "i-*"), filepath.Join(p.data, "pool", "*")} {
		Eventually(p.t, "the end of "+pattern, func() bool {
			left, err := filepath.Glob(pattern)
			return err == nil && len(left) == 0
		})
	}
}

func (p *pool) setDesiredCapacity(n string) {
	p.AWS("autoscaling", "set-desired-capacity", "--auto-scaling-group-name", "pool", "--desired-capacity", n)
}

// TestStaticFleet scales a group from zero to two of one's own machines and back, over SSH, while the control plane is killed
// repeatedly. One machine doesn't wake: another takes its place, and the activities say why. The agents and their tasks outlive
// the control plane. At the end nothing of them is left, and all machines sleep.
func TestStaticFleet(t *testing.T) {
	t.Parallel()
	p := upWithPool(t, map[string]any{"name": "mars"}, map[string]any{"name": "venus"}, map[string]any{"name": "earth"})
	p.createGPUGroup("pool", "default")
	p.setDesiredCapacity("1")
	activities := func(query string) string {
		return p.AWS("autoscaling", "describe-scaling-activities", "--query", "Activities["+query+"].StatusMessage", "--output", "text")
	}
	Eventually(t, "the reason why one is left out", func() bool {
		return strings.Contains(activities(""), "mars: wake: exit status 3: no power")
	})
	p.setDesiredCapacity("2")
	p.Kill()
	p.Start()
	Eventually(t, "two instances in service", func() bool {
		return p.AWS("autoscaling", "describe-auto-scaling-groups", "--query", "AutoScalingGroups[0].Instances[].LifecycleState",
			"--output", "text") == "InService\tInService"
	})
	agents := p.agents()
	if calls := p.calls(); len(agents) != 2 || !strings.Contains(calls, "wake venus\n") || !strings.Contains(calls, "wake earth\n") {
		t.Errorf("%d agents run: %v; the machines were told %s", len(agents), p.processes(), calls)
	}
	p.AWS("ecs", "register-task-definition", "--family", "job", "--container-definitions",
		`[{"name":"main","image":"i","memory":64,"command":["sh","-c","sleep 600; : `+p.dir+
			`"],"stopTimeout":2,"resourceRequirements":[{"type":"GPU","value":"1"}]}]`)
	for _, task := range strings.Fields(p.AWS("ecs", "run-task", "--task-definition", "job", "--count", "2", "--query", "tasks[].taskArn",
		"--output", "text")) {
		p.Await(task, "RUNNING")
	}
	p.setDesiredCapacity("3") // there is no third machine
	Eventually(t, "the reason", func() bool {
		return strings.Contains(activities("?StatusCode==`Failed`"),
			"Server.InsufficientInstanceCapacity: the pool has no free g4dn.xlarge in us-east-1a: 2 in use; left out for ")
	})
	p.setDesiredCapacity("2")
	p.Kill()
	p.Start()
	Eventually(t, "the agents' return", func() bool {
		return p.AWS("ecs", "describe-clusters", "--query", "clusters[0].[registeredContainerInstancesCount,runningTasksCount]",
			"--output", "text") == "2\t2"
	})
	if got := p.agents(); !slices.Equal(got, agents) {
		t.Errorf("the agents were %v, and are %v", agents, got)
	}

	p.setDesiredCapacity("0")
	time.Sleep(300 * time.Millisecond)
	p.Kill()
	p.Start()
	Eventually(t, "the end", func() bool {
		return len(p.processes()) == 0 && p.AWS("autoscaling", "describe-auto-scaling-instances",
			"--query", "length(AutoScalingInstances)") == "0" &&
			p.AWS("ecs", "describe-clusters", "--query", "clusters[0].[registeredContainerInstancesCount,runningTasksCount]",
				"--output", "text") == "0\t0"
	})
	Eventually(t, "the sleep of both machines", func() bool {
		calls := p.calls()
		return strings.Contains(calls, "sleep venus\n") && strings.Contains(calls, "sleep earth\n")
	})
	p.awaitNothingLeft()
	if _, err := os.Stat(filepath.Join(os.Getenv("HOME"), "oops")); err == nil {
		t.Error("a shell has run what a directory's name says")
	}
}

// TestStaticSurvivesKills changes a group's capacity while the control plane, and at the end an agent, is killed repeatedly. No
// machine is ever two instances, and at the end there are as many as desired. The pool's access key is on no command line
// except the control plane's own.
func TestStaticSurvivesKills(t *testing.T) {
	t.Parallel()
	p := upWithPool(t, map[string]any{"name": "venus"}, map[string]any{"name": "earth"}, map[string]any{"name": "pluto"})
	p.Kill()
	p.key, p.secret = "AKIDPOOL", "a-secret-of-the-pool"
	p.args = append(p.args, "--access-key-id", p.key, "--secret-access-key", p.secret)
	p.Start()
	p.createGPUGroup("pool", "default")
	for i := range 8 {
		p.setDesiredCapacity(strconv.Itoa((i*2 + 1) % 4))
		time.Sleep(time.Duration(i*i*40) * time.Millisecond)
		instanceOf, machineOf := map[string]string{}, map[string]string{} // the instance of each machine, and the machine of each instance
		paths, _ := filepath.Glob(filepath.Join(p.dir, "*", "*", "i-*"))
		for _, path := range paths {
			machine, id := filepath.Base(filepath.Dir(path)), filepath.Base(path)
			if instanceOf[machine] != "" || machineOf[id] != "" {
				t.Errorf("a machine is two instances, or an instance two machines: %v", paths)
			}
			instanceOf[machine], machineOf[id] = id, machine
		}
		p.Kill()
		p.Start()
	}
	p.setDesiredCapacity("2")
	two := func() bool {
		return len(p.agents()) == 2 && p.AWS("ecs", "list-container-instances", "--query", "length(containerInstanceArns)") == "2" &&
			p.AWS("autoscaling", "describe-auto-scaling-groups", "--query", "AutoScalingGroups[0].Instances[].LifecycleState",
				"--output", "text") == "InService\tInService"
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
	p.Start() // at its start it asks the machines for their state
	Eventually(t, "the agent's return", func() bool { return two() && !slices.Contains(p.agents(), dead) })
	p.AWS("autoscaling", "delete-auto-scaling-group", "--auto-scaling-group-name", "pool", "--force-delete")
	Eventually(t, "the group's end", func() bool {
		return len(p.processes()) == 0 && p.AWS("autoscaling", "describe-auto-scaling-groups",
			"--query", "length(AutoScalingGroups)") == "0"
	})
	p.awaitNothingLeft()
}

// TestStaticTrust: a machine whose host key is unknown, or that rejects the key, gets no agent, and the activities say so
// immediately. A bad pool file stops the start.
func TestStaticTrust(t *testing.T) {
	t.Parallel()
	nobody := filepath.Join(t.TempDir(), "known_hosts")
	write(t, nobody, "")
	key := filepath.Join(t.TempDir(), "key")
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key).CombinedOutput(); err != nil {
		t.Fatalf("ssh-keygen: %v: %s", err, out)
	}
	p := upWithPool(t, map[string]any{"name": "stranger", "knownHostsFile": nobody, "wakeSeconds": 600},
		map[string]any{"name": "stubborn", "identityFile": key, "wakeSeconds": 600})
	p.createGPUGroup("pool", "default")
	p.setDesiredCapacity("2")
	awaitMessage := func(what string) {
		Eventually(t, what, func() bool {
			return strings.Contains(p.AWS("autoscaling", "describe-scaling-activities", "--query", "Activities[].StatusMessage",
				"--output", "text"), what)
		})
	}
	awaitMessage("stranger: ssh: exit status 255: ")
	awaitMessage("Host key verification failed")
	awaitMessage("stubborn: ssh: exit status 255: ")
	awaitMessage("Permission denied (publickey)")
	p.setDesiredCapacity("0")
	if got := p.agents(); len(got) != 0 {
		t.Errorf("agents run: %v", got)
	}

	bad := filepath.Join(t.TempDir(), "pool.json")
	write(t, bad, `{"machines":[{"name":"a","address":"x y","instanceType":"g4dn.xlarge"}]}`)
	out, err := exec.Command(bin(t, "pintle"), "serve", "--listen", freeAddress(t), "--data", t.TempDir(), "--fleet", "static",
		"--fleet-pool", bad).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "machines[0] (a): address") {
		t.Errorf("%v: %s", err, out)
	}
}

// userDataStack is a stack of a group whose instances run cfn-init and tell how it went.
const userDataStack = `
Parameters:
  Command: {Type: String}
Resources:
  Role:
    Type: AWS::IAM::Role
    Properties:
      RoleName: !Sub ${AWS::StackName}-instance
      AssumeRolePolicyDocument: {Statement: [{Effect: Allow, Principal: {Service: ec2.amazonaws.com}, Action: "sts:AssumeRole"}]}
  Profile:
    Type: AWS::IAM::InstanceProfile
    Properties: {Roles: [!Ref Role]}
  Template:
    Type: AWS::EC2::LaunchTemplate
    Properties:
      LaunchTemplateData:
        ImageId: ami-12345678
        InstanceType: g4dn.xlarge
        IamInstanceProfile: {Name: !Ref Profile}
        UserData:
          Fn::Base64: !Sub |
            #!/bin/bash
            env > DIR/environment
            PATH='SEARCH' aws configure list > DIR/credentials 2>&1
            /opt/aws/bin/cfn-init -v --stack ${AWS::StackName} --resource Group --region ${AWS::Region}
            /opt/aws/bin/cfn-signal -e $? --stack ${AWS::StackName} --resource Group --region ${AWS::Region}
            cfn-signal --stack another --resource Group || echo refused > DIR/refused
  Group:
    Type: AWS::AutoScaling::AutoScalingGroup
    CreationPolicy:
      ResourceSignal: {Count: 1, Timeout: PT10M}
    Metadata:
      AWS::CloudFormation::Init:
        config:
          files:
            DIR/ecs.config: {content: !Sub "ECS_CLUSTER=${AWS::StackName}\n", mode: "000600"}
          commands:
            "01": {command: !Ref Command}
    Properties:
      MinSize: "1"
      MaxSize: "1"
      AvailabilityZones: [!Select [0, !GetAZs ""]]
      LaunchTemplate: {LaunchTemplateId: !Ref Template, Version: "1"}
`

// TestUserDataIsRun: on machines whose owner allows it, user data is run for real: cfn-init does what the stack's metadata say, and the signal of
// cfn-signal is the one that the stack waits for, good or bad. The scripts get their instance's role, but none of the
// agent's credentials, and no other stack.
func TestUserDataIsRun(t *testing.T) {
	t.Parallel()
	p := upWithPool(t, map[string]any{"name": "venus", "agent": []string{
		"--runtime=process", "--instance-type=g4dn.xlarge", "--metrics=", "--run-user-data",
	}})
	template := filepath.Join(p.dir, "stack.yaml")
	write(t, template, strings.NewReplacer("DIR", p.dir, "SEARCH", os.Getenv("PATH")).Replace(userDataStack))
	deploy := func(name, command string) {
		p.AWS("cloudformation", "create-stack", "--stack-name", name, "--template-body", "file://"+template,
			"--capabilities", "CAPABILITY_NAMED_IAM", "--parameters", "ParameterKey=Command,ParameterValue="+command)
	}
	status := func(name string) string {
		return p.AWS("cloudformation", "describe-stacks", "--stack-name", name, "--query", "Stacks[0].StackStatus", "--output", "text")
	}
	events := func(name string) string {
		return p.AWS("cloudformation", "describe-stack-events", "--stack-name", name, "--query",
			"StackEvents[].[LogicalResourceId,ResourceStatus,ResourceStatusReason]", "--output", "text")
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Log("the stack's events:\n" + events("good"))
		}
	})
	deploy("good", "echo done > "+p.dir+"/command")
	Eventually(t, "the stack", func() bool { return status("good") == "CREATE_COMPLETE" })
	if all := events("good"); strings.Count(all, "Received SUCCESS signal with UniqueId i-") != 1 {
		t.Errorf("the events are %s", all)
	}
	for name, want := range map[string]string{"ecs.config": "ECS_CLUSTER=good\n", "command": "done\n", "refused": "refused\n"} {
		Eventually(t, name, func() bool {
			b, _ := os.ReadFile(filepath.Join(p.dir, name))
			return string(b) == want
		})
	}
	environment, _ := os.ReadFile(filepath.Join(p.dir, "environment"))
	if strings.Contains(string(environment), "AWS_SECRET_ACCESS_KEY") || !strings.Contains(string(environment), "AWS_REGION=us-east-1") {
		t.Errorf("the user data's environment is %s", environment)
	}
	credentials, _ := os.ReadFile(filepath.Join(p.dir, "credentials"))
	if !strings.Contains(string(credentials), "container-role") {
		t.Errorf("the user data's credentials are %s", credentials)
	}
	p.AWS("cloudformation", "delete-stack", "--stack-name", "good")
	p.awaitNothingLeft()

	deploy("bad", "exit 3")
	Eventually(t, "the rollback", func() bool { return status("bad") == "ROLLBACK_COMPLETE" })
	if all := events("bad"); !strings.Contains(all, "Received FAILURE signal with UniqueId i-") ||
		!strings.Contains(all, "Received 1 FAILURE signal(s) out of 1.") {
		t.Errorf("the events are %s", all)
	}
	p.awaitNothingLeft()
}
