package pages_test

import (
	"crypto/sha256"
	"encoding/base64"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/httpedge/pages"
)

// TestFormPost fills the form with hostile text. It must have one script, the one that the policy
// names, and one form with the fields as they are.
func TestFormPost(t *testing.T) {
	for _, attack := range append(attacks, "", "plain") {
		const uri = `https://client.example/cb?a="b"&c='<d>`
		page := pages.FormPost{Client: attack, Action: uri, Fields: []oauth.Parameter{
			{Name: "code", Value: attack}, {Name: "none", Value: ""}, {Name: "iss", Value: "https://id.example"}}}
		var scripts, forms, buttons int
		fields := map[string]string{}
		for _, n := range nodes(t, render(t, page)) {
			switch n.Data {
			case "script":
				scripts++
				sum := sha256.Sum256([]byte(n.FirstChild.Data))
				if got := "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"; got != pages.SubmitSource {
					t.Errorf("%q: got the script %s, want the one of %s", attack, n.FirstChild.Data,
						pages.SubmitSource)
				}
			case "form":
				forms++
				if attr(n, "action") != uri || attr(n, "method") != "post" {
					t.Errorf("%q: got a form to %s, want a post to %s", attack, attr(n, "action"), uri)
				}
			case "input":
				fields[attr(n, "name")] = attr(n, "value")
			case "button":
				buttons++
			case "img", "iframe", "a", "b", "textarea":
				t.Errorf("%q: got element %s, want none of its kind", attack, n.Data)
			}
		}
		want := map[string]string{"code": attack, "iss": "https://id.example"}
		if attack == "" {
			delete(want, "code")
		}
		if attack == "\x00<b>\xff\xfe" { // HTML has no NUL, and this is not UTF-8
			delete(want, "code")
			delete(fields, "code")
		}
		if scripts != 1 || forms != 1 || buttons != 1 || len(fields) != len(want) ||
			fields["code"] != want["code"] || fields["iss"] != want["iss"] {
			t.Errorf("%q: got %d scripts, %d forms, %d buttons and %v, want one of each and %v", attack,
				scripts, forms, buttons, fields, want)
		}
	}
}
