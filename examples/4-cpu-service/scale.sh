#!/usr/bin/env bash
# Makes a service whose tasks have a quarter of a CPU each, gives them work until there are more of them,
# and takes it away until there is one. down deletes the service.
set -euo pipefail
cd "$(dirname "$0")"
taskdef=${TASKDEF:-taskdef.json}
work=${WORK_DIR:-/tmp/cpu-service} # the tasks have work while there is a file work in it
give_up=${GIVE_UP:-1800}           # seconds after which a step has failed
export AWS_PAGER=
aws() { command aws ${AWS_ENDPOINT_URL:+--endpoint-url "$AWS_ENDPOINT_URL"} "$@"; }
scaling() { aws application-autoscaling "$@" --service-namespace ecs --resource-id service/default/ml-service; }
scalable() { scaling "$@" --scalable-dimension ecs:service:DesiredCount; }
metric() { # what CloudWatch has of the last minutes
  aws cloudwatch get-metric-statistics --namespace AWS/ECS --metric-name CPUUtilization --statistics Average --period 60 \
    --dimensions Name=ClusterName,Value=default Name=ServiceName,Value=ml-service \
    --start-time "$(date -u -d '-5 min' +%FT%TZ)" --end-time "$(date -u +%FT%TZ)" --query 'sort_by(Datapoints,&Timestamp)[-1].Average' --output text
}

down() { # an earlier run's, too, however far it came, or nothing
  local status targets
  status=$(aws ecs describe-services --services ml-service --query 'services[0].status' --output text)
  if [ "$status" = ACTIVE ]; then
    targets=$(aws application-autoscaling describe-scalable-targets --service-namespace ecs --resource-ids service/default/ml-service --query 'length(ScalableTargets)')
    if [ "$targets" != 0 ]; then scalable deregister-scalable-target; fi
    status=$(aws ecs delete-service --service ml-service --force --query service.status --output text)
  fi
  if [ "$status" = DRAINING ]; then aws ecs wait services-inactive --services ml-service; fi
}

case ${1:-up} in
  up) down ;;
  down) down; exit ;;
  *) echo "usage: $0 [up|down]" >&2; exit 2 ;;
esac

mkdir -p "$work" && rm -f "$work/work"
trap 'rm -f "$work/work"' EXIT

aws ecs register-task-definition --cli-input-json "$(sed "s#/tmp/cpu-service#$work#g" "$taskdef")" --query taskDefinition.taskDefinitionArn --output text
aws ecs create-service --service-name ml-service --task-definition ml-task-family --desired-count 1 --query service.serviceArn --output text
scalable register-scalable-target --min-capacity 1 --max-capacity 10 >/dev/null
scalable put-scaling-policy --policy-name ecs-appautoscaling-policy --policy-type TargetTrackingScaling \
  --target-tracking-scaling-policy-configuration file://policy.json --query 'Alarms[].AlarmName' --output text

# follow shows the service, when it changes and each ten seconds, until so many of its tasks run and no more are wanted: follow -ge 2.
follow() {
  local desired=0 running=-1 last= shown=0 began=$SECONDS
  until [ "$desired" -eq "$running" ] && [ "$running" "$1" "$2" ]; do
    if [ $((SECONDS - began)) -ge "$give_up" ]; then
      echo "the service has $running tasks after $give_up s, which should be $1 $2. Its load is real: on a busy machine the tasks may not get the CPU that would scale it" >&2
      exit 1
    fi
    [ "$shown" = 0 ] || sleep 2
    read -r desired running < <(aws ecs describe-services --services ml-service --query 'services[0].[desiredCount,runningCount]' --output text)
    [ "$desired $running" = "$last" ] && [ $((SECONDS - shown)) -lt 10 ] && continue
    echo "$(date +%T)  desired and running: $desired $running; CPU: $(metric) %"
    last="$desired $running" shown=$((SECONDS + 1))
  done
}

follow -eq 1
echo '--- work'
touch "$work/work"
follow -ge 2
echo '--- rest'
rm "$work/work"
follow -eq 1
scaling describe-scaling-activities --query 'ScalingActivities[].[StartTime,StatusCode,Description,Cause]' --output text
