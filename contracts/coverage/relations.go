package coverage

import (
	"errors"
	"fmt"
	"math"
	"mime"
	"net/http"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Relation is a rule about the members of a response that no matcher of a pact can express, since
// it compares them with each other, with the request or with the time.
type Relation struct {
	Name  string
	Paths []string // of the responses that it is about; nil = all
	// Check returns an error for a response that breaks the rule. It accepts a response without
	// those members: the pacts require them.
	Check func(*Exchange) error
}

// The lifetimes that gatehouse serve starts with.
const (
	accessLifetime  = time.Hour
	refreshLifetime = 30 * 24 * time.Hour
	limitWindow     = time.Minute
	longestWait     = time.Minute      // of Retry-After
	registerWait    = 10 * time.Minute // the same of registrations
)

// leeway is the age that a token of a state may have on a busy machine.
const leeway = 15 * time.Minute

// Relations returns all relations. The tests of the contracts check them on every response.
func Relations() []Relation { return relations() }

var relations = sync.OnceValue(func() []Relation {
	c := own()
	return []Relation{
		{"the document describes it", nil, isDescribed},
		{"retry_after is Retry-After", nil, sameWait},
		{"Retry-After is in seconds", nil, shortWait},
		{"retry_after of items is in seconds", c.results, itemWaits},
		{"X-RateLimit-Reset is a minute after the first request", c.limited, resetInWindow},
		{"X-RateLimit-Remaining is less than X-RateLimit-Limit", c.limited, remaining},
		{"Retry-After ends at X-RateLimit-Reset", c.limited, waitUntilReset},
		{"expires_in is exp less iat", c.token, lifetime},
		{"a refresh token is new", c.token, rotated},
		{"new tokens are active", c.token, active},
		{"a revoked token is inactive", c.revoke, inactive},
		{"sub is the id of the profile", c.introspect, subject},
		{"both profiles agree, each time", c.profiles, sameProfile},
		{"ids are those of the state", nil, ofState},
		{"what is issued is new", nil, newValues},
		{"JSON is UTF-8", nil, utf8JSON},
		{"iat and exp are seconds since 1970", c.introspect, introspectedTimes},
		{"Age is at most max-age", nil, age},
		{"Age is the time since the lookup", c.results, ageOfState},
		{"lat, lon and utcOffsetSeconds are on Earth", c.results, onEarth},
		{"ipVersion is that of ip", c.results, versionOfIP},
		{"count and failed count the results", c.results, counts},
		{"results are in the order of queries", c.results, sameOrder},
		{"web pages may read every lookup", c.results, readableByAll},
		{"Access-Control-Allow-Origin is the page's origin", nil, readableByPage},
		{"endpoints are below the issuer", c.metadata, endpoints},
		{"lists of metadata are complete", c.metadata, completeLists("Metadata")},
		{"lists of the resource are complete", c.resource, completeLists("ProtectedResource")},
		{"ok is false for errors", c.results, okOfStatus},
		{"programs get no cookies and no guesses", c.programs, headers},
		{"what is about people and tokens is not stored", c.unstored, notStored},
		{"X-Request-Id is new", nil, newID},
		{"an id_token is signed by a key of the key set, for this response", c.token, idToken},
		{"sub of userinfo is the id of the profile", c.userInfo, sameSubject},
		{"challenges of userinfo name the metadata", c.userInfo, namesMetadata},
		{"keys are different and public", c.keys, publicKeys},
		{"device codes are for ten minutes", c.devices, deviceTimes},
		{"the client gets code or error, state and iss", c.authorize, authorized},
		{"records of operators are of their time", nil, recordTimes},
		{"records of operators are those of the path", nil, recordOfPath},
		{"operators' responses are for no web page", nil, noWebPage},
		{"Content-Length is the length of the body", nil, length},
	}
})

// number returns a number of a JSON object.
func number(o object, name string) (float64, bool) {
	n, ok := o[name].(float64)
	return n, ok
}

// whole returns a header that is an integer. wrong means that it is something else.
func whole(h http.Header, name string) (n int64, ok bool, wrong error) {
	text := h.Get(name)
	if text == "" {
		return 0, false, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return 0, false, fmt.Errorf("got %s %q, want an integer from 0", name, text)
	}
	return n, true, nil
}

func sameWait(e *Exchange) error {
	body, inBody := number(e.object(), "retry_after")
	header, inHeader, err := whole(e.Header, "Retry-After")
	switch {
	case err != nil || !inBody:
		return err
	case !inHeader:
		return errors.New("got retry_after without Retry-After, want both")
	case math.Abs(body-float64(header)) > 1:
		return fmt.Errorf("got retry_after %v and Retry-After %d, want the same", body, header)
	}
	return nil
}

func shortWait(e *Exchange) error {
	n, ok, err := whole(e.Header, "Retry-After")
	if err != nil || !ok {
		return err
	}
	if slices.Contains(own().register, e.Path) {
		return waits(float64(n), registerWait)
	}
	return waits(float64(n), longestWait)
}

func waits(n float64, most time.Duration) error {
	if n < 1 || n > most.Seconds() {
		return fmt.Errorf("got a wait of %v, want 1 to %v seconds", n, most.Seconds())
	}
	return nil
}

func itemWaits(e *Exchange) error {
	for _, item := range list(e.object()["results"]) {
		if n, ok := number(members(item), "retry_after"); ok {
			if err := waits(n, longestWait); err != nil {
				return err
			}
		}
	}
	return nil
}

// resetInWindow compares seconds since 1970, rounded up. A window is a minute from its first request.
func resetInWindow(e *Exchange) error {
	n, ok, err := whole(e.Header, "X-RateLimit-Reset")
	if err != nil || !ok {
		return err
	}
	first, last := e.window.from, e.window.to
	if last.IsZero() {
		last = e.Received
	}
	reset := time.Unix(n, 0)
	if reset.Before(first.Add(limitWindow).Truncate(time.Second)) ||
		reset.After(last.Add(limitWindow+time.Second)) {
		return fmt.Errorf("got the reset %d, want a minute from %d", n, first.Unix())
	}
	return nil
}

func remaining(e *Exchange) error {
	limit, ok, err := whole(e.Header, "X-RateLimit-Limit")
	left, alsoOK, alsoErr := whole(e.Header, "X-RateLimit-Remaining")
	if err := errors.Join(err, alsoErr); err != nil || !ok || !alsoOK {
		return err
	}
	if left >= limit || e.Status == http.StatusTooManyRequests && left != 0 {
		return fmt.Errorf("got %d of %d left with %d, want fewer", left, limit, e.Status)
	}
	return nil
}

func waitUntilReset(e *Exchange) error {
	reset, ok, err := whole(e.Header, "X-RateLimit-Reset")
	wait, alsoOK, alsoErr := whole(e.Header, "Retry-After")
	if err := errors.Join(err, alsoErr); err != nil || !ok || !alsoOK {
		return err
	}
	if reset < e.Sent.Unix()+wait-1 || reset > e.Received.Unix()+wait+1 {
		return fmt.Errorf("got a wait of %d s and the reset %d, want the same time", wait, reset)
	}
	return nil
}

// lifetime asks the service about the new access token. A public client cannot do that.
func lifetime(e *Exchange) error {
	expires, ok := number(e.object(), "expires_in")
	access, hasToken := e.object()["access_token"].(string)
	if !ok || !hasToken || e.Status != http.StatusOK {
		return nil
	}
	if expires <= 0 || expires > accessLifetime.Seconds() {
		return fmt.Errorf("got expires_in %v, want at most %v seconds", expires,
			accessLifetime.Seconds())
	}
	about, _ := e.introspect(access)
	exp, hasExp := number(about, "exp")
	iat, hasIAT := number(about, "iat")
	if hasExp && hasIAT && math.Abs(exp-iat-expires) > 1 {
		return fmt.Errorf("got expires_in %v, and exp − iat is %v", expires, exp-iat)
	}
	return nil
}

func active(e *Exchange) error {
	for _, name := range []string{"access_token", "refresh_token"} {
		token, ok := e.object()[name].(string)
		if !ok || e.Status != http.StatusOK {
			continue
		}
		if about, ok := e.introspect(token); ok && about["active"] != true {
			return fmt.Errorf("got a new %s that the service does not know", name)
		}
	}
	return nil
}

func inactive(e *Exchange) error {
	if e.Status != http.StatusOK || e.Form.Get("token") == "" {
		return nil
	}
	if about, ok := e.introspect(e.Form.Get("token")); ok && about["active"] != false {
		return errors.New("got a revoked token that is still active")
	}
	return nil
}

// subject asks for the profile of the token's user.
func subject(e *Exchange) error {
	sub, ok := e.object()["sub"].(string)
	if !ok || e.object()["token_type"] == nil {
		return nil
	}
	got := e.profile(own().profiles[0], "Bearer "+e.Form.Get("token"))
	id, ok := number(got.object(), "id")
	if got.Status == http.StatusOK && (!ok || strconv.FormatFloat(id, 'f', -1, 64) != sub) {
		return fmt.Errorf("got sub %s of the user %v", sub, got.object()["id"])
	}
	return nil
}

// sameProfile reads both profiles again. A limit may be used up by now.
func sameProfile(e *Exchange) error {
	if e.Status != http.StatusOK || e.Method != http.MethodGet {
		return nil
	}
	for _, path := range own().profiles {
		got := e.profile(path, e.Request.Get("Authorization"))
		if allowed := got.Header.Get("Access-Control-Allow-Origin"); allowed != "" {
			return fmt.Errorf("got %s readable by pages of %s, want only those of clients", path,
				allowed)
		}
		if got.Status != http.StatusOK {
			continue
		}
		for name, value := range e.object() {
			again, there := got.object()[name]
			if there && !reflect.DeepEqual(again, value) || !there && path == e.Path {
				return fmt.Errorf("got %s %v, and %v from %s", name, value, again, path)
			}
		}
	}
	return nil
}

func utf8JSON(e *Exchange) error {
	media, parameters, err := mime.ParseMediaType(e.Header.Get("Content-Type"))
	if err != nil || media != "application/json" {
		return nil
	}
	if charset, ok := parameters["charset"]; ok && !strings.EqualFold(charset, "utf-8") {
		return fmt.Errorf("got JSON in %s, want UTF-8", charset)
	}
	return nil
}

func rotated(e *Exchange) error {
	o := e.object()
	access, refresh := o["access_token"], o["refresh_token"]
	if refresh == nil || e.Form.Get("grant_type") == "" {
		return nil
	}
	if reflect.DeepEqual(refresh, access) || refresh == e.Form.Get("refresh_token") ||
		refresh == e.Form.Get("code") {
		return errors.New("got a refresh token that the client already has, want a new one")
	}
	return nil
}

func introspectedTimes(e *Exchange) error {
	o := e.object()
	exp, hasExp := number(o, "exp")
	iat, hasIAT := number(o, "iat")
	now := float64(e.Received.Unix())
	switch {
	case !hasExp:
		return nil
	case hasIAT && (exp-iat != accessLifetime.Seconds() || iat > now+1 ||
		iat < now-accessLifetime.Seconds()):
		return fmt.Errorf("got iat %v and exp %v, want a token of the last hour, for an hour", iat,
			exp)
	case !hasIAT && math.Abs(exp-now-refreshLifetime.Seconds()) > leeway.Seconds():
		return fmt.Errorf("got exp %v, want 30 days from now", exp)
	}
	return nil
}

// age compares Age with the lifetime in Cache-Control. What was not in a cache has no age.
func age(e *Exchange) error {
	n, ok, err := whole(e.Header, "Age")
	if err != nil || !ok {
		return err
	}
	_, text, limited := strings.Cut(e.Header.Get("Cache-Control"), "max-age=")
	most, err := strconv.ParseInt(text, 10, 64)
	if !limited || err != nil {
		return fmt.Errorf("got Age and Cache-Control %q, want max-age",
			e.Header.Get("Cache-Control"))
	}
	if n > most || e.Header.Get("X-Cache") == "miss" && n > 0 {
		return fmt.Errorf("got Age %d with max-age=%d and X-Cache %s, want less", n, most,
			e.Header.Get("X-Cache"))
	}
	return nil
}

// results returns the results of a response: one, or those of a list.
func (e *Exchange) results() []object {
	o := e.object()
	all := []object{}
	if o["location"] != nil {
		all = append(all, o)
	}
	for _, item := range list(o["results"]) {
		if one := members(item); one["location"] != nil {
			all = append(all, one)
		}
	}
	return all
}

func onEarth(e *Exchange) error {
	for _, r := range e.results() {
		place := members(r["location"])
		lat, _ := number(place, "lat")
		lon, _ := number(place, "lon")
		offset, _ := number(place, "utcOffsetSeconds")
		if math.Abs(lat) > 90 || math.Abs(lon) > 180 {
			return fmt.Errorf("got %v, %v, want degrees", lat, lon)
		}
		if math.Mod(offset, 900) != 0 || offset < -12*3600 || offset > 14*3600 {
			return fmt.Errorf("got utcOffsetSeconds %v, want quarters of an hour", offset)
		}
	}
	return nil
}

func versionOfIP(e *Exchange) error {
	for _, r := range e.results() {
		text, _ := r["ip"].(string)
		ip, err := netip.ParseAddr(text)
		if err != nil {
			continue // a domain without an address
		}
		want := "IPv6"
		if ip.Is4() {
			want = "IPv4"
		}
		if r["ipVersion"] != want {
			return fmt.Errorf("got ipVersion %v of %s, want %s", r["ipVersion"], ip, want)
		}
	}
	return nil
}

func counts(e *Exchange) error {
	o := e.object()
	all, ok := o["results"].([]any)
	if !ok {
		return nil
	}
	failed := 0
	for _, item := range all {
		if members(item)["ok"] == false {
			failed++
		}
	}
	if o["count"] != float64(len(all)) || o["failed"] != float64(failed) {
		return fmt.Errorf("got count %v and failed %v of %d results, %d of which failed",
			o["count"], o["failed"], len(all), failed)
	}
	return nil
}

func sameOrder(e *Exchange) error {
	queries, all := list(members(e.Sending)["queries"]), list(e.object()["results"])
	if e.Status != http.StatusOK || queries == nil {
		return nil
	}
	answered := []any{}
	for _, item := range all {
		answered = append(answered, members(item)["query"])
	}
	if !reflect.DeepEqual(queries, answered) {
		return fmt.Errorf("got results of %v, want those of %v", answered, queries)
	}
	return nil
}

func readableByAll(e *Exchange) error {
	if e.Status == http.StatusRequestHeaderFieldsTooLarge {
		return nil // then the path is not read
	}
	if e.Header.Get("Access-Control-Allow-Origin") != "*" {
		return fmt.Errorf("got Access-Control-Allow-Origin %q, want *",
			e.Header.Get("Access-Control-Allow-Origin"))
	}
	return exposes(e)
}

// exposes requires what a page needs for waiting and for reporting a problem.
func exposes(e *Exchange) error {
	exposed := e.Header.Get("Access-Control-Expose-Headers")
	for _, name := range []string{"Retry-After", "X-RateLimit-Reset", "X-Cache", "X-Request-Id"} {
		if !strings.Contains(exposed, name) {
			return fmt.Errorf("got %q exposed, want %s in it", exposed, name)
		}
	}
	return nil
}

// readableByPage does not require that a page may read a response: that depends on the clients.
func readableByPage(e *Exchange) error {
	allowed := e.Header.Get("Access-Control-Allow-Origin")
	if allowed == "" || allowed == "*" {
		return nil
	}
	if origin := e.Request.Get("Origin"); allowed != origin {
		return fmt.Errorf("got Access-Control-Allow-Origin %s for a page of %q", allowed, origin)
	}
	if !strings.Contains(e.Header.Get("Vary"), "Origin") {
		return fmt.Errorf("got Vary %q, want Origin in it", e.Header.Get("Vary"))
	}
	return exposes(e)
}

func endpoints(e *Exchange) error {
	o := e.object()
	issuer, _ := o["issuer"].(string)
	for name, value := range o {
		if text, ok := value.(string); ok && strings.HasSuffix(name, "_endpoint") &&
			!strings.HasPrefix(text, issuer+"/") {
			return fmt.Errorf("got %s %s, want it below %s", name, text, issuer)
		}
	}
	return nil
}

func headers(e *Exchange) error {
	if cookie := e.Header.Get("Set-Cookie"); cookie != "" {
		return errors.New("got a cookie, want none")
	}
	if e.Header.Get("X-Content-Type-Options") != "nosniff" {
		return fmt.Errorf("got X-Content-Type-Options %q, want nosniff",
			e.Header.Get("X-Content-Type-Options"))
	}
	return nil
}

func notStored(e *Exchange) error {
	if e.Header.Get("Cache-Control") != "no-store" {
		return fmt.Errorf("got Cache-Control %q, want no-store", e.Header.Get("Cache-Control"))
	}
	return nil
}

func okOfStatus(e *Exchange) error {
	ok, there := e.object()["ok"].(bool)
	if there && ok != (e.Status == http.StatusOK) {
		return fmt.Errorf("got ok %v with %d", ok, e.Status)
	}
	return nil
}

// newID leaves out requests that have an ID of their own.
func newID(e *Exchange) error {
	if id := e.Header.Get("X-Request-Id"); id != "" && e.seen &&
		e.Request.Get("X-Request-Id") == "" {
		return fmt.Errorf("got X-Request-Id %s again", id)
	}
	return nil
}

// length compares Content-Length with the body, or that of HEAD with the body of GET.
func length(e *Exchange) error {
	n, ok, err := whole(e.Header, "Content-Length")
	if err != nil {
		return err
	}
	size := int64(e.size)
	if e.Method == http.MethodHead {
		got := e.Ask(http.MethodGet, e.target, e.Request, nil)
		if e.Status != http.StatusOK || got.Status != e.Status {
			return nil
		}
		size = int64(got.size)
		if !ok && size > 0 {
			return fmt.Errorf("got no Content-Length, want the %d bytes of GET", size)
		}
	}
	if ok && n != size {
		return fmt.Errorf("got Content-Length %d of %d bytes", n, size)
	}
	return nil
}
