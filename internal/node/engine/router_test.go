package engine

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pintle/pintle/internal/acs"
)

func routed(c acs.Container) acs.Container {
	c.DockerConfig.HostConfig = `{"LogConfig":{"Type":"awsfirelens","Config":{"Name":"null"}}}`
	return c
}

func logRouter(c acs.Container) acs.Container {
	c.FirelensConfiguration = &acs.FirelensConfiguration{Type: "fluentbit"}
	return c
}

// stuck is a log driver whose router takes nothing.
type stuck struct{}

func (stuck) Prepare(context.Context, *LogSource) (string, error) { return "", nil }

func (stuck) Ship(ctx context.Context, _ *LogSource, _ string, _ func(string)) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestLogRouter: a log router starts before the containers whose logs it routes, and stops once it has them all, or after a while if it
// takes none. If it ends itself, nobody waits for it.
func TestLogRouter(t *testing.T) {
	slow := &shipper{make(chan string, 10)} // takes seven seconds
	for _, c := range []struct {
		name   string
		driver Shipper
		app    string
		router string
		over   time.Duration // when the task is over
	}{
		{"it has all", slow, "exit:0@5s", "run", 7 * time.Second},
		{"it takes nothing", stuck{}, "exit:0@5s", "run", 15 * time.Second},
		{"it ends", stuck{}, "run", "exit:1@5s", 5 * time.Second},
	} {
		alone(t, func(t *testing.T, a *agent) {
			task := newFakeTask("t", routed(box("app", c.app)), logRouter(box("router", c.router)))
			a.take(t, task)
			later(c.over - 100*time.Millisecond)
			if a.last(task.Arn).Status == "STOPPED" {
				t.Errorf("%s: the task is over too soon: %s", c.name, a.story())
			}
			later(200 * time.Millisecond)
			story := a.story()
			if a.last(task.Arn).Status != "STOPPED" || strings.Index(story, "start t-router") > strings.Index(story, "start t-app") {
				t.Errorf("%s: %s: %s", c.name, a.last(task.Arn).Status, story)
			}
		}, func(o *Options) { o.Shippers = map[string]Shipper{"awsfirelens": c.driver} })
	}
}

// TestLogRoutersFiles: a router has its configuration and its socket's directory mounted, and they go with the task.
func TestLogRoutersFiles(t *testing.T) {
	alone(t, func(t *testing.T, a *agent) {
		a.take(t, newFakeTask("t", routed(box("app", "run")), logRouter(box("router", "run"))))
		later(time.Second)
		a.mu.Lock()
		mounts := slices.Clone(a.containers["t-router"].spec.Mounts)
		a.mu.Unlock()
		paths := map[string]string{}
		for _, m := range mounts {
			paths[m.Destination] = m.Source
		}
		text, err := os.ReadFile(paths["/fluent-bit/etc/fluent-bit.conf"])
		if err != nil || !strings.Contains(string(text), "Match app-firelens*") {
			t.Errorf("the configuration: %v\n%s", err, text)
		}
		if info, err := os.Stat(paths["/var/run"]); err != nil || info.Mode().Perm() != 0o777 {
			t.Errorf("the socket's directory: %v, %v", info, err)
		}
		if err := a.engine.Stop(newFakeTask("t").Arn); err != nil {
			t.Fatal(err)
		}
		later(4 * time.Hour)
		if _, err := os.Stat(paths["/var/run"]); !os.IsNotExist(err) {
			t.Errorf("the files are still there: %v", err)
		}
	}, func(o *Options) { o.Shippers = map[string]Shipper{"awsfirelens": stuck{}} })
}
