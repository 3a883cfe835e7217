package loadtest_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"gatehouse/loadtest/lab"
)

// gatehouse is the program that scenarios are tried with.
var gatehouse string

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
	return m.Run()
}
