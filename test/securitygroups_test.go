package test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// prober serves a page at the ports 80 and 81, and says at /cgi-bin/try?HOST:PORT whether it gets such a page there.
const prober = `mkdir -p /cgi-bin; printf '#!/bin/sh\necho\ntimeout 1 wget -q -O - http://$QUERY_STRING/ || echo shut\n' > /cgi-bin/try
chmod +x /cgi-bin/try; echo open > /index.html; httpd -p 81 -h /; exec httpd -f -p 80 -h /`

// probers are tasks that try to reach each other.
type probers struct {
	*containers
	t *testing.T
}

// start starts a task with an interface in the default VPC, and returns its address.
func (p *probers) start(groups ...string) (address string) {
	p.t.Helper()
	subnet := p.AWS("ec2", "describe-subnets", "--query", "Subnets[0].SubnetId", "--output", "text")
	network := fmt.Sprintf("awsvpcConfiguration={subnets=[%s],securityGroups=[%s]}", subnet, strings.Join(groups, ","))
	if len(groups) == 0 {
		network = fmt.Sprintf("awsvpcConfiguration={subnets=[%s]}", subnet)
	}
	task, _ := p.run(p.t, "prober", `{}`, "--network-configuration", network)
	p.Await(task, "RUNNING")
	return p.AWS("ecs", "describe-tasks", "--tasks", task,
		"--query", "tasks[0].attachments[0].details[?name=='privateIPv4Address'].value", "--output", "text")
}

func (p *probers) group(name string) (id string) {
	p.t.Helper()
	return p.AWS("ec2", "create-security-group", "--group-name", name, "--description", name, "--query", "GroupId", "--output", "text")
}

// try says what a task gets at an address: "open" or "shut".
func (p *probers) try(from, to string) string {
	p.t.Helper()
	return strings.TrimSpace(get(p.t, "http://"+from+"/cgi-bin/try?"+to))
}

func (p *probers) want(what, from, to, want string) {
	p.t.Helper()
	if got := p.try(from, to); got != want {
		p.t.Errorf("%s: %s finds %s %s, want %s", what, from, to, got, want)
	}
}

// soon waits until a change has reached the tasks.
func (p *probers) soon(what, from, to, want string) {
	p.t.Helper()
	Eventually(p.t, what, func() bool { return p.try(from, to) == want })
}

// securityGroups checks that what the rules of tasks' security groups let pass gets there, and nothing else does.
func (c *containers) securityGroups(t *testing.T) {
	c.register(t, "prober", prober, `,"stopTimeout":2`, `,"networkMode":"awsvpc"`)
	p := &probers{c, t}
	web, clients := p.group("web"), p.group("clients")
	rule := func(verb, group string, more ...string) {
		t.Helper()
		c.AWS(append([]string{"ec2", verb, "--group-id", group, "--protocol", "tcp"}, more...)...)
	}
	rule("authorize-security-group-ingress", web, "--port", "80", "--source-group", clients)
	server, client, other, another := p.start(web), p.start(clients), p.start(), p.start()
	p.soon("a member of the source group", client, server+":80", "open")
	p.want("another port", client, server+":81", "shut")
	p.want("no member of the source group", other, server+":80", "shut")
	p.want("a group without rules for it", server, client+":80", "shut")
	p.soon("members of the default group", other, another+":81", "open")
	p.want("no member of the default group", client, another+":81", "shut")

	rule("authorize-security-group-ingress", web, "--port", "80-90", "--cidr", client+"/32")
	p.soon("a rule for a block", client, server+":81", "open")
	rule("revoke-security-group-ingress", web, "--port", "80-90", "--cidr", client+"/32")
	p.soon("a rule revoked", client, server+":81", "shut")
	p.want("the rule that is left", client, server+":80", "open")

	late := p.start(clients)
	p.soon("a member that came later", late, server+":80", "open")

	c.AWS("ec2", "revoke-security-group-egress", "--group-id", clients, "--protocol", "-1", "--cidr", "0.0.0.0/0")
	p.soon("nothing out", client, server+":80", "shut")
	rule("authorize-security-group-egress", clients, "--port", "80", "--source-group", web)
	p.soon("out to a group", client, server+":80", "open")

	if _, err := c.TryAWS("ec2", "delete-security-group", "--group-id", web); err == nil {
		t.Error("a group that tasks are in was deleted")
	}
	c.Kill()
	p.want("the agent is away", client, server+":80", "open")
	p.want("the agent is away", other, server+":80", "shut")
	c.Start()
	rule("revoke-security-group-ingress", web, "--port", "80", "--source-group", clients)
	p.soon("after a restart", client, server+":80", "shut")
}

// TestGroupsOfInstances: the groups of an instance say who reaches the ports that containers in mode bridge publish on it.
func TestGroupsOfInstances(t *testing.T) {
	t.Parallel()
	netns, _, machine := secondMachine(t)
	p := upSigned(t, "oci")
	group := p.AWS("ec2", "create-security-group", "--group-name", "published", "--description", "x", "--query", "GroupId", "--output", "text")
	p.launch(`"SecurityGroupIds":["` + group + `"]`)
	p.AWS("ecs", "register-task-definition", "--family", "web", "--container-definitions", fmt.Sprintf(
		`[{"name":"main","image":"rootfs:%s","entryPoint":["/bin/sh","-c"],"command":[%q],"memory":32,"stopTimeout":2,"portMappings":[{"containerPort":80}]}]`,
		rootfs(t), prober))
	task, _ := p.run(t, "web", `{}`)
	p.Await(task, "RUNNING")
	port := p.AWS("ecs", "describe-tasks", "--tasks", task, "--query", "tasks[0].containers[0].networkBindings[0].hostPort", "--output", "text")
	if got := get(t, "http://127.0.0.1:"+port+"/"); got != "open\n" {
		t.Errorf("from its own machine: %s", got)
	}
	outside := func() bool {
		out, _ := exec.Command("ip", "netns", "exec", netns, "curl", "-s", "-m", "1", "http://"+machine+":"+port+"/").Output() //nolint:errcheck // the output tells
		return string(out) == "open\n"
	}
	if outside() {
		t.Error("another machine gets in without a rule")
	}
	rule := []string{"--group-id", group, "--protocol", "tcp", "--port", port, "--cidr", "10.231.77.2/32"}
	p.AWS(append([]string{"ec2", "authorize-security-group-ingress"}, rule...)...)
	Eventually(t, "a rule for the published port", outside)
	p.AWS(append([]string{"ec2", "revoke-security-group-ingress"}, rule...)...)
	Eventually(t, "a rule revoked", func() bool { return !outside() })
	p.AWS("ec2", "authorize-security-group-ingress", "--group-id", group, "--protocol", "tcp", "--port", "80", "--cidr", "0.0.0.0/0")
	time.Sleep(2 * time.Second) // as long as a change may take
	if outside() {
		t.Error("a rule for the container's own port lets in what comes to the published one")
	}
}
