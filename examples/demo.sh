#!/usr/bin/env bash
# Starts Pintle with two simulated p3.16xlarge, runs a four-GPU task to its logs, shows who held what,
# and stops again. Plain processes stand in for containers, so it needs no container engine.
set -euo pipefail
cd "$(dirname "$0")/.."
data=$(mktemp -d)
port=${PORT:-4566}
export PATH="$PWD/bin:$PATH"
said=$data/said
: > "$said"
pintle up --listen "127.0.0.1:$port" --data "$data/state" --instances p3.16xlarge=2 --runtime process > >(tee "$said") &
up=$!
trap 'kill -INT $up 2>/dev/null && wait $up || true; rm -rf "$data"' EXIT
until grep -q ' is up ' "$said"; do
  kill -0 $up 2>/dev/null || exit 1 # it has said why, such as that the port is taken
  sleep 0.1
done
eval "$(pintle env --endpoint "http://127.0.0.1:$port")"
echo '+ pintle run --gpus 4 pintle/gpu-training gpu-training'
pintle run --gpus 4 pintle/gpu-training gpu-training &
run=$!
sleep 2
echo '+ pintle gpus'
pintle gpus
wait $run
echo '+ pintle ps -a'
pintle ps -a
