package nodes

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Ends ends access at one node while others use it: it revokes a token, or disables a user, in
// turn. A request that begins after the response must not be admitted.
type Ends struct {
	Cluster  *Cluster
	At       *Node                            // where it ends
	Used     []*Node                          // where the tokens are used
	Workers  int                              // connections that use each token
	Tokens   []Token                          // one a round, each of another user
	Together int                              // rounds at the same time; 0 = one
	Churn    bool                             // nodes of Used may be gone or frozen
	Log      func(format string, args ...any) // nil = no progress is told
}

// EndsResult is what a run of Ends saw.
type EndsResult struct {
	Rounds   int // ends that were responded to with success
	Failed   int // ends that were not
	Late     int // requests that began after the response and were admitted
	Unused   int // rounds in which a connection was not admitted before the end
	Requests int
	P50, Max time.Duration // of the responses to ends
	Problem  string        // the first failure
}

// String returns the result on one line.
func (r *EndsResult) String() string {
	text := fmt.Sprintf("%d ends, %d requests, %d admitted too late; response p50 %v, max %v",
		r.Rounds, r.Requests, r.Late, r.P50.Round(time.Microsecond), r.Max.Round(time.Millisecond))
	if r.Failed+r.Unused > 0 {
		text += fmt.Sprintf("; %d ends failed, %d rounds without use; first: %s", r.Failed, r.Unused,
			r.Problem)
	}
	return text
}

// confirmTime is how long the response to a change may wait for other nodes.
const confirmTime = 7 * time.Second

// Check returns an error if an end failed, was not effective at once, or took too long. Without
// churn each round is used.
func (r *EndsResult) Check(churn bool) error {
	if r.Late+r.Failed > 0 || r.Unused == r.Rounds || !churn && r.Unused > 0 || r.Max > confirmTime {
		return errors.New(r.String())
	}
	return nil
}

// round is the use of one token.
type round struct {
	token   Token
	disable bool         // its user; else the token is revoked
	began   atomic.Int64 // connections that have used it
	after   atomic.Int64 // connections that have used it after the end
	took    time.Duration
	err     error // of the end

	mu      sync.Mutex
	ended   time.Time // when the response arrived
	pending []Response
	used    int // admitted attempts that began before the end
	late    int // admitted attempts that began after it
}

// note takes the response of an attempt, and reports whether it began after the end.
func (r *round) note(got Response) (late bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ended.IsZero() {
		r.pending = append(r.pending, got)
		return false
	}
	r.checkResponse(got)
	return got.Began.After(r.ended)
}

// checkResponse counts a response. A token that has ended does not even have a window: 429 is wrong
// too.
func (r *round) checkResponse(got Response) {
	if got.admitted() || got.Status == http.StatusTooManyRequests {
		if got.Began.After(r.ended) {
			r.late++
		} else {
			r.used++
		}
	}
}

func (r *round) end(at time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ended = at
	for _, got := range r.pending {
		r.checkResponse(got)
	}
	r.pending = nil
}

const (
	// endTimeout only keeps a run from hanging.
	endTimeout = time.Minute
	// useInterval is the mean pause of a connection between its requests.
	useInterval = 4 * time.Millisecond
	// churnWait is how long a round waits for connections whose node may be gone.
	churnWait = time.Second
)

// Run makes one round a token, until ctx ends.
func (e *Ends) Run(ctx context.Context) (*EndsResult, error) {
	ends, err := newEnder(ctx, e.Cluster, e.At)
	if err != nil {
		return nil, err
	}
	var current atomic.Pointer[[]*round]
	var requests atomic.Int64
	working, stop := context.WithCancel(ctx)
	var workers sync.WaitGroup
	defer workers.Wait()
	defer stop()
	rounds := e.rounds()
	current.Store(&rounds[0])
	for i := range e.Workers {
		to := newDirect(e.Used[i%len(e.Used)], endTimeout)
		workers.Go(func() { use(working, to, &current, &requests) })
	}
	result := &EndsResult{}
	var took []time.Duration
	done := 0
	for i, batch := range rounds {
		current.Store(&rounds[i])
		e.wait(ctx, batch, func(r *round) int64 { return r.began.Load() })
		var ending sync.WaitGroup
		for _, r := range batch {
			ending.Go(func() { r.err = r.run(ctx, ends) })
		}
		ending.Wait()
		if ctx.Err() != nil {
			break
		}
		e.wait(ctx, batch, func(r *round) int64 { return r.after.Load() })
		before := done
		done += len(batch)
		if e.Log != nil && done/1000 > before/1000 {
			e.Log("%d ends", done)
		}
	}
	stop()
	workers.Wait()
	for _, r := range slices.Concat(rounds...)[:done] {
		result.add(r, e.Workers)
		if r.err == nil {
			took = append(took, r.took)
		}
	}
	result.Requests = int(requests.Load())
	if slices.Sort(took); len(took) > 0 {
		result.P50, result.Max = took[len(took)/2], took[len(took)-1]
	}
	return result, nil
}

// rounds returns the rounds of all tokens, in batches of those at the same time.
func (e *Ends) rounds() (all [][]*round) {
	i := 0
	for tokens := range slices.Chunk(e.Tokens, max(1, e.Together)) {
		var batch []*round
		for _, token := range tokens {
			batch = append(batch, &round{token: token, disable: i%2 == 1})
			i++
		}
		all = append(all, batch)
	}
	return all
}

// run ends the token of a round.
func (r *round) run(ctx context.Context, ends *ender) error {
	began := time.Now()
	if err := ends.end(ctx, r.token, r.disable); err != nil {
		return err
	}
	now := time.Now()
	r.took = now.Sub(began)
	r.end(now)
	return nil
}

// add counts a round that is over.
func (result *EndsResult) add(r *round, workers int) {
	if r.err != nil {
		result.Failed++
		result.Problem = cmp.Or(result.Problem, r.err.Error())
		return
	}
	result.Rounds++
	result.Late += r.late
	if r.used < workers {
		result.Unused++
		result.Problem = cmp.Or(result.Problem,
			fmt.Sprintf("%d of %d connections were admitted before an end", r.used, workers))
	}
}

// wait waits until all connections are counted in each round that has not failed.
func (e *Ends) wait(ctx context.Context, batch []*round, counted func(*round) int64) {
	longest := endTimeout
	if e.Churn {
		longest = churnWait
	}
	waits := func(r *round) bool { return r.err == nil && counted(r) < int64(e.Workers) }
	for began := time.Now(); slices.ContainsFunc(batch, waits) && time.Since(began) < longest &&
		ctx.Err() == nil; {
		time.Sleep(time.Millisecond)
	}
}

// use asks with the tokens of the current rounds in turn, again and again.
func use(
	ctx context.Context, to *direct, current *atomic.Pointer[[]*round], requests *atomic.Int64,
) {
	defer to.client.CloseIdleConnections()
	a := newAsker(to)
	type counted struct{ began, after bool } // this connection is counted in a round
	seen := map[*round]counted{}
	var last *[]*round
	for i := 0; ctx.Err() == nil; i++ {
		batch := current.Load()
		if batch != last {
			last = batch
			clear(seen)
		}
		r := (*batch)[i%len(*batch)]
		got := a.ask(r.token.Text)
		requests.Add(1)
		late, was := r.note(got), seen[r]
		if !was.began {
			r.began.Add(1)
		}
		if late && !was.after {
			r.after.Add(1)
		}
		seen[r] = counted{true, was.after || late}
		time.Sleep(rand.N(2 * useInterval))
	}
}

// ender ends tokens and users at one node. Its methods may be called concurrently.
type ender struct {
	node     *Node
	http     *http.Client
	operator Credentials

	mu    sync.Mutex
	token string    // of the operator
	until time.Time // when the token is renewed
}

// enderAt returns an ender whose node may be away.
func enderAt(c *Cluster, at *Node) *ender {
	return &ender{node: at, http: &http.Client{Timeout: endTimeout, Transport: &http.Transport{}},
		operator: c.Operator}
}

func newEnder(ctx context.Context, c *Cluster, at *Node) (*ender, error) {
	e := enderAt(c, at)
	_, err := e.bearer(ctx)
	return e, err
}

// bearer returns an access token of the operator.
func (e *ender) bearer(ctx context.Context) (string, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if time.Now().Before(e.until) {
		return e.token, nil
	}
	var got struct {
		Token string `json:"access_token"`
	}
	if err := e.post(ctx, e.node.Base+"/oauth/token", "", url.Values{
		"grant_type": {"client_credentials"}, "scope": {"server-operations"},
		"client_id": {e.operator.ID}, "client_secret": {e.operator.Secret},
	}, &got); err != nil {
		return "", err
	}
	e.token, e.until = got.Token, time.Now().Add(time.Minute)
	return e.token, nil
}

// end disables the user of a token, or revokes the token (RFC 7009).
func (e *ender) end(ctx context.Context, token Token, disable bool) error {
	if disable {
		return e.disable(ctx, token.User)
	}
	return e.post(ctx, e.node.Base+"/oauth/revoke", "", url.Values{"token": {token.Text},
		"client_id": {token.Client.ID}, "client_secret": {token.Client.Secret}}, nil)
}

// disable disables a user through the admin API.
func (e *ender) disable(ctx context.Context, user int64) error {
	bearer, err := e.bearer(ctx)
	if err != nil {
		return err
	}
	return e.post(ctx, e.node.Admin+"/admin/v1/users/"+strconv.FormatInt(user, 10)+"/disable", bearer,
		nil, nil)
}

// post sends a form, with an access token unless that is empty. It decodes the response into result
// unless that is nil.
func (e *ender) post(
	ctx context.Context, to, bearer string, form url.Values, result any,
) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, to,
		strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	if bearer != "" {
		request.Header.Set("Authorization", "Bearer "+bearer)
	}
	response, err := e.http.Do(request)
	if err != nil {
		return fmt.Errorf("end access: %w", err)
	}
	text, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		return fmt.Errorf("end access: %w", err)
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("end access: %s responded with %d: %s", request.URL.Path,
			response.StatusCode, bytes.TrimSpace(text))
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(text, result)
}
