import { Button, Group, Modal, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconTrash } from "@tabler/icons-react";
import { useNavigate } from "react-router";
import { useDeleteRule } from "../api/alertQueries";
import type { AlertRule } from "../api/types";

export function DeleteRuleButton({ rule }: { rule: AlertRule }) {
  const [open, { open: ask, close }] = useDisclosure();
  const remove = useDeleteRule(rule.id);
  const navigate = useNavigate();
  return (
    <>
      <Button variant="default" onClick={ask} leftSection={<IconTrash size={15} stroke={1.6} />}>
        Delete
      </Button>
      <Modal opened={open} onClose={close} title="Delete this rule?" centered>
        <Text size="sm">
          “{rule.name}” goes with all its firings and the record of their deliveries. This cannot be undone.
        </Text>
        {remove.isError && (
          <Text size="sm" mt="xs" c="var(--st-bad)" role="alert">
            {remove.error.message}
          </Text>
        )}
        <Group justify="flex-end" mt="md">
          <Button variant="default" onClick={close}>
            Keep it
          </Button>
          <Button
            color="red"
            loading={remove.isPending}
            onClick={() => remove.mutate(undefined, { onSuccess: () => void navigate("/alerts") })}
          >
            Delete
          </Button>
        </Group>
      </Modal>
    </>
  );
}
