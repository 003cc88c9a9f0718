#!/usr/bin/env bash
# Takes away all that run.sh has made, also where it was interrupted.
set -euo pipefail
stack=${STACK:-web-service}
export AWS_PAGER=
aws() { command aws ${AWS_ENDPOINT_URL:+--endpoint-url "$AWS_ENDPOINT_URL"} "$@"; }
if ! id=$(aws cloudformation describe-stacks --stack-name "$stack" --query 'Stacks[0].StackId' --output text 2>/dev/null); then
  echo "there is no stack $stack"
  exit
fi
aws cloudformation delete-stack --stack-name "$id"
echo "$(date +%T)  $stack is being deleted: the tasks end first, which takes as long as their requests"
while status=$(aws cloudformation describe-stacks --stack-name "$id" --query 'Stacks[0].StackStatus' --output text); [ "$status" = DELETE_IN_PROGRESS ]; do
  sleep 2
done
if [ "$status" != DELETE_COMPLETE ]; then
  echo "$stack is $status: aws cloudformation describe-stack-events --stack-name $stack tells why" >&2
  exit 1
fi
echo "$(date +%T)  nothing is left of $stack"
