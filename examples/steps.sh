# The steps that the examples have in common, as AWS CLI calls: for AWS as for Pintle. Each says what it does while it does it.
# An example's script sources this after `set -euo pipefail`.
export AWS_PAGER=''
if [ -n "${AWS_ENDPOINT_URL:-}" ]; then export AWS_DEFAULT_REGION=${AWS_DEFAULT_REGION:-us-east-1}; fi # on AWS, the region that is configured
aws() { command aws ${AWS_ENDPOINT_URL:+--endpoint-url "$AWS_ENDPOINT_URL"} "$@"; }

say() { echo "$(date +%T)  $*"; }

# stack_status NAME prints a stack's status, or nothing if there is none.
stack_status() {
  local answer
  if answer=$(aws cloudformation describe-stacks --stack-name "$1" --query 'Stacks[0].StackStatus' --output text 2>&1); then echo "$answer" && return; fi
  case $answer in *'does not exist'*) ;; *) echo "$answer" >&2 && return 1 ;; esac
}

# deploy NAME TEMPLATE [PARAMETER=VALUE…] makes a stack, or what it is now of it, and shows its events as they come.
deploy() {
  local name=$1 template=$2 answer status verb=update-stack last='' parameters=()
  shift 2
  for p in "$@"; do parameters+=("ParameterKey=${p%%=*},ParameterValue=${p#*=}"); done
  status=$(stack_status "$name")
  if [ -z "$status" ]; then verb=create-stack; else events "$name" '' >/dev/null; fi
  say "the stack $name: $verb $*"
  if ! answer=$(aws cloudformation "$verb" --stack-name "$name" --template-body "file://$template" --capabilities CAPABILITY_IAM \
    ${parameters[0]:+--parameters "${parameters[@]}"} 2>&1); then
    case $answer in *'No updates are to be performed'*) say "the stack $name is so already" && return ;; esac
    echo "$answer" >&2
    return 1
  fi
  settle "$name" "$last"
}

# settle NAME AFTER waits until a stack is complete, or gone, and shows its events meanwhile: those after one.
settle() {
  local name=$1 status='' last=$2 began=$SECONDS
  while true; do
    status=$(stack_status "$name")
    events "$name" "$last"
    case $status in
      '' | CREATE_COMPLETE | UPDATE_COMPLETE | DELETE_COMPLETE) say "the stack $name: ${status:-DELETE_COMPLETE} after $((SECONDS - began)) s" && return ;;
      *FAILED | ROLLBACK_COMPLETE | UPDATE_ROLLBACK_COMPLETE) echo "the stack $name is $status: its events above say why" >&2 && return 1 ;;
    esac
    if [ $((SECONDS - began)) -ge "${GIVE_UP:-1800}" ]; then echo "the stack $name is still $status after $((SECONDS - began)) s" >&2 && return 1; fi
    sleep 2
  done
}

# events NAME AFTER prints the events of a stack that came after one, the oldest first, and sets last to the newest.
events() {
  local all
  last=$2
  all=$(aws cloudformation describe-stack-events --stack-name "$1" --max-items 300 --output text \
    --query 'StackEvents[].[EventId,ResourceStatus,LogicalResourceId,ResourceStatusReason]' 2>/dev/null | grep -v '^None$') || return 0
  last=$(head -1 <<< "$all" | cut -f1)
  awk -F'\t' -v after="$2" '$1 == after { exit } { print "          " $2 "  " $3 ($4 == "None" ? "" : "  " $4) }' <<< "$all" | tac
}

# output NAME KEY prints an output of a stack.
output() { aws cloudformation describe-stacks --stack-name "$1" --query "Stacks[0].Outputs[?OutputKey=='$2'].OutputValue" --output text; }

# run_task CLUSTER DEFINITION [OVERRIDES] runs a task to its end, and fails if it did. It sets task to the task's ARN.
run_task() {
  local answer status='' began=$SECONDS code
  answer=$(aws ecs run-task --cluster "$1" --task-definition "$2" --overrides "${3:-{\}}" --query '[tasks[0].taskArn,failures[0].reason,tasks[0].containers[0].gpuIds[] | join(`", "`, @)]' --output text)
  IFS=$'\t' read -r task reason gpus <<< "$answer"
  if [ "$task" = None ]; then echo "no instance can take $2: $reason" >&2 && return 1; fi
  say "$2 runs as ${task##*/} on ${gpus:-no GPUs}"
  until [ "$status" = STOPPED ]; do
    if [ $((SECONDS - began)) -ge "${GIVE_UP:-1800}" ]; then echo "$task is still $status after $((SECONDS - began)) s" >&2 && return 1; fi
    sleep 1
    answer=$(aws ecs describe-tasks --cluster "$1" --tasks "$task" --query 'tasks[0].lastStatus' --output text)
    if [ "$answer" != "$status" ]; then say "${task##*/}: $answer"; fi
    status=$answer
  done
  code=$(aws ecs describe-tasks --cluster "$1" --tasks "$task" --query 'tasks[0].containers[0].exitCode' --output text)
  if [ "$code" != 0 ]; then
    aws ecs describe-tasks --cluster "$1" --tasks "$task" --query 'tasks[0].[stoppedReason,containers[0].reason]' --output text >&2
    return 1
  fi
}

# delete NAME deletes a stack and waits for its end.
delete() {
  if [ -z "$(stack_status "$1")" ]; then say "there is no stack $1" && return; fi
  local last=''
  events "$1" '' >/dev/null
  say "the stack $1: delete-stack"
  aws cloudformation delete-stack --stack-name "$1"
  settle "$1" "$last"
}
