//go:build programs

package programs_test

import (
	"context"
	"os"
	"testing"

	"gatehouse/cmd/stack/stacktest"
	"gatehouse/loadtest/lab/browser"
)

// chromium is the process that all tests share. Each person has their own cookies.
var chromium context.Context

func TestMain(m *testing.M) {
	os.Exit(browser.Run(func(ctx context.Context) int {
		chromium = ctx
		return stacktest.Run(m, nil)
	}))
}
