#!/usr/bin/env bash
# Takes away all that run.sh has made, also where it was interrupted. The tasks end first, which takes as long as their requests.
set -euo pipefail
cd "$(dirname "$0")"
. ../steps.sh
delete "${STACK:-web-service}"
