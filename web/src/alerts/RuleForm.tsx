import { Button, Group, NumberInput, PasswordInput, Select, Switch, Text, TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { notifications } from "@mantine/notifications";
import { useState } from "react";
import { useNavigate } from "react-router";
import { useSaveRule, type RuleInput } from "../api/alertQueries";
import { ApiError } from "../api/client";
import type { AlertRule } from "../api/types";
import { HeadersInput } from "./HeadersInput";
import { metricInfo, metrics } from "./metrics";
import { fieldErrors, toDraft, toInput, type RuleDraft } from "./ruleDraft";
import { RulePreviewPanel } from "./RulePreviewPanel";
import classes from "./Alerts.module.css";

/** After the last change the preview waits this long, in ms. */
const previewPauseMS = 400;

export function RuleForm({ rule }: { rule: AlertRule | null }) {
  const [draft, setDraft] = useState<RuleDraft>(() => toDraft(rule));
  const save = useSaveRule(rule?.id ?? null);
  const navigate = useNavigate();
  const set = <K extends keyof RuleDraft>(name: K, value: RuleDraft[K]) => setDraft((current) => ({ ...current, [name]: value }));
  const errors = save.error instanceof ApiError ? fieldErrors(save.error) : {};
  const metric = metricInfo(draft.metric);
  const input = toInput(draft, rule);
  const [previewed] = useDebouncedValue<RuleInput>(input, previewPauseMS);

  const submit = () => {
    if (save.isPending) return;
    save.mutate(input, {
      onSuccess: (saved) => {
        notifications.show({ message: rule ? "The rule was saved." : "The rule was created." });
        void navigate(`/alerts/${saved.id}`);
      },
    });
  };
  return (
    <div className={classes.columns}>
      <form
        className={`panel ${classes.form}`}
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          submit();
        }}
      >
        <TextInput label="Name" withAsterisk value={draft.name} error={errors.name} onChange={(event) => set("name", event.currentTarget.value)} data-autofocus />
        <fieldset className={classes.fieldset}>
          <legend className={classes.legend}>When</legend>
          <Select
            label="Metric"
            withAsterisk
            data={metrics.map(({ name, label }) => ({ value: name, label }))}
            value={draft.metric}
            description={metric.measures}
            error={errors.metric}
            onChange={(value) => set("metric", value ?? draft.metric)}
            allowDeselect={false}
          />
          <div className={classes.pair}>
            <NumberInput
              label="Is above"
              withAsterisk
              description={metric.unit === "ms" ? "Milliseconds" : "Percent of all"}
              suffix={metric.unit === "ms" ? " ms" : " %"}
              min={0}
              decimalScale={3}
              value={draft.threshold}
              error={errors.threshold_value}
              onChange={(value) => set("threshold", value)}
            />
            <NumberInput
              label="Over"
              withAsterisk
              description="Minutes, at least 15"
              suffix=" min"
              min={0}
              allowDecimal={false}
              value={draft.windowMinutes}
              error={errors.window_minutes}
              onChange={(value) => set("windowMinutes", value)}
            />
            <NumberInput
              label="With at least"
              description="Observations"
              min={0}
              allowDecimal={false}
              value={draft.minSamples}
              error={errors.min_samples}
              onChange={(value) => set("minSamples", value)}
            />
          </div>
          <Text size="xs" c="dimmed">
            After a firing the rule is silent for the same length of time.
          </Text>
        </fieldset>
        <fieldset className={classes.fieldset}>
          <legend className={classes.legend}>For</legend>
          <div className={classes.pair}>
            <TextInput label="Agent id" placeholder="All agents" value={draft.agentId} error={errors.agent_id} onChange={(event) => set("agentId", event.currentTarget.value)} />
            <TextInput label="Account" placeholder="All accounts" value={draft.accountId} error={errors.account_id} onChange={(event) => set("accountId", event.currentTarget.value)} />
            {draft.metric === "eval_fail_rate" && (
              <>
                <TextInput label="Judge" placeholder="All judges" value={draft.judgeName} error={errors.judge_name} onChange={(event) => set("judgeName", event.currentTarget.value)} />
                <Select
                  label="Verdicts from"
                  data={[
                    { value: "all", label: "Calls and eval runs" },
                    { value: "sessions", label: "Calls" },
                    { value: "runs", label: "Eval runs" },
                  ]}
                  value={draft.evalSource}
                  error={errors.eval_source}
                  onChange={(value) => set("evalSource", value ?? "all")}
                  allowDeselect={false}
                />
              </>
            )}
          </div>
        </fieldset>
        <fieldset className={classes.fieldset}>
          <legend className={classes.legend}>Then call</legend>
          <div style={{ display: "grid", gridTemplateColumns: "104px minmax(0, 1fr)", gap: 12 }}>
            <Select label="Method" data={["POST", "PUT", "PATCH"]} value={draft.httpMethod} error={errors.http_method} onChange={(value) => set("httpMethod", value ?? "POST")} allowDeselect={false} />
            <TextInput
              label="Webhook URL"
              withAsterisk
              type="url"
              inputMode="url"
              placeholder="https://…"
              value={draft.webhookUrl}
              error={errors.webhook_url}
              onChange={(event) => set("webhookUrl", event.currentTarget.value)}
            />
          </div>
          <PasswordInput
            label="Secret"
            description={rule?.has_secret ? "One is set. Leave this empty to keep it." : "Signs each delivery (HMAC-SHA256), so that the receiver can trust it"}
            autoComplete="new-password"
            value={draft.secret}
            error={errors.secret}
            disabled={draft.removeSecret}
            onChange={(event) => set("secret", event.currentTarget.value)}
          />
          {rule?.has_secret && (
            <Switch size="xs" label="Remove the secret" checked={draft.removeSecret} onChange={(event) => set("removeSecret", event.currentTarget.checked)} />
          )}
          <HeadersInput headers={draft.headers} error={errors.headers} onChange={(headers) => set("headers", headers)} />
        </fieldset>
        <Switch label="Enabled" checked={draft.enabled} onChange={(event) => set("enabled", event.currentTarget.checked)} />
        {save.isError && (
          <Text size="sm" c="var(--st-bad)" role="alert">
            {Object.keys(errors).length > 0 ? "The server did not accept the fields marked above." : save.error.message}
          </Text>
        )}
        <Group>
          <Button type="submit" loading={save.isPending}>
            {rule ? "Save" : "Create rule"}
          </Button>
          <Button variant="subtle" color="gray" onClick={() => void navigate(rule ? `/alerts/${rule.id}` : "/alerts")}>
            Cancel
          </Button>
        </Group>
      </form>
      <RulePreviewPanel rule={previewed} />
    </div>
  );
}
