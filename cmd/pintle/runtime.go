package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/pintle/pintle/internal/agent/runtime"
	"github.com/pintle/pintle/internal/agent/runtime/docker"
	"github.com/pintle/pintle/internal/agent/runtime/process"
)

// open opens the runtime that is asked for: Docker's, or plain processes by name alone. Without either
// it says how to get one.
func (f nodeFlags) open(ctx context.Context, dir string) (runtime.Runtime, error) {
	if f.Runtime == "process" {
		self, err := os.Executable()
		if err != nil {
			return nil, err
		}
		return process.New(dir, []string{self, "shim"})
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	rt, err := docker.New(ctx, f.DockerHost)
	if err != nil {
		return nil, fmt.Errorf("%w\nInstall one with: apt-get install docker.io\nOr run containers as plain processes, without isolation: --runtime process", err)
	}
	return rt, nil
}
