package stacktest_test

import (
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/token"
	"gatehouse/cmd/stack/stacktest"
)

// rateHeaders are the headers of every counted response.
var rateHeaders = []string{"X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}

// TestDecisionsOfOtherEndpoints has all endpoints except authorize and token.
func TestDecisionsOfOtherEndpoints(t *testing.T) {
	rows(t, []rowTest{
		{"profile check order", profileCheckOrder},
		{"401 body", func(r *row) {
			c, u := r.client(), r.user()
			revoked := r.issue(c, u, oauth.ViewUser)
			r.post("/oauth/revoke", []string{"token", revoked.access, "client_id", c.ID, "client_secret",
				c.Secret}).object(r.t, 200)
			other := r.issue(c, u, oauth.ViewUser)
			var bodies []string
			for _, token := range []string{revoked.access, "gtat_unknown", other.access[:20],
				other.access + "x", other.refresh, "\"", "gtat_é"} {
				a := r.profile(token)
				a.invalid(r.t)
				bodies = append(bodies, a.Body)
			}
			for _, body := range bodies {
				if body != bodies[0] {
					r.t.Errorf("got %s and %s, want equal bodies", bodies[0], body)
				}
			}
			r.send("GET", r.URL+"/api/user", "").invalid(r.t)
		}},
		{"rate limit", rateLimit},
		{"rate limit, exact under concurrency", func(r *row) {
			tokens := r.issue(r.client(), r.user(), oauth.UserScopes)
			for path, limit := range map[string]int{"/api/user": 100, "/api/user/details": 50} {
				statuses := make([]int, 160)
				var all sync.WaitGroup
				for worker := range 16 {
					all.Go(func() {
						for i := worker; i < len(statuses); i += 16 {
							statuses[i] = r.profile(tokens.access, path).Status
						}
					})
				}
				all.Wait()
				counts := map[int]int{}
				for _, status := range statuses {
					counts[status]++
				}
				if counts[200] != limit || counts[429] != len(statuses)-limit {
					r.t.Errorf("%s: got %v, want %d successes", path, counts, limit)
				}
			}
		}},
		{"profile JSON", profileJSON},
		{"cleanup", func(r *row) {
			c, then := r.client(), time.Now().Add(-2*time.Hour)
			old := r.issueAt(then, redemption(c, r.code(c, r.user(), then, nil)))
			for removed := 1; removed > 0; {
				var err error
				if removed, err = r.Store.Sweep(r.t.Context(), time.Now()); err != nil {
					r.t.Fatal(err)
				}
			}
			r.profile(old.AccessToken).denied(r.t, 401, "token_expired")
			r.token(renewal(c, old.RefreshToken)...).tokens(r.t)
		}},
		{"brute force: passwords", wrongPasswords},
		{"brute force: client secrets", func(r *row) {
			c := r.client()
			a := r.token(ownToken(c, "client_secret", "wrong")...)
			for range 30 {
				if a.Status == 401 {
					a = r.token(ownToken(c, "client_secret", "wrong")...)
				}
			}
			a.FailsAs(r.t, 429, "temporarily_unavailable")
			if wait := a.retryAfter(r.t); wait < 1 || wait > 10 {
				r.t.Errorf("got Retry-After %d, want at most 10 seconds", wait)
			}
			r.token(ownToken(c)...).object(r.t, 200)
			r.caller = "203.0.113.77"
			r.token(ownToken(c)...).object(r.t, 200)
			r.token(ownToken(c, "client_secret", "wrong")...).FailsAs(r.t, 401, "invalid_client")
		}},
	})
}

func profileCheckOrder(r *row) {
	c := r.client(func(c *oauth.Client) { c.DetailApproved = false })
	tokens := r.issue(c, r.user(), oauth.DetailUser)
	bare := r.send("GET", r.URL+"/api/user", "")
	bare.invalid(r.t)
	bare.Has(r.t, "WWW-Authenticate", `Bearer realm="gatehouse"`)
	for _, elsewhere := range []reply{
		r.send("GET", r.URL+"/api/user?access_token="+tokens.access, ""),
		r.send("GET", r.URL+"/api/user/details", "access_token="+tokens.access, "Content-Type", formType),
		r.send("GET", r.URL+"/api/user", "", "Authorization", stacktest.Basic(c.ID, c.Secret)),
		r.send("GET", r.URL+"/api/user", "", "Authorization", tokens.access),
	} {
		elsewhere.invalid(r.t)
	}
	challenged := func(a reply, want string) {
		r.t.Helper()
		if got := a.Header.Get("WWW-Authenticate"); !strings.HasPrefix(got, "Bearer ") ||
			!strings.Contains(got, want) {
			r.t.Errorf("got challenge %q, want %s", got, want)
		}
	}
	challenged(r.profile("x"), `error="invalid_token"`)
	expired := r.profile(r.Seal(r.t, oauth.AccessToken{
		ClientID: c.ID, Expires: time.Now().Add(-time.Second).Unix(),
	}))
	expired.denied(r.t, 401, "token_expired")
	challenged(expired, `error="invalid_token"`)
	for i := range 51 {
		a := r.profile(tokens.access, "/api/user/details")
		if i < 50 {
			a.denied(r.t, 403, "unapproved_scope")
			challenged(a, `error="insufficient_scope"`)
			continue
		}
		a.members(r.t, 429, "error", "message", "retry_after") // before scope and approval
	}
	scopeless := r.token(ownToken(c)...).object(r.t, 200)["access_token"].(string)
	a := r.profile(scopeless, "/api/user/details")
	a.denied(r.t, 403, "insufficient_scope") // before approval
	challenged(a, `scope="detail-user"`)
	a = r.profile(scopeless)
	a.denied(r.t, 403, "insufficient_scope")
	challenged(a, `scope="view-user"`)
}

func rateLimit(r *row) {
	c, u := r.client(), r.user()
	for endpoint, path := range map[token.Endpoint]string{token.BasicProfile: "/api/user",
		token.DetailedProfile: "/api/user/details"} {
		limit := map[string]int{"/api/user": 100, "/api/user/details": 50}[path]
		tokens := r.issue(c, u, oauth.UserScopes)
		start := time.Now()
		use := func(at time.Time) {
			counter := r.CounterOf(r.t, tokens.access).Tokens
			for range limit {
				if got := counter.Admit(tokens.access, endpoint, at).Verdict; got != token.Admitted {
					r.t.Fatalf("got verdict %v, want admitted", got)
				}
			}
		}
		use(start.Add(-50 * time.Second))
		for range 3 { // a refused request is not counted
			a := r.profile(tokens.access, path)
			o := a.members(r.t, 429, "error", "message", "retry_after")
			wait := int(o["retry_after"].(float64))
			if o["error"] != "rate_limit_exceeded" || wait < 1 || wait > 11 {
				r.t.Errorf("got %s, want at most 11 seconds", a.Body)
			}
			a.Has(r.t, "Retry-After", strconv.Itoa(wait), "X-RateLimit-Limit", strconv.Itoa(limit),
				"X-RateLimit-Remaining", "0",
				"X-RateLimit-Reset", strconv.FormatInt(start.Add(10*time.Second+time.Second-1).Truncate(time.Second).Unix(), 10))
		}
		other := map[string]string{"/api/user": "/api/user/details",
			"/api/user/details": "/api/user"}[path]
		r.profile(tokens.access, other).object(r.t, 200) // separate counters
		second := r.issue(c, u, oauth.UserScopes)
		r.profile(second.access, path).Has(r.t, "X-RateLimit-Remaining",
			strconv.Itoa(limit-1))

		tokens = r.issue(c, u, oauth.UserScopes)
		use(time.Now().Add(-61 * time.Second))
		before := time.Now()
		a := r.profile(tokens.access, path)
		a.object(r.t, 200)
		a.Has(r.t, "X-RateLimit-Remaining", strconv.Itoa(limit-1))
		reset, err := strconv.ParseInt(a.Header.Get("X-RateLimit-Reset"), 10, 64)
		if in := time.Unix(reset, 0).Sub(before); err != nil || in < time.Minute || in > 63*time.Second {
			r.t.Errorf("got a reset in %v, want the end of a window that began with this request", in)
		}
	}
	scopeless := r.token(ownToken(c)...).object(r.t, 200)["access_token"].(string)
	for i := range 2 { // a 403 is counted
		r.profile(scopeless).Has(r.t, "X-RateLimit-Remaining", strconv.Itoa(99-i))
	}
	for _, name := range rateHeaders {
		r.profile("x").Has(r.t, name, "")
	}
}

func profileJSON(r *row) {
	c := r.client()
	bare := r.user(func(u *account.User) { u.Email, u.Phone = "", phoneNumber() })
	basicFields := []string{"id", "name", "email", "profile_picture", "username", "gender"}
	detailFields := append(basicFields, "bio", "phone_number", "place_of_birth", "date_of_birth",
		"address", "service_id")
	tokens := r.issue(c, bare, oauth.UserScopes)
	o := r.profile(tokens.access).members(r.t, 200, basicFields...)
	for name, value := range o {
		if (value == nil) != (name != "id" && name != "name") {
			r.t.Errorf("got %s %v, want null except for id and name", name, value)
		}
	}
	id := o["id"].(float64)
	if id != float64(bare.ID) || id != float64(int64(id)) || id < 1 || id >= 1<<53 {
		r.t.Errorf("got id %v, want an integer from 1 to 2^53-1", id)
	}
	o = r.profile(tokens.access, "/api/user/details").members(r.t, 200, detailFields...)
	if o["email"] != nil || o["phone_number"] != bare.Phone || o["bio"] != nil {
		r.t.Errorf("got %v, want no email and the phone number", o)
	}
	if !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(o["service_id"].(string)) {
		r.t.Errorf("got service_id %v, want a UUID", o["service_id"])
	}
	full := r.user(func(u *account.User) {
		u.Name, u.Username, u.Gender, u.Bio, u.PlaceOfBirth = `Rosa "R" <Ü>`, "rosa"+phoneNumber()[5:],
			"female", "a\nb\\", "Köln"
		u.Phone, u.DateOfBirth, u.Address, u.ProfilePicture = phoneNumber(), "1990-02-28", "1 Road",
			"https://pics.example/1.png"
	})
	tokens = r.issue(c, full, oauth.UserScopes)
	o = r.profile(tokens.access, "/api/user/details").members(r.t, 200, detailFields...)
	for name, want := range map[string]string{"name": full.Name, "email": full.Email,
		"username": full.Username, "gender": "female", "bio": full.Bio,
		"phone_number": full.Phone, "place_of_birth": "Köln", "date_of_birth": "1990-02-28",
		"address": "1 Road", "profile_picture": full.ProfilePicture} {
		if o[name] != want {
			r.t.Errorf("got %s %v, want %s", name, o[name], want)
		}
	}
}

// phoneNumber returns a unique phone number.
func phoneNumber() string {
	digits := regexp.MustCompile(`[^0-9]`).ReplaceAllString(oauth.NewClientSecret()+oauth.NewClientSecret(), "")
	return "+49" + (digits + "1234567890")[:10]
}

func wrongPasswords(r *row) {
	c, u, known := r.client(), r.person(), r.browser()
	known.consented(c, u)
	try := func(b *browser, email, password string) page {
		p := b.open("GET", "/login", nil)
		return b.send(p, "email", email, "password", password)
	}
	attacker := r.browser()
	p := try(attacker, u.Email, "wrong")
	for range 8 {
		if p.Status == 422 {
			p = try(attacker, u.Email, "wrong")
		}
	}
	if p.Status != 429 {
		r.t.Fatalf("got %d after 9 wrong passwords, want 429", p.Status)
	}
	if wait := (reply{Response: p.Response}).retryAfter(r.t); wait < 1 || wait > 10 {
		r.t.Errorf("got Retry-After %d, want at most 10 seconds", wait)
	}
	if p := try(known, u.Email, stacktest.Password); p.Status != 200 || p.path != "/me" {
		r.t.Errorf("got %d at %s, want a known browser signed in at once", p.Status, p.path)
	}
	many := &row{r.IdentityStack, r.t, "203.0.113.99"}
	b := many.browser()
	for i := range 40 {
		if p = try(b, "nobody"+strconv.Itoa(i)+"@example.com", "wrong"); p.Status == 429 {
			break
		}
	}
	if p.Status != 429 {
		r.t.Errorf("got %d after 40 wrong passwords of one address, want 429", p.Status)
	}
	reply{Response: p.Response}.retryAfter(r.t)
}

// TestDecisionsOnOverload closes the store, so that writes fail as in an overload.
func TestDecisionsOnOverload(t *testing.T) {
	rows(t, []rowTest{{"overload", func(r *row) {
		c, u, b := r.client(), r.person(), r.browser()
		b.consented(c, u)
		tokens := r.issue(c, u, oauth.ViewUser)
		code := r.code(c, u, time.Now(), nil)
		r.CloseStores(r.t)
		for _, form := range [][]string{redemption(c, code), renewal(c, tokens.refresh)} {
			a := r.token(form...)
			a.FailsAs(r.t, 503, "temporarily_unavailable")
			a.retryAfter(r.t)
		}
		p := b.authorize(c, "skip_account_chooser", "true")
		// A session is read again a second after it was loaded on a database that others may share.
		// Without it, the person gets an error page.
		if q, err := url.Parse(p.Location); err != nil || p.Status != 503 &&
			q.Query().Get("error") != "temporarily_unavailable" && q.Query().Get("error") != "server_error" {
			r.t.Errorf("got %d to %q, want an error for the client or the user", p.Status, p.Location)
		}
	}}})
}
