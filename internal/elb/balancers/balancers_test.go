package balancers

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	api "github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2"
	"github.com/aws/aws-sdk-go-v2/service/elasticloadbalancingv2/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/elb"
	"github.com/pintle/pintle/internal/elb/accesslog"
	"github.com/pintle/pintle/internal/elb/carrier"
	"github.com/pintle/pintle/internal/elb/proxy"
	"github.com/pintle/pintle/internal/elb/report"
	"github.com/pintle/pintle/internal/elb/routing"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
	"github.com/pintle/pintle/internal/wire/call"
)

// world is a control plane's load balancers, which processes reach by HTTP.
type world struct {
	*elb.Service
	t      *testing.T
	store  *state.Store
	loop   *Loop
	server *httptest.Server
	mu     sync.Mutex
	counts []report.Count
	away   bool
	logs   map[string][]byte // objects by bucket and key
}

// PutObject takes access logs.
func (w *world) PutObject(_ context.Context, in *s3.PutObjectInput, _ ...func(*s3.Options)) (*s3.PutObjectOutput, error) {
	b, err := io.ReadAll(in.Body)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logs[*in.Bucket+"/"+*in.Key] = b
	return &s3.PutObjectOutput{}, err
}

func newWorld(t *testing.T) *world {
	w := &world{t: t, store: statetest.Open(t), logs: map[string][]byte{}}
	w.Service = elb.New(w.store, elb.Options{Account: accounttest.New(time.Now), Buckets: w})
	w.loop = New(w.store, Options{Buckets: w, Account: accounttest.New(time.Now), Now: time.Now, Log: slog.New(slog.DiscardHandler), Counted: func(_ context.Context, c []report.Count) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.counts = append(w.counts, c...)
	}})
	mux := http.NewServeMux()
	for path, h := range w.loop.Handlers(signedBy(call.Call{})) {
		mux.Handle(path, h)
	}
	w.server = httptest.NewServer(mux)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.loop.Run(ctx) //nolint:errcheck // it ends with ctx
	}()
	t.Cleanup(func() {
		cancel()
		<-done
		w.loop.EndWaits()
		w.server.Close()
	})
	return w
}

// signedBy says that all requests come from the same caller.
func signedBy(by call.Call) Verify {
	return func(*http.Request) (func([]byte) (call.Call, error), bool, error) {
		return func([]byte) (call.Call, error) { return by, nil }, true, nil
	}
}

func (w *world) set(away bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.away = away
}

func (w *world) post(ctx context.Context, path string, body []byte) ([]byte, error) {
	w.mu.Lock()
	away := w.away
	w.mu.Unlock()
	if away {
		return nil, errors.New("away")
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.server.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", resp.Status, b)
	}
	return b, err
}

// process starts a balancer process, and returns what ends it.
func (w *world) process(id, dir string) (stop func()) {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	counter := carrier.NewCounter()
	var c *carrier.Carrier
	logs := accesslog.New(accesslog.Options{
		Dir: filepath.Join(dir, "logs"), Now: time.Now, Log: slog.New(slog.DiscardHandler),
		Send: func(ctx context.Context, f accesslog.File) error { return c.SendLog(ctx, f) },
	})
	p := proxy.New(proxy.Config{Observer: proxy.Observers{counter, logs}, DrainTime: time.Second})
	c = carrier.New(p, counter, carrier.Options{
		ID: id, Dir: dir, Host: "127.0.0.1", First: 18900, Last: 18950, Post: w.post, Logs: logs, Log: slog.New(slog.DiscardHandler),
	})
	logging, end := context.WithCancel(context.Background())
	var work, logged sync.WaitGroup
	logged.Go(func() {
		if err := logs.Run(logging); err != nil {
			w.t.Error(err)
		}
	})
	work.Go(func() { p.Run(ctx) }) //nolint:errcheck // it ends with ctx
	work.Go(func() {
		if err := c.Run(ctx); err != nil {
			w.t.Error(err)
		}
	})
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			work.Wait()
			end()
			logged.Wait()
		})
	}
	w.t.Cleanup(stop)
	return stop
}

func (w *world) eventually(what string, ok func() bool) {
	w.t.Helper()
	end := time.Now().Add(2 * time.Minute)
	for !ok() {
		if time.Now().After(end) {
			w.t.Fatalf("not within two minutes: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func must[O any](w *world, out *O, err error) *O {
	w.t.Helper()
	if err != nil {
		w.t.Fatal(err)
	}
	return out
}

func freePort(t *testing.T) int32 {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return int32(l.Addr().(*net.TCPAddr).Port)
}

// web makes a load balancer with a listener and an empty target group.
func (w *world) web(name string, port int32) (listener, group *string) {
	w.t.Helper()
	ctx := w.t.Context()
	b, err := w.CreateLoadBalancer(ctx, &api.CreateLoadBalancerInput{Name: &name, Subnets: []string{"subnet-1", "subnet-2"}})
	must(w, b, err)
	g, err := w.CreateTargetGroup(ctx, &api.CreateTargetGroupInput{
		Name: &name, Protocol: "HTTP", Port: aws.Int32(80), VpcId: aws.String("vpc-1"), TargetType: "ip",
		HealthCheckIntervalSeconds: aws.Int32(5), HealthCheckTimeoutSeconds: aws.Int32(2),
	})
	must(w, g, err)
	l, err := w.CreateListener(ctx, &api.CreateListenerInput{
		LoadBalancerArn: b.LoadBalancers[0].LoadBalancerArn, Port: &port, Protocol: "HTTP",
		DefaultActions: []types.Action{{Type: "forward", TargetGroupArn: g.TargetGroups[0].TargetGroupArn}},
	})
	must(w, l, err)
	return l.Listeners[0].ListenerArn, g.TargetGroups[0].TargetGroupArn
}

// target starts a server, and returns it as a target.
func (w *world) target(serve http.HandlerFunc) types.TargetDescription {
	s := httptest.NewServer(serve)
	w.t.Cleanup(s.Close)
	u, _ := url.Parse(s.URL)
	port, _ := strconv.Atoi(u.Port())
	return types.TargetDescription{Id: aws.String("127.0.0.1"), Port: new(int32(port))}
}

func (w *world) register(group *string, t types.TargetDescription) {
	w.t.Helper()
	out, err := w.RegisterTargets(w.t.Context(), &api.RegisterTargetsInput{TargetGroupArn: group, Targets: []types.TargetDescription{t}})
	must(w, out, err)
}

func (w *world) deregister(group *string, t types.TargetDescription) {
	w.t.Helper()
	out, err := w.DeregisterTargets(w.t.Context(), &api.DeregisterTargetsInput{TargetGroupArn: group, Targets: []types.TargetDescription{t}})
	must(w, out, err)
}

// state returns a target's state, "" if it isn't there.
func (w *world) state(group *string, t types.TargetDescription) types.TargetHealthStateEnum {
	row := w.store.View().Targets.Get(state.TargetKey(*group, *t.Id, *t.Port))
	switch {
	case row == nil:
		return ""
	case row.Draining != nil:
		return types.TargetHealthStateEnumDraining
	case row.Health == nil:
		return types.TargetHealthStateEnumInitial
	}
	return row.Health.State
}

func get(address string) string {
	resp, err := http.Get("http://" + address)
	if err != nil {
		return err.Error()
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body) //nolint:errcheck // then it's too short
	return string(b)
}

func says(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) } //nolint:errcheck // a test
}

// TestProcessFollows: a process carries out what the API is told, says how targets are, and goes on while the control plane is away, also
// when it's started again meanwhile.
func TestProcessFollows(t *testing.T) {
	w := newWorld(t)
	port := freePort(t)
	_, group := w.web("web", port)
	dir := t.TempDir()
	stop := w.process("one", dir)
	a := w.target(says("a"))
	w.register(group, a)
	w.eventually("the target is healthy", func() bool { return w.state(group, a) == types.TargetHealthStateEnumHealthy })
	for b := range w.store.View().LoadBalancers.All() {
		if b.State.Code != types.LoadBalancerStateEnumActive {
			t.Error(b.State)
		}
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	if got := get(address); got != "a" {
		t.Fatal(got)
	}
	w.eventually("the request is counted", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return len(w.counts) == 1 && w.counts[0].Requests == 1 && w.counts[0].Codes["HTTPCode_Target_2XX_Count"] == 1
	})
	w.set(true)
	b := w.target(says("b"))
	w.register(group, b)
	if got := get(address); got != "a" {
		t.Fatal(got)
	}
	stop()
	w.process("one", dir)
	w.eventually("it goes on with what it has kept", func() bool { return get(address) == "a" })
	w.set(false)
	w.eventually("it follows again", func() bool { return w.state(group, b) == types.TargetHealthStateEnumHealthy })
}

// TestWhatIsCarriedOut: a listener's forward is carried out once each process that is there sends its traffic so.
func TestWhatIsCarriedOut(t *testing.T) {
	w := newWorld(t)
	listener, group := w.web("web", freePort(t))
	rule := w.store.View().Listeners.Get(*listener).DefaultRule
	is := func() bool { return w.loop.IsCarriedOut(w.store.View(), rule) }
	w.eventually("nobody is there", is)
	w.process("one", t.TempDir())
	w.process("two", t.TempDir())
	w.eventually("both are there", func() bool { return len(slices.Collect(w.store.View().Balancers.All())) == 2 && is() })
	w.set(true) // so that they don't hear of it
	g, err := w.CreateTargetGroup(t.Context(), &api.CreateTargetGroupInput{
		Name: aws.String("other"), Protocol: "HTTP", Port: aws.Int32(80), VpcId: aws.String("vpc-1"),
	})
	other := must(w, g, err).TargetGroups[0].TargetGroupArn
	statetest.Update(t, w.store, func(tx *state.Tx) {
		tx.Forward(rule, types.TargetGroupTuple{TargetGroupArn: group}, types.TargetGroupTuple{TargetGroupArn: other})
		if w.loop.IsCarriedOut(tx.View, rule) {
			t.Error("it's carried out before it's said")
		}
	})
	for range 3 {
		if err := w.loop.Step(t.Context()); err != nil || is() {
			t.Errorf("nobody can have heard of it: %v, %v", is(), err)
		}
	}
	w.set(false)
	w.eventually("both have heard", is)
}

// TestDraining: a target that leaves is gone once nothing is under way there, and what is under way ends well.
func TestDraining(t *testing.T) {
	w := newWorld(t)
	port := freePort(t)
	_, group := w.web("web", port)
	w.process("one", t.TempDir())
	begun, end := make(chan struct{}), make(chan struct{})
	slow := w.target(func(out http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(begun)
			<-end
		}
		io.WriteString(out, "slow") //nolint:errcheck // a test
	})
	w.register(group, slow)
	w.eventually("the target is healthy", func() bool { return w.state(group, slow) == types.TargetHealthStateEnumHealthy })
	answer := make(chan string)
	go func() { answer <- get(fmt.Sprintf("127.0.0.1:%d/slow", port)) }()
	<-begun
	other := w.target(says("other"))
	w.register(group, other)
	w.eventually("the other is healthy", func() bool { return w.state(group, other) == types.TargetHealthStateEnumHealthy })
	w.deregister(group, slow)
	w.eventually("nothing new comes to it", func() bool {
		for range 10 {
			if get(fmt.Sprintf("127.0.0.1:%d/", port)) != "other" {
				return false
			}
		}
		return true
	})
	if s := w.state(group, slow); s != types.TargetHealthStateEnumDraining {
		t.Error(s)
	}
	close(end)
	if got := <-answer; got != "slow" {
		t.Error(got)
	}
	w.eventually("it's gone", func() bool { return w.state(group, slow) == "" })
}

// TestWhenTimeIsOver: a target goes once the processes have cut what was under way there, and without their word a little later.
func TestWhenTimeIsOver(t *testing.T) {
	over := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	row := &state.Target{Group: "g", ID: "a", Port: 80, Draining: &over}
	says := func(drained bool) []map[report.Key]report.Target {
		one := report.Target{Group: "g", ID: "a", Port: 80, Drained: drained}
		return []map[report.Key]report.Target{{one.Key(): one}}
	}
	for _, c := range []struct {
		name  string
		after time.Duration
		heard settled
		want  bool
	}{
		{"something is under way", -time.Second, settled{upToDate: says(false)}, false},
		{"nothing is", -time.Second, settled{upToDate: says(true)}, true},
		{"it isn't cut yet", time.Second, settled{upToDate: says(false)}, false},
		{"it isn't known yet", time.Second, settled{upToDate: says(true), behind: true}, false},
		{"nobody is there", -time.Second, settled{}, false},
		{"nobody is there in time", 0, settled{}, true},
		{"it's not cut", cutTime, settled{upToDate: says(false)}, true},
		{"it's never known", cutTime, settled{behind: true}, true},
	} {
		c.heard.now = over.Add(c.after)
		if got := c.heard.hasDrained(row); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// TestPorts: a listener whose port is another's gets one of the range, keeps it, and the row of its process says where it is.
func TestPorts(t *testing.T) {
	w := newWorld(t)
	port := freePort(t)
	first, group := w.web("first", port)
	second, _ := w.web("second", port)
	dir := t.TempDir()
	stop := w.process("one", dir)
	a := w.target(says("a"))
	w.register(group, a)
	w.eventually("the target is healthy", func() bool { return w.state(group, a) == types.TargetHealthStateEnumHealthy })
	addresses := func() (one, two string) {
		row := w.store.View().Balancers.Get("one")
		if row == nil {
			return "", ""
		}
		return row.Addresses[*first], row.Addresses[*second]
	}
	var one, two string
	w.eventually("both have addresses", func() bool {
		one, two = addresses()
		return one != "" && two != ""
	})
	asked := fmt.Sprintf("127.0.0.1:%d", port)
	if one == two || one != asked && two != asked {
		t.Fatal(one, two)
	}
	stop()
	w.process("one", dir)
	w.eventually("it's back", func() bool { return get(one) == "a" })
	if again, another := addresses(); again != one || another != two {
		t.Error(again, another)
	}
}

// TestAccessLog: a process logs the requests of a load balancer whose log is switched on, also those that it gets while the control plane is
// away, and hands them on when it logs no more.
func TestAccessLog(t *testing.T) {
	w := newWorld(t)
	port := freePort(t)
	_, group := w.web("web", port)
	set := func(enabled string) {
		b := w.store.View().LoadBalancerNamed("web")
		out, err := w.ModifyLoadBalancerAttributes(t.Context(), &api.ModifyLoadBalancerAttributesInput{
			LoadBalancerArn: b.LoadBalancerArn,
			Attributes: []types.LoadBalancerAttribute{
				{Key: aws.String("access_logs.s3.enabled"), Value: &enabled},
				{Key: aws.String("access_logs.s3.bucket"), Value: aws.String("logs")},
				{Key: aws.String("access_logs.s3.prefix"), Value: aws.String("a")},
			},
		})
		must(w, out, err)
	}
	dir := t.TempDir()
	stop := w.process("one", dir)
	a := w.target(says("a"))
	w.register(group, a)
	w.eventually("the target is healthy", func() bool { return w.state(group, a) == types.TargetHealthStateEnumHealthy })
	address := fmt.Sprint("127.0.0.1:", port)
	get(address + "/before")
	set("true")
	w.eventually("the process knows", func() bool {
		w.loop.mu.Lock()
		defer w.loop.mu.Unlock()
		return len(w.loop.current.AccessLogs) == 1 && w.loop.processes["one"].version == w.loop.current.Version
	})
	get(address + "/first")
	w.set(true)
	stop()
	stop = w.process("one", dir)
	w.eventually("it's back", func() bool { return get(address+"/second") == "a" })
	w.set(false)
	set("false")
	key := regexp.MustCompile(`^logs/a/AWSLogs/000000000000/elasticloadbalancing/us-east-1/\d{4}/\d\d/\d\d/000000000000_elasticloadbalancing_us-east-1_` +
		`app\.web\.[0-9a-f]{16}_\d{8}T\d{4}Z_127\.000\.000\.001_[0-9a-z]{8}\.log\.gz$`)
	var text string
	w.eventually("both parts of the log", func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		text = ""
		for name, data := range w.logs {
			if strings.HasSuffix(name, "/ELBAccessLogTestFile") {
				continue
			}
			z, err := gzip.NewReader(bytes.NewReader(data))
			if err != nil || !key.MatchString(name) {
				t.Fatal(name, err)
			}
			part, _ := io.ReadAll(z)
			text += string(part)
		}
		return strings.Contains(text, "/first HTTP/1.1") && strings.Contains(text, "/second HTTP/1.1")
	})
	stop()
	if w.logs["logs/a/AWSLogs/000000000000/ELBAccessLogTestFile"] == nil || strings.Contains(text, "/before") {
		t.Error(text)
	}
}

// TestWhoIsLost: a process that is silent counts no more; one that comes back does.
func TestWhoIsLost(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store := statetest.Open(t)
	l := New(store, Options{Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)})
	step := func() {
		t.Helper()
		if err := l.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	err := store.Update(t.Context(), func(tx *state.Tx) error {
		tx.TargetGroups.Put(&state.TargetGroup{TargetGroup: types.TargetGroup{TargetGroupArn: aws.String("g"), Protocol: "HTTP", TargetType: "ip"}})
		tx.RegisterTarget(state.Target{Group: "g", ID: "10.0.0.1", Port: 80})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	step()
	tell := func(id string, s routing.State) {
		t.Helper()
		r := report.Report{Balancer: id, Version: l.current.Version, Targets: []report.Target{
			{Group: "g", ID: "10.0.0.1", Port: 80, Health: routing.Health{State: s}},
		}}
		if err := l.Take(t.Context(), r, ""); err != nil {
			t.Fatal(err)
		}
	}
	health := func() types.TargetHealthStateEnum {
		for row := range store.View().Targets.All() {
			if row.Health != nil {
				return row.Health.State
			}
		}
		return ""
	}
	tell("a", routing.Healthy)
	tell("b", routing.Unhealthy)
	if h := health(); h != "healthy" {
		t.Error("they disagree, and it is", h)
	}
	now = now.Add(lost + time.Second)
	tell("b", routing.Unhealthy)
	if h := health(); h != "unhealthy" || store.View().Balancers.Get("a").Lost == nil {
		t.Error("a is lost, and it is", h)
	}
	tell("a", routing.Healthy)
	if store.View().Balancers.Get("a").Lost != nil {
		t.Error("it's back")
	}
	now = now.Add(lost + time.Second)
	step()
	if n := len(l.processes); n != 2 {
		t.Errorf("%d processes, while two are shown as lost", n)
	}
	err = store.Update(t.Context(), func(tx *state.Tx) error {
		tx.Balancers.Delete("a") // as the sweeper does
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	step()
	if l.processes["a"] != nil || l.processes["b"] == nil {
		t.Error("it's not forgotten: ", l.processes)
	}
}

// TestWhoMayAsk: strangers, tasks and users get nothing, and nodes no private keys.
func TestWhoMayAsk(t *testing.T) {
	store := statetest.Open(t)
	l := New(store, Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	l.set(nil, routing.Balancers{Balancers: []routing.Balancer{{ARN: "b", Listeners: []routing.Listener{
		{ARN: "http"}, {ARN: "https", Certificates: []routing.Certificate{{PrivateKey: "secret"}}},
	}}}}, nil, nil)
	for _, c := range []struct {
		who      string
		by       call.Call
		code     int
		mentions bool
	}{
		{"the owner", call.Call{}, 200, true},
		{"a node", call.Call{Identity: call.Identity{Node: true, Principal: "arn:aws:iam::000000000000:user/node/x"}}, 200, false},
		{"a user", call.Call{Identity: call.Identity{Principal: "arn:aws:iam::000000000000:user/x"}}, 403, false},
	} {
		handlers := l.Handlers(signedBy(c.by))
		r := httptest.NewRequest(http.MethodPost, report.ConfigurationPath, bytes.NewReader([]byte("{}")))
		r.Header.Set("Content-Type", "application/json")
		out := httptest.NewRecorder()
		handlers[report.ConfigurationPath].ServeHTTP(out, r)
		if out.Code != c.code || bytes.Contains(out.Body.Bytes(), []byte("secret")) != c.mentions {
			t.Errorf("%s: %d %s", c.who, out.Code, out.Body)
		}
	}
	if len(l.current.Balancers.Balancers[0].Listeners) != 2 {
		t.Error("a node's answer has changed the owner's")
	}
}

// TestNodesReportForTheirOwn: a node's key reports for the processes that began with it, of which there are few. What is over is forgotten.
func TestNodesReportForTheirOwn(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	store := statetest.Open(t)
	l := New(store, Options{Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler)})
	tell := func(by, id string) int {
		who := call.Call{}
		if by != "" {
			who.Identity = call.Identity{Node: true, Principal: by}
		}
		r := httptest.NewRequest(http.MethodPost, report.ReportPath, strings.NewReader(`{"Balancer": "`+id+`"}`))
		r.Header.Set("Content-Type", "application/json")
		out := httptest.NewRecorder()
		l.Handlers(signedBy(who))[report.ReportPath].ServeHTTP(out, r)
		return out.Code
	}
	for _, c := range []struct {
		by, id string
		code   int
	}{
		{"", "owner's", 200},
		{"node-1", "owner's", 403},
		{"node-1", "its own", 200},
		{"node-1", "its own", 200},
		{"node-2", "its own", 403},
		{"", "its own", 200},
		{"node-1", "its own", 403},
	} {
		if code := tell(c.by, c.id); code != c.code {
			t.Errorf("%q reports for %s: %d, want %d", c.by, c.id, code, c.code)
		}
	}
	for i := range maxOfNode + 1 {
		if code := tell("node-1", fmt.Sprint(i)); (code == 200) != (i < maxOfNode) {
			t.Errorf("process %d of a node: %d", i, code)
		}
	}
	now = now.Add(lost + time.Second)
	for range 2 {
		if err := l.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if code := tell("node-2", "owner's"); code != 200 {
		t.Errorf("a process that is lost can't come back with another key: %d", code)
	}
	statetest.Update(t, store, func(tx *state.Tx) {
		for row := range tx.Balancers.All() {
			tx.Balancers.Delete(row.ID)
		}
	})
	now = now.Add(lost + time.Second)
	if err := l.Step(t.Context()); err != nil || len(l.processes) != 0 {
		t.Errorf("%d processes that are over are remembered, %v", len(l.processes), err)
	}
}

// TestBodiesOfStrangers: of a request that nobody has signed nothing is read, and little of one whose signature can't be checked without it.
func TestBodiesOfStrangers(t *testing.T) {
	l := New(statetest.Open(t), Options{Now: time.Now, Log: slog.New(slog.DiscardHandler)})
	for _, c := range []struct {
		whole  bool
		refuse error
		size   int
		code   int
		read   bool
	}{
		{refuse: errors.New("no"), size: 100, code: 403},
		{size: maxUnchecked, code: 400, read: true},
		{size: maxUnchecked + 1, code: 413, read: true},
		{whole: true, size: maxUnchecked + 1, code: 400, read: true},
	} {
		handlers := l.Handlers(func(*http.Request) (func([]byte) (call.Call, error), bool, error) {
			return func([]byte) (call.Call, error) { return call.Call{}, nil }, c.whole, c.refuse
		})
		body := bytes.NewReader(bytes.Repeat([]byte("x"), c.size)) // which is no JSON
		r := httptest.NewRequest(http.MethodPost, report.ReportPath, body)
		r.Header.Set("Content-Type", "application/json")
		out := httptest.NewRecorder()
		handlers[report.ReportPath].ServeHTTP(out, r)
		if read := body.Len() < c.size; out.Code != c.code || read != c.read {
			t.Errorf("%+v: %d, read %v", c, out.Code, read)
		}
	}
}
