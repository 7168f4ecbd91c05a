// Checks the signature of a webhook: node verify.mjs "$SIGNATURE" < body, with the rule's secret in ALERT_SECRET.
import { createHmac, timingSafeEqual } from "node:crypto";
import { readFileSync } from "node:fs";

function genuine(secret, body, signature) {
  const want = Buffer.from("sha256=" + createHmac("sha256", secret).update(body).digest("hex"));
  const got = Buffer.from(signature ?? "");
  return got.length === want.length && timingSafeEqual(got, want);
}

const body = readFileSync(0); // in a server: the raw body as a Buffer, such as express.raw({ type: "application/json" })
const ok = genuine(process.env.ALERT_SECRET, body, process.argv[2]);
console.log(ok ? "genuine" : "forged");
process.exitCode = ok ? 0 : 1;
