package main

import (
	"os"
	"regexp"
	"testing"

	"github.com/alecthomas/kong"
)

// TestReadmeTellsEveryFlag compares the flags that the README names with those of loadtest run.
func TestReadmeTellsEveryFlag(t *testing.T) {
	text, err := os.ReadFile("../../docs/loadtests.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]bool{}
	for _, m := range regexp.MustCompile("[ `'\\[]--([a-z][a-z0-9-]*)").FindAllStringSubmatch(string(text), -1) {
		told[m[1]] = true
	}
	parser, err := kong.New(&commands{})
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, command := range parser.Model.Children {
		if command.Name != "run" {
			continue
		}
		for _, flag := range command.Flags {
			if flag.Name == "help" {
				continue
			}
			if there[flag.Name] = true; !told[flag.Name] {
				t.Errorf("got no --%s in the README, want all flags of loadtest run", flag.Name)
			}
		}
	}
	for name := range told {
		if !there[name] {
			t.Errorf("got --%s in the README, want flags of loadtest run alone", name)
		}
	}
}
