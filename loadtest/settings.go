package loadtest

import (
	"net/url"
	"time"
)

// Settings are the settings of a run, besides its rate, that affect the figures. They contain no
// credentials.
type Settings struct {
	Target      string             // public address
	Version     string             // of the target; "" = not known
	Own         bool               // the target was started for the run
	Timeout     time.Duration      // of one request
	Connections int                // limit
	Keys        int                // number of different queries, or the most of a mix; 0 = none
	People      int                // number of clients, users, tokens or idle connections; 0 = none
	Queries     int                // number of given queries; 0 = generated or none
	Tokens      int                // number of given tokens; 0 = created by setup or none
	Mix         map[string]float64 // weights; nil = defaultMix
	Headers     []string           // names of those that went with each request
	Agents      []string           // addresses of those that made the hits; nil = this process
}

// settings returns the Settings of a run. config has its defaults.
func settings(s *Setup, config Config) Settings {
	var headers []string
	for _, h := range s.Target.Header {
		headers = append(headers, h[0])
	}
	return Settings{
		Target: publicAddress(s.Target.Base), Version: s.Target.Version, Own: s.Target.Own,
		Timeout: config.Timeout, Connections: config.Connections,
		Keys: s.keysUsed, People: s.peopleUsed, Queries: len(s.Queries), Tokens: len(s.Tokens),
		Mix: s.Mix, Headers: headers, Agents: config.Agents.Addresses,
	}
}

// publicAddress returns the scheme and host of a URL, which contain no secret; "" = it is not a
// URL.
func publicAddress(base string) string {
	u, err := url.Parse(base)
	if err != nil {
		return ""
	}
	return (&url.URL{Scheme: u.Scheme, Host: u.Host}).String()
}

// Period is a part of a run in which something was changed on purpose, such as an outage.
type Period struct {
	What     string
	From, To time.Duration // since the begin of the run
}
