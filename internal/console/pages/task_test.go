package pages

import (
	"context"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/console/login"
	"github.com/pintle/pintle/internal/console/markup"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// TestWhoIsToldWhy: what a task waits for tells of other tasks and of nodes, and so it's for those who may list them, as pintle why is.
func TestWhoIsToldWhy(t *testing.T) {
	const task = "arn:aws:ecs:us-east-1:000000000000:task/default/t1"
	store := statetest.Open(t)
	statetest.Update(t, store, func(tx *state.Tx) {
		tx.Tasks.Put(&state.Task{Task: types.Task{
			TaskArn: aws.String(task), ClusterArn: aws.String(aCluster), LastStatus: aws.String("PENDING"), DesiredStatus: aws.String("RUNNING"),
			CreatedAt: aws.Time(noon), TaskDefinitionArn: aws.String("d"),
		}})
	})
	for name, c := range map[string]struct {
		mayList func(context.Context, string) error
		told    bool
	}{"somebody who may list": {everybody, true}, "somebody who may not": {nobody, false}} {
		p := New(Options{MayList: c.mayList, Now: time.Now, Store: store, Sessions: login.New(login.Options{Now: time.Now})})
		v := p.visit(httptest.NewRequest("GET", "/console/tasks/default/t1", nil), &login.Session{})
		if got := p.waiting(v, task); (got.HTML != blank("why").HTML) != c.told {
			t.Errorf("%s is told %q", name, got.HTML)
		}
	}
}

func nobody(context.Context, string) error { return errors.New("no") }

// TestLogLink: the stream is the one that nodes write to, with a prefix and without.
func TestLogLink(t *testing.T) {
	task := types.Task{TaskArn: aws.String("arn:aws:ecs:us-east-1:000000000000:task/default/t1")}
	for prefix, want := range map[string]string{"": "stream=t1-main", "p": "stream=p%2Fmain%2Ft1"} {
		options := map[string]string{"awslogs-group": "g"}
		if prefix != "" {
			options["awslogs-stream-prefix"] = prefix
		}
		d := &types.TaskDefinition{ContainerDefinitions: []types.ContainerDefinition{
			{Name: aws.String("main"), LogConfiguration: &types.LogConfiguration{LogDriver: types.LogDriverAwslogs, Options: options}},
		}}
		if got := markup.String(logLink(task, d, "main")); !strings.Contains(got, want) {
			t.Errorf("prefix %q: %s", prefix, got)
		}
	}
}

// TestTimeline: steps are told in the order in which they were, so none takes less than no time.
func TestTimeline(t *testing.T) {
	at := func(seconds int) *time.Time { return aws.Time(noon.Add(time.Duration(seconds) * time.Second)) }
	page := markup.String(timeline(types.Task{CreatedAt: at(0), ConnectivityAt: at(5), PullStartedAt: at(2), PullStoppedAt: at(2), StartedAt: at(5)}))
	if strings.Contains(page, "+-") || strings.Index(page, "image is there") > strings.Index(page, "connected") {
		t.Error(page)
	}
	for _, want := range []string{`<td class="number">+2s</td>`, `<td class="number">+3s</td>`, `<td class="number">+0s</td>`} {
		if !strings.Contains(page, want) {
			t.Errorf("%s isn't in %s", want, page)
		}
	}
}
