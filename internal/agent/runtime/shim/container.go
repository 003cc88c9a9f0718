package shim

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"github.com/pintle/pintle/internal/agent/runtime"
)

// LostCode is the exit code of a container whose shim was killed: nobody knows the true one.
const LostCode = 137

// Wait blocks until the container in dir has ended. Where its shim was killed, lost is called once to
// end what the shim has left behind.
func Wait(ctx context.Context, dir string, lost func(State)) (runtime.Exit, error) {
	if err := waitForEnd(ctx, dir); err != nil {
		return runtime.Exit{}, err
	}
	st, started, err := ReadState(dir)
	switch {
	case err != nil:
		return runtime.Exit{}, err
	case !started:
		return runtime.Exit{}, errors.New("the container was never started")
	case !st.Ended:
		lost(st)
		return runtime.Exit{Code: LostCode, FinishedAt: time.Now().UTC(), Error: "the process that watched over the container was killed"}, nil
	}
	return runtime.Exit{Code: st.ExitCode, FinishedAt: st.FinishedAt}, nil
}

// waitForEnd blocks until the shim is gone.
func waitForEnd(ctx context.Context, dir string) error {
	alive, err := Alive(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil // never started
	}
	if err != nil {
		return err
	}
	defer alive.Close()
	stop := context.AfterFunc(ctx, func() { alive.Close() })
	defer stop()
	_, err = alive.Read(make([]byte, 1))
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

// Status tells where the container in dir is in its life. It is Exited once its shim has written
// down everything, or is gone.
func Status(dir string) (runtime.Status, State, error) {
	st, started, err := ReadState(dir)
	switch {
	case err != nil:
		return "", st, err
	case !started:
		return runtime.Created, st, nil
	case st.Ended || gone(dir):
		return runtime.Exited, st, nil
	}
	return runtime.Running, st, nil
}
