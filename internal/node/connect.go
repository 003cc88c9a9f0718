package node

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/connect"
)

// Service Connect on this node: docs/discovery.md tells what tasks see of it.

// connectAttribute is what placement asks for.
const connectAttribute = "pintle.service-connect"

// canConnect reports whether tasks of Service Connect can run here: the agent must get into their network namespaces.
func (a *Agent) canConnect() bool {
	return len(a.config.Proxy) > 0 && a.mounts() && os.Geteuid() == 0
}

// startConnect has tasks attended by their proxies.
func (a *Agent) startConnect(at *attendant) {
	a.connect = connect.New(connect.Options{
		Dir:      filepath.Join(a.config.DataDir, "connect"),
		Program:  a.config.Proxy,
		Names:    a.names,
		Machine:  machineAddress,
		Log:      a.log,
		Shippers: a.shippers(),
	})
	at.connect = a.connect
}

// sweepEvery is how often the node looks for proxies whose tasks have gone while there was no agent.
const sweepEvery = time.Minute

func (a *Agent) sweepProxies(ctx context.Context) error {
	each := time.NewTicker(sweepEvery)
	defer each.Stop()
	for {
		there := map[string]bool{}
		for _, arn := range a.engine.Running() {
			there[arn[strings.LastIndexByte(arn, '/')+1:]] = true
		}
		a.connect.Sweep(func(task string) bool { return there[task] })
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-each.C:
		}
	}
}

// withUsage adds what proxies have passed on to what their tasks used.
func withUsage(tasks []acs.TaskMetric, usage map[string][]acs.ConnectUsage) []acs.TaskMetric {
	for i := range tasks {
		tasks[i].ServiceConnect = usage[tasks[i].TaskArn]
		delete(usage, tasks[i].TaskArn)
	}
	for _, arn := range slices.Sorted(maps.Keys(usage)) {
		tasks = append(tasks, acs.TaskMetric{TaskArn: arn, ContainerMetrics: []acs.ContainerMetric{}, ServiceConnect: usage[arn]})
	}
	return tasks
}
