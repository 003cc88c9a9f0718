package cloudformation

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/internal/cloudformation/resources"
	"github.com/pintle/pintle/internal/cloudformation/stacks"
)

// waiting is a template with a condition that waits for signals to a handle.
const waiting = `
Resources:
  Handle: {Type: 'AWS::CloudFormation::WaitConditionHandle'}
  Wait: {Type: 'AWS::CloudFormation::WaitCondition', Properties: {Handle: !Ref Handle, Timeout: '600', Count: 2}}
Outputs:
  Data: {Value: !GetAtt Wait.Data}
  URL: {Value: !Ref Handle}
`

// handle returns the URL of the only handle.
func (w *world) handle() string {
	w.t.Helper()
	for r := range w.store.View().StackResources.All() {
		if r.Type == resources.WaitConditionHandle {
			return r.PhysicalID
		}
	}
	w.t.Fatal("there is no handle")
	return ""
}

// sendTo sends a signal to a handle's URL.
func (w *world) sendTo(handle, body string) error {
	u, err := url.Parse(handle)
	if err != nil {
		w.t.Fatal(err)
	}
	name, isHandle := strings.CutPrefix(u.Path, stacks.HandlePath)
	if !isHandle || u.Host != "127.0.0.1:4566" {
		w.t.Fatalf("the handle's URL is %s", handle)
	}
	return w.loop.SignalHandle(context.Background(), name, u.Query().Get(stacks.Signature), []byte(body))
}

func (w *world) send(body string) {
	w.t.Helper()
	if err := w.sendTo(w.handle(), body); err != nil {
		w.t.Fatal(err)
	}
	w.settle()
}

func (w *world) signalResource(name, id string, status types.ResourceSignalStatus) error {
	in := &cloudformation.SignalResourceInput{StackName: aws.String("s"), LogicalResourceId: &name, UniqueId: &id, Status: status}
	_, err := w.SignalResource(w.t.Context(), in)
	return err
}

func (w *world) output(name string) string {
	for _, o := range find(w.store.View(), w.onlyStack()).Outputs {
		if *o.OutputKey == name {
			return *o.OutputValue
		}
	}
	return ""
}

// TestWaitCondition: what a condition comes to, by the signals that are sent to its handle.
func TestWaitCondition(t *testing.T) {
	const (
		done     = types.StackStatusCreateComplete
		waits    = types.StackStatusCreateInProgress
		rollback = types.StackStatusRollbackComplete
	)
	one, two := `{"Status":"SUCCESS","Reason":"r","UniqueId":"a","Data":"x<y"}`, `{"Status":"SUCCESS","UniqueId":"b","Data":"{\"k\":1}"}`
	bad := `{"Status":"FAILURE","Reason":"no GPU","UniqueId":"c","Data":"d"}`
	for _, c := range []struct {
		name, old, new string
		signals        []string
		late           time.Duration
		want           types.StackStatus
		told           string // the data, or why it failed
	}{
		{name: "none", want: waits},
		{name: "too few", signals: []string{one}, late: 9 * time.Minute, want: waits},
		{name: "all", signals: []string{one, two}, want: done, told: `{"a":"x<y","b":"{\"k\":1}"}`},
		{name: "the same again", signals: []string{one, one}, want: waits},
		{name: "a failure", signals: []string{one, bad}, want: rollback, told: "Wait: WaitCondition received failed message: 'no GPU' for uniqueId: c"},
		{name: "a failure after all", signals: []string{one, two, bad}, want: done, told: `{"a":"x<y","b":"{\"k\":1}"}`},
		{name: "late", signals: []string{one}, late: 11 * time.Minute, want: rollback, told: "Wait: WaitCondition timed out. Received 1 conditions when expecting 2"},
		{name: "one by default", old: ", Count: 2", signals: []string{two}, want: done, told: `{"b":"{\"k\":1}"}`},
		{name: "nothing to wait for", old: "Count: 2", new: "Count: 0", want: done, told: "{}"},
		{name: "no time", old: "'600'", new: "0", late: time.Second, want: rollback, told: "Wait: WaitCondition timed out. Received 0 conditions when expecting 2"},
		{name: "another handle", old: "!Ref Handle,", new: "'https://example.org/h',", want: rollback,
			told: "Wait: The Handle of wait condition Wait is no AWS::CloudFormation::WaitConditionHandle"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, nil)
			w.create("s", strings.Replace(waiting, c.old, c.new, 1))
			for _, body := range c.signals {
				w.send(body)
			}
			w.later = c.late
			w.settle()
			w.expect(c.want)
			if got := append(w.reasons(), w.output("Data")); c.told != "" && !slices.Contains(got, c.told) {
				t.Errorf("got %q, want %q", got, c.told)
			}
		})
	}
}

// TestWaitConditionSignalled: conditions take signals by SignalResource, with a handle and without one.
func TestWaitConditionSignalled(t *testing.T) {
	for _, text := range []string{
		waiting,
		"Resources: {Wait: {Type: 'AWS::CloudFormation::WaitCondition', CreationPolicy: {ResourceSignal: {Count: 2, Timeout: PT10M}}}}",
	} {
		w := newWorld(t, nil)
		w.create("s", text)
		for _, id := range []string{"a", "b"} {
			w.expect(types.StackStatusCreateInProgress)
			if err := w.signalResource("Wait", id, types.ResourceSignalStatusSuccess); err != nil {
				t.Fatal(err)
			}
			w.settle()
		}
		w.expect(types.StackStatusCreateComplete)
	}
}

// TestWaitKilledAtEachWrite: a kill loses no signal that was answered, and a handle's URL is good for good.
func TestWaitKilledAtEachWrite(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", waiting)
	w.send(`{"Status":"SUCCESS","UniqueId":"a","Data":"1"}`)
	kept := len(w.wrote)
	w.send(`{"Status":"SUCCESS","UniqueId":"b","Data":"2"}`)
	w.expect(types.StackStatusCreateComplete)
	want := w.output("URL")
	for i, rows := range w.wrote[kept-1:] {
		again := newWorld(t, rows)
		again.settle()
		if err := again.sendTo(want, `{"Status":"SUCCESS","UniqueId":"b","Data":"2"}`); err != nil {
			t.Fatal(err)
		}
		again.settle()
		again.expect(types.StackStatusCreateComplete)
		if got := again.output("Data"); got != `{"a":"1","b":"2"}` {
			t.Fatalf("killed after write %d: the data are %s", i, got)
		}
	}
}

// TestHandleRefuses: a handle takes signals from those who have its URL, and only signals.
func TestHandleRefuses(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", waiting)
	good, signal := w.handle(), `{"Status":"SUCCESS","UniqueId":"a","Data":"x"}`
	for _, c := range []struct{ url, body, want string }{
		{strings.Replace(good, "Signature=", "Signature=A", 1), signal, "AccessDenied"},
		{strings.Replace(good, "/Handle?", "/Other?", 1), signal, "AccessDenied"},
		{good[:strings.Index(good, "?")], signal, "AccessDenied"},
		{good, "SUCCESS", "InvalidRequest"},
		{good, `{"Status":"success","UniqueId":"a"}`, "InvalidRequest"},
		{good, `{"Status":"SUCCESS"}`, "InvalidRequest"},
		{good, `{"Status":"SUCCESS","UniqueId":"a","Data":5}`, "InvalidRequest"},
		{good, `{"Status":"SUCCESS","UniqueId":"a","Data":"` + strings.Repeat("x", 4097) + `"}`, "EntityTooLarge"},
	} {
		if err := w.sendTo(c.url, c.body); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60s to %s: got %v, want %s", c.body, c.url, err, c.want)
		}
	}
	for i := range 100 {
		id := strings.Repeat("u", i+1)
		if err := w.sendTo(good, `{"Status":"SUCCESS","UniqueId":"`+id+`","Data":"`+strings.Repeat("x", 4096)+`"}`); err != nil {
			if i < 60 || !strings.Contains(err.Error(), "EntityTooLarge") {
				t.Errorf("signal %d: %v", i, err)
			}
			break
		} else if i == 99 {
			t.Error("a handle keeps whatever it's sent")
		}
	}
	w.settle()
	w.remove("s")
	w.expect(types.StackStatusDeleteComplete)
	if err := w.sendTo(good, signal); err == nil || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("after the deletion: %v", err)
	}
	for r := range w.store.View().StackResources.All() {
		if len(r.Heard)+len(r.Signals) > 0 {
			t.Errorf("%s keeps its signals", r.Name)
		}
	}
}

// TestWaitConditionStays: no update changes a condition, as on AWS; the rollback leaves it as it was.
func TestWaitConditionStays(t *testing.T) {
	w := newWorld(t, nil)
	w.create("s", strings.Replace(waiting, "Count: 2", "Count: 0", 1))
	w.become("s", strings.Replace(waiting, "Count: 2", "Count: 1", 1))
	w.expect(types.StackStatusUpdateRollbackComplete)
	if want := "Wait: Update to resource type AWS::CloudFormation::WaitCondition is not supported"; !slices.Contains(w.reasons(), want) {
		t.Errorf("got %q", w.reasons())
	}
}

// TestWaitConditionRefused: what a condition can't wait for is refused before anything is made.
func TestWaitConditionRefused(t *testing.T) {
	w := newWorld(t, nil)
	for properties, want := range map[string]string{
		"{}":                                      "#: required key [Handle] not found",
		"{Handle: h}":                             "#: required key [Timeout] not found",
		"{Handle: h, Timeout: 43201}":             "#/Timeout: 43201 is not less or equal to 43200",
		"{Handle: h, Timeout: -1}":                "#/Timeout: -1 is not greater or equal to 0",
		"{Handle: h, Timeout: 1, Count: -1}":      "#/Count: -1 is not greater or equal to 0",
		"{Handle: h, Timeout: soon}":              "#/Timeout: expected type: Integer, found: String",
		"{Handle: h, Timeout: 1, Signals: [one]}": "#: extraneous key [Signals] is not permitted",
	} {
		text := "Resources: {X: {Type: AWS::CloudFormation::WaitCondition, Properties: " + properties + "}}"
		_, err := w.CreateStack(t.Context(), &cloudformation.CreateStackInput{StackName: aws.String("s"), TemplateBody: &text})
		check(t, properties, err, "Properties validation failed for resource X with message:\n"+want)
	}
}
