// Package config holds the settings of the program: one table names each variable, its default, what it means and
// what it may be. Load is pure; .env.example and docs/configuration.md are generated from the same table.
package config

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strings"
)

// Engines that DATABASE_URL can name.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// Config is everything a process can be told from outside, checked and parsed. Printing it by any verb of fmt or
// through slog shows no secret.
type Config struct {
	Database    Database
	AutoMigrate bool // serve and worker bring the schema up to date at start

	Host string // interface to listen on; "" is all of them
	Port int    // 0 takes any free port

	// Both of a pair are set or both are empty: Load clears half a pair and warns.
	BasicUser, BasicPass      string
	LiveKitKey, LiveKitSecret string
	CORSOrigins               []string // scheme://host[:port], lower case, no slash at the end
	MaxRecordingBytes         int64    // cap of the body of one session report
	RecordingsDir             string
	S3                        S3
	SweepInline               bool // serve evaluates alert rules itself (ALERT_SWEEPER=inline)
	BlockPrivateWebhooks      bool // webhooks to loopback and private addresses are refused
	PricesFile                string
	LogLevel                  slog.Level
	LogJSON                   bool
	Version                   string // of the build, for logs and /metrics; set by main, not a setting

	shown []slog.Attr // the effective settings with secrets hidden
}

// Database is DATABASE_URL taken apart.
type Database struct {
	Engine string // SQLite or Postgres
	Path   string // of the SQLite file, as written: relative to the working directory or absolute
	URL    string // the PostgreSQL URL as written; it may hold a password
}

// S3 is the object store for recordings; it is used when Bucket is not empty.
type S3 struct {
	Bucket, Region               string
	AccessKeyID, SecretAccessKey string // both empty: the standard AWS credential chain
	Endpoint                     string // http(s)://host[:port]; "" is AWS itself
	Prefix                       string // of every object key, without slashes around it
	Redirect                     bool   // playback answers 302 to a presigned URL instead of streaming
}

// Enabled reports whether recordings go to object storage.
func (s S3) Enabled() bool { return s.Bucket != "" }

// BasicEnabled reports whether the Basic pair is set.
func (c Config) BasicEnabled() bool { return c.BasicUser != "" && c.BasicPass != "" }

// BearerEnabled reports whether the LiveKit pair is set.
func (c Config) BearerEnabled() bool { return c.LiveKitKey != "" && c.LiveKitSecret != "" }

// Warning is something the operator should know at start although the process can run.
type Warning struct {
	Variable string // the setting to look at
	Message  string
}

// Load reads every setting of the table. It has no effects of its own: getenv is asked for each variable (an empty
// value counts as unset) and readFile for each NAME_FILE that is set. The error joins one line per problem, each
// naming the variable, its value unless it is secret, and what is allowed.
func Load(getenv func(string) string, readFile func(string) ([]byte, error)) (Config, []Warning, error) {
	var c Config
	var problems []error
	for _, s := range Settings {
		value, err := s.read(getenv, readFile)
		if err == nil && value != "" {
			err = s.apply(&c, value)
			if err != nil {
				err = s.problem(value, err)
			}
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		c.shown = append(c.shown, s.show(&c, value))
	}
	if len(problems) > 0 {
		return Config{}, nil, errors.Join(problems...)
	}
	return c, c.settle(getenv), nil
}

// read finds the raw value of a setting: the variable, else the file that NAME_FILE names, else the default.
func (s Setting) read(getenv func(string) string, readFile func(string) ([]byte, error)) (string, error) {
	value := getenv(s.Name)
	if !s.Secret {
		value = strings.TrimSpace(value)
	}
	if s.Secret {
		path := getenv(s.Name + "_FILE")
		switch {
		case path != "" && value != "":
			return "", fmt.Errorf("%s and %s_FILE are both set: keep one of them", s.Name, s.Name)
		case path != "":
			b, err := readFile(path)
			if err != nil {
				return "", fmt.Errorf("%s_FILE=%s: cannot be read: %w; allowed: the path of a readable file", s.Name, quote(path), bare(err))
			}
			if value = strings.TrimRight(string(b), "\r\n"); value == "" {
				return "", fmt.Errorf("%s_FILE=%s: the file is empty; allowed: a file that holds the value", s.Name, quote(path))
			}
		}
	}
	if value == "" {
		value = s.Default
	}
	if value == "" && s.Required {
		return "", fmt.Errorf("%s is required; allowed: %s", s.Name, s.Allowed)
	}
	return value, nil
}

// bare drops the operation and the path from a file error: the line names the path already.
func bare(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

func (s Setting) problem(value string, err error) error {
	if s.Secret {
		return fmt.Errorf("%s: %w; allowed: %s", s.Name, err, s.Allowed)
	}
	return fmt.Errorf("%s=%s: %w; allowed: %s", s.Name, quote(value), err, s.Allowed)
}

// quote keeps a value on one line and of a length a person reads.
func quote(v string) string {
	if len(v) > 100 {
		v = v[:100] + "..."
	}
	return fmt.Sprintf("%q", v)
}

// settle switches off what is only half set, and says so and who may read the data.
func (c *Config) settle(getenv func(string) string) []Warning {
	var warnings []Warning
	warn := func(variable, format string, args ...any) {
		warnings = append(warnings, Warning{variable, fmt.Sprintf(format, args...)})
	}
	half := func(feature, nameA string, a *string, nameB string, b *string) bool {
		if (*a == "") == (*b == "") {
			return false
		}
		set, missing := nameA, nameB
		if *a == "" {
			set, missing = nameB, nameA
		}
		*a, *b = "", ""
		warn(missing, "%s is off: %s is set but %s is missing", feature, set, missing)
		return true
	}
	half("Basic authentication", "AGENT_OBSERVABILITY_USER", &c.BasicUser, "AGENT_OBSERVABILITY_PASS", &c.BasicPass)
	half("Bearer authentication", "LIVEKIT_API_KEY", &c.LiveKitKey, "LIVEKIT_API_SECRET", &c.LiveKitSecret)
	switch {
	case half("object storage", "S3_ACCESS_KEY_ID", &c.S3.AccessKeyID, "S3_SECRET_ACCESS_KEY", &c.S3.SecretAccessKey):
		c.S3.Bucket = ""
	case c.S3.Bucket == "" && c.S3.AccessKeyID != "":
		warn("S3_BUCKET", "object storage is off: S3_ACCESS_KEY_ID is set but S3_BUCKET is missing")
	case c.S3.Bucket == "" && c.S3.Endpoint != "":
		warn("S3_BUCKET", "object storage is off: S3_ENDPOINT is set but S3_BUCKET is missing")
	}
	switch {
	case !c.BasicEnabled() && !c.BearerEnabled():
		warn("AGENT_OBSERVABILITY_USER", "no authentication: everyone who reaches this server can send, read and delete everything; "+
			"set AGENT_OBSERVABILITY_USER and AGENT_OBSERVABILITY_PASS")
	case !c.BasicEnabled():
		warn("AGENT_OBSERVABILITY_USER", "the dashboard and /api are open to everyone who reaches this server (only sending needs a token); "+
			"set AGENT_OBSERVABILITY_USER and AGENT_OBSERVABILITY_PASS")
	}
	return warnings
}

// LogValue is every setting with its effective value, secrets as "set".
func (c Config) LogValue() slog.Value { return slog.GroupValue(c.shown...) }

// Format prints what LogValue shows, whatever the verb.
func (c Config) Format(f fmt.State, _ rune) { fmt.Fprint(f, c.LogValue()) }

// String is the URL without its password.
func (d Database) String() string {
	if d.Engine == SQLite {
		return "sqlite:" + d.Path
	}
	return redactURL(d.URL)
}

// Format prints what String shows, whatever the verb.
func (d Database) Format(f fmt.State, _ rune) { fmt.Fprint(f, d.String()) }

// LogValue is the URL without its password.
func (d Database) LogValue() slog.Value { return slog.StringValue(d.String()) }
