package console

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/ecs/explain"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// TestWhy asks for a task by its id and by its first characters, and for what isn't there.
func TestWhy(t *testing.T) {
	store := statetest.Open(t)
	const cluster = "arn:aws:ecs:us-east-1:000000000000:cluster/c"
	statetest.Update(t, store, func(tx *state.Tx) {
		tx.Tasks.Put(&state.Task{Task: types.Task{
			TaskArn: aws.String("arn:aws:ecs:us-east-1:000000000000:task/c/0123456789"), ClusterArn: aws.String(cluster), CreatedAt: new(time.Now()),
			LastStatus: aws.String("STOPPED"), DesiredStatus: aws.String("STOPPED"), StoppedReason: aws.String("Host EC2 (instance i-1) terminated"),
		}})
	})
	handler := New(store, nil, Options{Now: time.Now, MayList: func(context.Context, string) error { return nil }}).Handlers()["/pintle/why"]
	for name, code := range map[string]int{"0123456789": 200, "012345": 200, "arn:aws:ecs:us-east-1:000000000000:task/c/0123456789": 200, "0": 404, "x": 404} {
		body, _ := json.Marshal(Why{Cluster: "c", Name: name})
		r := httptest.NewRequest(http.MethodPost, "http://127.0.0.1/pintle/why", strings.NewReader(string(body)))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		var a explain.Answer
		if w.Code != code || code == 200 && (json.Unmarshal(w.Body.Bytes(), &a) != nil || a.Status != "STOPPED" || !strings.Contains(a.Why, "i-1) terminated")) {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
		if code == 404 && (!strings.Contains(w.Body.String(), "pintle ps -a --cluster c ") || !strings.Contains(w.Body.String(), "list-services --cluster c ")) {
			t.Errorf("%s: %s doesn't say where to find those that there are", name, w.Body)
		}
	}
}
