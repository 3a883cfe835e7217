package mutants_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

// goCommand is a fake Go command. The environment holds its output for the mutants; other tests
// pass. It insists on a time limit that a busy machine does not reach.
const goCommand = `#!/bin/sh
case "$*" in
list* | *"-timeout 30m"*) ;;
*) echo "got $*, want a limit of 30 minutes"; exit 1 ;;
esac
case "$*" in
list*) printf 'gatehouse/contracts\ngatehouse/contracts/mutants\n' ;;
*/mutants*) printf '%s' "$SAID"; exit "$CODE" ;;
*) printf 'ok  \tgatehouse/contracts\t1.0s\n' ;;
esac
`

// TestCountsArePrinted runs scripts/contracts with a fake Go command.
func TestCountsArePrinted(t *testing.T) {
	folder := t.TempDir()
	stacktest.Must(t, os.WriteFile(filepath.Join(folder, "go"), []byte(goCommand), 0o700))
	const counts = "=== RUN   TestMutants\n    mutants_test.go:9: 345 mutants, 0 survived: 812 interactions tried in 9.1 s\n--- PASS: TestMutants (9.1s)\nPASS\n"
	for _, row := range []struct {
		name, said, code string
		passes           bool
		want             string
	}{
		{"all is well", counts + "ok  \tgatehouse/contracts/mutants\t9.2s\n", "0", true,
			"ok  \tgatehouse/contracts\t1.0s\nok  \tgatehouse/contracts/mutants\t9.2s\n345 mutants, 0 survived: 812 interactions tried in 9.1 s\n"},
		{"one survives", "=== RUN   TestMutants\n    survived: x\nFAIL\n", "1", false,
			"ok  \tgatehouse/contracts\t1.0s\n=== RUN   TestMutants\n    survived: x\nFAIL\n"},
		{"there are no counts", "ok  \tgatehouse/contracts/mutants\t9.2s\n", "0", false,
			"ok  \tgatehouse/contracts\t1.0s\nok  \tgatehouse/contracts/mutants\t9.2s\n"},
	} {
		command := exec.CommandContext(t.Context(), "../../scripts/contracts")
		command.Env = append(os.Environ(), "PATH="+folder+":"+os.Getenv("PATH"), "SAID="+row.said,
			"CODE="+row.code)
		var stderr strings.Builder
		command.Stderr = &stderr
		out, err := command.Output()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			t.Fatal(err)
		}
		if passes := err == nil; passes != row.passes || string(out) != row.want {
			t.Errorf("%s: got %v, %s %s, want passed %v and %s", row.name, err, out, &stderr,
				row.passes, row.want)
		}
	}
}
