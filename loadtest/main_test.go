package loadtest_test

import (
	"context"
	"os"
	"testing"

	"gatehouse/loadtest"
	"gatehouse/loadtest/lab"
)

// gatehouse is the program that scenarios are tried with.
var gatehouse string

// shared is a target for all tests that leave it as it is.
var shared *loadtest.Local

func TestMain(m *testing.M) {
	os.Exit(lab.WithProgram(func(program string) (int, error) {
		gatehouse = program
		var err error
		if shared, err = loadtest.StartLocal(context.Background(), gatehouse, ""); err != nil {
			return 0, err
		}
		return m.Run(), shared.Stop()
	}))
}
