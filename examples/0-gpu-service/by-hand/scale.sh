#!/usr/bin/env bash
# Makes a GPU service that follows its load, stresses its GPUs until it has grown to its most tasks, and
# lets them rest until it has shrunk to one. down deletes the service. The environment may say otherwise than the first lines.
set -euo pipefail
cd "$(dirname "$0")"
taskdef=${TASKDEF:-taskdef.json}
image=${IMAGE:-ubuntu}                # build_image.sh makes one
most=${MOST:-4}                       # tasks
port=${EXPORTER_PORT:-9400}           # of the dcgm-exporter on each machine
stress=${STRESS_DIR:-/tmp/gpu-service} # the tasks' GPUs are as busy as the file stress in it says
give_up=${GIVE_UP:-1800}              # seconds after which a step has failed
export AWS_PAGER=
aws() { command aws ${AWS_ENDPOINT_URL:+--endpoint-url "$AWS_ENDPOINT_URL"} "$@"; }
scaling() { aws application-autoscaling "$@" --service-namespace ecs --resource-id service/default/gpu-service; }
scalable() { scaling "$@" --scalable-dimension ecs:service:DesiredCount; }
metric() { # what CloudWatch has of the last minutes
  aws cloudwatch get-metric-statistics --namespace ECS/ContainerInsights/Prometheus --metric-name DCGM_FI_DEV_GPU_UTIL \
    --dimensions Name=ClusterName,Value=default Name=ServiceName,Value=gpu-service --statistics Average Maximum --period 60 \
    --start-time "$(date -u -d '-5 min' +%FT%TZ)" --end-time "$(date -u +%FT%TZ)" --query 'sort_by(Datapoints,&Timestamp)[-1].[Average,Maximum]' --output text
}

down() { # an earlier run's, too, however far it came, or nothing
  local status targets
  status=$(aws ecs describe-services --services gpu-service --query 'services[0].status' --output text)
  if [ "$status" = ACTIVE ]; then
    targets=$(aws application-autoscaling describe-scalable-targets --service-namespace ecs --resource-ids service/default/gpu-service --query 'length(ScalableTargets)')
    if [ "$targets" != 0 ]; then scalable deregister-scalable-target; fi
    status=$(aws ecs delete-service --service gpu-service --force --query service.status --output text)
  fi
  if [ "$status" = DRAINING ]; then aws ecs wait services-inactive --services gpu-service; fi
}

case ${1:-up} in
  up) down ;;
  down) down; exit ;;
  *) echo "usage: $0 [up|down]" >&2; exit 2 ;;
esac

mkdir -p "$stress" && rm -f "$stress/stress"
trap 'rm -f "$stress/stress"' EXIT

aws ecs register-task-definition --cli-input-json "$(sed "s#\"ubuntu\"#\"$image\"#; s#9400#$port#g; s#/tmp/gpu-service#$stress#g" "$taskdef")" \
  ${TASK_ROLE:+--task-role-arn "$TASK_ROLE"} --query taskDefinition.taskDefinitionArn --output text
aws ecs create-service --service-name gpu-service --task-definition gpu-service --desired-count 1 ${EXECUTE:+--enable-execute-command} --query service.serviceArn --output text
scalable register-scalable-target --min-capacity 1 --max-capacity "$most" >/dev/null
scalable put-scaling-policy --policy-name gpu --policy-type TargetTrackingScaling \
  --target-tracking-scaling-policy-configuration file://policy.json --query 'Alarms[].AlarmName' --output text

# follow shows the service, when it changes and each ten seconds, until it has so many tasks.
follow() {
  local counts last= shown=0 began=$SECONDS
  until [ "${counts:-}" = "$1"$'\t'"$1" ]; do
    if [ $((SECONDS - began)) -ge "$give_up" ]; then
      echo "$1 tasks should run after $give_up s: pintle ps -a and aws ecs describe-services tell what they wait for" >&2
      exit 1
    fi
    [ "$shown" = 0 ] || sleep 2
    counts=$(aws ecs describe-services --services gpu-service --query 'services[0].[desiredCount,runningCount]' --output text)
    [ "$counts" = "$last" ] && [ $((SECONDS - shown)) -lt 10 ] && continue
    echo "$(date +%T)  desired and running: $counts; GPUs' average and maximum: $(metric)"
    last=$counts shown=$((SECONDS + 1))
  done
}

follow 1
echo '--- stress'
echo 1 > "$stress/stress"
follow "$most"
echo '--- rest'
rm "$stress/stress"
follow 1
for which in High Low; do
  name=$(aws cloudwatch describe-alarms --alarm-name-prefix "TargetTracking-service/default/gpu-service-Alarm$which" --query 'MetricAlarms[].AlarmName' --output text)
  aws cloudwatch describe-alarm-history --alarm-name "$name" --query 'AlarmHistoryItems[].[HistoryItemType,HistorySummary]' --output text
done
scaling describe-scaling-activities --query 'ScalingActivities[].[StartTime,StatusCode,Description,Cause]' --output text
