package stacktest_test

import "strings"

// admin calls the admin API.
type admin struct {
	*row
	token string
}

// operator returns an admin with the token of a new operator client.
func (r *row) operator() *admin {
	r.t.Helper()
	o := r.token(ownToken(r.client(operator), "scope", "server-operations")...).object(r.t, 200)
	return &admin{r, o["access_token"].(string)}
}

// does sends a request and checks the status, unless want is 0.
func (a *admin) does(want int, method, path, body string) reply {
	a.t.Helper()
	got := a.send(method, a.AdminURL+"/admin/v1"+path, body, "Authorization", "Bearer "+a.token,
		"Content-Type", "application/json")
	if want != 0 && got.status != want {
		a.t.Fatalf("%s %s: got %d %s, want %d", method, strings.SplitN(path, "/", 3)[1], got.status,
			got.body, want)
	}
	return got
}
