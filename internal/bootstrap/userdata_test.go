package bootstrap

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

const multipartMessage = `MIME-Version: 1.0
Content-Type: multipart/mixed; boundary="=="

--==
Content-Type: text/cloud-config; charset="us-ascii"

packages: [git]
--==
Content-Type: text/x-shellscript; charset="us-ascii"

#!/bin/sh
echo second
--==--
`

func zipped(t *testing.T, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestParts: user data are taken apart as cloud-init does it, and what is no script is told from what is.
func TestParts(t *testing.T) {
	for name, c := range map[string]struct {
		text []byte
		want string
	}{
		"a script":         {[]byte("#!/bin/bash -xe\ntrue\n"), "text/x-shellscript"},
		"a boot hook":      {[]byte("#cloud-boothook\n#!/bin/sh\n"), "text/cloud-boothook"},
		"cloud-config":     {[]byte("#cloud-config\npackages: []\n"), "text/cloud-config"},
		"an include":       {[]byte("#include\nhttps://example.com\n"), "text/x-include-url"},
		"anything else":    {[]byte("echo without a first line"), "text/plain"},
		"two lines":        {[]byte("a: b\n\nc\n"), "text/plain"},
		"a zipped script":  {zipped(t, "#!/bin/sh\n"), "text/x-shellscript"},
		"several parts":    {[]byte(multipartMessage), "text/cloud-config text/x-shellscript"},
		"a zipped message": {zipped(t, multipartMessage), "text/cloud-config text/x-shellscript"},
	} {
		all, err := parts(c.text)
		var kinds []string
		for _, p := range all {
			kinds = append(kinds, p.kind)
		}
		if got := strings.Join(kinds, " "); err != nil || got != c.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for name, text := range map[string]string{
		"no gzip":     "\x1f\x8bx",
		"no boundary": "Content-Type: multipart/mixed\n\nx",
	} {
		if all, err := parts([]byte(text)); err == nil {
			t.Errorf("%s: %v", name, all)
		}
	}
}

func userData(t *testing.T, text string) (u UserData, log *bytes.Buffer) {
	t.Helper()
	log = &bytes.Buffer{}
	return UserData{
		Text: []byte(text), Dir: t.TempDir(), Program: "/bin/echo", Env: []string{"WHO=i-1"}, Log: slog.New(slog.NewTextHandler(log, nil)),
	}, log
}

// TestRunsOnce: the scripts run once, with their own environment alone; cfn-signal is found wherever they look for it. A failure is told, and
// doesn't keep the machine from going on.
func TestRunsOnce(t *testing.T) {
	t.Setenv("AWS_SECRET_ACCESS_KEY", "the agent's")
	u, log := userData(t, "#!/bin/sh\necho $WHO ${AWS_SECRET_ACCESS_KEY:-none} $PWD\n/opt/aws/bin/cfn-signal --exit-code=$?\nexit 3\n")
	for range 2 {
		if err := u.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if b, err := os.ReadFile(filepath.Join(u.Dir, "user-data.log")); err != nil || string(b) != "i-1 none /\n--exit-code=0\n" {
		t.Errorf("%q, %v", b, err)
	}
	if said := log.String(); strings.Count(said, "exit status 3") != 1 {
		t.Errorf("it says %s", said)
	}
	other, log := userData(t, multipartMessage)
	if err := other.Run(t.Context()); err != nil || !strings.Contains(log.String(), "kind=text/cloud-config") {
		t.Error(err, log)
	}
}

// TestScriptIsEnded: a script ends with its machine, with what it has started, and is run again by the next agent.
func TestScriptIsEnded(t *testing.T) {
	u, _ := userData(t, "#!/bin/sh\nsleep 1000 &\necho $! > $PIDFILE\nwait\n")
	path := filepath.Join(u.Dir, "pid")
	u.Env = append(u.Env, "PIDFILE="+path)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- u.Run(ctx) }()
	pid := 0
	for pid == 0 {
		b, _ := os.ReadFile(path)
		pid, _ = strconv.Atoi(strings.TrimSpace(string(b)))
		time.Sleep(time.Millisecond)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for syscall.Kill(pid, 0) == nil && !isZombie(pid) {
		time.Sleep(time.Millisecond)
	}
	if _, err := os.Stat(filepath.Join(u.Dir, "user-data.done")); err == nil {
		t.Error("it counts as done")
	}
}

// isZombie reports whether a process has ended, and nobody has asked how.
func isZombie(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err != nil || strings.Contains(string(b), ") Z ")
}

// asked remembers what a relay asked.
type asked struct{ calls []string }

func (a *asked) Metadata(_ context.Context, stack, resource string) (string, error) {
	a.calls = append(a.calls, "metadata of "+stack+" "+resource)
	if resource == "none" {
		return "", errors.New("no such resource")
	}
	return `{"a":1}`, nil
}

func (a *asked) Signal(_ context.Context, stack, resource, id string, status types.ResourceSignalStatus) error {
	a.calls = append(a.calls, strings.Join([]string{string(status), stack, resource, id}, " "))
	return nil
}

// TestRelay: user data may ask about the instance's own stack alone, and signal with the instance's own id.
func TestRelay(t *testing.T) {
	const own = "arn:aws:cloudformation:us-east-1:000000000000:stack/web/5b2c"
	stacks := &asked{}
	socket, stop, err := Relay{Stacks: stacks, Stack: own, Instance: "i-1"}.Serve()
	if err != nil {
		t.Fatal(err)
	}
	at := At(socket)
	if got, err := at.Metadata(t.Context(), "web", "Group"); err != nil || got != `{"a":1}` {
		t.Error(got, err)
	}
	if err := at.Signal(t.Context(), own, "Group", "i-other", types.ResourceSignalStatusFailure); err != nil {
		t.Error(err)
	}
	if _, err := at.Metadata(t.Context(), "web", "none"); err == nil || err.Error() != "no such resource" {
		t.Error(err)
	}
	for _, other := range []string{"another", "", "stack", strings.Replace(own, "5b2c", "77", 1)} {
		if err := at.Signal(t.Context(), other, "Group", "i-1", types.ResourceSignalStatusSuccess); err == nil {
			t.Errorf("it signals to %q", other)
		}
	}
	if got := strings.Join(stacks.calls, "; "); got != "metadata of "+own+" Group; FAILURE "+own+" Group i-1; metadata of "+own+" none" {
		t.Error(got)
	}
	if none := (Relay{Instance: "i-1"}); none.isOwn("") || none.isOwn("x") {
		t.Error("an instance without a stack has one")
	}
	stop()
	if _, err := os.Stat(filepath.Dir(socket)); !errors.Is(err, os.ErrNotExist) {
		t.Error("the socket is left:", err)
	}
	if err := at.Signal(t.Context(), "web", "Group", "", types.ResourceSignalStatusSuccess); err == nil {
		t.Error("it answers after its end")
	}
}
