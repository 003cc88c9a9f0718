package agent

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/coder/websocket"
	"golang.org/x/sync/errgroup"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/agent/engine"
)

// silence is how long the control plane may say nothing: it sends a heartbeat every 30 s at most.
const silence = 90 * time.Second

// reconnect runs connect again and again, slower while it fails, as Amazon's agent does: from a
// quarter of a second to a minute.
func (a *Agent) reconnect(ctx context.Context, what string, connect func(context.Context) error) error {
	wait := 250 * time.Millisecond
	for {
		began := time.Now()
		err := connect(ctx)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Since(began) > time.Minute {
			wait = 250 * time.Millisecond
		}
		a.log.Info("connection ended; connecting again", "to", what, "reason", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait + rand.N(wait/4)):
		}
		wait = min(wait*3/2, time.Minute)
	}
}

// dial opens a web socket of the control plane, signed where the node has credentials.
func (a *Agent) dial(ctx context.Context, base string, query url.Values) (*websocket.Conn, string, error) {
	address := strings.TrimSuffix(base, "/") + "/ws?" + query.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, "", err
	}
	if err := a.sign(ctx, r, nil); err != nil {
		return nil, "", err
	}
	conn, _, err := websocket.Dial(ctx, address, &websocket.DialOptions{HTTPHeader: r.Header})
	if err != nil {
		return nil, "", err
	}
	conn.SetReadLimit(acs.MaxFrame)
	return conn, address, nil
}

func (a *Agent) sign(ctx context.Context, r *http.Request, body []byte) error {
	if a.config.Credentials == nil {
		return nil
	}
	c, err := a.config.Credentials.Retrieve(ctx)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(body)
	return v4.NewSigner().SignHTTP(ctx, c, r, hex.EncodeToString(sum[:]), "ecs", a.config.Region, time.Now())
}

func (a *Agent) endpoints(ctx context.Context) (*ecs.DiscoverPollEndpointOutput, error) {
	return a.config.ECS.DiscoverPollEndpoint(ctx, &ecs.DiscoverPollEndpointInput{Cluster: &a.config.Cluster, ContainerInstance: &a.instance})
}

// connectACS keeps the connection over which tasks come.
func (a *Agent) connectACS(ctx context.Context) error {
	return a.reconnect(ctx, "ACS", func(ctx context.Context) error {
		e, err := a.endpoints(ctx)
		if err != nil {
			return err
		}
		conn, _, err := a.dial(ctx, aws.ToString(e.Endpoint), url.Values{
			"agentHash": {"pintle"}, "agentVersion": {a.config.Version}, "clusterArn": {a.config.Cluster}, "containerInstanceArn": {a.instance},
			"dockerVersion": {a.config.Runtime.Name()}, "protocolVersion": {"2"}, "seqNum": {"1"}, "sendCredentials": {"true"},
		})
		if err != nil {
			return err
		}
		defer conn.CloseNow()
		return (&acsSession{agent: a, conn: conn}).run(ctx)
	})
}

// acsSession is one ACS connection.
type acsSession struct {
	agent *Agent
	conn  *websocket.Conn
	// highest is the greatest number seen: manifests up to it are old news.
	highest int64
}

func (s *acsSession) run(ctx context.Context) error {
	a := s.agent
	inventory := &acs.PintleNodeInventory{Version: a.config.Version, Runtime: a.config.Runtime.Name(), InstanceType: a.config.InstanceType, GPUs: a.config.GPUs.Devices()}
	if err := s.send(ctx, inventory); err != nil {
		return err
	}
	for {
		b, err := readFrame(ctx, s.conn)
		if err != nil {
			return err
		}
		m, err := acs.Decode(b)
		if err != nil {
			a.log.Warn("ignored a message", "error", err)
			continue
		}
		if err := s.heard(ctx, m); err != nil {
			return err
		}
	}
}

func readFrame(ctx context.Context, conn *websocket.Conn) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, silence)
	defer cancel()
	_, b, err := conn.Read(ctx)
	return b, err
}

func (s *acsSession) send(ctx context.Context, m acs.Message) error {
	b, err := acs.Encode(m)
	if err != nil {
		return err
	}
	return s.conn.Write(ctx, websocket.MessageText, b)
}

func (s *acsSession) heard(ctx context.Context, m acs.Message) error {
	switch m := m.(type) {
	case *acs.HeartbeatMessage:
		return s.send(ctx, &acs.HeartbeatAckRequest{MessageID: m.MessageID})
	case *acs.PayloadMessage:
		return s.payload(ctx, m)
	case *acs.TaskManifestMessage:
		return s.manifest(ctx, m)
	case *acs.TaskStopVerificationAck:
		for _, t := range m.StopTasks {
			if err := s.agent.engine.Stop(t.TaskArn); err != nil {
				return err
			}
		}
	}
	return nil
}

// payload takes the tasks and acknowledges them once all are on disk. One that makes no sense is
// reported as stopped, and keeps the others from being acknowledged, as with Amazon's agent.
func (s *acsSession) payload(ctx context.Context, m *acs.PayloadMessage) error {
	if m.MessageID == "" || m.ClusterArn == "" || m.ContainerInstanceArn != s.agent.instance {
		s.agent.log.Warn("ignored a payload that is not for this node", "message_id", m.MessageID)
		return nil
	}
	s.highest = max(s.highest, m.SeqNum)
	for _, t := range m.Tasks {
		if err := s.agent.engine.Take(t); err != nil {
			s.agent.log.Error("cannot take a task", "task", t.Arn, "error", err)
			return (&reporter{s.agent.config.ECS}).Report(ctx, engine.Report{TaskArn: t.Arn, Cluster: m.ClusterArn, Status: "STOPPED", Reason: err.Error()})
		}
	}
	return s.send(ctx, s.ack(m.MessageID))
}

func (s *acsSession) ack(message string) *acs.AckRequest {
	return &acs.AckRequest{Cluster: s.agent.config.Cluster, ContainerInstance: s.agent.instance, MessageID: message}
}

// manifest asks about the tasks that run here and are not in it.
func (s *acsSession) manifest(ctx context.Context, m *acs.TaskManifestMessage) error {
	if m.Timeline <= s.highest {
		return nil
	}
	s.highest = m.Timeline
	wanted := map[string]bool{}
	for _, t := range m.Tasks {
		wanted[t.TaskArn] = t.DesiredStatus == "RUNNING"
	}
	var candidates []acs.TaskIdentifier
	for _, arn := range s.agent.engine.Running() {
		if !wanted[arn] {
			candidates = append(candidates, acs.TaskIdentifier{TaskArn: arn, DesiredStatus: "STOPPED", TaskClusterArn: m.ClusterArn})
		}
	}
	if err := s.send(ctx, s.ack(m.MessageID)); err != nil || len(candidates) == 0 {
		return err
	}
	return s.send(ctx, &acs.TaskStopVerificationMessage{MessageID: m.MessageID, StopCandidates: candidates})
}

// healthEvery is how often the node tells its containers' health.
const healthEvery = 5 * time.Second

// connectTCS keeps the connection over which the node tells how it is.
func (a *Agent) connectTCS(ctx context.Context) error {
	return a.reconnect(ctx, "TCS", func(ctx context.Context) error {
		e, err := a.endpoints(ctx)
		if err != nil {
			return err
		}
		conn, address, err := a.dial(ctx, aws.ToString(e.TelemetryEndpoint), url.Values{
			"agentHash": {"pintle"}, "agentVersion": {a.config.Version}, "cluster": {a.config.Cluster}, "containerInstance": {a.instance},
			"dockerVersion": {a.config.Runtime.Name()},
		})
		if err != nil {
			return err
		}
		defer conn.CloseNow()
		g, ctx := errgroup.WithContext(ctx)
		g.Go(func() error { return drainFrames(ctx, conn) })
		g.Go(func() error { return a.publish(ctx, conn, address) })
		return g.Wait()
	})
}

// drainFrames reads acknowledgements, which say nothing but that the control plane is there.
func drainFrames(ctx context.Context, conn *websocket.Conn) error {
	for {
		if _, err := readFrame(ctx, conn); err != nil {
			return err
		}
	}
}

// publish tells the GPUs' load every second, and health and metrics now and then.
func (a *Agent) publish(ctx context.Context, conn *websocket.Conn, address string) error {
	telemetry, health := time.NewTicker(telemetryEvery), time.NewTicker(healthEvery)
	defer telemetry.Stop()
	defer health.Stop()
	send := func(m acs.Message) error { return a.sendSigned(ctx, conn, address, m) }
	if err := send(a.metrics()); err != nil {
		return err
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-telemetry.C:
			busy := a.load.sample(ctx, a.engine.Pinned())
			err = send(&acs.PintleGPUTelemetry{GPUs: a.config.GPUs.Load(ctx, func(id string) float64 { return busy[id] })})
		case <-health.C:
			if tasks := a.engine.Health(); len(tasks) > 0 {
				err = send(&acs.PublishHealthRequest{Metadata: a.metadata(), Tasks: tasks, Timestamp: now()})
			} else {
				err = send(a.metrics())
			}
		}
		if err != nil {
			return err
		}
	}
}

// metrics is an idle node's message: tasks' use comes with CloudWatch.
func (a *Agent) metrics() *acs.PublishMetricsRequest {
	m := &acs.PublishMetricsRequest{Metadata: a.metadata(), Timestamp: now()}
	m.Metadata.Idle = true
	return m
}

func (a *Agent) metadata() acs.MetricsMetadata {
	return acs.MetricsMetadata{Cluster: a.config.Cluster, ContainerInstance: a.instance, Fin: true, MessageID: fmt.Sprint(time.Now().UnixNano())}
}

func now() float64 { return float64(time.Now().UnixMilli()) / 1000 }

// sendSigned sends a frame with a signature of its own, as TCS wants it.
func (a *Agent) sendSigned(ctx context.Context, conn *websocket.Conn, address string, m acs.Message) error {
	b, err := acs.Encode(m)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	if err := a.sign(ctx, r, b); err != nil {
		return err
	}
	r.Header.Set("Host", r.Host)
	return conn.Write(ctx, websocket.MessageText, acs.EncodeSigned(r.Header, b))
}
