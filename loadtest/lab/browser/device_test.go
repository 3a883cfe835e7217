package browser_test

import (
	"encoding/json"
	"net/url"
	"testing"

	"gatehouse/actors/oauth"
	"gatehouse/cmd/stack/stacktest"
)

// TestConnectDevice enters the code of a device, compares it and allows the device.
func TestConnectDevice(t *testing.T) {
	withAndWithoutScripts(t, func(t *testing.T, p *person) {
		p.NewUser(t, "Ada", "ada@example.com")
		screen := p.NewClient(t, func(c *oauth.Client) {
			c.Name, c.Public, c.RedirectURIs, c.Grants = "Screen", true, nil, oauth.DeviceCodeGrant
		})
		response, err := p.Client.PostForm(p.URL+"/oauth/device_authorization",
			url.Values{"client_id": {screen.ID}, "scope": {"view-user"}})
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var device struct {
			Code string `json:"user_code"`
		}
		if err := json.NewDecoder(response.Body).Decode(&device); err != nil || device.Code == "" {
			t.Fatalf("got %d %v, want a code", response.StatusCode, err)
		}
		p.visit("/device")
		p.sees("/login", "Sign in", "to connect a device")
		p.signIn("ada@example.com", stacktest.Password)
		p.sees("/device", "Connect a device", "Ada")
		p.press("Continue")
		p.refused("/device", "user_code", "Enter the 8 letters that your device shows.")
		p.fill("user_code", device.Code)
		p.press("Continue")
		p.sees("/device", "Allow Screen to use your account on a device?", device.Code,
			"A device asked for this code just now")
		p.press("Allow")
		p.sees("/device", "Your device will be connected", "You can close this page.")
	})
}
