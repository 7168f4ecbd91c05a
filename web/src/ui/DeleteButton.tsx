import { Button, Group, Modal, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconTrash } from "@tabler/icons-react";
import type { UseMutationResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { useNavigate } from "react-router";

interface Props {
  /** The question, as the title of the dialog. */
  question: string;
  /** What goes with it. */
  children: ReactNode;
  remove: UseMutationResult<unknown, Error, void>;
  /** The page that is shown when it is gone. */
  leadsTo: string;
  compact?: boolean;
}

/** Deletes what its page shows, after asking, and says what went wrong. */
export function DeleteButton({ question, children, remove, leadsTo, compact = false }: Props) {
  const [open, { open: ask, close }] = useDisclosure();
  const navigate = useNavigate();
  const begin = () => {
    remove.reset(); // what went wrong last time
    ask();
  };
  return (
    <>
      <Button
        size={compact ? "compact-sm" : undefined}
        variant="default"
        onClick={begin}
        leftSection={<IconTrash size={compact ? 14 : 15} stroke={1.6} />}
      >
        Delete
      </Button>
      <Modal opened={open} onClose={close} title={question} centered>
        <Text size="sm">{children} This cannot be undone.</Text>
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
            onClick={() => remove.mutate(undefined, { onSuccess: () => void navigate(leadsTo) })}
          >
            Delete
          </Button>
        </Group>
      </Modal>
    </>
  );
}
