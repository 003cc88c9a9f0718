package shim

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/runtime/shim/program"
)

// LostCode is the exit code of a container whose shim was killed: nobody knows the true one.
const LostCode = program.LostCode

const lostReason = "the process that watched over the container was killed"

// Wait blocks until the container in dir has ended. Where its shim was killed, lost is called to end
// what the shim has left behind, and the end is written down in the shim's place.
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
		st.Ended, st.ExitCode, st.FinishedAt, st.Error = true, LostCode, time.Now().UTC(), lostReason
		if err := file.WriteJSON(filepath.Join(dir, program.StateFile), st, true); err != nil {
			return runtime.Exit{}, err
		}
	}
	return st.Exit(), nil
}

// Exit tells how the container ended.
func (st State) Exit() runtime.Exit {
	return runtime.Exit{Code: st.ExitCode, FinishedAt: st.FinishedAt, Error: st.Error}
}

// waitForEnd blocks until the shim is gone.
func waitForEnd(ctx context.Context, dir string) error {
	alive, err := openAlive(dir)
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
	case st.Ended:
		return runtime.Exited, st, nil
	case !isGone(dir):
		return runtime.Running, st, nil
	}
	st, _, err = ReadState(dir) // again: the shim may have written the end down since
	if !st.Ended {
		st.ExitCode, st.Error = LostCode, lostReason
	}
	return runtime.Exited, st, err
}
