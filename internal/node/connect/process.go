package connect

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/node/connect/traffic"
)

// What a proxy is asked.
const (
	targetsPath = "/targets"
	countsPath  = "/counts"
	endPath     = "/end"
)

// nobody is the user that a proxy becomes: it needs nothing but its sockets.
const nobody = 65534

// Main is a proxy's process, with what startProcess gives it. It returns when it was told to end.
func Main() error {
	input, err := io.ReadAll(os.Stdin)
	if err != nil {
		return err
	}
	var i Instruction
	if err := json.Unmarshal(input, &i); err != nil {
		return err
	}
	if err := dropPrivileges(); err != nil {
		return err
	}
	const first = 3 // after the standard ones
	sockets := make([]*os.File, 1+len(i.Listeners))
	for n := range sockets {
		sockets[n] = os.NewFile(uintptr(first+n), "socket")
	}
	log := slog.New(slog.NewTextHandler(&boundedLog{file: os.Stderr}, nil))
	if i.Container != "" {
		log = log.With("container", i.Container)
	}
	return carry(&i, sockets, log)
}

// dropPrivileges makes the process one that may do nothing on the machine.
func dropPrivileges() error {
	if os.Getuid() != 0 {
		return nil
	}
	return errors.Join(
		syscall.Setgroups(nil),
		syscall.Setresgid(nobody, nobody, nobody),
		syscall.Setresuid(nobody, nobody, nobody),
		unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
	)
}

// carry carries traffic until it's told to end.
func carry(i *Instruction, sockets []*os.File, log *slog.Logger) error {
	listeners := make([]net.Listener, len(sockets))
	for n, f := range sockets {
		l, err := net.FileListener(f)
		if err != nil {
			return fmt.Errorf("socket %d: %w", n, err)
		}
		f.Close()
		listeners[n] = l
	}
	p := traffic.New(traffic.Options{Log: log})
	p.Set(i.Targets)
	var serving sync.WaitGroup
	for n, what := range i.Listeners {
		serve := p.Open(listeners[1+n], what)
		log.Info("listening", "name", what.Name, "protocol", cmp.Or(what.Protocol, "tcp"))
		serving.Go(func() {
			if err := serve(); err != nil && !errors.Is(err, http.ErrServerClosed) {
				log.Error("a listener has ended", "name", what.Name, "error", err)
			}
		})
	}
	err := answer(p, listeners[0])
	err = errors.Join(err, p.Close())
	serving.Wait()
	return err
}

// answer answers the agent's questions until it says that it's over.
func answer(p *traffic.Proxy, l net.Listener) error {
	mux := http.NewServeMux()
	server := &http.Server{Handler: mux} //nolint:gosec // only the agent reaches it, and it keeps a connection open to see whether the process is there
	mux.HandleFunc("PUT "+targetsPath, func(w http.ResponseWriter, r *http.Request) {
		var targets map[string][]traffic.Target
		if err := json.NewDecoder(r.Body).Decode(&targets); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		p.Set(targets)
	})
	mux.HandleFunc("POST "+countsPath, func(w http.ResponseWriter, _ *http.Request) {
		json.NewEncoder(w).Encode(p.Counts()) //nolint:errcheck // the agent asks again
	})
	over := make(chan struct{})
	end := sync.OnceFunc(func() { close(over) })
	mux.HandleFunc("POST "+endPath, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusOK)
		http.NewResponseController(w).Flush() //nolint:errcheck // the agent sees the end, too
		end()
	})
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-over:
		return server.Close()
	}
}
