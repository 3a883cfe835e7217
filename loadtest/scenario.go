package loadtest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Scenario is a kind of load.
type Scenario struct {
	Name     string
	About    string        // the question that it answers
	Rate     float64       // default hits a second
	Duration time.Duration // default
	prepare  func(context.Context, *Setup) (*workload, error)
	steps    []string // of its own hits
	uses     []string // parts of Setup that it uses: keys, queries, people, tokens, mix
	own      *Own     // the file that it is from; nil = built in
}

// workload is a scenario that is ready to run.
type workload struct {
	hit func(*Hit) error
	// during runs concurrently with the hits, until none begins any more, and notes periods;
	// optional.
	during func(ctx context.Context, planned time.Duration, note func(Period)) error
	checks func(*Result) []Check // nil = none
	// after cleans up, also after an interrupted run or a failed one; optional. It ignores the end of
	// its context.
	after func(context.Context) error
}

// Setup has the target of a run, and its keys, users and tokens.
type Setup struct {
	Target   Target
	Keys     int      // lookups: number of different queries; 0 = the scenario's default
	Queries  []string // lookups: the queries; nil = generated addresses
	Tokens   []string // profile: access tokens; nil = created by setup
	People   int      // number of clients, users or tokens to create, or of idle connections; 0 = the scenario's default
	Mix      map[string]float64
	Progress func(done, of int, what string) // called during setup; optional

	part        Part // the share of what each hit uses up
	operator    *Operator
	provisioner *provisioner
	// What the scenario uses: of a mix, the most keys of a part, and the people of all parts.
	keysUsed, peopleUsed int
}

// Scenarios lists all scenarios by name.
var Scenarios = []Scenario{
	{"authorize",
		"How many people a second can sign in, consent and come back with tokens? The whole flow with PKCE: login page, password, consent, code, token.",
		5, 10 * time.Second, prepareAuthorize, []string{"authorize", "login-page", "login",
			"consent-page", "consent", "token"}, []string{"people"}, nil},
	{"bulk", "How fast are requests for 50 cached lookups?", 500, 10 * time.Second, prepareBulk,
		[]string{"bulk"}, []string{"keys", "queries"}, nil},
	{"bulk-cold", "How fast are requests for 50 new addresses, which all go upstream?", 20,
		10 * time.Second, prepareBulkCold, []string{"cold-bulk"}, nil, nil},
	{"churn",
		"What do many rarely used tokens cost? Each hit refreshes, and reads the profile twice with the new token.",
		100, 10 * time.Second, prepareChurn, []string{"refresh", "profile"}, []string{"people"}, nil},
	{"device",
		"How fast can people connect devices? A device code, the pages on which a person who has signed in allows it, and the tokens.",
		20, 10 * time.Second, prepareDevice, []string{"device-code", "device-page", "enter-code",
			"allow", "token"}, []string{"people"}, nil},
	{"introspect", "How fast does a resource server learn about a token?", 1000, 10 * time.Second,
		prepareIntrospect, []string{"introspect"}, []string{"people"}, nil},
	{"lookup-cold", "How fast are lookups of new queries, which all go upstream?", 200,
		10 * time.Second, prepareCold, []string{"cold-lookup"}, []string{"queries"}, nil},
	{"lookup-hot",
		"How fast is a cached lookup? Setup looks up all keys once, and hits use them in turn.",
		2000, 10 * time.Second, prepareHot, []string{"lookup"}, []string{"keys", "queries"}, nil},
	{"lookup-zipf",
		"How fast are lookups of a realistic mix of few frequent and many rare queries?", 1000,
		10 * time.Second, prepareZipf, []string{"zipf-lookup"}, []string{"keys", "queries"}, nil},
	{"mixed", "Does everything at once hold together? Weights by --mix.", 500,
		10 * time.Second, nil, nil, []string{"mix"}, nil},
	{"my-ip", "How fast does a browser learn where it is?", 1000, 10 * time.Second, prepareMyIP,
		[]string{"my-ip"}, []string{"keys", "queries"}, nil},
	{"openid",
		"How many people who have signed in before can sign in to a client a second? Setup signs them in; a hit gets a code and an id_token.",
		50, 10 * time.Second, prepareOpenID, []string{"authorize", "token"}, []string{"people"}, nil},
	{"outage",
		"What do callers see when the upstream fails and recovers? It is down for the middle third of the run.",
		500, 45 * time.Second, prepareOutage, []string{"lookup",
			"cold-lookup"}, []string{"keys", "queries"}, nil},
	{"overload",
		"How fast are cached lookups beside 2,000 idle connections, 200 slow clients and 10,000 garbage queries a second? They come in the second half of the run.",
		200, 24 * time.Second, prepareOverload, []string{"lookup",
			"overloaded-lookup"}, []string{"people"}, nil},
	{"profile",
		"How fast are profiles, and are the rate limits exact? Exactly 100 requests of a token may pass in a window.",
		500, 10 * time.Second, prepareProfile, []string{"profile",
			"profile-greedy"}, []string{"people", "tokens"}, nil},
	{"refresh", "How fast do clients get new tokens for refresh tokens?", 200, 10 * time.Second,
		prepareRefresh, []string{"refresh"}, []string{"people"}, nil},
	{"soak",
		"Does it stay healthy for a long time? Everything at once, with checks of memory and goroutines.",
		200, 15 * time.Minute, nil, nil, []string{"mix"}, nil},
	{"stream", "How fast are streams of 1,024 cached lookups?", 20, 10 * time.Second,
		prepareStream, []string{"stream"}, []string{"keys", "queries"}, nil},
	{"token", "How many tokens a second can client_credentials issue?", 500, 10 * time.Second,
		prepareToken, []string{"token"}, []string{"people"}, nil},
}

func init() { // prepareMixed and prepareSoak use Scenarios
	for i := range Scenarios {
		switch Scenarios[i].Name {
		case "mixed":
			Scenarios[i].prepare = prepareMixed
		case "soak":
			Scenarios[i].prepare = prepareSoak
		}
	}
}

// ScenarioNamed returns the scenario of that name.
func ScenarioNamed(name string) (Scenario, error) {
	i := slices.IndexFunc(Scenarios, func(s Scenario) bool { return s.Name == name })
	if i < 0 {
		var names []string
		for _, s := range Scenarios {
			names = append(names, s.Name)
		}
		return Scenario{}, fmt.Errorf("there is no scenario %q: there are %s", name,
			strings.Join(names, ", "))
	}
	return Scenarios[i], nil
}

// Environment returns the settings (NAME=VALUE) that StartLocal gets for the scenario.
func (sc Scenario) Environment() []string {
	if sc.Name == "overload" {
		return []string{"IP_PROVIDER=ip-api", "GATEHOUSE_PTR=off"} // its budget refuses most garbage
	}
	return nil
}

// Run prepares the scenario and runs it against the target of s.
func (sc Scenario) Run(ctx context.Context, s Setup, config Config) (*Result, error) {
	if s.Progress == nil {
		s.Progress = func(int, int, string) {}
	}
	if err := sc.Check(s, config); err != nil {
		return nil, err
	}
	s.operator = NewOperator(s.Target)
	defer s.operator.http.CloseIdleConnections()
	s.provisioner = &provisioner{o: s.operator, run: strconv.FormatInt(time.Now().UnixNano(), 36),
		notify: s.Progress}
	var agents *fleet // nil = the hits are made here
	var p *workload
	var err error
	if len(config.Agents.Addresses) > 0 {
		agents, p, err = sc.ship(ctx, &s, config.withDefaults())
	} else {
		p, err = sc.prepare(ctx, &s)
	}
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", sc.Name, err)
	}
	r, err := newRun(s.Target.Base, config, p.hit)
	if err != nil {
		return nil, err
	}
	r.steps, r.header = sc.Steps(s.Mix), s.Target.Header
	background := startBackground(ctx, s.Target, p, r.planned())
	var result Result
	if agents != nil {
		result = agents.play(ctx, r, &s)
		agents.close()
	} else {
		result = r.do(ctx)
	}
	result.Resources, err = background.stop()
	r.client.CloseIdleConnections() // after the last reading of the target's metrics
	if p.checks != nil {
		result.Checks = p.checks(&result)
	}
	// The figures are worth keeping whatever fails besides the hits.
	if err != nil {
		result.Checks = append(result.Checks, Check{What: "the work beside the hits succeeds",
			Seen: err.Error()})
	}
	if p.after != nil {
		if err := p.after(ctx); err != nil {
			result.Checks = append(result.Checks, Check{What: "teardown succeeds", Seen: err.Error()})
		}
	}
	result.Periods, result.Settings = background.periods, settings(&s, r.config)
	return &result, nil
}

// people returns how many clients, users, tokens or idle connections to create. own is the default
// number.
func (s *Setup) people(own int) int {
	n := number(s.People, own)
	s.peopleUsed += n
	return n
}

// number returns given, or own if that is 0.
func number(given, own int) int {
	if given > 0 {
		return given
	}
	return own
}
