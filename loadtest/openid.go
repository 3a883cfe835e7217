package loadtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

// signedIn is a person who has signed in and consented to a client.
type signedIn struct {
	client  loadClient
	cookies [][2]string // of the browser
}

// signIn creates people who have signed in and consented to a client, which is registered with
// these members.
func (s *Setup) signIn(ctx context.Context, name string, members map[string]any,
	more ...string) ([]signedIn, error) {
	client, err := s.provisioner.clientWith(ctx, name, members)
	if err != nil {
		return nil, err
	}
	people, err := s.provisioner.people(ctx, s.people(4))
	if err != nil {
		return nil, err
	}
	all := make([]signedIn, len(people))
	for i := range all { // one by one, since few passwords are checked at once
		b := s.operator.browser()
		if _, err := client.allow(ctx, b, people[i], more...); err != nil {
			return nil, fmt.Errorf("sign in: %w", err)
		}
		all[i].client = client
		for _, c := range b.Client.Jar.Cookies(nil) {
			all[i].cookies = append(all[i].cookies, [2]string{c.Name, c.Value})
		}
		s.Progress(i+1, len(all), "sessions")
	}
	return all, nil
}

// prepareOpenID has people who have signed in before come back with an id_token.
func prepareOpenID(ctx context.Context, s *Setup) (*workload, error) {
	asked := []string{"scope", "openid profile email", "nonce", "load"}
	people, err := s.signIn(ctx, "openid",
		map[string]any{"scopes": []string{"openid", "profile", "email"}}, asked...)
	if err != nil {
		return nil, err
	}
	path := "/oauth/authorize?" + authorization(people[0].client, asked...)
	return &workload{hit: func(h *Hit) error {
		who := people[h.turn%uint64(len(people))]
		b := browser{h: h, base: s.Target.Base, cookies: slices.Clone(who.cookies)}
		back, err := b.open("authorize", Request{Path: path})
		if err != nil {
			return err
		}
		code, err := codeIn(back)
		if err != nil {
			return err
		}
		_, err = h.Do("token", Request{Path: "/oauth/token", Form: redemption(who.client, code),
			Want: withIDToken})
		return err
	}}, nil
}

// withIDToken is a Request.Want for tokens with an id_token.
func withIDToken(r *Response) string {
	if r.Status == http.StatusOK && !strings.Contains(string(r.Body), `"id_token":"`) {
		return "no id_token"
	}
	return Status(http.StatusOK)(r)
}

// prepareDevice has people who have signed in before connect devices.
func prepareDevice(ctx context.Context, s *Setup) (*workload, error) {
	people, err := s.signIn(ctx, "device", map[string]any{"grants": []string{"authorization_code",
		"refresh_token", deviceGrant}})
	if err != nil {
		return nil, err
	}
	return &workload{hit: func(h *Hit) error {
		who := people[h.turn%uint64(len(people))]
		return who.connect(&browser{h: h, base: s.Target.Base, cookies: slices.Clone(who.cookies)})
	}}, nil
}

// connect gets a device code, allows it in a browser and redeems it.
func (p *signedIn) connect(b *browser) error {
	asked := url.Values{"client_id": {p.client.ID}, "client_secret": {p.client.Secret}}
	response, err := b.h.Do("device-code", Request{Path: "/oauth/device_authorization", Form: asked,
		Want: Status(http.StatusOK)})
	if err != nil {
		return err
	}
	var device struct {
		Code     string `json:"device_code"`
		UserCode string `json:"user_code"`
	}
	if err := json.Unmarshal(response.Body, &device); err != nil {
		return fmt.Errorf("read device code: %w", err)
	}
	if _, err := b.open("device-page", Request{Path: "/device"}); err != nil {
		return err
	}
	form := url.Values{"user_code": {device.UserCode}, "form_token": {b.form}}
	if _, err := b.open("enter-code", Request{Path: "/device", Form: form}); err != nil {
		return err
	}
	form.Set("form_token", b.form)
	form.Set("decision", "allow")
	done, err := b.open("allow", Request{Path: "/device", Form: form})
	if err != nil {
		return err
	}
	if !strings.Contains(done, "done=allow") {
		return errors.New("the device was not allowed")
	}
	asked.Set("grant_type", deviceGrant)
	asked.Set("device_code", device.Code)
	_, err = b.h.Do("token", Request{Path: "/oauth/token", Form: asked, Want: Status(http.StatusOK)})
	return err
}
