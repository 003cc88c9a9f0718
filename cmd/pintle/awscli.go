package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/pintle/pintle/internal/file"
)

// passing is a program that gives an AWS CLI its endpoint on the command line, however it is started: by a shell, timeout or xargs.
const passing = `#!/bin/sh
# Written by pintle env, for an AWS CLI that does not take the endpoint of each service from AWS_ENDPOINT_URL.
if [ -n "${AWS_ENDPOINT_URL:-}" ]; then exec %[1]s --endpoint-url "$AWS_ENDPOINT_URL" "$@"; fi
exec %[1]s "$@"
`

// awsBefore returns a directory for the front of PATH, with a program that passes the endpoint on to the AWS CLI. It returns "" if there is
// no AWS CLI, or if it needs no such program.
func awsBefore(ctx context.Context) (dir string, err error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir = filepath.Join(cache, "pintle", "bin")
	cli := programOutside(dir, "aws")
	if cli == "" || takesEndpoint(ctx, cli) {
		return "", nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(dir, "aws")
	if err := file.Replace(path, fmt.Appendf(nil, passing, quote(cli)), false); err != nil {
		return "", err
	}
	return dir, os.Chmod(path, 0o700)
}

// programOutside looks a program up on the PATH, but for one directory.
func programOutside(dir, name string) string {
	for _, at := range filepath.SplitList(os.Getenv("PATH")) {
		if at == dir {
			continue
		}
		path, err := exec.LookPath(filepath.Join(at, name))
		if err == nil && filepath.IsAbs(path) {
			return path
		}
	}
	return ""
}

// takesEndpoint reports whether an AWS CLI takes the endpoints of all services from AWS_ENDPOINT_URL: from version 2.13 on. Version 1 has
// an endpoint of its own for SQS.
func takesEndpoint(ctx context.Context, cli string) bool {
	out, err := exec.CommandContext(ctx, cli, "--version").Output()
	if err != nil {
		return false
	}
	var version [2]int
	if _, err := fmt.Sscanf(string(out), "aws-cli/%d.%d", &version[0], &version[1]); err != nil {
		return false
	}
	return slices.Compare(version[:], []int{2, 13}) >= 0
}
