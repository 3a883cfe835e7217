//go:build race

package main

// Tests with the race detector build the program with it as well. A race then ends the program with
// an exit code that no test expects.
func init() { buildFlags = append(buildFlags, "-race") }
