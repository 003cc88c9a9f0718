package capacity

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"pgregory.net/rapid"
)

func item(provider string, base, weight int32) types.CapacityProviderStrategyItem {
	return types.CapacityProviderStrategyItem{CapacityProvider: aws.String(provider), Base: base, Weight: weight}
}

func TestNext(t *testing.T) {
	for _, c := range []struct {
		name     string
		strategy []types.CapacityProviderStrategyItem
		want     string // the providers of the first tasks, in order
	}{
		{"one provider", []types.CapacityProviderStrategyItem{item("a", 0, 1)}, "aaa"},
		{"equal weights", []types.CapacityProviderStrategyItem{item("a", 0, 1), item("b", 0, 1)}, "abab"},
		{"one to four", []types.CapacityProviderStrategyItem{item("a", 0, 1), item("b", 0, 4)}, "bbbabbbbab"},
		{"a base first", []types.CapacityProviderStrategyItem{item("a", 2, 1), item("b", 0, 1)}, "aaabab"},
		{"a base without a weight", []types.CapacityProviderStrategyItem{item("a", 2, 0), item("b", 0, 1)}, "aabbb"},
		{"a base named last", []types.CapacityProviderStrategyItem{item("b", 0, 1), item("a", 1, 1)}, "abab"},
		{"a weight of 0", []types.CapacityProviderStrategyItem{item("a", 0, 0), item("b", 0, 1)}, "bb"},
		{"no weight at all", []types.CapacityProviderStrategyItem{item("a", 1, 0)}, "a."},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got strings.Builder
			has := map[string]int{}
			for range c.want {
				next := Next(c.strategy, has)
				has[next]++
				if next == "" {
					next = "."
				}
				got.WriteString(next)
			}
			if got.String() != c.want {
				t.Errorf("%s, want %s", got.String(), c.want)
			}
		})
	}
}

// TestShares fills a strategy of any weights. The base comes first. After that no provider is ever a whole task short of its
// share, and each has exactly its share whenever all shares are whole numbers.
func TestShares(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		weights := rapid.SliceOfN(rapid.IntRange(0, 9), 1, 6).Draw(r, "weights")
		weights[0]++ // at least one weight is above 0
		based := rapid.IntRange(0, len(weights)-1).Draw(r, "based")
		base := rapid.IntRange(0, 12).Draw(r, "base")
		var strategy []types.CapacityProviderStrategyItem
		total := 0
		for i, w := range weights {
			strategy = append(strategy, item(fmt.Sprint(i), 0, int32(w)))
			total += w
		}
		strategy[based].Base = int32(base)
		has := map[string]int{}
		for n := range base + 3*total {
			next := Next(strategy, has)
			i := slices.IndexFunc(strategy, func(s types.CapacityProviderStrategyItem) bool { return *s.CapacityProvider == next })
			if i < 0 || n >= base && weights[i] == 0 {
				r.Fatalf("task %d belongs to %q", n, next)
			}
			if n < base && next != fmt.Sprint(based) {
				r.Fatalf("task %d of a base of %d belongs to %q", n, base, next)
			}
			has[next]++
			shared := max(n+1-base, 0)
			for i, w := range weights {
				got := has[fmt.Sprint(i)]
				if i == based {
					got -= min(base, n+1)
				}
				if share := shared * w; got*total <= share-total || share%total == 0 && shared%total == 0 && got*total != share {
					r.Fatalf("%d has %d of %d, at a weight of %d in %d", i, got, shared, w, total)
				}
			}
		}
	})
}

// TestRefills: after losing tasks, the base is filled again before anything else.
func TestRefills(t *testing.T) {
	strategy := []types.CapacityProviderStrategyItem{item("a", 2, 1), item("b", 0, 3)}
	for _, c := range []struct {
		has  map[string]int
		want string
	}{
		{map[string]int{"a": 1, "b": 9}, "a"},
		{map[string]int{"a": 3, "b": 1}, "b"},
		{map[string]int{"a": 2, "b": 3}, "a"},
	} {
		if got := Next(strategy, c.has); got != c.want {
			t.Errorf("%v: %s, want %s", c.has, got, c.want)
		}
	}
}
