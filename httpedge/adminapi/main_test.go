package adminapi_test

import (
	"os"
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

func TestMain(m *testing.M) {
	os.Exit(stacktest.Run(m, map[string]string{
		"TestOperatorRotatesKeys": "a key that no other process needs, used at once",
	}))
}
