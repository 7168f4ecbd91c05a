package session

import (
	"cmp"
	"math"
	"slices"
	"time"
	"unicode"
	"unicode/utf8"

	"sidetone/internal/stat"
)

// DeadAirThresholdMS is the silence, in milliseconds, beyond which it is dead air: the contract's 3 s.
const DeadAirThresholdMS = 3000

// voiceTally gathers what the voice block needs beyond the turns.
type voiceTally struct {
	speech                []interval
	userWords, agentWords spokenWords
}

// interval is a stretch of speech, in microseconds since the epoch.
type interval struct{ from, to int64 }

// spokenWords are the words of messages whose speech was timed, and that time.
type spokenWords struct {
	words int
	time  time.Duration
}

// segment is the stretch of speech of one message. ok is false when a time is unknown or they make no sense.
func segment(m *ItemMetrics) (d time.Duration, ok bool) {
	if m.StartedSpeakingAt.IsZero() || m.StoppedSpeakingAt.IsZero() {
		return 0, false
	}
	d = m.StoppedSpeakingAt.Sub(m.StartedSpeakingAt)
	return d, d >= 0 && d < maxMeasuredMS*time.Millisecond
}

func (v *voiceTally) add(m *ItemMetrics, text string, d time.Duration, to *spokenWords) {
	v.speech = append(v.speech, interval{m.StartedSpeakingAt.UnixMicro(), m.StoppedSpeakingAt.UnixMicro()})
	to.words += countWords(text)
	to.time += d
}

func (b *builder) userSpoke(it *Item) {
	t, m := &b.cur, &it.Metrics
	if at := m.StartedSpeakingAt; !at.IsZero() && (t.UserStartedSpeakingAt == nil || at.Before(t.UserStartedSpeakingAt.Time)) {
		t.UserStartedSpeakingAt = b.time(at)
	}
	if at := m.StoppedSpeakingAt; !at.IsZero() && (t.UserStoppedSpeakingAt == nil || at.After(t.UserStoppedSpeakingAt.Time)) {
		t.UserStoppedSpeakingAt = b.time(at)
	}
	d, ok := segment(m)
	if !ok {
		return
	}
	b.voice.add(m, it.Text, d, &b.voice.userWords)
	b.userSpeech += d
	t.UserSpeechMS = b.ints.put(0) // measured; finishSpeech knows how much
}

func (b *builder) agentSpoke(it *Item) {
	t, m := &b.cur, &it.Metrics
	t.AgentStartedSpeakingAt = b.time(m.StartedSpeakingAt)
	t.AgentStoppedSpeakingAt = b.time(m.StoppedSpeakingAt)
	if d, ok := segment(m); ok {
		b.voice.add(m, it.Text, d, &b.voice.agentWords)
		t.AgentSpeechMS = b.ints.put(d.Round(time.Millisecond).Milliseconds())
	}
}

// finishSpeech sets what depends on both sides of the current turn.
func (b *builder) finishSpeech() {
	t := &b.cur
	if t.UserSpeechMS != nil {
		// Pauses between messages are not speech, and overlapping messages must not be counted twice.
		d := min(b.userSpeech, t.UserStoppedSpeakingAt.Sub(t.UserStartedSpeakingAt.Time))
		*t.UserSpeechMS = d.Round(time.Millisecond).Milliseconds()
	}
	if t.UserStoppedSpeakingAt != nil && t.AgentStartedSpeakingAt != nil {
		t.TTFAMS = b.between(t.UserStoppedSpeakingAt.Time, t.AgentStartedSpeakingAt.Time)
	}
	if t.UserStartedSpeakingAt != nil {
		t.InterTurnGapMS = b.between(b.lastStop, t.UserStartedSpeakingAt.Time)
	}
}

// voiceSummary is nil when nobody's speech was timed.
func (b *builder) voiceSummary(in Input) *Voice {
	if !b.spoken || len(b.voice.speech) == 0 && !b.anyGap() {
		return nil
	}
	v := &Voice{
		TTFA:     b.distribution(func(t *Turn) *int64 { return t.TTFAMS }),
		UserWPM:  b.voice.userWords.perMinute(),
		AgentWPM: b.voice.agentWords.perMinute(),
		DeadAir:  deadAir(b.turns),
	}
	for i := range b.turns {
		t := &b.turns[i]
		if t.UserSpeechMS != nil {
			total := value(v.UserSpeechMS) + *t.UserSpeechMS
			v.UserSpeechMS = &total
		}
		if t.AgentSpeechMS != nil {
			total := value(v.AgentSpeechMS) + *t.AgentSpeechMS
			v.AgentSpeechMS = &total
			if v.LongestMonologueMS == nil || *t.AgentSpeechMS > *v.LongestMonologueMS {
				v.LongestMonologueMS, v.LongestMonologueTurn = t.AgentSpeechMS, &t.TurnNumber
			}
		}
	}
	if first := &b.turns[0]; first.AgentFirst && first.AgentStartedSpeakingAt != nil && !first.AgentStartedSpeakingAt.Before(in.StartedAt) {
		v.GreetingTTFAMS = b.between(in.StartedAt, first.AgentStartedSpeakingAt.Time)
	}
	agent, user := value(v.AgentSpeechMS), value(v.UserSpeechMS)
	if agent+user > 0 {
		r := stat.Round(float64(agent)/float64(agent+user), 4)
		v.TalkRatio = &r
	}
	if in.DurationMS != nil && *in.DurationMS > 0 && len(b.voice.speech) > 0 {
		// Speech a little outside the call, by another clock, must not make the silence negative.
		share := max(0, min(1, float64(unionMicros(b.voice.speech))/1000/float64(*in.DurationMS)))
		pct := stat.Round(100*(1-share), 2)
		v.SilencePct = &pct
	}
	return v
}

func (b *builder) anyGap() bool {
	return slices.ContainsFunc(b.turns, func(t Turn) bool { return t.TTFAMS != nil || t.InterTurnGapMS != nil })
}

// deadAir lists the gaps above the threshold, in the order in which they happened: before the user spoke (inter_turn),
// then before the agent answered (response).
func deadAir(turns []Turn) DeadAir {
	d := DeadAir{ThresholdMS: DeadAirThresholdMS, Events: []DeadAirEvent{}}
	add := func(turn int, kind string, gap *int64) {
		if gap == nil || *gap <= DeadAirThresholdMS {
			return
		}
		d.Count++
		d.TotalMS += *gap
		d.MaxMS = max(d.MaxMS, *gap)
		d.Events = append(d.Events, DeadAirEvent{TurnNumber: turn, Kind: kind, GapMS: *gap})
	}
	for i := range turns {
		add(turns[i].TurnNumber, "inter_turn", turns[i].InterTurnGapMS)
		add(turns[i].TurnNumber, "response", turns[i].TTFAMS)
	}
	return d
}

// perMinute is words per minute of timed speech with one decimal, nil when none was timed.
func (w spokenWords) perMinute() *float64 {
	if w.time <= 0 {
		return nil
	}
	v := stat.Round(float64(w.words)/w.time.Minutes(), 1)
	return &v
}

// countWords counts the runs of anything but white space and control characters.
func countWords(s string) int {
	n, inWord := 0, false
	for _, r := range s {
		space := r <= ' ' || r >= utf8.RuneSelf && unicode.IsSpace(r)
		if !space && !inWord {
			n++
		}
		inWord = !space
	}
	return n
}

// unionMicros is the time covered by the intervals, overlaps once. It sorts them.
func unionMicros(speech []interval) int64 {
	slices.SortFunc(speech, func(a, b interval) int { return cmp.Compare(a.from, b.from) })
	covered, end := int64(0), int64(math.MinInt64)
	for _, s := range speech {
		if from := max(s.from, end); s.to > from {
			covered += s.to - from
			end = s.to
		}
	}
	return covered
}
