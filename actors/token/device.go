package token

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"gatehouse/actors/audit"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
	"gatehouse/actors/ratelimit"
)

// Limits on device codes: a burst at once, and then one for each interval. So a caller has at most
// 60 that are valid, and an IPv6 /48 240. A confidential client is not limited by its address: it
// may ask for many devices. Of oauth.MostDevices of a client, the largest network's oldest makes
// room.
const (
	callerDevices      = 20
	callerDevicesEvery = 15 * time.Second
)

// Limits on wrong user codes of a browser, an account and a caller. There is none for all together,
// so nobody can use it up for others.
const (
	browserCodes      = 10
	browserCodesEvery = 30 * time.Second
	accountCodes      = 10
	accountCodesEvery = time.Minute
	callerCodes       = 30
	callerCodesEvery  = 10 * time.Second
)

// How many callers, clients, browsers, accounts and device codes the limits remember.
const (
	limitedDevices = 10_000
	polledDevices  = 100_000
)

// deviceLimits are the limits on device codes.
type deviceLimits struct {
	callers ratelimit.Limiter[netip.Addr] // of device codes
	polls   ratelimit.Limiter[oauth.Hash] // of one device code

	guessBrowsers ratelimit.Limiter[oauth.Hash]
	guessAccounts ratelimit.Limiter[int64]
	guessCallers  ratelimit.Limiter[netip.Addr]
}

func newDeviceLimits(nodes ratelimit.Nodes) deviceLimits {
	encodeHash := func(h oauth.Hash) []byte { return h[:] }
	decodeHash := func(text []byte) (h oauth.Hash, ok bool) {
		return h, copy(h[:], text) == len(h) && len(text) == len(h)
	}
	return deviceLimits{
		callers: ratelimit.ShareThrottle(nodes, "device_callers",
			ratelimit.NewThrottle(callerDevices, callerDevicesEvery, limitedDevices)),
		polls: ratelimit.SharePolls(nodes, "device_polls",
			ratelimit.NewPolls[oauth.Hash](oauth.DevicePollInterval, oauth.DevicePollInterval, polledDevices),
			encodeHash, decodeHash),
		guessBrowsers: ratelimit.SharePacer(nodes, "device_browsers",
			ratelimit.NewPacer[oauth.Hash](browserCodes, browserCodesEvery, limitedDevices),
			encodeHash, decodeHash),
		guessAccounts: ratelimit.SharePacer(nodes, "device_accounts",
			ratelimit.NewPacer[int64](accountCodes, accountCodesEvery, limitedDevices),
			func(id int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(id)) },
			func(text []byte) (int64, bool) {
				if len(text) != 8 {
					return 0, false
				}
				return int64(binary.BigEndian.Uint64(text)), true
			}),
		guessCallers: ratelimit.ShareThrottle(nodes, "device_guesses",
			ratelimit.NewThrottle(callerCodes, callerCodesEvery, limitedDevices)),
	}
}

// BeginDevice serves a device authorization request (RFC 8628 section 3.1). A request without scope
// asks for defaults. The caller sets the VerificationURI of the response.
func (s *Service) BeginDevice(
	ctx context.Context, r *oauth.DeviceRequest, defaults oauth.Scopes, now time.Time,
) (*oauth.DeviceResponse, *oauth.Error) {
	response, err := s.beginDevice(ctx, r, defaults, now)
	return response, s.throttled(s.fault(err, "issue a device code"), r.Credentials, now)
}

func (s *Service) beginDevice(
	ctx context.Context, r *oauth.DeviceRequest, defaults oauth.Scopes, now time.Time,
) (*oauth.DeviceResponse, error) {
	if !s.inflight.Enter() {
		return nil, mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	if !s.isCurrent(now) {
		return nil, errUnavailable
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, client, err := s.client(ctx, r.ClientID)
	if err != nil && !errors.Is(err, oauth.ErrNotFound) {
		return nil, err
	}
	if err := s.prove(ctx, &r.Credentials, client, now); err != nil {
		return nil, err
	}
	if fault := client.Authenticate(r.Credentials); fault != nil {
		return nil, fault
	}
	scopes, isDefault, fault := oauth.CheckDevice(client, r, defaults)
	if fault != nil {
		return nil, fault
	}
	forgive, fault := s.countDevice(client, r.Caller, now)
	if fault != nil {
		return nil, fault
	}
	response, err := s.saveDevice(ctx, &oauth.DeviceCode{
		ClientID: client.ID, Scopes: scopes, DefaultScopes: isDefault, Place: r.Place, Caller: r.Caller,
		Created: now, Expires: now.Add(oauth.DeviceCodeLifetime),
	})
	if err != nil {
		forgive()
	}
	return response, err
}

// countDevice counts a new device code of the caller, if the client is public. forgive takes that
// back.
func (s *Service) countDevice(
	client *oauth.Client, caller netip.Addr, now time.Time,
) (forgive func(), fault *oauth.Error) {
	if !client.Public || !caller.IsValid() {
		return func() {}, nil
	}
	if wait := s.devices.callers.Take(caller, now); wait > 0 {
		return nil, tooMany("Too many device codes were requested from this address.", wait)
	}
	return func() { s.devices.callers.Forgive(caller) }, nil
}

// tooMany returns the error for a limit that is reached.
func tooMany(description string, wait time.Duration) *oauth.Error {
	return &oauth.Error{Code: oauth.TemporarilyUnavailable, Description: description,
		Hint: "Try again later.", Throttled: true, RetryAfter: wait}
}

// userCodeTries is how many user codes are tried. Few of all are in use at a time.
const userCodeTries = 5

// saveDevice saves a device code under a new user code.
func (s *Service) saveDevice(
	ctx context.Context, c *oauth.DeviceCode,
) (*oauth.DeviceResponse, error) {
	response := &oauth.DeviceResponse{DeviceCode: oauth.NewDeviceCode()}
	c.Hash = oauth.HashOf(response.DeviceCode)
	var err error
	for range userCodeTries {
		response.UserCode = oauth.NewUserCode()
		c.UserCode = oauth.HashUserCode(response.UserCode)
		err = s.config.Tokens.SaveDeviceCode(ctx, c)
		if err == nil {
			return response, nil
		}
		if !errors.Is(err, oauth.ErrConflict) {
			break
		}
	}
	return nil, fmt.Errorf("save device code: %w", err)
}

// poll returns the code that the user of a device has allowed, used or not, or why the device gets
// no tokens (RFC 8628 section 3.4).
func (s *Service) poll(
	ctx context.Context, client *oauth.Client, r *oauth.TokenRequest, now time.Time,
) (*oauth.AuthorizationCode, error) {
	var device *oauth.DeviceCode
	hash := oauth.HashOf(r.DeviceCode)
	if oauth.LooksLikeDeviceCode(r.DeviceCode) {
		var err error
		device, err = s.config.Tokens.DeviceCode(ctx, hash)
		if err != nil && !errors.Is(err, oauth.ErrNotFound) {
			return nil, err
		}
		if device == nil || device.Decision == oauth.Allowed { // it outlives the device code once used
			code, err := s.config.Tokens.AuthorizationCode(ctx, hash)
			if err == nil || !errors.Is(err, oauth.ErrNotFound) {
				return code, err
			}
		}
	}
	if device != nil && device.Decision == oauth.Allowed && device.ClientID == client.ID {
		return nil, oauth.ErrGrantGone // what the user allowed was revoked since
	}
	fault := oauth.CheckPoll(device, client, now)
	if fault == oauth.ErrDevicePending && s.devices.polls.Take(hash, now) > 0 {
		fault = oauth.ErrSlowDown
	}
	return nil, fault
}

// UserCode is a user code that a person has entered.
type UserCode struct {
	Code    string     // in the form XXXX-XXXX
	UserID  int64      // who is signed in
	Browser oauth.Hash // of what the browser is recognized by
	Caller  netip.Addr // zero = not known
}

// FindDevice returns the undecided device code with a user code, and its client. The error is
// oauth.ErrNotFound if there is none, or a throttled *oauth.Error after too many wrong ones.
func (s *Service) FindDevice(
	ctx context.Context, u UserCode, now time.Time,
) (*oauth.DeviceCode, *oauth.Client, error) {
	forgive, fault := s.countUserCode(u, now)
	if fault != nil {
		return nil, nil, fault
	}
	c, err := s.config.Tokens.DeviceCodeFor(ctx, oauth.HashUserCode(u.Code))
	if err == nil && (c.Decision != 0 || !now.Before(c.Expires)) {
		err = oauth.ErrNotFound
	}
	var client *oauth.Client
	if err == nil {
		client, err = s.Client(ctx, c.ClientID)
	}
	if err == nil && (client.Disabled || !client.Grants.Contains(oauth.DeviceCodeGrant)) {
		err = oauth.ErrNotFound
	}
	if !errors.Is(err, oauth.ErrNotFound) {
		forgive()
	}
	if err != nil {
		return nil, nil, fmt.Errorf("find device: %w", err)
	}
	return c, client, nil
}

// countUserCode counts a user code as wrong. forgive takes that back.
func (s *Service) countUserCode(u UserCode, now time.Time) (forgive func(), fault *oauth.Error) {
	var undo []func()
	forgive = func() {
		for _, undo := range undo {
			undo()
		}
	}
	d := &s.devices
	takes := []func() (time.Duration, func()){
		func() (time.Duration, func()) {
			return d.guessBrowsers.Take(u.Browser, now), func() { d.guessBrowsers.Forgive(u.Browser) }
		},
		func() (time.Duration, func()) {
			return d.guessAccounts.Take(u.UserID, now), func() { d.guessAccounts.Forgive(u.UserID) }
		},
	}
	if u.Caller.IsValid() {
		takes = append(takes, func() (time.Duration, func()) {
			return d.guessCallers.Take(u.Caller, now), func() { d.guessCallers.Forgive(u.Caller) }
		})
	}
	for _, take := range takes {
		wait, takeBack := take()
		if wait > 0 {
			forgive()
			return nil, tooMany("Too many wrong codes were entered.", wait)
		}
		undo = append(undo, takeBack)
	}
	return forgive, nil
}

// DeviceDecision is what a user has decided about a device code.
type DeviceDecision struct {
	Code      *oauth.DeviceCode
	Allow     bool
	UserID    int64
	UserEpoch int64      // as it was read with the session
	Session   oauth.Hash // of the browser; zero = the grant ends with no session
	Details   oauth.GrantDetails
}

// DecideDevice keeps a user's decision. The device then gets its tokens with its next token
// request. The error is oauth.ErrConflict if the code was decided before or has expired,
// oauth.ErrNotFound if it or its client has gone, or a failure.
func (s *Service) DecideDevice(ctx context.Context, d DeviceDecision, now time.Time) error {
	if !s.inflight.Enter() {
		return mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	_, client, err := s.client(ctx, d.Code.ClientID)
	if err != nil {
		return fmt.Errorf("read client: %w", err)
	}
	if client.Disabled {
		return fmt.Errorf("decide about device: %w", oauth.ErrNotFound)
	}
	event := audit.Event{Action: audit.DeviceDenied, Subject: audit.OfUser(d.UserID),
		Target: client.ID}
	var grant *oauth.AuthorizationCode
	if d.Allow {
		event.Action, event.Details = audit.DeviceAllowed, d.Code.Scopes.Names()
		grant = &oauth.AuthorizationCode{
			Hash: d.Code.Hash, ClientID: client.ID, UserID: d.UserID, Scopes: d.Code.Scopes,
			DefaultScopes: d.Code.DefaultScopes, Expires: d.Code.Expires,
			Epochs:  oauth.Epochs{Client: client.Epoch, User: d.UserEpoch},
			Session: d.Session, Details: d.Details,
		}
	}
	err = s.config.Tokens.DecideDeviceCode(audit.With(ctx, event), d.Code.Hash, grant, now)
	if err != nil {
		return fmt.Errorf("decide about device: %w", err)
	}
	return nil
}
