package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	logs "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/coder/websocket"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/session"
)

// What the sessions of execute-command need of the agent.

// sessionOptions connects sessions with the agent's tasks.
func (a *Agent) sessionOptions() session.Options {
	o := session.Options{Runtime: a.config.Runtime, Find: a.findContainer, Dial: a.dialSession, Log: a.log}
	if a.config.Transcripts != nil {
		o.Transcript = a.keepTranscript
	}
	return o
}

// findContainer returns the runtime's id of a container that runs.
func (a *Agent) findContainer(taskArn, container string) (string, error) {
	rec, ok := a.engine.Task(taskArn)
	if !ok || rec.Containers[container] == nil {
		return "", errors.New("the container isn't on its node any more")
	}
	if rec.Containers[container].Status != engine.Running {
		return "", fmt.Errorf("the container %s isn't running", container)
	}
	return rec.ContainerID(container), nil
}

// dialSession opens a session's web socket, beside those of the node protocol.
func (a *Agent) dialSession(ctx context.Context, m *acs.PintleExecute) (*websocket.Conn, error) {
	e, err := a.endpoints(ctx)
	if err != nil {
		return nil, err
	}
	s, err := a.dial(ctx, strings.TrimSuffix(aws.ToString(e.Endpoint), "/acs")+"/exec", url.Values{
		"clusterArn":           {a.config.Cluster},
		"containerInstanceArn": {a.Instance()},
		"session":              {m.SessionID},
		"taskArn":              {m.TaskArn},
	})
	if isRefusedAs(err, "SessionOverException") {
		return nil, session.ErrOver
	}
	if err != nil {
		return nil, err
	}
	return s.conn, nil
}

// Transcripts keeps transcripts in buckets. It's S3.
type Transcripts interface {
	PutObject(context.Context, *s3.PutObjectInput, ...func(*s3.Options)) (*s3.PutObjectOutput, error)
}

// keepTranscript keeps what a session's terminal showed in a log group, a bucket or both, as the task's role: on AWS the agent that does it is
// in the container.
func (a *Agent) keepTranscript(ctx context.Context, m *acs.PintleExecute, transcript []byte) error {
	var role *acs.IAMRoleCredentials
	if rec, ok := a.engine.Task(m.TaskArn); ok {
		role = rec.Task.RoleCredentials
	}
	var err error
	if m.Log.Group != "" {
		err = a.logTranscript(ctx, role, m, transcript)
	}
	if m.Log.Bucket != "" {
		key := m.SessionID + ".log"
		if p := strings.Trim(m.Log.Prefix, "/"); p != "" {
			key = p + "/" + key
		}
		_, failure := a.config.Transcripts.PutObject(ctx, &s3.PutObjectInput{Bucket: &m.Log.Bucket, Key: &key, Body: bytes.NewReader(transcript)},
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
func (a *Agent) logTranscript(ctx context.Context, role *acs.IAMRoleCredentials, m *acs.PintleExecute, transcript []byte) error {
	withRole := func(o *cloudwatchlogs.Options) {
		if role != nil {
			o.Credentials = as(*role)
		}
	}
	group, stream := &m.Log.Group, &m.SessionID
	_, err := a.config.Logs.CreateLogStream(ctx, &cloudwatchlogs.CreateLogStreamInput{LogGroupName: group, LogStreamName: stream}, withRole)
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
		if _, err := a.config.Logs.PutLogEvents(ctx, in, withRole); err != nil {
			return err
		}
	}
	return nil
}
