package nodelink

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/coder/websocket"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

const metadata = `"metadata":{"cluster":"poc","containerInstance":"` + instanceArn + `","messageId":"m","fin":true}`

// TestTelemetry is the transcript of a TCS connection, frame by frame.
func TestTelemetry(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	a := w.connect(kindTCS)
	a.wantFrame(`{"type":"HeartbeatMessage","message":{"healthy":true,"intervalMs":8000}}`)
	a.say("Authorization: AWS4-HMAC-SHA256 Credential=a\r\nHost: h\r\nX-Amz-Date: d\r\n\r\n" +
		`{"type":"PublishMetricsRequest","message":{"metadata":{"cluster":"poc","containerInstance":"` + instanceArn +
		`","idle":true,"fin":true,"messageId":"m"},"timestamp":1763700000.123}}`)
	a.wantFrame(`{"type":"AckPublishMetric","message":{"message":"ok"}}`)
	a.say(`{"type":"StartTelemetrySessionRequest","message":{"cluster":"poc"}}`) // unknown, so not answered
	a.say(`{"type":"PublishHealthRequest","message":{` + metadata + `,"tasks":[]}}`)
	a.wantFrame(`{"type":"AckPublishHealth","message":{"message":"ok"}}`)
	a.say(`{"type":"PublishInstanceStatusRequest","message":{` + metadata + `,"statuses":[]}}`)
	a.wantFrame(`{"type":"AckPublishInstanceStatus","message":{"message":"ok"}}`)
}

func TestMetrics(t *testing.T) {
	var observed atomic.Int32
	w := newWorld(t, newJournal(), Options{Observe: func(instance string, _ acs.Message) {
		if instance == instanceArn {
			observed.Add(1)
		}
	}})
	a := w.connect(kindTCS)
	publish := func(fin bool, tasks ...string) {
		m := &acs.PublishMetricsRequest{Metadata: acs.MetricsMetadata{Fin: fin}}
		for _, id := range tasks {
			m.TaskMetrics = append(m.TaskMetrics, acs.TaskMetric{TaskArn: taskArn(id)})
		}
		a.send(m)
		next[*acs.AckPublishMetric](a)
	}
	tasks := func() int { n, _ := w.link.Telemetry(instanceArn); return len(n.Tasks) }
	publish(false, "a", "b")
	if tasks() != 0 {
		t.Error("half a batch is shown")
	}
	publish(true, "c")
	if tasks() != 3 {
		t.Errorf("%d tasks of 3", tasks())
	}
	a.send(&acs.PintleGPUTelemetry{GPUs: []acs.GPULoad{{ID: "GPU-0", UtilizationPct: new(97.0), TaskArn: taskArn("a"), Container: "main"}}})
	publish(true, "d")
	n, _ := w.link.Telemetry(instanceArn)
	if len(n.GPUs) != 1 || *n.GPUs[0].UtilizationPct != 97 || len(n.Tasks) != 1 || n.At.IsZero() {
		t.Errorf("got %+v", n)
	}
	publish(false, make([]string, maxBatch)...)
	publish(true, make([]string, maxBatch)...)
	if tasks() != maxBatch {
		t.Errorf("%d tasks of at most %d", tasks(), maxBatch)
	}
	if observed.Load() != 6 {
		t.Errorf("observed %d messages of 6", observed.Load())
	}
	a.conn.Close(websocket.StatusNormalClosure, "") //nolint:errcheck // as agents do
	w.link.Close()
	if _, ok := w.link.Telemetry(instanceArn); ok {
		t.Error("a node that is gone has telemetry")
	}
}

func TestHealth(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	elsewhere := taskRow("elsewhere", "RUNNING", "RUNNING")
	elsewhere.ContainerInstanceArn = aws.String(instanceArn + "f")
	w.put(taskRow("a", "RUNNING", "RUNNING"), elsewhere)
	w.update(func(tx *state.Tx) {
		td := *definitionRow()
		td.ContainerDefinitions[0].HealthCheck = &types.HealthCheck{Command: []string{"CMD", "true"}}
		tx.TaskDefinitions.Put(&td)
	})
	a := w.connect(kindTCS)
	report := func(task, container, status string) *state.Task {
		a.send(&acs.PublishHealthRequest{Tasks: []acs.TaskHealth{{
			TaskArn:    taskArn(task),
			Containers: []acs.ContainerHealth{{ContainerName: container, HealthStatus: status}},
		}}})
		next[*acs.AckPublishHealth](a)
		return w.store.View().Tasks.Get(taskArn(task))
	}
	row := report("a", "main", "HEALTHY")
	if row.Containers[0].HealthStatus != "HEALTHY" || row.HealthStatus != "HEALTHY" {
		t.Errorf("the container is %s, the task %s", row.Containers[0].HealthStatus, row.HealthStatus)
	}
	revision := w.store.Revision()
	report("a", "main", "HEALTHY")
	report("a", "main", "SPLENDID")
	report("a", "other", "UNHEALTHY")
	report("unknown", "main", "HEALTHY")
	if row := report("elsewhere", "main", "HEALTHY"); row.HealthStatus != "" {
		t.Error("a node spoke for another's task")
	}
	if w.store.Revision() != revision {
		t.Error("no news was written")
	}
	if row := report("a", "main", "UNHEALTHY"); row.HealthStatus != "UNHEALTHY" {
		t.Errorf("the task is %s", row.HealthStatus)
	}
}

func TestTaskHealth(t *testing.T) {
	check := &types.HealthCheck{Command: []string{"CMD", "true"}}
	td := &state.TaskDefinition{TaskDefinition: types.TaskDefinition{ContainerDefinitions: []types.ContainerDefinition{
		{Name: aws.String("main"), HealthCheck: check}, // essential by default
		{Name: aws.String("second"), HealthCheck: check, Essential: aws.Bool(true)},
		{Name: aws.String("unchecked"), Essential: aws.Bool(true)},
		{Name: aws.String("sidecar"), HealthCheck: check, Essential: aws.Bool(false)},
	}}}
	for _, c := range []struct {
		name   string
		health map[string]types.HealthStatus
		want   types.HealthStatus
	}{
		{"nothing known", nil, "UNKNOWN"},
		{"all healthy", map[string]types.HealthStatus{"main": "HEALTHY", "second": "HEALTHY"}, "HEALTHY"},
		{"one not known", map[string]types.HealthStatus{"main": "HEALTHY"}, "UNKNOWN"},
		{"one unhealthy", map[string]types.HealthStatus{"main": "HEALTHY", "second": "UNHEALTHY"}, "UNHEALTHY"},
		{"one unhealthy, one unknown", map[string]types.HealthStatus{"main": "UNHEALTHY", "second": "UNKNOWN"}, "UNHEALTHY"},
		{"others do not count", map[string]types.HealthStatus{"main": "HEALTHY", "second": "HEALTHY", "sidecar": "UNHEALTHY",
			"unchecked": "UNKNOWN"}, "HEALTHY"},
	} {
		var containers []types.Container
		for _, name := range []string{"sidecar", "unchecked", "second", "main"} {
			containers = append(containers, types.Container{Name: aws.String(name), HealthStatus: c.health[name]})
		}
		if got := taskHealth(containers, td); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := taskHealth(nil, nil); got != "UNKNOWN" {
		t.Errorf("without a definition: %s", got)
	}
}

func TestInstanceStatus(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	a := w.connect(kindTCS)
	report := func(statuses ...acs.InstanceStatus) *types.ContainerInstanceHealthStatus {
		a.send(&acs.PublishInstanceStatusRequest{Statuses: statuses})
		next[*acs.AckPublishInstanceStatus](a)
		return w.store.View().ContainerInstances.Get(instanceArn).HealthStatus
	}
	ok := acs.InstanceStatus{Type: "ContainerRuntime", Status: "OK", LastUpdated: 1763700000.5, LastStatusChange: 1763690000}
	h := report(ok)
	at := time.UnixMilli(1763700000500).UTC()
	if h.OverallStatus != "OK" || len(h.Details) != 1 || h.Details[0].Type != "CONTAINER_RUNTIME" || !h.Details[0].LastUpdated.Equal(at) {
		t.Errorf("got %+v", h)
	}
	later := ok
	later.LastUpdated++
	if h := report(later); !h.Details[0].LastUpdated.Equal(at) {
		t.Error("no news was written")
	}
	bad := acs.InstanceStatus{Type: "ContainerRuntime", Status: "IMPAIRED"}
	if h := report(ok, bad, acs.InstanceStatus{
		Type:   "Daemon",
		Status: "INSUFFICIENT_DATA",
	}, acs.InstanceStatus{
		Type:   "Future",
		Status: "IMPAIRED",
	}); h.OverallStatus != "IMPAIRED" || len(h.Details) != 3 {
		t.Errorf("got %+v", h)
	}
	if h := report(); h.OverallStatus != "INSUFFICIENT_DATA" {
		t.Errorf("without a status: %s", h.OverallStatus)
	}
}

// sign makes signature headers as Amazon's agent does: over the host, the date and the body.
func sign(t *testing.T, address string, body []byte, secret string) http.Header {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, address, nil)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(body)
	key := aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: secret}
	if err := v4.NewSigner().SignHTTP(t.Context(), key, r, hex.EncodeToString(sum[:]), "ecs", "us-east-1", time.Now()); err != nil {
		t.Fatal(err)
	}
	return r.Header
}

// verify signs what Link says was signed, and compares.
func verify(ctx context.Context, method, path, rawQuery, host string, h http.Header, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, method, (&url.URL{Scheme: "http", Host: host, Path: path, RawQuery: rawQuery}).String(), nil)
	if err != nil {
		return err
	}
	at, err := time.Parse("20060102T150405Z", h.Get("X-Amz-Date"))
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	key := aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}
	if err := v4.NewSigner().SignHTTP(ctx, key, r, hex.EncodeToString(sum[:]), "ecs", "us-east-1", at); err != nil {
		return err
	}
	if r.Header.Get("Authorization") != h.Get("Authorization") {
		return errors.New("the signature is wrong")
	}
	return nil
}

// TestSignatures checks that upgrades and frames are verified over what the agent signed.
func TestSignatures(t *testing.T) {
	w := newWorld(t, newJournal(), Options{Verify: func(
		ctx context.Context, method, path, rawQuery, host string, h http.Header, body []byte,
	) (call.Identity, error) {
		return call.Identity{}, verify(ctx, method, path, rawQuery, host, h, body)
	}})
	for _, k := range []kind{kindACS, kindTCS} {
		address := w.url + "/" + strings.ToLower(string(k)) + "/ws?" + query(k).Encode()
		if _, resp, err := w.dial(k, query(k), sign(t, address, nil, "wrong")); err == nil || resp.StatusCode != http.StatusForbidden {
			t.Errorf("%s with a wrong signature: %v", k, err)
		}
		conn, _, err := w.dial(k, query(k), sign(t, address, nil, "secret"))
		if err != nil {
			t.Fatal(err)
		}
		defer conn.CloseNow() //nolint:errcheck // done with it
		if k == kindACS {
			continue
		}
		a := &agent{w, conn}
		body := []byte(`{"type":"PublishHealthRequest","message":{` + metadata + `}}`)
		headers := sign(t, address, body, "secret")
		headers.Set("Host", strings.TrimPrefix(w.url, "http://"))
		a.say(string(acs.EncodeSigned(headers, body)))
		next[*acs.AckPublishHealth](a)
		// Amazon's agent doesn't write header names in a fixed case.
		a.say("authorization: " + headers.Get("Authorization") + "\r\nx-amz-date: " + headers.Get("X-Amz-Date") + "\r\n\r\n" + string(body))
		next[*acs.AckPublishHealth](a)
		a.say(string(acs.EncodeSigned(headers, slices.Concat(body, []byte(" ")))))
		if code := a.ended(); code != websocket.StatusPolicyViolation {
			t.Errorf("a frame with a wrong signature ends the connection with %d", code)
		}
	}
}

// TestWhoMaySpeak checks that no task opens a node's web sockets, and no node another's.
func TestWhoMaySpeak(t *testing.T) {
	var who call.Identity
	w := newWorld(t, newJournal(), Options{Verify: func(
		context.Context, string, string, string, string, http.Header, []byte,
	) (call.Identity, error) {
		return who, nil
	}})
	for _, c := range []struct {
		name string
		call.Identity
		allowed bool
	}{
		{"the account's owner", call.Identity{}, true},
		{"the node itself", call.Identity{Node: true, Instance: instanceArn}, true},
		{"another node", call.Identity{Node: true, Instance: instanceArn + "f"}, false},
		{"a node that hasn't registered", call.Identity{Node: true}, false},
		{"a task of the node", call.Identity{Task: taskArn("a")}, false},
	} {
		for _, k := range []kind{kindACS, kindTCS} {
			who = c.Identity
			conn, resp, err := w.dial(k, query(k), nil)
			if c.allowed != (err == nil) || !c.allowed && resp.StatusCode != http.StatusForbidden {
				t.Errorf("%s opens %s: %v", c.name, k, err)
			}
			if err == nil {
				conn.CloseNow() //nolint:errcheck // done with it
			}
		}
	}
}

// TestBadFrame checks that a TCS frame that can't be parsed ends only its own connection.
func TestBadFrame(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	other, _ := w.connectACS()
	a := w.connect(kindTCS)
	a.say("Host: h")
	if code := a.ended(); code != websocket.StatusTryAgainLater {
		t.Errorf("the close frame has %d", code)
	}
	w.put(taskRow("a", "RUNNING", "PENDING"))
	next[*acs.PayloadMessage](other)
	if n, ok := w.link.Telemetry(instanceArn); ok {
		t.Errorf("a bad frame left %v", n)
	}
}
