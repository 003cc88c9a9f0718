#!/usr/bin/env bash
# The guide's fleet as AWS CLI calls: images in S3 tell a queue, its length starts and ends GPU instances, and a worker on
# each of them works the queue off. up makes it, load uploads images and follows them, down takes it away, but for the empty
# cluster and the task definition.
set -euo pipefail
cd "$(dirname "$0")"
worker=${WORKER:-pintle}        # or python, the guide's own
images=${IMAGES:-20}            # to make and upload
type=${INSTANCE_TYPE:-g4dn.xlarge}
image=${IMAGE:-ml-gpu-example}  # the container's
profile=${INSTANCE_PROFILE:-ecsInstanceRole}
if [ -n "${AWS_ENDPOINT_URL:-}" ]; then app=${APP:-$PWD}; else app=${APP:-/app}; fi # where the worker is
period=${PERIOD:-60}            # of the alarm, in seconds; with pintle up --reaction fast 10 is looked at as it comes
warmup=${WARMUP:-}              # seconds that an instance counts as coming; default AWS's
receives=${MAX_RECEIVES:-3}     # of a message that fails, before pintle worker has it in the dead-letter queue, with the reason
deaths=${QUEUE_RECEIVES:-10}    # of any, before SQS itself has: also one whose workers die
visibility=${VISIBILITY:-2m} retry=${RETRY_DELAY:-5s} # of pintle worker
seconds=${MODEL_SECONDS:-0.5}   # that the model takes
give_up=${GIVE_UP:-3600}        # seconds after which not all images are worked on, and something must be wrong
# What the guide calls them.
bucket=ml-gpu-example queue=example-gpu-queue cluster=gpu-example-cluster template=ml-gpu-example group=ml-gpu-example logs=/ecs/ml-gpu-worker
export AWS_PAGER='' AWS_DEFAULT_REGION=${AWS_DEFAULT_REGION:-us-east-1}
aws() { command aws ${AWS_ENDPOINT_URL:+--endpoint-url "$AWS_ENDPOINT_URL"} "$@"; }
account() { aws sts get-caller-identity --query Account --output text; }
url() { aws sqs get-queue-url --queue-name "$1" --query QueueUrl --output text; }
arn() { aws sqs get-queue-attributes --queue-url "$(url "$1")" --attribute-names QueueArn --query Attributes.QueueArn --output text; }

there() { url "$queue" >/dev/null 2>&1; }

create_queue() { # its name is taken for a minute after down
  local answer
  until answer=$(aws sqs create-queue --queue-name "$1" --attributes "$2" --query QueueUrl --output text 2>&1); do
    case $answer in *QueueDeletedRecently*) ;; *) echo "$answer" >&2; return 1 ;; esac
    echo "$(date +%T)  $1 was deleted less than a minute ago: waiting"
    sleep 10
  done
  echo "$answer"
}

make_queue() { # with its dead-letter queue; S3 may send to it
  create_queue "$queue-dead" MessageRetentionPeriod=1209600
  local policy redrive
  policy='{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Principal":{"Service":"s3.amazonaws.com"},"Action":"sqs:SendMessage","Resource":"*",
    "Condition":{"ArnLike":{"aws:SourceArn":"arn:aws:s3:*:*:'$bucket'"}}}]}'
  redrive='{"deadLetterTargetArn":"'$(arn "$queue-dead")'","maxReceiveCount":"'$deaths'"}'
  create_queue "$queue" "$(python3 -c 'import json, sys; print(json.dumps({"Policy": sys.argv[1], "RedrivePolicy": sys.argv[2]}))' "$policy" "$redrive")"
}

make_bucket() { # which tells the queue of images
  aws s3 mb "s3://$bucket"
  aws s3api put-bucket-notification-configuration --bucket "$bucket" --notification-configuration "$(sed "s#QUEUE_ARN#$(arn $queue)#" notification.json)"
  # S3 tests that it may send. The guide's worker would stumble over that message.
  local handle
  for _ in 1 2 3; do
    handle=$(aws sqs receive-message --queue-url "$(url $queue)" --wait-time-seconds 5 --query 'Messages[0].ReceiptHandle' --output text)
    if [ "$handle" != None ] && [ -n "$handle" ]; then aws sqs delete-message --queue-url "$(url $queue)" --receipt-handle "$handle" && return; fi
  done
}

make_service() { # a worker on each instance that there will be
  aws ecs create-cluster --cluster-name "$cluster" --settings name=containerInsights,value=enabled --query cluster.clusterArn --output text
  aws logs create-log-group --log-group-name "$logs"
  aws ecs register-task-definition --query taskDefinition.taskDefinitionArn --output text --cli-input-json "$(sed \
    "s#TASK_ROLE#${TASK_ROLE:-arn:aws:iam::$(account):role/ml-gpu-worker}#; s#QUEUE_URL#$(url $queue)#; s#REGION#$AWS_DEFAULT_REGION#; s#LOGS#$logs#; s#APP#$app#
     s#WORKDIR#${WORKDIR:-/tmp}#; s#VISIBILITY#$visibility#; s#RETRY_DELAY#$retry#; s#MAX_RECEIVES#$receives#; s#MODEL_SECONDS_VALUE#$seconds#; s#\"image\": \"ml-gpu-example\"#\"image\": \"$image\"#" "$worker-taskdef.json")"
  aws ecs create-service --cluster "$cluster" --service-name gpu-worker --task-definition ml-gpu-worker --launch-type EC2 --scheduling-strategy DAEMON --query service.serviceArn --output text
}

make_fleet() { # no instance for no message, one for some, two for more than a hundred
  local data zones policy
  data='{"ImageId":"resolve:ssm:/aws/service/ecs/optimized-ami/amazon-linux-2/gpu/recommended/image_id","InstanceType":"'$type'","IamInstanceProfile":{"Name":"'$profile'"},
    "UserData":"'$(printf '#!/bin/bash\necho ECS_CLUSTER=%s >> /etc/ecs/ecs.config\n' "$cluster" | base64 -w0)'"}'
  aws ec2 create-launch-template --launch-template-name "$template" --launch-template-data "$data" --query LaunchTemplate.LaunchTemplateId --output text
  zones=${ZONES:-$AWS_DEFAULT_REGION"a"}
  # shellcheck disable=SC2086 # zones, or subnets where there is no default VPC
  aws autoscaling create-auto-scaling-group --auto-scaling-group-name "$group" --launch-template "LaunchTemplateName=$template,Version=\$Latest" \
    --min-size 0 --max-size 2 --desired-capacity 0 ${warmup:+--default-instance-warmup $warmup} $([ -n "${SUBNETS:-}" ] && echo "--vpc-zone-identifier $SUBNETS" || echo "--availability-zones $zones")
  policy=$(aws autoscaling put-scaling-policy --auto-scaling-group-name "$group" --policy-name messages --policy-type StepScaling \
    --adjustment-type ExactCapacity --step-adjustments file://steps.json --query PolicyARN --output text)
  # In alarm while there are no messages; the policy is told of either state.
  aws cloudwatch put-metric-alarm --alarm-name "$queue-empty" --namespace AWS/SQS --metric-name ApproximateNumberOfMessagesVisible \
    --dimensions "Name=QueueName,Value=$queue" --statistic Maximum --period "$period" --evaluation-periods 1 --comparison-operator LessThanOrEqualToThreshold --threshold 0 \
    --alarm-actions "$policy" --ok-actions "$policy"
}

state() { # what there is of everything
  local instances tasks messages
  instances=$(aws autoscaling describe-auto-scaling-groups --auto-scaling-group-names "$group" --query 'AutoScalingGroups[0].[DesiredCapacity,length(Instances)]' --output text | tr '\t' /)
  tasks=$(aws ecs describe-services --cluster "$cluster" --services gpu-worker --query 'services[0].runningCount' --output text)
  messages=$(aws sqs get-queue-attributes --queue-url "$(url $queue)" --attribute-names ApproximateNumberOfMessages ApproximateNumberOfMessagesNotVisible \
    --query 'Attributes.[ApproximateNumberOfMessages,ApproximateNumberOfMessagesNotVisible]' --output text | tr '\t' /)
  echo "instances wanted/there $instances  tasks $tasks  messages waiting/worked on $messages"
}

upload() { # the images of a directory, and else some that are made up
  local dir=${1:-} made=
  if [ -z "$dir" ]; then
    dir=$(mktemp -d) made=$dir
    for i in $(seq "$images"); do head -c 4096 /dev/urandom > "$dir/image-$i.jpg"; done
  fi
  aws s3 cp --recursive --only-show-errors "$dir" "s3://$bucket"
  [ -z "$made" ] || rm -r "$made"
}

follow() { # shows what there is, when it changes and each ten seconds, until all is quiet again
  local now='' last='' seen='' told='' shown=0 began=$SECONDS quiet='instances wanted/there 0/0  tasks 0  messages waiting/worked on 0/0'
  until [ "$last" = "$quiet" ] && [ -n "$seen" ]; do
    if [ $((SECONDS - began)) -ge "$give_up" ]; then echo "not all is done after $give_up s: pintle ps -a --cluster $cluster tells what the workers do" >&2; return 1; fi
    sleep 2
    now=$(state) || continue # nobody answers just now
    if [ "$now" != "$last" ] || [ $((SECONDS - shown)) -ge 10 ]; then echo "$(date +%T)  $now" && shown=$SECONDS; fi
    if [ "$now" != "$quiet" ]; then seen=1; fi
    case $now in "$quiet") ;; *[1-9]*'waiting/worked on 0/0') if [ -z "$told" ]; then told=1 && echo "all messages are worked on; the instances go once they have warmed up (WARMUP, ${warmup:-300} s)"; fi ;; esac
    last=$now
  done
  if [ "$worker" = pintle ]; then echo "results: $(aws s3 ls --recursive "s3://$bucket/results/" | wc -l)"; fi
  if [ "$worker" = python ]; then echo "results: $(aws logs filter-log-events --log-group-name "$logs" --filter-pattern Predicted --query 'events[].[eventId]' --output text | wc -l)"; fi
  aws sqs receive-message --queue-url "$(url "$queue-dead")" --visibility-timeout 0 --message-attribute-names All --max-number-of-messages 10 \
    --query 'not_null(Messages, `[]`)[].[Body,MessageAttributes.Reason.StringValue]' --output text
}

remove() { # one thing, with a command that says nothing but an error, unless the thing is gone already
  local answer
  if answer=$(aws "$@" 2>&1); then return; fi
  case $answer in *NotFound* | *"not found"* | *NoSuchBucket* | *NonExistentQueue*) ;; *) echo "$answer" >&2; left=1 ;; esac
}

down() { # all that is there, also what an interrupted up or down has left
  local left=
  remove cloudwatch delete-alarms --alarm-names "$queue-empty"
  remove autoscaling delete-auto-scaling-group --auto-scaling-group-name "$group" --force-delete
  remove ec2 delete-launch-template --launch-template-name "$template"
  remove ecs delete-service --cluster "$cluster" --service gpu-worker --force
  remove s3 rb --force "s3://$bucket"
  for q in "$queue" "$queue-dead"; do if url "$q" >/dev/null 2>&1; then remove sqs delete-queue --queue-url "$(url "$q")"; fi; done
  remove logs delete-log-group --log-group-name "$logs"
  if [ -n "$left" ]; then echo "not all could be taken away: $0 down tries again" >&2; return 1; fi
  echo "the fleet is taken away; $cluster and the task definition stay"
}

case ${1:-} in
  up)
    if there; then echo "there is a fleet already, or what an interrupted up has left of one: $0 down takes it away" >&2; exit 1; fi
    make_queue; make_bucket; make_service; make_fleet ;;
  load)
    if ! there; then echo "there is no fleet: $0 up makes it" >&2; exit 1; fi
    upload "${2:-}"; follow ;;
  upload) upload "${2:-}" ;;
  state) state ;;
  down) down ;;
  *) echo "usage: $0 up|load [DIRECTORY]|upload [DIRECTORY]|state|down" >&2; exit 2 ;;
esac
