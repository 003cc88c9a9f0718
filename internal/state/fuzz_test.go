package state

import (
	"context"
	"testing"
)

// FuzzReplay opens a journal that holds whatever a disk may hold: it is refused or read, never more.
func FuzzReplay(f *testing.F) {
	row, err := encode(benchTask(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add("tasks", *benchTask(1).TaskArn, row)
	f.Add("clusters", "arn:cluster/a", []byte(`{"ClusterArn":"arn:cluster/a"}`))
	f.Add("container_instances", "i", []byte(`{"ContainerInstanceArn":"i","GPUs":[{"ID":"g"}]}`))
	f.Fuzz(func(t *testing.T, table, key string, data []byte) {
		j := newMemory()
		j.rows[[2]string{table, key}] = data
		s, err := Open(context.Background(), j)
		if err != nil {
			return
		}
		defer s.Close()
		v := s.View()
		for row := range v.Tasks.All() {
			if again, err := encode(row); err != nil || len(again) == 0 {
				t.Fatalf("a row that was read cannot be written: %v", err)
			}
		}
	})
}
