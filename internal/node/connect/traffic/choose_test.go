package traffic

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestRecord(t *testing.T) {
	now := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		failed  []bool
		ejected bool
	}{
		"nothing":                    {nil, false},
		"four":                       {[]bool{true, true, true, true}, false},
		"five":                       {[]bool{true, true, true, true, true}, true},
		"a success between":          {[]bool{true, true, true, false, true, true}, false},
		"one more after it was left": {[]bool{true, true, true, true, true, false}, true},
	} {
		var r record
		for _, failed := range c.failed {
			r = r.after(failed, now)
		}
		if r.until.After(now) != c.ejected || c.ejected && r.until != now.Add(ejection) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// TestRecordTakenBack: a target that was left out is taken back by its first success after that.
func TestRecordTakenBack(t *testing.T) {
	now := time.Unix(1000, 0)
	var r record
	for range maxFailures {
		r = r.after(true, now)
	}
	if r = r.after(false, now.Add(ejection-1)); r.until.IsZero() {
		t.Error("it's taken back too early")
	}
	if r = r.after(true, now.Add(ejection)); r.until.IsZero() {
		t.Error("it's taken back by a failure")
	}
	if r = r.after(false, now.Add(ejection)); !r.until.IsZero() {
		t.Error("it isn't taken back")
	}
}

func TestChoose(t *testing.T) {
	good, sick, out, tried := standing{}, standing{unhealthy: true}, standing{ejected: true}, standing{tried: true}
	for name, c := range map[string]struct {
		all  []standing
		turn uint64
		want int
	}{
		"none":                               {nil, 7, -1},
		"they take turns":                    {[]standing{good, good, good}, 4, 1},
		"unhealthy ones are passed over":     {[]standing{good, sick, good}, 1, 2},
		"those left out are passed over":     {[]standing{good, out, good}, 1, 2},
		"unless they are more than half":     {[]standing{out, out, good}, 1, 1},
		"half may be left out":               {[]standing{out, good}, 0, 1},
		"only unhealthy ones":                {[]standing{sick, sick}, 1, 1},
		"rather left out than unhealthy":     {[]standing{sick, sick, out}, 0, 2},
		"the tried one isn't asked again":    {[]standing{tried, good}, 0, 1},
		"all were tried":                     {[]standing{tried, tried}, 0, -1},
		"the rest is left out, and is asked": {[]standing{tried, {ejected: true}, good, {tried: true}}, 1, 2},
	} {
		if got := choose(c.all, c.turn); got != c.want {
			t.Errorf("%s: %d, not %d", name, got, c.want)
		}
	}
}

// TestChooseProperties: whoever is chosen hasn't been tried; nobody is chosen only if all were; in so many turns each of equal ones has one.
func TestChooseProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) standing {
			return standing{rapid.Bool().Draw(t, "unhealthy"), rapid.Bool().Draw(t, "ejected"), rapid.Bool().Draw(t, "tried")}
		}), 0, 8).Draw(t, "all")
		turn := rapid.Uint64().Draw(t, "turn")
		left := 0
		for _, s := range all {
			if !s.tried {
				left++
			}
		}
		at := choose(all, turn)
		if (at < 0) != (left == 0) || at >= 0 && all[at].tried {
			t.Fatalf("%d of %+v", at, all)
		}
		equal := make([]standing, len(all))
		seen := map[int]bool{}
		for i := range all {
			seen[choose(equal, turn%1000+uint64(i))] = true
		}
		if len(seen) != len(all) {
			t.Fatalf("%d of %d had a turn", len(seen), len(all))
		}
	})
}
