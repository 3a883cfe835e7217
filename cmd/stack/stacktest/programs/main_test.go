//go:build programs

package programs_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"gatehouse/cmd/stack/stacktest"
	"gatehouse/loadtest/lab/browser"
)

// chromium is the process that all tests share. Each person has their own cookies.
var chromium context.Context

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	ctx, stop, err := browser.Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stop()
	chromium = ctx
	return stacktest.Run(m, nil)
}
