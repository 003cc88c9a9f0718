package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// asker serves its own name at port 80, and at /cgi-bin/ask?HOST:PORT what it gets there itself, or at /cgi-bin/srv?NAME who answers to a name.
const asker = `mkdir -p /cgi-bin; echo $WHO > /index.html
printf '#!/bin/sh\necho\ntimeout 3 wget -q -O - http://$QUERY_STRING/ || echo nothing\n' > /cgi-bin/ask
printf '#!/bin/sh\necho\nnslookup -type=srv $QUERY_STRING | grep -o "service = .*\|NXDOMAIN" | sed "s/service = 1 1 //" | head -n 1\n' > /cgi-bin/srv
chmod +x /cgi-bin/*; exec httpd -f -p 80 -h /`

// askers are two services that find each other by their names in Cloud Map: web in network mode awsvpc, by its address, and api in mode
// bridge, by a port, too.
type askers struct {
	*containers
	namespace string
	registry  map[string]string // the ids of Cloud Map's services
}

// discover runs the services in a namespace of their own, and returns once both run.
func (c *containers) discover(t *testing.T) *askers {
	t.Helper()
	a := &askers{containers: c, registry: map[string]string{}}
	a.AWS("servicediscovery", "create-private-dns-namespace", "--name", "corp.test", "--vpc", "vpc-1")
	a.namespace = a.AWS("servicediscovery", "list-namespaces", "--query", "Namespaces[0].Id", "--output", "text")
	for _, s := range []struct{ name, record, network, registry string }{
		{"web", "A", "awsvpc", ""},
		{"api", "SRV", "bridge", `,"containerName":"main","containerPort":80`},
	} {
		a.registry[s.name] = a.AWS("servicediscovery", "create-service", "--name", s.name, "--namespace-id", a.namespace,
			"--dns-config", "DnsRecords=[{Type="+s.record+",TTL=1}]", "--health-check-custom-config", "FailureThreshold=1",
			"--query", "Service.Id", "--output", "text")
		a.register(t, s.name, asker, `,"portMappings":[{"containerPort":80}],"stopTimeout":1,"environment":[{"name":"WHO","value":"`+s.name+`"}]`,
			`,"networkMode":"`+s.network+`"`)
		arn := "arn:aws:servicediscovery:us-east-1:000000000000:service/" + a.registry[s.name]
		in := fmt.Sprintf(`{"serviceName":%q,"taskDefinition":%[1]q,"desiredCount":1,"serviceRegistries":[{"registryArn":%q%s}]`, s.name, arn, s.registry)
		if s.network == "awsvpc" {
			in += `,"networkConfiguration":{"awsvpcConfiguration":{"subnets":["subnet-1"]}}`
		}
		a.AWS("ecs", "create-service", "--cli-input-json", in+"}")
	}
	for name := range a.registry {
		Eventually(t, name+" is registered", func() bool { return len(a.instances(name)) == 1 })
	}
	return a
}

// instances returns the ids of a service's instances.
func (a *askers) instances(name string) []string {
	return strings.Fields(a.AWS("servicediscovery", "list-instances", "--service-id", a.registry[name], "--query", "Instances[].Id", "--output", "text"))
}

// at returns where the only task of a service is reached from this machine.
func (a *askers) at(name string) string {
	is := strings.Fields(a.AWS("servicediscovery", "list-instances", "--service-id", a.registry[name], "--output", "text",
		"--query", "Instances[0].Attributes.[AWS_INSTANCE_IPV4,AWS_INSTANCE_PORT||'80']"))
	return strings.Join(is, ":")
}

// look has a task ask for a page or a name.
func look(t *testing.T, at, script, question string) string {
	t.Helper()
	return strings.TrimSpace(get(t, "http://"+at+"/cgi-bin/"+script+"?"+question))
}

// find checks that each service's task finds the other.
func (a *askers) find(t *testing.T, web, api string) {
	t.Helper()
	Eventually(t, "api finds web", func() bool { return look(t, api, "ask", "web.corp.test") == "web" })
	found := ""
	Eventually(t, "web finds who answers to api", func() bool {
		found = look(t, web, "srv", "api.corp.test")
		return strings.Contains(found, "api.corp.test")
	})
	port, host, _ := strings.Cut(found, " ")
	if got := look(t, web, "ask", strings.TrimSuffix(host, ".")+":"+port); got != "api" {
		t.Errorf("web asks %s at port %s, and gets %q", host, port, got)
	}
}

// discovery checks that services find each other, and that a task that stops is gone from DNS at once.
func (c *containers) discovery(t *testing.T) {
	a := c.discover(t)
	web, api := a.at("web"), a.at("api")
	a.find(t, web, api)
	a.AWS("ecs", "update-service", "--service", "api", "--desired-count", "0")
	from := time.Now()
	Eventually(t, "the task that stops is gone from DNS", func() bool { return look(t, web, "srv", "api.corp.test") == "NXDOMAIN" })
	if took := time.Since(from); took > 5*time.Second {
		t.Errorf("a stopped task is in DNS for %s", took)
	}
	a.end(t)
}

// end deletes what discover has made.
func (a *askers) end(t *testing.T) {
	t.Helper()
	for name, id := range a.registry {
		a.AWS("ecs", "delete-service", "--service", name, "--force")
		Eventually(t, name+" has no instances", func() bool { return len(a.instances(name)) == 0 })
		a.AWS("servicediscovery", "delete-service", "--id", id)
	}
	a.AWS("servicediscovery", "delete-namespace", "--id", a.namespace)
}

// TestNamesWithoutControlPlane: names go on being answered while the control plane is away, and by the next agent, too. What Service Connect
// carries goes on without an agent as well.
func TestNamesWithoutControlPlane(t *testing.T) {
	t.Parallel()
	address, data := freeAddress(t), t.TempDir()
	plane := &daemon{t: t, args: []string{"serve", "--listen", address, "--data", filepath.Join(data, "plane")}}
	agent := &daemon{t: t, args: []string{"agent", "--endpoint", "http://" + address, "--data", filepath.Join(data, "node"),
		"--runtime", "oci", "--instance-type", "c5.large", "--metrics="}}
	t.Cleanup(func() { removeContainers(t, data) })
	for _, d := range []*daemon{plane, agent} {
		d.start()
		t.Cleanup(d.kill)
	}
	p := &Pintle{t: t, Endpoint: "http://" + address, key: "test", secret: "test"}
	Eventually(t, "the node's connection", func() bool {
		out, err := p.TryAWS("ecs", "list-container-instances", "--query", "containerInstanceArns", "--output", "text")
		return err == nil && out != ""
	})
	c := &containers{p, "rootfs:" + rootfs(t)}
	a, m := c.discover(t), c.startMesh(t)
	web, api, client := a.at("web"), a.at("api"), m.front[0]
	a.find(t, web, api)
	Eventually(t, "front reaches back", func() bool { return ask(client, "back.mesh:9090") == "back" })
	plane.kill()
	if got := look(t, api, "ask", "web.corp.test"); got != "web" || ask(client, "back.mesh:9090") != "back" {
		t.Errorf("the control plane is away: %q", got)
	}
	agent.kill()
	if got := ask(client, "back.mesh:9090"); got != "back" {
		t.Errorf("the agent is away, too: %q", got)
	}
	plane.start()
	agent.start()
	Eventually(t, "the next agent answers", func() bool { return look(t, api, "ask", "web.corp.test") == "web" })
	if got := ask(client, "back.mesh:9090"); got != "back" {
		t.Errorf("there is a next agent: %q", got)
	}
	a.end(t)
	m.end(t)
	Eventually(t, "all tasks have stopped", func() bool {
		return a.AWS("ecs", "list-tasks", "--query", "taskArns", "--output", "text") == ""
	})
	Eventually(t, "nothing is mounted for the tasks' networks", func() bool {
		mounts, err := os.ReadFile("/proc/mounts")
		return err == nil && !strings.Contains(string(mounts), data)
	})
	Eventually(t, "the tasks' proxies have ended", func() bool {
		left, err := filepath.Glob(filepath.Join(data, "node", "connect", "*"))
		return err == nil && len(left) == 0
	})
}
