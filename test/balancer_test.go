package test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
)

// balanced is a load balancer in front of a target group, and clients that constantly ask it.
type balanced struct {
	*Pintle
	group   string
	address string

	stop    chan struct{}
	running sync.WaitGroup
	mu      sync.Mutex
	answers map[string]int
	failed  []string
}

// balance makes a load balancer with a listener and a target group of instances.
func (p *Pintle) balance() *balanced {
	p.t.Helper()
	text := func(args ...string) string { p.t.Helper(); return p.AWS(append(args, "--output", "text")...) }
	subnets := strings.Fields(text("ec2", "describe-subnets", "--query", "Subnets[:2].SubnetId"))
	vpc := text("ec2", "describe-vpcs", "--query", "Vpcs[0].VpcId")
	b := &balanced{Pintle: p, address: freeAddress(p.t), stop: make(chan struct{}), answers: map[string]int{}}
	_, port, _ := net.SplitHostPort(b.address)
	balancer := text("elbv2", "create-load-balancer", "--name", "web", "--subnets", subnets[0], subnets[1],
		"--query", "LoadBalancers[0].LoadBalancerArn")
	b.group = text("elbv2", "create-target-group", "--name", "web", "--protocol", "HTTP", "--port", "80", "--vpc-id", vpc,
		"--health-check-interval-seconds", "5", "--health-check-timeout-seconds", "2", "--query", "TargetGroups[0].TargetGroupArn")
	p.AWS("elbv2", "create-listener", "--load-balancer-arn", balancer, "--protocol", "HTTP", "--port", port,
		"--default-actions", "Type=forward,TargetGroupArn="+b.group)
	return b
}

// ask begins to send requests, which are to succeed from now on.
func (b *balanced) ask() {
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 4}}
	for range 4 {
		b.running.Go(func() {
			for {
				select {
				case <-b.stop:
					return
				case <-time.After(3 * time.Millisecond):
				}
				b.note(request(client, "http://"+b.address+"/index.html"))
			}
		})
	}
}

func request(client *http.Client, url string) (string, error) {
	resp, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", resp.Status, body)
	}
	return string(body), err
}

func (b *balanced) note(answer string, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err != nil {
		b.failed = append(b.failed, time.Now().Format(time.StampMilli)+" "+err.Error())
		return
	}
	b.answers[answer]++
}

// answered returns how many answers had a text.
func (b *balanced) answered(text string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.answers[text]
}

// end ends the requests. None may have failed.
func (b *balanced) end() {
	b.t.Helper()
	close(b.stop)
	b.running.Wait()
	if len(b.failed) > 0 {
		b.t.Errorf("%d requests failed, the first ones: %v", len(b.failed), b.failed[:min(5, len(b.failed))])
	}
	b.t.Logf("answers by version: %v", b.answers)
}

// healthy returns how many targets are healthy.
func (b *balanced) healthy() string {
	return b.AWS("elbv2", "describe-target-health", "--target-group-arn", b.group,
		"--query", "length(TargetHealthDescriptions[?TargetHealth.State=='healthy'])", "--output", "text")
}

// TestServiceBehindLoadBalancer updates a service of containers that end at once when they are told to, while clients ask its load balancer,
// and kills the control plane with its nodes in between. No request fails.
func TestServiceBehindLoadBalancer(t *testing.T) {
	t.Parallel()
	p := Up(t, "c5.2xlarge=2", "--settle", "1s", "--runtime", "oci")
	b := p.balance()
	image := "rootfs:" + rootfs(t)
	define := func(version string) {
		script := "echo -n " + version + " > /index.html; exec httpd -f -p 80 -h /"
		p.define("web", map[string]any{"image": image, "command": []string{"/bin/sh", "-c", script},
			"portMappings": []any{map[string]any{"containerPort": 80}}})
	}
	define("v0")
	p.AWS("ecs", "create-service", "--service-name", "web", "--task-definition", "web", "--desired-count", "2",
		"--load-balancers", "targetGroupArn="+b.group+",containerName=main,containerPort=80")
	p.awaitService("the roll-out's end", "web", described.isCompleted)
	if n := b.healthy(); n != "2" {
		t.Fatalf("%s targets are healthy", n)
	}
	b.ask()
	define("v1")
	p.AWS("ecs", "update-service", "--service", "web", "--task-definition", "web")
	p.awaitService("the update's end", "web", described.isCompleted)
	Eventually(t, "answers of the new version", func() bool { return b.answered("v1") > 100 })
	define("v2")
	p.AWS("ecs", "update-service", "--service", "web", "--task-definition", "web")
	p.Kill()
	asked := b.answered("v1")
	Eventually(t, "answers while nobody controls", func() bool { return b.answered("v1") > asked+100 })
	p.Start()
	p.awaitService("the update's end", "web", described.isCompleted)
	Eventually(t, "answers of the newest version", func() bool { return b.answered("v2") > 100 })
	p.AWS("ecs", "update-service", "--service", "web", "--desired-count", "1")
	Eventually(t, "one task", func() bool {
		return len(p.list("list-tasks", "--service-name", "web", "--query", "taskArns[]")) == 1 && b.healthy() == "1"
	})
	b.end()
	p.AWS("ecs", "delete-service", "--service", "web", "--force")
	Eventually(t, "no targets", func() bool { return b.healthy() == "0" })
}
