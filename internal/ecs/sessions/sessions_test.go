package sessions

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/coder/websocket"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/datachannel"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
	"github.com/pintle/pintle/internal/wire/connection"
)

// world is a control plane's sessions, and the node "node" with the task "task".
type world struct {
	t        *testing.T
	sessions *Sessions
	url      string
	task     *state.Task
	deaf     bool // the node doesn't connect
	node     chan *websocket.Conn
}

// strangers is how many connections there may be of those who haven't shown a token.
const strangers = 8

func newWorld(t *testing.T) *world {
	store := statetest.Open(t)
	w := &world{t: t, node: make(chan *websocket.Conn, 1), task: &state.Task{Task: types.Task{
		TaskArn: aws.String("arn:aws:ecs:r:1:task/c/task"), ClusterArn: aws.String("arn:aws:ecs:r:1:cluster/c"),
		ContainerInstanceArn: aws.String("node"), LastStatus: aws.String("RUNNING"), DesiredStatus: aws.String("RUNNING"),
		TaskDefinitionArn: aws.String("td"), EnableExecuteCommand: true,
	}}}
	err := store.Update(t.Context(), func(tx *state.Tx) error {
		tx.ContainerInstances.Put(&state.ContainerInstance{ContainerInstance: types.ContainerInstance{
			ContainerInstanceArn: aws.String("node"), Status: aws.String("ACTIVE"),
		}, ClusterArn: *w.task.ClusterArn})
		tx.Tasks.Put(w.task)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	w.sessions = New(store, Options{Nodes: w, Admitted: connection.Release, Log: slog.New(slog.DiscardHandler)})
	server := httptest.NewUnstartedServer(w.sessions)
	limited := connection.Limit(server.Listener, connection.Limits{Strangers: strangers, Known: 1})
	server.Listener, server.Config.ConnContext, server.Config.ConnState = limited, limited.Context, limited.State
	server.Start()
	t.Cleanup(server.Close)
	t.Cleanup(w.sessions.Close)
	w.url = server.URL
	return w
}

// Execute implements Nodes: the node connects.
func (w *world) Execute(_ context.Context, _ string, m *acs.PintleExecute) error {
	if w.deaf {
		return context.DeadlineExceeded
	}
	go func() {
		conn, err := w.connect(m.SessionID, "node", m.TaskArn)
		if err != nil {
			w.t.Error(err)
		}
		w.node <- conn
	}()
	return nil
}

// Admit implements Nodes.
func (w *world) Admit(_ http.ResponseWriter, r *http.Request) *state.ContainerInstance {
	connection.Release(r.Context())
	return &state.ContainerInstance{ContainerInstance: types.ContainerInstance{ContainerInstanceArn: aws.String(r.URL.Query().Get("as"))}}
}

// connect connects a node.
func (w *world) connect(session, node, task string) (*websocket.Conn, error) {
	conn, _, err := websocket.Dial(w.t.Context(), w.url+"/exec/ws?session="+session+"&as="+node+"&taskArn="+task, nil) //nolint:bodyclose // the library does
	if err == nil {
		w.t.Cleanup(func() { conn.CloseNow() })
	}
	return conn, err
}

// begin begins a session, whose node connects.
func (w *world) begin() (id, token string, node *websocket.Conn) {
	w.t.Helper()
	id, token, err := w.sessions.Begin(w.t.Context(), w.task, &acs.PintleExecute{})
	if err != nil {
		w.t.Fatal(err)
	}
	return id, token, <-w.node
}

// client connects a client.
func (w *world) client(id, token string) *websocket.Conn {
	w.t.Helper()
	conn, _, err := websocket.Dial(w.t.Context(), URL(w.url, id), nil) //nolint:bodyclose // the library does
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { conn.CloseNow() })
	b, _ := json.Marshal(datachannel.Opening{TokenValue: token})
	w.say(conn, websocket.MessageText, string(b))
	return conn
}

func (w *world) say(conn *websocket.Conn, kind websocket.MessageType, text string) {
	w.t.Helper()
	if err := conn.Write(w.t.Context(), kind, []byte(text)); err != nil {
		w.t.Error(err)
	}
}

// hears waits until an end hears a text.
func (w *world) hears(conn *websocket.Conn, want string) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	for {
		_, b, err := conn.Read(ctx)
		if err != nil {
			w.t.Fatalf("instead of %s came %v", want, err)
		}
		if string(b) == want {
			return
		}
	}
}

const attached, detached, terminated = `{"client":"attached"}`, `{"client":"detached"}`, `{"client":"terminated"}`

// TestSession passes messages on between the ends, tells the node of its client, and lets a client that comes again in by a new token alone.
func TestSession(t *testing.T) {
	w := newWorld(t)
	id, token, node := w.begin()
	client := w.client(id, token)
	w.hears(node, attached)
	w.say(client, websocket.MessageBinary, "typed")
	w.hears(node, "typed")
	w.say(node, websocket.MessageBinary, "shown")
	w.hears(client, "shown")
	client.CloseNow() //nolint:errcheck // the connection is lost
	w.hears(node, detached)

	second, err := w.sessions.Resume(id)
	if err != nil || second == token {
		t.Fatalf("resumed with %q, %v", second, err)
	}
	if _, _, err := w.client(id, token).Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusPolicyViolation {
		t.Errorf("the old token: %v", err)
	}
	client = w.client(id, second)
	w.hears(node, attached)
	w.say(client, websocket.MessageBinary, "again")
	w.hears(node, "again")

	node.Close(websocket.StatusNormalClosure, "") //nolint:errcheck // its last word
	if _, _, err := client.Read(t.Context()); err == nil {
		t.Error("the client isn't told that the session is over")
	}
	if _, err := w.sessions.Resume(id); err == nil {
		t.Error("a session that is over was resumed")
	}
}

// TestStrangers: nobody gets into a session without its token, nor as its node, and nothing but messages of the session passes.
func TestStrangers(t *testing.T) {
	w := newWorld(t)
	id, token, node := w.begin()
	for name, c := range map[string]struct{ id, opening string }{
		"no token":        {id, `{}`},
		"another token":   {id, `{"TokenValue": "x"}`},
		"another session": {"other", `{"TokenValue": "` + token + `"}`},
		"no JSON":         {id, `what?`},
		"too long":        {id, `{"TokenValue": "` + strings.Repeat("x", maxOpening) + `"}`},
	} {
		conn, _, err := websocket.Dial(t.Context(), URL(w.url, c.id), nil) //nolint:bodyclose // the library does
		if err != nil {
			t.Fatal(err)
		}
		w.say(conn, websocket.MessageText, c.opening)
		if _, b, err := conn.Read(t.Context()); err == nil {
			t.Errorf("%s: it was let in and heard %s", name, b)
		}
		conn.CloseNow() //nolint:errcheck // a test
	}
	for name, c := range map[string]struct{ session, node, task string }{
		"another node":        {id, "other", *w.task.TaskArn},
		"no such task":        {id, "node", "other"},
		"not the form of one": {"other", "node", *w.task.TaskArn},
	} {
		if _, err := w.connect(c.session, c.node, c.task); err == nil {
			t.Errorf("a node: %s was let in", name)
		}
	}
	client := w.client(id, token)
	w.hears(node, attached)
	w.say(client, websocket.MessageText, terminated) // what only the control plane says
	w.say(client, websocket.MessageBinary, "end")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, b, err := node.Read(ctx); string(b) != "end" {
		t.Errorf("the node heard %q, %v", b, err)
	}
}

// TestFlood: whoever opens web sockets without a token has no more of them than of other connections, and pushes out no session.
func TestFlood(t *testing.T) {
	w := newWorld(t)
	id, token, node := w.begin()
	client := w.client(id, token)
	w.hears(node, attached)
	var open atomic.Int32
	for range 3 * strangers {
		conn, _, err := websocket.Dial(t.Context(), URL(w.url, id), nil) //nolint:bodyclose // the library does
		if err != nil {
			t.Fatal(err)
		}
		defer conn.CloseNow() //nolint:errcheck // a test
		open.Add(1)
		go func() {
			conn.Read(t.Context()) //nolint:errcheck // it's lost at some time
			open.Add(-1)
		}()
	}
	for deadline := time.Now().Add(opening / 2); open.Load() > strangers; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatalf("%d strangers are connected", open.Load())
		}
	}
	w.say(client, websocket.MessageBinary, "typed")
	w.hears(node, "typed")
}

// TestTerminate: the node is told, also if it connects once more.
func TestTerminate(t *testing.T) {
	w := newWorld(t)
	id, _, node := w.begin()
	w.sessions.Terminate(id)
	w.hears(node, terminated)
	if _, err := w.sessions.Resume(id); err == nil {
		t.Error("it was resumed")
	}
	if _, err := w.connect(id, "node", *w.task.TaskArn); err == nil {
		t.Error("its node was let in again")
	}
	w.sessions.Terminate("no such session")
}

// TestRestart: a control plane that has forgotten a session takes it from its node, if the task still runs, and lets a client in that resumes.
func TestRestart(t *testing.T) {
	w := newWorld(t)
	id := "ecs-execute-command-before"
	node, err := w.connect(id, "node", *w.task.TaskArn)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := w.client(id, "").Read(t.Context()); err == nil {
		t.Error("an empty token was let in")
	}
	token, err := w.sessions.Resume(id)
	if err != nil {
		t.Fatal(err)
	}
	w.client(id, token)
	w.hears(node, attached)
}

// TestHostileNode: a node that says it has sessions without end leaves room for those of others.
func TestHostileNode(t *testing.T) {
	w := newWorld(t)
	for i := range mostOfNode {
		if _, err := w.connect(fmt.Sprintf("ecs-execute-command-%d", i), "node", *w.task.TaskArn); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.connect("ecs-execute-command-more", "node", *w.task.TaskArn); err == nil {
		t.Error("one more was taken")
	}
}

// TestAway: where the node doesn't connect, nothing is left of the session.
func TestAway(t *testing.T) {
	w := newWorld(t)
	w.deaf = true
	if _, _, err := w.sessions.Begin(t.Context(), w.task, &acs.PintleExecute{}); err == nil || len(w.sessions.all) > 0 {
		t.Errorf("%v; %d sessions are left", err, len(w.sessions.all))
	}
}

// TestNoWebSocket: a node that asks for a session without a web socket leaves nothing behind, and takes nothing from a session that it's awaited for.
func TestNoWebSocket(t *testing.T) {
	w := newWorld(t)
	awaited := &session{id: "ecs-execute-command-new", token: "t", instance: "node", arrived: make(chan struct{})}
	if err := w.sessions.add(awaited); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{awaited.id, "ecs-execute-command-before"} {
		r, err := http.Get(w.url + "/exec/ws?session=" + id + "&as=node&taskArn=" + *w.task.TaskArn)
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode != http.StatusUpgradeRequired {
			t.Errorf("%s: status %d", id, r.StatusCode)
		}
	}
	w.sessions.mu.Lock()
	defer w.sessions.mu.Unlock()
	if len(w.sessions.all) != 1 || w.sessions.all[awaited.id] == nil {
		t.Errorf("there are the sessions %v", w.sessions.all)
	}
}
