package environments

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	logstypes "github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs/types"
)

// What runtimes ask for: https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html

// ErrNoEnvironment is the error of a task that is no environment, or no longer.
var ErrNoEnvironment = errors.New("the task is no execution environment of a function")

// ErrNoRequest is the error of an answer to an invocation that the environment doesn't have.
var ErrNoRequest = errors.New("the environment has no invocation with this request id")

// Handed is an invocation as an environment gets it.
type Handed struct {
	Work
	Deadline time.Time
}

// Next waits for the next invocation of the environment that is a task. That it asks means that it's ready. Until the environment has answered,
// it gets the same again: the first answer may not have reached it.
func (m *Manager) Next(ctx context.Context, task string) (Handed, error) {
	m.mu.Lock()
	e := m.find(task)
	if e == nil {
		m.mu.Unlock()
		return Handed{}, ErrNoEnvironment
	}
	if e.phase == starting || e.phase == leaving {
		if e.phase == starting {
			e.initial = m.opts.Now().Sub(laterOf(e.ran, e.since))
		}
		if e.timer != nil {
			e.timer.Stop()
		}
		cold := e.phase == starting
		m.enter(e, idle)
		m.decide(e.group)
		if e.current != nil {
			e.current.cold = cold
		}
		select {
		case m.news <- struct{}{}: // it may be idle for long
		default:
		}
	}
	m.mu.Unlock()
	for {
		if h, ok, err := m.hand(e); ok || err != nil {
			return h, err
		}
		select {
		case <-e.wake:
		case <-ctx.Done():
			return Handed{}, ctx.Err()
		}
	}
}

// find returns the environment that is a task, or nil. The task may ask before the call that ran it has returned. The caller holds mu.
func (m *Manager) find(task string) *environment {
	if e := m.tasks[task]; e != nil {
		return e
	}
	t := m.store.View().Tasks.Get(task)
	if t == nil {
		return nil
	}
	for _, g := range m.groups {
		if e := g.all[aws.ToString(t.StartedBy)]; e != nil && e.task == "" {
			e.task = task
			m.tasks[task] = e
			return e
		}
	}
	return nil
}

func laterOf(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// hand gives an environment its invocation, if it has one.
func (m *Manager) hand(e *environment) (h Handed, ok bool, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.ended {
		return h, false, ErrNoEnvironment
	}
	inv := e.current
	if inv == nil {
		return h, false, nil
	}
	if inv.handed.IsZero() {
		inv.handed = m.opts.Now()
		m.say(e, inv.handed, inv.startLine())
		m.limit(e, inv.limit(), func() { m.timeOut(e, inv) })
	}
	return Handed{inv.Work, inv.handed.Add(inv.limit())}, true, nil
}

// timeOut ends an invocation that takes too long, and its environment with it.
func (m *Manager) timeOut(e *environment, inv *invocation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if e.ended || e.current != inv {
		return
	}
	text := fmt.Sprintf("Task timed out after %.2f seconds", float64(*inv.Version.Timeout))
	now := m.opts.Now()
	inv.timedOut = true
	if !inv.inJSON() { // there the report says it
		m.say(e, now, fmt.Sprintf("%s %s %s\n\n", now.UTC().Format(stamp), inv.RequestID, text))
	}
	m.finish(e, unhandled("Sandbox.Timedout", "RequestId: %s Error: %s", inv.RequestID, text))
	m.end(e)
	m.decide(e.group)
}

// Answer ends an environment's invocation.
func (m *Manager) Answer(task, request string, r Result) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.find(task)
	switch {
	case e == nil:
		return ErrNoEnvironment
	case e.current == nil || e.current.RequestID != request || e.current.handed.IsZero():
		return ErrNoRequest
	}
	m.finish(e, r)
	return nil
}

// FailInit ends an environment that can't begin, and tells why to whoever has waited longest for one.
func (m *Manager) FailInit(task string, payload []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.find(task)
	if e == nil {
		return ErrNoEnvironment
	}
	m.fail(e, outcome{result: Result{Payload: payload, Error: "Unhandled"}})
	return nil
}

// maxTail is how much of the log an invocation's caller may see: API_Invoke.
const maxTail = 4 << 10

// report writes an invocation's last lines into the log, counts it, and returns the end of the log if that's wanted. The caller holds mu.
func (m *Manager) report(e *environment, inv *invocation, r Result) []byte {
	now := m.opts.Now()
	took := now.Sub(inv.handed)
	if inv.handed.IsZero() {
		took = 0
	}
	name := *inv.Version.FunctionName
	lines := inv.endLines(now, took, e.initial, r.Error != "")
	for _, text := range lines {
		m.say(e, now, text)
	}
	m.measure(name, "Invocations", "Count", 1)
	m.measure(name, "Duration", "Milliseconds", milliseconds(took))
	failed := 0.0
	if r.Error != "" {
		failed = 1
	}
	m.measure(name, "Errors", "Count", failed)
	if !inv.Tail {
		return nil
	}
	tail := inv.startLine() + string(r.Tail) + strings.Join(lines, "")
	return []byte(tail[max(0, len(tail)-maxTail):])
}

// line is a line of an environment's log that isn't the function's own.
type line struct {
	group, stream string
	at            time.Time
	text          string
}

// maxLines is how many lines may wait to be written. Further ones are lost rather than that invocations wait.
const maxLines = 4096

func (m *Manager) say(e *environment, at time.Time, text string) {
	if text == "" {
		return
	}
	select {
	case m.lines <- line{*e.group.version.LoggingConfig.LogGroup, e.stream, at, text}:
	default:
		m.opts.Log.Warn("a line of a function's log is lost: too many wait", "stream", e.stream)
	}
}

// ship writes lines into the logs, those that wait for one stream together.
func (m *Manager) ship(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case first := <-m.lines:
			all := []line{first}
			for len(m.lines) > 0 && len(all) < 1000 {
				all = append(all, <-m.lines)
			}
			m.write(ctx, all)
		}
	}
}

func (m *Manager) write(ctx context.Context, all []line) {
	type place struct{ group, stream string }
	byStream := map[place][]logstypes.InputLogEvent{}
	for _, l := range all {
		p := place{l.group, l.stream}
		byStream[p] = append(byStream[p], logstypes.InputLogEvent{Message: &l.text, Timestamp: aws.Int64(l.at.UnixMilli())})
	}
	for p, events := range byStream {
		_, err := m.opts.Logs.PutLogEvents(m.as(ctx, "logs"), &cloudwatchlogs.PutLogEventsInput{
			LogGroupName: &p.group, LogStreamName: &p.stream, LogEvents: events,
		})
		if err != nil && ctx.Err() == nil {
			m.opts.Log.Warn("cannot write into a function's log", "stream", p.stream, "error", err)
		}
	}
}
