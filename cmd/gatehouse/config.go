package main

import (
	"log/slog"
	"net/netip"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/alecthomas/kong"

	"gatehouse/actors/oauth"
	"gatehouse/providers/messenger"
)

// config is the checked settings of a process that serves.
type config struct {
	Provider string // ip-api, ip-api-pro, mmdb or sim
	Key      string // of ip-api-pro; secret
	Base     string // URL of the upstream; "" = mmdb, or a simulator in process
	MMDB     []string
	PTR      string // off, system or a DNS server's host:port

	LookupTimeout       time.Duration
	UpstreamConcurrency int
	UpstreamShare       float64
	BreakerFailures     int
	BreakerCooldown     time.Duration
	ForbiddenHold       time.Duration
	CacheEntries        int
	GeoLimit            int // a minute and caller; 0 = no limit

	Identity, Geo bool // the services that are offered
	DatabaseURL   string
	Migrate       bool
	BaseURL       string // without a slash at the end; "" = that of the public listener, which is on loopback or a socket
	Lifetimes     oauth.Lifetimes
	SessionTTL    time.Duration
	DefaultScopes oauth.Scopes // 0 = none
	SkipChooser   string       // name of a parameter

	Messengers      []messenger.Target // none = nobody can be reached
	MessengerSecret string             // of webhooks; secret
	MessengerFrom   string             // of e-mails

	Listen, AdminListen string
	TrustedProxies      []netip.Prefix
	ForwardedHeader     string
	TLSCert, TLSKey     string // both or none
	ReadTimeout         time.Duration
	WriteTimeout        time.Duration
	IdleTimeout         time.Duration
	MaxConnections      int
	DrainDelay          time.Duration
	DrainTimeout        time.Duration

	LogFormat string // json or text
	LogLevel  slog.Level
}

// defaults are the texts that stand for settings left out, where that depends on the command.
type defaults struct {
	ptr            string // "" = by provider
	trustedProxies []string
	messenger      []string
	logFormat      string
}

var serveDefaults = defaults{logFormat: "json"}

// newConfig checks the settings, one by one and against each other. The error is a usageError about the first that
// cannot be.
func newConfig(s settings, db databaseSettings, u upstreamSettings, d defaults, v *values) (config, error) {
	c := config{
		Provider: v.oneOf("ip-provider", u.IPProvider, "ip-api", "ip-api-pro", "mmdb", "sim"),
		Key:      v.secret("ip-api-key", u.IPAPIKey),
		MMDB:     v.files("ip-mmdb", s.IPMMDB),

		LookupTimeout:       v.duration("lookup-timeout", s.LookupTimeout, time.Second+time.Millisecond, time.Minute),
		UpstreamConcurrency: v.number("upstream-concurrency", s.UpstreamConcurrency, 1, 64),
		UpstreamShare:       v.share("upstream-share", s.UpstreamShare),
		BreakerFailures:     v.number("breaker-failures", s.BreakerFailures, 1, 1000),
		BreakerCooldown:     v.duration("breaker-cooldown", s.BreakerCooldown, time.Millisecond, time.Hour),
		ForbiddenHold:       v.duration("forbidden-hold", s.ForbiddenHold, time.Millisecond, 24*time.Hour),
		CacheEntries:        v.number("cache-entries", s.CacheEntries, 1, 100_000_000),
		GeoLimit:            v.number("geo-limit", s.GeoLimit, 0, 1_000_000),

		DatabaseURL:   v.database("database-url", db.DatabaseURL),
		Migrate:       v.oneOf("migrate", s.Migrate, "true", "false") == "true",
		BaseURL:       v.issuer("base-url", s.BaseURL),
		Lifetimes:     v.lifetimes(s.identitySettings),
		SessionTTL:    v.duration("session-ttl", s.SessionTTL, time.Second, 10*365*24*time.Hour),
		DefaultScopes: v.scopes("default-scope", s.DefaultScope),
		SkipChooser:   v.parameter("skip-chooser-parameter", s.SkipChooserParameter),

		Messengers:      v.messengers("messenger", orDefault(s.Messenger, d.messenger)),
		MessengerSecret: v.signingSecret("messenger-secret", s.MessengerSecret),
		MessengerFrom:   v.sender("messenger-from", s.MessengerFrom),

		Listen:          v.address("listen", s.Listen),
		AdminListen:     v.address("admin-listen", s.AdminListen),
		TrustedProxies:  v.prefixes("trusted-proxies", orDefault(s.TrustedProxies, d.trustedProxies)),
		ForwardedHeader: v.oneOf("forwarded-header", strings.ToLower(s.ForwardedHeader), "x-forwarded-for", "forwarded"),
		ReadTimeout:     v.duration("read-timeout", s.ReadTimeout, time.Millisecond, time.Hour),
		WriteTimeout:    v.duration("write-timeout", s.WriteTimeout, time.Millisecond, time.Hour),
		IdleTimeout:     v.duration("idle-timeout", s.IdleTimeout, time.Millisecond, time.Hour),
		MaxConnections:  v.number("max-connections", s.MaxConnections, 1, 1_000_000),
		DrainDelay:      v.duration("drain-delay", s.DrainDelay, 0, 5*time.Minute),
		DrainTimeout:    v.duration("drain-timeout", s.DrainTimeout, time.Millisecond, 10*time.Minute),

		LogFormat: v.oneOf("log-format", first(s.LogFormat, d.logFormat), "json", "text"),
		LogLevel:  v.level("log-level", s.LogLevel),
	}
	c.Identity, c.Geo = v.roles("roles", s.Roles)
	c.Base = v.base(c.Provider, u.IPAPIBase)
	c.PTR = v.reverser("ptr", first(s.PTR, d.ptr, ptrByProvider(c.Provider)))
	c.TLSCert, c.TLSKey = v.keyPair(s.TLSCert, s.TLSKey)
	v.checkProvider(c)
	v.checkIssuer(c)
	v.checkMessengers(c)
	return c, v.err
}

func ptrByProvider(provider string) string {
	if strings.HasPrefix(provider, "ip-api") {
		return "system"
	}
	return "off"
}

// first returns the first text that is not empty.
func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

func orDefault(texts, standard []string) []string {
	if len(texts) == 0 {
		return standard
	}
	return texts
}

// environment is the variables of the process.
type environment map[string]string

// newEnvironment reads variables in the form of os.Environ. An empty variable counts as one that is not set.
func newEnvironment(variables []string) environment {
	env := make(environment, len(variables))
	for _, v := range variables {
		if name, value, _ := strings.Cut(v, "="); value != "" {
			env[name] = value
		}
	}
	return env
}

// unknown returns the names of the variables that look like settings of gatehouse and are none, sorted.
func (env environment) unknown() []string {
	known := make(map[string]bool, len(allSettings))
	for _, s := range slices.Concat(allSettings, operatorSettings) {
		known[s.variable] = true
	}
	var names []string
	for name := range env {
		if strings.HasPrefix(name, "GATEHOUSE_") && !known[name] {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// origin says where a setting's value was written. The zero value is the default.
type origin struct{ flag, variable, file string }

// String returns flag, env NAME, file PATH or default.
func (o origin) String() string {
	switch {
	case o.flag != "":
		return "flag"
	case o.variable != "":
		return "env " + o.variable
	case o.file != "":
		return "file " + o.file
	}
	return "default"
}

// resolver gives kong the settings that are no flags on the command line: from the environment, or else from the
// settings file. It notes where each came from.
type resolver struct {
	environment environment
	path        string            // of the settings file; "" = none
	file        map[string]string // its values by setting
	origins     map[string]origin
}

func newResolver(env environment) *resolver {
	return &resolver{environment: env, origins: map[string]origin{}}
}

// Validate has nothing to check: the settings file was when it was read.
func (r *resolver) Validate(*kong.Application) error { return nil }

// Resolve returns the value of flag as text, or nil when it is not set.
func (r *resolver) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	s, ok := settingNamed(flag.Name)
	if !ok || flag.Tag.Get("variable") != s.variable {
		return nil, nil // a flag of one command alone
	}
	if value, ok := r.environment[s.variable]; ok {
		r.origins[s.name] = origin{variable: s.variable}
		return value, nil
	}
	if value, ok := r.file[s.name]; ok {
		r.origins[s.name] = origin{file: r.path}
		return value, nil
	}
	return nil, nil
}

// values starts the checking of the settings that kong parsed.
func (r *resolver) values(parsed *kong.Context) *values {
	for _, path := range parsed.Path {
		if path.Flag != nil && !path.Resolved {
			r.origins[path.Flag.Name] = origin{flag: path.Flag.Name}
		}
	}
	return &values{origins: r.origins, effective: map[string]string{}}
}
