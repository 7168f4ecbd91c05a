package config

import (
	"errors"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	bucketName = regexp.MustCompile(`^[A-Za-z0-9._-]{3,63}$`)
	regionName = regexp.MustCompile(`^[A-Za-z0-9-]{1,64}$`)
	prefixPart = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
	hostName   = regexp.MustCompile(`^[A-Za-z0-9._-]+$`)
	schemeName = regexp.MustCompile(`^[a-z][a-z0-9+.-]{0,19}$`)
)

func text(field func(*Config) *string) func(*Config, string) error {
	return func(c *Config, v string) error {
		*field(c) = v
		return nil
	}
}

func boolean(field func(*Config) *bool) func(*Config, string) error {
	return func(c *Config, v string) error {
		word, err := oneOf(v, "true", "false")
		*field(c) = word == "true"
		return err
	}
}

// oneOf finds v among words, ignoring case.
func oneOf(v string, words ...string) (string, error) {
	v = strings.ToLower(v)
	if !slices.Contains(words, v) {
		return "", errors.New("unknown value")
	}
	return v, nil
}

func number(v string, min, max int64) (int64, error) {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil {
		if errors.Is(err, strconv.ErrRange) {
			return 0, errors.New("out of range")
		}
		return 0, errors.New("not a whole number")
	}
	if n < min || n > max {
		return 0, errors.New("out of range")
	}
	return n, nil
}

func matches(pattern *regexp.Regexp, v, problem string) error {
	if !pattern.MatchString(v) {
		return errors.New(problem)
	}
	return nil
}

// noColon holds for Basic user names: the colon is what ends them on the wire (RFC 7617, section 2).
func noColon(v string) error {
	if strings.Contains(v, ":") {
		return errors.New("contains a colon")
	}
	return nil
}

func parseHost(v string) (string, error) {
	if ip := net.ParseIP(strings.TrimSuffix(strings.TrimPrefix(v, "["), "]")); ip != nil {
		return ip.String(), nil
	}
	return v, matches(hostName, v, "is not a host name")
}

// parseDatabase takes apart a database URL. Its errors never hold more of the URL than the scheme: the rest may be a
// password.
func parseDatabase(v string) (Database, error) {
	scheme, rest, found := strings.Cut(v, ":")
	if !found {
		return Database{}, errors.New("has no scheme")
	}
	switch scheme = strings.ToLower(scheme); scheme {
	case "sqlite":
		path, err := sqlitePath(rest)
		return Database{Engine: SQLite, Path: path}, err
	case "postgres", "postgresql":
		if u, err := url.Parse(v); err != nil || u.Opaque != "" || !strings.HasPrefix(rest, "//") {
			return Database{}, errors.New("is not a well-formed URL (special characters in a password must be percent-encoded)")
		} else if strings.Trim(u.Path, "/") == "" && !u.Query().Has("dbname") {
			return Database{}, errors.New("names no database")
		}
		return Database{Engine: Postgres, URL: v}, nil
	}
	if schemeName.MatchString(scheme) {
		return Database{}, errors.New("unknown scheme " + strconv.Quote(scheme))
	}
	return Database{}, errors.New("unknown scheme")
}

// sqlitePath reads what follows "sqlite:": a relative path, /abs or ///abs. The path is taken as it is written,
// without percent-decoding.
func sqlitePath(rest string) (string, error) {
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		if !strings.HasPrefix(after, "/") {
			return "", errors.New("a relative path has no // before it")
		}
		rest = after
	}
	switch {
	case rest == "" || strings.HasSuffix(rest, "/"):
		return "", errors.New("names no file")
	case strings.HasPrefix(rest, ":memory:"):
		return "", errors.New("a database in memory would lose every report at exit")
	case strings.ContainsAny(rest, "?#\x00"):
		return "", errors.New("the path contains ? or #")
	}
	return rest, nil
}

// redactURL hides the password in a PostgreSQL URL, wherever it stands.
func redactURL(v string) string {
	u, err := url.Parse(v)
	if err != nil {
		return "(hidden)"
	}
	if q := u.Query(); q.Has("password") || q.Has("sslpassword") {
		for _, key := range []string{"password", "sslpassword"} {
			if q.Has(key) {
				q.Set(key, "xxxxx")
			}
		}
		u.RawQuery = q.Encode()
	}
	return u.Redacted()
}

func parseOrigins(v string) ([]string, error) {
	var origins []string
	for part := range strings.SplitSeq(v, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		origin, err := parseOrigin(part)
		if err != nil {
			return nil, errors.New(quote(part) + " " + err.Error())
		}
		if !slices.Contains(origins, origin) {
			origins = append(origins, origin)
		}
	}
	return origins, nil
}

// parseOrigin checks scheme://host[:port] and returns it in lower case without a slash at the end, as browsers send it.
func parseOrigin(v string) (string, error) {
	u, err := url.Parse(strings.ToLower(v))
	switch {
	case err != nil || u.Hostname() == "" || u.Scheme != "http" && u.Scheme != "https":
		return "", errors.New("is not an http or https address")
	case strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return "", errors.New("has more than scheme, host and port")
	}
	return u.Scheme + "://" + u.Host, nil
}

func parsePrefix(v string) (string, error) {
	v = strings.Trim(v, "/")
	for part := range strings.SplitSeq(v, "/") {
		if part == "." || part == ".." || !prefixPart.MatchString(part) {
			return "", errors.New("is not a prefix of object keys")
		}
	}
	return v, nil
}
