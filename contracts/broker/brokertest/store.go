package brokertest

import (
	"crypto/sha1"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// store is what the broker knows.
type store struct {
	participants []*participant
	contents     []*content // in the order of their publication
	deployed     map[place]string
	webhooks     map[string]object
	results      int // published so far
}

// place is where a pacticipant is deployed.
type place struct{ pacticipant, environment string }

// environments of a new broker.
var environments = []string{"production", "test"}

// participant is a consumer or provider.
type participant struct {
	name     string
	main     string // branch; "" = none yet
	versions []*version
}

// version is a version of a participant.
type version struct {
	number         string
	branches, tags []string
	pacts          []*content
}

// content is one content of a pact. Several versions of a consumer may share it.
type content struct {
	sha                string
	consumer, provider string
	body               object
	results            []result
}

type result struct {
	version string
	success bool
}

func newStore() store {
	return store{deployed: map[place]string{}, webhooks: map[string]object{}}
}

// find returns a participant, or nil.
func (s *store) find(name string) *participant {
	i := slices.IndexFunc(s.participants, func(p *participant) bool { return p.name == name })
	if i < 0 {
		return nil
	}
	return s.participants[i]
}

// participant returns a participant, which it creates if needed.
func (s *store) participant(name string) *participant {
	if p := s.find(name); p != nil {
		return p
	}
	p := &participant{name: name}
	s.participants = append(s.participants, p)
	return p
}

// find returns a version, or nil.
func (p *participant) find(number string) *version {
	i := slices.IndexFunc(p.versions, func(v *version) bool { return v.number == number })
	if i < 0 {
		return nil
	}
	return p.versions[i]
}

// handle is a version with its participant.
type handle struct {
	*version
	of *participant
}

// version returns a version, which it creates if needed.
func (p *participant) version(number string) handle {
	v := p.find(number)
	if v == nil {
		v = &version{number: number}
		p.versions = append(p.versions, v)
	}
	return handle{v, p}
}

// addBranch adds a version to a branch. A participant's first branch main becomes its main branch.
func (h handle) addBranch(branch string) {
	if branch == "" {
		return
	}
	if h.of.main == "" && (branch == "main" || branch == "master" || branch == "develop") {
		h.of.main = branch
	}
	if !slices.Contains(h.branches, branch) {
		h.branches = append(h.branches, branch)
	}
}

// latest returns the newest version that meets a condition, or nil.
func (p *participant) latest(condition func(*version) bool) *version {
	for _, v := range slices.Backward(p.versions) {
		if condition(v) {
			return v
		}
	}
	return nil
}

func on(branch string) func(*version) bool {
	return func(v *version) bool { return slices.Contains(v.branches, branch) }
}

// publish adds a pact of a version. Its error is for another content of the same version.
func (s *store) publish(pact object, number, branch string, tags []string) (*content, error) {
	c := newContent(pact)
	if i := slices.IndexFunc(s.contents, func(o *content) bool { return o.sha == c.sha }); i >= 0 {
		c = s.contents[i]
	} else {
		s.contents = append(s.contents, c)
	}
	s.participant(c.provider)
	v := s.participant(c.consumer).version(number)
	for _, before := range v.pacts {
		if before.provider == c.provider && before != c {
			return nil, fmt.Errorf("the pact of %s version %s with %s has another content",
				c.consumer, number, c.provider)
		}
	}
	if !slices.Contains(v.pacts, c) {
		v.pacts = append(v.pacts, c)
	}
	v.addBranch(branch)
	v.tags = append(v.tags, tags...)
	return c, nil
}

// newContent adds an _id to each interaction.
func newContent(pact object) *content {
	consumer, _ := pact["consumer"].(object)
	provider, _ := pact["provider"].(object)
	c := &content{body: maps.Clone(pact), sha: sum(pact)}
	c.consumer, _ = consumer["name"].(string)
	c.provider, _ = provider["name"].(string)
	list, _ := pact["interactions"].([]any)
	var all []any
	for _, one := range list {
		if o, ok := one.(object); ok {
			o = maps.Clone(o)
			o["_id"] = sum(o)
			one = o
		}
		all = append(all, one)
	}
	c.body["interactions"] = all
	return c
}

func sum(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // parsed JSON can be written
	}
	digest := sha1.Sum(text)
	return hex.EncodeToString(digest[:])
}

// pactOf returns the pact of a version with a provider, or nil.
func (v *version) pactOf(provider string) *content {
	for _, c := range v.pacts {
		if c.provider == provider {
			return c
		}
	}
	return nil
}

func (s *store) deploy(pacticipant, number, environment string) {
	s.deployed[place{pacticipant, environment}] = number
}

// verifiedBy reports the newest result of a version: nil = none.
func (c *content) verifiedBy(number string) *bool {
	for _, r := range slices.Backward(c.results) {
		if r.version == number {
			return &r.success
		}
	}
	return nil
}

// pending reports whether no version of the provider that meets a condition has ever fulfilled c.
func (s *store) pending(c *content, condition func(*version) bool) bool {
	provider := s.participant(c.provider)
	return !slices.ContainsFunc(c.results, func(r result) bool {
		v := provider.find(r.version)
		return r.success && v != nil && condition(v)
	})
}
