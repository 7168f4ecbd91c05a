import { useDeleteRule } from "../api/alertQueries";
import type { AlertRule } from "../api/types";
import { DeleteButton } from "../ui/DeleteButton";

export function DeleteRuleButton({ rule }: { rule: AlertRule }) {
  return (
    <DeleteButton question="Delete this rule?" remove={useDeleteRule(rule.id)} leadsTo="/alerts">
      “{rule.name}” goes with all its firings and the record of their deliveries.
    </DeleteButton>
  );
}
