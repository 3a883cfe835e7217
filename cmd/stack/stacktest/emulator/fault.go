package emulator

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Fault responds to a request in place of the emulator. elements are the correct elements, one for
// each query. The budget's headers are already set.
type Fault func(w http.ResponseWriter, r *http.Request, elements []json.RawMessage)

// Status responds with a status and a body of HTML.
func Status(code int) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ []json.RawMessage) {
		http.Error(w, "<html>"+http.StatusText(code)+"</html>", code)
	}
}

// Body responds with 200 and any text.
func Body(text string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ []json.RawMessage) {
		if _, err := w.Write([]byte(text)); err != nil {
			return // the client closed the connection
		}
	}
}

// Huge responds with 200 and this many bytes of JSON.
func Huge(bytes int) Fault { return Body(`"` + strings.Repeat("x", bytes-2) + `"`) }

// Throttle responds with 429 and the seconds until the window ends; below 0, without budget
// headers.
func Throttle(seconds int) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ []json.RawMessage) {
		w.Header().Del("X-Rl")
		w.Header().Del("X-Ttl")
		if seconds >= 0 {
			w.Header().Set("X-Rl", "0")
			w.Header().Set("X-Ttl", strconv.Itoa(seconds))
		}
		w.WriteHeader(http.StatusTooManyRequests)
	}
}

// Redirect redirects to an unknown path of the emulator. A client that follows counts as a stray.
func Redirect(w http.ResponseWriter, r *http.Request, _ []json.RawMessage) {
	http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
}

// Hang never responds.
func Hang(_ http.ResponseWriter, r *http.Request, _ []json.RawMessage) { <-r.Context().Done() }

// HangInBody sends the beginning of a 200 response and never the rest.
func HangInBody(w http.ResponseWriter, r *http.Request, elements []json.RawMessage) {
	w.Header().Set("Content-Length", "10000")
	if _, err := w.Write(elements[0][:10]); err != nil {
		return // the client closed the connection
	}
	if err := http.NewResponseController(w).Flush(); err != nil {
		return // likewise
	}
	<-r.Context().Done()
}

// Drop closes the connection without a response.
func Drop(http.ResponseWriter, *http.Request, []json.RawMessage) { panic(http.ErrAbortHandler) }

// Shorten omits the last element of every batch. Single lookups are correct.
func Shorten(w http.ResponseWriter, r *http.Request, elements []json.RawMessage) {
	if r.Method == http.MethodPost {
		elements = elements[:len(elements)-1]
	}
	write(w, elements, r.Method == http.MethodPost)
}

// Spoil makes one element of every batch invalid. Single lookups are correct.
func Spoil(at int) Fault {
	return func(w http.ResponseWriter, r *http.Request, elements []json.RawMessage) {
		if r.Method == http.MethodPost && at < len(elements) {
			elements = slices.Clone(elements)
			elements[at] = json.RawMessage(`{"status":"success","query":"nonsense","lat":"north"}`)
		}
		write(w, elements, r.Method == http.MethodPost)
	}
}

// Swap swaps the first two elements of every batch. Single lookups are correct.
func Swap(w http.ResponseWriter, r *http.Request, elements []json.RawMessage) {
	if len(elements) > 1 {
		elements = slices.Clone(elements)
		elements[0], elements[1] = elements[1], elements[0]
	}
	write(w, elements, r.Method == http.MethodPost)
}

// Slow responds correctly after a delay.
func Slow(after time.Duration) Fault {
	return func(w http.ResponseWriter, r *http.Request, elements []json.RawMessage) {
		if pause(r.Context(), after) {
			write(w, elements, r.Method == http.MethodPost)
		}
	}
}

// Chatter responds correctly to a single lookup, sends more bytes after the response, and closes
// the connection.
func Chatter(w http.ResponseWriter, r *http.Request, elements []json.RawMessage) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err) // HTTP/1.1 always supports it
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn,
		"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%sand another thing: %s\r\n",
		len(elements[0]), elements[0], r.URL.Path)
	if err != nil {
		return // the client closed the connection
	}
}
