#!/usr/bin/env bash
# Deploys the CDK app, puts the GPUs under stress until service and machines have grown to their most, lets them rest until both have
# shrunk, and sums up. clean.sh takes everything away. The environment may say otherwise than the first lines.
set -euo pipefail
cd "$(dirname "$0")"
most=${MOST:-4}                        # tasks, each on a machine of its own
stress=${STRESS_DIR:-/tmp/gpu-service} # the tasks' GPUs are as busy as the file stress in it says
give_up=${GIVE_UP:-1800}               # seconds after which a step has failed
export AWS_PAGER= CDK_DISABLE_CLI_TELEMETRY=true
aws() { command aws ${AWS_ENDPOINT_URL:+--endpoint-url "$AWS_ENDPOINT_URL"} "$@"; }
say() { echo "$(date +%T)  $*"; }

command -v npm >/dev/null || { echo "this needs Node.js 20 or later with npm" >&2; exit 1; }
say "the CDK comes from npm"
[ -d cdk/node_modules ] || [ -n "${NODE_PATH:-}" ] || npm install --prefix cdk --silent --no-audit --no-fund
cdk() { (cd cdk && PATH="$PWD/node_modules/.bin:$PATH" command cdk "$@"); }
account=$(aws sts get-caller-identity --query Account --output text)
region=${AWS_REGION:-$(aws configure get region)}
say "cdk bootstrap, cdk deploy"
cdk bootstrap --ci --progress events "aws://$account/$region" > bootstrap.log 2>&1 || { cat bootstrap.log >&2; exit 1; }
mkdir -p "$stress" && rm -f "$stress/stress"
trap 'rm -f "$stress/stress"' EXIT
began=$SECONDS
cdk deploy --ci --require-approval never --context "most=$most" --context "stress=$stress" ${IMAGE:+--context "image=$IMAGE"} \
  ${COLLECTOR:+--context "collector=$COLLECTOR"} ${EXPORTER:+--context "exporter=$EXPORTER"} > deploy.log 2>&1 || { cat deploy.log >&2; exit 1; }
deployed=$((SECONDS - began))
say "deployed, and the service is steady, after $deployed s"

counts() { aws ecs describe-services --cluster gpu-service --services gpu-service --query 'services[0].[desiredCount,runningCount]' --output text; }
machines() { aws ecs list-container-instances --cluster gpu-service --query 'length(containerInstanceArns)' --output text; }

# follow shows tasks and machines, when they change and each thirty seconds, until there are so many tasks and no more machines than those.
follow() {
  local now= last= shown=0 began=$SECONDS
  until [ "$now" = "$1 $1 $1" ]; do
    if [ $((SECONDS - began)) -ge "$give_up" ]; then
      echo "$1 tasks should run on as many machines after $give_up s: pintle ps -a and aws ecs describe-services tell what they wait for" >&2
      exit 1
    fi
    [ "$shown" = 0 ] || sleep 1
    now="$(counts | tr '\t' ' ') $(machines)"
    [ "$now" = "$last" ] && [ $((SECONDS - shown)) -lt 30 ] && continue
    say "tasks wanted, tasks that run, machines: $now"
    last=$now shown=$((SECONDS + 1))
  done
  took=$((SECONDS - began))
}

follow 1
say "stress"
echo 1 > "$stress/stress"
follow "$most"; grew=$took
say "rest"
rm "$stress/stress"
follow 1; shrank=$took
echo
echo "deployed in       $deployed s"
echo "grew to $most in      $grew s"
echo "shrank to 1 in    $shrank s, machines too"
echo "A shell in the task:  aws ecs execute-command --cluster gpu-service --container gpu --interactive --command sh --task TASK"
echo "All away again:       ./clean.sh"
