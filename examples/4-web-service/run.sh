#!/usr/bin/env bash
# Deploys the service, asks it through its load balancer until the work has it at its most tasks, goes on asking little until it's
# back at one, and says how many requests were answered. clean.sh takes all of it away. The environment may say otherwise than the first lines.
set -euo pipefail
cd "$(dirname "$0")"
. ../steps.sh
stack=${STACK:-web-service}
most=${MAX_TASKS:-10}
clients=${CLIENTS:-$((2 * most))}             # that ask for work, each again as soon as it has its answer
millions=${MILLIONS:-100}                     # of steps that an answer takes, some 50 ms of a core
give_up=${GIVE_UP:-2400}                      # seconds after which a step has failed
export PATH="$PATH:$PWD/../../bin"
tmp=$(mktemp -d)
jobs=()
finish() {
  if [ ${#jobs[@]} -gt 0 ]; then kill "${jobs[@]}" 2>/dev/null || true; fi
  wait
  rm -r "$tmp"
}
trap finish EXIT

address() { # where the load balancer answers: its name, or on Pintle what pintle balancers says, since its port may be another one there
  local url
  url=$(output "$stack" URL)
  if [ -n "${AWS_ENDPOINT_URL:-}" ]; then
    url=http://$(pintle balancers | awk -v "name=$(sed 's/:[0-9]*$/:/' <<< "$url")" 'index(tolower($4), tolower(name)) == 1 { print $3 }')
  fi
  echo "$url"
}

ask() { # in the background: ask NAME FLAGS PATH
  web-service load --counts "$tmp/$1" "${@:2:$#-2}" "$url${*: -1}" 2>> "$tmp/failures" &
  jobs+=($!)
}

asked() { # how many requests were answered, and how many failed
  cat "$tmp"/asks-* 2>/dev/null | awk '{ answered += $1; failed += $2 } END { print answered + 0, failed + 0 }'
}

cpu() { # what CloudWatch has of the last minutes, in whole percents
  aws cloudwatch get-metric-statistics --namespace AWS/ECS --metric-name CPUUtilization --statistics Average --period 60 \
    --dimensions "Name=ClusterName,Value=$cluster" "Name=ServiceName,Value=$service" \
    --start-time "$(date -u -d '-5 min' +%FT%TZ)" --end-time "$(date -u +%FT%TZ)" --query 'sort_by(Datapoints,&Timestamp)[-1].Average' --output text |
    cut -d. -f1
}

follow() { # shows the service every five seconds until it has so many tasks
  local desired=0 running=-1 began=$SECONDS shown=-5 answered failed
  until [ "$desired $running" = "$1 $1" ]; do
    if [ $((SECONDS - began)) -ge "$give_up" ]; then
      echo "the service has $running tasks after $give_up s instead of $1. What the tasks need is real: on a busy machine they may not get the CPU that would scale them" >&2
      return 1
    fi
    sleep 1
    read -r desired running < <(aws ecs describe-services --cluster "$cluster" --services "$service" --query 'services[0].[desiredCount,runningCount]' --output text)
    if [ "$running" != "${tasks[-1]##* }" ]; then tasks+=("$(date +%T) $running"); fi
    if [ $((SECONDS - shown)) -lt 5 ] && [ "$desired $running" != "$1 $1" ]; then continue; fi
    shown=$SECONDS
    read -r answered failed < <(asked)
    say "tasks wanted and running: $desired $running; CPU: $(cpu) %; requests answered: $answered, failed: $failed"
  done
}

began=$SECONDS
# PARAMETERS are more of the template's, such as Image=…
# shellcheck disable=SC2086 # there may be several
deploy "$stack" web.yml "MaxTasks=$most" ${PARAMETERS:-}
url=$(address)
cluster=$(output "$stack" ClusterName) service=$(output "$stack" ServiceName)
answer=$(curl -fsS --retry 60 --retry-delay 1 --retry-connrefused "$url/")
say "$url answers: $answer"
tasks=("$(date +%T) 1")
ask asks-little --pause 200ms /
follow 1
echo '--- work'
ask asks-work --clients "$clients" "/work?millions=$millions"
follow "$most"
echo '--- rest'
kill "${jobs[1]}"
wait "${jobs[1]}"
follow 1
kill "${jobs[0]}"
wait "${jobs[0]}"
jobs=()
read -r answered failed < <(asked)
echo '--- summary'
echo "requests answered: $answered, failed: $failed"
echo "tasks over time: $(printf '%s, ' "${tasks[@]}" | sed 's/, $//; s/ \([0-9]*\)\(,\|$\)/ → \1\2/g')"
aws application-autoscaling describe-scaling-activities --service-namespace ecs --resource-id "service/$cluster/$service" \
  --query 'reverse(ScalingActivities)[].[StatusCode,Description,Cause]' --output text
echo "it took $((SECONDS - began)) s"
if [ "$failed" != 0 ]; then
  sort "$tmp/failures" | uniq -c >&2
  exit 1
fi
