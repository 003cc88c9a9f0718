package state

import (
	"github.com/go-json-experiment/json"

	"github.com/pintle/pintle/internal/store"
	"github.com/pintle/pintle/internal/store/journaltest"

	"context"
	"testing"
)

// FuzzReplay opens a journal with arbitrary contents. It must be refused or read, and do nothing worse.
func FuzzReplay(f *testing.F) {
	row, err := json.Marshal(benchTask(1))
	if err != nil {
		f.Fatal(err)
	}
	f.Add("tasks", *benchTask(1).TaskArn, row)
	f.Add("clusters", "arn:cluster/a", []byte(`{"ClusterArn":"arn:cluster/a"}`))
	f.Add("container_instances", "i", []byte(`{"ContainerInstanceArn":"i","GPUs":[{"ID":"g"}]}`))
	f.Fuzz(func(t *testing.T, table, key string, data []byte) {
		j := journaltest.NewMemory(nil)
		if err := j.Write(1, []store.Change{{Table: table, Key: key, Data: data}}); err != nil {
			t.Fatal(err)
		}
		s, err := Open(context.Background(), j)
		if err != nil {
			return
		}
		defer s.Close()
		v := s.View()
		for row := range v.Tasks.All() {
			if again, err := json.Marshal(row); err != nil || len(again) == 0 {
				t.Fatalf("a row that was read cannot be written: %v", err)
			}
		}
	})
}
