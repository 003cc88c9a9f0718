package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/coder/websocket"

	"github.com/pintle/pintle/bench/load"
)

// server is a running server.
type server struct {
	*load.Process
	name   string
	base   string
	launch string // the body of RunTask
	client *http.Client
	node   context.CancelFunc
}

type starter func() (*server, error)

// nodes is how many nodes share the tasks.
const nodes = 100

// startPintle starts a control plane with connected nodes that acknowledge their tasks but run nothing, because only the
// control plane is measured.
func startPintle(binary string) (*server, error) {
	dir, err := os.MkdirTemp("", "pintle-bench-")
	if err != nil {
		return nil, err
	}
	address := load.FreeAddress()
	s, err := start("pintle", dir, address, exec.Command(binary, "serve", "--listen", address, "--data", dir))
	if err != nil {
		return nil, err
	}
	s.launch = `{"taskDefinition":"bench","placementStrategy":[{"type":"random"}]}`
	if err := s.call("RegisterTaskDefinition",
		`{"family":"bench","containerDefinitions":[{"name":"main","image":"i","cpu":1,"memory":4,"command":["true"]}]}`, nil); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s.node = cancel
	for range nodes {
		if err := s.connectNode(ctx); err != nil {
			return nil, err
		}
	}
	for range 200 {
		var answer json.RawMessage
		if err = s.call("RunTask", s.launch, &answer); err == nil {
			err = checkPlaced(answer)
		}
		if err == nil {
			return s, nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, err
}

// connectNode registers a node with room for many tasks, and keeps its connection open.
func (s *server) connectNode(ctx context.Context) error {
	var out struct {
		ContainerInstance struct{ ContainerInstanceArn string }
	}
	err := s.call("RegisterContainerInstance",
		`{"totalResources":[{"name":"CPU","type":"INTEGER","integerValue":2000000},`+
			`{"name":"MEMORY","type":"INTEGER","integerValue":2000000}]}`, &out)
	if err != nil {
		return err
	}
	q := url.Values{
		"clusterArn":           {"default"},
		"containerInstanceArn": {out.ContainerInstance.ContainerInstanceArn},
		"agentVersion":         {"bench"},
	}
	conn, _, err := websocket.Dial(ctx, s.base+"/acs/ws?"+q.Encode(), nil)
	if err != nil {
		return err
	}
	conn.SetReadLimit(-1)
	go func() {
		for {
			_, b, err := conn.Read(ctx)
			if err != nil {
				return
			}
			var f struct {
				Type    string
				Message struct{ MessageID string }
			}
			if json.Unmarshal(b, &f) == nil && f.Type == "PayloadMessage" {
				ack := fmt.Appendf(nil, `{"type":"AckRequest","message":{"messageId":%q}}`, f.Message.MessageID)
				conn.Write(ctx, websocket.MessageText, ack) //nolint:errcheck // the reader notices
			}
		}
	}()
	return nil
}

func startMoto() (*server, error) {
	address := load.FreeAddress()
	_, port, _ := net.SplitHostPort(address)
	s, err := start("moto", "", address, exec.Command("moto_server", "-H", "127.0.0.1", "-p", port))
	if err != nil {
		return nil, err
	}
	subnet, err := s.firstID("DescribeSubnets", "subnetId")
	if err != nil {
		return nil, err
	}
	group, err := s.firstID("DescribeSecurityGroups", "groupId")
	if err != nil {
		return nil, err
	}
	s.launch = fmt.Sprintf(
		`{"cluster":"default","taskDefinition":"bench","launchType":"FARGATE","networkConfiguration":{"awsvpcConfiguration":{`+
			`"subnets":[%q],"securityGroups":[%q]}}}`, subnet, group)
	if err := s.call("CreateCluster", `{"clusterName":"default"}`, nil); err != nil {
		return nil, err
	}
	return s, s.call("RegisterTaskDefinition",
		`{"family":"bench","requiresCompatibilities":["FARGATE"],"networkMode":"awsvpc","cpu":"256","memory":"512",`+
			`"containerDefinitions":[{"name":"main","image":"i","cpu":1,"memory":4,"command":["true"]}]}`, nil)
}

// firstID returns the first id in the answer to an EC2 call. moto's RunTask needs an existing subnet and security group.
func (s *server) firstID(action, element string) (string, error) {
	r, err := http.NewRequest(http.MethodPost, s.base, strings.NewReader("Action="+action+"&Version=2016-11-15"))
	if err != nil {
		return "", err
	}
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Authorization", strings.Replace(authorization, "/ecs/", "/ec2/", 1))
	resp, err := s.client.Do(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return "", err
	}
	_, rest, _ := strings.Cut(string(b), "<"+element+">")
	id, _, ok := strings.Cut(rest, "<")
	if !ok {
		return "", fmt.Errorf("%s of moto names no %s", action, element)
	}
	return id, nil
}

// start starts a server and measures the time to its first answer to an ECS call.
func start(name, dir, address string, cmd *exec.Cmd) (*server, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 256, MaxConnsPerHost: 256}
	s := &server{name: name, base: "http://" + address, client: &http.Client{Transport: transport, Timeout: 30 * time.Second}}
	var err error
	s.Process, err = load.Start(cmd, dir, func() error { return s.call("ListClusters", `{}`, nil) })
	return s, err
}

func (s *server) stop() {
	if s.node != nil {
		s.node()
	}
	s.Stop()
}

// authorization tells moto which service a call is for. Neither server checks it.
const authorization = "AWS4-HMAC-SHA256 Credential=k/20260101/us-east-1/ecs/aws4_request, SignedHeaders=host, Signature=0"

func (s *server) request(operation, body string) (*http.Request, error) {
	r, err := http.NewRequest(http.MethodPost, s.base, strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/x-amz-json-1.1")
	r.Header.Set("X-Amz-Target", "AmazonEC2ContainerServiceV20141113."+operation)
	r.Header.Set("Authorization", authorization)
	r.Header.Set("X-Amz-Date", "20260101T000000Z")
	return r, nil
}

func (s *server) call(operation, body string, out any) error {
	r, err := s.request(operation, body)
	if err != nil {
		return err
	}
	resp, err := s.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s %.300s", operation, resp.Status, b)
	}
	if out == nil {
		return nil
	}
	return json.Unmarshal(b, out)
}

// checkPlaced returns an error unless RunTask placed its task.
func checkPlaced(answer []byte) error {
	var out struct {
		Tasks    []struct{}
		Failures []struct{ Reason string }
	}
	if err := json.Unmarshal(answer, &out); err != nil {
		return err
	}
	if len(out.Tasks) != 1 {
		return fmt.Errorf("RunTask placed nothing: %v", out.Failures)
	}
	return nil
}

// listTasks returns the first hundred tasks, and how many there are in all.
func (s *server) listTasks() (first []string, total int, err error) {
	var out struct {
		TaskArns  []string
		NextToken string
	}
	for token := ""; ; token = out.NextToken {
		body := `{"cluster":"default"}`
		if token != "" {
			body = fmt.Sprintf(`{"cluster":"default","nextToken":%q}`, token)
		}
		out.NextToken = ""
		out.TaskArns = nil
		if err := s.call("ListTasks", body, &out); err != nil {
			return nil, 0, err
		}
		total += len(out.TaskArns)
		first = append(first, out.TaskArns...)
		first = first[:min(len(first), 100)]
		if out.NextToken == "" {
			return first, total, nil
		}
	}
}

// checkDescribed returns an error unless DescribeTasks found all tasks. It doesn't parse the answer, which would cost more than
// the call did.
func checkDescribed(answer []byte) error {
	if !bytes.Contains(answer, []byte(`"taskArn"`)) || bytes.Contains(answer, []byte(`"MISSING"`)) {
		return fmt.Errorf("DescribeTasks did not find them all: %.300s", answer)
	}
	return nil
}
