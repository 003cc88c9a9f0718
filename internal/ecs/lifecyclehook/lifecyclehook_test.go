package lifecyclehook

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

func TestRead(t *testing.T) {
	const failed, succeeded, inProgress = types.DeploymentLifecycleHookStatusFailed, types.DeploymentLifecycleHookStatusSucceeded,
		types.DeploymentLifecycleHookStatusInProgress
	for _, c := range []struct {
		payload string
		status  types.DeploymentLifecycleHookStatus // "" is no answer
		delay   time.Duration
		details string
	}{
		{`{"hookStatus": "SUCCEEDED"}`, succeeded, 30 * time.Second, ""},
		{`{"hookStatus": "FAILED", "callBackDelay": 5}`, failed, 30 * time.Second, ""},
		{`{"hookStatus": "IN_PROGRESS"}`, inProgress, 30 * time.Second, ""},
		{`{"hookStatus": "IN_PROGRESS", "callBackDelay": 60, "hookDetails": {"n": 1}}`, inProgress, time.Minute, `{"n": 1}`},
		{`{"hookStatus": "IN_PROGRESS", "callBackDelay": 1.5, "hookDetails": null}`, inProgress, 1500 * time.Millisecond, ""},
		{`{"hookStatus": "IN_PROGRESS", "callBackDelay": 0}`, inProgress, time.Second, ""},
		{`{"hookStatus": "IN_PROGRESS", "callBackDelay": 1e300}`, inProgress, 24 * time.Hour, ""},
		{`{"hookStatus": "IN_PROGRESS", "callBackDelay": "soon"}`, "", 0, ""},
		{`{"hookStatus": "AWAITING_ACTION"}`, "", 0, ""},
		{`{"hookStatus": "TIMED_OUT"}`, "", 0, ""},
		{`{}`, "", 0, ""},
		{`null`, "", 0, ""},
		{`"SUCCEEDED"`, "", 0, ""},
		{``, "", 0, ""},
	} {
		a, err := Read([]byte(c.payload))
		if (err != nil) != (c.status == "") || a.Status != c.status || a.Delay != c.delay || string(a.Details) != c.details {
			t.Errorf("%s: %+v, %v", c.payload, a, err)
		}
	}
}

func TestMerge(t *testing.T) {
	for _, c := range []struct{ given, returned, want string }{
		{`{"bucket": "b", "n": 1}`, `{"n": 2, "x": [3]}`, `{"bucket":"b","n":2,"x":[3]}`},
		{``, `{"n": 12345678901234567890}`, `{"n": 12345678901234567890}`},
		{`[1]`, `{"n": 2}`, `{"n": 2}`},
		{`{"n": 1}`, `[2]`, `[2]`},
	} {
		if got, err := Merge(json.RawMessage(c.given), json.RawMessage(c.returned)); err != nil || string(got) != c.want {
			t.Errorf("%s and %s: %s, %v", c.given, c.returned, got, err)
		}
	}
	if _, err := Merge(nil, json.RawMessage(`"`+strings.Repeat("x", MaxDetails)+`"`)); err == nil {
		t.Error("details may have any size")
	}
}

// TestEvent: the event has the members that AWS documents, and no others.
func TestEvent(t *testing.T) {
	c := Call{Service: "service", Function: "function", Role: "role", Event: Event{
		ExecutionID: "id", LifecycleStage: "PRODUCTION_TRAFFIC_SHIFT", ResourceARN: "deployment", ExecutionDetails: ExecutionDetails{
			ServiceARN: "service", TargetServiceRevisionARN: "green", TestTrafficWeights: map[string]float64{},
			ProductionTrafficWeights: map[string]float64{"green": 99.9, "blue": 0.1},
		}}}
	const want = `{"executionId":"id","lifecycleStage":"PRODUCTION_TRAFFIC_SHIFT","resourceArn":"deployment","executionDetails":{"serviceArn":"service",` +
		`"targetServiceRevisionArn":"green","testTrafficWeights":{},"productionTrafficWeights":{"blue":0.1,"green":99.9}}}`
	read, err := Parse(c.Text())
	if err != nil || read.Function != "function" || read.Role != "role" || read.Service != "service" {
		t.Errorf("%+v, %v", read, err)
	}
	if got := string(read.Payload()); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	read.Event.HookDetails = json.RawMessage(`{"n":1}`)
	if got := string(read.Payload()); !strings.HasSuffix(got, `},"hookDetails":{"n":1}}`) {
		t.Error(got)
	}
}
