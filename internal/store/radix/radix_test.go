package radix

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// model is a Tree in its simplest form.
type model map[string]int

func (m model) after(key string) (out []int) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		if k > key {
			out = append(out, m[k])
		}
	}
	return out
}

func (m model) all() (out []int) {
	for _, k := range slices.Sorted(maps.Keys(m)) {
		out = append(out, m[k])
	}
	return out
}

// same compares a tree with what it should hold.
func same(t rapid.TB, tree Tree[int], want model, keys []string) {
	t.Helper()
	if tree.Len() != len(want) {
		t.Fatalf("%d keys, want %d", tree.Len(), len(want))
	}
	if got := slices.Collect(tree.All()); !slices.Equal(got, want.all()) {
		t.Fatalf("All gives %v, want %v", got, want.all())
	}
	for _, k := range keys {
		got, ok := tree.Get(k)
		if value, there := want[k]; ok != there || got != value {
			t.Fatalf("%q is %d (%v), want %d (%v)", k, got, ok, value, there)
		}
		if got := slices.Collect(tree.After(k)); !slices.Equal(got, want.after(k)) {
			t.Fatalf("After %q gives %v, want %v", k, got, want.after(k))
		}
	}
}

// TestLikeAMap drives a tree and a map with the same changes. Versions that were kept stay what they were.
func TestLikeAMap(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		key := rapid.StringMatching(`[ab\x00]{0,5}`)
		var tree Tree[int]
		want := model{}
		type version struct {
			tree Tree[int]
			want model
		}
		var kept []version
		keys := []string{""}
		edit := uint64(1)
		for i := range rapid.IntRange(1, 60).Draw(r, "steps") {
			k := key.Draw(r, "key")
			keys = append(keys, k)
			switch rapid.IntRange(0, 4).Draw(r, "step") {
			case 0:
				kept = append(kept, version{tree, maps.Clone(want)})
				edit++
			case 1, 2:
				tree.Delete(edit, k)
				delete(want, k)
			default:
				tree.Put(edit, k, i)
				want[k] = i
			}
			same(r, tree, want, keys)
		}
		for _, v := range kept {
			same(r, v.tree, v.want, keys)
		}
	})
}

// TestVersion: two versions are equal where nothing was changed, and differ where something was.
func TestVersion(t *testing.T) {
	var tree Tree[int]
	empty := tree.Version()
	tree.Delete(1, "a")
	if tree.Version() != empty {
		t.Error("a key that is not there was deleted, and the version differs")
	}
	tree.Put(1, "a", 1)
	one := tree.Version()
	if one == empty {
		t.Error("a key was added, and the version is the same")
	}
	tree.Put(2, "a", 2)
	if tree.Version() == one {
		t.Error("a value was changed, and the version is the same")
	}
}

// FuzzTree takes a list of keys, separated by the byte 1, puts them all and deletes each second one.
func FuzzTree(f *testing.F) {
	f.Add("a\x01ab\x01abc\x01\x01b")
	f.Add("arn:task/1\x01arn:task/12\x01arn:task/2")
	f.Fuzz(func(t *testing.T, text string) {
		var tree Tree[int]
		want := model{}
		keys := slices.Collect(func(yield func(string) bool) {
			start := 0
			for i := range len(text) {
				if text[i] == 1 {
					if !yield(text[start:i]) {
						return
					}
					start = i + 1
				}
			}
			yield(text[start:])
		})
		if len(keys) > 50 {
			return
		}
		for i, k := range keys {
			tree.Put(uint64(i/3+1), k, i)
			want[k] = i
		}
		before, all := tree, maps.Clone(want)
		for i, k := range keys {
			if i%2 == 0 {
				tree.Delete(1000, k)
				delete(want, k)
			}
		}
		same(t, tree, want, keys)
		same(t, before, all, keys)
	})
}

func BenchmarkGet(b *testing.B) {
	for _, size := range []int{1000, 50_000} {
		b.Run(fmt.Sprintf("keys=%d", size), func(b *testing.B) {
			keys := arns(size)
			var tree Tree[*int]
			for i, k := range keys {
				tree.Put(1, k, &i)
			}
			for b.Loop() {
				if _, ok := tree.Get(keys[rand.IntN(size)]); !ok {
					b.Fatal("it is not there")
				}
			}
		})
	}
}

func BenchmarkPut(b *testing.B) {
	for _, group := range []int{1, 64} {
		b.Run(fmt.Sprintf("edit=%d", group), func(b *testing.B) {
			keys := arns(50_000)
			var tree Tree[*int]
			for i, k := range keys {
				tree.Put(1, k, &i)
			}
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				tree.Put(uint64(n/group+2), keys[n*7919%len(keys)], &n)
				n++
			}
		})
	}
}

func arns(n int) []string {
	out := make([]string, n)
	for i := range out {
		out[i] = fmt.Sprintf("arn:aws:ecs:us-east-1:000000000000:task/default/%016x%016x", rand.Uint64(), rand.Uint64())
	}
	return out
}
