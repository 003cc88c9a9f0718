package state

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// TestABrokenGPU: it is given to no task; one that has it already may be written again, and be stopped; and
// the journal that holds all this opens again.
func TestABrokenGPU(t *testing.T) {
	dir := t.TempDir()
	reopen := func() *Store {
		journal, err := OpenSQLite(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Open(t.Context(), journal)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := reopen()
	task := func(id, gpu string) *Task {
		return &Task{
			Task: types.Task{TaskArn: &id, ClusterArn: aws.String("c"), ContainerInstanceArn: aws.String("i"), LastStatus: aws.String("RUNNING"), DesiredStatus: aws.String("RUNNING")},
			GPUs: []HeldGPU{{Container: "main", ID: gpu, Milli: wholeGPU}},
		}
	}
	node := func(fault *GPUFault) *ContainerInstance {
		row := &ContainerInstance{ClusterArn: "c", GPUs: []GPU{{ID: "good"}, {ID: "bad", Fault: fault}}}
		row.ContainerInstanceArn = aws.String("i")
		return row
	}
	put := func(rows ...any) error {
		return s.Update(context.Background(), func(tx *Tx) error {
			for _, row := range rows {
				switch row := row.(type) {
				case *Task:
					tx.Tasks.Put(row)
				case *ContainerInstance:
					tx.ContainerInstances.Put(row)
				}
			}
			return nil
		})
	}
	holder := task("holder", "bad")
	broken := node(&GPUFault{Reason: "Xid 79", Since: time.Now().UTC()})
	if err := put(node(nil), holder); err != nil {
		t.Fatal(err)
	}
	if err := put(broken, holder.Stopping(types.TaskStopCodeTerminationNotice, "Xid 79", time.Now())); err != nil {
		t.Fatal(err)
	}
	if err := put(task("other", "good")); err != nil {
		t.Errorf("beside the broken one: %v", err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = reopen()
	defer func() { s.Close() }()
	if err := put(s.View().Tasks.Get("holder").Stopped(types.TaskStopCodeTerminationNotice, "", time.Now())); err != nil {
		t.Errorf("the holder's end: %v", err)
	}
	if err := put(task("third", "bad")); err == nil || !strings.Contains(err.Error(), "GPU bad would be given out with a fault: Xid 79") {
		t.Errorf("the broken one is given out: %v", err)
	}
	if err := put(node(nil), task("third", "bad")); err != nil {
		t.Errorf("once it is well: %v", err)
	}
}
