package clients_test

import (
	"os"
	"testing"

	"gatehouse/httpedge/edgetest"
)

func TestMain(m *testing.M) { os.Exit(edgetest.Run(m, nil)) }
