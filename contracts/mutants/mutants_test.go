//go:build pact

package mutants_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gatehouse/contracts"
	"gatehouse/contracts/coverage"
	"gatehouse/contracts/mutants"
	"gatehouse/contracts/report"
	"gatehouse/contracts/verify"
)

// TestMain spares the library the certificates of the machine, which it reads for each interaction:
// nothing here is TLS.
func TestMain(m *testing.M) {
	if err := errors.Join(os.Setenv("SSL_CERT_FILE", os.DevNull),
		os.Setenv("SSL_CERT_DIR", os.DevNull)); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// atOnce is the number of mutants that run at once: they wait for files more than they compute.
const atOnce = 6

// expectation is a pact with one interaction.
type expectation struct {
	pact     *contracts.Pact
	status   int
	response string // expected, as JSON
	rules    int    // number of rules for the body
}

// largest is more than the number of rules of one result. Interactions with more are slow.
const largest = 40

func (e expectation) operation() string {
	i := e.pact.Interactions[0]
	path, _, _ := strings.Cut(i.Path, "?")
	return i.Method + " " + path
}

// expectations returns the interactions of the committed pacts with gatehouse.
func expectations(t *testing.T) []expectation {
	t.Helper()
	files, err := filepath.Glob("../pacts/*-gatehouse.json")
	if err != nil {
		t.Fatal(err)
	}
	var all []expectation
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var statuses struct {
			Interactions []struct {
				Response json.RawMessage
			}
		}
		if err := json.Unmarshal(data, &statuses); err != nil {
			t.Fatal(err)
		}
		p, err := contracts.ReadPact(data, file)
		if err != nil {
			t.Fatal(err)
		}
		for i := range p.Interactions {
			alone := *p
			alone.Interactions = p.Interactions[i : i+1]
			var response struct {
				Status        int
				MatchingRules struct{ Body map[string]any }
			}
			if err := json.Unmarshal(statuses.Interactions[i].Response, &response); err != nil {
				t.Fatal(err)
			}
			all = append(all, expectation{&alone, response.Status,
				string(statuses.Interactions[i].Response),
				len(response.MatchingRules.Body) % largest})
		}
	}
	// The interactions with most rules come first: they find most defects.
	slices.SortStableFunc(all, func(a, b expectation) int { return cmp.Compare(b.rules, a.rules) })
	return all
}

// TestMutants requires that every mutant makes a pact fail. It runs only the interactions that the
// mutant can break: the others get the responses of the service itself.
func TestMutants(t *testing.T) {
	began, all, pool := time.Now(), mutants.All(), expectations(t)
	survivors, tried := make([]error, len(all)), make([]int, len(all))
	var group sync.WaitGroup
	next := make(chan int)
	for range atOnce {
		group.Go(func() {
			for n := range next {
				tried[n], survivors[n] = try(t.Context(), all[n], pool)
			}
		})
	}
	for n := range all {
		next <- n
	}
	close(next)
	group.Wait()
	interactions, survived := 0, 0
	for n, err := range survivors {
		interactions += tried[n]
		if err != nil {
			survived++
			t.Errorf("survived: %s: %v", all[n], err)
		}
	}
	// scripts/contracts prints this line.
	t.Logf("%d mutants, %d survived: %d interactions tried in %.1f s", len(all), survived,
		interactions, time.Since(began).Seconds())
}

// errSurvived means that no pact fails with a mutant.
var errSurvived = errors.New("no pact fails")

// try starts a mutant and returns nil when an interaction fails because of its defect, or when a
// response breaks a relation.
func try(ctx context.Context, m mutants.Mutant, pool []expectation) (tried int, err error) {
	var broken atomic.Int64 // relations
	p, err := contracts.Start(contracts.Config{Wrap: func(service http.Handler) http.Handler {
		return coverage.Checked(m.Wrap(service), func(error) { broken.Add(1) })
	}})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	v, err := verify.New(verify.Of(p))
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	for _, e := range pool {
		if e.operation() != m.Operation || m.Status != 0 && m.Status != e.status ||
			!strings.Contains(e.response, m.Word) {
			continue
		}
		tried++
		all, err := v.Pact(ctx, e.pact, false, func(*report.Interaction) {})
		if err != nil {
			return tried, err
		}
		if it := all[0]; it.Result == report.Failed {
			for _, problem := range it.Problems {
				if problem.Where == "state" {
					return tried, fmt.Errorf("%s: %s", it.Description, problem)
				}
			}
			return tried, nil
		}
		if broken.Load() > 0 {
			return tried, nil
		}
	}
	return tried, fmt.Errorf("%w, of %d interactions", errSurvived, tried)
}

// TestControl verifies all interactions with services without a defect: none may fail, and no
// relation may break. Else a mutant would fail for the way in which it is made.
func TestControl(t *testing.T) {
	pool, operations := expectations(t), map[string]int{}
	for _, e := range pool {
		operations[e.operation()]++
	}
	var group sync.WaitGroup
	for operation, all := range operations {
		group.Go(func() {
			tried, err := try(t.Context(), mutants.Control(operation), pool)
			if !errors.Is(err, errSurvived) || tried != all {
				t.Errorf("%s: got %v after %d of %d interactions, want them to hold", operation,
					err, tried, all)
			}
		})
	}
	group.Wait()
}
