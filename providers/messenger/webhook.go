package messenger

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/trace"
	"gatehouse/providers/messenger/webhook"
)

const (
	maxAttempts  = 5                      // limit for one message
	firstBackoff = 500 * time.Millisecond // longest wait after the first attempt; see backoff
)

// hook posts messages as JSON to the operator's URL. Each message has an ID by which the receiver
// recognizes a retry.
type hook struct {
	*webhook.Client
	composer
	host string // of the issuer
}

// payload is the body of a request.
type payload struct {
	ID        string `json:"id"`      // UUID; the same in each attempt
	Service   string `json:"service"` // host of the issuer
	Channel   string `json:"channel"` // sms or email
	To        string `json:"to"`
	Kind      string `json:"kind"`
	Code      string `json:"code"`       // "" for a message without a code
	ExpiresIn int    `json:"expires_in"` // seconds; 0 without a code
	Link      string `json:"link"`       // of a notice; "" = none
	Subject   string `json:"subject"`    // "" for a text message
	Text      string `json:"text"`
}

func newWebhook(url, secret string, c Config) *hook {
	return &hook{webhook.New(url, secret), c.composer(), c.Brand.Host}
}

// Send posts m until the receiver responds with a status from 200 to 299. It retries after network
// errors and the statuses 429 and 5xx.
func (w *hook) Send(ctx context.Context, m account.Message) error {
	ctx = trace.With(ctx, m.Trace)
	text := w.compose(m)
	p := payload{ID: uuid.NewString(), Service: w.host, Channel: string(m.Channel), To: m.To,
		Kind: string(m.Kind), Code: m.Code, Link: m.Link, Subject: text.subject, Text: text.body,
		ExpiresIn: int(m.Kind.Lifetime() / time.Second)}
	body, err := json.Marshal(p)
	if err != nil {
		return errors.New("the message cannot be encoded as JSON")
	}
	for n := range maxAttempts {
		var wait time.Duration
		if wait, err = w.Post(ctx, p.ID, body); err == nil || wait == 0 {
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
