package state

import (
	"context"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/store/journaltest"
	"github.com/pintle/pintle/internal/store/sqlite"
)

// TestBrokenGPU checks that a broken GPU goes to no task, that a task which already has it can still be written and
// stopped, and that the journal with all this opens again.
func TestBrokenGPU(t *testing.T) {
	dir := t.TempDir()
	reopen := func() *Store {
		journal, err := sqlite.Open(t.Context(), dir)
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
			Task: types.Task{
				TaskArn:              &id,
				ClusterArn:           aws.String("c"),
				ContainerInstanceArn: aws.String("i"),
				LastStatus:           aws.String("RUNNING"),
				DesiredStatus:        aws.String("RUNNING"),
			},
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

func instance(name string, cpu, memory int64) *ContainerInstance {
	return &ContainerInstance{
		ContainerInstance: types.ContainerInstance{ContainerInstanceArn: aws.String(name)},
		ClusterArn:        "arn:cluster/c",
		Capacity:          Resources{CPU: cpu, MemoryMiB: memory},
	}
}

func task(name, instance, status string, held Resources, gpus ...string) *Task {
	t := &Task{Task: types.Task{
		TaskArn:              aws.String(name),
		ClusterArn:           aws.String("arn:cluster/c"),
		ContainerInstanceArn: aws.String(instance),
		LastStatus:           aws.String(status),
		DesiredStatus:        aws.String(status),
	}, Reserved: held}
	for _, id := range gpus {
		t.GPUs = append(t.GPUs, HeldGPU{Container: "main", ID: id, Milli: 1000})
	}
	return t
}

func TestLedgerRefuses(t *testing.T) {
	small := Resources{CPU: 100, MemoryMiB: 100}
	cases := []struct {
		name string
		task *Task
		want string // "" is accepted
	}{
		{"a free GPU", task("t2", "i", "RUNNING", small, "GPU-2"), ""},
		{"a GPU that another task holds", task("t2", "i", "RUNNING", small, "GPU-1"), "GPU GPU-1"},
		{"a GPU twice in one task", task("t2", "i", "RUNNING", small, "GPU-2", "GPU-2"), "GPU GPU-2"},
		{"a held GPU, by a task that has stopped", task("t2", "i", "STOPPED", small, "GPU-1"), ""},
		{"the GPU of the same name elsewhere", task("t2", "other", "RUNNING", small, "GPU-1"), ""},
		{"too much CPU", task("t2", "i", "RUNNING", Resources{CPU: 925}), "1025 CPU units"},
		{"too much memory", task("t2", "i", "RUNNING", Resources{MemoryMiB: 925}), "1025 MiB"},
		{"a port that is held", task("t2", "i", "RUNNING", Resources{PortsTCP: []uint16{80}}), "port 80"},
		{"the same port over UDP", task("t2", "i", "RUNNING", Resources{PortsUDP: []uint16{80}}), ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := openMemory(t)
			update(t, s, func(tx *Tx) error {
				tx.ContainerInstances.Put(instance("i", 1024, 1024))
				tx.ContainerInstances.Put(instance("other", 1024, 1024))
				tx.Tasks.Put(task("t1", "i", "RUNNING", Resources{CPU: 100, MemoryMiB: 100, PortsTCP: []uint16{80}}, "GPU-1"))
				return nil
			})
			err := s.Update(context.Background(), func(tx *Tx) error { tx.Tasks.Put(c.task); return nil })
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("got error %v, want %q", err, c.want)
			}
			if c.want != "" && s.View().Tasks.Get("t2") != nil {
				t.Fatal("the refused task is there")
			}
		})
	}
}

// TestShrunkInstance: the tasks of an instance that has registered again with less than they hold aren't to blame, neither when they change
// nor when the journal is opened again.
func TestShrunkInstance(t *testing.T) {
	var kept journaltest.Rows
	journal := journaltest.NewMemory(nil)
	journal.OnWrite(func(rows journaltest.Rows) { kept = rows })
	s := open(t, journal)
	held := Resources{CPU: 1000, MemoryMiB: 100}
	update(t, s, func(tx *Tx) error {
		tx.ContainerInstances.Put(instance("i", 1024, 1024))
		tx.Tasks.Put(task("t", "i", "PENDING", held))
		return nil
	})
	update(t, s, func(tx *Tx) error { tx.ContainerInstances.Put(instance("i", 512, 1024)); return nil })
	update(t, s, func(tx *Tx) error { tx.Tasks.Put(task("t", "i", "RUNNING", held)); return nil })
	s = open(t, journaltest.NewMemory(kept))
	err := s.Update(t.Context(), func(tx *Tx) error { tx.Tasks.Put(task("u", "i", "PENDING", Resources{CPU: 1})); return nil })
	if err == nil || !strings.Contains(err.Error(), "1001 CPU units would be reserved of 512") {
		t.Errorf("a further task: %v", err)
	}
}

// TestSharedGPU: a journal in which two tasks have one GPU isn't opened.
func TestSharedGPU(t *testing.T) {
	held := [2]journaltest.Rows{}
	for i, name := range []string{"t", "u"} {
		journal := journaltest.NewMemory(nil)
		journal.OnWrite(func(rows journaltest.Rows) { held[i] = rows })
		update(t, open(t, journal), func(tx *Tx) error { tx.Tasks.Put(task(name, "i", "RUNNING", Resources{}, "GPU-1")); return nil })
	}
	maps.Copy(held[0], held[1])
	if _, err := Open(t.Context(), journaltest.NewMemory(held[0])); err == nil || !strings.Contains(err.Error(), "GPU GPU-1 would be given out 2000/1000 times") {
		t.Errorf("got %v", err)
	}
}

func openMemory(t testing.TB) *Store {
	t.Helper()
	return open(t, journaltest.NewMemory(nil))
}

func open(t testing.TB, journal *journaltest.Memory) *Store {
	t.Helper()
	s, err := Open(context.Background(), journal)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func update(t testing.TB, s *Store, fn func(*Tx) error) {
	t.Helper()
	if err := s.Update(context.Background(), fn); err != nil {
		t.Fatal(err)
	}
}
