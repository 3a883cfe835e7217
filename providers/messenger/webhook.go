package messenger

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
)

const (
	maxAttempts    = 5                      // limit for one message
	attemptTimeout = 5 * time.Second        // of one attempt, from dialling to end of response
	firstBackoff   = 500 * time.Millisecond // longest wait after the first attempt; see backoff
	maxRetryAfter  = 10 * time.Second       // longest wait that Retry-After can request
)

// webhook posts messages as JSON to the operator's URL. Each request is signed, and has an ID by
// which the receiver recognizes a retry.
type webhook struct {
	url     string
	secret  []byte
	service string
	http    *http.Client
}

// payload is the body of a request.
type payload struct {
	ID        string `json:"id"` // UUID; the same in each attempt
	Service   string `json:"service"`
	Channel   string `json:"channel"` // sms or email
	To        string `json:"to"`
	Kind      string `json:"kind"`
	Code      string `json:"code"`       // "" for a message without a code
	ExpiresIn int    `json:"expires_in"` // seconds; 0 without a code
	Subject   string `json:"subject"`    // "" for a text message
	Text      string `json:"text"`
}

func newWebhook(url, secret, service string) *webhook {
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: attemptTimeout}).DialContext,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 16 << 10,
	}
	return &webhook{url, []byte(secret), service, &http.Client{
		Transport: transport,
		Timeout:   attemptTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}}
}

func (w *webhook) close() { w.http.CloseIdleConnections() }

// Send posts m until the receiver responds with a status from 200 to 299. It retries after network
// errors and the statuses 429 and 5xx.
func (w *webhook) Send(ctx context.Context, m account.Message) error {
	text := compose(m, w.service)
	p := payload{ID: uuid.NewString(), Service: w.service, Channel: string(m.Channel), To: m.To,
		Kind: string(m.Kind), Code: m.Code, Subject: text.subject, Text: text.body,
		ExpiresIn: int(m.Kind.Lifetime() / time.Second)}
	body, err := json.Marshal(p)
	if err != nil {
		return errors.New("the message cannot be encoded as JSON")
	}
	for n := range maxAttempts {
		var wait time.Duration
		if wait, err = w.attempt(ctx, p.ID, body); err == nil || wait == 0 {
			break
		}
		if n+1 < maxAttempts && !pause(ctx, max(wait, backoff(firstBackoff, n))) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	return nil
}

// backoff returns the wait after attempt n, counted from 0. Its maximum is first and doubles with
// each attempt. Jitter takes off up to half of it.
func backoff(first time.Duration, n int) time.Duration {
	longest := first << n
	return longest/2 + rand.N(longest/2)
}

// pause waits and returns true, or returns false if ctx ends. It returns false at once if ctx will
// end during the wait.
func pause(ctx context.Context, wait time.Duration) bool {
	if deadline, ok := ctx.Deadline(); ok && time.Until(deadline) <= wait {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// attempt posts body once. With an error, wait is the minimum wait before a retry; 0 = do not
// retry.
func (w *webhook) attempt(ctx context.Context, id string, body []byte) (wait time.Duration,
	err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return 0, errors.New("the request cannot be built")
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "gatehouse")
	request.Header.Set("Idempotency-Key", id)
	request.Header.Set(signatureHeader, sign(w.secret, time.Now(), body))
	response, err := w.http.Do(request)
	if err != nil {
		return 1, kindOf(ctx, err)
	}
	defer response.Body.Close()
	status := response.StatusCode
	if status >= 200 && status <= 299 {
		_, err := io.Copy(io.Discard, io.LimitReader(response.Body, 64<<10))
		_ = err // the message is accepted, whatever the body
		return 0, nil
	}
	err = fmt.Errorf("the receiver responded with status %d", status)
	if status == http.StatusTooManyRequests || status >= 500 {
		return max(1, retryAfter(response)), err
	}
	return 0, err
}

// retryAfter returns the wait of a Retry-After header in seconds, at most maxRetryAfter; 0 = none.
func retryAfter(r *http.Response) time.Duration {
	seconds, err := strconv.ParseUint(r.Header.Get("Retry-After"), 10, 16)
	if err != nil {
		return 0
	}
	return min(maxRetryAfter, time.Duration(seconds)*time.Second)
}

// signatureHeader has the value "t=SECONDS,v1=HEX": the time of the attempt in Unix seconds, and
// the HMAC-SHA256 with the secret of that time as written, a dot, and the body. A receiver computes
// the same and compares in constant time. It rejects a time more than a few minutes ago, and an ID
// that it has seen: within those minutes a copy of a request has a valid signature too.
const signatureHeader = "X-Gatehouse-Signature"

// sign returns the value of the signature header for a body that is sent at now.
func sign(secret []byte, now time.Time, body []byte) string {
	at := strconv.FormatInt(now.Unix(), 10)
	mac := hmac.New(sha256.New, secret)
	mac.Write([]byte(at + "."))
	mac.Write(body)
	return "t=" + at + ",v1=" + hex.EncodeToString(mac.Sum(nil))
}
