"""Checks the signature of a webhook: python3 verify.py "$SIGNATURE" < body, with the rule's secret in ALERT_SECRET."""
import hashlib
import hmac
import os
import sys


def genuine(secret: str, body: bytes, signature: str) -> bool:
    digest = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
    return hmac.compare_digest(signature.encode(), f"sha256={digest}".encode())


if __name__ == "__main__":
    body = sys.stdin.buffer.read()  # in a server: the raw bytes, such as request.get_data() or await request.body()
    ok = len(sys.argv) == 2 and genuine(os.environ["ALERT_SECRET"], body, sys.argv[1])
    print("genuine" if ok else "forged")
    sys.exit(not ok)
