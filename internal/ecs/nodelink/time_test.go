package nodelink

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/coder/websocket"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// Tests of what takes time, in synctest bubbles, where waiting costs nothing.

func TestHeartbeats(t *testing.T) {
	for _, k := range []kind{kindACS, kindTCS} {
		synctest.Test(t, func(t *testing.T) {
			w := newPipedWorld(t, Options{Heartbeat: time.Hour}) // more than agents put up with
			a := w.connect(k)
			if k == kindACS {
				next[*acs.TaskManifestMessage](a)
			}
			began := time.Now()
			for range 4 {
				m := next[*acs.HeartbeatMessage](a)
				if k == kindACS {
					a.send(&acs.HeartbeatAckRequest{MessageID: m.MessageID})
				}
			}
			if took := time.Since(began); took != 3*defaultHeartbeat {
				t.Errorf("%s: four heartbeats in %v", k, took)
			}
			a.conn.CloseNow() //nolint:errcheck // done with it
		})
	}
}

// TestDeadMachine checks that a node counts as disconnected within 30 s of the last sign of life, whether its machine still takes
// what we send or has vanished.
func TestDeadMachine(t *testing.T) {
	for _, takes := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			w := newPipedWorld(t, Options{})
			a, _ := w.connectACS()
			a.answerHeartbeats(10)
			began := time.Now()
			if takes {
				go a.ended()
			}
			w.untilConnected(false)
			if took := time.Since(began); took < 2*defaultHeartbeat || took > 30*time.Second {
				t.Errorf("takes what we send: %v: disconnected after %v", takes, took)
			}
			a.conn.CloseNow() //nolint:errcheck // it's over
		})
	}
}

// TestQuietNode checks that a node which says nothing but what Amazon's agent says without tasks stays connected: it answers heartbeats.
// On TCS, where nobody answers heartbeats, even an agent whose metrics are off does.
func TestQuietNode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPipedWorld(t, Options{})
		a, _ := w.connectACS()
		telemetry := w.connect(kindTCS)
		go telemetry.ended()
		a.answerHeartbeats(15) // two minutes
		w.untilConnected(true)
		if err := telemetry.conn.Write(t.Context(), websocket.MessageText, []byte("\r\n\r\n{}")); err != nil {
			t.Errorf("telemetry: %v", err)
		}
		a.conn.CloseNow()         //nolint:errcheck // done with it
		telemetry.conn.CloseNow() //nolint:errcheck // likewise
	})
}

// answerHeartbeats answers the next n heartbeats.
func (a *agent) answerHeartbeats(n int) {
	a.t.Helper()
	for range n {
		a.send(&acs.HeartbeatAckRequest{MessageID: next[*acs.HeartbeatMessage](a).MessageID})
	}
}

// TestResend checks that only unacknowledged tasks are sent again, after a while.
func TestResend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newPipedWorld(t, Options{})
		a, _ := w.connectACS()
		w.put(taskRow("a", "RUNNING", "PENDING"))
		a.ack(next[*acs.PayloadMessage](a))
		w.put(taskRow("b", "RUNNING", "PENDING"))
		began := time.Now()
		next[*acs.PayloadMessage](a)
		p := next[*acs.PayloadMessage](a)
		if got := arns(p); !slices.Equal(got, []string{"RUNNING b"}) {
			t.Errorf("sent again: %q", got)
		}
		if took := time.Since(began); took < defaultResend || took > defaultResend+defaultHeartbeat {
			t.Errorf("sent again after %v", took)
		}
		a.ack(p)
		// A new order about an acknowledged task is sent again.
		w.put(taskRow("b", "STOPPED", "PENDING"))
		if got := arns(next[*acs.PayloadMessage](a)); !slices.Equal(got, []string{"STOPPED b"}) {
			t.Errorf("told %q", got)
		}
		a.conn.CloseNow() //nolint:errcheck // done with it
	})
}

// TestCredentials follows a task's credentials from its payload to their renewal and a reconnect.
func TestCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		issued := 0
		w := newPipedWorld(t, Options{Credentials: func(_ *state.Task, role, roleType string) *acs.IAMRoleCredentials {
			issued++
			return &acs.IAMRoleCredentials{
				CredentialsID: roleType,
				RoleArn:       role,
				Expiration:    time.Now().Add(time.Hour).Format(time.RFC3339),
			}
		}})
		w.update(func(tx *state.Tx) {
			td := *definitionRow()
			td.TaskRoleArn = aws.String("task-role")
			td.ExecutionRoleArn = aws.String("execution-role")
			tx.TaskDefinitions.Put(&td)
		})
		a, _ := w.connectACS()
		w.put(taskRow("a", "RUNNING", "PENDING"))
		p := next[*acs.PayloadMessage](a)
		if task := p.Tasks[0]; task.RoleCredentials.RoleArn != "task-role" || task.ExecutionRoleCredentials.RoleArn != "execution-role" {
			t.Errorf("the payload has %+v, %+v", task.RoleCredentials, task.ExecutionRoleCredentials)
		}
		a.ack(p)
		w.put(taskRow("a", "RUNNING", "RUNNING"))
		began := time.Now()
		// renewals answers the heartbeats, or the node would count as gone.
		got := renewals(a, 2)
		if took := time.Since(began); took < 30*time.Minute || took > 31*time.Minute {
			t.Errorf("renewed after %v of an hour", took)
		}
		if got[0].RoleType != acs.TaskRole || got[1].RoleType != acs.ExecutionRole || got[0].TaskArn != taskArn("a") ||
			got[0].MessageID == got[1].MessageID {
			t.Errorf("got %+v, %+v", got[0], got[1])
		}
		a.conn.Close(websocket.StatusNormalClosure, "") //nolint:errcheck // as agents do
		w.untilConnected(false)

		a, _ = w.connectACS() // it may have lost what it had
		if got := renewals(a, 2); got[0].RoleCredentials.RoleArn != "task-role" {
			t.Errorf("after the reconnect: %+v", got[0])
		}
		if issued != 6 {
			t.Errorf("issued %d times", issued)
		}
		a.conn.CloseNow() //nolint:errcheck // done with it
	})
}

// renewals answers heartbeats until n credentials have come.
func renewals(a *agent, n int) []*acs.IAMRoleCredentialsMessage {
	var out []*acs.IAMRoleCredentialsMessage
	for len(out) < n {
		b, err := a.read()
		if err != nil {
			a.t.Fatal(err)
		}
		m, err := acs.Decode(b)
		if err != nil {
			a.t.Fatal(err)
		}
		switch m := m.(type) {
		case *acs.HeartbeatMessage:
			a.send(&acs.HeartbeatAckRequest{MessageID: m.MessageID})
		case *acs.IAMRoleCredentialsMessage:
			out = append(out, m)
			a.send(&acs.IAMRoleCredentialsAckRequest{MessageID: m.MessageID, CredentialsID: m.RoleCredentials.CredentialsID})
		}
	}
	return out
}
