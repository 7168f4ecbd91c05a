import { ActionIcon, Button, Group, Text, TextInput } from "@mantine/core";
import { IconPlus, IconX } from "@tabler/icons-react";

interface HeadersInputProps {
  headers: [string, string][];
  error: string | undefined;
  onChange: (headers: [string, string][]) => void;
}

/** Extra headers of the deliveries, such as a token the receiver asks for. */
export function HeadersInput({ headers, error, onChange }: HeadersInputProps) {
  const change = (index: number, header: [string, string]) => onChange(headers.map((old, at) => (at === index ? header : old)));
  return (
    <div>
      {headers.map(([name, value], index) => (
        <Group key={index} gap="xs" mb={6} wrap="nowrap">
          <TextInput aria-label={`Header ${index + 1} name`} placeholder="x-team" value={name} onChange={(event) => change(index, [event.currentTarget.value, value])} />
          <TextInput aria-label={`Header ${index + 1} value`} placeholder="voice" style={{ flex: 1 }} value={value} onChange={(event) => change(index, [name, event.currentTarget.value])} />
          <ActionIcon variant="subtle" color="gray" aria-label={`Remove header ${index + 1}`} onClick={() => onChange(headers.filter((_, at) => at !== index))}>
            <IconX size={15} />
          </ActionIcon>
        </Group>
      ))}
      {error && (
        <Text size="xs" c="var(--st-bad)" role="alert" mb={4}>
          {error}
        </Text>
      )}
      <Button variant="subtle" size="compact-sm" leftSection={<IconPlus size={14} />} onClick={() => onChange([...headers, ["", ""]])}>
        Add a header
      </Button>
    </div>
  );
}
