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
	Rate     float64       // hits a second, unless told otherwise
	Duration time.Duration // likewise
	prepare  func(context.Context, *Setup) (*play, error)
	steps    []string // of its own hits
	uses     []string // of its Setup: keys, queries, people, tokens, mix
}

// play is a scenario that is ready to begin.
type play struct {
	hit func(*Hit) error
	// during goes on beside the hits, for as long as they begin, and notes periods; nil = nothing does.
	during func(ctx context.Context, planned time.Duration, note func(Period)) error
	checks func(*Result) []Check // nil = none
}

// Setup is what a scenario can choose its keys, users and tokens from.
type Setup struct {
	Target   Target
	Keys     int      // look-ups: how many different queries; 0 = the scenario's own number
	Queries  []string // look-ups: the queries themselves; nil = made-up addresses
	Tokens   []string // profile: access tokens; nil = made by set-up
	People   int      // how many clients, users or tokens are made; 0 = the scenario's own number
	Mix      map[string]float64
	Progress func(done, of int, what string) // nil = nobody looks

	operator *operator
	crowd    *crowd
}

// Scenarios are all there are, by name.
var Scenarios = []Scenario{
	{"authorize", "How many people a second can sign in, consent and come back with tokens? The whole flow with PKCE: login page, password, consent, code, token.", 5, 10 * time.Second, prepareAuthorize,
		[]string{"authorize", "login-page", "login", "consent-page", "consent", "token"}, []string{"people"}},
	{"bulk", "How fast are requests for 50 cached look-ups?", 500, 10 * time.Second, prepareBulk,
		[]string{"bulk"}, []string{"keys", "queries"}},
	{"churn", "What do many tokens cost that are used little? Each hit refreshes, and reads the profile twice with the new token.", 100, 10 * time.Second, prepareChurn,
		[]string{"refresh", "profile"}, []string{"people"}},
	{"introspect", "How fast does a resource server learn about a token?", 1000, 10 * time.Second, prepareIntrospect,
		[]string{"introspect"}, []string{"people"}},
	{"lookup-cold", "How fast are look-ups that nobody made before, so that each goes upstream?", 200, 10 * time.Second, prepareCold,
		[]string{"cold-lookup"}, []string{"queries"}},
	{"lookup-hot", "How fast is a look-up whose answer is in the cache? Keys in rotation, all asked for once before.", 2000, 10 * time.Second, prepareHot,
		[]string{"lookup"}, []string{"keys", "queries"}},
	{"lookup-zipf", "How fast are look-ups of a realistic mix, in which few queries are frequent and many rare?", 1000, 10 * time.Second, prepareZipf,
		[]string{"zipf-lookup"}, []string{"keys", "queries"}},
	{"mixed", "Does everything at once hold together? Weights by --mix.", 500, 10 * time.Second, nil,
		nil, []string{"mix"}},
	{"my-ip", "How fast does a browser learn where it is?", 1000, 10 * time.Second, prepareMyIP,
		[]string{"my-ip"}, []string{"keys", "queries"}},
	{"outage", "What do callers see when the upstream fails and comes back? It is down for the middle third of the run.", 500, 45 * time.Second, prepareOutage,
		[]string{"lookup", "cold-lookup"}, []string{"keys", "queries"}},
	{"profile", "How fast are profiles, and are the rate limits exact? Of each token's window exactly 100 requests may pass.", 500, 10 * time.Second, prepareProfile,
		[]string{"profile", "profile-greedy"}, []string{"people", "tokens"}},
	{"refresh", "How fast do clients get new tokens for refresh tokens?", 200, 10 * time.Second, prepareRefresh,
		[]string{"refresh"}, []string{"people"}},
	{"soak", "Is all well after a long time? Everything at once, with an eye on memory and goroutines.", 200, 15 * time.Minute, nil,
		nil, []string{"mix"}},
	{"token", "How many tokens a second can be issued by client_credentials? Each is durable before it is answered.", 500, 10 * time.Second, prepareToken,
		[]string{"token"}, []string{"people"}},
}

func init() { // these prepare others
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
		return Scenario{}, fmt.Errorf("there is no scenario %q: there are %s", name, strings.Join(names, ", "))
	}
	return Scenarios[i], nil
}

// Run prepares the scenario and runs it against the target of s.
func (sc Scenario) Run(ctx context.Context, s Setup, config Config) (*Result, error) {
	if s.Progress == nil {
		s.Progress = func(int, int, string) {}
	}
	if err := sc.Check(s, config); err != nil {
		return nil, err
	}
	s.operator = newOperator(s.Target)
	defer s.operator.http.CloseIdleConnections()
	s.crowd = &crowd{o: s.operator, run: strconv.FormatInt(time.Now().UnixNano(), 36), notify: s.Progress}
	p, err := sc.prepare(ctx, &s)
	if err != nil {
		return nil, fmt.Errorf("prepare %s: %w", sc.Name, err)
	}
	r, err := newRun(s.Target.Base, config, p.hit)
	if err != nil {
		return nil, err
	}
	r.steps = sc.Steps(s.Mix)
	beside, err := startBeside(ctx, s.Target, p, r.planned())
	if err != nil {
		return nil, err
	}
	result := r.do(ctx)
	if result.Resources, err = beside.stop(); err != nil {
		return nil, err
	}
	result.Periods, result.Settings = beside.periods, settings(&s, r.config)
	if p.checks != nil {
		result.Checks = p.checks(&result)
	}
	return &result, nil
}

// number returns what was asked for, or else the scenario's own.
func number(asked, own int) int {
	if asked > 0 {
		return asked
	}
	return own
}
