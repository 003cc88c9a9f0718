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
need go || packages+=(golang-go)
if [ "${1:-}" = test ]; then
  # Debian's own awscli and python3-boto3 are too old to know AWS_ENDPOINT_URL and the newest operations.
  if ! need aws || ! python3 -c 'import awscli, boto3, sys; sys.exit(tuple(map(int, boto3.__version__.split(".")[:2])) < (1, 28))' 2>/dev/null; then
    echo 'installing boto3 and awscli with pip'
    python3 -m pip install --quiet --upgrade boto3 awscli || {
      echo 'The tests need the AWS CLI and boto3 1.28 or later: pip install boto3 awscli' >&2
      exit 1
    }
  fi
  if ! python3 -c 'import cfnlint.data.schemas.resources, cfnlint.runner' 2>/dev/null; then
    echo 'installing cfn-lint with pip'
    python3 -m pip install --quiet --upgrade cfn-lint || { echo 'The tests need cfn-lint 1.51 or later: pip install cfn-lint' >&2; exit 1; }
  fi
  need dockerd || packages+=(docker.io)
  need groff || packages+=(groff-base)
  need runc || packages+=(runc)
  [ -x /usr/lib/cni/bridge ] || [ -x /opt/cni/bin/bridge ] || packages+=(containernetworking-plugins)
  need iptables || packages+=(iptables)
  need ip || packages+=(iproute2)
  need busybox || packages+=(busybox-static)
  need skopeo || packages+=(skopeo)
  need npm || packages+=(nodejs npm)
  need chromium || packages+=(chromium)
  need ssh || packages+=(openssh-client)
  if [ ! -x /usr/sbin/sshd ]; then # the tests run one of their own; no server is to come up for it
    if need systemctl; then as_root systemctl mask --quiet ssh.service ssh.socket; fi
    packages+=(openssh-server)
  fi
fi
if [ ${#packages[@]} -gt 0 ]; then
  echo "installing ${packages[*]}"
  as_root apt-get update -qq
  as_root apt-get install -y -qq --no-install-recommends "${packages[@]}"
fi
# From version 1.21 on, Go fetches the version that go.mod names by itself. An older one, such as Debian 12's, can fetch it as a module.
if [[ $(go version) =~ go1\.([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -lt 21 ]; then
  toolchain=golang.org/toolchain@v0.0.1-go$(awk '$1 == "go" { print $2 }' go.mod).$(go env GOOS)-$(go env GOARCH)
  echo "fetching $toolchain"
  fetched=$(cd "$(mktemp -d)" && go mod init fetch 2>/dev/null && go mod download -json "$toolchain" | awk -F'"' '$2 == "Dir" { print $4 }')
  chmod +x "$fetched"/bin/* "$fetched"/pkg/tool/*/* # which modules cannot be, before 1.21
  export PATH="$fetched/bin:$PATH"
  echo "for make and go in this shell: export PATH=$fetched/bin:\$PATH"
fi
exec make "${1:-help}"
