package sign

import "testing"

// TestCanonicalQuery: a name comes before those that it begins, whatever follows in them.
func TestCanonicalQuery(t *testing.T) {
	for _, c := range []struct{ query, want string }{
		{"", ""},
		{"select&select-type=2", "select=&select-type=2"},
		{"b=2&a=3&b=1", "a=3&b=1&b=2"},
		{"a.b=1&a=2&a1=3&a%20=4", "a=2&a%20=4&a.b=1&a1=3"},
		{"k=a+b%2Fc~", "k=a%20b%2Fc~"},
		{"X-Amz-Date=d&X-Amz-Signature=s", "X-Amz-Date=d"},
	} {
		if got := canonicalQuery(c.query); got != c.want {
			t.Errorf("%s: %s, want %s", c.query, got, c.want)
		}
	}
}
