package contracts_test

import (
	"flag"
	"os"
	"testing"

	"gatehouse/contracts"
)

var update = flag.Bool("update", false, "write STATES.md")

func TestStatesAreDocumented(t *testing.T) {
	const file = "STATES.md"
	want := contracts.Document()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s is not what the catalogue says: go test ./contracts -run %s -update writes it",
			file, t.Name())
	}
}
