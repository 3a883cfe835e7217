package loadtest_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"gatehouse/loadtest"
	"gatehouse/loadtest/lab"
)

// gatehouse is the program that scenarios are tried with.
var gatehouse string

// shared is a target for all tests that leave it as it is.
var shared *loadtest.Local

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "loadtest")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	if gatehouse, err = lab.Build(context.Background(), dir); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if shared, err = loadtest.StartLocal(context.Background(), gatehouse, ""); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := shared.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}
