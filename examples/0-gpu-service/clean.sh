#!/usr/bin/env bash
# Takes away what run.sh has made. The CDK's bootstrap stays, for other apps.
set -euo pipefail
cd "$(dirname "$0")/cdk"
export CDK_DISABLE_CLI_TELEMETRY=true
PATH="$PWD/node_modules/.bin:$PATH" cdk destroy --ci --force
rm -f ../bootstrap.log ../deploy.log cdk.context.json
