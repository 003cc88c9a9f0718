package wire

import (
	"fmt"
	"strings"
)

// Coverage is docs/coverage.md: which operations of each service are implemented.
func (h *Handler) Coverage() string {
	var b strings.Builder
	b.WriteString("# Which operations are implemented\n\nMade from the code by `pintle coverage`. ")
	b.WriteString("An operation that is not here yet answers with an error that says so, and changes nothing.\n\n")
	b.WriteString("| service | implemented | of |\n| --- | ---: | ---: |\n")
	for _, api := range h.apis {
		fmt.Fprintf(&b, "| %s | %d | %d |\n", api.Title, len(api.operations), len(api.Operations))
	}
	for _, api := range h.apis {
		fmt.Fprintf(&b, "\n## %s\n\n", api.Title)
		api.coverage(&b)
	}
	return b.String()
}

// tooMany is how many operations that are not there nobody reads the names of.
const tooMany = 200

func (a *served) coverage(b *strings.Builder) {
	var not []string
	for _, name := range a.Operations {
		if a.operations[name] == nil {
			not = append(not, name)
			continue
		}
		fmt.Fprintf(b, "- [x] %s\n", name)
	}
	if len(not) > tooMany {
		fmt.Fprintf(b, "\nand none of the other %d.\n", len(not))
		return
	}
	for _, name := range not {
		fmt.Fprintf(b, "- [ ] %s\n", name)
	}
}
