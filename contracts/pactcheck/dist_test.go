package main

import (
	"os/exec"
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

// TestLicenses requires the licenses of what is linked.
func TestLicenses(t *testing.T) {
	command := exec.CommandContext(t.Context(), "go", "run", "./deploy/make", "notices", "./contracts/pactcheck")
	command.Dir = "../.."
	want, err := command.Output()
	stacktest.Must(t, err)
	if got := pactcheck(t, "licenses"); got.stdout != string(want) {
		t.Error("pactcheck licenses prints others than what is linked: run make notices")
	}
}
