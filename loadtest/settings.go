package loadtest

import (
	"net/url"
	"time"
)

// Settings say who was asked, and by what that matters to the figures apart from the rate. They hold no credentials.
type Settings struct {
	Target      string             // public address
	Version     string             // of the target; "" = not known
	Own         bool               // the target was started for the run
	Timeout     time.Duration      // of one request
	Connections int                // at most at once
	Keys        int                // look-ups: how many different queries; 0 = the scenario's own number
	People      int                // how many clients, users or tokens were made; 0 = the scenario's own number
	Queries     int                // that were given; 0 = made up
	Tokens      int                // that were given; 0 = made by set-up
	Mix         map[string]float64 // weights; nil = the scenario's own
}

// settings returns what a run with these is asked to do. config has its defaults.
func settings(s *Setup, config Config) Settings {
	return Settings{
		Target: publicAddress(s.Target.Base), Version: s.Target.Version, Own: s.Target.Own, Timeout: config.Timeout, Connections: config.Connections,
		Keys: s.Keys, People: s.People, Queries: len(s.Queries), Tokens: len(s.Tokens), Mix: s.Mix,
	}
}

// publicAddress returns an address without what could be a secret in it; "" for one that cannot be read.
func publicAddress(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}

// Period is a time during a run in which something was different by intent, such as an outage.
type Period struct {
	What     string
	From, To time.Duration // since the begin of the run
}
