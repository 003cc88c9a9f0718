package fleet

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"

	"github.com/pintle/pintle/internal/file"
)

// Order is what Static sends to `pintle machine` on a machine, on its standard input.
type Order struct {
	Machine
	// Env is the agent's environment: its credentials, which don't belong on a command line.
	Env []string `json:"env,omitempty"`
}

// instanceID matches an instance's id. The id is also the name of a directory that is removed with everything in it.
var instanceID = regexp.MustCompile(`^i-[0-9A-Za-z]+$`)

// Obey is the machine's end of Static. It carries out an order on a machine that is one instance at a time. The machine
// knows best whether it is an instance, so its word counts. The answer is that of Command's verb.
func (l *Local) Obey(ctx context.Context, verb string, o Order) (answer any, err error) {
	if verb != "list" && !instanceID.MatchString(o.InstanceID) {
		return nil, fmt.Errorf("instanceId %q must be that of an instance", o.InstanceID)
	}
	if err := os.MkdirAll(l.opts.Dir, 0o700); err != nil {
		return nil, err
	}
	// An earlier order may still be running: its connection broke, and the control plane has come back.
	var lock *os.File
	until(ctx, answerTimeout, func() bool {
		lock, err = file.Lock(filepath.Join(l.opts.Dir, "machine.lock"))
		return !errors.Is(err, file.ErrLocked)
	})
	if err != nil {
		return nil, err
	}
	defer lock.Close() //nolint:errcheck // it's released with the process
	switch verb {
	case "launch":
		return nil, l.launchAlone(ctx, o.Machine)
	case "terminate":
		return nil, l.Terminate(ctx, o.InstanceID)
	}
	ids, err := l.List(ctx)
	ids = append([]string{}, ids...) // an empty list is an answer, too
	return listed{&ids}, err
}

// launchAlone launches an instance once no other is left. It ends an instance that the same control plane gave up here,
// but not another control plane's.
func (l *Local) launchAlone(ctx context.Context, m Machine) error {
	ids, err := l.ids()
	if err != nil {
		return err
	}
	for _, id := range ids {
		if id == m.InstanceID {
			continue
		}
		other, err := l.machine(id)
		if err == nil && other.Endpoint != m.Endpoint {
			return fmt.Errorf("it is the instance %s of the control plane at %s", id, other.Endpoint)
		}
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err := l.Terminate(ctx, id); err != nil {
			return err
		}
	}
	return l.Launch(ctx, m)
}
