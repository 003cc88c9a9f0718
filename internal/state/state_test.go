package state

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"pgregory.net/rapid"
)

// memory is a Journal that keeps its rows in a map, and fails when told to.
type memory struct {
	rows     map[[2]string][]byte
	revision int64
	fail     error
}

func newMemory() *memory { return &memory{rows: map[[2]string][]byte{}} }

func (m *memory) Load(_ context.Context, row func(table, key string, data []byte) error) (int64, error) {
	for k, data := range m.rows {
		if err := row(k[0], k[1], data); err != nil {
			return 0, err
		}
	}
	return m.revision, nil
}

func (m *memory) Write(revision int64, changes []Change) error {
	if m.fail != nil {
		return m.fail
	}
	for _, c := range changes {
		if c.Data == nil {
			delete(m.rows, [2]string{c.Table, c.Key})
		} else {
			m.rows[[2]string{c.Table, c.Key}] = c.Data
		}
	}
	m.revision = revision
	return nil
}

func (m *memory) Close() error { return nil }

func open(t testing.TB, j Journal, observers ...Observer) *Store {
	t.Helper()
	s, err := Open(context.Background(), j, observers...)
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

func cluster(name string) *Cluster {
	return &Cluster{types.Cluster{ClusterArn: aws.String("arn:cluster/" + name), ClusterName: aws.String(name)}}
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
		TaskArn: aws.String(name), ClusterArn: aws.String("arn:cluster/c"), ContainerInstanceArn: aws.String(instance),
		LastStatus: aws.String(status), DesiredStatus: aws.String(status),
	}, Reserved: held}
	for _, id := range gpus {
		t.GPUs = append(t.GPUs, HeldGPU{Container: "main", ID: id, Milli: 1000})
	}
	return t
}

func TestARefusedUpdateChangesNothing(t *testing.T) {
	j := newMemory()
	s := open(t, j)
	update(t, s, func(tx *Tx) error { tx.Clusters.Put(cluster("a")); return nil })
	refusal := errors.New("no")
	err := s.Update(context.Background(), func(tx *Tx) error {
		tx.Clusters.Put(cluster("b"))
		tx.Clusters.Delete("arn:cluster/a")
		return refusal
	})
	if !errors.Is(err, refusal) {
		t.Fatalf("got %v, want the function's error", err)
	}
	if got := s.View().Clusters.Get("arn:cluster/a"); got == nil {
		t.Error("the deleted row is gone")
	}
	if got := s.View().Clusters.Get("arn:cluster/b"); got != nil {
		t.Error("the put row is there")
	}
	if len(j.rows) != 1 {
		t.Errorf("the journal holds %d rows, want 1", len(j.rows))
	}
}

func TestAPanicIsARefusal(t *testing.T) {
	s := open(t, newMemory())
	err := s.Update(context.Background(), func(tx *Tx) error {
		tx.Clusters.Put(cluster("a"))
		panic("a bug")
	})
	if err == nil || !strings.Contains(err.Error(), "a bug") {
		t.Fatalf("got %v", err)
	}
	for range s.View().Clusters.All() {
		t.Fatal("the panicking transaction's row is there")
	}
}

func TestAFailedWriteChangesNothing(t *testing.T) {
	j := newMemory()
	s := open(t, j)
	j.fail = errors.New("disk full")
	if err := s.Update(context.Background(), func(tx *Tx) error { tx.Clusters.Put(cluster("a")); return nil }); !errors.Is(err, j.fail) {
		t.Fatalf("got %v, want the journal's error", err)
	}
	if s.View().Clusters.Get("arn:cluster/a") != nil {
		t.Fatal("the row is seen though it isn't kept")
	}
	j.fail = nil
	update(t, s, func(tx *Tx) error { tx.Clusters.Put(cluster("a")); return nil })
}

func TestAJournalInDoubtEndsTheStore(t *testing.T) {
	j := newMemory()
	s := open(t, j)
	j.fail = fmt.Errorf("%w: fsync", ErrInDoubt)
	put := func(tx *Tx) error { tx.Clusters.Put(cluster("a")); return nil }
	if err := s.Update(context.Background(), put); !errors.Is(err, ErrInDoubt) {
		t.Fatalf("got %v", err)
	}
	<-s.Done()
	if err := s.Update(context.Background(), put); !errors.Is(err, ErrClosed) {
		t.Fatalf("got %v, want ErrClosed", err)
	}
}

func TestTheLedgerRefuses(t *testing.T) {
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
			s := open(t, newMemory())
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

func TestTheLedgerLetsATaskOnAShrunkInstanceGoOn(t *testing.T) {
	s := open(t, newMemory())
	held := Resources{CPU: 1000, MemoryMiB: 100}
	update(t, s, func(tx *Tx) error {
		tx.ContainerInstances.Put(instance("i", 1024, 1024))
		tx.Tasks.Put(task("t", "i", "PENDING", held))
		return nil
	})
	update(t, s, func(tx *Tx) error { tx.ContainerInstances.Put(instance("i", 512, 1024)); return nil })
	update(t, s, func(tx *Tx) error { tx.Tasks.Put(task("t", "i", "RUNNING", held)); return nil })
}

func TestAWatchWakesForWhatWasReadAndNothingElse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(t, newMemory())
		update(t, s, func(tx *Tx) error {
			tx.Tasks.Put(task("c", "i1", "RUNNING", Resources{}))
			tx.Tasks.Put(task("d", "i2", "RUNNING", Resources{}))
			return nil
		})
		v := s.Watch()
		for range v.Tasks.By(TasksByInstance, "i1") {
		}
		woken := make(chan error, 1)
		go func() { woken <- v.Changed(t.Context()) }()
		update(t, s, func(tx *Tx) error { tx.Tasks.Put(task("a", "i2", "RUNNING", Resources{})); return nil })
		synctest.Wait()
		select {
		case <-woken:
			t.Fatal("woken by another instance's task")
		default:
		}
		update(t, s, func(tx *Tx) error { tx.Tasks.Put(task("b", "i1", "RUNNING", Resources{})); return nil })
		if err := <-woken; err != nil {
			t.Fatal(err)
		}
	})
}

// TestLikeAMap drives the store and a plain map with the same random transactions, some of them
// refused, some from several goroutines, and compares them, also after a restart.
func TestLikeAMap(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		j := newMemory()
		s := open(t, j)
		want := map[string]string{}
		names := rapid.SampledFrom([]string{"a", "ab", "b", "c"})
		for range rapid.IntRange(1, 20).Draw(r, "transactions") {
			next := maps.Clone(want)
			refuse := rapid.Bool().Draw(r, "refuse")
			type step struct {
				key, group string
				del        bool
			}
			steps := rapid.SliceOfN(rapid.Custom(func(r *rapid.T) step {
				return step{names.Draw(r, "key"), names.Draw(r, "group"), rapid.Bool().Draw(r, "delete")}
			}), 0, 5).Draw(r, "steps")
			err := s.Update(context.Background(), func(tx *Tx) error {
				for _, st := range steps {
					if st.del {
						tx.Tasks.Delete(st.key)
						delete(next, st.key)
					} else {
						tx.Tasks.Put(task(st.key, st.group, "RUNNING", Resources{}))
						next[st.key] = st.group
					}
				}
				if refuse {
					return errors.New("refused")
				}
				return nil
			})
			if refuse != (err != nil) {
				r.Fatalf("got %v", err)
			}
			if !refuse {
				want = next
			}
			same(r, s.View(), want)
		}
		if err := s.Close(); err != nil {
			r.Fatal(err)
		}
		again := open(t, j)
		same(r, again.View(), want)
	})
}

func same(r *rapid.T, v *View, want map[string]string) {
	got := map[string]string{}
	var keys, behind []string
	for row := range v.Tasks.All() {
		got[*row.TaskArn] = *row.ContainerInstanceArn
		if *row.TaskArn > "b" {
			keys = append(keys, *row.TaskArn)
		}
	}
	for row := range v.Tasks.Behind("b") {
		behind = append(behind, *row.TaskArn)
	}
	if !slices.Equal(keys, behind) {
		r.Fatalf("Behind gives %v, want %v", behind, keys)
	}
	if !maps.Equal(got, want) {
		r.Fatalf("rows are %v, want %v", got, want)
	}
	for _, group := range []string{"a", "ab", "b", "c"} {
		n := 0
		for row := range v.Tasks.By(TasksByInstance, group) {
			if *row.ContainerInstanceArn != group {
				r.Fatalf("index %q holds %v", group, *row.ContainerInstanceArn)
			}
			n++
		}
		for row := range v.Tasks.After(TasksByInstance, group, "a") {
			if *row.TaskArn <= "a" {
				r.Fatalf("After gives %v", *row.TaskArn)
			}
			n--
		}
		if want["a"] == group {
			n--
		}
		if n != 0 {
			r.Fatalf("By and After of %q disagree by %d", group, n)
		}
	}
}

func TestConcurrentUpdatesAllHappen(t *testing.T) {
	j, err := OpenSQLite(context.Background(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	s := open(t, j)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			for k := range 10 {
				err := s.Update(context.Background(), func(tx *Tx) error {
					tx.Clusters.Put(cluster(fmt.Sprintf("c%d-%d", i, k)))
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	n := 0
	for range s.View().Clusters.All() {
		n++
	}
	if n != 640 {
		t.Fatalf("%d clusters, want 640", n)
	}
}

func TestASecondProcessIsRefused(t *testing.T) {
	dir := t.TempDir()
	j, err := OpenSQLite(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if second, err := OpenSQLite(context.Background(), dir); err == nil {
		second.Close()
		t.Fatal("two journals opened one file")
	}
}
