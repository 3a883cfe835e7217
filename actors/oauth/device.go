package oauth

import (
	"context"
	"crypto/rand"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// DeviceCodeLifetime is how long a device code and its user code are valid (RFC 8628 section 3.2).
const DeviceCodeLifetime = 10 * time.Minute

// DevicePollInterval is the least time between two token requests with one device code, until the
// response is SlowDown. Each SlowDown adds as much (RFC 8628 section 3.5).
const DevicePollInterval = 5 * time.Second

// DeviceCode is a stored device code (RFC 8628). When its user allows it, the Store saves an
// AuthorizationCode with its Hash, which the device redeems.
type DeviceCode struct {
	Hash          Hash
	UserCode      Hash // of the user code, as HashUserCode returns it
	ClientID      string
	Scopes        Scopes
	DefaultScopes bool       // as in AuthorizationCode
	Place         string     // rough place of the device, for the user; "" = not known
	Caller        netip.Addr // who asked for it; zero = not known. A Store keeps the network only
	Created       time.Time
	Expires       time.Time
	Decision      Decision // of its user; 0 = none yet
}

// Dropped is the Decision about a device code whose place another one has taken.
const Dropped Decision = 3

// MostDevices is how many device codes of a client may wait for a decision.
const MostDevices = 5_000

// DeviceStore keeps device codes. Its methods may be called by many goroutines. A write is durable
// when its method returns nil.
type DeviceStore interface {
	// SaveDeviceCode inserts a new device code. It returns ErrConflict if its user code is in use,
	// and ErrNotFound if there is no such client. If MostDevices of the client wait for a decision, it
	// drops the oldest ones of the networks that have most of them.
	SaveDeviceCode(ctx context.Context, c *DeviceCode) error
	// DeviceCode returns the device code with that hash, decided or expired or not, or ErrNotFound.
	DeviceCode(ctx context.Context, hash Hash) (*DeviceCode, error)
	// DeviceCodeFor returns the device code with that user code, decided or expired or not, or
	// ErrNotFound.
	DeviceCodeFor(ctx context.Context, userCode Hash) (*DeviceCode, error)
	// DecideDeviceCode decides about a device code, at most once. With a grant, which has the same
	// Hash, its user has allowed it; nil = denied. The user's consent to the client then has the
	// scopes of the grant as those of devices. It returns ErrConflict if the device code was
	// decided, or has expired at now, and ErrNotFound if it, or the user, no longer exists.
	DecideDeviceCode(ctx context.Context, hash Hash, grant *AuthorizationCode, now time.Time) error
}

// The letters of user codes make no words and are hard to confuse (RFC 8628 section 6.1).
const (
	userCodeLetters = "BCDFGHJKLMNPQRSTVWXZ"
	userCodeLength  = 8
)

// NewUserCode returns a new user code, in the form XXXX-XXXX.
func NewUserCode() string {
	const fair = 256 - 256%len(userCodeLetters) // larger bytes would make some letters more likely
	var code [userCodeLength]byte
	for n := 0; n < len(code); {
		var random [2 * userCodeLength]byte
		rand.Read(random[:])
		for _, b := range random {
			if n < len(code) && int(b) < fair {
				code[n] = userCodeLetters[int(b)%len(userCodeLetters)]
				n++
			}
		}
	}
	return string(code[:4]) + "-" + string(code[4:])
}

// ParseUserCode returns the user code that a person has entered, in the form XXXX-XXXX. Case,
// spaces and punctuation do not matter. ok is false if it cannot be a user code.
func ParseUserCode(entered string) (code string, ok bool) {
	if len(entered) > 64 {
		return "", false
	}
	var letters []byte
	for i := range len(entered) {
		switch c := entered[i]; {
		case strings.IndexByte(" -_.", c) >= 0:
			continue
		case 'a' <= c && c <= 'z':
			letters = append(letters, c-'a'+'A')
		default:
			letters = append(letters, c)
		}
	}
	for _, c := range letters {
		if strings.IndexByte(userCodeLetters, c) < 0 {
			return "", false
		}
	}
	if len(letters) != userCodeLength {
		return "", false
	}
	return string(letters[:4]) + "-" + string(letters[4:]), true
}

// HashUserCode returns the hash of a user code in the form XXXX-XXXX.
func HashUserCode(code string) Hash { return HashOf("gatehouse user code " + code) }

// DeviceRequest is a well-formed device authorization request (RFC 8628 section 3.1).
type DeviceRequest struct {
	Credentials
	Scope string // as sent; "" = none
	Place string // rough place of the caller; "" = not known
}

var errDeviceTarget = &Error{Code: InvalidTarget,
	Description: "A device gets tokens for this service only.",
	Hint:        "Leave resource out, or use authorization codes."}

// ParseDeviceRequest parses the form and Authorization header of a device authorization request. It
// checks them like ParseTokenRequest.
func ParseDeviceRequest(params []Parameter, authorization string) (*DeviceRequest, *Error) {
	f := form{params: params}
	sent, scope := f.credentials(), f.value("scope")
	targets := f.values("resource")
	f.rest()
	if f.err != nil {
		return nil, f.err
	}
	c, err := sent.parse(authorization)
	switch {
	case err != nil:
		return nil, err
	case len(targets) > 0:
		return nil, errDeviceTarget
	}
	return &DeviceRequest{Credentials: c, Scope: scope}, nil
}

// CheckDevice returns the scopes that an authenticated client asks for, and whether they are those
// of defaults that it is registered for. The error is UnauthorizedClient or InvalidScope.
func CheckDevice(c *Client, r *DeviceRequest, defaults Scopes) (
	asked Scopes, isDefault bool, err *Error) {
	if !c.Grants.Contains(DeviceCodeGrant) {
		return 0, false, &Error{Code: UnauthorizedClient,
			Description: "The client is not registered for device codes.",
			Hint:        "Ask the operator to add the grant " + DeviceCodeGrant.String() + "."}
	}
	if asked, err = ParseScopes(r.Scope); err != nil {
		return 0, false, err
	}
	if asked == 0 {
		asked, isDefault = defaults&c.Scopes&UserScopes, true
	}
	return asked, isDefault, checkGrantable(asked, c)
}

// DeviceResponse is a successful response to a device authorization request (RFC 8628 section 3.2).
type DeviceResponse struct {
	DeviceCode      string
	UserCode        string
	VerificationURI string // of the page where a person enters the user code
}

// AppendJSON appends the body of the response.
func (r *DeviceResponse) AppendJSON(dst []byte) []byte {
	dst = appendString(dst, `{"device_code":`, r.DeviceCode)
	dst = appendString(dst, `,"user_code":`, r.UserCode)
	dst = appendString(dst, `,"verification_uri":`, r.VerificationURI)
	dst = appendString(dst, `,"verification_uri_complete":`,
		r.VerificationURI+"?user_code="+r.UserCode)
	dst = strconv.AppendInt(append(dst, `,"expires_in":`...), int64(DeviceCodeLifetime/time.Second), 10)
	dst = strconv.AppendInt(append(dst, `,"interval":`...), int64(DevicePollInterval/time.Second), 10)
	return append(dst, '}')
}

// CheckPoll returns what a client is told that sends a device code whose user has not allowed it at
// now: its error is never nil. A nil code is an unknown one.
func CheckPoll(code *DeviceCode, c *Client, now time.Time) *Error {
	switch {
	case code == nil || code.ClientID != c.ID:
		return errWrongDeviceCode
	case code.Decision == Denied:
		return errDeviceDenied
	case !now.Before(code.Expires):
		return errDeviceExpired
	}
	return ErrDevicePending
}

// checkDeviceCode is CheckRedeem for a device code that its user has allowed.
func checkDeviceCode(code *AuthorizationCode, c *Client, now time.Time) *Error {
	switch {
	case code == nil || code.ClientID != c.ID:
		return errWrongDeviceCode
	case code.Used.IsZero() && !now.Before(code.Expires):
		return errDeviceExpired
	}
	return nil
}

// Errors of device codes (RFC 8628 section 3.5). They are shared and must not be modified.
var (
	// ErrDevicePending: the user has not decided yet.
	ErrDevicePending = &Error{Code: AuthorizationPending,
		Description: "The user has not decided yet.",
		Hint:        "Ask again after the interval, until the code expires."}
	// ErrSlowDown: the client did not wait for the interval.
	ErrSlowDown = &Error{Code: SlowDown,
		Description: "The client asks too often.",
		Hint:        "Wait 5 seconds longer than before between two requests with this code."}

	errDeviceDenied = &Error{Code: AccessDenied, Description: "The user denied access.",
		Hint: "Get a new device code when the user wants it."}
	errDeviceExpired = &Error{Code: ExpiredToken, Description: "The device code has expired.",
		Hint: "Get a new device code when the user wants it."}
	errWrongDeviceCode = invalidGrant("The device code is unknown, or was issued to another client.",
		"Send the device_code of the device authorization response, with the same client_id.")
)
