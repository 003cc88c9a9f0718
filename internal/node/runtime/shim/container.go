package shim

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/runtime"
	"github.com/pintle/pintle/internal/node/runtime/shim/program"
)

// LostCode is the exit code of a container whose shim was killed, since nobody knows the real one.
const LostCode = program.LostCode

const lostReason = "the process that watched over the container was killed"

// Wait blocks until the container in dir has ended. If its shim was killed, Wait calls lost to kill what the shim left behind, and writes
// the container's end in the shim's place.
func Wait(ctx context.Context, dir string, lost func(State)) (runtime.Exit, error) {
	if err := waitForEnd(ctx, dir); err != nil {
		return runtime.Exit{}, err
	}
	st, started, err := ReadState(dir)
	switch {
	case isDamage(err): // and the shim was killed, else it had written it anew
		return runtime.Exit{Code: LostCode, FinishedAt: time.Now().UTC(), Error: err.Error()}, nil
	case err != nil:
		return runtime.Exit{}, err
	case !started:
		return runtime.Exit{}, errors.New("the container was never started")
	case !st.Ended:
		lost(st)
		st.Ended = true
		st.ExitCode = LostCode
		st.FinishedAt = time.Now().UTC()
		st.Error = lostReason
		if err := file.WriteJSON(filepath.Join(dir, program.StateFile), st, true); err != nil { // whoever waits next writes it
			slog.Warn("cannot write a container's end", "container", dir, "error", err)
		}
	}
	return st.Exit(), nil
}

// Exit returns how the container ended.
func (st State) Exit() runtime.Exit {
	return runtime.Exit{Code: st.ExitCode, FinishedAt: st.FinishedAt, Error: st.Error}
}

// Revive forgets that the container in dir has run and ended at this time, so that Start starts it again. prepare makes ready what it needs,
// and may be repeated. A container that has been started since then is left as it is.
func Revive(dir string, ended time.Time, prepare func() error) error {
	st, started, err := ReadState(dir)
	if err != nil || started && !(st.Ended && st.FinishedAt.Equal(ended)) {
		return err
	}
	if err := prepare(); err != nil || !started {
		return err
	}
	unlock, err := lock(dir) // its shim has written the end, and may not have ended itself
	if err != nil {
		return err
	}
	defer unlock()
	if err := os.Remove(filepath.Join(dir, program.StateFile)); err != nil {
		return err
	}
	return file.SyncDir(dir)
}

// lock waits until no shim watches over the container in dir, and keeps others from it until unlock is called.
func lock(dir string) (unlock func() error, err error) {
	f, err := os.OpenFile(filepath.Join(dir, program.LockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f.Close, nil
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

// Status returns the status of the container in dir. It's Exited once its shim has written everything down, or is gone.
func Status(dir string) (runtime.Status, State, error) {
	st, started, err := ReadState(dir)
	switch {
	case isDamage(err) && !isGone(dir):
		return runtime.Running, State{}, nil // its shim writes it anew at the end
	case isDamage(err):
		return runtime.Exited, State{ExitCode: LostCode, Error: err.Error()}, nil
	case err != nil:
		return "", st, err
	case !started:
		return runtime.Created, st, nil
	case st.Ended:
		return runtime.Exited, st, nil
	case !isGone(dir):
		return runtime.Running, st, nil
	}
	st, _, err = ReadState(dir) // again, since the shim may have written the end meanwhile
	if !st.Ended {
		st.ExitCode = LostCode
		st.Error = lostReason
	}
	return runtime.Exited, st, err
}
