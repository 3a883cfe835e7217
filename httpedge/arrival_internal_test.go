package httpedge

import "testing"

// TestIsWhole checks which requests are handed on without a closer look. For any other one fasthttp
// might hold its buffers while it waits for the rest.
func TestIsWhole(t *testing.T) {
	const get = "GET / HTTP/1.1\r\nHost: x\r\n"
	for text, want := range map[string]bool{
		get + "\r\n": true,
		get + "Connection: close\r\nContent-Type: a\r\nTE: gzip\r\nETag: a\r\n\r\n": true,
		"GET / HTTP/1.0\r\n\r\n": true,

		"":                                   false,
		"\r\n":                               false,
		"\r\n\r\n":                           false,
		"\r\n" + get + "\r\n":                false,
		get:                                  false,
		get + "\r\n" + get + "\r\n":          false,
		get + "\r\nbody\r\n\r\n":             false,
		get + "Content-Length: 9\r\n\r\n":    false,
		get + "content-LENGTH:0\r\n\r\n":     false,
		get + "Transfer-Encoding: a\r\n\r\n": false,
		get + "Expect: a\r\n\r\n":            false,
		get + "A: b\n\r\n\r\n":               false,
		get + "A: b\r\n continued\r\n\r\n":   false,
		get + "A: b\r\n\tcontinued\r\n\r\n":  false,
		get + "A: b\n\nC: d\r\n\r\n":         false,
	} {
		if got := isWhole([]byte(text)); got != want {
			t.Errorf("%q: got %t, want %t", text, got, want)
		}
	}
}
