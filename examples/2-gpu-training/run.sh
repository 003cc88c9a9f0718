#!/usr/bin/env bash
# Makes the cluster, and trains on one GPU; then has larger machines take its machines' place, and trains on four and on eight.
set -euo pipefail
cd "$(dirname "$0")"
. ../steps.sh
stack=${STACK:-gpu-training}

train() { # runs the task with so many GPUs, and shows what it says
  aws ecs register-task-definition --cli-input-json "file://gpu-$1-taskdef.json" --query taskDefinition.taskDefinitionArn --output text
  run_task "$(output "$stack" ClusterName)" "tensorflow-$1-gpu"
  local said='' tries=0
  until [[ $said == *total* ]] || [ $((tries++)) -ge 10 ]; do # the last lines may come a moment after the end
    said=$(aws logs get-log-events --log-group-name "/ecs/tensorflow-$1-gpu" --log-stream-name "ecs/tensorflow-$1-gpu/${task##*/}" --start-from-head --query 'events[].[message]' --output text)
  done
  sed 's/^/          /' <<< "$said"
  speeds+=("$1 GPUs: $(grep -o 'total.*' <<< "$said")")
}

speeds=()
deploy "$stack" cluster.yml "Instances=${INSTANCES:-2}"
train 1
deploy "$stack" cluster.yml "Instances=${INSTANCES:-2}" GPUInstanceType=p3.16xlarge
train 4
train 8
say "done"
printf '          %s\n' "${speeds[@]}"
echo "          ./clean.sh takes all of it away"
