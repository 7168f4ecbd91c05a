import { Anchor, Button, Skeleton } from "@mantine/core";
import { notifications } from "@mantine/notifications";
import { IconChevronLeft, IconPencil } from "@tabler/icons-react";
import { Link, useParams } from "react-router";
import { useAlertRule, useSaveRule } from "../api/alertQueries";
import { usePageTitle } from "../app/usePageTitle";
import { ErrorBox } from "../ui/ErrorBox";
import { PageHeader } from "../ui/PageHeader";
import { StatusBadge } from "../ui/StatusBadge";
import { useNow } from "../ui/useNow";
import { DeleteRuleButton } from "./DeleteRuleButton";
import { Firings } from "./Firings";
import { RuleFacts } from "./RuleFacts";
import { RulePreviewPanel } from "./RulePreviewPanel";
import { ruleState } from "./ruleState";
import { TestSend } from "./TestSend";
import classes from "./Alerts.module.css";

export function RulePage() {
  const ruleId = useParams().ruleId ?? "";
  const rule = useAlertRule(ruleId);
  const save = useSaveRule(ruleId);
  const now = useNow(5_000);
  usePageTitle(rule.data?.name ?? "Alert rule");
  if (rule.isError && !rule.data) return <ErrorBox title="The rule could not be read" error={rule.error} onRetry={() => void rule.refetch()} />;
  if (!rule.data) return <Skeleton height={300} />;
  const { data } = rule;
  const state = ruleState(data, now);
  const toggle = () =>
    save.mutate(
      { enabled: !data.enabled },
      { onError: (error) => notifications.show({ color: "red", title: "The rule was not changed", message: error.message }) },
    );
  return (
    <>
      <Anchor component={Link} to="/alerts" size="sm" className={classes.back}>
        <IconChevronLeft size={14} aria-hidden /> Alerts
      </Anchor>
      <PageHeader
        title={data.name}
        note={
          <>
            <StatusBadge word={state.word} tone={state.tone} /> {state.detail}
          </>
        }
      >
        <Button variant="default" onClick={toggle} loading={save.isPending}>
          {data.enabled ? "Disable" : "Enable"}
        </Button>
        <Button variant="default" component={Link} to={`/alerts/${data.id}/edit`} leftSection={<IconPencil size={15} stroke={1.6} />}>
          Edit
        </Button>
        <DeleteRuleButton rule={data} />
      </PageHeader>
      <div className={classes.columns}>
        <div>
          <RuleFacts rule={data} />
          <TestSend ruleId={data.id} />
        </div>
        <RulePreviewPanel rule={data} />
      </div>
      <Firings rule={data} />
    </>
  );
}
