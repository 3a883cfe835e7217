package edgetest_test

import (
	"fmt"
	"os"
	"testing"

	"gatehouse/httpedge/edgetest"
	"gatehouse/providers/sqlstore/pgtest"
)

func TestMain(m *testing.M) {
	if err := edgetest.FixDate(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	if err := pgtest.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
