package config

import "log/slog"

// Setting is one environment variable: a row of the only table of settings.
type Setting struct {
	Name     string
	Default  string // "" is unset
	Group    string // heading in the documentation
	Doc      string // one or two sentences, in Markdown without links
	Allowed  string // what a value may be: the end of every error line
	Required bool
	Secret   bool // never printed, and NAME_FILE may name a file that holds it
	apply    func(c *Config, value string) error
}

// show is the setting as logs may show it.
func (s Setting) show(c *Config, value string) slog.Attr {
	switch {
	case s.Name == "DATABASE_URL":
		value = c.Database.String()
	case s.Secret && value != "":
		value = "set"
	}
	return slog.String(s.Name, value)
}

// Settings is the table, in the order of the documentation.
var Settings = []Setting{
	{
		Name: "DATABASE_URL", Group: "Database", Required: true, Secret: true,
		Doc:     "Where everything but recordings is stored. A SQLite file is created with its folder.",
		Allowed: "`sqlite:./data/sidetone.db`, `sqlite:///abs/path.db` or `postgres://user:password@host:5432/database`",
		apply: func(c *Config, v string) (err error) {
			c.Database, err = parseDatabase(v)
			return err
		},
	},
	{
		Name: "AUTO_MIGRATE", Default: "true", Group: "Database",
		Doc:     "Whether `serve` and `worker` bring the schema up to date at start. With `false`, run `sidetone migrate` before a new version starts.",
		Allowed: "`true` or `false`",
		apply:   boolean(func(c *Config) *bool { return &c.AutoMigrate }),
	},

	{
		Name: "PORT", Default: "9090", Group: "Server",
		Doc:     "TCP port to listen on. `0` takes any free one and logs it.",
		Allowed: "a whole number from 0 to 65535",
		apply: func(c *Config, v string) error {
			n, err := number(v, 0, 65535)
			c.Port = int(n)
			return err
		},
	},
	{
		Name: "HOST", Group: "Server",
		Doc:     "Address to listen on. Unset is all interfaces; `127.0.0.1` is this machine only.",
		Allowed: "a host name or an IP address, without a port",
		apply: func(c *Config, v string) (err error) {
			c.Host, err = parseHost(v)
			return err
		},
	},
	{
		Name: "CORS_ALLOWED_ORIGINS", Group: "Server",
		Doc:     "Web pages of other origins that may read `/api` from a browser. The dashboard needs none: it comes from this server.",
		Allowed: "origins such as `https://app.example.com`, separated by commas; `*` is refused, because any web page could then read the calls",
		apply: func(c *Config, v string) (err error) {
			c.CORSOrigins, err = parseOrigins(v)
			return err
		},
	},

	{
		Name: "AGENT_OBSERVABILITY_USER", Group: "Access", Secret: true,
		Doc:     "User name of Basic authentication. With its password it protects the dashboard, `/api` and the inbound routes.",
		Allowed: "any text without a colon",
		apply: func(c *Config, v string) error {
			c.BasicUser = v
			return noColon(v)
		},
	},
	{
		Name: "AGENT_OBSERVABILITY_PASS", Group: "Access", Secret: true,
		Doc:     "Password of Basic authentication.",
		Allowed: "any text",
		apply:   text(func(c *Config) *string { return &c.BasicPass }),
	},
	{
		Name: "LIVEKIT_API_KEY", Group: "Access", Secret: true,
		Doc:     "LiveKit API key. With its secret, the inbound routes also accept the Bearer tokens that the LiveKit SDKs sign with this pair.",
		Allowed: "any text",
		apply:   text(func(c *Config) *string { return &c.LiveKitKey }),
	},
	{
		Name: "LIVEKIT_API_SECRET", Group: "Access", Secret: true,
		Doc:     "LiveKit API secret.",
		Allowed: "any text",
		apply:   text(func(c *Config) *string { return &c.LiveKitSecret }),
	},

	{
		Name: "RECORDINGS_DIR", Default: "data/recordings", Group: "Recordings",
		Doc:     "Folder for recordings; with object storage, for those not uploaded yet. It is created when missing.",
		Allowed: "the path of a folder",
		apply:   text(func(c *Config) *string { return &c.RecordingsDir }),
	},
	{
		Name: "MAX_RECORDING_MB", Default: "100", Group: "Recordings",
		Doc:     "Largest session report accepted, its recording included, in MB of 1,048,576 bytes. A larger one is answered 413.",
		Allowed: "a whole number from 1 to 10240",
		apply: func(c *Config, v string) error {
			n, err := number(v, 1, 10240)
			c.MaxRecordingBytes = n << 20
			return err
		},
	},
	{
		Name: "S3_BUCKET", Group: "Recordings",
		Doc:     "Bucket for recordings. Setting it turns object storage on, with the key pair below or, without one, with the standard AWS credential chain.",
		Allowed: "3 to 63 letters, digits, dots, hyphens and underscores",
		apply: func(c *Config, v string) error {
			c.S3.Bucket = v
			return matches(bucketName, v, "is not a bucket name")
		},
	},
	{
		Name: "S3_REGION", Default: "us-east-1", Group: "Recordings",
		Doc:     "Region of the bucket.",
		Allowed: "letters, digits and hyphens",
		apply: func(c *Config, v string) error {
			c.S3.Region = v
			return matches(regionName, v, "is not a region")
		},
	},
	{
		Name: "S3_ACCESS_KEY_ID", Group: "Recordings", Secret: true,
		Doc:     "Access key of the bucket.",
		Allowed: "any text",
		apply:   text(func(c *Config) *string { return &c.S3.AccessKeyID }),
	},
	{
		Name: "S3_SECRET_ACCESS_KEY", Group: "Recordings", Secret: true,
		Doc:     "Secret of the access key.",
		Allowed: "any text",
		apply:   text(func(c *Config) *string { return &c.S3.SecretAccessKey }),
	},
	{
		Name: "S3_ENDPOINT", Group: "Recordings",
		Doc:     "Address of an S3-compatible store that is not AWS; the bucket is then part of the path.",
		Allowed: "an address such as `https://minio.example.com:9000`, without path, user or query",
		apply: func(c *Config, v string) (err error) {
			c.S3.Endpoint, err = parseOrigin(v)
			return err
		},
	},
	{
		Name: "S3_PREFIX", Default: "recordings", Group: "Recordings",
		Doc:     "Put before the key of every object.",
		Allowed: "letters, digits and `._-`, in parts separated by `/`; no part is `.` or `..`",
		apply: func(c *Config, v string) (err error) {
			c.S3.Prefix, err = parsePrefix(v)
			return err
		},
	},
	{
		Name: "S3_REDIRECT", Default: "false", Group: "Recordings",
		Doc:     "Whether playback redirects to a short-lived address of the store instead of streaming through this server.",
		Allowed: "`true` or `false`",
		apply:   boolean(func(c *Config) *bool { return &c.S3.Redirect }),
	},

	{
		Name: "ALERT_SWEEPER", Default: "inline", Group: "Alerts",
		Doc:     "`inline`: `serve` also evaluates alert rules and delivers webhooks. `off`: only `sidetone worker` does.",
		Allowed: "`inline` or `off`",
		apply: func(c *Config, v string) error {
			mode, err := oneOf(v, "inline", "off")
			c.SweepInline = mode == "inline"
			return err
		},
	},
	{
		Name: "ALERT_WEBHOOK_BLOCK_PRIVATE", Default: "false", Group: "Alerts",
		Doc:     "Whether webhooks to loopback and private addresses are refused. Link-local addresses, where clouds keep credentials, always are.",
		Allowed: "`true` or `false`",
		apply:   boolean(func(c *Config) *bool { return &c.BlockPrivateWebhooks }),
	},

	{
		Name: "PRICES_FILE", Group: "Costs",
		Doc:     "Price table that overrides the built-in one for estimated costs.",
		Allowed: "the path of a file",
		apply:   text(func(c *Config) *string { return &c.PricesFile }),
	},

	{
		Name: "LOG_LEVEL", Default: "info", Group: "Logs",
		Doc:     "Least severe log line that is written.",
		Allowed: "`debug`, `info`, `warn` or `error`",
		apply: func(c *Config, v string) error {
			level, err := oneOf(v, "debug", "info", "warn", "error")
			if err != nil {
				return err
			}
			return c.LogLevel.UnmarshalText([]byte(level))
		},
	},
	{
		Name: "LOG_FORMAT", Default: "text", Group: "Logs",
		Doc:     "How log lines on standard error look.",
		Allowed: "`text` or `json`",
		apply: func(c *Config, v string) error {
			format, err := oneOf(v, "text", "json")
			c.LogJSON = format == "json"
			return err
		},
	},
}
