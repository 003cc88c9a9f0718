package scheduler

import (
	"fmt"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"pgregory.net/rapid"

	"github.com/pintle/pintle/internal/state"
)

// TestTurnsAreFair: however much room comes when, and however long the queues are, an owner with tasks waiting never gets one while
// another one with tasks waiting has fewer. Each owner's tasks keep their order.
func TestTurnsAreFair(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var queue []*state.Task
		has := map[owner]int{}
		for i := range rapid.IntRange(0, 40).Draw(r, "tasks") {
			service := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(r, "service")
			queue = append(queue, &state.Task{ServiceArn: service, Task: types.Task{
				TaskArn:              aws.String(fmt.Sprint(i)),
				CapacityProviderName: aws.String("p"),
			}})
			has[ownerOf(queue[i])] = rapid.IntRange(0, 5).Draw(r, "has")
		}
		last := map[owner]int{}
		for len(queue) > 0 {
			room := rapid.IntRange(1, 4).Draw(r, "room")
			for _, next := range turns(queue, has)[:min(room, len(queue))] {
				o := ownerOf(next)
				for _, other := range queue {
					if has[ownerOf(other)] < has[o] {
						r.Fatalf("%s gets a turn with %d tasks, and %s waits with %d", o.service, has[o], other.ServiceArn, has[ownerOf(other)])
					}
				}
				n := 0
				fmt.Sscan(*next.TaskArn, &n) //nolint:errcheck // it's a number
				if n < last[o] {
					r.Fatalf("task %d of %s comes after %d", n, o.service, last[o])
				}
				last[o] = n
				has[o]++
				for i := range queue {
					if queue[i] == next {
						queue = append(queue[:i:i], queue[i+1:]...)
						break
					}
				}
			}
		}
	})
}
