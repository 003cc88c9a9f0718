#!/usr/bin/env bash
# Makes the cluster, trains, and shows what came of it: with the task's defaults, with a longer training by an override, and on four GPUs.
set -euo pipefail
cd "$(dirname "$0")"
. ../steps.sh
stack=${STACK:-recommender}
image=${IMAGE:-pintle/recommender}

train() { # runs the task, and shows what it says; an argument overrides its TRAINING_COMMAND
  local overrides='{}'
  if [ -n "${1:-}" ]; then overrides='{"containerOverrides":[{"name":"recommend","environment":[{"name":"TRAINING_COMMAND","value":"'$1'"}]}]}'; fi
  run_task "$(output "$stack" Cluster)" "$(output "$stack" TaskDefinition)" "$overrides"
  local said='' tries=0
  until [[ $said == *results:* ]] || [ $((tries++)) -ge 10 ]; do # the last lines may come a moment after the end
    said=$(aws logs get-log-events --log-group-name "$(output "$stack" LogGroup)" --log-stream-name "training/recommend/${task##*/}" --start-from-head --query 'events[].[message]' --output text)
  done
  sed 's/^/          /' <<< "$said"
  speeds+=("$(printf '%-28s %s' "${1:-train (the default)}" "$(grep -o 'trained on.*' <<< "$said")")")
}

speeds=()
deploy "$stack" cluster.yml "Image=$image"
bucket=$(output "$stack" Bucket)
awk 'BEGIN { srand(1); for (v = 1; v <= 400; v++) { line = "viewer-" v "\t"; for (f = 0; f < 12; f++) line = line (f ? "," : "") "film-" int(rand() * 150); print line } }' \
  | aws s3 cp - "s3://$bucket/data.tsv"
say "a data set of 400 viewers is in s3://$bucket/data.tsv"
train
train "train -e 5"
deploy "$stack" cluster.yml "Image=$image" GPUInstanceType=g4dn.12xlarge GPUs=4
train "mpirun -np 4 train -e 5"
say "recommendations for the first viewers, of s3://$bucket/results.tsv:"
aws s3 cp "s3://$bucket/results.tsv" - | awk 'NR <= 3 { print "          " $0 }'
say "done"
printf '          %s\n' "${speeds[@]}"
echo "          ./clean.sh takes all of it away"
