package contracts

import (
	"cmp"
	"errors"
	"fmt"

	"gatehouse/actors/oauth"
)

// errUnsigned is about an access token of which the service would know nothing.
var errUnsigned = errors.New("access_token: it is not signed with the key of contracts")

func checkCode(a arguments) error {
	return cmp.Or(checkScope(a), checkForm(a, "code", oauth.LooksLikeAuthorizationCode), checkChallenge(a))
}

func checkChallenge(a arguments) error {
	if s := a.text("code_challenge"); s != "" && !oauth.ValidCodeChallenge(s) {
		return fmt.Errorf("code_challenge: got %s, want the base64url form of a SHA-256, such as %s", s, CodeChallenge)
	}
	return nil
}

func checkRefreshToken(a arguments) error {
	return cmp.Or(checkScope(a), checkForm(a, "refresh_token", oauth.LooksLikeRefreshToken))
}

func checkAccessToken(a arguments) error {
	if token := a.text("access_token"); token != "" {
		if a.text("kind") == "expired" {
			return errors.New("access_token: an expired one cannot be given")
		}
		keys := Keys()
		if _, ok := keys.CheckAccessToken(token); !ok {
			return errUnsigned
		}
	}
	return checkScope(a)
}

// checkForm returns an error when the service would not take a value that is given, because of its form.
func checkForm(a arguments, name string, formed func(string) bool) error {
	if s := a.text(name); s != "" && !formed(s) {
		return fmt.Errorf("%s: it has not the form of those that gatehouse issues; the page of the states has one", name)
	}
	return nil
}
