#!/usr/bin/env bash
# Installs what Pintle needs on Debian or Ubuntu and is not there, then runs a make target: demo, test …
set -euo pipefail
cd "$(dirname "$0")"
need() { command -v "$1" >/dev/null 2>&1; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

packages=()
need gcc || packages+=(gcc libc6-dev)
need make || packages+=(make)
need python3 || packages+=(python3)
if [ "${1:-}" = test ]; then
  need aws || packages+=(awscli)
  python3 -c 'import boto3' 2>/dev/null || packages+=(python3-boto3)
  need dockerd || packages+=(docker.io)
  need iptables || packages+=(iptables)
  need busybox || packages+=(busybox-static)
fi
if [ ${#packages[@]} -gt 0 ]; then
  echo "installing ${packages[*]}"
  as_root apt-get update -qq
  as_root apt-get install -y -qq --no-install-recommends "${packages[@]}"
fi
if ! need go; then
  echo 'Pintle is written in Go 1.26 or later, which is not installed: https://go.dev/doc/install' >&2
  exit 1
fi
exec make "${1:-help}"
