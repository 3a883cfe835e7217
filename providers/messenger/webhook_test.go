package messenger_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/brand"
	"gatehouse/providers/messenger"
)

const webhookSecret = "0123456789abcdef0123456789abcdef"

var phoneCode = account.Message{Channel: account.SMS, To: "+12025550123", Kind: account.PhoneCode,
	Code: "271828"}

// Receiver verifies webhook requests. It is an example for receivers.
type Receiver struct {
	Secret    []byte
	Tolerance time.Duration // accepted age, for clock differences and delivery

	mu   sync.Mutex
	seen map[string]time.Time // accepted IDs; remove them after twice the Tolerance
}

// Verify returns an error unless the request was signed with the secret within the Tolerance. known
// says that its message was accepted before.
func (r *Receiver) Verify(header http.Header, body []byte, now time.Time) (known bool, err error) {
	at, signature, ok := strings.Cut(strings.TrimPrefix(header.Get("X-Gatehouse-Signature"), "t="),
		",v1=")
	seconds, err := strconv.ParseInt(at, 10, 64)
	if !ok || err != nil {
		return false, errors.New("no signature")
	}
	mac := hmac.New(sha256.New, r.Secret)
	fmt.Fprintf(mac, "%s.%s", at, body)
	if want := hex.EncodeToString(mac.Sum(nil)); !hmac.Equal([]byte(want), []byte(signature)) {
		return false, errors.New("wrong signature")
	}
	if now.Sub(time.Unix(seconds, 0)).Abs() > r.Tolerance {
		return false, errors.New("too old, or from the future")
	}
	var message struct{ ID string }
	if err := json.Unmarshal(body, &message); err != nil {
		return false, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.seen == nil {
		r.seen = map[string]time.Time{}
	}
	_, known = r.seen[message.ID]
	r.seen[message.ID] = now
	return known, nil
}

// posted is a request that a receiver got.
type posted struct {
	header http.Header
	body   []byte
}

// receive runs a receiver that responds with the statuses; the last one repeats. requests returns
// the requests so far.
func receive(t *testing.T, statuses ...int) (url string, requests func() []posted) {
	t.Helper()
	var mu sync.Mutex
	var got []posted
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		got = append(got, posted{r.Header.Clone(), body})
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(statuses[min(len(got), len(statuses))-1])
	}))
	t.Cleanup(server.Close)
	return server.URL, func() []posted {
		mu.Lock()
		defer mu.Unlock()
		return got
	}
}

// newWebhook returns a messenger with a webhook at url.
func newWebhook(t *testing.T, url string) *messenger.Messenger {
	t.Helper()
	m, err := messenger.New(messenger.Config{Targets: targets(t, url), Secret: webhookSecret,
		Brand: brand.Brand{Name: "Atlas", Host: "id.example.com"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(m.Close)
	return m
}

// TestWebhookTrace: the request belongs to the trace of what caused the message, if there is one.
func TestWebhookTrace(t *testing.T) {
	url, requests := receive(t, http.StatusNoContent)
	webhook := newWebhook(t, url)
	for _, want := range []string{"", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"} {
		m := phoneCode
		m.Trace = want
		if err := webhook.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
		all := requests()
		if got := all[len(all)-1].header.Get("Traceparent"); got != want {
			t.Errorf("got the trace %q, want %q", got, want)
		}
	}
}

func TestWebhookRequest(t *testing.T) {
	url, requests := receive(t, http.StatusNoContent)
	if err := newWebhook(t, url).Send(t.Context(), phoneCode); err != nil {
		t.Fatal(err)
	}
	got := requests()
	if len(got) != 1 {
		t.Fatalf("got %d requests, want 1", len(got))
	}
	var body map[string]any
	if err := json.Unmarshal(got[0].body, &body); err != nil {
		t.Fatal(err)
	}
	for member, want := range map[string]any{"service": "id.example.com", "channel": "sms",
		"to": "+12025550123", "kind": "phone_code", "code": "271828", "expires_in": 300.0,
		"subject": "", "link": "",
		"text": "271828 is your code for Atlas. It expires in 5 minutes. If this was not you, ignore it.\n@id.example.com #271828"} {
		if body[member] != want {
			t.Errorf("got %s %v, want %v", member, body[member], want)
		}
	}
	if len(body) != 10 || len(body["id"].(string)) != 36 {
		t.Errorf("got %v, want 10 members and a UUID", body)
	}
	for name, want := range map[string]string{"Content-Type": "application/json",
		"Idempotency-Key": body["id"].(string), "User-Agent": "gatehouse"} {
		if value := got[0].header.Get(name); value != want {
			t.Errorf("got %s %q, want %q", name, value, want)
		}
	}
}

func TestNoticeHasNoCode(t *testing.T) {
	url, requests := receive(t, http.StatusOK)
	notice := account.Message{Channel: account.Email, To: "ada@example.com",
		Kind: account.AccountExists}
	if err := newWebhook(t, url).Send(t.Context(), notice); err != nil {
		t.Fatal(err)
	}
	body := string(requests()[0].body)
	if !strings.Contains(body,
		`"code":"","expires_in":0,"link":"","subject":"Your account at Atlas"`) {
		t.Errorf("got %s, want no code", body)
	}
}

// TestReceiverRejectsForgeries changes or replays a request without knowing the secret.
func TestReceiverRejectsForgeries(t *testing.T) {
	url, requests := receive(t, http.StatusOK)
	if err := newWebhook(t, url).Send(t.Context(), phoneCode); err != nil {
		t.Fatal(err)
	}
	sent := requests()[0]
	now := time.Now()
	renewed := sent.header.Clone()
	_, signature, _ := strings.Cut(sent.header.Get("X-Gatehouse-Signature"), ",")
	renewed.Set("X-Gatehouse-Signature", fmt.Sprintf("t=%d,%s", now.Add(time.Hour).Unix(),
		signature))
	other := []byte(strings.Replace(string(sent.body), "+12025550123", "+12025550199", 1))
	for _, test := range []struct {
		name   string
		header http.Header
		body   []byte
		secret string
		now    time.Time
		want   string // part of the error; "" = none
	}{
		{"genuine", sent.header, sent.body, webhookSecret, now, ""},
		{"another number", sent.header, other, webhookSecret, now, "wrong signature"},
		{"an hour later", sent.header, sent.body, webhookSecret, now.Add(time.Hour), "too old"},
		{"an hour later with a new time", renewed, sent.body, webhookSecret, now.Add(time.Hour), "wrong signature"},
		{"another secret", sent.header, sent.body, strings.Repeat("x", 32), now, "wrong signature"},
		{"no signature", http.Header{}, sent.body, webhookSecret, now, "no signature"},
	} {
		r := Receiver{Secret: []byte(test.secret), Tolerance: 5 * time.Minute}
		_, err := r.Verify(test.header, test.body, test.now)
		if test.want == "" && err != nil || test.want != "" &&
			(err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
	r := Receiver{Secret: []byte(webhookSecret), Tolerance: 5 * time.Minute}
	for i, want := range []bool{false, true} {
		if known, err := r.Verify(sent.header, sent.body, now); known != want || err != nil {
			t.Errorf("attempt %d: got known %v, %v, want %v", i+1, known, err, want)
		}
	}
}

func TestRedirectIsNotFollowed(t *testing.T) {
	for _, status := range []int{http.StatusMovedPermanently, http.StatusTemporaryRedirect,
		http.StatusPermanentRedirect} {
		url, requests := receive(t, status)
		err := newWebhook(t, url).Send(t.Context(), phoneCode)
		if err == nil || !strings.Contains(err.Error(), strconv.Itoa(status)) ||
			len(requests()) != 1 {
			t.Errorf("got %v after %d requests, want an error of status %d after 1", err,
				len(requests()), status)
		}
	}
}

func TestWebhookErrorsContainNoSecrets(t *testing.T) {
	server := httptest.NewServer(nil)
	gone := server.URL
	server.Close()
	url, _ := receive(t, http.StatusBadRequest)
	for _, test := range []struct{ name, url, want string }{
		{"connection refused", gone, "cannot connect"},
		{"refused", url, "status 400"},
		{"no TLS", strings.Replace(url, "http:", "https:", 1), "cannot set up TLS"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // for a few attempts
		secret := strings.Replace(test.url, "://", "://atlas:s3cr3t@", 1) + "?key=s3cr3t"
		err := newWebhook(t, secret).Send(ctx, phoneCode)
		cancel()
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
			continue
		}
		for _, private := range []string{"2025550123", "271828", "s3cr3t"} {
			if strings.Contains(err.Error(), private) {
				t.Errorf("%s: got %v, want no %s in it", test.name, err, private)
			}
		}
	}
}
