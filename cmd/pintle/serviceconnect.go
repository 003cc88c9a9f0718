package main

import (
	"fmt"
	"os"

	"github.com/pintle/pintle/internal/node/connect"
)

// proxyVerb is how an agent starts a proxy for Service Connect: as itself, also once another binary is in its place. It's no verb for people.
const proxyVerb = "service-connect-proxy"

var proxyProgram = []string{"/proc/self/exe", proxyVerb}

func runProxy() int {
	if err := connect.Main(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}
