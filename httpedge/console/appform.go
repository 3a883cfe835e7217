package console

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"gatehouse/actors/oauth"
	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
)

// appText is a field of an app's registration.
type appText struct {
	name  string
	lines bool // one value a line
	hint  bool // there is a text about what to enter
}

// appTexts are the fields with a text, and appFlags those that are ticked. The console has none for
// what makes a client an operator, lets it introspect every token, trusts another issuer or asks
// nobody for consent.
var (
	appTexts = []appText{
		{name: "name"}, {name: "redirect_uris", lines: true, hint: true},
		{name: "scopes", hint: true}, {name: "grants", lines: true, hint: true}, {name: "client_uri"},
		{name: "post_logout_redirect_uris", lines: true, hint: true}, {name: "backchannel_logout_uri"},
		{name: "resources", lines: true, hint: true}, {name: "jwks", lines: true, hint: true},
	}
	appFlags = []string{"require_pkce", "claims_in_id_token", "loopback_any_port", "jwt_access_tokens"}
)

// fieldPublic is a flag of a new app alone.
const fieldPublic = "public"

// fieldsOf returns the fields of a client.
func fieldsOf(c *oauth.Client) map[string]string {
	lines := func(all []string) string { return strings.Join(all, "\n") }
	flag := func(on bool) string { return map[bool]string{true: "true"}[on] }
	o := &c.Options
	return map[string]string{
		"name": c.Name, "client_uri": c.URI, "redirect_uris": lines(c.RedirectURIs),
		"scopes": strings.Join(c.Scopes.Names(), " "), "grants": lines(c.Grants.Names()),
		"post_logout_redirect_uris": lines(o.PostLogoutRedirectURIs),
		"backchannel_logout_uri":    o.BackchannelLogoutURI, "resources": lines(o.Resources),
		"jwks":         o.JWKS,
		"require_pkce": flag(o.RequirePKCE), "claims_in_id_token": flag(o.ClaimsInIDToken),
		"loopback_any_port": flag(c.LoopbackAnyPort), "jwt_access_tokens": flag(o.JWTAccessTokens),
		fieldPublic: flag(c.Public),
	}
}

// entered returns the fields of the form as they were entered. Those that the form lacks keep what
// they have in kept.
func (o *operator) entered(kept map[string]string) map[string]string {
	fields := map[string]string{}
	for _, f := range appTexts {
		fields[f.name] = kept[f.name]
		if o.has(f.name) {
			fields[f.name] = strings.ReplaceAll(o.Field(f.name), "\r\n", "\n")
		}
	}
	for _, name := range append(appFlags[:len(appFlags):len(appFlags)], fieldPublic) {
		fields[name] = o.Field(name) // a box that is not ticked is not sent
	}
	return fields
}

// has reports whether the form has a field.
func (o *operator) has(name string) bool {
	for _, p := range o.Form {
		if p.Name == name {
			return true
		}
	}
	return false
}

// apply sets what the fields say of a client. It returns what is wrong with them.
func apply(fields map[string]string, c *oauth.Client) (all []wrong) {
	o := &c.Options
	c.Name, c.URI = strings.TrimSpace(fields["name"]), strings.TrimSpace(fields["client_uri"])
	c.RedirectURIs = linesOf(fields["redirect_uris"])
	c.LoopbackAnyPort = fields["loopback_any_port"] == "true"
	o.PostLogoutRedirectURIs = linesOf(fields["post_logout_redirect_uris"])
	o.BackchannelLogoutURI = strings.TrimSpace(fields["backchannel_logout_uri"])
	o.Resources = linesOf(fields["resources"])
	o.RequirePKCE = fields["require_pkce"] == "true"
	o.ClaimsInIDToken = fields["claims_in_id_token"] == "true"
	o.JWTAccessTokens = fields["jwt_access_tokens"] == "true"
	o.JWKS = strings.TrimSpace(fields["jwks"])
	var compact bytes.Buffer
	if o.JWKS != "" && json.Compact(&compact, []byte(o.JWKS)) == nil {
		o.JWKS = compact.String() // else the check of the registration says what is wrong
	}
	c.Scopes, c.Grants = 0, 0
	for name := range strings.FieldsSeq(fields["scopes"]) {
		scope, err := oauth.ParseScopes(name)
		if err != nil || !oauth.GrantableScopes.Contains(scope) {
			all = append(all, wrong{Field: "scopes", Key: "console.wrong_scopes"})
			break
		}
		c.Scopes |= scope
	}
	for name := range strings.FieldsSeq(fields["grants"]) {
		grant, ok := oauth.ParseGrantType(name)
		if !ok {
			all = append(all, wrong{Field: "grants", Key: "console.wrong_grants"})
			break
		}
		c.Grants |= grant
	}
	return all
}

// linesOf returns the lines of a text that are not empty.
func linesOf(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// wrongWith returns what an error says about the registration of an app; nil = it is about something
// else. Its words are those of the commands, in English.
func wrongWith(err error) []wrong {
	var fault *oauth.RegistrationError
	if !errors.As(err, &fault) {
		return nil
	}
	w := wrong{Text: fault.Error() + "."}
	for _, f := range appTexts {
		if f.name == fault.Field {
			w = wrong{Field: f.name, Text: strings.ToUpper(fault.Message[:1]) + fault.Message[1:] + "."}
		}
	}
	return []wrong{w}
}

// appForm returns the form with these fields. do says what it is for.
func (o *operator) appForm(action, do string, fields map[string]string, problems pages.Problems,
	token string) *pages.AppForm {
	form := &pages.AppForm{Action: action, FormToken: token, Do: do, Button: texts.Of("page.save")}
	for _, f := range appTexts {
		label, make := texts.Of("console.field_"+f.name), problems.Line
		if f.lines {
			make = problems.Lines
		}
		var hint texts.Text
		if f.hint {
			hint = texts.Of("console.hint_" + f.name)
		}
		form.Texts = append(form.Texts, make(f.name, label, hint, fields[f.name]))
	}
	flags := appFlags
	if do == doCreate {
		flags, form.Button = append([]string{fieldPublic}, flags...), texts.Of("console.register")
	}
	for _, name := range flags {
		form.Flags = append(form.Flags, pages.Flag{Name: name, On: fields[name] == "true",
			Label: texts.Of("console.flag_" + name)})
	}
	return form
}
