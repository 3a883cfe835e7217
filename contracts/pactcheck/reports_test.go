package main

import (
	"encoding/json"
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/cmd/stack/stacktest"
)

// TestReports verifies a good and a bad interaction, and reads the three reports.
func TestReports(t *testing.T) {
	folder := t.TempDir()
	junit, js, markdown := filepath.Join(folder, "r.xml"), filepath.Join(folder, "r.json"),
		filepath.Join(folder, "r.md")
	got := pactcheck(t, "verify", "--junit", junit, "--json", js, "--markdown", markdown,
		write(t, "p.json", pactText("gatehouse", good, bad)))
	if got.code != 1 {
		t.Fatalf("got %+v, want a failure", got)
	}
	var suites struct {
		Tests    int `xml:"tests,attr"`
		Failures int `xml:"failures,attr"`
		Cases    []struct {
			Name    string `xml:"name,attr"`
			Failure *struct {
				Message string `xml:"message,attr"`
				Text    string `xml:",chardata"`
			} `xml:"failure"`
		} `xml:"testsuite>testcase"`
	}
	stacktest.Must(t, xml.Unmarshal(read(t, junit), &suites))
	if suites.Tests != 2 || suites.Failures != 1 || len(suites.Cases) != 2 ||
		suites.Cases[0].Failure != nil ||
		suites.Cases[1].Failure == nil ||
		!strings.Contains(suites.Cases[1].Failure.Text, "planet") {
		t.Errorf("got %+v, want a passed case and a failed one", suites)
	}
	var r struct {
		Pacts []struct {
			Consumer     string
			Interactions []struct {
				Result   string
				Problems []struct{ Where, Reason string }
			}
		}
	}
	stacktest.Must(t, json.Unmarshal(read(t, js), &r))
	if len(r.Pacts) != 1 || r.Pacts[0].Consumer != "shop" ||
		r.Pacts[0].Interactions[0].Result != "verified" ||
		r.Pacts[0].Interactions[1].Result != "failed" ||
		r.Pacts[0].Interactions[1].Problems[0].Where != "body $.planet" {
		t.Errorf("got %+v, want the results of two interactions", r)
	}
	if text := string(read(t, markdown)); !strings.Contains(text, "| `shop` | 1 | 1 | 0 |") ||
		!strings.Contains(text, "## ✗ `shop`: `a lookup of a planet`") {
		t.Errorf("got %s, want a table and the failure", text)
	}
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	content, err := os.ReadFile(file)
	stacktest.Must(t, err)
	return content
}
