package nodelink

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/coder/websocket"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// fixed replaces what differs from run to run.
func fixed(b []byte) string {
	s := string(b)
	for _, r := range []struct{ pattern, with string }{
		{`"messageId":"[0-9a-z]+-[0-9]+"`, `"messageId":"ID"`},
		{`"(seqNum|timeline|generatedAt)":[1-9][0-9]*`, `"$1":1`},
	} {
		s = regexp.MustCompile(r.pattern).ReplaceAllString(s, r.with)
	}
	return s
}

func (a *agent) wantFrame(want string) {
	a.t.Helper()
	b, err := a.read()
	if got := fixed(b); err != nil || got != want {
		a.t.Fatalf("%v\n got %s\nwant %s", err, got, want)
	}
}

// TestHandshake is the transcript of a connection without tasks, frame by frame.
func TestHandshake(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	a := w.connect(kindACS)
	a.wantFrame(`{"type":"TaskManifestMessage","message":{"messageId":"ID","clusterArn":"` + clusterArn +
		`","containerInstanceArn":"` + instanceArn + `","generatedAt":1,"timeline":1,"tasks":[]}}`)
	a.wantFrame(`{"type":"HeartbeatMessage","message":{"messageId":"ID","healthy":true,"intervalMs":8000}}`)
	a.say(`{"type":"HeartbeatAckRequest","message":{"messageId":"ID"}}`)
	w.untilConnected(true)
	v := w.store.View().ContainerInstances.Get(instanceArn).VersionInfo
	if aws.ToString(v.AgentVersion) != "1.105.1" || aws.ToString(v.AgentHash) != "a8b3e7d3" ||
		aws.ToString(v.DockerVersion) != "DockerVersion: 20.10.24" {
		t.Errorf("the version is %v %v %v", v.AgentVersion, v.AgentHash, v.DockerVersion)
	}
	a.conn.Close(websocket.StatusNormalClosure, "ConnectionExpired: Reconnect to continue") //nolint:errcheck // as agents do
	w.untilConnected(false)
}

// TestTask is the transcript of a task with a GPU, from payload to stop.
func TestTask(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	a, _ := w.connectACS()
	a.wantFrame(`{"type":"HeartbeatMessage","message":{"messageId":"ID","healthy":true,"intervalMs":8000}}`)
	w.put(taskRow("one", "RUNNING", "PENDING", "GPU-1"))
	container := `"containers":[{"name":"main","image":"busybox","essential":true,"cpu":0,"memory":0,"environment":{},"overrides":"{}",` +
		`"dockerConfig":{"config":"{}",` +
		`"hostConfig":"{\"NetworkMode\":\"bridge\",\"LogConfig\":{\"Type\":\"json-file\"}}","version":"1.17"}}]`
	payload := func(desired string) string {
		return `{"type":"PayloadMessage","message":{"messageId":"ID","clusterArn":"` + clusterArn + `","containerInstanceArn":"` +
			instanceArn + `",` +
			`"generatedAt":1,"seqNum":1,"timeline":1,"tasks":[{"arn":"` + taskArn("one") +
			`","family":"hello","version":"1","desiredStatus":"` + desired + `",` +
			`"taskClusterArn":"` + clusterArn + `","networkMode":"bridge","overrides":"{}",` +
			`"associations":[{"containers":["main"],"content":{"encoding":"base64","value":""},"name":"GPU-1","type":"gpu"}],` +
			container + `}]}}`
	}
	a.wantFrame(payload("RUNNING"))
	w.put(taskRow("one", "STOPPED", "RUNNING", "GPU-1"))
	a.wantFrame(payload("STOPPED"))
}

// TestSentTasks checks which tasks a node is told of over one connection.
func TestSentTasks(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	w.put(taskRow("pending", "RUNNING", "PENDING"), taskRow("runs", "RUNNING", "RUNNING"), taskRow("stops", "STOPPED", "RUNNING"),
		taskRow("over", "STOPPED", "STOPPED"), taskRow("activating", "RUNNING", "ACTIVATING"),
		taskRow("deactivating", "RUNNING", "DEACTIVATING"))
	elsewhere, placed := taskRow("elsewhere", "RUNNING", "PENDING"), taskRow("unplaced", "RUNNING", "PROVISIONING")
	elsewhere.ContainerInstanceArn = aws.String(instanceArn + "f")
	placed.ContainerInstanceArn = nil
	w.put(elsewhere, placed)
	a, manifest := w.connectACS()
	if got := identifiers(manifest.Tasks); !slices.Equal(got, []string{"activating", "deactivating", "pending", "runs"}) {
		t.Errorf("the manifest has %q", got)
	}
	p := next[*acs.PayloadMessage](a)
	if got := arns(p); !slices.Equal(got, []string{"RUNNING activating", "RUNNING pending", "STOPPED stops"}) {
		t.Errorf("the payload has %q", got)
	}
	if p.SeqNum <= manifest.Timeline {
		t.Errorf("the payload's number %d is not above the manifest's %d", p.SeqNum, manifest.Timeline)
	}
	a.ack(p)
	// The node's reports don't change what it was told: the next payload is another task.
	w.put(taskRow("pending", "RUNNING", "RUNNING"), taskRow("activating", "RUNNING", "RUNNING"), taskRow("stops", "STOPPED", "STOPPED"))
	w.put(taskRow("next", "RUNNING", "PENDING"))
	if got := arns(next[*acs.PayloadMessage](a)); !slices.Equal(got, []string{"RUNNING next"}) {
		t.Errorf("the next payload has %q", got)
	}
}

// TestReconnect checks that a node that comes back is told again only of tasks it hasn't started.
func TestReconnect(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	w.put(taskRow("a", "RUNNING", "PENDING"), taskRow("b", "RUNNING", "PENDING"))
	first, manifest := w.connectACS()
	p := next[*acs.PayloadMessage](first)
	first.conn.CloseNow() //nolint:errcheck // cut off before it could acknowledge
	w.untilConnected(false)
	w.put(taskRow("b", "RUNNING", "RUNNING")) // but b did arrive, and runs
	second, newer := w.connectACS()
	if newer.Timeline <= p.SeqNum || newer.Timeline <= manifest.Timeline {
		t.Errorf("manifest %d is not newer than %d and %d", newer.Timeline, manifest.Timeline, p.SeqNum)
	}
	again := next[*acs.PayloadMessage](second)
	if got := arns(again); !slices.Equal(got, []string{"RUNNING a"}) {
		t.Errorf("told again of %q", got)
	}
	if again.MessageID == p.MessageID {
		t.Errorf("message id %s comes twice", p.MessageID)
	}
}

// TestLostStore checks that sequence numbers keep growing when the control plane comes back with an older store than
// the node saw. Otherwise the node would drop its manifest, and keep running tasks that nobody knows of.
func TestLostStore(t *testing.T) {
	j := newJournal()
	w := newWorld(t, j, Options{})
	w.put(taskRow("a", "RUNNING", "PENDING"))
	a, _ := w.connectACS()
	p := next[*acs.PayloadMessage](a)
	go w.link.Close()
	a.ended()
	w.close()

	w = newWorld(t, newJournal(), Options{})
	_, manifest := w.connectACS()
	if manifest.Timeline <= p.SeqNum {
		t.Errorf("timeline %d of the new store is not above %d", manifest.Timeline, p.SeqNum)
	}
}

// TestRestart checks that sequence numbers keep growing over a restart of the control plane. Otherwise the node would
// drop its manifest.
func TestRestart(t *testing.T) {
	j := newJournal()
	w := newWorld(t, j, Options{})
	w.put(taskRow("a", "RUNNING", "PENDING"))
	a, _ := w.connectACS()
	p := next[*acs.PayloadMessage](a)
	go w.link.Close()
	if code := a.ended(); code != websocket.StatusGoingAway {
		t.Errorf("the close frame has %d", code)
	}
	w.close()

	w = newWorld(t, j, Options{})
	w.untilConnected(false)
	a, manifest := w.connectACS()
	if manifest.Timeline <= p.SeqNum {
		t.Errorf("timeline %d after the restart is not above %d", manifest.Timeline, p.SeqNum)
	}
	if got := arns(next[*acs.PayloadMessage](a)); !slices.Equal(got, []string{"RUNNING a"}) {
		t.Errorf("told after the restart of %q", got)
	}
}

// TestReset checks what a control plane that crashed assumes about its nodes when it starts.
func TestReset(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	long, never := time.Now().Add(-time.Hour), instanceRow()
	never.ContainerInstanceArn = aws.String("never")
	gone := instanceRow()
	gone.ContainerInstanceArn = aws.String("gone")
	gone.Status = aws.String("INACTIVE")
	gone.DisconnectedAt = &long
	away := instanceRow()
	away.DisconnectedAt = &long
	w.update(func(tx *state.Tx) {
		for _, row := range []*state.ContainerInstance{never, gone, away} {
			tx.ContainerInstances.Put(row)
		}
	})
	if err := w.link.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	v := w.store.View()
	if at := v.ContainerInstances.Get(instanceArn).DisconnectedAt; at == nil || time.Since(*at) > time.Minute {
		t.Errorf("the node counts as away since %v, before the control plane started", at)
	}
	if v.ContainerInstances.Get("never").DisconnectedAt != nil || !v.ContainerInstances.Get("gone").DisconnectedAt.Equal(long) {
		t.Error("nodes that never connected, or are deregistered, were touched")
	}
}

// identifiers returns the tasks' ids.
func identifiers(tasks []acs.TaskIdentifier) []string {
	var out []string
	for _, t := range tasks {
		out = append(out, t.TaskArn[strings.LastIndex(t.TaskArn, "/")+1:])
	}
	slices.Sort(out)
	return out
}

// TestStopVerification is the transcript of a node that runs more than it should.
func TestStopVerification(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	elsewhere := taskRow("elsewhere", "RUNNING", "RUNNING")
	elsewhere.ContainerInstanceArn = aws.String(instanceArn + "f")
	w.put(taskRow("runs", "RUNNING", "RUNNING"), taskRow("begins", "RUNNING", "PENDING"), taskRow("stops", "STOPPED", "RUNNING"),
		taskRow("over", "STOPPED", "STOPPED"), elsewhere)
	a, manifest := w.connectACS()
	if got := identifiers(manifest.Tasks); !slices.Equal(got, []string{"begins", "runs"}) {
		t.Errorf("the manifest has %q", got)
	}
	for _, m := range manifest.Tasks {
		if runs := m.LastStatus == "RUNNING"; runs != (m.TaskArn == taskArn("runs")) {
			t.Errorf("of a task it says %+v", m)
		}
	}
	a.ack(next[*acs.PayloadMessage](a)) // "stops" is told to stop in any case
	m := &acs.TaskStopVerificationMessage{MessageID: manifest.MessageID}
	for _, id := range []string{"runs", "stops", "over", "elsewhere", "unknown"} {
		m.StopCandidates = append(m.StopCandidates, acs.TaskIdentifier{
			TaskArn:        taskArn(id),
			DesiredStatus:  "RUNNING",
			TaskClusterArn: clusterArn,
		})
	}
	a.say(`{"type":"AckRequest","message":{"cluster":"` + clusterArn + `","containerInstance":"` + instanceArn +
		`","messageId":"` + manifest.MessageID + `"}}`)
	a.send(m)
	ack := next[*acs.TaskStopVerificationAck](a)
	if got := identifiers(ack.StopTasks); !slices.Equal(got, []string{"elsewhere", "over", "stops", "unknown"}) {
		t.Errorf("told to stop %q", got)
	}
	if ack.MessageID != manifest.MessageID || ack.GeneratedAt == 0 || ack.StopTasks[0].DesiredStatus != "STOPPED" {
		t.Errorf("got %+v", ack)
	}
}

// TestManyTasks checks that payloads stay small, and that each task is sent once.
func TestManyTasks(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	var rows []*state.Task
	for i := range 2*maxTasks + 1 {
		rows = append(rows, taskRow(string(rune('A'+i)), "RUNNING", "PENDING"))
	}
	w.put(rows...)
	a, _ := w.connectACS()
	seen := map[string]bool{}
	for len(seen) < len(rows) {
		p := next[*acs.PayloadMessage](a)
		if len(p.Tasks) > maxTasks {
			t.Errorf("a payload has %d tasks", len(p.Tasks))
		}
		for _, task := range p.Tasks {
			if seen[task.Arn] {
				t.Errorf("%s is told twice", task.Arn)
			}
			seen[task.Arn] = true
		}
		a.ack(p)
	}
}

// TestIgnored checks that messages the control plane doesn't understand do no harm.
func TestIgnored(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	a, _ := w.connectACS()
	a.say(`{"type":"FutureMessage","message":{"x":1}}`)
	a.say(`not even JSON`)
	a.say(`{"type":"PayloadMessage","message":{}}`) // known, but meant for the other end
	a.say(`{"type":"AckRequest","message":{"messageId":"unheard-of"}}`)
	a.say(`{"type":"IAMRoleCredentialsAckRequest","message":{"messageId":"m","credentialsId":"c","expiration":"e"}}`)
	a.say(`{"type":"NackRequest","message":{"cluster":"poc","containerInstance":"i","messageId":"m","reason":"Updates are disabled"}}`)
	a.say(`{"type":"TaskStopVerificationMessage","message":{"messageId":"m","stopCandidates":[]}}`)
	if ack := next[*acs.TaskStopVerificationAck](a); ack.MessageID != "m" || len(ack.StopTasks) != 0 {
		t.Errorf("got %+v", ack)
	}
}

func TestRefused(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	w.update(func(tx *state.Tx) {
		row := instanceRow()
		row.ContainerInstanceArn = aws.String("deregistered")
		row.Status = aws.String("INACTIVE")
		tx.ContainerInstances.Put(row)
	})
	for _, c := range []struct {
		name   string
		param  string
		value  string
		origin string
		status int
		body   string
	}{
		{"deregistered", "containerInstanceArn", "deregistered", "", 400,
			`{"type":"InactiveInstanceException","message":{"message":"The container instance deregistered was deregistered."}}`},
		{"unknown", "containerInstanceArn", "unknown", "", 400,
			`{"type":"InvalidInstanceException","message":{"message":"There is no container instance unknown."}}`},
		{"other cluster", "clusterArn", "oc", "", 400,
			`{"type":"InvalidClusterException","message":{"message":"The container instance ` + instanceArn +
				` is not in the cluster oc."}}`},
		{"cluster by ARN", "clusterArn", clusterArn, "", 101, ""},
		{"no cluster", "clusterArn", "", "", 101, ""},
		{"a web page", "clusterArn", "poc", "https://example.com", 403, ""},
	} {
		q, h := query(kindACS), http.Header{}
		q.Set(c.param, c.value)
		if c.origin != "" {
			h.Set("Origin", c.origin)
		}
		conn, resp, err := w.dial(kindACS, q, h)
		if resp.StatusCode != c.status {
			t.Errorf("%s: %d, %v", c.name, resp.StatusCode, err)
		}
		if err == nil {
			conn.CloseNow() //nolint:errcheck // done with it
			continue
		}
		if b, _ := io.ReadAll(resp.Body); c.body != "" && string(b) != c.body+"\n" {
			t.Errorf("%s: %s", c.name, b)
		}
	}
}

// TestCopiedNode checks that the second of two agents which claim to be one node is refused, with the reason, and that the first stays.
// The same agent may connect anew, and so may agents that don't tell which process they are, as Amazon's.
func TestCopiedNode(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	connect := func(k kind, process string) (*websocket.Conn, string) {
		q := query(k)
		if process != "" {
			q.Set("pintleProcess", process)
		}
		conn, resp, err := w.dial(k, q, nil)
		if err == nil {
			t.Cleanup(func() { conn.CloseNow() })
			return conn, ""
		}
		b, _ := io.ReadAll(resp.Body)
		return nil, string(b)
	}
	connect(kindACS, "a")
	w.untilConnected(true)
	for _, k := range []kind{kindACS, kindTCS} {
		if _, refusal := connect(k, "b"); !strings.Contains(refusal, `"InstanceInUseException"`) || !strings.Contains(refusal, "copied") {
			t.Errorf("%s of a second agent: %s", k, refusal)
		}
		if _, refusal := connect(k, "a"); refusal != "" {
			t.Errorf("%s of the same agent: %s", k, refusal)
		}
	}
	for _, k := range []kind{kindTCS, kindACS} { // after ACS nobody knows any more which process it is
		if _, refusal := connect(k, ""); refusal != "" {
			t.Errorf("%s of an agent that doesn't tell: %s", k, refusal)
		}
	}
}

// TestReplaced checks that a node's newer connection replaces the older one, and that the end of the older one doesn't
// make the node look disconnected.
func TestReplaced(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	old, _ := w.connectACS()
	newer, _ := w.connectACS()
	if code := old.ended(); code != websocket.StatusPolicyViolation {
		t.Errorf("the close frame has %d", code)
	}
	w.untilConnected(true)
	w.put(taskRow("a", "RUNNING", "PENDING"))
	next[*acs.PayloadMessage](newer)
	w.untilConnected(true)
	newer.conn.CloseNow() //nolint:errcheck // cut off
	w.untilConnected(false)
}

// TestStrangers: however many others connect, a node keeps its web socket.
func TestStrangers(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	node, _ := w.connectACS()
	for range 3 * strangers {
		c, err := net.Dial("tcp", strings.TrimPrefix(w.url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
	}
	if r, err := http.Get(w.url); err != nil {
		t.Error(err)
	} else {
		r.Body.Close()
	}
	w.put(taskRow("a", "RUNNING", "PENDING"))
	next[*acs.PayloadMessage](node)
}

func TestDeregistered(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	a, _ := w.connectACS()
	w.untilConnected(true)
	w.update(func(tx *state.Tx) {
		row := *tx.ContainerInstances.Get(instanceArn)
		row.Status = aws.String("INACTIVE")
		row.AgentConnected = false
		tx.ContainerInstances.Put(&row)
	})
	if code := a.ended(); code != websocket.StatusNormalClosure {
		t.Errorf("the close frame has %d", code)
	}
	if _, resp, err := w.dial(kindACS, query(kindACS), nil); err == nil || resp.StatusCode != http.StatusBadRequest {
		t.Errorf("let in again: %v", err)
	}
}

// TestClose checks that a closed link accepts nobody.
func TestClose(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	a, telemetry := w.connect(kindACS), w.connect(kindTCS)
	w.untilConnected(true)
	closed := make(chan struct{})
	go func() { w.link.Close(); close(closed) }()
	if code := a.ended(); code != websocket.StatusGoingAway {
		t.Errorf("ACS: the close frame has %d", code)
	}
	if code := telemetry.ended(); code != websocket.StatusGoingAway {
		t.Errorf("TCS: the close frame has %d", code)
	}
	<-closed
	w.untilConnected(false)
	if code := w.connect(kindACS).ended(); code != websocket.StatusGoingAway {
		t.Errorf("after Close: %d", code)
	}
}

// TestPintle checks the messages of Pintle's own agent.
func TestPintle(t *testing.T) {
	w := newWorld(t, newJournal(), Options{Account: account.Account{Region: "us-east-1"}})
	row := taskRow("a", "RUNNING", "RUNNING")
	row.Attachments = []types.Attachment{{
		Id:     aws.String("01234567-89ab-cdef-0123-456789abcdef"),
		Type:   aws.String("ElasticNetworkInterface"),
		Status: aws.String("ATTACHING"),
	}}
	w.put(row)
	a, _ := w.connectACS()
	a.send(&acs.PintleNodeInventory{Version: "1", Runtime: "oci", GPUs: []acs.GPUDevice{
		{
			ID:        "GPU-1",
			Model:     "V100",
			MemoryMiB: 16384,
			NUMA:      1,
			Links:     []int{2, 0},
			Simulated: true,
		}, {ID: "unregistered"},
	}})
	a.send(&acs.PintleTaskNetwork{TaskArn: taskArn("a"), PrivateIPv4: "10.0.0.7", MacAddress: "02:00:00:00:00:07"})
	w.until("the task's address", func(v *state.View) bool {
		return len(v.Tasks.Get(taskArn("a")).Containers[0].NetworkInterfaces) == 1
	})
	v := w.store.View()
	gpus, _ := json.Marshal(v.ContainerInstances.Get(instanceArn).GPUs)
	if want := `[{"ID":"GPU-0"},{"ID":"GPU-1","Model":"V100","Simulated":true,"NUMA":1,"Links":[2,0]}]`; string(gpus) != want {
		t.Errorf("the GPUs are %s", gpus)
	}
	eni := v.Tasks.Get(taskArn("a")).Attachments[0]
	details := map[string]string{}
	for _, d := range eni.Details {
		details[*d.Name] = *d.Value
	}
	want := map[string]string{
		"networkInterfaceId": "eni-0123456789abcdef0", "macAddress": "02:00:00:00:00:07",
		"privateDnsName": "ip-10-0-0-7.ec2.internal", "privateIPv4Address": "10.0.0.7",
	}
	if *eni.Status != "ATTACHED" || !maps.Equal(details, want) {
		t.Errorf("the interface is %s, %v", *eni.Status, details)
	}
}

// TestBrokenGPU checks that a GPU's reported fault stops the tasks that hold it, and survives a restart until the node
// reports otherwise.
func TestBrokenGPU(t *testing.T) {
	j := newJournal()
	w := newWorld(t, j, Options{})
	w.put(taskRow("well", "RUNNING", "RUNNING", "GPU-0"), taskRow("ill", "RUNNING", "RUNNING", "GPU-1"))
	a, _ := w.connectACS()
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	say := func(f *acs.GPUFault) {
		a.send(&acs.PintleNodeInventory{GPUs: []acs.GPUDevice{{ID: "GPU-0"}, {ID: "GPU-1", Fault: f}}})
	}
	fault := func(v *state.View) *state.GPUFault { return v.ContainerInstances.Get(instanceArn).GPUs[1].Fault }
	say(&acs.GPUFault{Reason: "Xid 79, it has fallen off the bus", Since: since})
	w.until("the fault", func(v *state.View) bool { return fault(v) != nil })
	v := w.store.View()
	if got := *fault(v); got != (state.GPUFault{Reason: "Xid 79, it has fallen off the bus", Since: since}) {
		t.Errorf("the fault is %+v", got)
	}
	ill := v.Tasks.Get(taskArn("ill"))
	if *ill.DesiredStatus != "STOPPED" || ill.StopCode != types.TaskStopCodeTerminationNotice ||
		*ill.StoppedReason != "GPU GPU-1 is unhealthy: Xid 79, it has fallen off the bus." {
		t.Errorf("its task is wanted %s: %s %s", *ill.DesiredStatus, ill.StopCode, aws.ToString(ill.StoppedReason))
	}
	if m := next[*acs.PayloadMessage](a); len(m.Tasks) != 1 || m.Tasks[0].Arn != taskArn("ill") || m.Tasks[0].DesiredStatus != "STOPPED" {
		t.Errorf("the node is told %+v", m.Tasks)
	}
	if row := v.Tasks.Get(taskArn("well")); *row.DesiredStatus != "RUNNING" {
		t.Errorf("the other task is stopped: %s", *row.StoppedReason)
	}
	if err := w.link.Fault(t.Context(), instanceArn, "GPU-0", 31); err != nil {
		t.Fatal(err)
	}
	if m := next[*acs.PintleGPUFault](a); m.GPU != "GPU-0" || m.XID != 31 {
		t.Errorf("the node is told %+v", m)
	}
	a.conn.CloseNow() //nolint:errcheck // it is gone
	w.close()

	w = newWorld(t, j, Options{})
	if fault(w.store.View()) == nil {
		t.Error("it is forgotten")
	}
	if err := w.link.Fault(t.Context(), instanceArn, "GPU-0", 31); !errors.Is(err, ErrAway) {
		t.Errorf("without a node: %v", err)
	}
	a, _ = w.connectACS()
	say(nil)
	w.until("the GPU's recovery", func(v *state.View) bool { return fault(v) == nil })
}

// TestMethod checks that only an upgrade is answered as one.
func TestMethod(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	for path, want := range map[string]int{"/acs/ws": 400, "/acs/ws?" + query(kindACS).Encode(): 426, "/acs": 404, "/tcs/ws": 400} {
		resp, err := http.Get(w.url + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}
