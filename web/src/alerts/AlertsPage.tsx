import { Button } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { Link } from "react-router";
import { useAlertRules } from "../api/alertQueries";
import { usePageTitle } from "../app/usePageTitle";
import { plural } from "../format/units";
import { ErrorBox } from "../ui/ErrorBox";
import { PageHeader } from "../ui/PageHeader";
import { TableSkeleton } from "../ui/TableSkeleton";
import { DeliveryStats } from "./DeliveryStats";
import { NoRules } from "./NoRules";
import { RecentAttempts } from "./RecentAttempts";
import { RuleTable } from "./RuleTable";

export function AlertsPage() {
  usePageTitle("Alerts");
  const rules = useAlertRules();
  return (
    <>
      <PageHeader title="Alerts" note={rules.data && plural(rules.data.meta.total_count, "rule")}>
        <Button component={Link} to="/alerts/new" leftSection={<IconPlus size={16} />}>
          New rule
        </Button>
      </PageHeader>
      {rules.isError && <ErrorBox title="The rules could not be read" error={rules.error} onRetry={() => void rules.refetch()} />}
      {rules.isPending && <TableSkeleton rows={4} />}
      {rules.data && !rules.isError && (rules.data.objects.length === 0 ? <NoRules /> : <RuleTable rules={rules.data.objects} />)}
      {rules.data && rules.data.objects.length > 0 && (
        <>
          <DeliveryStats />
          <RecentAttempts />
        </>
      )}
    </>
  );
}
