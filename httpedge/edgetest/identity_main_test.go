package edgetest_test

import (
	"fmt"
	"os"
	"testing"

	"gatehouse/providers/sqlstore/pgtest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if err := pgtest.Stop(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
