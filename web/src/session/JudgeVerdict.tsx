import { Popover, Text, UnstyledButton, VisuallyHidden } from "@mantine/core";
import type { SessionDetail } from "../api/types";
import { StatusBadge } from "../ui/StatusBadge";
import classes from "./SessionHeader.module.css";

/** A judge's verdict; a click tells why it judged so. */
export function JudgeVerdict({ evaluation }: { evaluation: SessionDetail["evaluations"][number] }) {
  return (
    <Popover width={360} position="bottom-start" withArrow shadow="md">
      <Popover.Target>
        <UnstyledButton className={classes.judge}>
          <span>{evaluation.judge_name ?? "judge"}</span>
          <StatusBadge word={evaluation.verdict ?? "no verdict"} />
          <VisuallyHidden>, why</VisuallyHidden>
        </UnstyledButton>
      </Popover.Target>
      <Popover.Dropdown>
        <Text size="sm" className={classes.reasoning}>
          {evaluation.reasoning ?? "The judge gave no reasoning."}
        </Text>
        {evaluation.instructions && (
          <Text size="xs" c="dimmed" mt="xs" className={classes.reasoning}>
            Asked to judge: {evaluation.instructions}
          </Text>
        )}
      </Popover.Dropdown>
    </Popover>
  );
}
