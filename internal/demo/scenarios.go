package demo

import (
	_ "embed"
	"fmt"
	"regexp"
	"strings"
)

//go:embed data/scenarios.txt
var scenarioText string

// A scenario is a scripted conversation; data/scenarios.txt documents the notation.
type scenario struct {
	name     string
	language string
	agents   []string
	outcome  string // success or fail
	reason   string
	lines    []line
}

// A line is one step of a scenario.
type line struct {
	kind     string // agent, user, call, error, handoff
	optional bool
	wordings []string // of agent and user
	name     string   // of call, error and handoff
	args     string
	output   string
}

// parseScenarios reads the notation of data/scenarios.txt. An error names the line.
func parseScenarios(text string) ([]scenario, error) {
	var out []scenario
	for n, raw := range strings.Split(text, "\n") {
		raw = strings.TrimSpace(raw)
		if raw == "" || strings.HasPrefix(raw, "#") {
			continue
		}
		if rest, ok := strings.CutPrefix(raw, "scenario "); ok {
			f := strings.Split(rest, " | ")
			if len(f) != 4 {
				return nil, fmt.Errorf("scenarios line %d: want NAME | LANGUAGE | AGENTS | OUTCOME: REASON", n+1)
			}
			outcome, reason, ok := strings.Cut(f[3], ": ")
			if !ok || outcome != "success" && outcome != "fail" {
				return nil, fmt.Errorf("scenarios line %d: the outcome is success or fail with a reason", n+1)
			}
			out = append(out, scenario{name: f[0], language: f[1], agents: strings.Split(f[2], ","), outcome: outcome, reason: reason})
			continue
		}
		if len(out) == 0 {
			return nil, fmt.Errorf("scenarios line %d: no scenario before it", n+1)
		}
		l, err := parseLine(raw)
		if err != nil {
			return nil, fmt.Errorf("scenarios line %d: %w", n+1, err)
		}
		s := &out[len(out)-1]
		s.lines = append(s.lines, l)
	}
	return out, nil
}

func parseLine(raw string) (line, error) {
	var l line
	if rest, ok := strings.CutPrefix(raw, "? "); ok {
		l.optional, raw = true, rest
	}
	kind, rest, _ := strings.Cut(raw, " ")
	l.kind = kind
	switch kind {
	case "agent", "user":
		l.wordings = strings.Split(rest, " | ")
	case "call", "error":
		head, output, ok := strings.Cut(rest, " => ")
		name, args, ok2 := strings.Cut(head, " ")
		if !ok || !ok2 {
			return l, fmt.Errorf("want %s NAME ARGUMENTS => OUTPUT", kind)
		}
		l.name, l.args, l.output = name, args, output
	case "handoff":
		l.name = rest
	default:
		return l, fmt.Errorf("unknown step %q", kind)
	}
	return l, nil
}

var slotPattern = regexp.MustCompile(`\{[a-z_]+\}`)

// fill replaces the {slots} of text; a slot without a value stays as it is.
func fill(text string, slots map[string]string) string {
	return slotPattern.ReplaceAllStringFunc(text, func(s string) string {
		if v, ok := slots[s[1:len(s)-1]]; ok {
			return v
		}
		return s
	})
}

// retryWords is what an agent says, by language, before it tries a failed tool once more.
var retryWords = map[string]string{
	"en": "Let me try that again for you, one moment please.",
	"es": "Permítame intentarlo otra vez, un momento por favor.",
	"de": "Ich versuche es noch einmal, einen Moment bitte.",
	"fr": "Je réessaie tout de suite, un instant s'il vous plaît.",
	"ar": "سأحاول مرة أخرى، لحظة من فضلك.",
}

var (
	namesByLanguage = map[string][]string{
		"en": {"Hannah Cole", "Marcus Reed", "Priya Nair", "Tom Ashworth", "Grace Okafor", "Liam Byrne", "Emily Sato", "Noah Fischer", "Zoe Martin", "Oscar Lind"},
		"es": {"Lucía Herrera", "Javier Molina", "Carmen Soto", "Andrés Vidal"},
		"de": {"Jürgen Weiß", "Katrin Schäfer", "Lukas Möller", "Anke Brandt"},
		"fr": {"Chloé Lefèvre", "Étienne Roche", "Inès Garnier", "Hugo Blanc"},
		"ar": {"ليلى حداد", "عمر منصور", "سارة الخطيب", "يوسف نصار"},
	}
	daysByLanguage = map[string][]string{
		"en": {"Monday", "Tuesday", "Wednesday", "Thursday", "Friday"},
		"es": {"lunes", "martes", "miércoles", "jueves", "viernes"},
		"de": {"Montag", "Dienstag", "Mittwoch", "Donnerstag", "Freitag"},
		"fr": {"lundi", "mardi", "mercredi", "jeudi", "vendredi"},
		"ar": {"الاثنين", "الثلاثاء", "الأربعاء", "الخميس"},
	}
	products   = []string{"a coffee grinder", "a pair of hiking boots", "a toaster", "two reading lamps", "a rain jacket", "a set of kitchen knives", "a bluetooth speaker", "a wooden puzzle", "an air purifier", "a yoga mat"}
	cities     = []string{"Lisbon", "Hamburg", "Leeds", "Utrecht", "Graz", "Malmö", "Porto", "Lyon", "Bremen", "Galway", "Turin", "Bergen"}
	streets    = []string{"Lindenstraße", "Harbour Road", "Mill Lane", "Gartenweg", "Station Street", "Ringstraße", "Oak Avenue", "Bachgasse"}
	digitWords = [...]string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"}
)

// spell writes the digits of s as words, as a caller reads a number aloud.
func spell(s string) string {
	w := make([]string, 0, len(s))
	for _, r := range s {
		w = append(w, digitWords[r-'0'])
	}
	return strings.Join(w, " ")
}
