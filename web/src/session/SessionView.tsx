import { Text } from "@mantine/core";
import { useCallback, useMemo, useState } from "react";
import { useSpans } from "../api/queries";
import type { SessionDetail, Span } from "../api/types";
import { CutShort } from "../ui/CutShort";
import { ErrorBox } from "../ui/ErrorBox";
import { SpanDetails } from "./SpanDetails";
import { SessionHeader } from "./SessionHeader";
import { SessionTabs } from "./SessionTabs";
import { withTurnsFromSpans } from "./model/fromSpans";
import { buildSpanRows, type SpanRow } from "./model/spans";
import { buildTimeline } from "./model/timeline";
import { PlayerBar } from "./playback/PlayerBar";
import { usePlayback } from "./playback/usePlayback";
import { usePlayerKeys } from "./playback/usePlayerKeys";
import { Timeline } from "./timeline/Timeline";
import { Transcript } from "./transcript/Transcript";
import { usePositionInURL } from "./usePositionInURL";
import { usePeaks } from "./waveform/usePeaks";
import classes from "./SessionView.module.css";

const noSpans: Span[] = [];

export function SessionView({ session: reported }: { session: SessionDetail }) {
  const spans = useSpans(reported.id, reported.state === "active");
  const read = spans.data?.rows ?? noSpans;
  const session = useMemo(() => withTurnsFromSpans(reported, read), [reported, read]);
  const timeline = useMemo(() => buildTimeline(session, read), [session, read]);
  const rows = useMemo(
    () => (timeline.originMS !== null ? buildSpanRows(read, timeline.originMS, timeline.duration) : []),
    [read, timeline],
  );
  const [selected, setSelected] = useState<SpanRow | null>(null);
  // From our own server even with S3_REDIRECT: the page's policy lets nothing in from other hosts.
  const streamURL = session.record_url && `${session.record_url}?stream=1`;
  const playback = usePlayback(streamURL);
  const { peaks, failed: waveformFailed } = usePeaks(streamURL, playback);
  playback?.setAxis(timeline.audioOffset, timeline.duration);
  const placed = usePositionInURL(playback, timeline);

  const stepTurn = useCallback(
    (direction: 1 | -1) => {
      if (!playback) return;
      const here = playback.snapshot().position;
      const starts = timeline.replies.map((reply) => reply.start).toSorted((a, b) => a - b);
      const next = direction > 0 ? starts.find((start) => start > here + 0.2) : starts.findLast((start) => start < here - 0.2);
      playback.seek(next ?? (direction > 0 ? timeline.duration : 0));
    },
    [playback, timeline],
  );
  usePlayerKeys(playback, stepTurn);

  return (
    <>
      <SessionHeader session={session} timeline={timeline} />
      {spans.isError && <ErrorBox title="The spans could not be read" error={spans.error} onRetry={() => void spans.refetch()} />}
      <CutShort list={spans.data} of="spans" />
      <div className={classes.stage}>
        <div className={`panel ${classes.left}`}>
          {timeline.originMS === null ? (
            <Text p="md" c="dimmed">
              Nothing in this session carries a time, so there is no timeline. The transcript is in the order it was sent.
            </Text>
          ) : (
            playback &&
            placed && (
              <>
                <PlayerBar playback={playback} duration={timeline.duration} recordingURL={session.record_url} />
                <Timeline
                  timeline={timeline}
                  playback={playback}
                  peaks={peaks}
                  hasRecording={session.record_url !== null && !waveformFailed}
                  spans={rows}
                  selectedSpan={selected?.span.span_id ?? null}
                  onSelectSpan={setSelected}
                />
                {selected && <SpanDetails row={selected} onClose={() => setSelected(null)} />}
              </>
            )
          )}
        </div>
        <div className={`panel ${classes.right}`}>{playback && <Transcript timeline={timeline} playback={playback} />}</div>
      </div>
      <SessionTabs session={reported} />
    </>
  );
}
