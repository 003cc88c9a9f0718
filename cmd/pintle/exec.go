package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/spf13/cobra"

	"github.com/pintle/pintle/internal/datachannel"
	"github.com/pintle/pintle/internal/datachannel/client"
	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/runtime/terminal"
	"github.com/pintle/pintle/internal/shellword"
)

type execCmd struct {
	clientFlags
	Container string
	Task      string
	Command   []string
}

func (c *execCmd) define(f flags) {
	c.clientFlags.define(f)
	f.StringVarP(&c.Container, "container", "c", "", "The container, if the task has several.")
}

func (c *execCmd) verb() *cobra.Command {
	cmd := newVerb("exec [flags] TASK [-- CMD…]", "Run a command in a task's container, at a terminal, and exit with its code.", c.arguments, c.Run)
	cmd.Long = "The command is a shell (sh) if none is given. It needs no plugin. The task must have been started with execute command enabled:\n" +
		"aws ecs run-task --enable-execute-command, or a service with it. If pintle's input ends, ctrl-D is typed."
	f := flags{cmd.Flags()}
	c.define(f)
	return cmd
}

// arguments takes the task and the command.
func (c *execCmd) arguments(_ *cobra.Command, args []string) error {
	if len(args) == 0 {
		return errors.New("expected a task, by id or ARN")
	}
	c.Task = args[0]
	if c.Command = args[1:]; len(c.Command) == 0 {
		c.Command = []string{"sh"}
	}
	return nil
}

// Run begins a session and is its terminal.
func (c *execCmd) Run(ctx context.Context) error {
	if err := checkTaskID(c.Task); err != nil {
		return err
	}
	config, err := awsConfig(c.Endpoint)
	if err != nil {
		return err
	}
	in := &awsecs.ExecuteCommandInput{Cluster: &c.Cluster, Task: &c.Task, Command: aws.String(commandLine(c.Command)), Interactive: true}
	if c.Container != "" {
		in.Container = &c.Container
	}
	cl := clients{ecs: awsecs.NewFromConfig(config)}
	out, err := cl.ecs.ExecuteCommand(ctx, in)
	if _, is := errors.AsType[*types.InvalidParameterException](err); is { // of the task, or of the container
		if _, missing := cl.describe(ctx, c.Cluster, c.Task); errors.As(missing, new(noTask)) {
			return missing
		}
	}
	if err != nil {
		return err
	}
	end, err := attach(ctx, config, out)
	switch {
	case err != nil:
		return err
	case end.Output != "":
		return errors.New(end.Output)
	case end.ExitCode != nil && *end.ExitCode != 0:
		return exitCode(*end.ExitCode)
	}
	return nil
}

// commandLine writes words so that they are split as they were.
func commandLine(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = shellword.Quote(w)
	}
	return strings.Join(quoted, " ")
}

// attach is the terminal of a session until that is over.
func attach(ctx context.Context, config aws.Config, out *awsecs.ExecuteCommandOutput) (end datachannel.End, err error) {
	sessions := ssm.NewFromConfig(config)
	s := client.Session{
		URL:   *out.Session.StreamUrl,
		Token: *out.Session.TokenValue,
		In:    io.MultiReader(os.Stdin, strings.NewReader("\x04")), // the end of the input is that of the command's
		Out:   os.Stdout,
		Resume: func(ctx context.Context) (string, error) {
			resumed, err := sessions.ResumeSession(ctx, &ssm.ResumeSessionInput{SessionId: out.Session.SessionId})
			if err != nil {
				return "", err
			}
			return aws.ToString(resumed.TokenValue), nil
		},
	}
	if c, ok := config.HTTPClient.(interface{ GetTransport() *http.Transport }); ok { // it may trust an authority of the control plane's own
		s.HTTP = &http.Client{Transport: c.GetTransport()}
	}
	size, isTerminal := terminal.SizeOf(os.Stdin)
	s.Size = datachannel.Size(size)
	if isTerminal {
		sizes, stop := watchSize(os.Stdin)
		defer stop()
		s.Sizes = sizes
		restore, err := terminal.Raw(os.Stdin)
		if err != nil {
			return end, fmt.Errorf("the terminal: %w", err)
		}
		defer restore()
	}
	end, err = client.Run(ctx, s)
	if ctx.Err() != nil { // or the command would go on until its node misses us
		sessions.TerminateSession(context.WithoutCancel(ctx), &ssm.TerminateSessionInput{SessionId: out.Session.SessionId}) //nolint:errcheck // as above
	}
	return end, err
}

// watchSize returns the sizes that a terminal changes to.
func watchSize(f *os.File) (<-chan datachannel.Size, func()) {
	changed := make(chan os.Signal, 1)
	signal.Notify(changed, syscall.SIGWINCH)
	sizes, done := make(chan datachannel.Size), make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-changed:
			}
			var size runtime.Size
			if size, _ = terminal.SizeOf(f); size == (runtime.Size{}) {
				continue
			}
			select {
			case sizes <- datachannel.Size(size):
			case <-done:
				return
			}
		}
	}()
	return sizes, func() { signal.Stop(changed); close(done) }
}
