#!/usr/bin/env bash
# Makes a GPU service that follows its load, and shows it grow to four tasks and shrink to one.
set -euo pipefail
cd "$(dirname "$0")"
export AWS_PAGER=
aws() { command aws ${AWS_ENDPOINT_URL:+--endpoint-url "$AWS_ENDPOINT_URL"} "$@"; }
scaling() { aws application-autoscaling "$@" --service-namespace ecs --scalable-dimension ecs:service:DesiredCount --resource-id service/default/gpu-service; }

aws ecs register-task-definition --cli-input-json file://taskdef.json --query taskDefinition.taskDefinitionArn --output text
aws ecs create-service --service-name gpu-service --task-definition gpu-service --desired-count 1 --query service.serviceArn --output text
scaling register-scalable-target --min-capacity 1 --max-capacity 4 >/dev/null
scaling put-scaling-policy --policy-name gpu --policy-type TargetTrackingScaling \
  --target-tracking-scaling-policy-configuration file://policy.json --query 'Alarms[].AlarmName' --output text

# follow shows the service until it has so many tasks.
follow() {
  local counts last=
  while counts=$(aws ecs describe-services --services gpu-service --query 'services[0].[desiredCount,runningCount]' --output text); do
    [ "$counts" = "$last" ] || echo "$(date +%T)  desired and running: $counts"
    last=$counts
    [ "$counts" = "$1"$'\t'"$1" ] && return
    sleep 2
  done
}

echo '--- its tasks keep their GPUs busy'
follow 4
echo '--- and now they do not'
sed 's/"0.9"/"0.05"/' taskdef.json >"${TMPDIR:-/tmp}/idle-taskdef.json"
aws ecs register-task-definition --cli-input-json "file://${TMPDIR:-/tmp}/idle-taskdef.json" --query taskDefinition.taskDefinitionArn --output text
aws ecs update-service --service gpu-service --task-definition gpu-service --query service.taskDefinition --output text
follow 1
aws application-autoscaling describe-scaling-activities --service-namespace ecs --query 'ScalingActivities[].[StartTime,Description,Cause]' --output text
