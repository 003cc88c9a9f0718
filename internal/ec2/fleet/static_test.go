package fleet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/shellword"
)

func TestReadPool(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pool.json")
	read := func(text string) ([]Host, error) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadPool(path, "us-east-1")
	}
	machine := func(fields string) string {
		return `{"machines":[{"name":"a","address":"a","instanceType":"g4dn.xlarge"},` +
			`{"name":"b","address":"ops@b:2222","instanceType":"g4dn.xlarge"` + fields + `}]}`
	}
	pool, err := read(machine(`,"availabilityZone":"us-east-1b","wake":["true"]`))
	if err != nil || len(pool) != 2 || pool[0].WakeSeconds != 30 || pool[1].WakeSeconds != 600 || pool[1].Program != "pintle" ||
		pool[1].Data == "" {
		t.Errorf("got %+v, %v", pool, err)
	}
	for _, c := range []struct {
		text string
		says string
	}{
		{`{`, "EOF"},
		{`{}`, "machines is empty"},
		{machine(``) + "x", "behind the object"},
		{machine(`,"colour":"red"`), "colour"},
		{machine(`,"name":"../b"`), "machines[1] (../b): name"},
		{machine(`,"name":"a"`), "name"},
		{machine(`,"address":"a"`), "address"},
		{machine(`,"address":"-oProxyCommand=x"`), "address"},
		{machine(`,"address":"b:99999999"`), "address"},
		{machine(`,"address":"ops@b c"`), "address"},
		{machine(`,"instanceType":"g4dn.huge"`), "instanceType"},
		{machine(`,"availabilityZone":"eu-west-1a"`), "availabilityZone"},
		{machine(`,"wake":["/no/such/program"]`), "wake"},
		{machine(`,"sleep":[""]`), "sleep"},
		{machine(`,"wakeSeconds":-1`), "wakeSeconds"},
		{machine(`,"wakeSeconds":86400`), "wakeSeconds"},
		{machine(`,"identityFile":"id"`), "identityFile"},
		{machine(`,"knownHostsFile":"/a b"`), "knownHostsFile"},
		{machine(`,"agent":["a\nb"]`), "agent"},
		{machine(`,"data":"../x"`), "data"},
		{machine(`,"data":"."`), "data"},
	} {
		if _, err := read(c.text); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want it to name %s", c.text, err, c.says)
		}
	}
}

// TestQuote checks that a shell reads back any words unchanged.
func TestQuote(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		words := rapid.SliceOfN(rapid.StringMatching(`[ -~äß'"$\x60\\;&|*~#\n]*`), 1, 5).Draw(r, "words")
		line := "printf '%s\\0'"
		for _, w := range words {
			line += " " + shellword.Quote(w)
		}
		out, err := exec.Command("sh", "-c", line).Output()
		if err != nil || string(out) != strings.Join(words, "\x00")+"\x00" {
			r.Fatalf("%q became %q, %v", words, out, err)
		}
	})
}

// yard is a pool whose machines are directories. ssh is a script that runs a machine's command right here, unless the
// machine is down. Wakes and sleeps are recorded in the file calls.
type yard struct {
	t   *testing.T
	dir string
	*Static
}

func newYard(t *testing.T, names ...string) *yard {
	y := &yard{t: t, dir: t.TempDir()}
	y.script("ssh", `while [ "$1" != -- ]; do shift; done
shift; host=$1; shift
if [ -e `+y.dir+`/down-$host ]; then echo "ssh: connect to host $host port 22: No route to host" >&2; exit 255; fi
exec sh -c "$*"
`)
	// Like pintle machine with its directory, it keeps a file for the machine's instance.
	y.script("pintle", `data=${3#--data=}; mkdir -p $data; id=$(sed 's/.*"instanceId":"\([^"]*\)".*/\1/')
case $2 in
launch) [ -e $data/broken ] && { echo no agent >&2; exit 1; }; touch $data/$id;;
terminate) touch $data/ending; while [ -e $data/slow ]; do sleep 0.02; done; rm -f $data/$id;;
list) cd $data; printf '{"instanceIds":['; s=; for f in i-*; do [ -e $f ] && printf '%s"%s"' "$s" "$f" && s=,; done; echo ']}';;
esac
`)
	y.script("wake", `echo wake $1 >> `+y.dir+`/calls; if [ -e `+y.dir+`/stuck-$1 ]; then echo no power >&2; exit 1; fi; rm -f `+
		y.dir+"/down-$1\n")
	y.script("sleep1", `echo sleep $1 >> `+y.dir+`/calls; touch `+y.dir+"/down-$1\n")
	t.Setenv("PATH", y.dir+":"+os.Getenv("PATH"))
	var pool []Host
	for _, name := range names {
		y.touch("down-" + name)
		h := Host{
			Name:         name,
			Address:      name,
			InstanceType: "g4dn.xlarge",
			Wake:         []string{"wake", name},
			Sleep:        []string{"sleep1", name},
			WakeSeconds:  60,
			Data:         filepath.Join(y.dir, "data-"+name),
		}
		if err := h.check("us-east-1", pool); err != nil {
			t.Fatal(err)
		}
		pool = append(pool, h)
	}
	y.restart(pool)
	return y
}

func (y *yard) script(name, text string) {
	if err := os.WriteFile(filepath.Join(y.dir, name), []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) touch(name string) {
	if err := os.MkdirAll(filepath.Dir(filepath.Join(y.dir, name)), 0o700); err != nil {
		y.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(y.dir, name), nil, 0o600); err != nil {
		y.t.Fatal(err)
	}
}

// restart continues with a new control plane, as if the old one had been killed.
func (y *yard) restart(pool []Host) {
	y.t.Helper()
	var err error
	if y.Static, err = NewStatic(StaticOptions{
		Pool: pool,
		Dir:  filepath.Join(y.dir, "claims"),
		Log:  slog.New(slog.DiscardHandler),
	}); err != nil {
		y.t.Fatal(err)
	}
}

func (y *yard) launch(id string) error {
	return y.Launch(y.t.Context(), Machine{InstanceID: id, InstanceType: "g4dn.xlarge", Zone: "us-east-1a"})
}

// are returns what the machines say they are.
func (y *yard) are() (out []string) {
	paths, _ := filepath.Glob(filepath.Join(y.dir, "data-*/i-*"))
	for _, path := range paths {
		out = append(out, strings.TrimPrefix(filepath.Base(filepath.Dir(path)), "data-")+" is "+filepath.Base(path))
	}
	return out
}

func (y *yard) want(what string, are ...string) {
	y.t.Helper()
	if got := y.are(); !slices.Equal(got, are) {
		y.t.Errorf("%s: %v, want %v", what, got, are)
	}
}

func (y *yard) calls() string {
	b, _ := os.ReadFile(filepath.Join(y.dir, "calls"))
	return strings.Join(strings.Split(strings.TrimSpace(string(b)), "\n"), ", ")
}

// must fails the test on an error.
func (y *yard) must(err error) {
	y.t.Helper()
	if err != nil {
		y.t.Fatal(err)
	}
}

func TestStatic(t *testing.T) {
	y := newYard(t, "mars", "venus")
	y.must(y.launch("i-1"))
	y.must(y.launch("i-2"))
	y.must(y.launch("i-2"))
	y.want("launched", "mars is i-1", "venus is i-2")
	err := y.launch("i-3")
	if !errors.Is(err, ErrCapacity) || !strings.Contains(err.Error(), "no free g4dn.xlarge in us-east-1a: 2 in use") {
		t.Errorf("a third one: %v", err)
	}

	y.restart(nil) // both are no longer in the pool, and stay what they are
	if ids, err := y.List(t.Context()); err != nil || fmt.Sprint(ids) != "[i-1 i-2]" {
		t.Errorf("the next control plane lists %v, %v", ids, err)
	}
	y.must(y.Terminate(t.Context(), "i-1"))
	y.must(y.Terminate(t.Context(), "i-1"))
	y.want("terminated", "venus is i-2")
	if err := y.launch("i-3"); !errors.Is(err, ErrCapacity) {
		t.Errorf("a machine that was taken out of the pool is taken: %v", err)
	}
	y.must(y.Terminate(t.Context(), "i-2"))
	y.want("all terminated")
	if got := y.calls(); got != "wake mars, wake venus, wake venus, sleep mars, sleep venus" {
		t.Errorf("they were woken and put to sleep: %s", got)
	}
	if left, err := filepath.Glob(filepath.Join(y.dir, "claims/*")); err != nil || len(left) != 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

// TestTakenAgain checks that an instance may get the machine on which it failed before, while its remains there are
// being ended, and that the machine stays its own.
func TestTakenAgain(t *testing.T) {
	y := newYard(t, "mars")
	pool := []Host{y.hosts[0].Host}
	pool[0].Sleep = nil
	y.restart(pool)
	y.touch("stuck-mars")
	if err := y.launch("i-1"); err == nil {
		t.Fatal("it was launched without power")
	}
	y.must(errors.Join(os.Remove(filepath.Join(y.dir, "stuck-mars")), os.Remove(filepath.Join(y.dir, "down-mars"))))
	y.touch("data-mars/slow")
	h := y.hosts[0]
	h.restsUntil = time.Time{} // its rest is over
	var both sync.WaitGroup
	both.Go(func() { y.look(t.Context(), h) })
	if !until(t.Context(), time.Minute, func() bool { _, err := os.Stat(filepath.Join(y.dir, "data-mars/ending")); return err == nil }) {
		t.Error("what is left is not ended")
	}
	both.Go(func() {
		if err := y.launch("i-1"); err != nil {
			t.Error(err)
		}
	})
	until(t.Context(), time.Minute, func() bool { ids, _ := y.List(t.Context()); return len(ids) == 1 })
	y.must(os.Remove(filepath.Join(y.dir, "data-mars/slow")))
	both.Wait()
	y.want("it is launched", "mars is i-1")
	if ids, err := y.List(t.Context()); err != nil || !slices.Equal(ids, []string{"i-1"}) {
		t.Errorf("the instances are %v, %v", ids, err)
	}
}

func TestZones(t *testing.T) {
	y := newYard(t, "mars", "venus")
	y.hosts[0].Zone = "us-east-1b"
	y.must(y.launch("i-1"))
	y.want("the one that stands in any zone", "venus is i-1")
	if err := y.launch("i-2"); !errors.Is(err, ErrCapacity) {
		t.Errorf("got %v", err)
	}
}

// TestMachineFails checks that another machine is used in place of a failed one, which is left out for longer each
// time, with a visible reason.
func TestMachineFails(t *testing.T) {
	y := newYard(t, "mars", "venus")
	y.touch("stuck-mars")
	if err := y.launch("i-1"); err == nil || !strings.Contains(err.Error(), "mars: wake: exit status 1: no power") {
		t.Errorf("got %v", err)
	}
	y.must(y.launch("i-1"))
	y.want("the other one", "venus is i-1")
	// Some of the 30 s may have passed.
	leftOut := regexp.MustCompile(`1 in use; left out for (30|[12]?[0-9])s is mars: wake: exit status 1: no power$`)
	if err := y.launch("i-2"); !errors.Is(err, ErrCapacity) || !leftOut.MatchString(err.Error()) {
		t.Errorf("got %v", err)
	}
	y.hosts[0].restsUntil = time.Time{} // its rest is over
	if err := y.launch("i-2"); err == nil || errors.Is(err, ErrCapacity) {
		t.Errorf("got %v", err)
	}
	if left := time.Until(y.hosts[0].restsUntil); left < 31*time.Second || left > time.Minute {
		t.Errorf("it is left out for %v more", left)
	}
	for n, want := range map[int]time.Duration{0: 30 * time.Second, 1: time.Minute, 5: 16 * time.Minute, 6: 30 * time.Minute,
		1000: 30 * time.Minute} {
		if got := restAfter(n); got != want {
			t.Errorf("after %d: %v, want %v", n, got, want)
		}
	}
}

// TestMachineGoesSilent checks that what was started on a machine that stopped answering is ended once it answers
// again, even by the next control plane. Until then its instance is elsewhere, and isn't ended with it.
func TestMachineGoesSilent(t *testing.T) {
	y := newYard(t, "mars", "venus")
	pool := []Host{y.hosts[0].Host, y.hosts[1].Host}
	for i := range pool {
		pool[i].Wake = nil
		pool[i].Sleep = nil
		pool[i].WakeSeconds = 1
	}
	y.restart(pool)
	os.Remove(filepath.Join(y.dir, "down-venus")) //nolint:errcheck // the test shows it
	y.touch("data-mars/i-1")                      // the agent was started, and the connection broke
	if err := y.launch("i-1"); err == nil || !strings.Contains(err.Error(), "mars: it has not answered within 1s: ssh: exit status 255") {
		t.Errorf("got %v", err)
	}
	y.restart(pool)
	y.must(y.launch("i-1"))
	y.want("elsewhere", "mars is i-1", "venus is i-1")
	os.Remove(filepath.Join(y.dir, "down-mars")) //nolint:errcheck // the test shows it
	y.look(t.Context(), y.hosts[0])
	y.look(t.Context(), y.hosts[1])
	y.want("once it answers", "venus is i-1")
	y.hosts[0].restsUntil = time.Time{} // its rest is over
	y.must(y.launch("i-2"))
	y.want("it is free again", "mars is i-2", "venus is i-1")
}

// TestMachineForgets checks that a reinstalled machine is no longer its instance.
func TestMachineForgets(t *testing.T) {
	y := newYard(t, "mars")
	y.must(y.launch("i-1"))
	y.touch("down-mars")
	y.look(t.Context(), y.hosts[0])
	if ids, _ := y.List(t.Context()); len(ids) != 1 {
		t.Errorf("it only does not answer, and is listed as %v", ids)
	}
	os.Remove(filepath.Join(y.dir, "down-mars")) //nolint:errcheck // the test shows it
	if err := os.RemoveAll(filepath.Join(y.dir, "data-mars")); err != nil {
		t.Fatal(err)
	}
	y.look(t.Context(), y.hosts[0])
	if ids, _ := y.List(t.Context()); len(ids) != 0 {
		t.Errorf("listed as %v", ids)
	}
	y.must(y.Terminate(t.Context(), "i-1"))
	if y.hosts[0].claim != nil {
		t.Error("it is not free")
	}
}

// TestCutOff checks that a launch keeps its machine when the control plane's end cuts it off.
func TestCutOff(t *testing.T) {
	y := newYard(t, "mars", "venus")
	y.script("wake", "sleep 60\n")
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	start := time.Now()
	if err := y.Launch(ctx, Machine{
		InstanceID:   "i-1",
		InstanceType: "g4dn.xlarge",
	}); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) > 50*time.Second {
		t.Errorf("got %v after %v", err, time.Since(start))
	}
	if h := y.hostOf("i-1"); h == nil || h.Name != "mars" || h.failures != 0 {
		t.Errorf("it has %+v", h)
	}
}

// TestObey checks the machine's end: it is one instance at a time, and leaves another control plane's instance alone.
func TestObey(t *testing.T) {
	agent := script(t, `while [ "$1" != --data ]; do shift; done
echo $$ > $2/agent.lock
trap 'exit 0' TERM
while :; do sleep 0.05 3>&-; done
`)
	dir := t.TempDir()
	obey := func(verb string, m Machine) (string, error) {
		l := NewLocal(LocalOptions{Program: agent, Dir: dir, Most: 1, Real: true, Log: slog.New(slog.DiscardHandler)})
		answer, err := l.Obey(t.Context(), verb, Order{Machine: m})
		b, _ := json.Marshal(answer)
		return string(b), err
	}
	list := func(want string) {
		t.Helper()
		if got, err := obey("list", Machine{}); err != nil || got != `{"instanceIds":`+want+`}` {
			t.Errorf("listed %s, %v, want %s", got, err, want)
		}
	}
	launch := func(id, endpoint string) error {
		_, err := obey("launch", Machine{InstanceID: id, Endpoint: endpoint})
		return err
	}
	before, err := file.Lock(filepath.Join(dir, "machine.lock"))
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(time.Second/2, func() { before.Close() }) //nolint:errcheck // the order before this one is done
	if err := errors.Join(launch("i-1", "http://a"), launch("i-1", "http://a")); err != nil {
		t.Fatal(err)
	}
	list(`["i-1"]`)
	if err := launch("i-2", "http://b"); err == nil ||
		!strings.Contains(err.Error(), "it is the instance i-1 of the control plane at http://a") {
		t.Errorf("another control plane takes it: %v", err)
	}
	if err := launch("i-3", "http://a"); err != nil {
		t.Error(err)
	}
	// Each would name more than an instance's directory.
	for _, id := range []string{"", ".", "i-", "../" + filepath.Base(dir), "i-/../i-3"} {
		for _, verb := range []string{"launch", "terminate"} {
			if _, err := obey(verb, Machine{
				InstanceID: id,
				Endpoint:   "http://a",
			}); err == nil || !strings.Contains(err.Error(), "instanceId") {
				t.Errorf("%s %q: %v", verb, id, err)
			}
		}
	}
	list(`["i-3"]`)
	if _, err := obey("terminate", Machine{InstanceID: "i-1"}); err != nil {
		t.Error(err)
	}
	list(`["i-3"]`)
	if _, err := obey("terminate", Machine{InstanceID: "i-3"}); err != nil {
		t.Error(err)
	}
	list(`[]`)
}

// TestUnfinishedClaims checks that a claim whose writing was cut off by a crash doesn't count, and isn't left behind
// forever.
func TestUnfinishedClaims(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, file.Unfinished+"1")
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NewStatic(StaticOptions{Dir: dir}); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("%s is left: %v", path, err)
	}
}
