#!/bin/sh
# Checks the signature of a webhook: sh verify.sh "$SIGNATURE" < body, with the rule's secret in ALERT_SECRET.
# To try things out: while openssl runs, the process list shows the secret.
set -eu

want="sha256=$(openssl dgst -sha256 -hmac "$ALERT_SECRET" -r | cut -d ' ' -f 1)"
if [ "${1:-}" = "$want" ]; then
	echo genuine
else
	echo forged
	exit 1
fi
