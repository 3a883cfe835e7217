package edgetest

import (
	"context"
	"testing"
	"time"

	"gatehouse/actors/geo"
	"gatehouse/providers/ipapi"
	"gatehouse/providers/sim"
)

// startSimulator serves a simulator on loopback, and returns it with a client of it.
func startSimulator(t testing.TB) (*sim.Server, geo.Provider) {
	t.Helper()
	simulator, ln := sim.New(sim.Config{}), listen(t, "127.0.0.1:0")
	done := make(chan error, 1)
	go func() { done <- simulator.Serve(ln) }()
	client, err := ipapi.New(ipapi.Config{Base: "http://" + ln.Addr().String(), Tier: ipapi.Sim})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		client.Close()
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := simulator.Shutdown(ctx); err != nil {
			t.Errorf("stop simulator: %v", err)
		}
		if err := <-done; err != nil {
			t.Errorf("serve simulator: %v", err)
		}
	})
	return simulator, client
}
