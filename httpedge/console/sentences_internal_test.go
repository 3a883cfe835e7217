package console

import (
	"slices"
	"testing"

	"gatehouse/actors/audit"
	"gatehouse/actors/texts"
)

// variants are sentences of an action that depend on more than the action.
var variants = []string{"sign_in_failed", "sign_in_refused", "session_ended", "tokens_of_app_revoked",
	"authorized_by_app"}

// TestSentencesAreOfActions holds the sentences against the vocabulary, and wants a text for each.
func TestSentencesAreOfActions(t *testing.T) {
	english := texts.Default().Of("en")
	for _, key := range sentences {
		if !slices.Contains(audit.Actions, audit.Action(key)) && !slices.Contains(variants, key) {
			t.Errorf("got a sentence for %s, want those of actions only", key)
		}
		if text := english.Plain(texts.Of("trail." + key)); text == "trail."+key {
			t.Errorf("got no text for %s, want one", key)
		}
	}
	n := &names{known: map[string]any{}}
	e := &audit.Event{Action: "something_new"}
	if got := english.Plain(n.sentence(e)); got != "The service: something new" {
		t.Errorf("got %q, want a sentence for an action without one", got)
	}
}
