package stack

import (
	"crypto/x509"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/brand"
	"gatehouse/actors/geo"
	"gatehouse/actors/lookup"
	"gatehouse/actors/oauth"
	"gatehouse/actors/texts"
	"gatehouse/actors/token"
	"gatehouse/providers/ipapi"
	"gatehouse/providers/messenger"
	"gatehouse/providers/messenger/trail"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/mmdb/update"
	"gatehouse/providers/otlp"
	"gatehouse/providers/ptr"
	"gatehouse/providers/sim"
	"gatehouse/providers/sqlstore"
)

// Config says what a service consists of. Fields are required unless they say otherwise. Begin with
// Defaults: only Log and the addresses are missing there.
type Config struct {
	Version string // of the program; optional
	// Listen is the public address: HOST:PORT or unix:/path; port 0 takes a free one. "" = no
	// listeners: a test hands connections to Server.ServeConn.
	Listen string
	// AdminListen is the address of metrics, health, pprof and the admin API; required with Listen.
	AdminListen string
	// CompatListen is the address of the paths of other services, in the same forms; optional: "" =
	// none. Compat names the services: ip-api, ipinfo.
	CompatListen string
	Compat       []string
	Public       net.Listener // optional: serves in place of Listen; Close closes it
	// Localhost makes a public address on 127.0.0.1 without TLS serve [::1] as well, if the machine
	// has it. The URL and the default of Issuer then name localhost: browsers have no passkeys for
	// addresses.
	Localhost bool

	Lookups  *Lookups  // nil = the service offers no lookups; at least one of the two is required
	Identity *Identity // nil = the service offers no accounts and tokens
	// Cluster makes the service a node of a cluster, with Identity on PostgreSQL; nil = it is alone.
	Cluster *Cluster

	// Issuer is the base URL that clients know, without a slash at the end; optional: "" = that of
	// the public listener.
	Issuer string
	Brand  brand.Brand // what people see; Name and Host are set by Start if missing
	// Home is what the page at / shows: identity, geo, both or off. Optional: "" = the services that
	// there are.
	Home string
	// Languages are those of pages and messages; optional: nil = texts.Default.
	Languages *texts.Set
	// TrustedProxies may tell the caller's address in ForwardedHeader; empty = nobody may.
	TrustedProxies  []netip.Prefix
	ForwardedHeader string        // x-forwarded-for or forwarded; optional: "" = x-forwarded-for
	ReadTimeout     time.Duration // from the first byte of a request to its last, above 0
	WriteTimeout    time.Duration // for sending a response, above 0
	IdleTimeout     time.Duration // between two requests of a connection, above 0
	MaxConnections  int           // open public connections, at least 1
	// MaxConnectionsPerAddress is the part of one address; optional: 0 = an eighth.
	MaxConnectionsPerAddress int
	// CertFile and KeyFile are PEM files that make the public listener speak TLS; optional, both or
	// none.
	CertFile, KeyFile string
	// AdminCertFile and AdminKeyFile do so for the admin listener; optional. With AdminClientCA,
	// its clients need a certificate signed by one in that PEM file; optional.
	AdminCertFile, AdminKeyFile, AdminClientCA string
	// MetricsToken is the bearer token of /metrics. Optional: "" = anyone may read them.
	MetricsToken string

	DrainDelay   time.Duration // how long Serve accepts requests after readiness fails; 0 = it does not
	DrainTimeout time.Duration // how long requests, lookups and token requests may then take to end

	Log      io.Writer            // gets the log, one record a line
	LogLevel slog.Level           // 0 = info
	LogText  bool                 // optional: records as text; false = as JSON
	Metrics  *prometheus.Registry // optional: nil = a new one
	// Traces sends spans to a collector. Endpoint "" = nobody gets any. Version, Name, Logger and
	// Metrics are set by Start.
	Traces otlp.Config
}

// Lookups says who answers lookups, and within which limits.
type Lookups struct {
	// Upstream is asked. Tier "" = nobody is, and Files answer alone. Tier sim without a Base = a
	// simulator runs in this process. Connections 0 = Concurrency.
	Upstream ipapi.Config
	// Files are offline files: a fallback where Upstream does not answer in time. No Files.Files =
	// no fallback. Logger, Rendered and TTL are set by Start.
	Files mmdb.Config
	// Update says how files are kept up to date; optional: nil = they are not.
	Update *update.Config
	// Share are the names of the API keys that Files may be downloaded with; optional.
	Share []string
	// Reverse finds reverse names where a batch lacks them. Server "" = none are looked up.
	Reverse ptr.Config
	// Simulator is how the simulator behaves, and SimulatorListen its HOST:PORT; optional: "" = a
	// free port of 127.0.0.1.
	Simulator       sim.Config
	SimulatorListen string

	CacheEntries  int           // results kept in memory, at least 1
	CacheTTL      time.Duration // of a result; optional: 0 = 10 minutes; at most geo.MaxTTL
	CacheFile     string        // keeps the results over a restart; optional: "" = they are lost
	Timeout       time.Duration // the longest wait of a caller, more than 1 s
	Concurrency   int           // requests to the upstream at once, at least 1
	UpstreamShare float64       // the process's part of the upstream's budget, above 0 and at most 1
	CallerLimit   int           // cache misses a minute and caller; 0 = no limit
	KeyFile       string        // of API keys; "" = there are none
	KeysRequired  bool          // callers need a key of KeyFile
	// Egress labels the address that the upstream is asked from: nodes with the same one share its
	// budget; optional: "" = default.
	Egress  string
	Breaker geo.BreakerConfig

	// Provider and Reverser are for tests; optional: they take the place of Upstream and Reverse.
	Provider geo.Provider
	Reverser lookup.Reverser
	// Peers and Ledger are for tests without Cluster; optional: they take the place of its nodes and
	// of their database.
	Peers  lookup.Peers
	Ledger lookup.Ledger
}

// Cluster says where the other nodes of a cluster reach this one.
type Cluster struct {
	Listen    string // HOST:PORT; port 0 takes a free one
	Advertise string // HOST:PORT where others reach it; optional: "" = the address it listens on
	Name      string // for people; optional: "" = the name of the machine and the port
}

// Identity says where accounts and tokens are kept, and how long they last.
type Identity struct {
	Database sqlstore.Config // Cluster, Logger and Metrics are set by Start
	// Messenger sends codes to people. No Targets = nobody can be reached: no registration, no
	// reset. Brand and Logger are set by Start.
	Messenger messenger.Config

	// AuditWebhook gets the events of the audit trail. URL "" = nobody does. Service, Store, Logger
	// and Metrics are set by Start.
	AuditWebhook trail.Config

	Lifetimes  oauth.Lifetimes
	SessionTTL time.Duration // how long a browser stays signed in from its last use
	SessionMax time.Duration // how long it does so from the sign-in
	// SigningKeyAge is how long a key signs id_tokens; optional: 0 = token.DefaultSigningKeyAge.
	SigningKeyAge time.Duration
	// Accounts says who may make accounts; optional: "" = account.OpenAccounts.
	Accounts account.Accounts
	// RequireSecondFactor has everybody set up a second factor.
	RequireSecondFactor bool
	// PhoneReplacesPassword lets people choose that a code to their phone replaces the password.
	PhoneReplacesPassword bool
	// PasskeyDomain is the relying party ID of passkeys; optional: "" = the host of the issuer, if
	// browsers have passkeys there.
	PasskeyDomain string
	// SMSCountries are the countries (ISO 3166 codes) to which text messages are sent; optional:
	// nil = all.
	SMSCountries []string
	// SMSPerHour limits the text messages with codes an hour that strangers may cause, and
	// SMSPerCountry those to one country; 0 = no limit.
	SMSPerHour, SMSPerCountry int
	// DefaultScopes are granted to an authorization request without scope; 0 = it is refused.
	DefaultScopes oauth.Scopes
	// SkipChooserParameter names the parameter that skips the account chooser; optional: "" =
	// skip_account_chooser.
	SkipChooserParameter string
	// Console serves the console to operators whose address is in ConsoleNetworks; optional: empty = to
	// all of them.
	Console         bool
	ConsoleNetworks []netip.Prefix
	// ClientMetadata accepts a client_id that is the URL of a client-id metadata document; optional.
	ClientMetadata bool
	// RedirectSchemes are private-use schemes without a dot for clients that register or describe
	// themselves; optional.
	RedirectSchemes []string
	// Drafts are those of oauth.Drafts that are on; optional.
	Drafts []string
	// Registration says who may register clients; optional. RegistrationToken is the initial access
	// token, required with oauth.RegistrationToken.
	Registration      oauth.RegistrationMode
	RegistrationToken string
	// RegistrationPerHour limits the registrations of an address that await a consent; optional: 0 =
	// token.Config's default.
	RegistrationPerHour int
	// Fetcher is for tests; optional: it takes the place of the one that reaches public addresses.
	Fetcher token.Fetcher
	// Stale is how long requests with access tokens go on when the changes of other processes
	// cannot be read; 0 = they are refused after 2 s.
	Stale time.Duration
	// MaxActiveTokens limits the access tokens in use; optional: 0 = token.Config's default. One
	// client may use an eighth, one user a 64th.
	MaxActiveTokens int

	// HashSlots is how many passwords and codes are hashed at once; 0 = one a core.
	HashSlots int

	// Sender and Channels are for tests; optional: they take the place of Messenger.
	Sender   account.CodeSender
	Channels account.Channels
	// ProviderRoots is for tests; optional: they sign the certificates of other providers.
	ProviderRoots *x509.CertPool
	// Hasher is for tests; optional: nil = one at account.DefaultCost.
	Hasher *account.Hasher
	// Stores is for tests; optional: it returns what the service uses in place of the store.
	Stores func(*sqlstore.Store) (oauth.Store, account.Store)
}

// Defaults returns what gatehouse serve runs with when nothing is set. Log, Listen and AdminListen
// are left out.
func Defaults() Config {
	const day = 24 * time.Hour
	return Config{
		Traces: otlp.Config{Ratio: 1},
		Lookups: &Lookups{
			Upstream:     ipapi.Config{Tier: ipapi.Free, Base: "http://ip-api.com"},
			Reverse:      ptr.Config{Server: ptr.System},
			Files:        mmdb.Config{Options: mmdb.Options{Language: "en"}},
			CacheEntries: 100_000, CacheTTL: geo.ResultTTL, Timeout: 5 * time.Second, Concurrency: 8,
			UpstreamShare: 1,
			Egress:        "default",
			Breaker: geo.BreakerConfig{
				Failures: 5, Cooldown: 10 * time.Second, Hold: 10 * time.Minute,
			},
		},
		Identity: &Identity{
			Database: sqlstore.Config{
				URL: "sqlite:gatehouse.db", Migrate: true, Exclusive: true,
				AuditAddresses: audit.AddressPrefixes, AuditKeep: 400 * day,
			},
			Lifetimes: oauth.Lifetimes{
				Code: time.Minute, AccessToken: time.Hour,
				RefreshToken: 30 * day, RefreshFamily: 180 * day, RefreshGrace: 10 * time.Second,
			},
			SessionTTL: 14 * day, SessionMax: 90 * day,
			SigningKeyAge: 90 * day, DefaultScopes: oauth.ViewUser,
			MaxActiveTokens:      token.DefaultMaxActive,
			SkipChooserParameter: "skip_account_chooser",
			Accounts:             account.OpenAccounts, PhoneReplacesPassword: true, SMSPerHour: 1000, SMSPerCountry: 100,
			RegistrationPerHour: token.DefaultRegistrationPerHour,
		},
		ForwardedHeader: "x-forwarded-for",
		ReadTimeout:     10 * time.Second, WriteTimeout: 15 * time.Second, IdleTimeout: time.Minute,
		MaxConnections: 65_536, DrainTimeout: 15 * time.Second,
	}
}
