package mutants_test

import (
	"bytes"
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
	"testing"
	"time"

	"gatehouse/cmd/stack/stacktest"
	"gatehouse/contracts"
	"gatehouse/contracts/coverage"
	"gatehouse/contracts/matching"
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
}

func (e expectation) operation() string {
	i := e.pact.Interactions[0]
	path, _, _ := strings.Cut(i.Path, "?")
	return i.Method + " " + path
}

// expectations returns the interactions of the committed pacts with gatehouse.
func expectations(t *testing.T) (all []expectation) {
	t.Helper()
	for _, p := range contracts.Own() {
		for i, one := range p.Interactions {
			alone := *p
			alone.Interactions = p.Interactions[i : i+1]
			want, err := one.Expected()
			text, alsoErr := json.Marshal(one.Raw()["response"])
			stacktest.Must(t, errors.Join(err, alsoErr))
			all = append(all, expectation{&alone, p.Consumer + ": " + one.Description, want.Status, string(text)})
		}
	}
	return all
}

// group is the interactions with an operation, and the mutants of all those responses.
type group struct {
	all    []expectation
	byHand []mutants.Mutant
}

// TestMutants requires that every mutant makes a pact fail. It verifies all interactions with services
// without a defect as well: else a mutant would fail for the way in which it is made.
func TestMutants(t *testing.T) {
	began, everyone := time.Now(), slices.Concat(generated(t), mutants.All())
	byPart, groups := map[string][]mutants.Mutant{}, map[string]*group{}
	for _, e := range expectations(t) {
		byPart[e.name] = nil
		if o := e.operation(); groups[o] == nil {
			groups[o] = &group{all: []expectation{e}}
		} else {
			groups[o].all = append(groups[o].all, e)
		}
	}
	var jobs []job
	for _, m := range everyone {
		_, known := byPart[m.Interaction]
		switch g := groups[m.Operation]; {
		case known:
			byPart[m.Interaction] = append(byPart[m.Interaction], m)
		case g == nil || m.Interaction != "":
			t.Errorf("%s: no interaction has the response that it breaks", m)
		case m.Asks:
			jobs = append(jobs, func() error {
				err := (&group{all: g.all}).try(t.Context(), m, nil)
				if !errors.Is(err, errDefect) {
					return errors.Join(err, fmt.Errorf("%s: no pact fails", m))
				}
				return nil
			})
		default:
			g.byHand = append(g.byHand, m)
		}
	}
	for operation, g := range groups {
		jobs = append(jobs, func() error { return g.try(t.Context(), mutants.Control(operation), byPart) })
	}
	survivors := run(jobs)
	for _, err := range survivors {
		t.Errorf("survived: %v", err)
	}
	// scripts/contracts prints this line.
	t.Logf("%d mutants, %d survived, in %.1f s", len(everyone), len(survivors),
		time.Since(began).Seconds())
}

// job tries mutants. Its error joins one for each that survives.
type job func() error

// run runs jobs and returns their errors. Tests print them afterwards, since the library discards
// what is printed meanwhile.
func run(jobs []job) (wrong []error) {
	var group sync.WaitGroup
	var mu sync.Mutex
	slots := make(chan struct{}, atOnce)
	for _, one := range jobs {
		slots <- struct{}{}
		group.Go(func() {
			err := one()
			mu.Lock()
			wrong = append(wrong, contracts.Errors(err)...)
			mu.Unlock()
			<-slots
		})
	}
	group.Wait()
	return wrong
}

// tape is a service that asks another one each request once.
type tape struct {
	service        http.Handler
	said           map[string]*httptest.ResponseRecorder
	sent, received time.Time // of the first request
}

// ServeHTTP implements http.Handler.
func (t *tape) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	key := fmt.Sprint(r.Method, r.URL, r.Header, string(body))
	said, sent := t.said[key], time.Now()
	if said == nil {
		said = httptest.NewRecorder()
		r.Body = io.NopCloser(bytes.NewReader(body))
		t.service.ServeHTTP(said, r)
		if t.said[key] = said; len(t.said) == 1 {
			t.sent, t.received = sent, time.Now()
		}
	}
	maps.Copy(w.Header(), said.Header().Clone())
	w.WriteHeader(said.Code)
	_, _ = w.Write(said.Body.Bytes()) // the comparison notices a truncated body
}

// errDefect means that an interaction fails, or that a response breaks a relation.
var errDefect = errors.New("a pact fails")

// try verifies the interactions of a group with one service. All mutants change the same response: a
// service for each would take most of the time. Its errors are errDefect for that service itself.
func (g *group) try(ctx context.Context, service mutants.Mutant,
	byPart map[string][]mutants.Mutant) (err error) {
	var p *contracts.Provider
	var e expectation // that is verified
	var broken error  // relations that the last response breaks
	tape := new(tape)
	checked := func(m mutants.Mutant) http.Handler {
		return coverage.Checked(m.Wrap(tape), func() map[string]any {
			values := p.Values()
			if len(tape.said) > 0 { // no time passes for the mutants
				values["sent"], values["received"] = tape.sent, tape.received
			}
			return values
		}, func(err error) { broken = errors.Join(broken, err) })
	}
	surviving := map[*mutants.Mutant]http.Handler{}
	for i := range g.byHand {
		surviving[&g.byHand[i]] = checked(g.byHand[i])
	}
	first, again := checked(service), checked(service)
	serve := func(w http.ResponseWriter, r *http.Request) error {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		send := func(service http.Handler, w http.ResponseWriter) {
			c := r.Clone(ctx)
			c.Body, broken = io.NopCloser(bytes.NewReader(body)), nil
			service.ServeHTTP(w, c)
		}
		tape.said = map[string]*httptest.ResponseRecorder{}
		if send(first, w); broken != nil {
			return fmt.Errorf("%w with %s: %v", errDefect, e.name, broken)
		}
		expected, err := e.expected(p.Values())
		if err != nil {
			return err
		}
		fails := func(mutant http.Handler) bool {
			got := httptest.NewRecorder()
			send(mutant, got)
			return broken != nil || len(matching.Compare(expected, &matching.Actual{
				Status: got.Code, Headers: got.Header(), Body: got.Body.Bytes()})) > 0
		}
		if fails(again) {
			return fmt.Errorf("%w with the tape of %s: %v", errDefect, e.name, broken)
		}
		for _, m := range byPart[e.name] {
			if !fails(m.Wrap(tape)) {
				err = errors.Join(err, fmt.Errorf("%s: %s holds", m, e.name))
			}
		}
		maps.DeleteFunc(surviving, func(m *mutants.Mutant, mutant http.Handler) bool {
			return (m.Status == 0 || m.Status == e.status) && strings.Contains(e.response, m.Word) &&
				fails(mutant)
		})
		return err
	}
	p, wrong := contracts.Start(contracts.Config{Wrap: func(real http.Handler) http.Handler {
		tape.service = real
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			err = errors.Join(err, serve(w, r))
		})
	}})
	if wrong != nil {
		return wrong
	}
	defer func() { err = errors.Join(err, p.Close()) }()
	v, wrong := verify.New(verify.Of(p))
	if wrong != nil {
		return wrong
	}
	defer func() { err = errors.Join(err, v.Close()) }()
	for _, e = range g.all {
		got, wrong := v.Pact(ctx, e.pact, false, func(*report.Interaction) {})
		if wrong == nil && got[0].Result == report.Failed {
			wrong = fmt.Errorf("%w: %s: %v", errDefect, e.name, got[0].Problems)
			if got[0].Problems[0].Where == "state" {
				wrong = fmt.Errorf("%s: %v", e.name, got[0].Problems)
			}
		}
		if err = errors.Join(err, wrong); wrong != nil || errors.Is(err, errDefect) {
			return err
		}
	}
	for m := range surviving {
		err = errors.Join(err, fmt.Errorf("%s: no pact fails", m))
	}
	return err
}

// expected returns the response that the interaction expects with the values of its states.
func (e expectation) expected(values map[string]any) (*matching.Expected, error) {
	text, err := json.Marshal(values)
	d := json.NewDecoder(bytes.NewReader(text)) // as a verifier gets them
	d.UseNumber()
	if err := errors.Join(err, d.Decode(&values)); err != nil {
		return nil, err
	}
	return e.pact.Interactions[0].ExpectedWith(values)
}
