package nodelink

import (
	"context"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/coder/websocket"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
	"github.com/pintle/pintle/internal/store/journaltest"
	"github.com/pintle/pintle/internal/wire/connection"
)

const (
	clusterArn  = "arn:aws:ecs:us-east-1:000000000000:cluster/poc"
	instanceArn = "arn:aws:ecs:us-east-1:000000000000:container-instance/poc/0123456789abcdef0123456789abcdef"
	patience    = time.Minute // for what should come at once, even on a busy machine
)

func newJournal() *journaltest.Memory { return journaltest.NewMemory(nil) }

// world is a control plane's end of the protocol, with one registered container instance.
type world struct {
	t     *testing.T
	store *state.Store
	link  *Link
	url   string
	http  *http.Client
	// patience is how long an agent waits for a frame. In a synctest bubble waiting costs nothing.
	patience time.Duration
}

// strangers is how many connections there may be of those who aren't nodes.
const strangers = 8

// newWorld serves a Link on loopback.
func newWorld(t *testing.T, j *journaltest.Memory, opts Options) *world {
	w := newWorldBehind(t, j, opts)
	server := httptest.NewUnstartedServer(w.link)
	limited := connection.Limit(server.Listener, connection.Limits{Strangers: strangers, Known: 1})
	server.Listener, server.Config.ConnContext, server.Config.ConnState = limited, limited.Context, limited.State
	server.Start()
	t.Cleanup(server.Close)
	w.url = server.URL
	return w
}

// newPipedWorld serves a Link over pipes, which synctest can wait for.
func newPipedWorld(t *testing.T, opts Options) *world {
	w := newWorldBehind(t, newJournal(), opts)
	pipes := make(listener)
	server := &http.Server{Handler: w.link}
	go server.Serve(pipes) //nolint:errcheck // it ends with the test
	dial := func(context.Context, string, string) (net.Conn, error) {
		here, there := net.Pipe()
		pipes <- there
		return here, nil
	}
	w.url = "http://pintle"
	w.patience = time.Hour
	w.http = &http.Client{Transport: &http.Transport{DialContext: dial}}
	t.Cleanup(func() { server.Close() })
	return w
}

func newWorldBehind(t *testing.T, j *journaltest.Memory, opts Options) *world {
	store := statetest.OpenOn(t, j)
	w := &world{t: t, store: store, http: http.DefaultClient, patience: patience}
	if store.View().ContainerInstances.Get(instanceArn) == nil {
		w.update(func(tx *state.Tx) {
			tx.ContainerInstances.Put(instanceRow())
			tx.TaskDefinitions.Put(definitionRow())
		})
	}
	opts.Log = slog.New(slog.DiscardHandler)
	opts.Admitted = connection.Release
	w.link = New(store, opts)
	if err := w.link.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return w
}

func (w *world) close() {
	w.link.Close()
	w.store.Close()
}

// listener accepts the ends of pipes.
type listener chan net.Conn

func (l listener) Accept() (net.Conn, error) {
	c, ok := <-l
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (l listener) Close() error   { close(l); return nil }
func (l listener) Addr() net.Addr { return &net.TCPAddr{} }

func instanceRow() *state.ContainerInstance {
	return &state.ContainerInstance{
		ContainerInstance: types.ContainerInstance{ContainerInstanceArn: aws.String(instanceArn), Status: aws.String("ACTIVE")},
		ClusterArn:        clusterArn,
		GPUs:              []state.GPU{{ID: "GPU-0"}, {ID: "GPU-1"}},
		Capacity:          state.Resources{CPU: 8192, MemoryMiB: 16384},
	}
}

func definitionRow() *state.TaskDefinition {
	return &state.TaskDefinition{TaskDefinition: types.TaskDefinition{
		TaskDefinitionArn: aws.String("arn:aws:ecs:us-east-1:000000000000:task-definition/hello:1"),
		Family:            aws.String("hello"),
		Revision:          1,
		ContainerDefinitions: []types.ContainerDefinition{{
			Name:      aws.String("main"),
			Image:     aws.String("busybox"),
			Essential: aws.Bool(true),
		}},
	}}
}

func taskArn(id string) string { return "arn:aws:ecs:us-east-1:000000000000:task/poc/" + id }

// taskRow makes a task of the instance.
func taskRow(id, desired, last string, gpus ...string) *state.Task {
	t := &state.Task{Task: types.Task{
		TaskArn:              aws.String(taskArn(id)),
		ClusterArn:           aws.String(clusterArn),
		ContainerInstanceArn: aws.String(instanceArn),
		TaskDefinitionArn:    definitionRow().TaskDefinitionArn,
		DesiredStatus:        &desired,
		LastStatus:           &last,
		Containers:           []types.Container{{Name: aws.String("main"), LastStatus: &last}},
	}}
	for _, id := range gpus {
		t.GPUs = append(t.GPUs, state.HeldGPU{Container: "main", ID: id, Milli: 1000})
	}
	return t
}

func (w *world) update(fn func(*state.Tx)) {
	w.t.Helper()
	if err := w.store.Update(w.t.Context(), func(tx *state.Tx) error { fn(tx); return nil }); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) put(tasks ...*state.Task) {
	w.t.Helper()
	w.update(func(tx *state.Tx) {
		for _, t := range tasks {
			tx.Tasks.Put(t)
		}
	})
}

// until waits until the store satisfies holds.
func (w *world) until(what string, holds func(*state.View) bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	for {
		v := w.store.Watch()
		if holds(v) {
			return
		}
		if err := v.Changed(ctx); err != nil {
			w.t.Fatalf("the store never holds: %s", what)
		}
	}
}

func (w *world) untilConnected(want bool) {
	w.t.Helper()
	w.until("agentConnected", func(v *state.View) bool {
		row := v.ContainerInstances.Get(instanceArn)
		return row.AgentConnected == want && (row.DisconnectedAt == nil) == want
	})
}

// agent is a node's end of one web socket.
type agent struct {
	*world
	conn *websocket.Conn
}

// query is what Amazon's agent sends. The agent knows its cluster by the name that it was configured with.
func query(k kind) url.Values {
	if k == kindTCS {
		return url.Values{"agentHash": {"a8b3e7d3"}, "agentVersion": {"1.105.1"}, "cluster": {"poc"},
			"containerInstance": {instanceArn}, "dockerVersion": {"DockerVersion: 20.10.24"}}
	}
	return url.Values{
		"agentHash": {"a8b3e7d3"}, "agentVersion": {"1.105.1"}, "clusterArn": {"poc"}, "containerInstanceArn": {instanceArn},
		"dockerVersion": {"DockerVersion: 20.10.24"}, "protocolVersion": {"2"}, "seqNum": {"1"}, "sendCredentials": {"true"},
	}
}

func (w *world) dial(k kind, q url.Values, h http.Header) (*websocket.Conn, *http.Response, error) {
	return websocket.Dial(w.t.Context(), w.url+"/"+strings.ToLower(string(k))+"/ws?"+q.Encode(), &websocket.DialOptions{
		HTTPClient: w.http,
		HTTPHeader: h,
	})
}

// connect opens a web socket as Amazon's agent does.
func (w *world) connect(k kind) *agent {
	w.t.Helper()
	conn, _, err := w.dial(k, query(k), nil)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.CloseNow() })
	conn.SetReadLimit(acs.MaxFrame)
	return &agent{w, conn}
}

// connectACS connects, and takes the manifest that comes first.
func (w *world) connectACS() (*agent, *acs.TaskManifestMessage) {
	w.t.Helper()
	a := w.connect(kindACS)
	return a, next[*acs.TaskManifestMessage](a)
}

// say sends a text frame.
func (a *agent) say(frame string) {
	a.t.Helper()
	if err := a.conn.Write(a.t.Context(), websocket.MessageText, []byte(frame)); err != nil {
		a.t.Fatal(err)
	}
}

// send sends a message.
func (a *agent) send(m acs.Message) {
	a.t.Helper()
	b, err := acs.Encode(m)
	if err != nil {
		a.t.Fatal(err)
	}
	a.say(string(b))
}

func (a *agent) ack(m *acs.PayloadMessage) {
	a.t.Helper()
	a.send(&acs.AckRequest{Cluster: "poc", ContainerInstance: instanceArn, MessageID: m.MessageID})
}

// read returns the next frame. The error is the close frame, if there was one.
func (a *agent) read() ([]byte, error) {
	ctx, cancel := context.WithTimeout(a.t.Context(), a.patience)
	defer cancel()
	_, b, err := a.conn.Read(ctx)
	return b, err
}

// next returns the next message, which must have type M. Unless M is a heartbeat, it answers heartbeats and skips them.
func next[M acs.Message](a *agent) M {
	a.t.Helper()
	for {
		b, err := a.read()
		if err != nil {
			a.t.Fatal(err)
		}
		m, err := acs.Decode(b)
		if err != nil {
			a.t.Fatal(err)
		}
		if want, ok := m.(M); ok {
			return want
		}
		beat, ok := m.(*acs.HeartbeatMessage)
		if !ok {
			a.t.Fatalf("unexpected %s", b)
		}
		if beat.MessageID != "" { // as on ACS
			a.send(&acs.HeartbeatAckRequest{MessageID: beat.MessageID})
		}
	}
}

// ended reads up to the close frame and returns its code.
func (a *agent) ended() websocket.StatusCode {
	a.t.Helper()
	for {
		if _, err := a.read(); err != nil {
			return websocket.CloseStatus(err)
		}
	}
}

// arns returns a payload's tasks with their desired status.
func arns(m *acs.PayloadMessage) []string {
	var out []string
	for _, t := range m.Tasks {
		out = append(out, t.DesiredStatus+" "+t.Arn[strings.LastIndex(t.Arn, "/")+1:])
	}
	slices.Sort(out)
	return out
}

// indented returns v as JSON in the form of the golden files.
func indented(t *testing.T, v any) string {
	t.Helper()
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b) + "\n"
}
