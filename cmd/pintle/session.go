package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/aws/aws-sdk-go-v2/service/cloudwatchlogs"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/pintle/pintle/internal/node"
	"github.com/pintle/pintle/internal/node/runtime/docker"
	"github.com/pintle/pintle/internal/node/runtime/oci"
	"github.com/pintle/pintle/internal/node/runtime/process"
	"github.com/pintle/pintle/internal/node/session"
)

// sessionVerb is how an agent starts the process of an execute-command session, also once another binary is in its place. It's no verb for
// people.
const sessionVerb = "execute-command-session"

// sessionProgram is the command line of a machine's sessions.
func (m machine) sessionProgram() []string {
	return []string{"/proc/self/exe", sessionVerb, m.runtime.Name(), m.containersAt}
}

// runSession carries out a session, with the arguments that sessionProgram gives it.
func runSession(args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) // the agent, who reads what we say, may have gone
	if err := attendSession(ctx, args); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func attendSession(ctx context.Context, args []string) error {
	if len(args) < 2 {
		return errors.New("it is started by the agent, not by hand")
	}
	in := json.NewDecoder(os.Stdin)
	var start session.Assignment
	if err := in.Decode(&start); err != nil {
		return fmt.Errorf("read what to do: %w", err)
	}
	config, authority, err := login{
		Endpoint:        start.Endpoint,
		Region:          start.Region,
		AccessKeyID:     start.Key.AccessKeyID,
		SecretAccessKey: start.Key.SecretAccessKey,
		SessionToken:    start.Key.SessionToken,
		CA:              start.Authority,
	}.agent()
	if err != nil {
		return err
	}
	rt, err := runtimeBeside(ctx, args[0], args[1])
	if err != nil {
		return err
	}
	node.RunSession(ctx, &start, in, node.SessionConfig{
		Runtime:     rt,
		ECS:         awsecs.NewFromConfig(config),
		Logs:        cloudwatchlogs.NewFromConfig(config),
		Transcripts: s3.NewFromConfig(config, func(o *s3.Options) { o.UsePathStyle = true }),
		Credentials: config.Credentials,
		TLS:         authority.TLS,
		Log:         newLogger(os.Stderr, slog.LevelWarn),
	})
	return nil
}

// runtimeBeside opens the runtime of an agent on this machine, by its name and where its containers are.
func runtimeBeside(ctx context.Context, name, at string) (node.SessionRuntime, error) {
	switch name {
	case "docker":
		return docker.New(ctx, at)
	case "oci":
		return oci.Beside(at)
	}
	return process.New(at, nil, nil)
}
