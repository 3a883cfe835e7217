package coverage

import (
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"time"

	"gatehouse/loadtest/lab"
)

// isDescribed compares the response with the document: status, headers and members. It says nothing
// of paths and methods that the document does not have.
func isDescribed(e *Exchange) error {
	_, err := own().described.Check(e.request, e.Status, e.Header, e.text)
	return err
}

// issued returns the values of a response that the service has just made up, by name.
func (e *Exchange) issued() map[string]string {
	all := map[string]string{}
	add := func(name string, value any) {
		if text, ok := value.(string); ok && text != "" {
			all[name] = text
		}
	}
	o, c := e.object(), own()
	switch {
	case e.Method != http.MethodPost && e.Method != http.MethodGet:
	case slices.Contains(c.token, e.Path):
		add("access_token", o["access_token"])
		if o["refresh_token"] != e.Form.Get("refresh_token") {
			add("refresh_token", o["refresh_token"])
		}
		add("id_token", o["id_token"])
	case slices.Contains(c.devices, e.Path):
		add("device_code", o["device_code"])
		add("user_code", o["user_code"])
	case slices.Contains(c.register, e.Path):
		add("client_id", o["client_id"])
		add("client_secret", o["client_secret"])
	case slices.Contains(c.authorize, e.Path):
		add("code", e.authorization().Get("code"))
	}
	return all
}

func newValues(e *Exchange) error {
	if len(e.again) > 0 {
		return fmt.Errorf("got the %s of an earlier response, want a new one",
			strings.Join(slices.Sorted(slices.Values(e.again)), " and "))
	}
	return nil
}

// ofState compares ids with those of the client and the user that the states have made.
func ofState(e *Exchange) error {
	o, c := e.object(), own()
	compared := map[string]string{}
	switch {
	case e.Status != http.StatusOK:
		return nil
	case slices.Contains(c.profiles, e.Path):
		compared = map[string]string{"id": "access_user", "service_id": "service_id"}
	case slices.Contains(c.userInfo, e.Path):
		compared = map[string]string{"sub": "access_user"}
	case slices.Contains(c.introspect, e.Path) && e.Form.Get("token") == e.Values["access_token"]:
		compared = map[string]string{"sub": "access_user", "client_id": "access_client"}
	}
	for member, value := range compared {
		got, there := o[member]
		want, known := e.Values[value]
		if there && known && plain(got) != plain(want) {
			return fmt.Errorf("got %s %v, want %v of the state", member, got, want)
		}
	}
	return nil
}

// plain returns an id as text: in JSON it may be a number.
func plain(v any) string {
	if n, ok := v.(float64); ok {
		return fmt.Sprintf("%.0f", n)
	}
	return fmt.Sprint(v)
}

// ageOfState compares Age with the time of the lookup that the state made.
func ageOfState(e *Exchange) error {
	at, ok := e.Values["cached_at"].(time.Time)
	n, hasAge, err := whole(e.Header, "Age")
	if !ok || !hasAge || err != nil || e.Header.Get("X-Cache") != "hit" ||
		!sameQuery(e.Query.Get("q"), e.Values["cached_query"]) {
		return err
	}
	least, most := e.Sent.Sub(at)/time.Second-1, e.Received.Sub(at)/time.Second+1
	if age := time.Duration(n); age < least || age > most {
		return fmt.Errorf("got Age %d, want %d to %d seconds", n, least, most)
	}
	return nil
}

// sameQuery compares a query with that of a state: addresses by value.
func sameQuery(q string, of any) bool {
	text, _ := of.(string)
	a, err := netip.ParseAddr(strings.TrimSpace(q))
	b, alsoErr := netip.ParseAddr(strings.TrimSpace(text))
	return err == nil && alsoErr == nil && a == b || strings.EqualFold(q, text)
}

// completeLists returns a check of lists whose values the document enumerates: each has all of them,
// once.
func completeLists(component string) func(*Exchange) error {
	return func(e *Exchange) error {
		for name, want := range own().enumerated(component) {
			got, there := e.object()[name].([]any)
			if e.object()["authorization_grant_profiles_supported"] == nil { // the draft id-jag is off
				want = slices.DeleteFunc(slices.Clone(want), func(v any) bool { return v == draftGrant })
			}
			if there && !sameSet(got, want) {
				return fmt.Errorf("got %s %v, want %v", name, got, want)
			}
		}
		return nil
	}
}

// draftGrant is the grant type of the draft id-jag.
const draftGrant = "urn:ietf:params:oauth:grant-type:jwt-bearer"

func sameSet(a, b []any) bool {
	return len(a) == len(b) && reflect.DeepEqual(counted(a), counted(b))
}

func counted(all []any) map[string]int {
	counts := map[string]int{}
	for _, v := range all {
		counts[fmt.Sprint(v)]++
	}
	return counts
}

// authorization returns the parameters that the client gets: in the form of the page, or in
// Location.
func (e *Exchange) authorization() url.Values {
	to := e.Header.Get("Location")
	if u, err := url.Parse(to); err == nil && to != "" {
		if q := u.Query(); u.IsAbs() && (q.Has("code") || q.Has("error")) {
			return q
		}
		return nil
	}
	if form := e.formPost(); form != nil {
		return form.Fields
	}
	return nil
}

// formPost returns the form of a page that sends parameters to the client; nil = there is none.
func (e *Exchange) formPost() *lab.Form {
	if e.Status != http.StatusOK || e.Query.Get("response_mode") != "form_post" {
		return nil
	}
	forms := (&lab.Page{Body: string(e.text)}).Forms()
	if len(forms) != 1 {
		return nil
	}
	return &forms[0]
}

// authorized also compares the address that a form is sent to.
func authorized(e *Exchange) error {
	if e.Method != http.MethodGet {
		return nil
	}
	to := e.Query.Get("redirect_uri")
	form := e.formPost()
	if e.Status == http.StatusOK && e.Query.Get("response_mode") == "form_post" &&
		(form == nil || form.Action != to) {
		return fmt.Errorf("got the form %v, want one that is sent to %s", form, to)
	}
	got := e.authorization()
	if got == nil {
		return nil
	}
	if u, err := url.Parse(to); form == nil && err == nil {
		for name := range u.Query() { // they belong to the redirect URI
			got.Del(name)
		}
	}
	issuer, _ := e.issuer()
	names := slices.Sorted(maps.Keys(got))
	want := []string{"code", "iss", "state"}
	if got.Has("error") {
		want = []string{"error", "error_description", "iss", "state"}
	}
	if !e.Query.Has("state") {
		want = want[:len(want)-1]
	}
	if !slices.Equal(names, want) || got.Get("state") != e.Query.Get("state") ||
		issuer != "" && got.Get("iss") != issuer {
		return fmt.Errorf("got %v, want %v with the state %q of %s", got, want,
			e.Query.Get("state"), issuer)
	}
	return nil
}
