package account

import "testing"

func TestPasskeyDomain(t *testing.T) {
	for _, row := range []struct{ issuer, wanted, want string }{
		{"https://id.example.com", "", "id.example.com"},
		{"https://ID.example.com:8443/auth", "", "id.example.com"},
		{"https://id.example.com", "example.com", "example.com"},
		{"https://id.example.com", "Example.COM", "example.com"},
		{"https://a.id.example.co.uk", "example.co.uk", "example.co.uk"},
		{"https://a.id.example.co.uk", "id.example.co.uk", "id.example.co.uk"},
		{"https://a.id.example.co.uk", "co.uk", "error"},
		{"https://id.example.com", "com", "error"},
		{"https://id.example.com", "ample.com", "error"},
		{"https://id.example.com", "other.example.com", "error"},
		{"https://id.example.com", "a.id.example.com", "error"},
		{"https://id.example.com", ".example.com", "error"},
		{"https://id.example.com", "xample.com", "error"},
		{"http://localhost:8080", "", "localhost"},
		{"http://app.localhost", "", "app.localhost"},
		{"http://id.example.com", "", ""},
		{"http://id.example.com", "example.com", "error"},
		{"https://192.0.2.7", "", ""},
		{"https://[2001:db8::1]:443", "", ""},
		{"http://127.0.0.1:8080", "", ""},
		{"http://127.0.0.1:8080", "localhost", "error"},
		{"", "", ""},
	} {
		got, err := PasskeyDomain(row.issuer, row.wanted)
		if err != nil {
			got = "error"
		}
		if got != row.want {
			t.Errorf("%s for %q: got %q (%v), want %q", row.issuer, row.wanted, got, err, row.want)
		}
	}
}
