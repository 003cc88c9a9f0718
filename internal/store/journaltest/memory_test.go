package journaltest_test

import (
	"context"
	"sync"
	"testing"

	"github.com/pintle/pintle/internal/store"
	"github.com/pintle/pintle/internal/store/journaltest"
)

// TestMemory: what tests use in place of a journal is one.
func TestMemory(t *testing.T) {
	var mu sync.Mutex
	kept := map[string]*journaltest.Memory{}
	journaltest.Run(t, func(_ context.Context, place string) (store.Journal, error) {
		mu.Lock()
		defer mu.Unlock()
		if kept[place] == nil {
			kept[place] = journaltest.NewMemory(nil)
		}
		return kept[place], nil
	})
}
