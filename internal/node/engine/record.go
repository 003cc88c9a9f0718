package engine

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/file"
)

// Record is what a node must remember of a task. It has a file of its own, which is replaced atomically before anyone acts on the change.
type Record struct {
	Task       acs.Task
	TakenAt    time.Time
	Owner      string `json:",omitempty"` // marks its containers
	Runtime    string `json:",omitempty"` // that has them
	Stop       bool   // the task is to stop
	Containers map[string]*Container
	Network    *Network `json:",omitempty"` // its own, in mode awsvpc
	Failure    string   `json:",omitempty"` // why the task cannot run

	PullStartedAt      time.Time
	PullStoppedAt      time.Time
	ExecutionStoppedAt time.Time

	Reported string // the last state that the control plane accepted: "", RUNNING, STOPPED
}

// Status is a container's state, in ECS's words.
type Status string

// The values of Status. A container that waits for others has none yet.
const (
	Waiting Status = ""
	Created Status = "CREATED"
	Running Status = "RUNNING"
	Stopped Status = "STOPPED"
)

// Container is what a node must remember of a container.
type Container struct {
	Status   Status
	Reported Status // as last reported to the control plane

	Token    string // identifies the container to its metadata endpoint; a secret
	Restarts int    `json:",omitempty"` // by its restart policy
	Remade   int    `json:",omitempty"` // how many of them an agent made that took a new container for each
	Ran      bool   // it was started at least once
	Digest   string `json:",omitempty"`
	// The runtime's own ids of the container and its image, if it has any.
	RuntimeID string `json:",omitempty"`
	ImageID   string `json:",omitempty"`
	Ports     []Port `json:",omitempty"`
	IP        string `json:",omitempty"` // in mode bridge, if its instance has security groups

	CreatedAt  time.Time
	StartedAt  time.Time
	FinishedAt time.Time
	EndedAt    time.Time `json:",omitzero"` // when its run before this one ended, if its policy restarted it

	ExitCode *int
	Reason   string `json:",omitempty"`
	Shipped  bool   // all of its output was shipped

	Health      Health `json:",omitempty"`
	HealthSince time.Time
}

// isRestart reports whether the container's present run, or the one that is about to begin, isn't its first.
func (c *Container) isRestart() bool { return !c.EndedAt.IsZero() }

// Port is a published port.
type Port struct {
	Container int64
	Host      int64
	Protocol  string
	// Range is the range of container ports (first-last) that it's mapped with, or "". The host's are as many, and as close together.
	Range string `json:",omitempty"`
}

// Network is a task's own network namespace and its address.
type Network struct{ NetNS, IP, MAC string }

// stopped reports whether every container has ended.
func (r *Record) stopped() bool {
	for _, c := range r.Containers {
		if c.Status != Stopped {
			return false
		}
	}
	return true
}

// running reports whether any container runs.
func (r *Record) running() bool {
	for _, c := range r.Containers {
		if c.Status == Running {
			return true
		}
	}
	return false
}

// Halting reports whether no more containers may start and all must end: the task is to stop, can't run, or has lost an essential
// container or its last one.
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

// ran reports whether the task is or was RUNNING: every container has started, except inessential ones that couldn't.
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

// clone copies everything that may change.
func (r *Record) clone() *Record {
	c := *r
	c.Containers = maps.Clone(r.Containers)
	for name, old := range c.Containers {
		copied := *old
		c.Containers[name] = &copied
	}
	return &c
}

// readRecord reads a record. The error is a *file.Damage if the file doesn't hold what was written.
func readRecord(path string) (*Record, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	content, sealed := file.Unseal(b)
	if !sealed {
		content = b // agents before 2026-12 wrote no checksum; what is left of a damaged file is no JSON
	}
	rec := new(Record)
	if err := json.Unmarshal(content, rec); err != nil {
		return nil, &file.Damage{Path: path, Offset: -1, What: "is no task's record: " + err.Error()}
	}
	if rec.Task.Arn == "" {
		return nil, &file.Damage{Path: path, Offset: -1, What: "names no task"}
	}
	for _, c := range rec.Task.Containers {
		if rec.Containers[c.Name] == nil {
			return nil, &file.Damage{Path: path, Offset: -1, What: "lacks container " + c.Name}
		}
		if c := rec.Containers[c.Name]; !c.isRestart() {
			c.Remade = c.Restarts
		}
	}
	return rec, nil
}

// write replaces the record's file atomically and makes the content durable. Only a new file's name needs a synced directory: of an
// existing record, both the old and the new version are consistent.
func (r *Record) write(path string) error {
	_, missing := os.Stat(path)
	if err := file.WriteSealed(path, r, true); err != nil || missing == nil {
		return err
	}
	return file.SyncDir(filepath.Dir(path))
}
