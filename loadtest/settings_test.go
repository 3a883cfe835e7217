package loadtest

import "testing"

func TestSettingsContainNoCredentials(t *testing.T) {
	for _, c := range []struct{ base, want string }{
		{"http://127.0.0.1:8080", "http://127.0.0.1:8080"},
		{"https://user:secret@gatehouse.example/?token=secret#secret", "https://gatehouse.example"},
		{"http://127.0.0.1:80 80", ""},
	} {
		got := settings(&Setup{
			Target: Target{Base: c.base, ClientID: "id", ClientSecret: "secret"}}, Config{})
		if got.Target != c.want {
			t.Errorf("%s: got %q, want %q", c.base, got.Target, c.want)
		}
	}
}
