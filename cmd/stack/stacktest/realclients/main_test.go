package realclients_test

import (
	"os"
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

func TestMain(m *testing.M) {
	os.Exit(stacktest.Run(m, map[string]string{"TestClientsOfIPInfo": "a listener of one server"}))
}
