package main

import (
	"reflect"
	"slices"

	"github.com/alecthomas/kong"
)

// The settings as they are written, each one a flag, a key of the settings file by the same name and a variable of the
// environment. kong fills them in by that order; newConfig checks them and gives them their types. An empty text means
// that the default depends on other settings.

// upstreamSettings choose who answers a miss. A demo has none: it brings its own upstream.
type upstreamSettings struct {
	IPProvider string `name:"ip-provider" variable:"IP_PROVIDER" default:"ip-api" group:"upstream" placeholder:"NAME" help:"Who answers: ip-api, ip-api-pro, mmdb or sim."`
	IPAPIKey   string `name:"ip-api-key" variable:"IP_API_KEY" secret:"" group:"upstream" placeholder:"KEY" help:"Key for ip-api-pro. Other users of the machine see flags: rather use the variable or the file."`
	IPAPIBase  string `name:"ip-api-base" variable:"IP_API_BASE" group:"upstream" placeholder:"URL" help:"Address of the upstream (default: the public one of ip-api or ip-api-pro; for sim, a simulator in process)."`
}

// databaseSettings say where the identity service keeps its records. A demo has none: it brings its own file.
type databaseSettings struct {
	DatabaseURL string `name:"database-url" variable:"GATEHOUSE_DATABASE_URL" default:"sqlite:gatehouse.db" group:"identity" placeholder:"URL" help:"Where clients, users and tokens are kept: sqlite:PATH or postgres://… (${default}). Other users of the machine see flags: a password rather goes into the variable or the file."`
}

// identitySettings are the settings of the identity service beside its database.
type identitySettings struct {
	BaseURL              string   `name:"base-url" variable:"GATEHOUSE_BASE_URL" group:"identity" placeholder:"URL" help:"The address that clients know the public endpoints by, which is the issuer (default: http:// or https:// and the public address, if that is on loopback)."`
	CodeTTL              string   `name:"code-ttl" variable:"GATEHOUSE_CODE_TTL" default:"60s" group:"identity" placeholder:"TIME" help:"How long an authorization code lasts (${default})."`
	AccessTokenTTL       string   `name:"access-token-ttl" variable:"GATEHOUSE_ACCESS_TOKEN_TTL" default:"1h" group:"identity" placeholder:"TIME" help:"How long an access token lasts (${default})."`
	RefreshTokenTTL      string   `name:"refresh-token-ttl" variable:"GATEHOUSE_REFRESH_TOKEN_TTL" default:"720h" group:"identity" placeholder:"TIME" help:"How long a refresh token lasts from its last use (${default})."`
	RefreshFamilyTTL     string   `name:"refresh-family-ttl" variable:"GATEHOUSE_REFRESH_FAMILY_TTL" default:"4320h" group:"identity" placeholder:"TIME" help:"How long it lasts in all, however much it is used (${default})."`
	RefreshGrace         string   `name:"refresh-grace" variable:"GATEHOUSE_REFRESH_GRACE" default:"10s" group:"identity" placeholder:"TIME" help:"How long the refresh token before is still accepted; 0s = not at all (${default})."`
	SessionTTL           string   `name:"session-ttl" variable:"GATEHOUSE_SESSION_TTL" default:"336h" group:"identity" placeholder:"TIME" help:"How long a browser stays signed in from its last use (${default})."`
	DefaultScope         string   `name:"default-scope" variable:"GATEHOUSE_DEFAULT_SCOPE" default:"view-user" group:"identity" placeholder:"SCOPE" help:"What an authorization request without a scope asks for; none = it is refused (${default})."`
	SkipChooserParameter string   `name:"skip-chooser-parameter" variable:"GATEHOUSE_SKIP_CHOOSER_PARAMETER" default:"skip_account_chooser" group:"identity" placeholder:"NAME" help:"What the parameter is called that skips the account chooser (${default})."`
	Messenger            []string `name:"messenger" variable:"GATEHOUSE_MESSENGER" group:"identity" placeholder:"WAY" help:"How codes reach people: log, a webhook's URL, smtp://HOST or smtps://HOST, each with sms= or email= before it if it is for one channel; the first that serves a channel does (default: none; log in a demo)."`
	MessengerSecret      string   `name:"messenger-secret" variable:"GATEHOUSE_MESSENGER_SECRET" secret:"" group:"identity" placeholder:"SECRET" help:"What webhooks are signed with, at least 32 characters. Other users of the machine see flags: rather use the variable or the file."`
	MessengerFrom        string   `name:"messenger-from" variable:"GATEHOUSE_MESSENGER_FROM" group:"identity" placeholder:"ADDRESS" help:"The e-mail address that messages by SMTP are from."`
	Migrate              string   `name:"migrate" variable:"GATEHOUSE_MIGRATE" default:"true" group:"identity" placeholder:"BOOL" help:"Bring the database's schema up to date at the start: true, or false to refuse an old one (${default})."`
}

// settings are the settings of everything else.
type settings struct {
	Roles []string `name:"roles" variable:"GATEHOUSE_ROLES" default:"identity,geo" group:"http" placeholder:"ROLE" help:"The services that this process offers: identity, geo or both (${default})."`

	identitySettings

	IPMMDB              []string `name:"ip-mmdb" variable:"IP_MMDB" group:"upstream" placeholder:"FILE" help:"MaxMind-format City and ASN files: the provider mmdb, or a fallback beside an online one."`
	PTR                 string   `name:"ptr" variable:"GATEHOUSE_PTR" group:"upstream" placeholder:"SERVER" help:"Who finds reverse names: off, system or a DNS server's HOST:PORT (default: system for ip-api and ip-api-pro, else off)."`
	LookupTimeout       string   `name:"lookup-timeout" variable:"GATEHOUSE_LOOKUP_TIMEOUT" default:"5s" group:"upstream" placeholder:"TIME" help:"The longest wait of a caller (${default})."`
	UpstreamConcurrency string   `name:"upstream-concurrency" variable:"GATEHOUSE_UPSTREAM_CONCURRENCY" default:"8" group:"upstream" placeholder:"N" help:"Upstream requests at once (${default})."`
	UpstreamShare       string   `name:"upstream-share" variable:"GATEHOUSE_UPSTREAM_SHARE" default:"1" group:"upstream" placeholder:"SHARE" help:"The part of the upstream's budget that this process may spend (${default})."`
	BreakerFailures     string   `name:"breaker-failures" variable:"GATEHOUSE_BREAKER_FAILURES" default:"5" group:"upstream" placeholder:"N" help:"Failures in a row after which the upstream is left alone (${default})."`
	BreakerCooldown     string   `name:"breaker-cooldown" variable:"GATEHOUSE_BREAKER_COOLDOWN" default:"10s" group:"upstream" placeholder:"TIME" help:"How long it is left alone before a probe (${default})."`
	ForbiddenHold       string   `name:"forbidden-hold" variable:"GATEHOUSE_FORBIDDEN_HOLD" default:"10m" group:"upstream" placeholder:"TIME" help:"How long it is left alone after it refused key or address (${default})."`
	CacheEntries        string   `name:"cache-entries" variable:"GATEHOUSE_CACHE_ENTRIES" default:"100000" group:"upstream" placeholder:"N" help:"Answers kept in memory (${default})."`
	GeoLimit            string   `name:"geo-limit" variable:"GATEHOUSE_GEO_LIMIT" default:"0" group:"upstream" placeholder:"N" help:"Queries a minute that one caller may send upstream; 0 = no limit (${default})."`

	Listen          string   `name:"listen" variable:"GATEHOUSE_LISTEN" default:"127.0.0.1:8080" group:"http" placeholder:"ADDRESS" help:"Public address: HOST:PORT or unix:/path; port 0 takes a free one (${default})."`
	AdminListen     string   `name:"admin-listen" variable:"GATEHOUSE_ADMIN_LISTEN" default:"127.0.0.1:8081" group:"http" placeholder:"ADDRESS" help:"Address of metrics, health, profiles and the admin API (${default})."`
	TrustedProxies  []string `name:"trusted-proxies" variable:"GATEHOUSE_TRUSTED_PROXIES" group:"http" placeholder:"CIDR" help:"Proxies whose forwarding header is believed."`
	ForwardedHeader string   `name:"forwarded-header" variable:"GATEHOUSE_FORWARDED_HEADER" default:"x-forwarded-for" group:"http" placeholder:"NAME" help:"The one forwarding header that is read: x-forwarded-for or forwarded (${default})."`
	TLSCert         string   `name:"tls-cert" variable:"GATEHOUSE_TLS_CERT" group:"http" placeholder:"FILE" help:"Certificate chain for TLS on the public address, PEM."`
	TLSKey          string   `name:"tls-key" variable:"GATEHOUSE_TLS_KEY" group:"http" placeholder:"FILE" help:"Its private key, PEM."`
	ReadTimeout     string   `name:"read-timeout" variable:"GATEHOUSE_READ_TIMEOUT" default:"10s" group:"http" placeholder:"TIME" help:"The longest time to read one request (${default})."`
	WriteTimeout    string   `name:"write-timeout" variable:"GATEHOUSE_WRITE_TIMEOUT" default:"15s" group:"http" placeholder:"TIME" help:"The longest time to write one answer (${default})."`
	IdleTimeout     string   `name:"idle-timeout" variable:"GATEHOUSE_IDLE_TIMEOUT" default:"60s" group:"http" placeholder:"TIME" help:"How long an idle connection is kept (${default})."`
	MaxConnections  string   `name:"max-connections" variable:"GATEHOUSE_MAX_CONNECTIONS" default:"65536" group:"http" placeholder:"N" help:"Connections at once (${default})."`
	DrainDelay      string   `name:"drain-delay" variable:"GATEHOUSE_DRAIN_DELAY" default:"0s" group:"http" placeholder:"TIME" help:"When stopping: how long requests are still taken after readiness fails (${default})."`
	DrainTimeout    string   `name:"drain-timeout" variable:"GATEHOUSE_DRAIN_TIMEOUT" default:"15s" group:"http" placeholder:"TIME" help:"Then: how long requests under way may take to end (${default})."`

	LogFormat string `name:"log-format" variable:"GATEHOUSE_LOG_FORMAT" group:"log" placeholder:"FORMAT" help:"json or text (default: json; text in a demo)."`
	LogLevel  string `name:"log-level" variable:"GATEHOUSE_LOG_LEVEL" default:"info" group:"log" placeholder:"LEVEL" help:"debug, info, warn or error (${default})."`

	ConfigFile configFile `name:"config" placeholder:"FILE" help:"Settings file, YAML (.yaml, .yml) or TOML (.toml); its keys are these flags' names. Flags and variables win over it."`
}

var groups = []kong.Group{
	{Key: "identity", Title: "Identity:"},
	{Key: "upstream", Title: "Look-ups and the upstream:"},
	{Key: "http", Title: "HTTP:"},
	{Key: "log", Title: "Logs:"},
	{Key: "remote", Title: "The server and its operator:"},
}

// setting describes one setting.
type setting struct {
	name     string // of the flag and of the key in a file
	variable string // of the environment
	secret   bool   // its value is never shown
}

// allSettings are the settings of a process that serves, in the order of their flags.
var allSettings = slices.Concat(describe(reflect.TypeFor[databaseSettings]()), describe(reflect.TypeFor[upstreamSettings]()),
	describe(reflect.TypeFor[settings]()))

// operatorSettings are those of the commands that speak to such a process.
var operatorSettings = describe(reflect.TypeFor[remoteSettings]())

// describe reads the tags of a struct of settings.
func describe(t reflect.Type) []setting {
	var found []setting
	for field := range t.Fields() {
		if field.Anonymous {
			found = append(found, describe(field.Type)...)
			continue
		}
		variable, ok := field.Tag.Lookup("variable")
		if !ok {
			continue
		}
		_, secret := field.Tag.Lookup("secret")
		found = append(found, setting{name: field.Tag.Get("name"), variable: variable, secret: secret})
	}
	return found
}

// settingNamed returns the setting of that name, if there is one.
func settingNamed(name string) (setting, bool) {
	for _, s := range slices.Concat(allSettings, operatorSettings) {
		if s.name == name {
			return s, true
		}
	}
	return setting{}, false
}
