//go:build pact

package pacttest

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the pact files instead of comparing them")

// Pact gathers the interactions of one consumer with one provider. It is for one test and its subtests, one at a time.
type Pact struct {
	consumer, provider string
	dir                string              // where the library writes while the test runs
	names              map[string]struct{} // of the interactions so far
}

// New returns a Pact without interactions. When t and its subtests have passed, the interactions are compared with those of the
// file CONSUMER-PROVIDER.json in folder, or written there when the test runs with -update. A run of some subtests only is not
// compared.
func New(t *testing.T, folder, consumer, provider string) *Pact {
	t.Helper()
	p := &Pact{consumer, provider, t.TempDir(), map[string]struct{}{}}
	t.Cleanup(func() {
		if !t.Failed() && !partial() {
			p.settle(t, filepath.Join(folder, p.file()))
		}
	})
	return p
}

// partial reports whether subtests were chosen on the command line.
func partial() bool {
	return strings.Contains(flag.Lookup("test.run").Value.String(), "/") || flag.Lookup("test.skip").Value.String() != ""
}

func (p *Pact) file() string { return p.consumer + "-" + p.provider + ".json" }

// settle compares what was gathered with the committed file, or writes that.
func (p *Pact) settle(t *testing.T, path string) {
	raw, err := os.ReadFile(filepath.Join(p.dir, p.file()))
	if err != nil {
		t.Fatal(err)
	}
	got, err := canonical(raw)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; run the test with -update to write it", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got another pact than %s, first in line %d; run the test with -update if that is meant", path, firstDifference(got, want))
	}
}

func firstDifference(a, b []byte) int {
	linesA, linesB := bytes.Split(a, []byte("\n")), bytes.Split(b, []byte("\n"))
	for i := range min(len(linesA), len(linesB)) {
		if !bytes.Equal(linesA[i], linesB[i]) {
			return i + 1
		}
	}
	return min(len(linesA), len(linesB)) + 1
}

// canonical returns a pact file in the form in which it is kept: interactions by description, members by name, and no versions
// of the programs that wrote it.
func canonical(raw []byte) ([]byte, error) {
	var pact struct {
		Consumer     any              `json:"consumer"`
		Interactions []map[string]any `json:"interactions"`
		Metadata     map[string]any   `json:"metadata"`
		Provider     any              `json:"provider"`
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&pact); err != nil {
		return nil, fmt.Errorf("read a pact: %w", err)
	}
	slices.SortFunc(pact.Interactions, func(a, b map[string]any) int {
		return strings.Compare(fmt.Sprint(a["description"]), fmt.Sprint(b["description"]))
	})
	pact.Metadata = map[string]any{"pactSpecification": pact.Metadata["pactSpecification"]}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(pact); err != nil {
		return nil, fmt.Errorf("write a pact: %w", err)
	}
	return out.Bytes(), nil
}
