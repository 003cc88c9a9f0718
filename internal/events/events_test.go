package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge"
	"github.com/aws/aws-sdk-go-v2/service/eventbridge/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/delivery"
	"github.com/pintle/pintle/internal/events/targets"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
	"github.com/pintle/pintle/internal/wire/call"
)

// world is a service, the calls that it makes, and the loop that delivers.
type world struct {
	*Service
	dir        string
	store      *state.Store
	loop       *delivery.Loop
	now        func() time.Time
	calls      []any            // in their order
	as         []string         // whose they were
	fail       map[string]error // what queues answer, by name
	untrusting map[string]bool  // roles
	counted    map[string]int   // metrics, with their dimensions
}

func (w *world) count(_, metric string, by ...[]string) {
	for _, d := range by {
		w.counted[strings.Join(append([]string{metric}, d...), " ")]++
	}
}

func newWorld(t *testing.T) *world {
	w := &world{
		dir:        t.TempDir(),
		now:        func() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) },
		fail:       map[string]error{},
		untrusting: map[string]bool{},
		counted:    map[string]int{},
	}
	w.open(t)
	return w
}

// open opens the world's store, as a start of the control plane does.
func (w *world) open(t *testing.T) {
	w.store = statetest.OpenIn(t, w.dir)
	now := func() time.Time { return w.now() }
	owner := accounttest.New(now)
	w.Service = New(w.store, Options{
		Account: owner,
		Count:   w.count,
		Log:     slog.New(slog.DiscardHandler),
		Targets: targets.New(targets.Options{
			Account:  owner,
			Services: w,
			QueueURL: func(arn string) string { return arn[strings.LastIndexByte(arn, ':')+1:] },
			Trusts:   func(role, service string) bool { return !w.untrusting[role] && service == targets.Events },
			Count:    w.count,
			Log:      slog.New(slog.DiscardHandler),
		}),
	})
	w.loop = delivery.New(state.Outbox{Store: w.store, Now: now}, delivery.Options{
		Now:    now,
		Routes: []delivery.Route{{Prefix: ARNPrefix, Tell: w.Tell}},
		Log:    slog.New(slog.DiscardHandler),
	})
}

func (w *world) Call(ctx context.Context, in any) (any, error) {
	if m, ok := in.(*sqs.SendMessageInput); ok && w.fail[*m.QueueUrl] != nil {
		return nil, w.fail[*m.QueueUrl]
	}
	if m, ok := in.(*lambda.InvokeInput); ok && w.fail[*m.FunctionName] != nil {
		return nil, w.fail[*m.FunctionName]
	}
	w.calls = append(w.calls, in)
	w.as = append(w.as, call.From(ctx).Principal)
	if _, ok := in.(*ecs.RunTaskInput); ok {
		return &ecs.RunTaskOutput{Tasks: []ecstypes.Task{{}}}, nil
	}
	return nil, nil
}

// deliver delivers what is due.
func (w *world) deliver(t *testing.T) {
	t.Helper()
	if err := w.loop.Step(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// bodies delivers what is due, and returns what queues got since the last time.
func (w *world) bodies(t *testing.T) (all []string) {
	t.Helper()
	w.deliver(t)
	for _, c := range w.calls {
		all = append(all, *c.(*sqs.SendMessageInput).MessageBody)
	}
	w.calls, w.as = nil, nil
	return all
}

func (w *world) rule(t *testing.T, in *eventbridge.PutRuleInput, to ...types.Target) {
	t.Helper()
	if _, err := w.PutRule(t.Context(), in); err != nil {
		t.Fatal(err)
	}
	if len(to) == 0 {
		to = []types.Target{{Id: aws.String("q"), Arn: aws.String(queue)}}
	}
	if _, err := w.PutTargets(t.Context(), &eventbridge.PutTargetsInput{Rule: in.Name, EventBusName: in.EventBusName, Targets: to}); err != nil {
		t.Fatal(err)
	}
}

const queue = "arn:aws:sqs:us-east-1:000000000000:q"

func (w *world) put(t *testing.T, detail string) {
	t.Helper()
	out, err := w.PutEvents(t.Context(), &eventbridge.PutEventsInput{Entries: []types.PutEventsRequestEntry{entry(detail)}})
	if err != nil || out.FailedEntryCount > 0 {
		t.Fatal(err, out)
	}
}

func entry(detail string) types.PutEventsRequestEntry {
	return types.PutEventsRequestEntry{Source: aws.String("mine"), DetailType: aws.String("a thing"), Detail: &detail}
}

func refused(t *testing.T, err error, code, message string) {
	t.Helper()
	var api smithy.APIError
	if !errors.As(err, &api) || api.ErrorCode() != code || !strings.Contains(api.ErrorMessage(), message) {
		t.Errorf("%v, want %s: %s", err, code, message)
	}
}

var mine = aws.String(`{"source": ["mine"]}`)

func TestPutEvents(t *testing.T) {
	w := newWorld(t)
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("r"), EventPattern: mine})
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("off"), EventPattern: mine, State: types.RuleStateDisabled})
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("other"), EventPattern: aws.String(`{"detail": {"n": [2]}}`)})
	out, err := w.PutEvents(t.Context(), &eventbridge.PutEventsInput{Entries: []types.PutEventsRequestEntry{
		entry(`{"n": 1, "big": 12345678901234567890}`),
		{DetailType: aws.String("x"), Detail: aws.String("{}")},
		{Source: aws.String("aws.ecs"), DetailType: aws.String("x"), Detail: aws.String("{}")},
		entry(`[]`),
		{Source: aws.String("mine"), DetailType: aws.String("x"), Detail: aws.String("{}"), EventBusName: aws.String("nobody's")},
	}})
	if err != nil || out.FailedEntryCount != 3 || out.Entries[0].EventId == nil || out.Entries[4].EventId == nil {
		t.Fatal(err, out)
	}
	for i, want := range map[int]string{
		1: "InvalidArgument Parameter Source is not valid. Reason: Source is a required argument.",
		2: "NotAuthorizedForSource Not authorized for the source.",
		3: "MalformedDetail Detail is malformed.",
	} {
		if got := *out.Entries[i].ErrorCode + " " + *out.Entries[i].ErrorMessage; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	w.store.Close() //nolint:errcheck // what was acknowledged is on the disk
	w.open(t)
	want := `{"version":"0","id":"` + *out.Entries[0].EventId + `","detail-type":"a thing","source":"mine","account":"000000000000",` +
		`"time":"2026-01-01T12:00:00Z","region":"us-east-1","resources":[],"detail":{"n":1,"big":12345678901234567890}}`
	if got := w.bodies(t); !slices.Equal(got, []string{want}) {
		t.Errorf("%s, want %s", got, want)
	}
	w.put(t, `{"n": 2}`)
	if got := w.bodies(t); len(got) != 2 {
		t.Errorf("%d messages of two rules", len(got))
	}
	large := entry(`{"x": "` + strings.Repeat("x", maxEntries) + `"}`)
	_, err = w.PutEvents(t.Context(), &eventbridge.PutEventsInput{Entries: []types.PutEventsRequestEntry{large}})
	refused(t, err, "ValidationException", "Total size of the entries in the request is over the limit.")
}

// TestInput has what localstack recorded of AWS, in other words.
func TestInput(t *testing.T) {
	const event = `{"id": "1", "detail-type": "a thing", "detail": {"command": "go", "n": 3, "list": ["A", "B"], "o": {"k": "v"}, "ok": true, "q": "a\"b", "said": "it says \"no\"", "quotes": ["\"x\"", "c:\\"]}}`
	r := &state.EventRule{Rule: types.Rule{Arn: aws.String("arn:aws:events:us-east-1:000000000000:rule/r"), Name: aws.String("r")}}
	paths := map[string]string{
		"type": "$.detail-type", "command": "$.detail.command", "list": "$.detail.list", "o": "$.detail.o", "n": "$.detail.n", "ok": "$.detail['ok']",
		"second": "$.detail.list[1]", "nothing": "$.detail.nothing", "q": "$.detail.q", "said": "$.detail.said", "quotes": "$.detail.quotes",
	}
	for template, want := range map[string]string{
		`"Event of <type>: <command>!"`:           `"Event of a thing: go!"`,
		`"nothing: <nothing>"`:                    `"nothing: "`,
		`{"t": <type>, "n": <n>, "x": <nothing>}`: `{"t": "a thing", "n": 3, "x": ""}`,
		`{"path": "users/<command>/<second>"}`:    `{"path": "users/go/B"}`,
		`{"list": <list>, "o": <o>}`:              `{"list": ["A","B"], "o": {"k":"v"}}`,
		`"<list> of <o>, <ok>, <n>"`:              `"[A,B] of {k:v}, true, 3"`,
		`{"list": "<list>"}`:                      ``,
		`<list> alone`:                            ``,
		"\"<list>\"\n\"<command>\"":               "\"[A,B]\"\n\"go\"",
		`"<aws.events.rule-arn> <aws.events.rule-name> <aws.events.event.ingestion-time>"`: `"arn:aws:events:us-east-1:000000000000:rule/r r now"`,
		`{"e": <aws.events.event>}`: `{"e": {"detailType":"a thing","id":"1"}}`,
		`{"q": "<q>"}`:              `{"q": "a\"b"}`,
		`{"said": "<said>"}`:        `{"said": "it says \"no\""}`,
		`"<said>: <quotes>"`:        `"it says \"no\": [x,c:\\]"`,
	} {
		target := &types.Target{Id: aws.String("t"), InputTransformer: &types.InputTransformer{InputPathsMap: paths, InputTemplate: &template}}
		if err := checkInput(target); err != nil {
			t.Errorf("%s: %v", template, err)
		}
		got, ok := inputOf(r, target, event, "now")
		if ok != (want != "") || ok && got != want {
			t.Errorf("%s: %s (%t), want %s", template, got, ok, want)
		}
	}
	for path, want := range map[string]string{"$.detail.o": `{"k":"v"}`, "$.detail.list[0]": `"A"`, "$": "", "$.x": "null"} {
		got, _ := inputOf(r, &types.Target{InputPath: &path}, event, "now")
		if want != "" && got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func FuzzInput(f *testing.F) {
	f.Add(`{"a": <x>, "b": "<x>"}`, "$.detail.a[0]")
	f.Add(`"<aws.events.event.json> \" <x>"`, "$['detail']")
	r := &state.EventRule{Rule: types.Rule{Arn: aws.String("arn"), Name: aws.String("r")}}
	f.Fuzz(func(t *testing.T, template, path string) {
		target := &types.Target{Id: aws.String("t"), InputTransformer: &types.InputTransformer{InputPathsMap: map[string]string{"x": path}, InputTemplate: &template}}
		if checkInput(target) != nil {
			return
		}
		got, ok := inputOf(r, target, `{"detail": {"a": [1, "x\"y\n"]}}`, "now")
		if ok && !strings.HasPrefix(strings.TrimSpace(template), `"`) && !json.Valid([]byte(got)) {
			t.Errorf("%q makes %q", template, got)
		}
	})
}

func TestTargetsAreChecked(t *testing.T) {
	w := newWorld(t)
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("r"), EventPattern: mine})
	w.untrusting["arn:aws:iam::000000000000:role/closed"] = true
	id, name := aws.String("x"), aws.String("r")
	for message, target := range map[string]types.Target{
		"Provided Arn is not in correct format.":                         {Arn: aws.String("queue")},
		"Pintle has no API destinations.":                                {Arn: aws.String("arn:aws:events:us-east-1:000000000000:api-destination/x/y")},
		"Pintle sends to queues, topics":                                 {Arn: aws.String("arn:aws:kinesis:us-east-1:000000000000:stream/x")},
		"the same bus":                                                   {Arn: aws.String("arn:aws:events:us-east-1:000000000000:event-bus/default")},
		"EcsParameters must be specified":                                {Arn: aws.String("arn:aws:ecs:us-east-1:000000000000:cluster/c")},
		"RoleArn is required for target arn:aws:ecs":                     {Arn: aws.String("arn:aws:ecs:us-east-1:000000000000:cluster/c"), EcsParameters: &types.EcsParameters{}},
		"SqsParameters must be specified":                                {Arn: aws.String(queue + ".fifo")},
		"KinesisParameters":                                              {Arn: aws.String(queue), KinesisParameters: &types.KinesisParameters{}},
		"cannot be assumed by principal 'events.amazonaws.com'":          {Arn: aws.String(queue), RoleArn: aws.String("arn:aws:iam::000000000000:role/closed")},
		"Only one of Input, InputPath, or InputTransformer must be":      {Arn: aws.String(queue), Input: aws.String("{}"), InputPath: aws.String("$")},
		"JSON syntax error in input for target x.":                       {Arn: aws.String(queue), Input: aws.String("{")},
		"InputPath for target x is invalid.":                             {Arn: aws.String(queue), InputPath: aws.String("detail")},
		"InputTemplate for target x contains invalid placeholder other.": {Arn: aws.String(queue), InputTransformer: &types.InputTransformer{InputTemplate: aws.String(`"<other>"`)}},
		"DeadLetterConfig":                                               {Arn: aws.String(queue), DeadLetterConfig: &types.DeadLetterConfig{Arn: aws.String("arn:aws:sns:us-east-1:000000000000:t")}},
	} {
		target.Id = id
		_, err := w.PutTargets(t.Context(), &eventbridge.PutTargetsInput{Rule: name, Targets: []types.Target{target}})
		refused(t, err, "ValidationException", message)
	}
	without := types.Target{Id: aws.String("q"), Arn: aws.String(queue), DeadLetterConfig: &types.DeadLetterConfig{}}
	if _, err := w.PutTargets(t.Context(), &eventbridge.PutTargetsInput{Rule: name, Targets: []types.Target{without}}); err != nil {
		t.Error("a dead-letter queue that isn't named:", err)
	}
	var six []types.Target
	for i := range 6 {
		six = append(six, types.Target{Id: aws.String(fmt.Sprint(i)), Arn: aws.String(queue)})
	}
	_, err := w.PutTargets(t.Context(), &eventbridge.PutTargetsInput{Rule: name, Targets: six})
	refused(t, err, "LimitExceededException", "The requested resource exceeds the maximum number allowed.")
	_, err = w.DeleteRule(t.Context(), &eventbridge.DeleteRuleInput{Name: name})
	refused(t, err, "ValidationException", "Rule can't be deleted since it has targets.")
	removed, err := w.RemoveTargets(t.Context(), &eventbridge.RemoveTargetsInput{Rule: name, Ids: []string{"q", "gone"}})
	if err != nil || removed.FailedEntryCount != 1 || *removed.FailedEntries[0].TargetId != "gone" {
		t.Error(err, removed)
	}
	if _, err = w.DeleteRule(t.Context(), &eventbridge.DeleteRuleInput{Name: name}); err != nil {
		t.Error(err)
	}
}

func TestRefusals(t *testing.T) {
	w := newWorld(t)
	ctx, gone := t.Context(), aws.String("gone")
	_, err := w.DescribeRule(ctx, &eventbridge.DescribeRuleInput{Name: gone})
	refused(t, err, "ResourceNotFoundException", "Rule gone does not exist on EventBus default.")
	_, err = w.DescribeEventBus(ctx, &eventbridge.DescribeEventBusInput{Name: gone})
	refused(t, err, "ResourceNotFoundException", "Event bus gone does not exist.")
	_, err = w.DeleteEventBus(ctx, &eventbridge.DeleteEventBusInput{Name: aws.String("default")})
	refused(t, err, "ValidationException", "Cannot delete event bus default.")
	_, err = w.RemovePermission(ctx, &eventbridge.RemovePermissionInput{StatementId: gone})
	refused(t, err, "ResourceNotFoundException", "Statement with the provided id does not exist.")
	_, err = w.PutRule(ctx, &eventbridge.PutRuleInput{Name: gone, EventPattern: aws.String(`{"a": 1}`)})
	refused(t, err, "InvalidEventPatternException", `Event pattern is not valid. Reason: "a" must be an object or an array`)
	_, err = w.CreateEventBus(ctx, &eventbridge.CreateEventBusInput{Name: aws.String("b")})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.CreateEventBus(ctx, &eventbridge.CreateEventBusInput{Name: aws.String("b")})
	refused(t, err, "ResourceAlreadyExistsException", "Event bus b already exists.")
	_, err = w.PutRule(ctx, &eventbridge.PutRuleInput{Name: gone, EventBusName: aws.String("b"), ScheduleExpression: aws.String("rate(1 minute)")})
	refused(t, err, "ValidationException", "ScheduleExpression is supported only on the default event bus.")
	for _, expression := range []string{"cron(INVALID)", "cron(0 dummy ? * MON-FRI *)", "cron(71 8 1 * ? *)", "cron(0 1 * * * *)", "rate(10 seconds)", "at(2026-01-01T00:00:00)"} {
		_, err = w.PutRule(ctx, &eventbridge.PutRuleInput{Name: gone, ScheduleExpression: &expression})
		refused(t, err, "ValidationException", "Parameter ScheduleExpression is not valid.")
	}
}

func TestPermissions(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	for _, sid := range []string{"one", "two"} {
		_, err := w.PutPermission(ctx, &eventbridge.PutPermissionInput{StatementId: &sid, Action: aws.String("events:PutEvents"), Principal: aws.String("111111111111")})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.RemovePermission(ctx, &eventbridge.RemovePermissionInput{StatementId: aws.String("one")}); err != nil {
		t.Fatal(err)
	}
	out, err := w.DescribeEventBus(ctx, &eventbridge.DescribeEventBusInput{})
	want := `{"Version":"2012-10-17","Statement":[{"Sid":"two","Effect":"Allow","Principal":{"AWS":"arn:aws:iam::111111111111:root"},` +
		`"Action":"events:PutEvents","Resource":"arn:aws:events:us-east-1:000000000000:event-bus/default"}]}`
	if err != nil || aws.ToString(out.Policy) != want {
		t.Errorf("%v %s, want %s", err, aws.ToString(out.Policy), want)
	}
	if _, err := w.RemovePermission(ctx, &eventbridge.RemovePermissionInput{RemoveAllPermissions: true}); err != nil {
		t.Fatal(err)
	}
	if out, _ = w.DescribeEventBus(ctx, &eventbridge.DescribeEventBusInput{}); out.Policy != nil {
		t.Error(*out.Policy)
	}
}

// TestForward: a bus sends what its rules match to another one, and no further.
func TestForward(t *testing.T) {
	w := newWorld(t)
	for _, bus := range []string{"b", "c"} {
		if _, err := w.CreateEventBus(t.Context(), &eventbridge.CreateEventBusInput{Name: &bus}); err != nil {
			t.Fatal(err)
		}
	}
	to := func(bus string) types.Target {
		return types.Target{Id: aws.String("b"), Arn: aws.String("arn:aws:events:us-east-1:000000000000:event-bus/" + bus)}
	}
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("r"), EventPattern: mine}, to("b"))
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("r"), EventPattern: mine, EventBusName: aws.String("b")}, to("c"), types.Target{Id: aws.String("q"), Arn: aws.String(queue)})
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("r"), EventPattern: mine, EventBusName: aws.String("c")})
	w.put(t, "{}")
	if got := w.bodies(t); len(got) != 1 {
		t.Errorf("%d messages", len(got))
	}
}

// TestTries: what a queue doesn't take now is sent again; what it refuses goes to the dead letters at once.
func TestTries(t *testing.T) {
	w := newWorld(t)
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	w.now = func() time.Time { return now }
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("r"), EventPattern: mine}, types.Target{
		Id: aws.String("q"), Arn: aws.String(queue),
		RetryPolicy:      &types.RetryPolicy{MaximumRetryAttempts: aws.Int32(2)},
		DeadLetterConfig: &types.DeadLetterConfig{Arn: aws.String(queue + "-dead")},
	})
	w.fail["q"] = account.RefuseWith(500, "InternalError", "not now")
	w.put(t, "{}")
	for try := range 3 {
		w.deliver(t)
		if len(w.calls) > 0 != (try == 2) {
			t.Errorf("after try %d: %d dead letters", try, len(w.calls))
		}
		now = now.Add(time.Hour)
	}
	dead := w.calls[0].(*sqs.SendMessageInput)
	for name, want := range map[string]string{
		"RULE_ARN": "arn:aws:events:us-east-1:000000000000:rule/r", "TARGET_ARN": queue, "ERROR_CODE": "InternalError", "RETRY_ATTEMPTS": "2",
		"EXHAUSTED_RETRY_CONDITION": "MaximumRetryAttempts",
	} {
		if got := aws.ToString(dead.MessageAttributes[name].StringValue); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
	w.calls = nil
	w.fail["q"] = account.Refuse("AWS.SimpleQueueService.NonExistentQueue", "gone")
	w.put(t, "{}")
	if w.deliver(t); len(w.calls) != 1 {
		t.Errorf("%d dead letters of a queue that is gone", len(w.calls))
	}
}

// TestMetrics: what rules do is counted by rule, by bus and for all, as far as EventBridge's guide lists each.
func TestMetrics(t *testing.T) {
	w := newWorld(t)
	if _, err := w.CreateEventBus(t.Context(), &eventbridge.CreateEventBusInput{Name: aws.String("b")}); err != nil {
		t.Fatal(err)
	}
	dead := &types.DeadLetterConfig{Arn: aws.String(queue + "-dead")}
	to := func(name string) types.Target { return types.Target{Id: &name, Arn: aws.String(queue + name)} }
	lost, buried, unburied := to("-lost"), to("-buried"), to("-unburied")
	buried.DeadLetterConfig, unburied.DeadLetterConfig = dead, &types.DeadLetterConfig{Arn: aws.String(queue + "-gone")}
	for _, name := range []string{"q-lost", "q-buried", "q-unburied", "q-gone"} {
		w.fail[name] = account.Refuse("AWS.SimpleQueueService.NonExistentQueue", "gone")
	}
	w.fail["q-slow"] = account.RefuseWith(500, "InternalError", "not now")
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	w.now = func() time.Time { return now }
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("r"), EventPattern: mine},
		lost, buried, unburied, to("-slow"), types.Target{Id: aws.String("bus"), Arn: aws.String("arn:aws:events:us-east-1:000000000000:event-bus/b")})
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("s"), EventPattern: mine, EventBusName: aws.String("b")})
	w.put(t, "{}")
	w.deliver(t)
	delete(w.fail, "q-slow")
	now = now.Add(time.Hour)
	w.deliver(t)
	want := map[string]int{
		"MatchedEvents": 2, "MatchedEvents EventBusName default": 1, "MatchedEvents EventBusName b": 1,
		"TriggeredRules": 2, "TriggeredRules RuleName r": 1, "TriggeredRules EventBusName default": 1,
		"TriggeredRules EventBusName b RuleName s": 1, "TriggeredRules EventBusName b": 1,
		"InvocationAttempts": 7, "InvocationAttempts RuleName r": 6, "InvocationAttempts EventBusName default": 6,
		"InvocationAttempts EventBusName b RuleName s": 1, "InvocationAttempts EventBusName b": 1,
		"RetryInvocationAttempts": 1, "RetryInvocationAttempts RuleName r": 1, "RetryInvocationAttempts EventBusName default": 1,
		"SuccessfulInvocationAttempts": 3, "SuccessfulInvocationAttempts RuleName r": 2, "SuccessfulInvocationAttempts EventBusName default": 2,
		"SuccessfulInvocationAttempts EventBusName b RuleName s": 1, "SuccessfulInvocationAttempts EventBusName b": 1,
		"Invocations": 6, "Invocations RuleName r": 5, "Invocations EventBusName b RuleName s": 1,
		"FailedInvocations RuleName r": 3, "InvocationsSentToDlq RuleName r": 1, "InvocationsFailedToBeSentToDlq RuleName r": 1,
	}
	if !maps.Equal(w.counted, want) {
		t.Errorf("counted %v", w.counted)
	}
}

func TestRunTask(t *testing.T) {
	w := newWorld(t)
	role := "arn:aws:iam::000000000000:role/runner"
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("r"), EventPattern: mine}, types.Target{
		Id: aws.String("c"), Arn: aws.String("arn:aws:ecs:us-east-1:000000000000:cluster/c"), RoleArn: &role,
		Input: aws.String(`{"containerOverrides": [{"name": "main", "command": ["x"], "environment": [{"name": "A", "value": "b"}]}], "cpu": "256"}`),
		EcsParameters: &types.EcsParameters{
			TaskDefinitionArn: aws.String("td:1"),
			TaskCount:         aws.Int32(2),
			NetworkConfiguration: &types.NetworkConfiguration{
				AwsvpcConfiguration: &types.AwsVpcConfiguration{Subnets: []string{"subnet-1"}, AssignPublicIp: types.AssignPublicIpEnabled},
			},
			CapacityProviderStrategy: []types.CapacityProviderStrategyItem{{CapacityProvider: aws.String("cp"), Weight: 1}},
		},
	})
	w.put(t, "{}")
	w.deliver(t)
	in := w.calls[0].(*ecs.RunTaskInput)
	if *in.Cluster != "arn:aws:ecs:us-east-1:000000000000:cluster/c" || *in.Count != 2 || *in.TaskDefinition != "td:1" || *in.StartedBy != "events-rule/r" ||
		in.NetworkConfiguration.AwsvpcConfiguration.Subnets[0] != "subnet-1" || *in.CapacityProviderStrategy[0].CapacityProvider != "cp" ||
		*in.Overrides.Cpu != "256" || *in.Overrides.ContainerOverrides[0].Environment[0].Value != "b" || *in.ClientToken == "" || w.as[0] != role {
		t.Errorf("%+v as %s", in, w.as[0])
	}
}

// TestScheduleFiresOnce: each occurrence is told once, also if the process was away meanwhile.
func TestScheduleFiresOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.now = time.Now
		w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("r"), ScheduleExpression: aws.String("rate(5 minutes)")})
		started := time.Now()
		run := func(d time.Duration) {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			if err := w.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		run(11 * time.Minute)
		got := w.bodies(t)
		if len(got) != 2 || !strings.Contains(got[0], started.Add(5*time.Minute).UTC().Format(seconds)) ||
			!strings.Contains(got[0], `"detail-type":"Scheduled Event","source":"aws.events"`) || !strings.Contains(got[0], `:rule/r"],"detail":{}}`) {
			t.Fatalf("%d: %s", len(got), got)
		}
		w.store.Close() //nolint:errcheck // it's opened again
		time.Sleep(30 * time.Minute)
		w.open(t)
		run(time.Minute)
		if got := w.bodies(t); len(got) != 1 {
			t.Errorf("%d occurrences after a pause: %s", len(got), got)
		}
		if _, err := w.DisableRule(t.Context(), &eventbridge.DisableRuleInput{Name: aws.String("r")}); err != nil {
			t.Fatal(err)
		}
		run(time.Hour)
		if got := w.bodies(t); len(got) != 0 {
			t.Errorf("a disabled rule fires: %s", got)
		}
		w.store.Close() //nolint:errcheck // the bubble ends
	})
}

// TestScheduleWaitsForRoom: while too many events wait for targets, schedules add none.
func TestScheduleWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.now = time.Now
		w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("r"), ScheduleExpression: aws.String("rate(5 minutes)")})
		many := &state.Delivery{Size: state.Room + 1}
		fill := func(before, after any) {
			statetest.Update(t, w.store, func(*state.Tx) { w.store.Undelivered.Change(before, after) })
		}
		run := func(want int) {
			t.Helper()
			ctx, cancel := context.WithTimeout(t.Context(), 11*time.Minute)
			defer cancel()
			if err := w.Run(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
			if got := w.bodies(t); len(got) != want {
				t.Errorf("%d occurrences: %s", len(got), got)
			}
		}
		fill(nil, many)
		run(0)
		fill(many, nil)
		run(3)          // the first that was missed, and two more
		w.store.Close() //nolint:errcheck // the bubble ends
	})
}

// TestInputIsBounded: a short template makes no huge input of an event.
func TestInputIsBounded(t *testing.T) {
	target := &types.Target{InputTransformer: &types.InputTransformer{
		InputPathsMap: map[string]string{"a": "$.a"}, InputTemplate: aws.String("[" + strings.Repeat("<a>,", 2000) + "1]"),
	}}
	input, ok := inputOf(&state.EventRule{}, target, `{"a": "`+strings.Repeat("x", 200<<10)+`"}`, "now")
	if ok || len(input) > 0 {
		t.Errorf("%d bytes are sent", len(input))
	}
}

func TestTags(t *testing.T) {
	w := newWorld(t)
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("r"), EventPattern: mine, Tags: []types.Tag{{Key: aws.String("a"), Value: aws.String("1")}}})
	arn := aws.String("arn:aws:events:us-east-1:000000000000:rule/r")
	_, err := w.TagResource(t.Context(), &eventbridge.TagResourceInput{ResourceARN: arn, Tags: []types.Tag{{Key: aws.String("b"), Value: aws.String("2")}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.UntagResource(t.Context(), &eventbridge.UntagResourceInput{ResourceARN: arn, TagKeys: []string{"a"}}); err != nil {
		t.Fatal(err)
	}
	out, err := w.ListTagsForResource(t.Context(), &eventbridge.ListTagsForResourceInput{ResourceARN: arn})
	if err != nil || len(out.Tags) != 1 || *out.Tags[0].Key != "b" {
		t.Error(err, out)
	}
	gone := aws.String("arn:aws:events:us-east-1:000000000000:rule/b/gone")
	_, err = w.ListTagsForResource(t.Context(), &eventbridge.ListTagsForResourceInput{ResourceARN: gone})
	refused(t, err, "ResourceNotFoundException", "Rule gone does not exist on EventBus b.")
}

// TestFunctions: a function gets the event asynchronously, as the target's role. While Lambda has too much it's tried again, and one that isn't
// there, or that the role may not invoke, has the event go to the dead letters.
func TestFunctions(t *testing.T) {
	const function = "arn:aws:lambda:us-east-1:000000000000:function:f"
	w := newWorld(t)
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	w.now = func() time.Time { return now }
	w.rule(t, &eventbridge.PutRuleInput{Name: aws.String("r"), EventPattern: mine}, types.Target{
		Id: aws.String("f"), Arn: aws.String(function), RoleArn: aws.String("arn:aws:iam::000000000000:role/r"),
		DeadLetterConfig: &types.DeadLetterConfig{Arn: aws.String(queue + "-dead")},
	})
	w.fail[function] = &lambdatypes.TooManyRequestsException{}
	w.put(t, `{"n": 1}`)
	if w.deliver(t); len(w.calls) > 0 {
		t.Fatalf("got %v", w.calls)
	}
	delete(w.fail, function)
	now = now.Add(time.Hour)
	w.deliver(t)
	in, is := w.calls[0].(*lambda.InvokeInput)
	if !is || *in.FunctionName != function || in.InvocationType != "Event" || !strings.Contains(string(in.Payload), `"detail":{"n":1}`) ||
		w.as[0] != "arn:aws:iam::000000000000:role/r" {
		t.Errorf("got %+v as %s", w.calls[0], w.as[0])
	}
	for _, err := range []error{
		account.RefuseWith(404, "ResourceNotFoundException", "Function not found: f"), account.RefuseWith(403, "AccessDeniedException", "no"),
	} {
		w.calls, w.fail[function] = nil, err
		w.put(t, `{}`)
		w.deliver(t)
		if len(w.calls) != 1 || !strings.HasPrefix(*w.calls[0].(*sqs.SendMessageInput).QueueUrl, "q-dead") {
			t.Errorf("%v: got %v", err, w.calls)
		}
	}
}
