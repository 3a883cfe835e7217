package sqlstore_test

import (
	"testing"
	"time"

	"gatehouse/providers/sqlstore"
	"gatehouse/providers/storetest"
)

func TestConformance(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) storetest.Store {
				return open(t, sqlstore.Config{URL: d.make(t), SweepInterval: time.Hour})
			})
		})
	}
}
