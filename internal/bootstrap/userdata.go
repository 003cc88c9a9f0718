package bootstrap

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"mime"
	"mime/multipart"
	"net/mail"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// UserData is an instance's user data, and how it's run.
type UserData struct {
	Text    []byte
	Dir     string // the instance's: the scripts, their output in user-data.log, and the mark that they have run
	Program string // the pintle binary, which cfn-init and cfn-signal are
	Relay   Relay  // whom those two ask
	// Credentials returns those of the instance's role, or nil if it has none. Nil gives the scripts none.
	Credentials func(ctx context.Context) (*Credentials, error)
	Env         []string // the scripts' environment, besides PATH, HOME, and what the relay needs
	Log         *slog.Logger
}

const (
	doneFile   = "user-data.done"
	outputFile = "user-data.log"
)

// Run runs the scripts, once in an instance's life, in their order. As on EC2, a script that fails keeps neither the next one nor the agent
// from starting: it's in the log. What isn't a script is not run, and the log says so. An error means that the rest was not run.
func (u UserData) Run(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(u.Dir, doneFile)); err == nil || len(u.Text) == 0 {
		return nil
	}
	if err := u.links(); err != nil {
		return err
	}
	socket, stop, err := u.Relay.Serve()
	if err != nil {
		return err
	}
	defer stop()
	role, stopRole, err := u.serveRole(ctx)
	if err != nil {
		return err
	}
	defer stopRole()
	u.Env = slices.Concat([]string{SocketVariable + "=" + socket, InstanceVariable + "=" + u.Relay.Instance}, role, u.Env)
	output, err := os.OpenFile(filepath.Join(u.Dir, outputFile), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer output.Close() //nolint:errcheck // the scripts have written it
	all, err := parts(u.Text)
	if err != nil {
		u.Log.Warn("cannot read the instance's user data, which is not run", "error", err)
	}
	for i, p := range all {
		if !p.isScript() {
			u.Log.Warn("part of the user data is no script and is not run", "part", i+1, "kind", p.kind)
			continue
		}
		switch err := u.script(ctx, i, p.text, output); {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			u.Log.Warn("a script of the user data failed", "part", i+1, "error", err, "output", output.Name())
		default:
			u.Log.Info("a script of the user data has run", "part", i+1)
		}
	}
	return os.WriteFile(filepath.Join(u.Dir, doneFile), nil, 0o600)
}

func (u UserData) bin() string { return filepath.Join(u.Dir, "bin") }

// links makes the program cfn-init and cfn-signal.
func (u UserData) links() error {
	if err := os.MkdirAll(u.bin(), 0o700); err != nil {
		return err
	}
	for _, name := range []string{"cfn-init", "cfn-signal", "pintle"} {
		if _, err := link(u.Program, filepath.Join(u.bin(), name)); err != nil {
			return err
		}
	}
	return nil
}

// awsBin is where images for EC2 have cfn-init and cfn-signal. Here they are in the PATH.
const awsBin = "/opt/aws/bin/cfn-"

// script runs a script to its end, with all that it has started when ctx ends.
func (u UserData) script(ctx context.Context, number int, text []byte, output *os.File) error {
	path := filepath.Join(u.Dir, fmt.Sprintf("user-data-%d", number+1))
	text = bytes.ReplaceAll(text, []byte(awsBin), []byte("cfn-"))
	if err := os.WriteFile(path, text, 0o700); err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, path)
	cmd.Dir = "/"
	cmd.Env = append([]string{
		"PATH=" + u.bin() + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
		"HOME=" + os.Getenv("HOME"),
	}, u.Env...)
	cmd.Stdout = output
	cmd.Stderr = output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) { // what it leaves running may hold its output
		return nil
	}
	return err
}

// part is a part of user data.
type part struct {
	kind string // a media type
	text []byte
}

const (
	shellScript = "text/x-shellscript"
	bootHook    = "text/cloud-boothook"
)

func (p part) isScript() bool { return p.kind == shellScript || p.kind == bootHook }

// maxText is the most bytes of user data once inflated; EC2 takes 16 KB.
const maxText = 1 << 20

// parts splits user data as cloud-init does: compressed or not, a single part or a MIME message of several.
func parts(text []byte) ([]part, error) {
	if bytes.HasPrefix(text, []byte("\x1f\x8b")) {
		r, err := gzip.NewReader(bytes.NewReader(text))
		if err != nil {
			return nil, err
		}
		if text, err = io.ReadAll(io.LimitReader(r, maxText)); err != nil {
			return nil, err
		}
	}
	for prefix, kind := range map[string]string{
		"#!": shellScript, "#cloud-boothook": bootHook, "#cloud-config": "text/cloud-config", "#include": "text/x-include-url",
	} {
		if bytes.HasPrefix(text, []byte(prefix)) {
			return []part{{kind, text}}, nil
		}
	}
	message, err := mail.ReadMessage(bytes.NewReader(text))
	if err != nil {
		return []part{{"text/plain", text}}, nil
	}
	kind, parameters, err := mime.ParseMediaType(message.Header.Get("Content-Type"))
	if err != nil || !strings.HasPrefix(kind, "multipart/") {
		return []part{{"text/plain", text}}, nil
	}
	return partsOf(multipart.NewReader(message.Body, parameters["boundary"]))
}

// partsOf reads the parts of a MIME message.
func partsOf(r *multipart.Reader) (all []part, err error) {
	for {
		p, err := r.NextPart()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		text, err := io.ReadAll(io.LimitReader(p, maxText))
		if err != nil {
			return all, err
		}
		kind, _, err := mime.ParseMediaType(p.Header.Get("Content-Type"))
		if err != nil {
			kind = "text/plain"
		}
		all = append(all, part{kind, text})
	}
}
