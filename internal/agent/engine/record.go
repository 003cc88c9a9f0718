package engine

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/pintle/pintle/internal/acs"
)

// Record is what a node must not forget of a task. It lies in a file of its own, written whole or not
// at all, before what it says is acted upon.
type Record struct {
	Task       acs.Task
	TakenAt    time.Time
	Stop       bool // it is to stop
	Containers map[string]*Container
	Failure    string `json:",omitempty"` // why the task cannot run
	Note       string `json:",omitempty"` // what the control plane should hear beside the state

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
	Status     Status
	Ran        bool // it was started at least once
	ExitCode   *int
	Reason     string `json:",omitempty"`
	Digest     string `json:",omitempty"`
	Ports      []Port `json:",omitempty"`
	StartedAt  time.Time
	FinishedAt time.Time
	LogCursor  string `json:",omitempty"` // what lies before it was shipped
	Shipped    bool   // all of its output was
	Restarts   int    `json:",omitempty"`
}

// Port is a published port.
type Port struct {
	Container, Host int64
	Protocol        string
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

// write replaces the record's file whole, and durably.
func (r *Record) write(path string) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".new-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // gone already when all went well
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(f.Name(), path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}
