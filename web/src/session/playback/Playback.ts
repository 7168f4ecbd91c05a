/** What listeners see; position and duration in seconds on the session's axis. */
export interface PlaybackState {
  position: number;
  playing: boolean;
  rate: number;
  muted: { caller: boolean; agent: boolean };
  /** Why the recording cannot be played, null while it can. */
  problem: string | null;
}

export const RATES = [0.75, 1, 1.25, 1.5, 2, 3];

/**
 * The one clock of a session page. With a recording it follows the audio element; without one it runs by itself, so
 * that the cursor moves through the lanes in the same way.
 */
export class Playback {
  private state: PlaybackState = {
    position: 0,
    playing: false,
    rate: 1,
    muted: { caller: false, agent: false },
    problem: null,
  };
  private readonly listeners = new Set<() => void>();
  private readonly audio: HTMLAudioElement | null;
  private gains: { caller: GainNode; agent: GainNode; context: AudioContext } | null = null;
  private frame = 0;
  private lastTick = 0;
  private offset = 0;
  private duration = 0;

  constructor(recordingURL: string | null) {
    this.audio = recordingURL ? new Audio() : null;
    if (!this.audio || !recordingURL) return;
    // Only the header is fetched until somebody presses play; seeking asks for ranges.
    this.audio.preload = "metadata";
    this.audio.src = recordingURL;
    this.audio.addEventListener("ended", () => this.update({ playing: false }));
    this.audio.addEventListener("pause", () => this.update({ playing: false }));
    this.audio.addEventListener("seeked", () => this.follow());
    this.audio.addEventListener("error", () =>
      this.update({ playing: false, problem: "The recording could not be played." }),
    );
  }

  readonly subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => {
      this.listeners.delete(listener);
    };
  };

  readonly snapshot = () => this.state;

  /** Where the recording starts on the axis, and how long the axis is. */
  setAxis(audioOffset: number, duration: number) {
    this.offset = audioOffset;
    this.duration = duration;
  }

  /** Resolves as soon as the player waits for no bytes: whoever else reads the recording lets it go first. */
  served(): Promise<void> {
    const { audio } = this;
    if (!audio || !isHungry(audio)) return Promise.resolve();
    const changes = ["loadedmetadata", "seeked", "canplay", "pause", "error"];
    return new Promise((resolve) => {
      const look = () => {
        if (isHungry(audio)) return;
        for (const change of changes) audio.removeEventListener(change, look);
        resolve();
      };
      for (const change of changes) audio.addEventListener(change, look);
    });
  }

  seek(position: number) {
    const target = Math.min(Math.max(0, position), this.duration);
    if (this.audio) this.audio.currentTime = Math.max(0, target - this.offset);
    this.update({ position: target });
  }

  toggle() {
    if (this.state.playing) this.pause();
    else this.play();
  }

  play() {
    if (this.state.position >= this.duration - 0.05) this.seek(0);
    this.update({ playing: true });
    if (this.audio) {
      void this.gains?.context.resume();
      this.audio.play().catch(() => this.update({ playing: false, problem: "The recording could not be played." }));
    }
    this.lastTick = performance.now();
    cancelAnimationFrame(this.frame);
    this.frame = requestAnimationFrame(this.tick);
  }

  pause() {
    this.audio?.pause();
    this.update({ playing: false });
  }

  setRate(rate: number) {
    if (this.audio) this.audio.playbackRate = rate;
    this.update({ rate });
  }

  setMuted(who: "caller" | "agent", muted: boolean) {
    this.update({ muted: { ...this.state.muted, [who]: muted } });
    if (!this.audio) return;
    this.gains ??= splitChannels(this.audio);
    this.gains[who].gain.value = muted ? 0 : 1;
  }

  dispose() {
    cancelAnimationFrame(this.frame);
    this.listeners.clear();
    if (this.audio) {
      this.audio.pause();
      this.audio.removeAttribute("src");
      this.audio.load();
    }
    void this.gains?.context.close();
  }

  private readonly tick = (now: number) => {
    if (!this.state.playing) return;
    if (this.audio) this.follow();
    else {
      const position = this.state.position + ((now - this.lastTick) / 1000) * this.state.rate;
      this.update({ position: Math.min(position, this.duration), playing: position < this.duration });
    }
    this.lastTick = now;
    this.frame = requestAnimationFrame(this.tick);
  };

  private follow() {
    if (this.audio) this.update({ position: this.audio.currentTime + this.offset });
  }

  private update(change: Partial<PlaybackState>) {
    this.state = { ...this.state, ...change };
    for (const listener of this.listeners) listener();
  }
}

function isHungry(audio: HTMLAudioElement): boolean {
  if (audio.error) return false;
  if (audio.readyState < HTMLMediaElement.HAVE_METADATA || audio.seeking) return true;
  return !audio.paused && !audio.ended && audio.readyState < HTMLMediaElement.HAVE_FUTURE_DATA;
}

/** Left is the caller, right the agent; both are heard on both sides, so that a muted one leaves no dead ear. */
function splitChannels(audio: HTMLAudioElement) {
  const context = new AudioContext();
  const splitter = context.createChannelSplitter(2);
  const caller = context.createGain();
  const agent = context.createGain();
  context.createMediaElementSource(audio).connect(splitter);
  splitter.connect(caller, 0);
  splitter.connect(agent, 1);
  caller.connect(context.destination);
  agent.connect(context.destination);
  void context.resume();
  return { caller, agent, context };
}
