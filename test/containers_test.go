package test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/node/runtime/runtimetest"
)

// oneEngine is held by the test whose Docker Engine runs: two of them would share a bridge and the rules of its network.
var oneEngine sync.Mutex

// dockerd starts a Docker Engine for the test and ends it with the test. It waits for another test's to end.
func dockerd(t *testing.T) (host string) {
	t.Helper()
	oneEngine.Lock()
	t.Cleanup(oneEngine.Unlock)
	return dockerdIn(t, "")
}

// dockerdIn is dockerd in a network namespace, if one is named.
func dockerdIn(t *testing.T, netns string) (host string) {
	t.Helper()
	path, err := exec.LookPath("dockerd")
	if err != nil {
		t.Fatal("this test needs root and Debian's docker.io, iptables and busybox-static: ", err)
	}
	dir, err := os.MkdirTemp("", "pintle-docker-") // socket paths are limited in length
	if err != nil {
		t.Fatal(err)
	}
	host = "unix://" + dir + "/s"
	args := []string{path, "--data-root", dir + "/data", "--exec-root", dir + "/exec", "--pidfile", dir + "/pid", "-H", host}
	if netns != "" {
		args = append([]string{"nsenter", "--net=/run/netns/" + netns}, args...)
	}
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = append(os.Environ(), "AWS_ACCESS_KEY_ID=AKID", "AWS_SECRET_ACCESS_KEY=secret") // for its log driver awslogs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may have ended
		cmd.Wait()                          //nolint:errcheck // it was told to
		os.RemoveAll(dir)
	})
	Eventually(t, "the Docker Engine's answer", func() bool { // it makes its socket before it answers there
		c, err := net.Dial("unix", dir+"/s")
		if err != nil {
			return false
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(5 * time.Second)) //nolint:errcheck // a test
		answer := make([]byte, len("HTTP/1.0 200"))
		_, err = fmt.Fprint(c, "GET /_ping HTTP/1.0\r\n\r\n")
		_, readErr := io.ReadFull(c, answer)
		return err == nil && readErr == nil && strings.HasSuffix(string(answer), " 200")
	})
	return host
}

// rootfs packs busybox into a tarball of a root file system.
func rootfs(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "rootfs.tar")
	if err := runtimetest.MakeImage(path); err != nil {
		t.Fatal("this test needs Debian's busybox-static: ", err)
	}
	return path
}

// TestDocker and TestRunc run tasks in real containers through the AWS CLI.
func TestDocker(t *testing.T) {
	t.Parallel()
	testContainers(t, Up(t, "g4dn.xlarge", "--runtime", "docker", "--docker-host", dockerd(t), "--function-image", "python3.12="+imageHost+"fn:base", "--function-image", "provided.al2023="+imageHost+"fn:base",
		"--settle", "1s", "--file-systems", t.TempDir(), "--transparent", "--balancer-listen", "0.0.0.0"))
}

func TestRunc(t *testing.T) {
	t.Parallel()
	testContainers(t, Up(t, "g4dn.xlarge", "--runtime", "oci", "--function-image", "python3.12="+imageHost+"fn:base", "--function-image", "provided.al2023="+imageHost+"fn:base",
		"--settle", "1s", "--file-systems", t.TempDir(), "--transparent", "--balancer-listen", "0.0.0.0"))
}

// containers runs tasks of one image in real containers.
type containers struct {
	*Pintle
	image string
}

func testContainers(t *testing.T, p *Pintle) {
	c := &containers{p, "rootfs:" + rootfs(t)}
	t.Run("MemoryLimit", c.memoryLimit)
	t.Run("Events", c.events)
	t.Run("Port", c.port)
	t.Run("Volume", c.volume)
	t.Run("DataSets", c.dataSets)
	t.Run("FileSystems", c.fileSystems)
	t.Run("BlockVolumes", c.blockVolumes)
	t.Run("Stop", c.stop)
	t.Run("Inside", c.inside)
	t.Run("Shell", c.shell)
	t.Run("AtOnce", c.atOnce)
	t.Run("OwnNetwork", c.ownNetwork)
	t.Run("Discovery", c.discovery)
	t.Run("ServiceConnect", c.serviceConnect)
	t.Run("SecurityGroups", c.securityGroups)
	t.Run("Balanced", c.balanced)
	t.Run("Transparent", c.transparent)
	t.Run("Functions", c.functions)
}

// register registers a task definition with one container that runs a shell script.
func (c *containers) register(t *testing.T, family, script, container, more string) {
	t.Helper()
	c.AWS("ecs", "register-task-definition", "--cli-input-json", fmt.Sprintf(
		`{"family":%q,"containerDefinitions":[{"name":"main","image":%q,"entryPoint":["/bin/sh","-c"],"command":[%q],"memory":32%s}]%s}`,
		family, c.image, script, container, more))
}

// finish runs a task to its end and returns its stop code, exit code and reason.
func (c *containers) finish(t *testing.T, family string, options ...string) (end string) {
	t.Helper()
	task, _ := c.run(t, family, `{}`, options...)
	c.Await(task, "STOPPED")
	return c.AWS("ecs", "describe-tasks", "--tasks", task, "--query", "tasks[0].[stopCode,containers[0].exitCode,containers[0].reason]",
		"--output", "text")
}

// memoryLimit checks that a container exceeding its memory limit is killed, and that its task says why.
func (c *containers) memoryLimit(t *testing.T) {
	c.register(t, "hungry", "tail /dev/zero", `,"linuxParameters":{"maxSwap":0}`, "")
	if got := c.finish(t, "hungry"); !strings.Contains(got, "OutOfMemoryError: Container killed due to memory usage") {
		t.Errorf("a container that takes too much memory ends with %q", got)
	}
}

// events checks what ECS's events tell of tasks whose image isn't there, and whose container takes too much memory: the same as describe-tasks.
func (c *containers) events(t *testing.T) {
	text := func(args ...string) string { t.Helper(); return c.AWS(append(args, "--output", "text")...) }
	queue := text("sqs", "create-queue", "--queue-name", "stopped", "--query", "QueueUrl")
	c.AWS("events", "put-rule", "--name", "stopped", "--event-pattern",
		`{"source":["aws.ecs"],"detail-type":["ECS Task State Change"],"detail":{"lastStatus":["STOPPED"]}}`)
	c.AWS("events", "put-targets", "--rule", "stopped", "--targets", "Id=q,Arn="+text("sqs", "get-queue-attributes", "--queue-url", queue,
		"--attribute-names", "QueueArn", "--query", "Attributes.QueueArn"))
	c.AWS("ecs", "register-task-definition", "--cli-input-json", `{"family":"imageless","containerDefinitions":[{"name":"main","memory":32,
		"image":"`+imageHost+`no/such:1"}]}`)
	for family, want := range map[string][]string{
		"hungry":    {`"stopCode":"EssentialContainerExited"`, `"exitCode":137`, `"reason":"OutOfMemoryError: Container killed due to memory usage"`},
		"imageless": {`"stopCode":"TaskFailedToStart"`, `"stoppedReason":"CannotPullContainerError: `},
	} {
		task, _ := c.run(t, family, `{}`)
		c.Await(task, "STOPPED")
		var event string
		Eventually(t, "the event of "+family, func() bool {
			event = text("sqs", "receive-message", "--queue-url", queue, "--wait-time-seconds", "5", "--visibility-timeout", "0",
				"--max-number-of-messages", "10", "--query", "Messages[?contains(Body, '"+task+"')].Body | [0]")
			return strings.Contains(event, task)
		})
		for _, part := range want {
			if !strings.Contains(event, part) {
				t.Errorf("%s: the event has no %s: %s", family, part, event)
			}
		}
		reason := text("ecs", "describe-tasks", "--tasks", task, "--query", "tasks[0].stoppedReason")
		var told struct {
			Detail struct{ StoppedReason string }
		}
		if err := json.Unmarshal([]byte(event), &told); err != nil || told.Detail.StoppedReason != reason {
			t.Errorf("%s: the event says %q, describe-tasks %q, %v", family, told.Detail.StoppedReason, reason, err)
		}
	}
}

// port checks that a container's port is reachable where describe-tasks says, and so is one of a range.
func (c *containers) port(t *testing.T) {
	c.register(t, "web", "echo hello > /index.html; httpd -p 82 -h /; httpd -f -p 80 -h /",
		`,"portMappings":[{"containerPort":80},{"containerPortRange":"81-83"}],"stopTimeout":2`, "")
	web, _ := c.run(t, "web", `{}`)
	c.Await(web, "RUNNING")
	port := c.AWS("ecs", "describe-tasks", "--tasks", web, "--query", "tasks[0].containers[0].networkBindings[0].hostPort",
		"--output", "text")
	if body := get(t, "http://127.0.0.1:"+port+"/"); body != "hello\n" {
		t.Errorf("port %s answers %q", port, body)
	}
	hosts := c.AWS("ecs", "describe-tasks", "--tasks", web, "--query",
		"tasks[0].containers[0].networkBindings[?containerPortRange=='81-83'].hostPortRange", "--output", "text")
	var first, last int
	if _, err := fmt.Sscanf(hosts, "%d-%d", &first, &last); err != nil || last != first+2 {
		t.Errorf("the range 81-83 is bound to %q", hosts)
	} else if body := get(t, fmt.Sprintf("http://127.0.0.1:%d/", first+1)); body != "hello\n" {
		t.Errorf("a port of the range answers %q", body)
	}
	c.AWS("ecs", "stop-task", "--task", web)
}

func get(t *testing.T, url string) (body string) {
	t.Helper()
	Eventually(t, "an answer from "+url, func() bool {
		resp, err := http.Get(url)
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		body = string(b)
		return true
	})
	return body
}

// volume checks that one task can read what another wrote to a shared volume.
func (c *containers) volume(t *testing.T) {
	shared := fmt.Sprintf(`,"volumes":[{"name":"kept-%d","dockerVolumeConfiguration":{"scope":"shared","autoprovision":true}}]`,
		os.Getpid())
	mount := fmt.Sprintf(`,"mountPoints":[{"sourceVolume":"kept-%d","containerPath":"/v"`, os.Getpid())
	c.register(t, "writer", "echo kept > /v/file", mount+`}]`, shared)
	c.register(t, "reader", "grep kept /v/file && ! touch /v/file", mount+`,"readOnly":true}]`, shared)
	c.finish(t, "writer")
	if got := c.finish(t, "reader"); !strings.Contains(got, "\t0\t") {
		t.Errorf("the volume's reader ends with %q", got)
	}
}

// stop checks that a task gets SIGTERM, and SIGKILL after stopTimeout.
func (c *containers) stop(t *testing.T) {
	c.register(t, "gentle", "trap 'exit 7' TERM; echo trapped; while :; do sleep 0.1; done", `,"stopTimeout":120`+toLogs, "")
	c.register(t, "deaf", "trap '' TERM; echo trapped; while :; do sleep 0.1; done", `,"stopTimeout":2`+toLogs, "")
	for family, code := range map[string]string{"gentle": "7", "deaf": "137"} {
		task, _ := c.run(t, family, `{}`)
		c.awaitLog(task, "trapped")
		c.AWS("ecs", "stop-task", "--task", task)
		c.Await(task, "STOPPED")
		got := c.AWS("ecs", "describe-tasks", "--tasks", task, "--query", "tasks[0].containers[0].exitCode", "--output", "text")
		if got != code {
			t.Errorf("%s ends with %s, want %s", family, got, code)
		}
	}
}

// lookAround reads what a container can find out by itself: its metadata and its role's credentials. It also calls the control
// plane. All addresses come from the environment.
const lookAround = `wget -q -O - $ECS_CONTAINER_METADATA_URI_V4/task; echo
wget -q -O - http://169.254.170.2$AWS_CONTAINER_CREDENTIALS_RELATIVE_URI; echo
wget -q -O - --header 'X-Amz-Target: AmazonEC2ContainerServiceV20141113.ListClusters' \
	--header 'Content-Type: application/x-amz-json-1.1' --post-data '{}' $AWS_ENDPOINT_URL; echo`

const toLogs = `,"logConfiguration":{"logDriver":"awslogs","options":{"awslogs-group":"inside","awslogs-stream-prefix":"s"}}`

// inside checks that a container on the bridge network finds its metadata, its credentials and the control plane.
func (c *containers) inside(t *testing.T) {
	c.register(t, "inside", lookAround+"\necho that is all", toLogs, `,"taskRoleArn":"arn:aws:iam::000000000000:role/worker"`)
	task, _ := c.run(t, "inside", `{}`)
	c.checkInside(t, task)
	c.Await(task, "STOPPED")
}

// shell checks a shell in a container that doesn't run as root and may not write its own files: it's root's, has an editor at its terminal,
// and what it showed is in the log group of the container. It ends with the task.
func (c *containers) shell(t *testing.T) {
	c.register(t, "shelled", "trap 'exit 0' TERM; while :; do sleep 0.1; done",
		`,"user":"1234","readonlyRootFilesystem":true,"linuxParameters":{"tmpfs":[{"containerPath":"/scratch","size":8}]}`+toLogs, "")
	task, _ := c.run(t, "shelled", `{}`, "--enable-execute-command")
	c.Await(task, "RUNNING")
	if got := c.Pintle.exec(task, "", "sh", "-c", "id -u; touch /x || exit 5"); got.code != 5 || !strings.HasPrefix(got.out, "0\r\n") {
		t.Errorf("as root in a container that can't be written: %+v", got)
	}
	a := atTerminal(t, c.Command(bin(t, "pintle"), "exec", task, "--", "busybox", "vi", "/scratch/file"))
	a.shows("~")
	a.types("i")
	a.types("written here\x1b")
	a.shows("written here")
	a.types(":wq\r")
	if code := a.ends(); code != 0 {
		t.Errorf("vi ends with %d", code)
	}
	if got := c.Pintle.exec(task, "", "cat", "/scratch/file"); got.code != 0 || got.out != "written here\r\n" {
		t.Errorf("vi wrote %+v", got)
	}
	Eventually(t, "what was shown is in the log group", func() bool {
		streams := c.AWS("logs", "describe-log-streams", "--log-group-name", "inside", "--log-stream-name-prefix", "ecs-execute-command-",
			"--query", "logStreams[].logStreamName", "--output", "text")
		for _, stream := range strings.Fields(streams) {
			if shown, err := c.TryAWS("logs", "get-log-events", "--log-group-name", "inside", "--log-stream-name", stream); err == nil &&
				strings.Contains(shown, "Read-only") {
				return true
			}
		}
		return false
	})
	a = atTerminal(t, c.Command(bin(t, "pintle"), "exec", task, "--", "sh"))
	a.types("mine=four; echo in-$((1+3))\r")
	a.shows("in-4")
	c.Kill() // the agent, too
	c.Start()
	a.types("echo still-$mine\r")
	a.shows("still-four")
	c.AWS("ecs", "stop-task", "--task", task)
	a.ends()
	c.Await(task, "STOPPED")
}

// balanced checks that containers reach a load balancer by its name.
func (c *containers) balanced(t *testing.T) {
	subnets := strings.Fields(c.AWS("ec2", "describe-subnets", "--query", "Subnets[:2].SubnetId", "--output", "text"))
	lb := strings.Fields(c.AWS(append([]string{"elbv2", "create-load-balancer", "--name", "inner", "--query", "LoadBalancers[0].[LoadBalancerArn,DNSName]",
		"--output", "text", "--subnets"}, subnets...)...))
	c.AWS("elbv2", "create-listener", "--load-balancer-arn", lb[0], "--protocol", "HTTP", "--port", "80",
		"--default-actions", "Type=fixed-response,FixedResponseConfig={StatusCode=200,ContentType=text/plain,MessageBody=from the load balancer}")
	port := ""
	Eventually(t, "the load balancer's port", func() bool {
		out, _ := c.Command(bin(t, "pintle"), "balancers").Output()
		found := regexp.MustCompile(`0\.0\.0\.0:(\d+)|\[::\]:(\d+)`).FindStringSubmatch(string(out))
		if found != nil {
			port = found[1] + found[2]
		}
		return port != ""
	})
	script := fmt.Sprintf("wget -q -O - http://%s:%s/; echo; echo that is all; sleep 600", lb[1], port)
	c.register(t, "asks", script, `,"stopTimeout":2`+toLogs, "")
	c.register(t, "asks-alone", script, `,"stopTimeout":2`+toLogs, `,"networkMode":"awsvpc"`)
	for family, more := range map[string][]string{
		"asks": nil, "asks-alone": {"--network-configuration", `{"awsvpcConfiguration":{"subnets":["subnet-1"]}}`},
	} {
		task, _ := c.run(t, family, `{}`, more...)
		if log := c.awaitLog(task, "that is all"); !strings.Contains(log, "from the load balancer") {
			t.Errorf("%s: the load balancer at %s:%s says %q", family, lb[1], port, log)
		}
		c.AWS("ecs", "stop-task", "--task", task)
	}
	c.AWS("elbv2", "delete-load-balancer", "--load-balancer-arn", lb[0])
}

// awaitLog waits until a task has logged a text, and returns everything it has logged.
func (c *containers) awaitLog(task, text string) (log string) {
	c.t.Helper()
	stream := "s/main/" + task[strings.LastIndexByte(task, '/')+1:]
	Eventually(c.t, text+" in the log", func() bool {
		// the stream may not exist yet
		log, _ = c.TryAWS("logs", "get-log-events", "--log-group-name", "inside", "--log-stream-name", stream,
			"--query", "events[].message", "--output", "text")
		return strings.Contains(log, text)
	})
	return log
}

// atOnce checks that containers find their credentials with the first thing that they do, however soon that is after their start.
func (c *containers) atOnce(t *testing.T) {
	c.register(t, "hasty", "exec wget -q -O /dev/null http://169.254.170.2$AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "",
		`,"taskRoleArn":"arn:aws:iam::000000000000:role/worker"`)
	for range 3 {
		tasks := strings.Fields(c.AWS("ecs", "run-task", "--task-definition", "hasty", "--count", "10", "--query", "[tasks[].taskArn,failures[].reason][]",
			"--output", "text"))
		for _, task := range tasks {
			if !strings.HasPrefix(task, "arn:") {
				t.Fatalf("a task finds no room: %v", tasks)
			}
			c.Await(task, "STOPPED")
		}
		describe := append([]string{"ecs", "describe-tasks", "--query", "tasks[].containers[0].exitCode", "--output", "text", "--tasks"}, tasks...)
		if got, want := c.AWS(describe...), strings.Repeat("0\t", 9)+"0"; got != want {
			t.Errorf("containers that ask for their credentials at once end with %q, want %q: %s", got, want,
				c.AWS(append([]string{"ecs", "describe-tasks", "--query", "tasks[].[lastStatus,stopCode,stoppedReason,containers[0].[exitCode,reason]]", "--tasks"}, tasks...)...))
		}
	}
}

func (c *containers) checkInside(t *testing.T, task string) {
	t.Helper()
	got := c.awaitLog(task, "that is all")
	for _, want := range []string{`"TaskARN":"` + task, `"RoleArn":"arn:aws:iam::000000000000:role/worker"`, `"SecretAccessKey"`,
		`"clusterArns":["arn:aws:ecs:us-east-1:000000000000:cluster/default"]`} {
		if !strings.Contains(got, want) {
			t.Errorf("inside the container there is no %s in\n%s", want, got)
		}
	}
}

// ownNetwork checks that a task in awsvpc mode has its own address, shown by its attachment and shared by all of its
// containers.
func (c *containers) ownNetwork(t *testing.T) {
	const network = `{"awsvpcConfiguration":{"subnets":["subnet-1"]}}`
	c.AWS("ecs", "register-task-definition", "--cli-input-json", fmt.Sprintf(
		`{"family":"own","networkMode":"awsvpc","taskRoleArn":"arn:aws:iam::000000000000:role/worker","containerDefinitions":[
			{"name":"main","image":%[1]q,"entryPoint":["/bin/sh","-c"],"command":[%[2]q],"memory":32,"stopTimeout":2%[3]s},
			{"name":"web","image":%[1]q,"entryPoint":["/bin/sh","-c"],"command":["echo own > /index.html; httpd -f -p 80 -h /"],
			 "memory":32,"stopTimeout":2,"portMappings":[{"containerPort":80}]}]}`,
		c.image, lookAround+"\nwget -q -O - http://localhost/\necho that is all\nsleep 600", toLogs))
	task, _ := c.run(t, "own", `{}`, "--network-configuration", network)
	c.Await(task, "RUNNING")
	address := c.AWS("ecs", "describe-tasks", "--tasks", task,
		"--query", "tasks[0].attachments[0].details[?name=='privateIPv4Address'].value", "--output", "text")
	if body := get(t, "http://"+address+"/"); body != "own\n" {
		t.Errorf("%s answers %q", address, body)
	}
	interfaces := c.AWS("ecs", "describe-tasks", "--tasks", task,
		"--query", "tasks[0].containers[].networkInterfaces[].privateIpv4Address", "--output", "text")
	if interfaces != address+"\t"+address {
		t.Errorf("the containers' interfaces have %q, the attachment %s", interfaces, address)
	}
	c.checkInside(t, task)
	c.AWS("ecs", "stop-task", "--task", task)
	c.Await(task, "STOPPED")
	soon := http.Client{Timeout: 2 * time.Second}
	if _, err := soon.Get("http://" + address + "/"); err == nil {
		t.Error("the task's address still answers")
	}
}
