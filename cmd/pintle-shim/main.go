// Command pintle-shim stands beside each container of the runtimes oci and process, so that containers outlive the agent
// that has started them. The agent finds it beside its own program. It is a program of its own because there are as many
// of it as containers: pintle shim does the same, and takes ten times the memory.
package main

import (
	"os"

	"github.com/pintle/pintle/internal/node/runtime/shim/program"
)

func main() { os.Exit(program.Main(os.Args[1:])) }
