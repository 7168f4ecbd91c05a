import { Button, Group, Text } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import classes from "./ErrorBox.module.css";

interface ErrorBoxProps {
  title: string;
  error: unknown;
  onRetry?: () => void;
}

/** Says what went wrong in the server's words and offers to try again. */
export function ErrorBox({ title, error, onRetry }: ErrorBoxProps) {
  const message = error instanceof Error ? error.message : "An unknown error.";
  return (
    <div role="alert" className={classes.box}>
      <IconAlertTriangle size={20} stroke={1.6} className={classes.icon} aria-hidden />
      <div>
        <Text fw={600}>{title}</Text>
        <Text size="sm" className={classes.message}>
          {message}
        </Text>
        {onRetry && (
          <Group mt="xs">
            <Button size="xs" variant="default" onClick={onRetry}>
              Try again
            </Button>
          </Group>
        )}
      </div>
    </div>
  );
}
