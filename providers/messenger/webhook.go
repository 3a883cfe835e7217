package messenger

import (
	"bytes"
	"context"
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
	tries     = 5                      // at most, of one message
	tryTime   = 5 * time.Second        // of one, from the connection to the end of the answer
	firstWait = 500 * time.Millisecond // after the first try; it doubles with each, less up to half of it by chance
	longWait  = 10 * time.Second       // the longest that a receiver can ask for by Retry-After
)

// webhook posts messages as JSON to a URL of the operator's. What it posts is signed, and has an id by which the receiver knows a
// repetition.
type webhook struct {
	url     string
	secret  []byte
	service string
	http    *http.Client
}

// letter is the body of a request.
type letter struct {
	ID        string `json:"id"` // UUID; the same in each try
	Service   string `json:"service"`
	Channel   string `json:"channel"` // sms or email
	To        string `json:"to"`
	Kind      string `json:"kind"`
	Code      string `json:"code"`       // "" where there is none
	ExpiresIn int    `json:"expires_in"` // seconds; 0 without a code
	Subject   string `json:"subject"`    // "" for a text message
	Text      string `json:"text"`
}

func newWebhook(url, secret, service string) *webhook {
	transport := &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            (&net.Dialer{Timeout: tryTime}).DialContext,
		MaxIdleConnsPerHost:    8,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 16 << 10,
	}
	return &webhook{url, []byte(secret), service, &http.Client{
		Transport:     transport,
		Timeout:       tryTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

func (w *webhook) close() { w.http.CloseIdleConnections() }

// Send posts m until the receiver takes it over with a status of 200 to 299. It tries again after network errors, 5xx and 429.
func (w *webhook) Send(ctx context.Context, m account.Message) error {
	said := compose(m, w.service)
	l := letter{ID: uuid.NewString(), Service: w.service, Channel: string(m.Channel), To: m.To, Kind: string(m.Kind), Code: m.Code,
		Subject: said.subject, Text: said.body}
	if m.Kind.HasCode() {
		l.ExpiresIn = int(account.CodeLifetime / time.Second)
	}
	body, err := json.Marshal(l)
	if err != nil {
		return errors.New("the message cannot be written as JSON")
	}
	for n := range tries {
		var wait time.Duration
		if wait, err = w.try(ctx, l.ID, body); err == nil || wait == 0 {
			break
		}
		if n+1 < tries && !pause(ctx, max(wait, backOff(firstWait, n))) {
			break
		}
	}
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	return nil
}

// backOff returns how long to wait after try n, which counts from 0: first, twice that and so on, less up to half of it by chance.
func backOff(first time.Duration, n int) time.Duration {
	longest := first << n
	return longest/2 + rand.N(longest/2)
}

// pause waits, and reports whether ctx lasted so long. It does not begin to where ctx will have ended.
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

// try posts body once. Beside an error, wait is how long the receiver needs at least before the next try; 0 = there must be none.
func (w *webhook) try(ctx context.Context, id string, body []byte) (wait time.Duration, err error) {
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
		_ = err // the message is taken over; what else the receiver says, or does not get to say, changes nothing
		return 0, nil
	}
	err = fmt.Errorf("the receiver answered status %d", status)
	if status == http.StatusTooManyRequests || status >= 500 {
		return max(1, retryAfter(response)), err
	}
	return 0, err
}

// retryAfter returns what the receiver asks for in seconds; 0 = nothing.
func retryAfter(r *http.Response) time.Duration {
	seconds, err := strconv.ParseUint(r.Header.Get("Retry-After"), 10, 16)
	if err != nil {
		return 0
	}
	return min(longWait, time.Duration(seconds)*time.Second)
}
