#!/usr/bin/env bash
# Builds the service's image and pushes it to a repository in ECR. The last line is the image's name, for IMAGE of scale.sh.
set -euo pipefail
cd "$(dirname "$0")"
export AWS_PAGER=
aws() { command aws ${AWS_ENDPOINT_URL:+--endpoint-url "$AWS_ENDPOINT_URL"} "$@"; }
name=gpu-service
uri=$(aws ecr describe-repositories --repository-names "$name" --query 'repositories[0].repositoryUri' --output text 2>/dev/null) ||
  uri=$(aws ecr create-repository --repository-name "$name" --query repository.repositoryUri --output text)
at=$uri # Pintle's registry is at the control plane's own address
if [ -n "${AWS_ENDPOINT_URL:-}" ]; then at=${AWS_ENDPOINT_URL#*://}/$name; fi
aws ecr get-login-password | docker login --username AWS --password-stdin "${at%%/*}" >&2
docker build ${BASE:+--build-arg "BASE=$BASE"} --tag "$at:latest" . >&2
docker push --quiet "$at:latest" >&2
echo "$uri:latest"
