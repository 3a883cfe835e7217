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
	requests int    // of one measurement, unless told otherwise
	rows     int    // access tokens that are kept before, unless told otherwise
	touch    bool   // the warm-up asks about each of them
	proof    string // a header line of every answer that is as it should be
	// prepare puts what the servers need into a folder, and returns the requests that are sent in rotation to a host.
	prepare func(plan) (func(host string) [][]byte, error)
	// raw returns a handler that answers as gatehouse does, without its work.
	raw func(dir string) (fasthttp.RequestHandler, error)
	// configure sets what a gatehouse in that folder answers the requests with.
	configure func(dir string, c *stack.Config) error
	// warm prepares a gatehouse that has started; optional.
	warm func(*stack.Stack) error
	// gauges returns what is measured beside the servers; optional.
	gauges func(dir string) ([]gauge, error)
	// end ends what prepare started; optional.
	end func() error
}

// plan is what a trial prepares for.
type plan struct {
	dir      string
	rows     int // access tokens to keep
	requests int // that each server is sent at most
}

// gauge is a rate of something without a server, measured after each pair.
type gauge struct {
	name    string
	measure func(n int) (perSecond float64, err error)
	end     func() error
}

var trials = []*trial{
	&hitTrial, &bulkTrial, &profileTrial, &manyProfilesTrial, &introspectTrial,
	&tokenTrial, &millionTokensTrial, &postgresTrial, &redeemTrial,
}

func trialNamed(name string) (*trial, error) {
	var names []string
	for _, t := range trials {
		if t.name == name {
			return t, nil
		}
		names = append(names, t.name)
	}
	return nil, fmt.Errorf("nothing to measure is called %q: there are %s", name, strings.Join(names, ", "))
}
