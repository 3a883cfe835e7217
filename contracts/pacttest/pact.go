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

// Pact collects the interactions of one consumer with one provider. It is for one test and its
// subtests, one at a time.
type Pact struct {
	consumer, provider string
	names              map[string]struct{} // of interactions so far
	written            *file               // by the library
}

// New returns a Pact without interactions. When t and all its subtests have passed, the
// interactions must equal those of the file CONSUMER-PROVIDER.json in folder. With -update that
// file is written instead. A run of only some subtests is not compared.
func New(t *testing.T, folder, consumer, provider string) *Pact {
	t.Helper()
	p := &Pact{consumer, provider, map[string]struct{}{}, new(file)}
	t.Cleanup(func() {
		if !t.Failed() && !partial() {
			p.compare(t, filepath.Join(folder, p.file()))
		}
	})
	return p
}

// Must ends the test if err is not nil.
func Must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// partial reports whether the command line selects subtests.
func partial() bool {
	return strings.Contains(flag.Lookup("test.run").Value.String(), "/") ||
		flag.Lookup("test.skip").Value.String() != ""
}

func (p *Pact) file() string { return p.consumer + "-" + p.provider + ".json" }

// compare compares the interactions with the committed file, or writes it.
func (p *Pact) compare(t *testing.T, path string) {
	got, err := p.written.canonical()
	Must(t, err)
	if *update {
		Must(t, os.WriteFile(path, got, 0o644))
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

// file is a pact file.
type file struct {
	Consumer     any              `json:"consumer"`
	Interactions []map[string]any `json:"interactions"`
	Metadata     map[string]any   `json:"metadata"`
	Provider     any              `json:"provider"`
}

// add adds the interactions of another file of the same parties.
func (f *file) add(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var other file
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	if err := decoder.Decode(&other); err != nil {
		return fmt.Errorf("read a pact: %w", err)
	}
	other.Interactions = append(f.Interactions, other.Interactions...)
	*f = other
	return nil
}

// canonical returns the file for the repository: sorted by description and member, without the
// versions of the programs that wrote it.
func (f *file) canonical() ([]byte, error) {
	slices.SortFunc(f.Interactions, func(a, b map[string]any) int {
		return strings.Compare(fmt.Sprint(a["description"]), fmt.Sprint(b["description"]))
	})
	f.Metadata = map[string]any{"pactSpecification": f.Metadata["pactSpecification"]}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(f); err != nil {
		return nil, fmt.Errorf("write a pact: %w", err)
	}
	return out.Bytes(), nil
}
