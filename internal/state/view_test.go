package state_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

// TestViewsAreShared: everybody has the same view until the next commit, which is another's; who watches has one of their own.
func TestViewsAreShared(t *testing.T) {
	s := statetest.Open(t)
	before := s.View()
	if s.View() != before {
		t.Error("there are two views of one moment")
	}
	if one, other := s.Watch(), s.Watch(); one == before || one == other {
		t.Error("who watches has somebody else's view")
	}
	statetest.Update(t, s, func(tx *state.Tx) {
		tx.Clusters.Put(&state.Cluster{Cluster: types.Cluster{ClusterArn: aws.String("c")}})
		if s.View().Clusters.Get("c") != nil {
			t.Error("a view has what isn't committed")
		}
	})
	if after := s.View(); after == before || after.Clusters.Get("c") == nil || before.Clusters.Get("c") != nil {
		t.Error("a view doesn't tell of its moment")
	}
}
