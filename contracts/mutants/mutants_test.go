package mutants_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
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
	name     string // consumer and description
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
	var all []expectation
	for file, data := range committed(t) {
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
			all = append(all, expectation{&alone, p.Consumer + ": " + p.Interactions[i].Description,
				response.Status, string(statuses.Interactions[i].Response),
				len(response.MatchingRules.Body) % largest})
		}
	}
	// The interactions with most rules come first: they find most defects.
	slices.SortStableFunc(all, func(a, b expectation) int { return cmp.Compare(b.rules, a.rules) })
	return all
}

// TestMutants requires that every mutant makes a pact fail.
func TestMutants(t *testing.T) {
	began, pool := time.Now(), expectations(t)
	byHand, byPart := mutants.All(), map[string][]mutants.Mutant{}
	count := len(byHand)
	for _, m := range generated(t) {
		byPart[m.Interaction] = append(byPart[m.Interaction], m)
		count++
	}
	var jobs []job
	for _, e := range pool {
		if all := byPart[e.name]; all != nil {
			jobs = append(jobs, func() (int, error) { return replay(t.Context(), all, e) })
		}
	}
	for _, m := range byHand {
		jobs = append(jobs, func() (int, error) {
			tried, err := try(t.Context(), m, pool)
			return tried, named(m, err)
		})
	}
	interactions, survivors := run(jobs)
	for _, err := range survivors {
		t.Errorf("survived: %v", err)
	}
	// scripts/contracts prints this line.
	t.Logf("%d mutants, %d survived: %d interactions tried in %.1f s", count, len(survivors),
		interactions, time.Since(began).Seconds())
}

// job tries interactions with mutants. Its error joins one for each that survives.
type job func() (tried int, err error)

// run runs jobs and returns their errors. Tests print them afterwards, since the library discards
// what is printed meanwhile.
func run(jobs []job) (tried int, wrong []error) {
	var group sync.WaitGroup
	var mu sync.Mutex
	next := make(chan job)
	for range atOnce {
		group.Go(func() {
			for one := range next {
				n, err := one()
				mu.Lock()
				tried, wrong = tried+n, append(wrong, contracts.Errors(err)...)
				mu.Unlock()
			}
		})
	}
	for _, one := range jobs {
		next <- one
	}
	close(next)
	group.Wait()
	return tried, wrong
}

// named returns an error that names the mutant, nil for nil.
func named(m mutants.Mutant, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", m, err)
	}
	return err
}

// tape keeps the response to each request, and gives the same to the next one.
type tape map[string]*httptest.ResponseRecorder

// of returns a service that is asked each request once.
func (t tape) of(service http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		key := r.Method + r.URL.String() + string(body)
		if t[key] == nil {
			r.Body = io.NopCloser(bytes.NewReader(body))
			t[key] = httptest.NewRecorder()
			service.ServeHTTP(t[key], r)
		}
		maps.Copy(w.Header(), t[key].Header())
		w.WriteHeader(t[key].Code)
		_, _ = w.Write(t[key].Body.Bytes()) // the verifier notices a truncated body
	})
}

// replay tries mutants with one interaction, which must fail with each of them and not without.
// All change the same response: a new service for each would take most of the time.
func replay(ctx context.Context, all []mutants.Mutant, e expectation) (tried int, err error) {
	service, states, now := tape{}, tape{}, mutants.Control(e.operation())
	p, err := contracts.Start(contracts.Config{Wrap: func(real http.Handler) http.Handler {
		taped := service.of(real)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			now.Wrap(taped).ServeHTTP(w, r)
		})
	}})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	target := verify.Of(p)
	target.States = states.of(target.States)
	v, err := verify.New(target)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	for _, from := range []string{"service", "tape"} {
		if failed, err := fails(ctx, v, e); failed || err != nil {
			return 1, errors.Join(err, fmt.Errorf("%s fails with the %s itself", e.name, from))
		}
	}
	for _, now = range all {
		if failed, wrong := fails(ctx, v, e); !failed || wrong != nil {
			err = errors.Join(err, wrong, fmt.Errorf("%s: %s holds", now, e.name))
		}
	}
	return 2 + len(all), err
}

// fails reports whether an interaction fails, for another reason than its states.
func fails(ctx context.Context, v *verify.Verifier, e expectation) (bool, error) {
	all, err := v.Pact(ctx, e.pact, false, func(*report.Interaction) {})
	if err != nil || all[0].Result != report.Failed {
		return false, err
	}
	for _, problem := range all[0].Problems {
		if problem.Where == "state" {
			return true, fmt.Errorf("%s: %s", all[0].Description, problem)
		}
	}
	return true, nil
}

// errSurvived means that no pact fails with a mutant.
var errSurvived = errors.New("no pact fails")

// try starts a mutant and returns nil when an interaction fails because of its defect, or when a
// response breaks a relation. It tries all interactions, those of the broken responses first.
func try(ctx context.Context, m mutants.Mutant, pool []expectation) (int, error) {
	var likely, others []expectation
	for _, e := range pool {
		if e.operation() == m.Operation && (m.Status == 0 || m.Status == e.status) &&
			strings.Contains(e.response, m.Word) {
			likely = append(likely, e)
		} else {
			others = append(others, e)
		}
	}
	if len(likely) == 0 {
		return 0, errors.New("no interaction has the response that it breaks")
	}
	return tryEach(ctx, m, append(likely, others...), func(error) {})
}

// tryEach is try with interactions in their order. breaks gets the relations that responses break.
func tryEach(ctx context.Context, m mutants.Mutant, all []expectation,
	breaks func(error)) (tried int, err error) {
	var broken atomic.Int64 // relations
	var p *contracts.Provider
	p, err = contracts.Start(contracts.Config{Wrap: func(service http.Handler) http.Handler {
		return coverage.Checked(m.Wrap(service), func() map[string]any { return p.Values() },
			func(err error) {
				broken.Add(1)
				breaks(err)
			})
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
	for _, e := range all {
		tried++
		if failed, err := fails(ctx, v, e); failed || err != nil || broken.Load() > 0 {
			return tried, err
		}
	}
	return tried, fmt.Errorf("%w, of %d interactions", errSurvived, tried)
}

// TestControl verifies all interactions with services without a defect: none may fail, and no
// relation may break. Else a mutant would fail for the way in which it is made.
func TestControl(t *testing.T) {
	operations := map[string][]expectation{}
	for _, e := range expectations(t) {
		operations[e.operation()] = append(operations[e.operation()], e)
	}
	var jobs []job
	for operation, all := range operations {
		jobs = append(jobs, func() (int, error) {
			var broken error
			tried, err := tryEach(t.Context(), mutants.Control(operation), all,
				func(err error) { broken = errors.Join(broken, err) })
			if errors.Is(err, errSurvived) && tried == len(all) {
				return tried, nil
			}
			return tried, fmt.Errorf("%s: got %w after %d of %d interactions, want them to hold: %s",
				operation, errors.Join(err, broken), tried, len(all), all[max(0, tried-1)].name)
		})
	}
	_, wrong := run(jobs)
	for _, err := range wrong {
		t.Error(err)
	}
}
