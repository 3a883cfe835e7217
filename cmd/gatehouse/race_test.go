//go:build race

package main

// A test run with the race detector builds the program with it too: a race ends it with a code that no test expects.
func init() { buildFlags = append(buildFlags, "-race") }
