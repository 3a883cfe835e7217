package pages

import (
	_ "embed"
	"strings"
)

//go:embed script.js
var scriptFile string

// script adds what pages do not need: a button that shows a password, and times in the zone of the
// person.
var script = strings.ReplaceAll(strings.TrimSpace(scriptFile), "\n", "")

// ScriptSource is the source expression that lets the script of pages pass a
// Content-Security-Policy.
var ScriptSource = sourceOf(script)
