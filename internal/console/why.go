package console

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/pintle/pintle/internal/ecs/explain"
	"github.com/pintle/pintle/internal/state"
)

// Why is the body of /pintle/why: a task's id or ARN, or a service's name or ARN.
type Why struct {
	Cluster string
	Name    string
}

// WhyAnswer is what /pintle/why answers.
type WhyAnswer = explain.Answer

// serveWhy answers with a WhyAnswer.
func (c *Console) serveWhy(ctx context.Context, w http.ResponseWriter, body []byte) {
	var q Why
	if err := json.Unmarshal(body, &q); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := c.opts.MayList(ctx, state.NameOf(q.Cluster)); err != nil {
		http.Error(w, err.Error(), http.StatusForbidden)
		return
	}
	a, ok := c.why(q)
	if !ok {
		const missing = "the cluster %[1]s has no task and no service %[2]q: pintle ps -a --cluster %[1]s lists its tasks, " +
			"and aws ecs list-services --cluster %[1]s its services; stopped tasks are forgotten after an hour"
		http.Error(w, fmt.Sprintf(missing, q.Cluster, q.Name), http.StatusNotFound)
		return
	}
	writeJSON(w, a)
}

// why looks for a task first: its id is none that a service would have.
func (c *Console) why(q Why) (WhyAnswer, bool) {
	v := c.store.View()
	cluster, name := state.NameOf(q.Cluster), state.NameOf(q.Name)
	for t := range v.Tasks.All() {
		id := state.NameOf(*t.TaskArn)
		if state.NameOf(*t.ClusterArn) == cluster && (id == name || len(name) >= 6 && strings.HasPrefix(id, name)) {
			return explain.Task(v, t, explain.Options{Now: c.opts.Now(), Serverless: c.opts.Serverless}), true
		}
	}
	for s := range v.Services.All() {
		if state.NameOf(*s.ClusterArn) == cluster && aws.ToString(s.ServiceName) == name {
			return explain.Service(v, s, explain.Options{Now: c.opts.Now(), Serverless: c.opts.Serverless}), true
		}
	}
	return WhyAnswer{}, false
}
