package test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
)

// mesh are two services of Service Connect: front in network mode awsvpc, which others reach as front:8080 by the proxy's port 8081, and two tasks
// of back in mode bridge, which are back.mesh:9090.
type mesh struct {
	*containers
	front, back []string // where their tasks are
}

// meshLogs is where proxies say what they have to.
const meshLogs = `,"logConfiguration":{"logDriver":"awslogs","options":{"awslogs-group":"/mesh","awslogs-region":"us-east-1","awslogs-stream-prefix":"proxy",` +
	`"awslogs-create-group":"true"}}`

func (c *containers) startMesh(t *testing.T) *mesh {
	t.Helper()
	m := &mesh{containers: c}
	m.AWS("ecs", "update-cluster", "--cluster", "default", "--service-connect-defaults", "namespace=mesh")
	for _, s := range []struct{ name, network, app, endpoint, more string }{
		{"back", "bridge", `,"appProtocol":"http"`, `"clientAliases":[{"port":9090}]`,
			`"desiredCount":2`},
		{"front", "awsvpc", "", `"clientAliases":[{"port":8080,"dnsName":"front"}],"ingressPortOverride":8081`,
			`"desiredCount":1,"networkConfiguration":{"awsvpcConfiguration":{"subnets":["subnet-1"]}}`},
	} {
		m.register(t, "mesh-"+s.name, asker, `,"portMappings":[{"name":"`+s.name+`","containerPort":80`+s.app+`}],"stopTimeout":1`+
			`,"environment":[{"name":"WHO","value":"`+s.name+`"}]`, `,"networkMode":"`+s.network+`"`)
		m.AWS("ecs", "create-service", "--cli-input-json", fmt.Sprintf(`{"serviceName":%q,"taskDefinition":"mesh-%[1]s",%[2]s,`+
			`"serviceConnectConfiguration":{"enabled":true,"services":[{"portName":%[1]q,%[3]s}]`+meshLogs+`}}`, s.name, s.more, s.endpoint))
	}
	m.back = m.awaits(t, "back", 2)
	m.front = m.awaits(t, "front", 1)
	return m
}

// awaits waits until as many of a service's tasks are at its endpoint, and nobody else, and returns where they are.
func (m *mesh) awaits(t *testing.T, name string, count int, others ...string) (at []string) {
	t.Helper()
	Eventually(t, fmt.Sprint(count, " tasks of ", name, " at its endpoint"), func() bool {
		at = strings.Fields(m.AWS("servicediscovery", "discover-instances", "--namespace-name", "mesh", "--service-name", name, "--output", "text",
			"--query", "Instances[].join(':',[Attributes.AWS_INSTANCE_IPV4,Attributes.AWS_INSTANCE_PORT])"))
		return len(at) == count && !slices.ContainsFunc(at, func(a string) bool { return slices.Contains(others, a) })
	})
	return at
}

// ask has the task at an address ask for a page, once. It returns "" if the task doesn't answer.
func ask(at, question string) string {
	resp, err := http.Get("http://" + at + "/cgi-bin/ask?" + question)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	b := make([]byte, 64)
	n, _ := resp.Body.Read(b) //nolint:errcheck // what was read tells
	return strings.TrimSpace(string(b[:n]))
}

// serviceConnect checks that services reach each other by their aliases, through a rolling update without a failed request, and that a task
// that stops is reached no more.
func (c *containers) serviceConnect(t *testing.T) {
	m := c.startMesh(t)
	front := m.front[0] // by its ingress
	if !strings.HasSuffix(front, ":8081") {
		t.Errorf("front is at %s", front)
	}
	Eventually(t, "front reaches back", func() bool { return ask(front, "back.mesh:9090") == "back" })
	if got := ask(m.back[0], "front:8080"); got != "nothing" {
		t.Errorf("a deployment from before front reaches it: %q", got)
	}
	m.update(t, front)
	Eventually(t, "back reaches front", func() bool { return ask(m.back[0], "front:8080") == "front" })
	m.AWS("ecs", "update-service", "--service", "back", "--desired-count", "0")
	from := time.Now()
	Eventually(t, "front doesn't reach the tasks that stop", func() bool { return ask(front, "back.mesh:9090") == "nothing" })
	if took := time.Since(from); took > 5*time.Second {
		t.Errorf("a stopped task is reached for %s", took)
	}
	Eventually(t, "front's proxy says so", func() bool {
		return strings.Contains(m.AWS("logs", "filter-log-events", "--log-group-name", "/mesh", "--log-stream-name-prefix", "proxy/ecs-service-connect-",
			"--filter-pattern", `"no answer"`, "--query", "events[].message", "--output", "text"), "name=back.mesh:9090")
	})
	m.end(t)
}

// end deletes what startMesh has made.
func (m *mesh) end(t *testing.T) {
	t.Helper()
	for _, name := range []string{"back", "front"} {
		m.AWS("ecs", "delete-service", "--service", name, "--force")
	}
	namespace := m.AWS("servicediscovery", "list-namespaces", "--query", "Namespaces[?Name=='mesh'].Id", "--output", "text")
	Eventually(t, "the endpoints are gone", func() bool {
		return m.AWS("servicediscovery", "list-services", "--filters", "Name=NAMESPACE_ID,Values="+namespace, "--query", "Services", "--output", "text") == ""
	})
	m.AWS("servicediscovery", "delete-namespace", "--id", namespace)
}

// update replaces the tasks of back while front asks for them.
func (m *mesh) update(t *testing.T, front string) {
	t.Helper()
	over, told := make(chan bool), make(chan map[string]int)
	go func() {
		answers := map[string]int{}
		for {
			select {
			case <-over:
				told <- answers
				return
			default:
				answers[ask(front, "back.mesh:9090")]++
			}
		}
	}()
	old := m.back
	m.AWS("ecs", "update-service", "--service", "back", "--force-new-deployment")
	m.back = m.awaits(t, "back", 2, old...)
	Eventually(t, "the old tasks have stopped", func() bool {
		return m.AWS("ecs", "list-tasks", "--service-name", "back", "--query", "length(taskArns)", "--output", "text") == "2"
	})
	over <- true
	answers := <-told
	if len(answers) != 1 || answers["back"] == 0 {
		t.Errorf("front's requests during an update: %v", answers)
	}
	t.Logf("%d requests during the update; %v became %v", answers["back"], old, m.back)
}
