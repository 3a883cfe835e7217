package main

import (
	"fmt"
	"strings"

	"gatehouse/cmd/stack"

	"github.com/valyala/fasthttp"
)

// trial is a kind of request whose cost is measured.
type trial struct {
	name     string
	requests int    // default for one measurement
	tokens   int    // access tokens that the requests use in turn, each in the warm-up
	proof    string // header line that every correct response has
	// prepare writes what the servers need into a folder. It returns the requests to a host, which
	// are sent in rotation.
	prepare func(plan) (func(host string) [][]byte, error)
	// raw returns a handler that sends the responses of gatehouse without doing its work.
	raw func(dir string) (fasthttp.RequestHandler, error)
	// configure changes the settings of the gatehouse that serves the requests.
	configure func(dir string, c *stack.Config) error
	// warm prepares a started gatehouse; optional.
	warm func(*stack.Stack) error
	// end stops what prepare started; optional.
	end func() error
}

// plan says what a trial prepares.
type plan struct {
	dir      string
	tokens   int // access tokens to be used in turn
	requests int // the most that each server gets
}

var trials = []*trial{
	&hitTrial, &bulkTrial, &coldTrial, &bulkColdTrial, &profileTrial, &manyProfilesTrial,
	&introspectTrial, &tokenTrial, &postgresTrial, &redeemTrial, &userInfoTrial, &rs256Trial,
	&es256Trial,
}

func trialNamed(name string) (*trial, error) {
	var names []string
	for _, t := range trials {
		if t.name == name {
			return t, nil
		}
		names = append(names, t.name)
	}
	return nil, fmt.Errorf("unknown name %q: known are %s", name, strings.Join(names, ", "))
}
