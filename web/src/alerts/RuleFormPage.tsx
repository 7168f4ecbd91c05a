import { Anchor, Skeleton } from "@mantine/core";
import { IconChevronLeft } from "@tabler/icons-react";
import { Link, useParams } from "react-router";
import { useAlertRule } from "../api/alertQueries";
import { usePageTitle } from "../app/usePageTitle";
import { ErrorBox } from "../ui/ErrorBox";
import { PageHeader } from "../ui/PageHeader";
import { RuleForm } from "./RuleForm";
import classes from "./Alerts.module.css";

/** Creates a rule, or edits the one in the address. */
export function RuleFormPage() {
  const ruleId = useParams().ruleId ?? "";
  const rule = useAlertRule(ruleId);
  const title = ruleId ? "Edit rule" : "New rule";
  usePageTitle(title);
  if (ruleId && rule.isError && !rule.data) {
    return <ErrorBox title="The rule could not be read" error={rule.error} onRetry={() => void rule.refetch()} />;
  }
  return (
    <>
      <Anchor component={Link} to={ruleId ? `/alerts/${ruleId}` : "/alerts"} size="sm" className={classes.back}>
        <IconChevronLeft size={14} aria-hidden /> {ruleId ? "Rule" : "Alerts"}
      </Anchor>
      <PageHeader title={title} />
      {ruleId && !rule.data ? <Skeleton height={420} /> : <RuleForm key={ruleId} rule={rule.data ?? null} />}
    </>
  );
}
