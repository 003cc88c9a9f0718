package node

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	logs "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/coder/websocket"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/awslogs"
	"github.com/pintle/pintle/internal/node/session"
)

// What a session of execute-command does in its process, which knows the control plane and the containers' runtime, and no agent.

// SessionConfig is what a session's process needs besides its assignment.
type SessionConfig struct {
	Runtime     SessionRuntime
	ECS         discoverer
	Logs        awslogs.Client
	Transcripts Transcripts
	Credentials aws.CredentialsProvider
	TLS         *tls.Config // trusts the control plane
	Log         *slog.Logger
}

// SessionRuntime is what a session's process needs of the containers' runtime.
type SessionRuntime interface {
	session.Runtime
	// IsRunning reports whether a container runs. One that isn't there doesn't.
	IsRunning(ctx context.Context, id string) (bool, error)
}

// attendedSession is a session in its process.
type attendedSession struct {
	dialer
	config SessionConfig
	start  *session.Assignment
	role   atomic.Pointer[acs.IAMRoleCredentials]
}

// RunSession carries out a session that an agent has assigned, until it's over, or soon after ctx has ended. renewals has the role's later
// credentials.
func RunSession(ctx context.Context, start *session.Assignment, renewals *json.Decoder, c SessionConfig) {
	s := &attendedSession{config: c, start: start}
	s.ecs, s.cluster, s.region, s.credentials, s.dialer.log = c.ECS, start.Cluster, start.Region, c.Credentials, c.Log
	s.instance = func() string { return start.Instance }
	s.web = newWebClient(c.TLS)
	s.role.Store(start.Role)
	go s.renew(renewals) // until the agent or this process ends
	session.Run(ctx, session.Options{
		Runtime:    c.Runtime,
		Container:  start.Container,
		Running:    s.running,
		Dial:       s.dial,
		Transcript: s.keepTranscript,
		Log:        c.Log,
	}, start.Execute)
}

func (s *attendedSession) renew(renewals *json.Decoder) {
	for {
		role := new(acs.IAMRoleCredentials)
		if renewals.Decode(role) != nil {
			return
		}
		s.role.Store(role)
	}
}

// running says why the container doesn't run.
func (s *attendedSession) running(ctx context.Context) error {
	var is bool
	var err error
	if s.start.Container != "" { // else the agent didn't find it
		is, err = s.config.Runtime.IsRunning(ctx, s.start.Container)
	}
	switch {
	case err != nil && ctx.Err() == nil:
		s.config.Log.Warn("cannot tell whether the container runs", "error", err)
		return nil
	case err == nil && !is:
		return fmt.Errorf("the container %s isn't running", s.start.Execute.ContainerName)
	}
	return nil
}

// dial opens a session's web socket, beside those of the node protocol.
func (s *attendedSession) dial(ctx context.Context, m *acs.PintleExecute) (*websocket.Conn, error) {
	e, err := s.endpoints(ctx)
	if err != nil {
		return nil, err
	}
	conn, _, err := s.connectTo(ctx, strings.TrimSuffix(aws.ToString(e.Endpoint), "/acs")+"/exec", url.Values{
		"clusterArn":           {s.cluster},
		"containerInstanceArn": {s.start.Instance},
		"session":              {m.SessionID},
		"taskArn":              {m.TaskArn},
	})
	if isRefusedAs(err, "SessionOverException") {
		return nil, session.ErrOver
	}
	return conn, err
}

// Transcripts keeps transcripts in buckets. It's S3.
type Transcripts interface {
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
}

// keepTranscript keeps what a session's terminal showed in a log group, a bucket or both, as the task's role: on AWS the agent that does it is
// in the container.
func (s *attendedSession) keepTranscript(ctx context.Context, m *acs.PintleExecute, transcript []byte) error {
	role := s.role.Load()
	var err error
	if m.Log.Group != "" {
		err = s.logTranscript(ctx, role, m, transcript)
	}
	if m.Log.Bucket != "" {
		key := m.SessionID + ".log"
		if p := strings.Trim(m.Log.Prefix, "/"); p != "" {
			key = p + "/" + key
		}
		_, failure := s.config.Transcripts.PutObject(ctx, &s3.PutObjectInput{Bucket: &m.Log.Bucket, Key: &key, Body: bytes.NewReader(transcript)},
			func(o *s3.Options) {
				if role != nil {
					o.Credentials = as(*role)
				}
			})
		err = errors.Join(err, failure)
	}
	return err
}

const (
	// maxEvent is the most bytes of one event of a transcript, and eventsOfCall how many of them PutLogEvents may have.
	maxEvent     = 200 << 10
	eventsOfCall = 5
)

// logTranscript puts a transcript into a stream with the session's name.
func (s *attendedSession) logTranscript(ctx context.Context, role *acs.IAMRoleCredentials, m *acs.PintleExecute, transcript []byte) error {
	withRole := func(o *cloudwatchlogs.Options) {
		if role != nil {
			o.Credentials = as(*role)
		}
	}
	group, stream := &m.Log.Group, &m.SessionID
	_, err := s.config.Logs.CreateLogStream(ctx, &cloudwatchlogs.CreateLogStreamInput{LogGroupName: group, LogStreamName: stream}, withRole)
	if err != nil || len(transcript) == 0 {
		return err
	}
	var events []logs.InputLogEvent
	now := time.Now().UnixMilli()
	valid := bytes.ToValidUTF8(transcript, []byte("�")) // which may have three times the bytes
	for part := range slices.Chunk(valid, maxEvent) {
		events = append(events, logs.InputLogEvent{Timestamp: &now, Message: aws.String(strings.ToValidUTF8(string(part), "�"))})
	}
	for batch := range slices.Chunk(events, eventsOfCall) {
		in := &cloudwatchlogs.PutLogEventsInput{LogGroupName: group, LogStreamName: stream, LogEvents: batch}
		if _, err := s.config.Logs.PutLogEvents(ctx, in, withRole); err != nil {
			return err
		}
	}
	return nil
}
