package sqlstore

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"
)

// TestSSLMode shows how each server is tried: by TLS with a certificate that is verified, by TLS
// with any certificate, or in clear text. The rows have PGSSLMODE and PGSSLNEGOTIATION.
func TestSSLMode(t *testing.T) {
	how := func(c *tls.Config) string {
		switch {
		case c == nil:
			return "clear"
		case c.InsecureSkipVerify && c.VerifyPeerCertificate == nil:
			return "any"
		}
		return "verified"
	}
	const remote, local = "postgres://u@db.example/x", "postgres://u@127.0.0.1/x"
	for _, test := range []struct{ url, mode, negotiation, want string }{
		{remote, "", "", "verified"},
		{remote, "prefer", "", "verified"},
		{remote, "disable", "", "clear"},
		{remote, "allow", "", "clear any"},
		{remote, "require", "", "any"},
		{remote, "verify-ca", "", "verified"},
		{remote, "", "direct", "verified"},
		{remote, "require", "direct", "any"},
		{remote + "?sslmode=", "", "", "verified"},
		{remote + "?sslmode=disable", "require", "", "clear"},
		{remote + "?sslmode=prefer", "", "", "any clear"},
		{remote + "?sslmode=require", "", "", "any"},
		{remote + "?sslnegotiation=direct", "", "", "verified"},
		{remote + "?sslnegotiation=direct&sslmode=require", "", "", "any"},
		{local, "", "", "any clear"},
		{local, "", "direct", "any"},
		{"postgres://u@127.0.0.1,db.example/x", "", "", "verified verified"},
		{"postgres://u@127.0.0.1,db.example/x", "disable", "", "clear clear"},
		{"postgres:///x?user=u&host=/run/postgresql,db.example", "", "", "clear verified"},
		{"postgres:///x?user=u&host=/run/postgresql", "", "", "clear"},
	} {
		t.Setenv("PGSSLMODE", test.mode)
		t.Setenv("PGSSLNEGOTIATION", test.negotiation)
		c, err := parsePostgres(test.url)
		if err != nil {
			t.Errorf("%+v: got %v", test, err)
			continue
		}
		got := []string{how(c.TLSConfig)}
		for _, other := range c.Fallbacks {
			got = append(got, how(other.TLSConfig))
		}
		if strings.Join(got, " ") != test.want {
			t.Errorf("%+v: got %v, want %s", test, got, test.want)
		}
	}
	for _, url := range []string{"postgres://u:secret@db.example:port/x",
		"postgres://u:secret@db.example/x?sslmode=secret", "postgres://u:se%zzcret@db.example/x"} {
		if _, err := parsePostgres(url); !errors.Is(err, errNotPostgres) {
			t.Errorf("%s: got %v, want %v", url, err, errNotPostgres)
		}
	}
}
