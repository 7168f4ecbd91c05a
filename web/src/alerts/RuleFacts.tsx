import type { AlertRule } from "../api/types";
import { formatCount, plural } from "../format/units";
import { TimeText } from "../ui/TimeText";
import { formatMetric, formatWindow, metricInfo } from "./metrics";
import { scopeOf } from "./RuleTable";
import { ThresholdBar } from "./ThresholdBar";
import classes from "./Alerts.module.css";

/** The rule in words, with what it measured last. */
export function RuleFacts({ rule }: { rule: AlertRule }) {
  return (
    <section className={`panel ${classes.section}`} aria-label="Rule">
      <dl className={classes.facts}>
        <dt>Last value</dt>
        <dd>
          <ThresholdBar value={rule.last_value} threshold={rule.threshold_value} format={(value) => formatMetric(rule.metric, value)} />
          <div className={classes.detail}>
            {rule.last_samples === null ? "no observations yet" : `${plural(rule.last_samples, "observation")} in the window`}
          </div>
        </dd>
        <dt>Fires when</dt>
        <dd>
          {metricInfo(rule.metric).label} is above {formatMetric(rule.metric, rule.threshold_value)} over{" "}
          {formatWindow(rule.window_minutes)}, with at least {plural(rule.min_samples, "observation")}
        </dd>
        <dt>Scope</dt>
        <dd>{scopeOf(rule) || "everything"}</dd>
        <dt>Webhook</dt>
        <dd className="mono">
          {rule.http_method} {rule.webhook_url}
        </dd>
        <dt>Signed</dt>
        <dd>{rule.has_secret ? "yes, with the rule's secret" : "no secret is set"}</dd>
        {rule.headers && Object.keys(rule.headers).length > 0 && (
          <>
            <dt>Headers</dt>
            <dd className="mono">{formatCount(Object.keys(rule.headers).length)}: {Object.keys(rule.headers).join(", ")}</dd>
          </>
        )}
        <dt>Changed</dt>
        <dd>
          <TimeText iso={rule.updated_at} />
        </dd>
      </dl>
    </section>
  );
}
