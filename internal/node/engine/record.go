package engine

import (
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/file"
)

// Record is what a node must not forget of a task. It lies in a file of its own, written whole or not
// at all, before what it says is acted upon.
type Record struct {
	Task       acs.Task
	TakenAt    time.Time
	Stop       bool // it is to stop
	Containers map[string]*Container
	Network    *Network `json:",omitempty"` // its own, in mode awsvpc
	Failure    string   `json:",omitempty"` // why the task cannot run

	PullStartedAt, PullStoppedAt, ExecutionStoppedAt time.Time

	Reported string // the last state that the control plane took: "", RUNNING, STOPPED
}

// Status is where a container is, as ECS says it.
type Status string

// The states of a container. One that waits for others has none yet.
const (
	Waiting Status = ""
	Created Status = "CREATED"
	Running Status = "RUNNING"
	Stopped Status = "STOPPED"
)

// Container is what a node must not forget of a container.
type Container struct {
	Status   Status
	Reported Status // as the control plane last heard it

	Token    string // names the container to its metadata endpoint; nobody can guess it
	Restarts int    `json:",omitempty"` // by its restart policy; each is a new container for the runtime
	Ran      bool   // it was started at least once
	Digest   string `json:",omitempty"`
	Ports    []Port `json:",omitempty"`

	CreatedAt, StartedAt, FinishedAt time.Time

	ExitCode *int
	Reason   string `json:",omitempty"`
	Shipped  bool   // all of its output was

	Health      Health `json:",omitempty"`
	HealthSince time.Time
}

// Port is a published port.
type Port struct {
	Container, Host int64
	Protocol        string
}

// Network is a task's own network namespace and its address.
type Network struct{ NetNS, IP, MAC string }

// stopped says whether every container has ended.
func (r *Record) stopped() bool {
	for _, c := range r.Containers {
		if c.Status != Stopped {
			return false
		}
	}
	return true
}

// running says whether a container runs.
func (r *Record) running() bool {
	for _, c := range r.Containers {
		if c.Status == Running {
			return true
		}
	}
	return false
}

// Halting says whether no container may start any more and all must end: the task is to stop, cannot
// run, or has lost an essential container, or the last.
func (r *Record) Halting() bool {
	if r.Stop || r.Failure != "" || r.stopped() {
		return true
	}
	for i := range r.Task.Containers {
		d := &r.Task.Containers[i]
		if d.Essential && r.Containers[d.Name].Status == Stopped {
			return true
		}
	}
	return false
}

// ran says whether the task counts as RUNNING, or once did: every container has come to run, but for
// those that are not essential and could not.
func (r *Record) ran() bool {
	for i := range r.Task.Containers {
		d := &r.Task.Containers[i]
		c := r.Containers[d.Name]
		if !c.Ran && (d.Essential || c.Status != Stopped) {
			return false
		}
	}
	return true
}

// clone copies all that may change.
func (r *Record) clone() *Record {
	c := *r
	c.Containers = maps.Clone(r.Containers)
	for name, old := range c.Containers {
		copied := *old
		c.Containers[name] = &copied
	}
	return &c
}

func readRecord(path string) (*Record, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	rec := new(Record)
	if err := json.Unmarshal(b, rec); err != nil {
		return nil, err
	}
	for _, c := range rec.Task.Containers {
		if rec.Containers[c.Name] == nil {
			return nil, errors.New("the record lacks container " + c.Name)
		}
	}
	return rec, nil
}

// write replaces the record's file, whole. What it says is durable then. Only a new file's name needs
// its directory synced: of an old and a new version of a record, either is consistent.
func (r *Record) write(path string) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, missing := os.Stat(path)
	if err := file.Replace(path, b, true); err != nil || missing == nil {
		return err
	}
	return file.SyncDir(filepath.Dir(path))
}
