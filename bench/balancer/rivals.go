package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/pintle/pintle/bench/load"
	"github.com/pintle/pintle/internal/elb/routing"
)

// answers asks until an address answers.
func answers(address string) func() error {
	return func() error {
		resp, err := http.Get("http://" + address + "/small")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: %s", address, resp.Status)
		}
		return nil
	}
}

// start writes a configuration and starts a program with it.
func start(dir, config string, address string, program ...string) (*load.Process, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	path := filepath.Join(dir, "config")
	if err := os.WriteFile(path, []byte(config), 0o644); err != nil {
		return nil, err
	}
	cmd := exec.Command(program[0], append(program[1:], path)...)
	return load.Start(cmd, dir, answers(address))
}

// targets are what the balancers balance: two servers of one nginx.
type targets struct {
	*load.Process
	addresses []string
}

const nginxHead = `daemon off;
worker_processes 2;
pid %[1]s/pid;
error_log stderr crit;
events { worker_connections 4096; }
http {
  access_log off;
  keepalive_requests 1000000;
  client_body_temp_path %[1]s/body;
  proxy_temp_path %[1]s/proxy;
  fastcgi_temp_path %[1]s/fastcgi;
  uwsgi_temp_path %[1]s/uwsgi;
  scgi_temp_path %[1]s/scgi;
`

func startTargets(dir string) (*targets, error) {
	t := &targets{addresses: []string{load.FreeAddress(), load.FreeAddress()}}
	www := filepath.Join(dir, "www")
	if err := os.MkdirAll(www, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(filepath.Dir(dir), 0o755); err != nil { // its workers may be another user's
		return nil, err
	}
	for name, size := range map[string]int{"small": 1 << 10, "large": 1 << 20} {
		if err := os.WriteFile(filepath.Join(www, name), make([]byte, size), 0o644); err != nil {
			return nil, err
		}
	}
	config := fmt.Sprintf(nginxHead, dir) + "  sendfile on;\n  tcp_nopush on;\n"
	for _, a := range t.addresses {
		config += fmt.Sprintf("  server { listen %s; root %s; }\n", a, www)
	}
	var err error
	t.Process, err = start(dir, config+"}\n", t.addresses[1], "nginx", "-p", dir, "-c")
	return t, err
}

// startNginx starts nginx as it's recommended for connections that are kept, and with the headers that a load balancer of AWS's adds.
func startNginx(dir string, targets []string, _ options) (*rival, error) {
	r := &rival{name: "nginx", address: load.FreeAddress()}
	config := fmt.Sprintf(nginxHead, dir) + "  upstream targets {\n    keepalive 128;\n    keepalive_requests 1000000;\n"
	for _, a := range targets {
		config += "    server " + a + ";\n"
	}
	config += fmt.Sprintf(`  }
  server {
    listen %s;
    location / {
      proxy_pass http://targets;
      proxy_http_version 1.1;
      proxy_max_temp_file_size 0;
      proxy_set_header Connection "";
      proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
      proxy_set_header X-Forwarded-Proto $scheme;
      proxy_set_header X-Forwarded-Port $server_port;
      proxy_set_header X-Amzn-Trace-Id Root=$request_id;
    }
  }
}
`, r.address)
	var err error
	r.Process, err = start(dir, config, r.address, "nginx", "-p", dir, "-c")
	return r, err
}

func startHAProxy(dir string, targets []string, _ options) (*rival, error) {
	r := &rival{name: "HAProxy", address: load.FreeAddress()}
	config := fmt.Sprintf(`global
  nbthread 2
  maxconn 4096
defaults
  mode http
  option forwardfor
  timeout connect 10s
  timeout client 60s
  timeout server 60s
frontend web
  bind %s
  http-request set-header X-Forwarded-Proto http
  http-request set-header X-Forwarded-Port %%[dst_port]
  http-request set-header X-Amzn-Trace-Id Root=%%[uuid()]
  default_backend targets
backend targets
  http-reuse always
`, r.address)
	for i, a := range targets {
		config += fmt.Sprintf("  server s%d %s\n", i, a)
	}
	var err error
	r.Process, err = start(dir, config, r.address, "haproxy", "-db", "-q", "-f")
	return r, err
}

func startPintle(dir string, addresses []string, o options) (*rival, error) {
	r := &rival{name: "pintle", address: load.FreeAddress()}
	port := func(address string) int {
		_, text, _ := strings.Cut(address, ":")
		n, _ := strconv.Atoi(text)
		return n
	}
	group := routing.Group{ARN: "targets", Protocol: routing.HTTP}
	group.HealthCheck.Path = "/small"
	for i, a := range addresses {
		group.Targets = append(group.Targets, routing.Target{ID: fmt.Sprint(i), Address: "127.0.0.1", Port: port(a)})
	}
	forward := &routing.Forward{Groups: []routing.WeightedGroup{{ARN: "targets", Weight: 1}}}
	rule := routing.Rule{ARN: "default", Actions: []routing.Action{{Type: routing.ForwardAction, Forward: forward}}}
	config, err := json.Marshal(routing.Balancers{
		Balancers: []routing.Balancer{{ARN: "web", Type: "application", Listeners: []routing.Listener{
			{ARN: "web-http", Protocol: routing.HTTP, Port: port(r.address), Rules: []routing.Rule{rule}},
		}}},
		Groups: []routing.Group{group},
	})
	if err != nil {
		return nil, err
	}
	r.Process, err = start(dir, string(config), r.address, o.binary, "balancer", "--config")
	return r, err
}

// cpu is the processor time of a program and its workers.
func cpu(p *load.Process) time.Duration {
	all := p.CPU()
	pid := p.Cmd.Process.Pid
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return all
	}
	for _, child := range strings.Fields(string(children)) {
		n, err := strconv.Atoi(child)
		if err == nil {
			all += (&load.Process{Cmd: &exec.Cmd{Process: &os.Process{Pid: n}}}).CPU()
		}
	}
	return all
}

var figures = map[string]*regexp.Regexp{
	"50%": regexp.MustCompile(`(?m)^ +50% +(\S+) *$`), "99%": regexp.MustCompile(`(?m)^ +99% +(\S+) *$`),
	"rate": regexp.MustCompile(`Requests/sec: +(\S+)`), "requests": regexp.MustCompile(`(\d+) requests in`),
	"errors": regexp.MustCompile(`Non-2xx or 3xx responses: (\d+)|Socket errors: connect [1-9]`),
}

// wrk sends all that a balancer takes, and says what it saw.
func wrk(address, path string, fresh bool, o options) (t turn, requests int, err error) {
	args := []string{"-t2", fmt.Sprintf("-c%d", o.connections), fmt.Sprintf("-d%ds", int(o.duration.Seconds())), "--latency"}
	if fresh {
		args = append(args, "-H", "Connection: close")
	}
	out, err := exec.Command("wrk", append(args, "http://"+address+path)...).CombinedOutput()
	if err != nil {
		return t, 0, fmt.Errorf("wrk: %w: %s", err, out)
	}
	found := map[string]string{}
	for name, pattern := range figures {
		if m := pattern.FindSubmatch(out); m != nil {
			found[name] = string(m[1])
		}
	}
	if figures["errors"].Match(out) {
		return t, 0, fmt.Errorf("some requests failed: %s", out)
	}
	if t.p50, err = time.ParseDuration(found["50%"]); err == nil {
		t.p99, err = time.ParseDuration(found["99%"])
	}
	if err == nil {
		t.perSecond, err = strconv.ParseFloat(found["rate"], 64)
	}
	if err == nil {
		requests, err = strconv.Atoi(found["requests"])
	}
	if err != nil {
		return t, 0, fmt.Errorf("wrk's output can't be read: %w: %s", err, out)
	}
	return t, requests, nil
}
