package loadtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
)

func prepareToken(ctx context.Context, s *Setup) (*workload, error) {
	clients := make([]loadClient, s.people(8))
	err := s.provisioner.each(ctx, len(clients), "clients", func(i int) (err error) {
		clients[i], err = s.provisioner.client(ctx, strconv.Itoa(i))
		return err
	})
	if err != nil {
		return nil, err
	}
	return &workload{hit: func(h *Hit) error {
		c := clients[h.turn%uint64(len(clients))]
		_, err := h.Do("token", Request{Path: "/oauth/token", Want: Status(http.StatusOK),
			Form: url.Values{"grant_type": {"client_credentials"}, "client_id": {c.ID},
				"client_secret": {c.Secret}}})
		return err
	}}, nil
}

// prepareAuthorize gives each hit a new browser. So a user signs in several times at once, as
// people do with several devices.
func prepareAuthorize(ctx context.Context, s *Setup) (*workload, error) {
	client, err := s.provisioner.client(ctx, "authorize")
	if err != nil {
		return nil, err
	}
	people, err := s.provisioner.people(ctx, s.people(20))
	if err != nil {
		return nil, err
	}
	path := "/oauth/authorize?" + authorization(client, "prompt", "consent")
	return &workload{hit: func(h *Hit) error {
		b := browser{h: h, base: s.Target.Base}
		return b.authorize(path, client, people[h.turn%uint64(len(people))])
	}}, nil
}

// browser is the browser of a hit.
type browser struct {
	h       *Hit
	base    string
	cookies [][2]string
	form    string // form token of the current page
}

func (b *browser) authorize(path string, client loadClient, who person) error {
	at, err := b.open("authorize", Request{Path: path})
	if err != nil {
		return err
	}
	if at, err = b.open("login-page", Request{Path: at}); err != nil {
		return err
	}
	back, err := b.open("login", Request{Path: at,
		Form: url.Values{"form_token": {b.form}, "email": {who.email}, "password": {who.password}}})
	for err == nil && strings.HasPrefix(back, "/oauth/authorize") {
		back, err = b.open("authorize", Request{Path: back})
	}
	if err != nil {
		return err
	}
	if at, err = b.open("consent-page", Request{Path: back}); err != nil {
		return err
	}
	back, err = b.open("consent", Request{Path: at,
		Form: url.Values{"form_token": {b.form}, "decision": {"allow"}}})
	if err != nil {
		return err
	}
	code, err := codeIn(back)
	if err != nil {
		return err
	}
	_, err = b.h.Do("token", Request{Path: "/oauth/token", Form: redemption(client, code),
		Want: Status(http.StatusOK)})
	return err
}

// open opens a page. It returns the target of its redirect, or else its own path.
func (b *browser) open(step string, q Request) (string, error) {
	response, err := b.do(step, q)
	if err != nil {
		return "", err
	}
	if to := response.Header("Location"); to != "" {
		return strings.TrimPrefix(to, strings.TrimSuffix(b.base, "/")), nil
	}
	token := formToken.FindSubmatch(response.Body)
	if token == nil {
		return "", errors.New("a page has no form")
	}
	b.form = string(token[1])
	return q.Path, nil
}

// do sends a request with the cookies of earlier responses.
func (b *browser) do(step string, q Request) (*Response, error) {
	if len(b.cookies) > 0 {
		var cookie strings.Builder
		for i, c := range b.cookies {
			cookie.WriteString(map[bool]string{true: "; "}[i > 0] + c[0] + "=" + c[1])
		}
		q.Header = append(q.Header, [2]string{"Cookie", cookie.String()})
	}
	response, err := b.h.Do(step, q)
	if err == nil {
		response.Cookies(b.setCookie)
	}
	return response, err
}

func (b *browser) setCookie(name, value string) {
	for i := range b.cookies {
		if b.cookies[i][0] == name {
			b.cookies[i][1] = value
			return
		}
	}
	b.cookies = append(b.cookies, [2]string{name, value})
}

// refreshPool holds refresh tokens. A hit takes one and puts its successor back.
type refreshPool struct {
	client loadClient
	idle   chan string
}

func (s *Setup) refreshPool(ctx context.Context, own int) (*refreshPool, error) {
	client, all, err := s.grants(ctx, own)
	if err != nil {
		return nil, err
	}
	f := &refreshPool{client: client, idle: make(chan string, len(all))}
	for _, t := range all {
		f.idle <- t.Refresh
	}
	return f, nil
}

// grants creates a client, a user and token pairs.
func (s *Setup) grants(ctx context.Context, own int) (loadClient, []tokens, error) {
	client, err := s.provisioner.client(ctx, "tokens")
	if err != nil {
		return client, nil, err
	}
	people, err := s.provisioner.people(ctx, 1)
	if err != nil {
		return client, nil, err
	}
	all, err := s.provisioner.grants(ctx, client, people[0], s.people(own))
	return client, all, err
}

// refresh uses a refresh token and returns the new access token.
func (f *refreshPool) refresh(h *Hit) (string, error) {
	var old string
	select {
	case old = <-f.idle:
	default:
		h.fail("refresh", "all refresh tokens are in use: raise --people")
		return "", errStep
	}
	response, err := h.Do("refresh", Request{Path: "/oauth/token", Want: Status(http.StatusOK),
		Form: url.Values{"grant_type": {"refresh_token"}, "refresh_token": {old},
			"client_id": {f.client.ID}, "client_secret": {f.client.Secret}}})
	if err != nil {
		f.idle <- old // the grace period lets a client retry after a lost response
		return "", err
	}
	var got tokens
	if err := json.Unmarshal(response.Body, &got); err != nil {
		return "", fmt.Errorf("read tokens: %w", err)
	}
	f.idle <- got.Refresh
	return got.Access, nil
}

func prepareRefresh(ctx context.Context, s *Setup) (*workload, error) {
	f, err := s.refreshPool(ctx, 200)
	if err != nil {
		return nil, err
	}
	return &workload{hit: func(h *Hit) error {
		_, err := f.refresh(h)
		return err
	}}, nil
}

func prepareChurn(ctx context.Context, s *Setup) (*workload, error) {
	f, err := s.refreshPool(ctx, 200)
	if err != nil {
		return nil, err
	}
	return &workload{hit: func(h *Hit) error {
		token, err := f.refresh(h)
		for i := 0; i < 2 && err == nil; i++ {
			_, err = h.Do("profile", Request{Path: "/api/user", Header: bearer(token),
				Want: Status(http.StatusOK)})
		}
		return err
	}}, nil
}

func bearer(token string) [][2]string { return [][2]string{{"Authorization", "Bearer " + token}} }

func prepareIntrospect(ctx context.Context, s *Setup) (*workload, error) {
	client, all, err := s.grants(ctx, 100)
	if err != nil {
		return nil, err
	}
	return &workload{hit: func(h *Hit) error {
		token := all[h.turn%uint64(len(all))].Access
		_, err := h.Do("introspect", Request{Path: "/oauth/introspect",
			Form: url.Values{"token": {token}, "client_id": {client.ID},
				"client_secret": {client.Secret}}, Want: func(r *Response) string {
				if r.Status == http.StatusOK && !strings.Contains(string(r.Body), `"active":true`) {
					return "not active"
				}
				return Status(http.StatusOK)(r)
			}})
		return err
	}}, nil
}

// basicLimit is the number of requests of a token that pass in a window (interface document,
// section 8).
const basicLimit = 100

// window counts the requests of one token in one window of its rate limit.
type window struct{ passed, refused int }

// profileUse counts the requests of all tokens. Its methods may be called by many goroutines.
type profileUse struct {
	mu      sync.Mutex
	windows map[[2]uint64]*window // by number of the token and end of the window
}

func (u *profileUse) note(token uint64, r *Response) string {
	ends, err := strconv.ParseUint(r.Header("X-RateLimit-Reset"), 10, 64)
	if err != nil {
		return "no X-RateLimit-Reset"
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	w := u.windows[[2]uint64{token, ends}]
	if w == nil {
		w = &window{}
		u.windows[[2]uint64{token, ends}] = w
	}
	if r.Status == http.StatusOK {
		w.passed++
	} else {
		w.refused++
	}
	return ""
}

// exact checks that no window let more than basicLimit requests pass, and each window with refusals
// let exactly basicLimit pass. It is not tested if no token reached its limit.
func (u *profileUse) exact() Check {
	full, wrong, most := 0, 0, 0
	for _, w := range u.windows {
		most = max(most, w.passed+w.refused)
		if w.refused > 0 {
			full++
		}
		if w.passed > basicLimit || w.refused > 0 && w.passed != basicLimit {
			wrong++
		}
	}
	c := Check{What: "exactly 100 requests of a token pass in a window", OK: wrong == 0}
	switch {
	case full == 0 && wrong == 0:
		c.Untested, c.Seen = true,
			fmt.Sprintf("no token reached its limit: at most %d requests in a window", most)
	case wrong == 0:
		c.Seen = fmt.Sprintf("true in all %d windows that reached the limit", full)
	default:
		c.Seen = fmt.Sprintf("not true in %d windows; %d reached the limit", wrong, full)
	}
	return c
}

// prepareProfile uses all tokens equally, except one that gets every eighth hit and soon reaches
// its limit.
func prepareProfile(ctx context.Context, s *Setup) (*workload, error) {
	access := partOf(s.part, s.Tokens)
	if access == nil {
		_, all, err := s.grants(ctx, 200)
		if err != nil {
			return nil, err
		}
		for _, t := range all {
			access = append(access, t.Access)
		}
	}
	use := &profileUse{windows: map[[2]uint64]*window{}}
	ask := func(h *Hit, step string, i uint64) error {
		_, err := h.Do(step, Request{Path: "/api/user", Header: bearer(access[i]),
			Want: func(r *Response) string {
				if r.Status != http.StatusOK && r.Status != http.StatusTooManyRequests {
					return wrongStatus(r)
				}
				return use.note(i, r)
			}})
		return err
	}
	return &workload{
		hit: func(h *Hit) error {
			if h.turn%8 == 0 {
				return ask(h, "profile-greedy", 0)
			}
			return ask(h, "profile", 1+h.turn%uint64(max(1, len(access)-1)))
		},
		checks: func(*Result) []Check { return []Check{use.exact()} },
	}, nil
}
