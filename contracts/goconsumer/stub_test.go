package greeter

import (
	"errors"
	"os"
	"testing"
)

// TestStub uses the client with pactcheck stub. GATEHOUSE_STUB has its address.
func TestStub(t *testing.T) {
	base := os.Getenv("GATEHOUSE_STUB")
	if base == "" {
		t.Skip("GATEHOUSE_STUB is not set")
	}
	c := &Client{Base: base}
	if got, err := c.Profile(t.Context(), "gtat_example"); err != nil || got.Name == "" {
		t.Errorf("got %+v and error %v, want a profile", got, err)
	}
	var failure *Error
	if _, err := c.Profile(t.Context(), "gtat_wrong"); !errors.As(err, &failure) ||
		failure.Status != 401 {
		t.Errorf("got %v, want 401", err)
	}
	if got, err := c.Lookup(t.Context(), "8.8.8.8"); err != nil || got.Location.Country == "" {
		t.Errorf("got %+v and error %v, want a place", got, err)
	}
	if _, err := c.Lookup(t.Context(), "10.0.0.1"); !errors.As(err, &failure) ||
		failure.Reason != "private_range" {
		t.Errorf("got %v, want private_range", err)
	}
}
