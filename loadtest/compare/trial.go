package main

import (
	"fmt"
	"strings"

	"gatehouse/providers/sqlstore"
)

// trial is a kind of request whose cost is measured.
type trial struct {
	name     string
	requests int // default for one measurement
	tokens   int // access tokens that the requests use in turn, each in the warm-up
	// requestsPerToken is how many requests a mix needs to use one more token; 0 = 1.
	requestsPerToken int
	keys             int    // addresses that are looked up in turn
	proof            string // header line that every correct response has
	parts            []part // kinds of a mix; nil = the trial has one kind
	upstream         bool   // gatehouse looks up addresses at a simulator, and has all in its cache
	postgres         bool   // the database is on PostgreSQL
	// each: each request has a response of its own. Else raw sends one response to all.
	each bool
	// prepare writes what a gatehouse needs into its folder and database. It returns the requests,
	// which are sent in rotation.
	prepare func(*plan) ([][]byte, error)
}

// plan says what a trial prepares.
type plan struct {
	dir      string          // for files
	database sqlstore.Config // where clients, users and codes are kept
	upstream string          // URL of the simulator
	tokens   int             // access tokens to be used in turn
	keys     int             // addresses to be looked up in turn
	requests int             // the most that each server gets
	flags    []string        // of gatehouse serve; prepare adds them
	allRoles bool            // gatehouse looks up addresses as well
}

var trials = []*trial{
	&hitTrial, &bulkTrial, &coldTrial, &bulkColdTrial, &profileTrial, &manyProfilesTrial,
	&introspectTrial, &tokenTrial, &postgresTrial, &redeemTrial, &userInfoTrial, &rs256Trial,
	&es256Trial, &mixedTrial,
}

// trialsNamed returns the trials with these names; without names, all.
func trialsNamed(names []string) ([]*trial, error) {
	if len(names) == 0 {
		return trials, nil
	}
	known, chosen := map[string]*trial{}, []*trial{}
	var all []string
	for _, t := range trials {
		known[t.name], all = t, append(all, t.name)
	}
	for _, name := range names {
		if known[name] == nil {
			return nil, fmt.Errorf("unknown name %q: known are %s", name, strings.Join(all, ", "))
		}
		chosen = append(chosen, known[name])
	}
	return chosen, nil
}

// proofs returns the header line that every correct response has, by kind; "" = all other kinds.
func (t *trial) proofs() map[string]string {
	proofs := map[string]string{"": t.proof}
	for _, p := range t.parts {
		proofs[p.kind] = p.of.proof
	}
	return proofs
}

// isEach reports whether each request of a kind has a response of its own.
func (t *trial) isEach(kind string) bool {
	for _, p := range t.parts {
		if p.kind == kind {
			return p.of.each
		}
	}
	return t.each
}

// get returns a GET request. Header lines end with CR LF.
func get(path, headers string) []byte {
	return fmt.Appendf(nil, "GET %s HTTP/1.1\r\n%s%s\r\n", path, sameHeaders, headers)
}

// post returns a POST request.
func post(path, contentType, body string) []byte {
	return fmt.Appendf(nil, "POST %s HTTP/1.1\r\n%sContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s",
		path, sameHeaders, contentType, len(body), body)
}

// sameHeaders are those of every request.
const sameHeaders = "Host: 127.0.0.1:12345\r\nUser-Agent: compare\r\nAccept: */*\r\n"
