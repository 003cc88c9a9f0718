#!/usr/bin/env bash
# Takes away all that run.sh has made.
set -euo pipefail
cd "$(dirname "$0")"
. ../steps.sh
stack=${STACK:-recommender}
bucket=$(output "$stack" Bucket 2>/dev/null || true)
if [ -n "$bucket" ]; then aws s3 rm --recursive --only-show-errors "s3://$bucket"; fi
delete "$stack"
