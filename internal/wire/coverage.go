package wire

import (
	"fmt"
	"slices"
	"strings"
)

// Coverage returns docs/coverage.md, which lists the operations that each service implements.
func (h *Handler) Coverage() string {
	var b strings.Builder
	b.WriteString("# Which operations are implemented\n\nMade from the code by `pintle coverage`. ")
	b.WriteString("An operation that is not here yet answers with an error that says so, and changes nothing.\n\n")
	b.WriteString("| service | implemented | of |\n| --- | ---: | ---: |\n")
	for _, api := range h.apis {
		fmt.Fprintf(&b, "| %s | %d | %d |\n", api.Title, len(api.operations)-len(api.Refuses), len(api.Operations))
	}
	for _, api := range h.apis {
		fmt.Fprintf(&b, "\n## %s\n\n", api.Title)
		api.coverage(&b)
	}
	return b.String()
}

// maxMissing is the most missing operations that are listed by name. Nobody reads a longer list.
const maxMissing = 200

// coverage writes an API's part of the list.
func (a *served) coverage(b *strings.Builder) {
	var missing []string
	for _, name := range a.Operations {
		switch {
		case slices.Contains(a.Refuses, name):
			fmt.Fprintf(b, "- [ ] %s, which says why\n", name)
		case a.operations[name] == nil:
			missing = append(missing, name)
		default:
			fmt.Fprintf(b, "- [x] %s\n", name)
		}
	}
	if len(missing) > maxMissing {
		fmt.Fprintf(b, "\nand none of the other %d.\n", len(missing))
		return
	}
	for _, name := range missing {
		fmt.Fprintf(b, "- [ ] %s\n", name)
	}
}
