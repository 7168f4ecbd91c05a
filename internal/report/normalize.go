package report

import "encoding/json"

// NormalizeItem gives an item as the API shows it: compact, with snake_case keys except inside extra, arguments and
// output (those belong to the developer), args called arguments, and created_at, started_speaking_at and
// stopped_speaking_at in epoch seconds whatever unit or text they came in. The proto-JSON form of log records is
// brought to the form of chat histories. Keys it does not know are kept. What is not a JSON object gives null.
func NormalizeItem(raw json.RawMessage) json.RawMessage {
	s := scanner{b: clean(raw)}
	isObject := s.peek() == '{'
	s.skip()
	if s.end(); s.err != nil || !isObject {
		return json.RawMessage("null")
	}
	item, _ := unwrapItem(s.b)
	return appendSnake(make([]byte, 0, len(item)+16), &scanner{b: item})
}

// appendSnake reads the next value from s and writes it to out as NormalizeItem says.
func appendSnake(out []byte, s *scanner) []byte {
	switch s.peek() {
	case '[':
		out = append(out, '[')
		sep := false
		for s.enter('['); s.more(']'); sep = true {
			if sep {
				out = append(out, ',')
			}
			out = appendSnake(out, s)
		}
		return append(out, ']')
	case '{':
		out = append(out, '{')
		sep := false
		for s.enter('{'); s.more('}'); sep = true {
			if sep {
				out = append(out, ',')
			}
			out = appendMember(out, s)
		}
		return append(out, '}')
	}
	return append(out, s.value()...)
}

func appendMember(out []byte, s *scanner) []byte {
	s.peek()
	start := s.i
	raw, escaped := s.rawKey()
	if escaped {
		out = append(out, s.b[start:start+len(raw)+2]...)
		out = append(out, ':')
		return appendSnake(out, s)
	}
	nameAt := len(out) + 1
	out = appendSnakeKey(append(out, '"'), raw)
	name := string(out[nameAt:])
	if name == "args" {
		name = "arguments"
		out = append(out[:nameAt], name...)
	}
	out = append(out, '"', ':')
	switch name {
	case "extra", "arguments", "output":
		return append(out, s.value()...)
	case "created_at", "started_speaking_at", "stopped_speaking_at":
		return appendSecondsOf(out, s)
	case "role":
		return appendRole(out, s)
	case "content":
		return appendContent(out, s)
	}
	return appendSnake(out, s)
}

// appendSnakeKey writes a camelCase key in snake_case; a run of capitals is one word. Keys that are not plain
// camelCase (dots, dashes, a capital first) are names of something and stay as they are.
func appendSnakeKey(out, key []byte) []byte {
	capitals := false
	for i, c := range key {
		switch {
		case c >= 'A' && c <= 'Z':
			if i == 0 {
				return append(out, key...)
			}
			capitals = true
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '_':
		default:
			return append(out, key...)
		}
	}
	if !capitals {
		return append(out, key...)
	}
	upper := func(i int) bool { return i < len(key) && key[i] >= 'A' && key[i] <= 'Z' }
	lowerAt := func(i int) bool { return i < len(key) && key[i] >= 'a' && key[i] <= 'z' }
	for i, c := range key {
		if upper(i) {
			if key[i-1] != '_' && (!upper(i-1) || lowerAt(i+1)) {
				out = append(out, '_')
			}
			c += 'a' - 'A'
		}
		out = append(out, c)
	}
	return out
}

// appendSecondsOf writes a time in epoch seconds. A value that is already that, and one that is no time at all, is
// written as it came.
func appendSecondsOf(out []byte, s *scanner) []byte {
	raw := s.value()
	if s.err != nil {
		return out
	}
	at := scanner{b: raw}
	t := at.time()
	if t.IsZero() {
		return append(out, raw...)
	}
	if raw[0] != '"' {
		if v, ok := (&scanner{b: raw}).num(); ok && v <= firstMillis {
			return append(out, raw...)
		}
	}
	return appendSeconds(out, t)
}

// appendRole writes the enum names of proto-JSON as chat histories write roles.
func appendRole(out []byte, s *scanner) []byte {
	raw := s.value()
	switch string(raw) {
	case `"USER"`:
		return append(out, `"user"`...)
	case `"ASSISTANT"`:
		return append(out, `"assistant"`...)
	case `"SYSTEM"`:
		return append(out, `"system"`...)
	case `"DEVELOPER"`:
		return append(out, `"developer"`...)
	}
	return append(out, raw...)
}

// appendContent writes the content of a message; a part {text} of proto-JSON becomes its text.
func appendContent(out []byte, s *scanner) []byte {
	if s.peek() != '[' {
		return appendSnake(out, s)
	}
	out = append(out, '[')
	sep := false
	for s.enter('['); s.more(']'); sep = true {
		if sep {
			out = append(out, ',')
		}
		if s.peek() == '{' {
			if text := onlyText(s); text != nil {
				out = append(out, text...)
				continue
			}
		}
		out = appendSnake(out, s)
	}
	return append(out, ']')
}

// onlyText consumes an object whose only member is a string called text and gives the string with its quotes. Of any
// other object it consumes nothing.
func onlyText(s *scanner) []byte {
	try := *s
	try.enter('{')
	if !try.more('}') || string(try.key()) != "text" || try.peek() != '"' {
		return nil
	}
	text := try.value()
	if try.more('}') || try.err != nil {
		return nil
	}
	*s = try
	return text
}
