package wire

import (
	"fmt"
	"strings"
)

// Coverage is docs/coverage.md: which operations of each service are implemented.
func (h *Handler) Coverage() string {
	var b strings.Builder
	b.WriteString("# Which operations are implemented\n\nMade from the code by `pintle coverage`. An operation that is not here yet answers with an error that says so, and changes nothing.\n")
	for _, api := range h.apis {
		fmt.Fprintf(&b, "\n## %s: %d of %d\n\n", api.Title, len(api.calls), len(api.Operations))
		var not []string
		for _, op := range api.Operations {
			if api.calls[op] == nil {
				not = append(not, op)
				continue
			}
			fmt.Fprintf(&b, "- [x] %s\n", op)
		}
		if len(not) > 0 {
			fmt.Fprintf(&b, "\nNot yet: %s.\n", strings.Join(not, ", "))
		}
	}
	return b.String()
}
