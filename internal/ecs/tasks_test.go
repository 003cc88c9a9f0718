package ecs

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire"
	"github.com/pintle/pintle/internal/wire/call"
)

// copied answers DescribeTasks with copies of the rows, as SDK clients inside the process get them.
type copied struct{ *Service }

func (c copied) Operations() []call.Operation {
	return []call.Operation{call.Op("DescribeTasks", c.DescribeTasks)}
}

// TestDescribeTasksOnTheWire: an answer from rows equals one from copies, byte for byte. It checks before and after a change, and
// each answer twice.
func TestDescribeTasksOnTheWire(t *testing.T) {
	s, store := newTestService(t)
	id, none := strings.Repeat("a", 32), strings.Repeat("0", 32)
	arn := "arn:aws:ecs:us-east-1:000000000000:task/default/" + id
	row := &state.Task{Task: types.Task{
		TaskArn:       &arn,
		ClusterArn:    aws.String("arn:aws:ecs:us-east-1:000000000000:cluster/default"),
		LastStatus:    aws.String("PENDING"),
		DesiredStatus: aws.String("RUNNING"),
		Tags:          []types.Tag{{Key: aws.String("k"), Value: aws.String("v")}},
	}}
	handler := func(service call.Service) http.Handler {
		h, err := wire.New(wire.Options{}, API(service))
		if err != nil {
			t.Fatal(err)
		}
		return h
	}
	kept, fresh := handler(s), handler(copied{s})
	describe := func(h http.Handler, body string) string {
		t.Helper()
		answer := ""
		for range 2 {
			r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
			r.Header.Set("X-Amz-Target", "AmazonEC2ContainerServiceV20141113.DescribeTasks")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if answer != "" && w.Body.String() != answer {
				t.Errorf("got %s and then %s", answer, w.Body)
			}
			answer = w.Body.String()
		}
		return answer
	}
	for _, status := range []string{"PENDING", "RUNNING"} {
		next := *row
		next.LastStatus = &status
		row = &next
		err := store.Update(context.Background(), func(tx *state.Tx) error {
			tx.Tasks.Put(row)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct{ body, want string }{
			{`{"tasks":["` + id + `","` + none + `"],"include":["TAGS"]}`, `"tags":[{"key":"k","value":"v"}]`},
			{`{"tasks":["` + id + `"]}`, `"tags":[]`},
			{`{"tasks":["` + none + `"]}`, `"reason":"MISSING"`},
		} {
			got, want := describe(kept, c.body), describe(fresh, c.body)
			if got != want || !strings.Contains(got, c.want) {
				t.Errorf("%s: got %s, want %s", c.body, got, want)
			}
			if strings.Contains(c.body, id) && !strings.Contains(got, status) {
				t.Errorf("%s: no %s in %s", c.body, status, got)
			}
		}
	}
}

// TestTaskIDs: what can't be an id is refused, such as what the AWS CLI prints for a task that wasn't placed.
func TestTaskIDs(t *testing.T) {
	s, _ := newTestService(t)
	const short = "InvalidParameterException: taskId length should be one of [32,36]"
	for id, want := range map[string]string{
		"None": short,
		"arn:aws:ecs:us-east-1:000000000000:task/default/1": short,
		strings.Repeat("0", 32):                             "InvalidParameterException: The referenced task was not found.",
		"aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee":              "InvalidParameterException: The referenced task was not found.",
	} {
		if _, err := s.StopTask(t.Context(), &ecs.StopTaskInput{Task: &id}); err == nil || err.Error() != want {
			t.Errorf("StopTask %s: got %v, want %s", id, err, want)
		}
		if _, err := s.DescribeTasks(t.Context(), &ecs.DescribeTasksInput{Tasks: []string{id}}); (err != nil) != (want == short) {
			t.Errorf("DescribeTasks %s: %v", id, err)
		}
	}
}

// TestTaskDefinitionNames: another account's or region's task definition isn't this one's of the same name.
func TestTaskDefinitionNames(t *testing.T) {
	s, _ := newTestService(t)
	for name, found := range map[string]bool{
		"f":   true,
		"f:1": true,
		"arn:aws:ecs:us-east-1:000000000000:task-definition/f:1": true,
		"arn:aws:ecs:us-east-1:000000000000:task-definition/f":   true,
		"arn:aws:ecs:eu-west-1:000000000000:task-definition/f:1": false,
		"arn:aws:ecs:us-east-1:111122223333:task-definition/f:1": false,
		"arn:aws:ecs:us-east-1:000000000000:cluster/f:1":         false,
		"f/f:1": false,
		"g":     false,
	} {
		_, err := s.DescribeTaskDefinition(t.Context(), &ecs.DescribeTaskDefinitionInput{TaskDefinition: &name})
		if (err == nil) != found {
			t.Errorf("%s: %v", name, err)
		}
	}
}
