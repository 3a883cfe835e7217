package coverage

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// adminPrefix begins the paths of the admin API.
const adminPrefix = "/admin/v1/"

// eachRecord calls check with the body of a response of the admin API, and with each object in its
// lists.
func eachRecord(e *Exchange, check func(object) error) error {
	if !strings.HasPrefix(e.Path, adminPrefix) || e.Status >= http.StatusBadRequest || e.object() == nil {
		return nil
	}
	all := []object{e.object()}
	for _, v := range e.object() {
		for _, one := range list(v) {
			if o := members(one); o != nil {
				all = append(all, o)
			}
		}
	}
	for _, o := range all {
		if err := check(o); err != nil {
			return err
		}
	}
	return nil
}

// recordTimes compares times with each other and with that of the request.
func recordTimes(e *Exchange) error {
	return eachRecord(e, func(o object) error {
		at := func(name string) time.Time {
			text, _ := o[name].(string)
			t, _ := time.Parse(time.RFC3339, text) // zero = it is not there; the document has the format
			return t
		}
		for _, name := range []string{"created_at", "updated_at", "signed_in_at", "last_seen_at", "last_used_at", "time"} {
			if at(name).After(e.Received.Add(leeway)) {
				return fmt.Errorf("got %s %v, want a time in the past", name, o[name])
			}
		}
		for _, name := range []string{"expires_at", "awaits_consent_until"} {
			if t := at(name); !t.IsZero() && t.Before(e.Sent.Add(-leeway)) {
				return fmt.Errorf("got %s %v, want a time in the future", name, o[name])
			}
		}
		for _, name := range []string{"updated_at", "starts_at", "rotate_again_at"} {
			if t, made := at(name), at("created_at"); !t.IsZero() && t.Before(made) {
				return fmt.Errorf("got %s %v before created_at %v", name, o[name], o["created_at"])
			}
		}
		return nil
	})
}

// recordOfPath compares ids in responses with the path, and with Location of a record that is new.
func recordOfPath(e *Exchange) error {
	o := e.object()
	if !strings.HasPrefix(e.Path, adminPrefix) || e.Status >= http.StatusBadRequest || o == nil {
		return nil
	}
	path := e.Path
	if to := e.Header.Get("Location"); e.Status == http.StatusCreated && to != "" {
		path = to
	}
	parts := strings.Split(strings.TrimPrefix(path, adminPrefix), "/")
	id := map[string]string{"clients": "client_id", "users": "id", "groups": "name", "attributes": "name",
		"claims": "name", "resources": "number", "invitations": "id", "providers": "id"}[parts[0]]
	if got := o[id]; len(parts) > 1 && got != nil && plain(got) != parts[1] {
		return fmt.Errorf("got %s %v at %s", id, got, path)
	}
	base, known := e.Values["issuer"].(string)
	if to, ok := o["redirect_uri"].(string); ok && known && !strings.HasPrefix(to, base+"/") {
		return fmt.Errorf("got the redirect_uri %s, want one of %s", to, base)
	}
	for _, server := range list(members(o["metadata"])["authorization_servers"]) {
		if known && server != base {
			return fmt.Errorf("got the authorization server %v, want %s", server, base)
		}
	}
	if service, known := e.Values["service_id"]; known && parts[0] == "users" && o["service_id"] != nil &&
		plain(o["id"]) == plain(e.Values["user_id"]) && o["service_id"] != service {
		return fmt.Errorf("got service_id %v, want %v of the state", o["service_id"], service)
	}
	return nil
}

// noWebPage requires that no page of another site may read what operators get.
func noWebPage(e *Exchange) error {
	if origin := e.Header.Get("Access-Control-Allow-Origin"); strings.HasPrefix(e.Path, adminPrefix) && origin != "" {
		return fmt.Errorf("got Access-Control-Allow-Origin %s, want none", origin)
	}
	return nil
}
