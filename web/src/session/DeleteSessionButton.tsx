import { Button, Group, Modal, Text } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconTrash } from "@tabler/icons-react";
import { useNavigate } from "react-router";
import { useDeleteSession } from "../api/queries";

export function DeleteSessionButton({ id }: { id: string }) {
  const [open, { open: ask, close }] = useDisclosure();
  const remove = useDeleteSession(id);
  const navigate = useNavigate();
  const begin = () => {
    remove.reset(); // what went wrong last time
    ask();
  };
  return (
    <>
      <Button size="compact-sm" variant="default" onClick={begin} leftSection={<IconTrash size={14} stroke={1.6} />}>
        Delete
      </Button>
      <Modal opened={open} onClose={close} title="Delete this session?" centered>
        <Text size="sm">
          <span className="mono" style={{ overflowWrap: "anywhere" }}>
            {id}
          </span>{" "}
          goes with its recording, transcript, spans and logs. This cannot be undone.
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
            onClick={() => remove.mutate(undefined, { onSuccess: () => void navigate("/sessions") })}
          >
            Delete
          </Button>
        </Group>
      </Modal>
    </>
  );
}
