#!/usr/bin/env bash
# Takes away all that run.sh has made: the stack, the task definitions and their logs.
set -euo pipefail
cd "$(dirname "$0")"
. ../steps.sh
delete "${STACK:-gpu-training}"
for n in 1 4 8; do
  for arn in $(aws ecs list-task-definitions --family-prefix "tensorflow-$n-gpu" --query taskDefinitionArns --output text); do
    if [ "$arn" != None ]; then aws ecs deregister-task-definition --task-definition "$arn" --query taskDefinition.status --output text >/dev/null; fi
  done
  aws logs delete-log-group --log-group-name "/ecs/tensorflow-$n-gpu" 2>/dev/null || true # it isn't there if its task never ran
done
say "the task definitions and their logs are gone"
