// Package function runs functions of AWS Lambda on a node. A task with a volume of Lambda's driver is an execution environment: its code is
// fetched from the control plane and laid down, the Lambda Runtime API is served to it alone, and what it says there is passed on. Where
// containers are plain processes, a small bootstrap and the machine's own Python or Node.js stand in for AWS's base images.
package function

import (
	"bytes"
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/netutil"
	"golang.org/x/sys/unix"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/node/engine"
	"github.com/pintle/pintle/internal/node/runtime"
)

// Call calls the control plane as the node.
type Call func(ctx context.Context, method, path string, header http.Header, body []byte) (*http.Response, error)

// Tasks looks up the node's tasks.
type Tasks interface {
	Task(arn string) (r *engine.Record, ok bool)
}

// Output has what containers have said, as each runtime.Runtime does.
type Output interface {
	Logs(ctx context.Context, id, cursor string, follow bool, emit func(runtime.Line) error) error
}

// Options configure a node's functions.
type Options struct {
	Dir    string // for code, and for the bootstraps
	Plain  bool   // whether containers are plain processes, which share the machine's files and its network
	Call   Call
	Output Output
	Disks  Disks // nil if environments' storage has no limits here
	Log    *slog.Logger
}

// Functions runs functions. Its methods may be called from any goroutine.
type Functions struct {
	opts  Options
	tasks Tasks

	mu       sync.Mutex
	fetching map[string]*sync.Mutex
	servers  map[string]server // of plain environments, by their tasks' ids
	tails    map[string]*tail
	using    map[string][]string // the names of the directories that tasks show, by their ids
	serving  sync.WaitGroup
	closed   bool
}

// beingMade begins the names of directories that are made or removed.
const beingMade = "making-"

//go:embed bootstrap.py
var bootstrapPython []byte

//go:embed bootstrap.mjs
var bootstrapNode []byte

// New lays the bootstraps down.
func New(o Options) (*Functions, error) {
	if o.Log == nil {
		o.Log = slog.Default()
	}
	left, _ := filepath.Glob(filepath.Join(o.Dir, "code", beingMade+"*")) //nolint:errcheck // the pattern is a good one
	for _, dir := range left {
		os.RemoveAll(dir) //nolint:errcheck // it's tried again
	}
	f := &Functions{
		opts: o, fetching: map[string]*sync.Mutex{}, servers: map[string]server{}, tails: map[string]*tail{}, using: map[string][]string{},
	}
	if err := os.MkdirAll(filepath.Join(o.Dir, "runtime"), 0o755); err != nil {
		return nil, err
	}
	for name, text := range map[string][]byte{"bootstrap.py": bootstrapPython, "bootstrap.mjs": bootstrapNode} {
		if err := os.WriteFile(f.bootstrap(name), text, 0o644); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Use has the functions look up tasks.
func (f *Functions) Use(tasks Tasks) { f.tasks = tasks }

func (f *Functions) bootstrap(name string) string { return filepath.Join(f.opts.Dir, "runtime", name) }

// IsFunction reports whether a volume is a function's, and so the task that has it an execution environment.
func IsFunction(v acs.Volume) bool {
	return v.DockerVolumeConfiguration != nil && v.DockerVolumeConfiguration.Driver == acs.FunctionDriver
}

// files returns the zip files that a volume shows, and what its directory is called.
func files(v acs.Volume) (all []string, name string) {
	o := v.DockerVolumeConfiguration.DriverOpts
	if layers := o[acs.FunctionLayers]; layers != "" {
		all = strings.Split(layers, ",")
	} else if o[acs.FunctionCode] != "" {
		all = []string{o[acs.FunctionCode]}
	}
	sum := sha256.Sum256([]byte(strings.Join(all, ",")))
	return all, hex.EncodeToString(sum[:])
}

// Path returns where a task's volume is.
func (f *Functions) Path(task string, v acs.Volume) string {
	if isStorage(v) {
		return f.storage(task)
	}
	_, name := files(v)
	return filepath.Join(f.opts.Dir, "code", name)
}

// Prepare lays down what a volume shows, unless another environment has had it laid down.
func (f *Functions) Prepare(ctx context.Context, task string, v acs.Volume) error {
	if isStorage(v) {
		return f.prepareStorage(task, v)
	}
	all, name := files(v)
	if len(all) == 0 {
		return nil
	}
	f.mu.Lock()
	lock := f.fetching[name]
	if lock == nil {
		lock = new(sync.Mutex)
		f.fetching[name] = lock
	}
	f.using[idOf(task)] = append(f.using[idOf(task)], name)
	f.mu.Unlock()
	lock.Lock()
	defer lock.Unlock()
	path := f.Path(task, v)
	if _, err := os.Stat(path); err == nil {
		return os.Chtimes(path, time.Now(), time.Now())
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	making, err := os.MkdirTemp(filepath.Dir(path), beingMade)
	if err != nil {
		return err
	}
	defer os.RemoveAll(making) //nolint:errcheck // it's gone if all went well
	if err := f.lay(ctx, task, all, making); err != nil {
		return err
	}
	if err := os.Chmod(making, 0o755); err != nil {
		return err
	}
	if err := syncAll(making); err != nil { // a power cut mustn't leave empty files that count as laid down
		return err
	}
	if err := os.Rename(making, path); err != nil {
		return err
	}
	f.prune(maxCode)
	return nil
}

// syncAll writes everything to the disk that a directory is on: one wait for however many files.
func syncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close() //nolint:errcheck // it's only read
	return unix.Syncfs(int(f.Fd()))
}

// lay lays down what is in zip files, the later over the earlier.
func (f *Functions) lay(ctx context.Context, task string, all []string, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close() //nolint:errcheck // nothing is written through it
	u := unpacking{root: root, bytes: maxUnzipped, files: maxFiles}
	for _, sha := range all {
		content, err := f.fetch(ctx, task, sha)
		if err != nil {
			return fmt.Errorf("fetch the function's code: %w", err)
		}
		if err := u.unzip(content); err != nil {
			return fmt.Errorf("unpack the function's code: %w", err)
		}
	}
	return nil
}

// fetch gets a zip file from the control plane. It's what was asked for if its hash is.
func (f *Functions) fetch(ctx context.Context, task, sha string) ([]byte, error) {
	answer, err := f.opts.Call(ctx, http.MethodGet, acs.FunctionPath+"code?task="+url.QueryEscape(task)+"&sha256="+sha, nil, nil)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close() //nolint:errcheck // it's only read
	content, err := io.ReadAll(io.LimitReader(answer.Body, maxUnzipped+1))
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the control plane answers %s: %s", answer.Status, bytes.TrimSpace(content))
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != sha {
		return nil, errors.New("what came isn't what was asked for: its SHA-256 is another one")
	}
	return content, nil
}

// linkLocal is where environments with a network of their own reach the Runtime API: the agent listens there for their metadata, too.
const linkLocal = "169.254.170.2:80"

// address returns where an environment reaches the Runtime API. A plain process has a port of its own.
func (f *Functions) address(task string) (string, error) {
	if !f.opts.Plain {
		return linkLocal, nil
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	id := idOf(task)
	if s, is := f.servers[id]; is {
		return s.at, nil
	}
	if f.closed {
		return "", errors.New("the agent is ending")
	}
	l, err := f.listen(id)
	if err != nil {
		return "", err
	}
	f.serve(l, task)
	return l.Addr().String(), nil
}

// server serves a plain environment.
type server struct {
	*http.Server
	at string
}

// serve serves an environment until it's released, or Run ends. The caller holds mu.
func (f *Functions) serve(l net.Listener, task string) {
	at := l.Addr().String()
	s := server{&http.Server{Handler: noPages(f.Handler(task), at), ReadHeaderTimeout: headerTimeout}, at}
	f.servers[idOf(task)] = s
	let := netutil.LimitListener(newGuarded(l, f.opts.Log), maxOpen)
	f.serving.Go(func() { s.Serve(let) }) //nolint:errcheck // it ends as it's closed
}

// Run waits until ctx ends, and ends what serves the environments.
func (f *Functions) Run(ctx context.Context) error {
	<-ctx.Done()
	f.mu.Lock()
	for id, s := range f.servers {
		s.Close() //nolint:errcheck // it ends
		delete(f.servers, id)
	}
	f.closed = true
	f.mu.Unlock()
	f.serving.Wait()
	return ctx.Err()
}

// maxOpen is how many connections a plain environment may have open, as many as others have: all share the agent's file descriptors. More wait.
const maxOpen = 64

// headerTimeout is how long the header of a request may take.
const headerTimeout = 10 * time.Second

// portPath returns where a plain environment's port is kept: the next agent listens there again.
func (f *Functions) portPath(id string) string { return filepath.Join(f.opts.Dir, "ports", id) }

func (f *Functions) listen(id string) (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	err = os.MkdirAll(filepath.Dir(f.portPath(id)), 0o700)
	if err == nil {
		err = os.WriteFile(f.portPath(id), []byte(l.Addr().String()), 0o600)
	}
	if err != nil {
		l.Close() //nolint:errcheck // nobody knows of it
		return nil, err
	}
	return l, nil
}

// Resume serves the plain environments again that an earlier agent has left.
func (f *Functions) Resume(tasks []string) {
	running := map[string]string{}
	for _, arn := range tasks {
		running[idOf(arn)] = arn
		f.use(arn)
	}
	f.prune(maxCode)
	f.removeStorage(running)
	entries, _ := os.ReadDir(filepath.Join(f.opts.Dir, "ports")) //nolint:errcheck // there are none yet
	for _, e := range entries {
		arn := running[e.Name()]
		at, err := os.ReadFile(f.portPath(e.Name()))
		if arn == "" || err != nil {
			os.Remove(f.portPath(e.Name())) //nolint:errcheck // it's tried again
			continue
		}
		l, err := net.Listen("tcp", string(at))
		if err != nil {
			f.opts.Log.Warn("a function's execution environment can't be served any more", "task", arn, "error", err)
			continue
		}
		f.mu.Lock()
		f.serve(l, arn)
		f.mu.Unlock()
	}
}

// Release forgets an environment that has ended.
func (f *Functions) Release(id string) {
	os.RemoveAll(f.storage(id)) //nolint:errcheck // Resume does it
	f.mu.Lock()
	defer f.mu.Unlock()
	if s, is := f.servers[id]; is {
		s.Close()                 //nolint:errcheck // nobody is left
		os.Remove(f.portPath(id)) //nolint:errcheck // Resume does it
	}
	delete(f.servers, id)
	delete(f.tails, id)
	delete(f.using, id)
}

func idOf(arn string) string { return arn[strings.LastIndexByte(arn, '/')+1:] }
