package config

import (
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// load runs Load on an environment and a set of files.
func load(env, files map[string]string) (Config, []Warning, error) {
	return Load(func(name string) string { return env[name] }, func(path string) ([]byte, error) {
		b, ok := files[path]
		if !ok {
			return nil, &fs.PathError{Op: "open", Path: path, Err: os.ErrNotExist}
		}
		return []byte(b), nil
	})
}

// with is a sufficient environment and what a test adds to it: name, value, name, value.
func with(pairs ...string) map[string]string {
	env := map[string]string{
		"DATABASE_URL": "sqlite:./data/sidetone.db", "AGENT_OBSERVABILITY_USER": "ops", "AGENT_OBSERVABILITY_PASS": "pass-word",
	}
	for i := 0; i < len(pairs); i += 2 {
		env[pairs[i]] = pairs[i+1]
	}
	return env
}

func TestDefaults(t *testing.T) {
	got, warnings, err := load(with(), nil)
	if err != nil || len(warnings) != 0 {
		t.Fatalf("error %v, warnings %v", err, warnings)
	}
	got.shown = nil
	want := Config{
		Database: Database{Engine: SQLite, Path: "./data/sidetone.db"}, AutoMigrate: true, Port: 9090,
		BasicUser: "ops", BasicPass: "pass-word", MaxRecordingBytes: 100 << 20, RecordingsDir: "data/recordings",
		S3: S3{Region: "us-east-1", Prefix: "recordings"}, SweepInline: true, LogLevel: slog.LevelInfo,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %#v\nwant %#v", plain(got), plain(want))
	}
}

// plain drops the methods that hide secrets.
func plain(c Config) any {
	type bare Config
	return bare(c)
}

func TestEverySettingIsRead(t *testing.T) {
	got, warnings, err := load(map[string]string{
		"DATABASE_URL": "postgres://me:pw@db.example.com/calls", "AUTO_MIGRATE": "False", "PORT": "0", "HOST": "::1",
		"CORS_ALLOWED_ORIGINS":     "https://App.example.com/, http://localhost:5173,https://app.example.com",
		"AGENT_OBSERVABILITY_USER": "ops", "AGENT_OBSERVABILITY_PASS": "p:w", "LIVEKIT_API_KEY": "key", "LIVEKIT_API_SECRET": "secret",
		"RECORDINGS_DIR": "/srv/rec", "MAX_RECORDING_MB": "250", "S3_BUCKET": "calls", "S3_REGION": "eu-west-1",
		"S3_ACCESS_KEY_ID": "id", "S3_SECRET_ACCESS_KEY": "sk", "S3_ENDPOINT": "http://127.0.0.1:9000/", "S3_PREFIX": "/a/b/", "S3_REDIRECT": "true",
		"ALERT_SWEEPER": "off", "ALERT_WEBHOOK_BLOCK_PRIVATE": "true", "PRICES_FILE": " prices.json ", "LOG_LEVEL": "WARN", "LOG_FORMAT": "json",
	}, nil)
	if err != nil || len(warnings) != 0 {
		t.Fatalf("error %v, warnings %v", err, warnings)
	}
	if len(got.shown) != len(Settings) {
		t.Errorf("%d settings are shown, want all %d", len(got.shown), len(Settings))
	}
	got.shown = nil
	want := Config{
		Database: Database{Engine: Postgres, URL: "postgres://me:pw@db.example.com/calls"}, Host: "::1",
		BasicUser: "ops", BasicPass: "p:w", LiveKitKey: "key", LiveKitSecret: "secret",
		CORSOrigins: []string{"https://app.example.com", "http://localhost:5173"}, MaxRecordingBytes: 250 << 20, RecordingsDir: "/srv/rec",
		S3:                   S3{Bucket: "calls", Region: "eu-west-1", AccessKeyID: "id", SecretAccessKey: "sk", Endpoint: "http://127.0.0.1:9000", Prefix: "a/b", Redirect: true},
		BlockPrivateWebhooks: true, PricesFile: "prices.json", LogLevel: slog.LevelWarn, LogJSON: true,
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %#v\nwant %#v", plain(got), plain(want))
	}
}

func TestDatabaseURLs(t *testing.T) {
	for url, want := range map[string]Database{
		"sqlite:./rel/path.db":               {Engine: SQLite, Path: "./rel/path.db"},
		"sqlite:rel":                         {Engine: SQLite, Path: "rel"},
		"sqlite:///abs/path.db":              {Engine: SQLite, Path: "/abs/path.db"},
		"sqlite:/abs/with space %20.db":      {Engine: SQLite, Path: "/abs/with space %20.db"},
		"SQLite:x.db":                        {Engine: SQLite, Path: "x.db"},
		"postgres://u:p@h:5433/db?a=b":       {Engine: Postgres, URL: "postgres://u:p@h:5433/db?a=b"},
		"postgresql://h/db":                  {Engine: Postgres, URL: "postgresql://h/db"},
		"postgres:///db?host=/var/run/pg":    {Engine: Postgres, URL: "postgres:///db?host=/var/run/pg"},
		"postgres://h?dbname=db&user=u":      {Engine: Postgres, URL: "postgres://h?dbname=db&user=u"},
		"postgres://a,b:5433/db":             {Engine: Postgres, URL: "postgres://a,b:5433/db"},
		"postgres://h1:5432,h2:5433/db":      {Engine: Postgres, URL: "postgres://h1:5432,h2:5433/db"},
		"sqlite:file.db?mode=ro":             {},
		"sqlite:":                            {},
		"sqlite://rel.db":                    {},
		"sqlite:./dir/":                      {},
		"sqlite::memory:":                    {},
		"postgres:db":                        {},
		"postgres://u:s3cr3t@h/":             {},
		"postgres://u:s3cr3t@h:port/db":      {},
		"postgres://u:s3cr3t%zz@h/db":        {},
		"mysql://u:s3cr3t@h/db":              {},
		"s3cr3t":                             {},
		"user=u password=s3cr3t host=h:5432": {},
		"postgres//u:s3cr3t@h/db":            {},
	} {
		c, _, err := load(with("DATABASE_URL", url), nil)
		if valid := want != (Database{}); valid != (err == nil) || c.Database != want {
			t.Errorf("%s: %#v, %v", url, plain(c), err)
		}
		if err != nil && (strings.Contains(err.Error(), "s3cr3t") || !strings.HasPrefix(err.Error(), "DATABASE_URL")) {
			t.Errorf("%s: the error is %q: it names the variable and hides the password", url, err)
		}
	}
}

func TestProblemsAreOneLineEach(t *testing.T) {
	for _, c := range []struct{ name, value, says string }{
		{"AUTO_MIGRATE", "yes", "`true` or `false`"}, {"PORT", "65536", "0 to 65535"}, {"PORT", "-1", "0 to 65535"},
		{"PORT", "http", "whole number"}, {"PORT", "9e9", "whole number"}, {"PORT", "99999999999999999999", "out of range"},
		{"HOST", "localhost:80", "without a port"}, {"HOST", "a\nb", "host name"},
		{"CORS_ALLOWED_ORIGINS", "*", "`*` is refused"}, {"CORS_ALLOWED_ORIGINS", "https://ok.example.com,ftp://x", `"ftp://x"`},
		{"CORS_ALLOWED_ORIGINS", "https://x.example.com/path", "more than scheme"}, {"CORS_ALLOWED_ORIGINS", "example.com", "http"},
		{"MAX_RECORDING_MB", "0", "1 to 10240"}, {"MAX_RECORDING_MB", "1.5", "whole number"},
		{"S3_BUCKET", "a/b", "bucket name"}, {"S3_REGION", "eu west", "region"}, {"S3_ENDPOINT", "minio:9000", "http"},
		{"S3_ENDPOINT", "https://u:p@host", "more than scheme"}, {"S3_PREFIX", "a/../b", "prefix"}, {"S3_PREFIX", "/", "prefix"}, {"S3_REDIRECT", "1", "`true`"},
		{"ALERT_SWEEPER", "external", "`inline` or `off`"}, {"ALERT_WEBHOOK_BLOCK_PRIVATE", "on", "`true`"},
		{"LOG_LEVEL", "trace", "`debug`"}, {"LOG_FORMAT", strings.Repeat("x", 5000), "`json`"},
	} {
		_, _, err := load(with(c.name, c.value), nil)
		if err == nil {
			t.Errorf("%s=%q is accepted", c.name, c.value)
			continue
		}
		line := err.Error()
		shown := strings.TrimSuffix(fmt.Sprintf("%.100q", c.value), `"`)
		if !strings.HasPrefix(line, c.name+"="+shown) || !strings.Contains(line, c.says) || !strings.Contains(line, "; allowed: ") {
			t.Errorf("%s=%q: %q; it must name variable, value and what is allowed, with %q", c.name, c.value, line, c.says)
		}
		if strings.Contains(line, "\n") || len(line) > 400 {
			t.Errorf("%s=%q: not one readable line: %q", c.name, c.value, line)
		}
	}
}

func TestEveryProblemIsReported(t *testing.T) {
	_, _, err := load(map[string]string{"PORT": "x", "LOG_LEVEL": "y", "AGENT_OBSERVABILITY_USER": "a:secretive", "LIVEKIT_API_SECRET_FILE": "/gone"}, nil)
	if err == nil {
		t.Fatal("no error")
	}
	lines := strings.Split(err.Error(), "\n")
	starts := []string{"DATABASE_URL is required; allowed: `sqlite:", `PORT="x": not a whole number; allowed: `, "AGENT_OBSERVABILITY_USER: contains a colon; allowed: ",
		`LIVEKIT_API_SECRET_FILE="/gone": cannot be read: file does not exist; allowed: `, `LOG_LEVEL="y": unknown value; allowed: `}
	if len(lines) != len(starts) {
		t.Fatalf("%d lines, want %d:\n%v", len(lines), len(starts), err)
	}
	for i, start := range starts {
		if !strings.HasPrefix(lines[i], start) {
			t.Errorf("line %d is %q, want %q...", i, lines[i], start)
		}
	}
	if strings.Contains(err.Error(), "secretive") {
		t.Error("an error shows a secret")
	}
}

func TestSecretsFromFiles(t *testing.T) {
	for _, s := range Settings {
		if !s.Secret {
			continue
		}
		value := "from-a-file "
		if s.Name == "DATABASE_URL" {
			value = "postgres://u:p@h/from-a-file"
		}
		env := with("LIVEKIT_API_KEY", "k", "LIVEKIT_API_SECRET", "s", "S3_BUCKET", "bucket", "S3_ACCESS_KEY_ID", "i", "S3_SECRET_ACCESS_KEY", "s")
		delete(env, s.Name)
		env[s.Name+"_FILE"] = "/run/secrets/it"
		c, warnings, err := load(env, map[string]string{"/run/secrets/it": value + "\r\n"})
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s_FILE: %v, %v", s.Name, err, warnings)
		}
		secrets := []string{c.Database.URL, c.BasicUser, c.BasicPass, c.LiveKitKey, c.LiveKitSecret, c.S3.AccessKeyID, c.S3.SecretAccessKey}
		if !slices.Contains(secrets, value) {
			t.Errorf("%s_FILE: the value %q is not among %q", s.Name, value, secrets)
		}
		if _, _, err := load(env, map[string]string{"/run/secrets/it": "\n"}); err == nil || !strings.Contains(err.Error(), s.Name+"_FILE") {
			t.Errorf("%s_FILE names an empty file: %v", s.Name, err)
		}
		env[s.Name] = "x"
		if _, _, err := load(env, map[string]string{"/run/secrets/it": value}); err == nil || !strings.Contains(err.Error(), "both set") {
			t.Errorf("%s and its file: %v", s.Name, err)
		}
	}
	if c, _, err := load(with("PORT_FILE", "/gone"), nil); err != nil || c.Port != 9090 {
		t.Errorf("PORT_FILE is no setting, yet: port %d, %v", c.Port, err)
	}
}

func TestHalfPairsAndOpenDoors(t *testing.T) {
	noBasic := func(pairs ...string) map[string]string {
		return with(append([]string{"AGENT_OBSERVABILITY_USER", "", "AGENT_OBSERVABILITY_PASS", ""}, pairs...)...)
	}
	for name, c := range map[string]struct {
		env   map[string]string
		warns []string // variable: part of the message
	}{
		"both pairs":    {with("LIVEKIT_API_KEY", "k", "LIVEKIT_API_SECRET", "s"), nil},
		"nothing":       {noBasic(), []string{"AGENT_OBSERVABILITY_USER: everyone who reaches this server can send, read and delete everything"}},
		"LiveKit only":  {noBasic("LIVEKIT_API_KEY", "k", "LIVEKIT_API_SECRET", "s"), []string{"AGENT_OBSERVABILITY_USER: the dashboard and /api are open"}},
		"no password":   {with("AGENT_OBSERVABILITY_PASS", ""), []string{"AGENT_OBSERVABILITY_PASS: AGENT_OBSERVABILITY_PASS is missing", "AGENT_OBSERVABILITY_USER: no authentication"}},
		"no user":       {with("AGENT_OBSERVABILITY_USER", ""), []string{"AGENT_OBSERVABILITY_USER: AGENT_OBSERVABILITY_USER is missing", "AGENT_OBSERVABILITY_USER: no authentication"}},
		"no API secret": {with("LIVEKIT_API_KEY", "k"), []string{"LIVEKIT_API_SECRET: LIVEKIT_API_SECRET is missing"}},
		"no API key":    {with("LIVEKIT_API_SECRET", "s"), []string{"LIVEKIT_API_KEY: LIVEKIT_API_KEY is missing"}},
		"half an S3 pair": {with("S3_BUCKET", "bucket", "S3_ACCESS_KEY_ID", "i"), []string{
			"S3_SECRET_ACCESS_KEY: object storage is off: S3_ACCESS_KEY_ID is set but S3_SECRET_ACCESS_KEY is missing"}},
		"S3 pair without bucket":  {with("S3_ACCESS_KEY_ID", "i", "S3_SECRET_ACCESS_KEY", "s"), []string{"S3_BUCKET: S3_BUCKET is missing"}},
		"endpoint without bucket": {with("S3_ENDPOINT", "http://h"), []string{"S3_BUCKET: S3_BUCKET is missing"}},
		"bucket alone":            {with("S3_BUCKET", "bucket"), nil},
	} {
		cfg, warnings, err := load(c.env, nil)
		if err != nil || len(warnings) != len(c.warns) {
			t.Errorf("%s: %v, %d warnings %v, want %d", name, err, len(warnings), warnings, len(c.warns))
			continue
		}
		for i, w := range c.warns {
			variable, part, _ := strings.Cut(w, ": ")
			if warnings[i].Variable != variable || !strings.Contains(warnings[i].Message, part) {
				t.Errorf("%s: warning %q, want %q", name, warnings[i], w)
			}
		}
		env := c.env
		if cfg.BasicEnabled() != (env["AGENT_OBSERVABILITY_USER"] != "" && env["AGENT_OBSERVABILITY_PASS"] != "") ||
			cfg.BearerEnabled() != (env["LIVEKIT_API_KEY"] != "" && env["LIVEKIT_API_SECRET"] != "") ||
			cfg.S3.Enabled() != (env["S3_BUCKET"] != "" && (env["S3_ACCESS_KEY_ID"] == "") == (env["S3_SECRET_ACCESS_KEY"] == "")) {
			t.Errorf("%s: the wrong features are on: %#v", name, plain(cfg))
		}
		if (cfg.BasicUser == "") != (cfg.BasicPass == "") || (cfg.LiveKitKey == "") != (cfg.LiveKitSecret == "") {
			t.Errorf("%s: half a pair is left: %#v", name, plain(cfg))
		}
	}
}

func TestPrintingShowsNoSecret(t *testing.T) {
	c, _, err := load(map[string]string{
		"DATABASE_URL":             "postgres://me:hush1@db.example.com/calls?password=hush2&sslpassword=hush3",
		"AGENT_OBSERVABILITY_USER": "hush4", "AGENT_OBSERVABILITY_PASS": "hush5", "LIVEKIT_API_KEY": "hush6", "LIVEKIT_API_SECRET": "hush7",
		"S3_BUCKET": "calls", "S3_ACCESS_KEY_ID": "hush8", "S3_SECRET_ACCESS_KEY": "hush9",
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var logged strings.Builder
	log := slog.New(slog.NewJSONHandler(&logged, nil))
	log.Info("settings", "config", c, "database", c.Database)
	for _, printed := range []string{fmt.Sprintf("%v", c), fmt.Sprintf("%+v", c), fmt.Sprintf("%#v", c), fmt.Sprintf("%s", c), fmt.Sprint(&c),
		fmt.Sprintf("%v %+v %#v %s", c.Database, c.Database, c.Database, c.Database), logged.String()} {
		if strings.Contains(printed, "hush") {
			t.Errorf("a secret is printed: %s", printed)
		}
		if !strings.Contains(printed, "db.example.com") {
			t.Errorf("the host of the database is not printed: %s", printed)
		}
	}
	if !strings.Contains(logged.String(), `"S3_SECRET_ACCESS_KEY":"set"`) || !strings.Contains(logged.String(), `"PORT":"9090"`) {
		t.Errorf("settings are missing from the log: %s", logged.String())
	}
}
