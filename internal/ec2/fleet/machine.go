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

// Order is what Static says to a machine, to `pintle machine` there, on its standard input.
type Order struct {
	Machine
	// Env is the agent's: its credentials, which do not belong on a command line.
	Env []string `json:"env,omitempty"`
}

// instanceID is what an instance's id looks like. It is a directory's name, too, which is removed with all that is in it.
var instanceID = regexp.MustCompile(`^i-[0-9A-Za-z]+$`)

// Obey is the machine's end of Static: it does what an order says on a machine that is one instance at a time. The machine
// knows best whether it is: what it says holds. The answer is that of Command's verb.
func (l *Local) Obey(ctx context.Context, verb string, o Order) (answer any, err error) {
	if verb != "list" && !instanceID.MatchString(o.InstanceID) {
		return nil, fmt.Errorf("instanceId %q must be that of an instance", o.InstanceID)
	}
	if err := os.MkdirAll(l.opts.Dir, 0o700); err != nil {
		return nil, err
	}
	// An order before this one may still be carried out: its connection broke, and the control plane has come back.
	var lock *os.File
	until(ctx, answers, func() bool {
		lock, err = file.Lock(filepath.Join(l.opts.Dir, "machine.lock"))
		return !errors.Is(err, file.ErrLocked)
	})
	if err != nil {
		return nil, err
	}
	defer lock.Close() //nolint:errcheck // it ends with the process
	switch verb {
	case "launch":
		return nil, l.launchAlone(ctx, o.Machine)
	case "terminate":
		return nil, l.Terminate(ctx, o.InstanceID)
	}
	ids, err := l.List(ctx)
	ids = append([]string{}, ids...) // none is an answer, too
	return listed{&ids}, err
}

// launchAlone launches an instance once there is no other. One that the same control plane has given up here is ended;
// another's is let be.
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
