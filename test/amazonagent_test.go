package test

import (
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// amazonsImage is what the image of the tests is called on the machine of Amazon's agent.
const amazonsImage = "pintle-test:1"

// startAmazonsAgent starts an agent of Amazon's (github.com/aws/amazon-ecs-agent), which is no part of the tests, on a machine of its own
// with a Docker Engine. It returns the address of the control plane there.
func startAmazonsAgent(t *testing.T, program string, p *Pintle) (endpoint string) {
	netns, _, address := secondMachine(t)
	inside := func(name string, args ...string) *exec.Cmd {
		return exec.Command("nsenter", append([]string{"--net=/run/netns/" + netns, name}, args...)...)
	}
	do := func(cmd *exec.Cmd) {
		t.Helper()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", cmd, err, out)
		}
	}
	endpoint = "http://" + relay(t, address, p.Endpoint)
	ip(t, "-n "+netns+" route add default via "+address) // without one the agent thinks it has no IPv4
	engine := dockerdIn(t, netns)
	for image, change := range map[string]string{
		amazonsImage: "WORKDIR /", "amazon/amazon-ecs-pause:0.1.0": `ENTRYPOINT ["/bin/sh","-c","trap 'exit 0' TERM; sleep 86400 & wait"]`,
	} {
		do(exec.Command("docker", "-H", engine, "import", "-c", change, rootfs(t), image))
	}
	// What Amazon's start-up service does: containers reach the agent's endpoint at an address of its own.
	do(inside("sysctl", "-w", "net.ipv4.conf.all.route_localnet=1"))
	do(inside("iptables", strings.Fields("-t nat -A PREROUTING -p tcp -d 169.254.170.2 --dport 80 -j DNAT --to-destination 127.0.0.1:51679")...))
	do(inside("iptables", strings.Fields("-t nat -A OUTPUT -p tcp -d 169.254.170.2 --dport 80 -j REDIRECT --to-ports 51679")...))
	dir := t.TempDir()
	agent := inside(program)
	agent.Env = append(os.Environ(), "AWS_CA_BUNDLE=", "ECS_BACKEND_HOST="+endpoint, "ECS_CLUSTER=default", "AWS_DEFAULT_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID="+p.key, "AWS_SECRET_ACCESS_KEY="+p.secret, "ECS_EXTERNAL=true", "ECS_DATADIR="+dir+"/data", "ECS_HOST_DATA_DIR="+dir,
		"ECS_LOGFILE="+dir+"/agent.log", "ECS_AUDIT_LOGFILE="+dir+"/audit.log", "DOCKER_HOST="+engine, "ECS_IMAGE_PULL_BEHAVIOR=prefer-cached",
		`ECS_AVAILABLE_LOGGING_DRIVERS=["json-file","awslogs","awsfirelens","none"]`, "ECS_ENABLE_TASK_IAM_ROLE=true",
		`ECS_INSTANCE_ATTRIBUTES={"pintle.runtime":"amazon"}`)
	if err := os.Mkdir(filepath.Join(dir, "data"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		agent.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
		agent.Wait()                          //nolint:errcheck // it was told to
		if log, err := os.ReadFile(dir + "/agent.log"); err == nil && t.Failed() {
			t.Logf("Amazon's agent: … %s", log[max(0, len(log)-20_000):])
		}
	})
	return endpoint
}

// relay passes on what comes to an address, for as long as the test runs.
func relay(t *testing.T, address, to string) string {
	target, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", address+":0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: httputil.NewSingleHostReverseProxy(target)}
	go server.Serve(l)                   //nolint:errcheck // it ends with the test
	t.Cleanup(func() { server.Close() }) //nolint:errcheck // its listener is closed at least
	return l.Addr().String()
}
