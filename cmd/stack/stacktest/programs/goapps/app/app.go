// Package app has what the apps share: their configuration, and the page that shows who is signed
// in.
package app

import (
	"encoding/json"
	"fmt"
	"html"
	"log"
	"net"
	"net/http"
	"os"
)

// The configuration of an app.
var (
	Issuer = os.Getenv("ISSUER")
	ID     = os.Getenv("CLIENT_ID")
	Secret = os.Getenv("CLIENT_SECRET")
	Base   = "http://127.0.0.1:" + os.Getenv("PORT")
)

// Show responds with the state of the app as text that a test can read.
func Show(w http.ResponseWriter, state any) {
	text, err := json.Marshal(state)
	if err != nil {
		panic(err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	fmt.Fprintf(w, `<!doctype html><title>App</title><pre id="state">%s</pre>`, html.EscapeString(string(text)))
}

// Fail responds with an error.
func Fail(w http.ResponseWriter, err error) {
	log.Print(err)
	http.Error(w, "app error: "+err.Error(), http.StatusInternalServerError)
}

// Listen serves the registered handlers and prints a line when it is ready.
func Listen() {
	listener, err := net.Listen("tcp", "127.0.0.1:"+os.Getenv("PORT"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("ready")
	log.Fatal(http.Serve(listener, nil))
}
