package visit

import (
	"encoding/binary"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

var noon = time.Unix(1_800_000_000, 0)

func TestFormTokenIsBound(t *testing.T) {
	own := Binding{newBrowserSecret(), "login", "client_id=a"}
	token := own.NewFormToken(noon)
	for name, test := range map[string]struct {
		b     Binding
		token string
		at    time.Time
		want  bool
	}{
		"itself":          {own, token, noon, true},
		"shortly before":  {own, token, noon.Add(formLifetime - time.Second), true},
		"too late":        {own, token, noon.Add(formLifetime), false},
		"from the future": {own, token, noon.Add(-2 * time.Minute), false},
		"other browser": {Binding{newBrowserSecret(), "login", "client_id=a"}, token, noon,
			false},
		"no browser":    {Binding{"", "login", "client_id=a"}, token, noon, false},
		"other form":    {Binding{own.secret, "consent", "client_id=a"}, token, noon, false},
		"other subject": {Binding{own.secret, "login", "client_id=b"}, token, noon, false},
		"moved border":  {Binding{own.secret, "loginc", "lient_id=a"}, token, noon, false},
		"changed":       {own, flip(token), noon, false},
		"shortened":     {own, token[:len(token)-4], noon, false},
		"empty":         {own, "", noon, false},
		"garbage":       {own, strings.Repeat("%", 75), noon, false},
		"choice":        {own, own.Seal(make([]byte, choiceSize), noon), noon, false},
	} {
		if got := test.b.checkFormToken(test.token, test.at); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}

// flip changes a character in the middle.
func flip(s string) string {
	c := byte('A')
	if s[20] == c {
		c = 'B'
	}
	return s[:20] + string(c) + s[21:]
}

func TestFormTokenIsSingleUse(t *testing.T) {
	b := Binding{newBrowserSecret(), "consent", ""}
	s := newUsedNonces(noon)
	token := b.NewFormToken(noon)
	var wins atomic.Int32
	var all sync.WaitGroup
	for range 64 {
		all.Go(func() {
			if b.useFormToken(s, token, noon) {
				wins.Add(1)
			}
		})
	}
	all.Wait()
	if got := wins.Load(); got != 1 {
		t.Errorf("got %d uses, want 1", got)
	}
	if b.useFormToken(s, b.NewFormToken(noon.Add(-time.Second)), noon) {
		t.Error("got a token from before the start accepted, want it refused")
	}
}

func TestForgottenTokensCountAsUsed(t *testing.T) {
	s := newUsedNonces(noon)
	nonce := func(i int) (n [nonceSize]byte) {
		binary.BigEndian.PutUint64(n[:], uint64(i))
		return n
	}
	for i := range maxUsed + 10 {
		if !s.use(noon.Add(time.Duration(i)*time.Second), nonce(i)) {
			t.Fatalf("got token %d refused, want it accepted", i)
		}
	}
	for _, i := range []int{0, 9, 10, maxUsed, maxUsed + 9} {
		if s.use(noon.Add(time.Duration(i)*time.Second), nonce(i)) {
			t.Errorf("got token %d accepted again", i)
		}
	}
	if len(s.made) != maxUsed || len(s.order) != maxUsed {
		t.Errorf("got %d and %d kept, want %d", len(s.made), len(s.order), maxUsed)
	}
}

func TestBrowserSecrets(t *testing.T) {
	if a, b := newBrowserSecret(), newBrowserSecret(); a == b || !isBrowserSecret(a) {
		t.Errorf("got %q and %q, want two secrets", a, b)
	}
	for _, s := range []string{"", "x", strings.Repeat("a", 42), strings.Repeat("a", 44),
		strings.Repeat("!", 43)} {
		if isBrowserSecret(s) {
			t.Errorf("got %q taken for a secret", s)
		}
	}
}
