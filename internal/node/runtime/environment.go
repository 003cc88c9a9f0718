package runtime

import (
	"slices"
	"strings"
)

// Environment joins lists of variables. If a name occurs twice, the last value counts: of two with one name, programs in C read the first.
func Environment(lists ...[]string) []string {
	var out []string
	at := map[string]int{}
	for _, v := range slices.Concat(lists...) {
		name, _, _ := strings.Cut(v, "=")
		if i, ok := at[name]; ok {
			out[i] = v
			continue
		}
		at[name] = len(out)
		out = append(out, v)
	}
	return out
}
