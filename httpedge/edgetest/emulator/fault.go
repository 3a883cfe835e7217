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

// Fault answers a request in the emulator's place. elements are the right answers, one for each query; the headers that
// tell of a budget are set already.
type Fault func(w http.ResponseWriter, r *http.Request, elements []json.RawMessage)

// Status answers with a status and a body that is none of the interface's.
func Status(code int) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ []json.RawMessage) {
		http.Error(w, "<html>"+http.StatusText(code)+"</html>", code)
	}
}

// Body answers 200 with any text.
func Body(text string) Fault {
	return func(w http.ResponseWriter, _ *http.Request, _ []json.RawMessage) {
		if _, err := w.Write([]byte(text)); err != nil {
			return // the client has gone
		}
	}
}

// Huge answers 200 with so many bytes of JSON.
func Huge(bytes int) Fault { return Body(`"` + strings.Repeat("x", bytes-2) + `"`) }

// Throttle answers 429 and tells that the window ends in so many seconds; below 0 it tells nothing.
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

// Redirect sends the client to another path of the emulator, where it counts as a stray if it goes.
func Redirect(w http.ResponseWriter, r *http.Request, _ []json.RawMessage) {
	http.Redirect(w, r, "/elsewhere", http.StatusTemporaryRedirect)
}

// Hang never answers.
func Hang(_ http.ResponseWriter, r *http.Request, _ []json.RawMessage) { <-r.Context().Done() }

// HangInBody answers the beginning of a 200 and never the rest.
func HangInBody(w http.ResponseWriter, r *http.Request, elements []json.RawMessage) {
	w.Header().Set("Content-Length", "10000")
	if _, err := w.Write(elements[0][:10]); err != nil {
		return // the client has gone
	}
	if err := http.NewResponseController(w).Flush(); err != nil {
		return // the same
	}
	<-r.Context().Done()
}

// Drop closes the connection without an answer.
func Drop(http.ResponseWriter, *http.Request, []json.RawMessage) { panic(http.ErrAbortHandler) }

// Shorten leaves the last element of every batch out, and answers single look-ups rightly.
func Shorten(w http.ResponseWriter, r *http.Request, elements []json.RawMessage) {
	if r.Method == http.MethodPost {
		elements = elements[:len(elements)-1]
	}
	write(w, elements, r.Method == http.MethodPost)
}

// Spoil makes nonsense of one element of every batch, and answers single look-ups rightly.
func Spoil(at int) Fault {
	return func(w http.ResponseWriter, r *http.Request, elements []json.RawMessage) {
		if r.Method == http.MethodPost && at < len(elements) {
			elements = slices.Clone(elements)
			elements[at] = json.RawMessage(`{"status":"success","query":"nonsense","lat":"north"}`)
		}
		write(w, elements, r.Method == http.MethodPost)
	}
}

// Swap answers every batch with the first two elements in each other's place, and single look-ups rightly.
func Swap(w http.ResponseWriter, r *http.Request, elements []json.RawMessage) {
	if len(elements) > 1 {
		elements = slices.Clone(elements)
		elements[0], elements[1] = elements[1], elements[0]
	}
	write(w, elements, r.Method == http.MethodPost)
}

// Slow answers rightly after a time.
func Slow(after time.Duration) Fault {
	return func(w http.ResponseWriter, r *http.Request, elements []json.RawMessage) {
		if pause(r.Context(), after) {
			write(w, elements, r.Method == http.MethodPost)
		}
	}
}

// Chatter answers a single look-up rightly and sends its path right behind, which nobody asked for. The connection ends
// then.
func Chatter(w http.ResponseWriter, r *http.Request, elements []json.RawMessage) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err) // HTTP/1.1 always can
	}
	defer conn.Close()
	_, err = fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%sand another thing: %s\r\n",
		len(elements[0]), elements[0], r.URL.Path)
	if err != nil {
		return // the client has gone
	}
}
