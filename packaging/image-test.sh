#!/bin/bash
# Loads the image of make image into a Docker Engine and runs it: the control plane as its unprivileged user with a volume and a published
# port, its health, the AWS CLI against it, its end at SIGTERM, and again with what it kept; then an agent, and a task in it. Needs root, the
# AWS CLI and docker; without an engine at DOCKER_HOST it starts one. Usage: packaging/image-test.sh IMAGE.tar
set -euo pipefail
tar=$1
port=${PORT:-21566}
work=$(mktemp -d)
engine=
say() { echo "== $*"; }
end() {
	docker rm -f pintle-test pintle-agent-test >/dev/null 2>&1 || true
	docker ps -aq --filter name=pintle-image-test | xargs -r docker rm -f >/dev/null 2>&1 || true
	if [ -n "$engine" ]; then
		kill "$engine" && wait "$engine" || true
		umount "$work"/exec/netns/* 2>/dev/null || true # of what used the host's network
	fi
	rm -rf "$work" /var/lib/pintle-image-test
}
trap end EXIT
eventually() { for _ in $(seq 300); do if "$@" >"$work/out" 2>&1; then return; fi; sleep 0.2; done; cat "$work/out"; echo "not within a minute: $*"; exit 1; }

if ! docker info >/dev/null 2>&1; then
	export DOCKER_HOST=unix://$work/s
	dockerd -H "$DOCKER_HOST" --data-root "$work/data" --exec-root "$work/exec" --pidfile "$work/pid" >"$work/log" 2>&1 &
	engine=$!
	eventually docker info
fi

say load
image=$(docker load -i "$tar" | sed -n 's/^Loaded image: //p')
[ -n "$image" ]
[ "$(docker image inspect -f '{{.Config.User}}' "$image")" = 65532:65532 ]

say "no key, no start on all addresses"
if docker run --rm "$image" >"$work/out" 2>&1; then echo "it starts without a key"; exit 1; fi
grep -q PINTLE_ACCESS_KEY_ID "$work/out"

say "the control plane, with a volume and a published port"
export AWS_ACCESS_KEY_ID=AKIATEST AWS_SECRET_ACCESS_KEY=secret AWS_DEFAULT_REGION=us-east-1
up() {
	docker run -d --name pintle-test -v pintle-test:/var/lib/pintle -p "127.0.0.1:$port:4566" --read-only --cap-drop ALL --security-opt no-new-privileges \
		-e PINTLE_ACCESS_KEY_ID=$AWS_ACCESS_KEY_ID -e PINTLE_SECRET_ACCESS_KEY=$AWS_SECRET_ACCESS_KEY "$image" >/dev/null
}
healthy() { [ "$(docker inspect -f '{{.State.Health.Status}}' pintle-test)" = healthy ]; }
url=http://127.0.0.1:$port
up
eventually aws --endpoint-url "$url" ecs list-clusters
grep -q cluster/default "$work/out"
eventually healthy
[ "$(docker top pintle-test -o pid,uid | awk 'END { print $2 }')" = 65532 ]
aws --endpoint-url "$url" sqs create-queue --queue-name kept >/dev/null

say "SIGTERM, and what it kept"
docker stop -t 30 pintle-test >/dev/null
[ "$(docker inspect -f '{{.State.ExitCode}}' pintle-test)" = 0 ]
docker rm pintle-test >/dev/null
up
eventually aws --endpoint-url "$url" sqs get-queue-url --queue-name kept

say "an agent, whose tasks are containers of the same engine"
socket=${DOCKER_HOST:-unix:///var/run/docker.sock}
agent() {
	docker run -d --name pintle-agent-test --user 0 --network host --pid host --no-healthcheck -v "${socket#unix://}:/var/run/docker.sock" \
		-v /var/lib/pintle-image-test:/var/lib/pintle-image-test -e AWS_ACCESS_KEY_ID -e AWS_SECRET_ACCESS_KEY "$image" \
		agent --endpoint "$url" --runtime docker --data /var/lib/pintle-image-test --metrics= >/dev/null
}
agent
task() { docker run --rm --network host -e AWS_ACCESS_KEY_ID -e AWS_SECRET_ACCESS_KEY --no-healthcheck "$image" run --endpoint "$url" "$image" "$@"; }
eventually task version
grep -q '^pintle [0-9]' "$work/out" || { cat "$work/out"; exit 1; }
docker stop -t 30 pintle-agent-test >/dev/null
say "all went well"
