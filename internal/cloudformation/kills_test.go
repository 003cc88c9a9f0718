package cloudformation

import (
	"flag"
	"iter"

	"github.com/pintle/pintle/internal/store/journaltest"
)

var killsEvery = flag.Int("kills.every", 3, "of how many writes of the journal one is the last before a kill; make soak tries each")

// kills returns those of a journal's writes after which a process is killed, each with the rows as it left them. The last one is among them.
func kills(wrote []journaltest.Rows) iter.Seq2[int, journaltest.Rows] {
	return func(yield func(int, journaltest.Rows) bool) {
		for i := (len(wrote) - 1) % *killsEvery; i >= 0 && i < len(wrote); i += *killsEvery {
			if !yield(i, wrote[i]) {
				return
			}
		}
	}
}
