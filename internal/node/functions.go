package node

import (
	"net/http"
	"os"
	"path/filepath"

	"github.com/pintle/pintle/internal/node/function"
	"github.com/pintle/pintle/internal/node/tmds"
)

// isPlain reports whether containers are plain processes, which share the machine's network.
func (a *Agent) isPlain() bool { return a.config.Runtime.Name() == "process" }

// hasFunctions reports whether functions can run here. Containers with a network of their own reach the agent only if it's root.
func (a *Agent) hasFunctions() bool {
	return a.config.Functions != nil && (a.isPlain() || os.Geteuid() == 0)
}

// openFunctions prepares the node for functions.
func (a *Agent) openFunctions() (err error) {
	if !a.hasFunctions() {
		return nil
	}
	dir, err := filepath.Abs(filepath.Join(a.config.DataDir, "functions"))
	if err != nil {
		return err
	}
	o := function.Options{
		Dir:    dir,
		Plain:  a.isPlain(),
		Call:   a.config.Functions,
		Output: a.config.Runtime,
		Log:    a.log,
	}
	if a.hasBlockVolumes() {
		o.Disks = a.config.BlockVolumes
	}
	a.function, err = function.New(o)
	return err
}

// metadataOptions are those of the metadata endpoint.
func (a *Agent) metadataOptions() tmds.Options {
	o := tmds.Options{
		Tasks:    a.engine,
		Runtime:  a.config.Runtime,
		ECS:      a.config.ECS,
		Region:   a.config.Region,
		Zone:     a.config.Zone,
		Instance: a.Instance,
		Metadata: a.machine.ownService(),
		Log:      a.log,
	}
	if a.function != nil {
		a.function.Use(a.engine)
		a.function.Resume(a.engine.Running())
		o.Functions = func(task string) http.Handler { return a.function.Handler(task) }
	}
	return o
}
