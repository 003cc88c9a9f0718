package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/pintle/pintle/internal/file"
)

// pushing is a program docker that leads images of the account's registry to the control plane, which has it at its own address. %s is docker.
const pushing = `#!/bin/sh
# docker, for which the account's registry is where the control plane is. It's made by pintle env.
at=${AWS_ENDPOINT_URL#*://}
at=${at%%/}
for word; do
  shift
  case $word in https://*.dkr.ecr.*.amazonaws.com) word=${word#https://} ;; esac
  case $word in *.dkr.ecr.*.amazonaws.com | *.dkr.ecr.*.amazonaws.com/*) word=$at${word#*.amazonaws.com} ;; esac
  set -- "$@" "$word"
done
exec %s "$@"
`

// dockerForCDK returns a program that the CDK can run in docker's place, or "" where there's no docker.
func dockerForCDK() (path string, err error) {
	docker, err := exec.LookPath("docker")
	if err != nil {
		return "", nil
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	path = filepath.Join(cache, "pintle", "cdk-docker")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	if err := file.Replace(path, fmt.Appendf(nil, pushing, quote(docker)), false); err != nil {
		return "", err
	}
	return path, os.Chmod(path, 0o700)
}
