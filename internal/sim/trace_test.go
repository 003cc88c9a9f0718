package sim

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestReadTrace(t *testing.T) {
	work := map[string]time.Duration{"in": time.Millisecond, "out": 10 * time.Millisecond}
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		text string
		want []Request
		err  string
	}{
		"dates": {"at,in,out\n2023-11-16 18:17:03.9,100,1\n2023-11-16 18:17:05.4,0,2\n",
			[]Request{{0, 115 * ms}, {1500 * ms, 25 * ms}}, ""},
		"zones": {"at,in,out\n2023-11-16T18:17:03Z,1,0\n2023-11-16T20:17:04+02:00,1,0\n",
			[]Request{{0, 6 * ms}, {time.Second, 6 * ms}}, ""},
		"seconds": {"at,out,in\n10,1,1\n12.5,1,1\n", []Request{{0, 16 * ms}, {2500 * ms, 16 * ms}}, ""},
		"out of order": {"at,in,out\n5,1,0\n3,2,0\n4,3,0\n",
			[]Request{{0, 7 * ms}, {time.Second, 8 * ms}, {2 * time.Second, 6 * ms}}, ""},
		"nothing":           {"", nil, "no line of names"},
		"no such column":    {"at,in\n1,1\n", nil, `no column "out" that tells work: its columns are in`},
		"no time":           {"at,in,out\nnow,1,1\n", nil, `line 2: "now" is neither`},
		"no number":         {"at,in,out\n1,1,1\n2,x,1\n", nil, `line 3: in must be a number from 0 on, not "x"`},
		"negative":          {"at,in,out\n1,-1,1\n", nil, "line 2: in must be"},
		"not a number":      {"at,in,out\n1,NaN,1\n", nil, "line 2: in must be"},
		"too far apart":     {"at,in,out\n0,1,1\n1e12,1,1\n", nil, "line 3: it is more than"},
		"numbers and dates": {"at,in,out\n2023-11-16 18:17:03,1,1\n-1e12,1,1\n", nil, "line 3: it is more than"},
		"columns missing":   {"at,in,out\n1,1\n", nil, "wrong number of fields"},
	} {
		got, err := ReadTrace(strings.NewReader(c.text), work, 5*ms)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: error %v, want %q", name, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for i := range got { // dates are parsed as floats
			got[i].At = got[i].At.Round(time.Microsecond)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

func TestWork(t *testing.T) {
	const trace = "at,in\n0,1e9\n"
	for name, c := range map[string]struct {
		unit, fixed time.Duration
		want        string
	}{
		"of a unit": {-time.Second, 0, "the work of a unit of in cannot be negative"},
		"fixed":     {time.Millisecond, -time.Second, "no request is worked on for -1s"},
		"too much":  {20 * time.Hour, 0, "line 2: a request that is worked on for more than 876000h0m0s"},
	} {
		_, err := ReadTrace(strings.NewReader(trace), map[string]time.Duration{"in": c.unit}, c.fixed)
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

func TestRepeat(t *testing.T) {
	one := []Request{{0, 1}, {1500 * time.Millisecond, 2}}
	got := Repeat(one, 5*time.Second) // a lap takes 2 s
	want := []Request{{0, 1}, {1500 * time.Millisecond, 2}, {2 * time.Second, 1}, {3500 * time.Millisecond, 2}, {4 * time.Second, 1}}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if Repeat(nil, time.Hour) != nil {
		t.Error("nothing was repeated to something")
	}
}

// FuzzReadTrace: any text gives an error, or requests in order with no negative work.
func FuzzReadTrace(f *testing.F) {
	f.Add("at,in\n1,2\n0,3\n")
	f.Add("at,in\n2023-11-16 18:17:03.98,2\n")
	f.Add("at,in\n-1e300,2\n1e12,1e9\n")
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ReadTrace(strings.NewReader(text), map[string]time.Duration{"in": time.Hour}, 0)
		if err != nil {
			return
		}
		last := time.Duration(0)
		for _, r := range got {
			if r.At < last || r.Work < 0 {
				t.Fatalf("%v after %v", r, last)
			}
			last = r.At
		}
	})
}
