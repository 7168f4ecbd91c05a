import { ActionIcon, Button, Group, Menu, Switch, Text, Tooltip } from "@mantine/core";
import { IconDownload, IconPlayerPauseFilled, IconPlayerPlayFilled } from "@tabler/icons-react";
import { formatClock } from "../../format/units";
import { RATES, type Playback } from "./Playback";
import { usePlaybackValue } from "./usePlayback";
import classes from "./PlayerBar.module.css";

interface PlayerBarProps {
  playback: Playback;
  duration: number;
  recordingURL: string | null;
}

/** Play, position, speed, and which of the two voices is heard. */
export function PlayerBar({ playback, duration, recordingURL }: PlayerBarProps) {
  const playing = usePlaybackValue(playback, (state) => state.playing);
  const tenths = usePlaybackValue(playback, (state) => Math.floor(state.position * 10) / 10);
  const rate = usePlaybackValue(playback, (state) => state.rate);
  const muted = usePlaybackValue(playback, (state) => state.muted);
  const problem = usePlaybackValue(playback, (state) => state.problem);
  return (
    <div className={classes.bar} role="group" aria-label="Player">
      <Tooltip label="Space">
        <ActionIcon
          size="lg"
          radius="xl"
          onClick={() => playback.toggle()}
          aria-label={playing ? "Pause" : "Play"}
        >
          {playing ? <IconPlayerPauseFilled size={16} /> : <IconPlayerPlayFilled size={16} />}
        </ActionIcon>
      </Tooltip>
      <Text size="sm" className={classes.clock} data-testid="position">
        <b>{formatClock(tenths, 1)}</b> / {formatClock(duration)}
      </Text>
      <Menu width={100} position="bottom-start">
        <Menu.Target>
          <Button variant="default" size="compact-sm" className="num" aria-label={`Speed ${rate} times`}>
            {rate}×
          </Button>
        </Menu.Target>
        <Menu.Dropdown>
          {RATES.map((choice) => (
            <Menu.Item key={choice} fw={choice === rate ? 600 : 400} onClick={() => playback.setRate(choice)}>
              {choice}×
            </Menu.Item>
          ))}
        </Menu.Dropdown>
      </Menu>
      {recordingURL ? (
        <Group gap="md" wrap="nowrap">
          <Switch
            size="xs"
            label="Caller"
            checked={!muted.caller}
            onChange={(event) => playback.setMuted("caller", !event.currentTarget.checked)}
          />
          <Switch
            size="xs"
            label="Agent"
            checked={!muted.agent}
            onChange={(event) => playback.setMuted("agent", !event.currentTarget.checked)}
          />
        </Group>
      ) : (
        <Text size="sm" c="dimmed">
          No recording: the cursor moves without sound
        </Text>
      )}
      {problem && (
        <Text size="sm" c="var(--st-bad)" role="alert">
          {problem}
        </Text>
      )}
      <Text size="xs" c="dimmed" className={classes.keys}>
        <kbd>Space</kbd> play <kbd>←</kbd> <kbd>→</kbd> 5 s <kbd>j</kbd> <kbd>k</kbd> turns
      </Text>
      {recordingURL && (
        <Tooltip label="Download the recording">
          <ActionIcon
            component="a"
            href={`${recordingURL}?download=1`}
            variant="subtle"
            color="gray"
            aria-label="Download the recording"
          >
            <IconDownload size={17} stroke={1.6} />
          </ActionIcon>
        </Tooltip>
      )}
    </div>
  );
}
