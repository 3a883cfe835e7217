package main

import (
	"cmp"
	"crypto/tls"
	"log/slog"
	"net"
	"reflect"
	"slices"
	"time"

	"github.com/alecthomas/kong"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/geo"
	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack"
	"gatehouse/providers/ipapi"
	"gatehouse/providers/messenger"
	"gatehouse/providers/messenger/trail"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/otlp"
	"gatehouse/providers/ptr"
	"gatehouse/providers/sqlstore"
)

// Each setting is a flag, a key of the settings file and a variable of the environment. Its type
// has the rule for its values (values.go); Validate checks what must go together.

// upstreamSettings choose the upstream. A demo has none of them: its upstream is the simulator.
type upstreamSettings struct {
	IPProvider   choice      `name:"ip-provider" variable:"IP_PROVIDER" default:"ip-api" oneof:"ip-api ip-api-pro mmdb sim" group:"upstream" placeholder:"NAME" help:"Provider of lookups: ip-api, ip-api-pro, mmdb (offline files) or sim (simulator)."`
	IPAPIKey     secretText  `name:"ip-api-key" variable:"IP_API_KEY" group:"upstream" placeholder:"KEY" help:"Key for ip-api-pro. Other users of this machine can see flags: use the variable or the file."`
	IPAPIKeyFile secretFile  `name:"ip-api-key-file" variable:"IP_API_KEY_FILE" group:"upstream" placeholder:"FILE" help:"File with that key, in place of the value itself."`
	IPAPIBase    upstreamURL `name:"ip-api-base" variable:"IP_API_BASE" group:"upstream" placeholder:"URL" help:"URL of the upstream (default: the public one of ip-api or ip-api-pro; for sim, a simulator in this process)."`
}

// databaseSettings choose the database. A demo has none of them: its database is in its folder.
type databaseSettings struct {
	DatabaseURL     databaseURL `name:"database-url" variable:"GATEHOUSE_DATABASE_URL" default:"sqlite:gatehouse.db" group:"identity" placeholder:"URL" help:"Where clients, users and tokens are kept: sqlite:PATH or postgres://… (${default}). Other users of this machine can see flags: put a password into the variable or the file."`
	DatabaseURLFile secretFile  `name:"database-url-file" variable:"GATEHOUSE_DATABASE_URL_FILE" group:"identity" placeholder:"FILE" help:"File with that URL, in place of the value itself."`
}

// clusterSettings make the process a node of a cluster. A demo has none of them.
type clusterSettings struct {
	ClusterListen    hostPort    `name:"cluster-listen" variable:"GATEHOUSE_CLUSTER_LISTEN" group:"cluster" placeholder:"HOST:PORT" help:"Address for the other nodes of a cluster; it makes this process a node, and needs a PostgreSQL database (default: none)."`
	ClusterAdvertise peerAddress `name:"cluster-advertise" variable:"GATEHOUSE_CLUSTER_ADVERTISE" group:"cluster" placeholder:"HOST:PORT" help:"Where the other nodes reach that address (default: as it is)."`
	ClusterName      nodeName    `name:"cluster-name" variable:"GATEHOUSE_CLUSTER_NAME" group:"cluster" placeholder:"NAME" help:"Name of this node for people (default: the host name and the port)."`
	EgressLabel      egressLabel `name:"egress-label" variable:"GATEHOUSE_EGRESS_LABEL" default:"default" group:"cluster" placeholder:"LABEL" help:"Label of the address that this node asks the upstream from: nodes with the same label share one budget (${default})."`
}

// check returns an error about the first of these settings that do not go together.
func (s *clusterSettings) check(database databaseURL, roles roles) error {
	host, _, _ := net.SplitHostPort(string(s.ClusterListen))
	switch {
	case s.ClusterListen == "" && s.ClusterAdvertise != "":
		return refuse("cluster-advertise", s.ClusterAdvertise, "needs cluster-listen with it")
	case s.ClusterListen == "" && s.ClusterName != "":
		return refuse("cluster-name", s.ClusterName, "needs cluster-listen with it")
	case s.ClusterListen == "":
		return nil
	case !slices.Contains(roles, "identity"):
		return refuse("cluster-listen", s.ClusterListen,
			"needs the identity service, which has the database: add identity to roles")
	case !isPostgres(string(database)):
		return refuse("cluster-listen", s.ClusterListen,
			"needs a PostgreSQL database in GATEHOUSE_DATABASE_URL (--database-url)")
	case s.ClusterAdvertise == "" && isUnspecified(host):
		return refuse("cluster-advertise", s.ClusterAdvertise,
			"must be given, since cluster-listen names no host that other nodes can reach")
	}
	return nil
}

func (s *clusterSettings) cluster() *stack.Cluster {
	if s.ClusterListen == "" {
		return nil
	}
	return &stack.Cluster{Listen: string(s.ClusterListen), Advertise: string(s.ClusterAdvertise),
		Name: string(s.ClusterName)}
}

// identitySettings are the other settings of the identity service.
type identitySettings struct {
	BaseURL                issuerURL       `name:"base-url" variable:"GATEHOUSE_BASE_URL" group:"identity" placeholder:"URL" help:"URL that clients know the public endpoints by: the issuer (default: the public address, if that is on loopback)."`
	CodeTTL                duration        `name:"code-ttl" variable:"GATEHOUSE_CODE_TTL" default:"60s" min:"1s" max:"10m" group:"identity" placeholder:"TIME" help:"Lifetime of an authorization code (${default})."`
	AccessTokenTTL         duration        `name:"access-token-ttl" variable:"GATEHOUSE_ACCESS_TOKEN_TTL" default:"1h" min:"1s" max:"720h" group:"identity" placeholder:"TIME" help:"Lifetime of an access token (${default})."`
	RefreshTokenTTL        duration        `name:"refresh-token-ttl" variable:"GATEHOUSE_REFRESH_TOKEN_TTL" default:"720h" min:"1s" max:"87600h" group:"identity" placeholder:"TIME" help:"Lifetime of a refresh token from its last use (${default})."`
	RefreshFamilyTTL       duration        `name:"refresh-family-ttl" variable:"GATEHOUSE_REFRESH_FAMILY_TTL" default:"4320h" min:"1s" max:"87600h" group:"identity" placeholder:"TIME" help:"Lifetime of a refresh token in all, however often it is used (${default})."`
	RefreshGrace           duration        `name:"refresh-grace" variable:"GATEHOUSE_REFRESH_GRACE" default:"10s" min:"0s" max:"5m" group:"identity" placeholder:"TIME" help:"How long the previous refresh token is still accepted; 0s = not at all (${default})."`
	SessionTTL             duration        `name:"session-ttl" variable:"GATEHOUSE_SESSION_TTL" default:"336h" min:"1s" max:"87600h" group:"identity" placeholder:"TIME" help:"How long a browser stays signed in after its last use (${default})."`
	SessionMax             duration        `name:"session-max" variable:"GATEHOUSE_SESSION_MAX" default:"2160h" min:"1s" max:"87600h" group:"identity" placeholder:"TIME" help:"How long a browser stays signed in after the sign-in, however often it is used (${default})."`
	SigningKeyAge          duration        `name:"signing-key-age" variable:"GATEHOUSE_SIGNING_KEY_AGE" default:"2160h" min:"48h" max:"87600h" group:"identity" placeholder:"TIME" help:"How long a key signs id_tokens before the next one does (${default})."`
	DefaultScope           grantableScopes `name:"default-scope" variable:"GATEHOUSE_DEFAULT_SCOPE" default:"view-user" group:"identity" placeholder:"SCOPE" help:"Scope of an authorization request that names none; none = refuse it (${default})."`
	SkipChooserParameter   parameterName   `name:"skip-chooser-parameter" variable:"GATEHOUSE_SKIP_CHOOSER_PARAMETER" default:"skip_account_chooser" group:"identity" placeholder:"NAME" help:"Name of the parameter that skips the account chooser (${default})."`
	Messenger              messengers      `name:"messenger" variable:"GATEHOUSE_MESSENGER" default:"${messenger}" group:"identity" placeholder:"WAY" help:"How codes reach people: log, a webhook's URL, smtp://HOST or smtps://HOST. With sms= or email= before it, one serves that channel only. The first that serves a channel is used (default: none; log in a demo)."`
	MessengerFile          secretFile      `name:"messenger-file" variable:"GATEHOUSE_MESSENGER_FILE" group:"identity" placeholder:"FILE" help:"File with these ways, in place of the value itself."`
	MessengerSecret        secretText      `name:"messenger-secret" variable:"GATEHOUSE_MESSENGER_SECRET" min:"32" group:"identity" placeholder:"SECRET" help:"Secret that webhooks are signed with, at least 32 characters. Other users of this machine can see flags: use the variable or the file."`
	MessengerSecretFile    secretFile      `name:"messenger-secret-file" variable:"GATEHOUSE_MESSENGER_SECRET_FILE" group:"identity" placeholder:"FILE" help:"File with that secret, in place of the value itself."`
	MessengerFrom          mailAddress     `name:"messenger-from" variable:"GATEHOUSE_MESSENGER_FROM" group:"identity" placeholder:"ADDRESS" help:"Sender of e-mails by SMTP."`
	Accounts               choice          `name:"accounts" variable:"GATEHOUSE_ACCOUNTS" default:"open" oneof:"open invited operators" group:"identity" placeholder:"WHO" help:"Who may make accounts: open (everybody), invited (operators, and whom they invite) or operators (${default})."`
	SecondFactor           choice          `name:"second-factor" variable:"GATEHOUSE_SECOND_FACTOR" default:"optional" oneof:"optional required" group:"identity" placeholder:"RULE" help:"Whether people must set up a second factor: optional or required (${default})."`
	PhoneReplacesPassword  choice          `name:"phone-replaces-password" variable:"GATEHOUSE_PHONE_REPLACES_PASSWORD" default:"allow" oneof:"allow forbid" group:"identity" placeholder:"RULE" help:"Whether people may choose that a code to their phone replaces the password: allow or forbid (${default})."`
	PasskeyDomain          hostName        `name:"passkey-domain" variable:"GATEHOUSE_PASSKEY_DOMAIN" group:"identity" placeholder:"HOST" help:"Domain that passkeys are for: the host of the base URL, or a parent of it that can be registered (default: that host; an IP address has no passkeys)."`
	SMSCountries           countries       `name:"sms-countries" variable:"GATEHOUSE_SMS_COUNTRIES" group:"identity" placeholder:"CODE" help:"Countries that text messages are sent to, such as DE,AT,CH (default: all)."`
	SMSPerHour             int             `name:"sms-per-hour" variable:"GATEHOUSE_SMS_PER_HOUR" default:"1000" min:"0" max:"1000000" group:"identity" placeholder:"N" help:"Text messages with codes an hour to people whose browser is not known to an account; 0 = no limit (${default})."`
	SMSPerCountry          int             `name:"sms-per-country" variable:"GATEHOUSE_SMS_PER_COUNTRY" default:"100" min:"0" max:"1000000" group:"identity" placeholder:"N" help:"Those messages an hour to one country; 0 = no limit (${default})."`
	Console                choice          `name:"console" variable:"GATEHOUSE_CONSOLE" default:"off" oneof:"on off" group:"identity" placeholder:"on|off" help:"Serve the console at /console to people in the group gatehouse-operators: on or off (${default})."`
	ConsoleNetworks        prefixes        `name:"console-networks" variable:"GATEHOUSE_CONSOLE_NETWORKS" group:"identity" placeholder:"CIDR" help:"Networks whose callers see the console; others get 404 (default: all)."`
	Agents                 choice          `name:"agents" variable:"GATEHOUSE_AGENTS" default:"${agents}" oneof:"on off" group:"identity" placeholder:"on|off" help:"Accept agents that nobody has registered: changes the defaults of client-id-metadata to on and of registration to open (default: off; on in a demo)."`
	ClientIDMetadata       choice          `name:"client-id-metadata" variable:"GATEHOUSE_CLIENT_ID_METADATA" oneof:"on off" group:"identity" placeholder:"on|off" help:"Accept a client_id that is the URL of a document which describes the client (default: as agents)."`
	Registration           choice          `name:"registration" variable:"GATEHOUSE_REGISTRATION" oneof:"off token open" group:"identity" placeholder:"off|token|open" help:"Who may register clients at /oauth/register: nobody, who sends the registration token, or everybody (default: off; open with agents)."`
	RegistrationToken      secretText      `name:"registration-token" variable:"GATEHOUSE_REGISTRATION_TOKEN" min:"32" group:"identity" placeholder:"TOKEN" help:"Bearer token that a registration must send, 32 to 256 characters; needed with --registration=token. Other users of this machine can see flags: use the variable or the file."`
	RedirectSchemes        redirectSchemes `name:"redirect-schemes" variable:"GATEHOUSE_REDIRECT_SCHEMES" group:"identity" placeholder:"SCHEME" help:"Schemes without a dot for redirect URIs of clients that register or describe themselves, such as myapp for myapp://, beside cursor, vscode, vscode-insiders, windsurf and zed (default: no others)."`
	RegistrationPerHour    int             `name:"registration-per-hour" variable:"GATEHOUSE_REGISTRATION_PER_HOUR" default:"60" min:"1" max:"10000" group:"identity" placeholder:"N" help:"Clients that registered themselves within an hour from one address, and that nobody has consented to yet (${default})."`
	RegistrationTokenFile  secretFile      `name:"registration-token-file" variable:"GATEHOUSE_REGISTRATION_TOKEN_FILE" group:"identity" placeholder:"FILE" help:"File with that token, in place of the value itself."`
	Stale                  duration        `name:"stale" variable:"GATEHOUSE_STALE" default:"0s" min:"0s" max:"24h" group:"identity" placeholder:"TIME" help:"How long requests with an access token go on, beyond two seconds, when the server cannot read what other servers revoked; then they get 503 (${default})."`
	MaxActiveTokens        int             `name:"max-active-tokens" variable:"GATEHOUSE_MAX_ACTIVE_TOKENS" default:"2000000" min:"1000" max:"100000000" group:"identity" placeholder:"N" help:"Access tokens in use at a time; one client may use an eighth of them, one user a 64th. Requests with further tokens get 503 (${default})."`
	AuditAddresses         choice          `name:"audit-addresses" variable:"GATEHOUSE_AUDIT_ADDRESSES" default:"prefix" oneof:"off prefix full" group:"identity" placeholder:"KEEP" help:"What the audit trail keeps of a caller's address: off, prefix (/24 of IPv4, /48 of IPv6) or full (${default})."`
	AuditKeep              duration        `name:"audit-keep" variable:"GATEHOUSE_AUDIT_KEEP" default:"9600h" min:"0s" max:"876000h" group:"identity" placeholder:"TIME" help:"How long the audit trail keeps events; 0s = forever (${default}, which is 400 days)."`
	AuditWebhook           hookURL         `name:"audit-webhook" variable:"GATEHOUSE_AUDIT_WEBHOOK" group:"identity" placeholder:"URL" help:"Where the events of the audit trail are posted as they come: https, or http on loopback (default: nowhere)."`
	AuditWebhookSecret     secretText      `name:"audit-webhook-secret" variable:"GATEHOUSE_AUDIT_WEBHOOK_SECRET" min:"32" group:"identity" placeholder:"SECRET" help:"Secret that these requests are signed with, at least 32 characters. Other users of this machine can see flags: use the variable or the file."`
	AuditWebhookSecretFile secretFile      `name:"audit-webhook-secret-file" variable:"GATEHOUSE_AUDIT_WEBHOOK_SECRET_FILE" group:"identity" placeholder:"FILE" help:"File with that secret, in place of the value itself."`
	AuditWebhookProfile    choice          `name:"audit-webhook-profile" variable:"GATEHOUSE_AUDIT_WEBHOOK_PROFILE" default:"off" oneof:"on off" group:"identity" placeholder:"on|off" help:"Whether its events about people have their e-mail addresses: off or on (${default})."`
	HashSlots              int             `name:"hash-slots" variable:"GATEHOUSE_HASH_SLOTS" default:"0" min:"0" max:"1024" group:"identity" placeholder:"N" help:"Passwords and codes that are hashed at once; 0 = one a core (${default})."`
	Migrate                choice          `name:"migrate" variable:"GATEHOUSE_MIGRATE" default:"true" oneof:"true false" group:"identity" placeholder:"BOOL" help:"At the start, bring the database's schema up to date: true, or false to refuse an old one (${default})."`
}

// settings are those that serve and demo share.
type settings struct {
	Roles roles `name:"roles" variable:"GATEHOUSE_ROLES" default:"identity,geo" group:"http" placeholder:"ROLE" help:"Services that this process offers: identity, geo or both (${default})."`

	identitySettings
	faceSettings

	IPMMDB              files          `name:"ip-mmdb" variable:"IP_MMDB" group:"upstream" placeholder:"FILE" help:"Database files in MaxMind's format, such as City and ASN: for the provider mmdb, or as a fallback beside another."`
	MMDBMap             mappingFile    `name:"mmdb-map" variable:"IP_MMDB_MAP" group:"upstream" placeholder:"FILE" help:"Where the records of these files have what is not recognized, as lines such as country_code: geo.cc (default: nowhere)."`
	MMDBLanguage        nameLanguage   `name:"mmdb-language" variable:"IP_MMDB_LANGUAGE" default:"en" group:"upstream" placeholder:"LANGUAGE" help:"Language of names, where these files have it, such as de or pt-BR (${default})."`
	MMDBUpdate          updateSettings `name:"mmdb-update" variable:"IP_MMDB_UPDATE" group:"upstream" placeholder:"FILE" help:"Keep these files up to date, as this file says: YAML, or a GeoIP.conf (default: no)."`
	PTR                 nameServer     `name:"ptr" variable:"GATEHOUSE_PTR" default:"${ptr}" group:"upstream" placeholder:"SERVER" help:"Who looks up reverse names: off, system or a DNS server's HOST:PORT (default: system for ip-api and ip-api-pro, else off)."`
	LookupTimeout       duration       `name:"lookup-timeout" variable:"GATEHOUSE_LOOKUP_TIMEOUT" default:"5s" min:"1001ms" max:"1m" group:"upstream" placeholder:"TIME" help:"Longest wait of a caller for a lookup (${default})."`
	UpstreamConcurrency int            `name:"upstream-concurrency" variable:"GATEHOUSE_UPSTREAM_CONCURRENCY" default:"8" min:"1" max:"64" group:"upstream" placeholder:"N" help:"Requests to the upstream at once (${default})."`
	UpstreamShare       float64        `name:"upstream-share" variable:"GATEHOUSE_UPSTREAM_SHARE" default:"1" group:"upstream" placeholder:"SHARE" help:"Share of the upstream's budget that this process may use (${default})."`
	BreakerFailures     int            `name:"breaker-failures" variable:"GATEHOUSE_BREAKER_FAILURES" default:"5" min:"1" max:"1000" group:"upstream" placeholder:"N" help:"Failures in a row after which requests to the upstream pause (${default})."`
	BreakerCooldown     duration       `name:"breaker-cooldown" variable:"GATEHOUSE_BREAKER_COOLDOWN" default:"10s" min:"1ms" max:"1h" group:"upstream" placeholder:"TIME" help:"Length of that pause; one request then probes the upstream (${default})."`
	ForbiddenHold       duration       `name:"forbidden-hold" variable:"GATEHOUSE_FORBIDDEN_HOLD" default:"10m" min:"1ms" max:"24h" group:"upstream" placeholder:"TIME" help:"Length of the pause after the upstream refused the key or the address (${default})."`
	CacheEntries        int            `name:"cache-entries" variable:"GATEHOUSE_CACHE_ENTRIES" default:"100000" min:"1" max:"100000000" group:"upstream" placeholder:"N" help:"Results kept in memory (${default})."`
	CacheTTL            duration       `name:"cache-ttl" variable:"GATEHOUSE_CACHE_TTL" default:"10m" min:"1m" max:"18h" group:"upstream" placeholder:"TIME" help:"How long a result is cached (${default})."`
	CacheFile           string         `name:"cache-file" variable:"GATEHOUSE_CACHE_FILE" group:"upstream" placeholder:"FILE" help:"File that keeps the cached results over a restart."`
	GeoLimit            int            `name:"geo-limit" variable:"GATEHOUSE_GEO_LIMIT" default:"0" min:"0" max:"1000000" group:"upstream" placeholder:"N" help:"Cache misses a minute that one caller may cause; 0 = no limit (${default})."`
	GeoKeys             string         `name:"geo-keys" variable:"GATEHOUSE_GEO_KEYS" group:"upstream" placeholder:"FILE" help:"API keys of callers of lookups, as gatehouse geo-key prints them (default: none)."`
	MMDBShare           keyNames       `name:"mmdb-share" variable:"IP_MMDB_SHARE" group:"upstream" placeholder:"NAME" help:"Offer the database files to other servers at /api/mmdb/FILE, which need the API key of one of these names in geo-keys (default: to none)."`
	GeoKeysRequired     toggle         `name:"geo-keys-required" variable:"GATEHOUSE_GEO_KEYS_REQUIRED" default:"false" group:"upstream" placeholder:"BOOL" help:"Refuse lookups without an API key: true or false (${default})."`

	Listen                   listenAddress `name:"listen" variable:"GATEHOUSE_LISTEN" default:"127.0.0.1:8080" group:"http" placeholder:"ADDRESS" help:"Public address: HOST:PORT or unix:/path, which may end with ?mode=0660&group=NAME; port 0 takes a free one (${default})."`
	AdminListen              listenAddress `name:"admin-listen" variable:"GATEHOUSE_ADMIN_LISTEN" default:"127.0.0.1:8081" group:"http" placeholder:"ADDRESS" help:"Address of metrics, health, pprof and the admin API (${default})."`
	CompatListen             listenAddress `name:"compat-listen" variable:"GATEHOUSE_COMPAT_LISTEN" group:"http" placeholder:"ADDRESS" help:"Address of lookups at the paths and in the shapes of other services (default: none)."`
	Compat                   compatNames   `name:"compat" variable:"GATEHOUSE_COMPAT" group:"http" placeholder:"SERVICE" help:"Services whose clients call there: ip-api, ipinfo or both with a comma."`
	TrustedProxies           prefixes      `name:"trusted-proxies" variable:"GATEHOUSE_TRUSTED_PROXIES" default:"${trusted_proxies}" group:"http" placeholder:"CIDR" help:"Proxies whose forwarding header is trusted."`
	ForwardedHeader          choice        `name:"forwarded-header" variable:"GATEHOUSE_FORWARDED_HEADER" default:"x-forwarded-for" oneof:"x-forwarded-for forwarded" group:"http" placeholder:"NAME" help:"Forwarding header that is read: x-forwarded-for or forwarded (${default})."`
	TLSCert                  string        `name:"tls-cert" variable:"GATEHOUSE_TLS_CERT" group:"http" placeholder:"FILE" help:"Certificate chain for TLS on the public address, PEM."`
	TLSKey                   string        `name:"tls-key" variable:"GATEHOUSE_TLS_KEY" group:"http" placeholder:"FILE" help:"Private key of the certificate, PEM."`
	AdminTLSCert             string        `name:"admin-tls-cert" variable:"GATEHOUSE_ADMIN_TLS_CERT" group:"http" placeholder:"FILE" help:"Certificate chain for TLS on the admin address, PEM."`
	AdminTLSKey              string        `name:"admin-tls-key" variable:"GATEHOUSE_ADMIN_TLS_KEY" group:"http" placeholder:"FILE" help:"Private key of that certificate, PEM."`
	AdminClientCA            string        `name:"admin-client-ca" variable:"GATEHOUSE_ADMIN_CLIENT_CA" group:"http" placeholder:"FILE" help:"Certificates, PEM: clients of the admin address need one that is signed by one of them."`
	AdminInsecure            toggle        `name:"admin-insecure" variable:"GATEHOUSE_ADMIN_INSECURE" default:"false" group:"http" placeholder:"BOOL" help:"Serve the admin address in the clear beyond this machine: true or false (${default})."`
	MetricsToken             secretText    `name:"metrics-token" variable:"GATEHOUSE_METRICS_TOKEN" min:"16" group:"http" placeholder:"TOKEN" help:"Bearer token that readers of /metrics must send, 16 to 256 characters (default: none is needed). Other users of this machine can see flags: use the variable or the file."`
	MetricsTokenFile         secretFile    `name:"metrics-token-file" variable:"GATEHOUSE_METRICS_TOKEN_FILE" group:"http" placeholder:"FILE" help:"File with that token, in place of the value itself."`
	ReadTimeout              duration      `name:"read-timeout" variable:"GATEHOUSE_READ_TIMEOUT" default:"10s" min:"1ms" max:"1h" group:"http" placeholder:"TIME" help:"Longest time to read a request (${default})."`
	WriteTimeout             duration      `name:"write-timeout" variable:"GATEHOUSE_WRITE_TIMEOUT" default:"15s" min:"1ms" max:"1h" group:"http" placeholder:"TIME" help:"Longest time to write a response (${default})."`
	IdleTimeout              duration      `name:"idle-timeout" variable:"GATEHOUSE_IDLE_TIMEOUT" default:"60s" min:"1ms" max:"1h" group:"http" placeholder:"TIME" help:"How long an idle connection is kept open (${default})."`
	MaxConnections           int           `name:"max-connections" variable:"GATEHOUSE_MAX_CONNECTIONS" default:"65536" min:"1" max:"1000000" group:"http" placeholder:"N" help:"Public connections at once (${default})."`
	MaxConnectionsPerAddress int           `name:"max-connections-per-address" variable:"GATEHOUSE_MAX_CONNECTIONS_PER_ADDRESS" default:"0" min:"0" max:"1000000" group:"http" placeholder:"N" help:"Public connections of one IPv4 address or IPv6 /64 at once (a /56 has twice, a /48 four times as many), trusted proxies excepted; 0 = an eighth of all (${default})."`
	DrainDelay               duration      `name:"drain-delay" variable:"GATEHOUSE_DRAIN_DELAY" default:"0s" min:"0s" max:"5m" group:"http" placeholder:"TIME" help:"When stopping: how long requests are still accepted after readiness fails (${default})."`
	DrainTimeout             duration      `name:"drain-timeout" variable:"GATEHOUSE_DRAIN_TIMEOUT" default:"15s" min:"1ms" max:"10m" group:"http" placeholder:"TIME" help:"When stopping: how long requests under way may then take to end (${default})."`

	LogFormat choice `name:"log-format" variable:"GATEHOUSE_LOG_FORMAT" default:"${log_format}" oneof:"json text" group:"log" placeholder:"FORMAT" help:"json or text (default: json; text in a demo)."`
	LogLevel  choice `name:"log-level" variable:"GATEHOUSE_LOG_LEVEL" default:"info" oneof:"debug info warn error" group:"log" placeholder:"LEVEL" help:"debug, info, warn or error (${default})."`

	OTLPEndpoint    otlpURL     `name:"otlp-endpoint" variable:"GATEHOUSE_OTLP_ENDPOINT" group:"log" placeholder:"URL" help:"Collector that spans are sent to by OTLP over HTTP, such as http://127.0.0.1:4318 (default: none)."`
	OTLPHeaders     otlpHeaders `name:"otlp-headers" variable:"GATEHOUSE_OTLP_HEADERS" group:"log" placeholder:"NAME=VALUE" help:"Headers for the collector, with commas between. Other users of this machine can see flags: use the variable or the file."`
	OTLPHeadersFile secretFile  `name:"otlp-headers-file" variable:"GATEHOUSE_OTLP_HEADERS_FILE" group:"log" placeholder:"FILE" help:"File with these headers, in place of the value itself."`
	TraceRatio      float64     `name:"trace-ratio" variable:"GATEHOUSE_TRACE_RATIO" default:"1" min:"0" group:"log" placeholder:"SHARE" help:"Share of requests that a trace is made of, from 0 to 1, where no trusted proxy has decided (${default})."`

	ConfigFile configFile `name:"config" placeholder:"FILE" help:"Settings file, YAML (.yaml, .yml) or TOML (.toml); its keys are the names of these flags. Flags and variables win over it."`
}

var groups = []kong.Group{
	{Key: "serve", Title: "Serve:"},
	{Key: "apps", Title: "Apps and people:"},
	{Key: "lookups", Title: "Lookups:"},
	{Key: "keys", Title: "Keys and database:"},
	{Key: "clusters", Title: "Cluster:"},
	{Key: "identity", Title: "Identity:"},
	{Key: "face", Title: "What people see:"},
	{Key: "upstream", Title: "Lookups and the upstream:"},
	{Key: "http", Title: "HTTP:"},
	{Key: "cluster", Title: "Cluster:"},
	{Key: "log", Title: "Logs:"},
	{Key: "options", Title: "What few clients need:"},
	{Key: "remote", Title: "The server and its operator:"},
	{Key: "input", Title: "Input:"},
	{Key: "output", Title: "Output:"},
	{Key: "source", Title: "Where answers come from:"},
	{Key: "run", Title: "Long runs:"},
}

// serviceSettings are all settings of a process that serves.
type serviceSettings struct {
	databaseSettings
	keySettings
	upstreamSettings
	settings
	clusterSettings
	Declare string `name:"declare" variable:"GATEHOUSE_DECLARE" group:"identity" placeholder:"DIR" help:"Folder or file with the clients, resources and providers that the server declares at its start and at SIGHUP (default: none)."`
}

// The public addresses of the upstream.
const (
	freeBase = "http://ip-api.com"
	proBase  = "https://pro.ip-api.com"
)

// Validate returns an error about the first settings that do not go together.
func (s *serviceSettings) Validate() error {
	switch {
	case s.IPProvider == "ip-api-pro" && s.IPAPIKey == "":
		return refuse("ip-provider", s.IPProvider,
			"needs the key of the commercial tier in IP_API_KEY (--ip-api-key)")
	case s.IPProvider == "ip-api-pro" && s.IPAPIBase != "" && !s.IPAPIBase.isSafe():
		return refuse("ip-api-base", s.IPAPIBase,
			"must be https for ip-api-pro, or the key would travel in the clear")
	case s.IPProvider == "mmdb" && len(s.IPMMDB) == 0:
		return refuse("ip-provider", s.IPProvider,
			"needs the names of database files in IP_MMDB (--ip-mmdb)")
	}
	if s.Declare != "" && !slices.Contains(s.Roles, "identity") {
		return refuse("declare", s.Declare, "needs the identity service: add identity to roles")
	}
	if err := s.Home.check(s); err != nil {
		return err
	}
	if err := s.check(s.DatabaseURL, s.Roles); err != nil {
		return err
	}
	return s.settings.Validate()
}

// Validate returns an error about the first settings that do not go together.
func (s *settings) Validate() error {
	if _, err := s.languages(); err != nil {
		return refuse("language", s.Language, "%v", err)
	}
	switch {
	case s.RefreshFamilyTTL.Duration < s.RefreshTokenTTL.Duration:
		return refuse("refresh-family-ttl", s.RefreshFamilyTTL,
			"must be at least refresh-token-ttl, which is %v", s.RefreshTokenTTL.Duration)
	case bool(s.GeoKeysRequired) && s.GeoKeys == "":
		return refuse("geo-keys-required", s.GeoKeysRequired, "needs geo-keys with it")
	case len(s.MMDBShare) > 0 && (s.GeoKeys == "" || len(s.IPMMDB) == 0):
		return refuse("mmdb-share", s.MMDBShare, "needs geo-keys and ip-mmdb with it")
	case len(s.MMDBShare) > 0 && s.TLSCert == "" && len(s.TrustedProxies) == 0 && s.Listen.isRemote():
		return refuse("mmdb-share", s.MMDBShare,
			"needs tls-cert, or trusted-proxies that speak TLS: keys must not travel in the clear")
	case s.MMDBUpdate.config != nil && len(s.IPMMDB) == 0:
		return refuse("mmdb-update", s.MMDBUpdate, "needs the names of the files in IP_MMDB (--ip-mmdb)")
	case s.RefreshGrace.Duration >= s.RefreshTokenTTL.Duration:
		return refuse("refresh-grace", s.RefreshGrace,
			"must be less than refresh-token-ttl, which is %v", s.RefreshTokenTTL.Duration)
	case s.AccessTokenTTL.Duration%time.Second != 0:
		return refuse("access-token-ttl", s.AccessTokenTTL, "must be whole seconds")
	case s.needsIssuer():
		return refuse("base-url", s.BaseURL,
			"must be given, since the public address is not on loopback")
	case s.MessengerSecret == "" && slices.ContainsFunc(s.Messenger.targets(),
		messenger.Target.IsWebhook):
		return refuse("messenger", s.Messenger,
			"needs the secret of webhooks in GATEHOUSE_MESSENGER_SECRET (--messenger-secret)")
	case s.AuditWebhook != "" && s.AuditWebhookSecret == "":
		return refuse("audit-webhook", s.AuditWebhook,
			"needs a secret in GATEHOUSE_AUDIT_WEBHOOK_SECRET (--audit-webhook-secret)")
	case s.OTLPHeaders != "" && s.OTLPEndpoint == "":
		return refuse("otlp-headers", "", "needs otlp-endpoint with it")
	case s.OTLPHeaders != "" && !s.OTLPEndpoint.isSafe():
		return refuse("otlp-endpoint", s.OTLPEndpoint,
			"must be https with otlp-headers, which would travel in the clear")
	case s.Registration == "token" && s.RegistrationToken == "":
		return refuse("registration", s.Registration,
			"needs a token in GATEHOUSE_REGISTRATION_TOKEN (--registration-token)")
	case len(s.RegistrationToken) > maxBearerToken:
		return refuse("registration-token", "", "must have at most %d characters", maxBearerToken)
	case s.MessengerFrom == "" && slices.ContainsFunc(s.Messenger.targets(),
		messenger.Target.IsMail):
		return refuse("messenger", s.Messenger,
			"needs the sender of e-mails in GATEHOUSE_MESSENGER_FROM (--messenger-from)")
	}
	if err := checkPair("tls", s.TLSCert, s.TLSKey); err != nil {
		return err
	}
	if err := s.checkCompat(); err != nil {
		return err
	}
	return s.checkAdmin()
}

// checkCompat returns an error unless there are lookups, an address and services, or none of the
// latter.
func (s *settings) checkCompat() error {
	switch {
	case s.CompatListen == "" && len(s.Compat) == 0:
		return nil
	case s.CompatListen == "":
		return refuse("compat", s.Compat, "needs an address in compat-listen")
	case len(s.Compat) == 0:
		return refuse("compat-listen", s.CompatListen, "needs services in compat: ip-api, ipinfo or both")
	case !slices.Contains(s.Roles, "geo"):
		return refuse("compat-listen", s.CompatListen, "needs the role geo")
	}
	return nil
}

// checkAdmin returns an error about the settings of the admin address.
func (s *settings) checkAdmin() error {
	if err := checkPair("admin-tls", s.AdminTLSCert, s.AdminTLSKey); err != nil {
		return err
	}
	switch {
	case s.AdminTLSCert == "" && !bool(s.AdminInsecure) && s.AdminListen.isRemote():
		return refuse("admin-listen", s.AdminListen,
			"is not on loopback, where operators' tokens would travel in the clear: set "+
				"admin-tls-cert and admin-tls-key, or admin-insecure")
	case s.AdminClientCA != "" && s.AdminTLSCert == "":
		return refuse("admin-client-ca", s.AdminClientCA, "needs admin-tls-cert with it")
	case s.AdminClientCA != "":
		if _, err := readCertificates(s.AdminClientCA); err != nil {
			return refuse("admin-client-ca", s.AdminClientCA, "%v", err)
		}
	case len(s.MetricsToken) > maxBearerToken:
		return refuse("metrics-token", "", "must have at most %d characters", maxBearerToken)
	}
	return nil
}

// maxBearerToken is the longest bearer token that the server reads.
const maxBearerToken = 256

// checkPair returns an error unless a certificate and a key go together. name is what their
// settings begin with.
func checkPair(name, cert, key string) error {
	switch {
	case cert == "" && key == "":
		return nil
	case key == "":
		return refuse(name+"-cert", cert, "needs %s-key with it", name)
	case cert == "":
		return refuse(name+"-key", key, "needs %s-cert with it", name)
	}
	if _, err := tls.LoadX509KeyPair(cert, key); err != nil {
		return refuse(name+"-cert", cert, "must be a certificate that goes with %s-key: %v", name,
			err)
	}
	return nil
}

// needsIssuer reports whether clients cannot know where the service is.
func (s *settings) needsIssuer() bool {
	return slices.Contains(s.Roles, "identity") && s.BaseURL == "" && s.Listen.isRemote()
}

// complete fills in the defaults that depend on the provider, the environment and the database.
func (s *serviceSettings) complete(p *program) {
	agents := map[choice][2]choice{"off": {"off", "off"}, "on": {"on", "open"}}[s.Agents]
	s.ClientIDMetadata = cmp.Or(s.ClientIDMetadata, agents[0])
	s.Registration = cmp.Or(s.Registration, agents[1])
	s.KeyFile = s.shown(p, s.DatabaseURL)
	bases := map[choice]upstreamURL{"ip-api": freeBase, "ip-api-pro": proBase}
	if s.IPAPIBase == "" {
		s.IPAPIBase = bases[s.IPProvider]
	}
	if s.PTR == "" {
		s.PTR = "off"
		if _, public := bases[s.IPProvider]; public {
			s.PTR = "system"
		}
	}
}

// stack returns the service that the settings describe.
func (s *serviceSettings) stack(p *program) stack.Config {
	keyFiles := s.files(p)
	s.complete(p)
	languages, _ := s.languages()                          // Validate has tried it
	headers, _ := otlp.ParseHeaders(string(s.OTLPHeaders)) // so was this when it was read
	c := stack.Config{
		Version: buildVersion(),
		Listen:  string(s.Listen), AdminListen: string(s.AdminListen), Issuer: string(s.BaseURL),
		CompatListen: string(s.CompatListen), Compat: s.Compat,
		TrustedProxies: s.TrustedProxies, ForwardedHeader: string(s.ForwardedHeader),
		ReadTimeout: s.ReadTimeout.Duration, WriteTimeout: s.WriteTimeout.Duration,
		IdleTimeout: s.IdleTimeout.Duration, MaxConnections: s.MaxConnections,
		MaxConnectionsPerAddress: s.MaxConnectionsPerAddress,
		CertFile:                 s.TLSCert, KeyFile: s.TLSKey,
		AdminCertFile: s.AdminTLSCert, AdminKeyFile: s.AdminTLSKey,
		AdminClientCA: s.AdminClientCA, MetricsToken: string(s.MetricsToken),
		DrainDelay: s.DrainDelay.Duration, DrainTimeout: s.DrainTimeout.Duration,
		LogLevel: logLevels[s.LogLevel], LogText: s.LogFormat == "text",
		Traces:  otlp.Config{Endpoint: string(s.OTLPEndpoint), Headers: headers, Ratio: s.TraceRatio},
		Cluster: s.cluster(), Brand: s.brand(), Languages: languages, Home: string(s.Home),
	}
	if slices.Contains(s.Roles, "geo") {
		c.Lookups = s.lookups()
	}
	if slices.Contains(s.Roles, "identity") {
		c.Identity = s.identity()
		c.Identity.Database.KeyFiles, c.Identity.Database.Credentials = keyFiles, p.credentials()
	}
	return c
}

var logLevels = map[choice]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn,
	"error": slog.LevelError,
}

var registrationModes = map[choice]oauth.RegistrationMode{
	"off": oauth.RegistrationOff, "token": oauth.RegistrationToken, "open": oauth.RegistrationOpen,
}

func (s *serviceSettings) lookups() *stack.Lookups {
	l := &stack.Lookups{
		Files: mmdb.Config{Files: s.IPMMDB, Options: mmdb.Options{
			Mapping: s.MMDBMap.mapping, Language: string(s.MMDBLanguage),
		}},
		Update: s.MMDBUpdate.config, Share: s.MMDBShare,
		CacheEntries: s.CacheEntries, CacheTTL: s.CacheTTL.Duration, CacheFile: s.CacheFile,
		Timeout:     s.LookupTimeout.Duration,
		Concurrency: s.UpstreamConcurrency, UpstreamShare: s.UpstreamShare,
		CallerLimit: s.GeoLimit, Egress: string(s.EgressLabel),
		KeyFile: s.GeoKeys, KeysRequired: bool(s.GeoKeysRequired),
		Breaker: geo.BreakerConfig{
			Failures: s.BreakerFailures, Cooldown: s.BreakerCooldown.Duration,
			Hold: s.ForbiddenHold.Duration,
		},
	}
	if s.IPProvider != "mmdb" {
		l.Upstream = ipapi.Config{
			Base: string(s.IPAPIBase), Tier: ipapi.Tier(s.IPProvider), Key: string(s.IPAPIKey),
		}
	}
	if s.PTR != "off" {
		l.Reverse = ptr.Config{Server: string(s.PTR)}
	}
	return l
}

func (s *serviceSettings) identity() *stack.Identity {
	return &stack.Identity{
		Database: sqlstore.Config{
			URL: string(s.DatabaseURL), Migrate: s.Migrate == "true", Exclusive: true,
			AuditAddresses: audit.Addresses(s.AuditAddresses), AuditKeep: s.AuditKeep.Duration,
		},
		Messenger: messenger.Config{
			Targets: s.Messenger.targets(), Secret: string(s.MessengerSecret),
			From: string(s.MessengerFrom),
		},
		AuditWebhook: trail.Config{
			URL: string(s.AuditWebhook), Secret: string(s.AuditWebhookSecret),
			Profile: s.AuditWebhookProfile == "on",
		},
		Lifetimes: oauth.Lifetimes{
			Code: s.CodeTTL.Duration, AccessToken: s.AccessTokenTTL.Duration,
			RefreshToken: s.RefreshTokenTTL.Duration, RefreshFamily: s.RefreshFamilyTTL.Duration,
			RefreshGrace: s.RefreshGrace.Duration,
		},
		SessionTTL: s.SessionTTL.Duration, SessionMax: s.SessionMax.Duration,
		SigningKeyAge:        s.SigningKeyAge.Duration,
		DefaultScopes:        s.DefaultScope.Scopes,
		SkipChooserParameter: string(s.SkipChooserParameter),
		Console:              s.Console == "on",
		ConsoleNetworks:      s.ConsoleNetworks,
		ClientMetadata:       s.ClientIDMetadata == "on",
		Registration:         registrationModes[s.Registration],
		RegistrationToken:    string(s.RegistrationToken),
		RegistrationPerHour:  s.RegistrationPerHour,
		RedirectSchemes:      s.RedirectSchemes,
		Stale:                s.Stale.Duration, MaxActiveTokens: s.MaxActiveTokens,
		HashSlots:             s.HashSlots,
		RequireSecondFactor:   s.SecondFactor == "required",
		PhoneReplacesPassword: s.PhoneReplacesPassword == "allow",
		PasskeyDomain:         string(s.PasskeyDomain),
		Accounts:              account.Accounts(s.Accounts),
		SMSCountries:          s.SMSCountries,
		SMSPerHour:            s.SMSPerHour, SMSPerCountry: s.SMSPerCountry,
	}
}

// setting describes one setting.
type setting struct {
	name     string // of the flag and of the key in a file
	variable string // of the environment
}

// allSettings are the settings of a process that serves, in the order of their flags.
var allSettings = describe(reflect.TypeFor[serviceSettings]())

// operatorSettings are those of the commands that call the admin API.
var operatorSettings = describe(reflect.TypeFor[remoteSettings]())

// describe reads the tags of a struct of settings.
func describe(t reflect.Type) []setting {
	var found []setting
	for field := range t.Fields() {
		if field.Anonymous {
			found = append(found, describe(field.Type)...)
		} else if variable, ok := field.Tag.Lookup("variable"); ok {
			found = append(found, setting{field.Tag.Get("name"), variable})
		}
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
