package messenger

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// fakeMail is a mail server over net.Pipe, for tests with a fake clock. In each session it sends a
// given reply to one command and success to all others.
type fakeMail struct {
	t *testing.T
	// refuses has "command: reply" for each session; the last one repeats. "220" is the greeting,
	// "." the end of the message, and "" accepts all.
	refuses []string
	at      []time.Duration
	ids     []string // Message-IDs received, accepted or not
	began   time.Time
	ended   chan struct{}
}

// open can replace mailer.open.
func (s *fakeMail) open(context.Context) (net.Conn, error) {
	s.at = append(s.at, time.Since(s.began))
	refused := s.refuses[min(len(s.at), len(s.refuses))-1]
	if refused == "dial" {
		return nil, &net.OpError{Op: "dial", Err: errors.New("refused")}
	}
	client, server := net.Pipe()
	ended := make(chan struct{})
	s.ended = ended
	go func() {
		defer close(ended)
		s.speak(server, refused)
	}()
	return client, nil
}

func (s *fakeMail) speak(conn net.Conn, refused string) {
	defer conn.Close()
	command, refusal, _ := strings.Cut(refused, ": ")
	reply := func(to, success string) bool {
		text := success
		if to == command {
			text = refusal
		}
		if text == "" {
			return false
		}
		_, err := io.WriteString(conn, text+"\r\n")
		return err == nil
	}
	if !reply("220", "220 mail.example.com") {
		return
	}
	inData := false
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		line := lines.Text()
		if id, ok := strings.CutPrefix(line, "Message-ID: "); ok && inData {
			s.ids = append(s.ids, id)
		}
		verb, _, _ := strings.Cut(line, " ")
		switch {
		case inData && line == ".":
			inData = false
			if !reply(".", "250 accepted") {
				return
			}
		case inData:
		case verb == "DATA":
			inData = command != "DATA"
			if !reply("DATA", "354 go on") {
				return
			}
		default:
			if !reply(verb, "250 go on") {
				return
			}
		}
	}
}

// mailedTo sends a message to a server with these refusals, within 30 seconds.
func mailedTo(t *testing.T, refuses ...string) (*fakeMail, error) {
	t.Helper()
	s := &fakeMail{t: t, refuses: refuses, began: time.Now()}
	p := newTestMailer(t, "smtp://127.0.0.1", "")
	p.open = s.open
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := p.Send(ctx, resetCode)
	if s.ended != nil {
		<-s.ended
	}
	return s, err
}

func TestMailRetries(t *testing.T) {
	const greylisted = "RCPT: 450 4.2.0 ada@example.com comes back later"
	for _, test := range []struct {
		name     string
		refuses  []string
		attempts int
		want     string // part of the error; "" = no error
	}{
		{"accepted", []string{""}, 1, ""},
		{"accepted after 450 to RCPT", []string{greylisted, ""}, 2, ""},
		{"accepted after 421 as greeting", []string{"220: 421 too busy", ""}, 2, ""},
		{"accepted after 451 to MAIL", []string{"MAIL: 451 later", ""}, 2, ""},
		{"accepted after 452 to DATA", []string{"DATA: 452 full", "DATA: 452 full", ""}, 3, ""},
		{"accepted after 451 to the message", []string{".: 451 later", ""}, 2, ""},
		{"accepted at the last attempt", []string{greylisted, greylisted, greylisted, ""}, 4, ""},
		{"always 450", []string{greylisted}, 4, "replied 450"},
		{"refused", []string{"RCPT: 550 no such user"}, 1, "replied 550"},
		{"refused after 450", []string{greylisted, "RCPT: 550 no such user", ""}, 2, "replied 550"},
		{"message refused", []string{".: 554 spam", ""}, 1, "replied 554"},
		{"connection refused", []string{"dial", ""}, 1, "cannot connect"},
		{"disconnected without a reply to the message", []string{".: ", ""}, 1, "connection broke"},
		{"accepted, then 421 to QUIT", []string{"QUIT: 421 closing", ""}, 1, ""},
		{"accepted, then 451 to RSET", []string{"RSET: 451 what?", ""}, 1, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := mailedTo(t, test.refuses...)
				if test.want == "" && err != nil || test.want != "" &&
					(err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				if err != nil && strings.Contains(err.Error(), "ada@") {
					t.Errorf("got %v, want an error without the server's text", err)
				}
				if len(s.at) != test.attempts {
					t.Errorf("got %d attempts, want %d", len(s.at), test.attempts)
				}
				for _, id := range s.ids {
					if id != s.ids[0] {
						t.Errorf("got Message-IDs %q, want one", s.ids)
					}
				}
			})
		})
	}
}

// TestMailBackoff checks the waits between attempts: they double, with jitter of up to half.
func TestMailBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := map[time.Duration]bool{}
		for range 10 {
			s, _ := mailedTo(t, "MAIL: 451 later")
			for i, longest := range []time.Duration{3 * time.Second, 6 * time.Second,
				12 * time.Second} {
				if wait := s.at[i+1] - s.at[i]; wait < longest/2 || wait > longest {
					t.Errorf("got %v before attempt %d, want %v to %v", wait, i+2, longest/2,
						longest)
				}
			}
			if took := time.Since(s.began); took != s.at[3] {
				t.Errorf("took %v, want no wait after the last attempt at %v", took, s.at[3])
			}
			first[s.at[1]] = true
		}
		if len(first) < 5 {
			t.Errorf("got first waits %v, want jitter", first)
		}
	})
}

// TestMailStopsAtDeadline checks that Send returns at once if the deadline comes before the next
// attempt, and when it is cancelled.
func TestMailStopsAtDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestMailer(t, "smtp://127.0.0.1", "")
		s := &fakeMail{t: t, refuses: []string{"MAIL: 451 later"}}
		p.open = s.open
		for _, test := range []struct {
			name         string
			make         func() (context.Context, context.CancelFunc)
			took, atMost time.Duration
			attempts     int
		}{
			{"deadline before the retry", func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Second) }, 0, 0, 1},
			{"cancelled", func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			}, time.Second, time.Second, 1},
			{"deadline after one retry", func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(t.Context(), 3*time.Second+time.Millisecond)
			}, 1500 * time.Millisecond, 3 * time.Second, 2},
		} {
			ctx, cancel := test.make()
			s.at, s.began = nil, time.Now()
			err := p.Send(ctx, resetCode)
			if took := time.Since(s.began); took < test.took || took > test.atMost ||
				len(s.at) != test.attempts {
				t.Errorf("%s: got %v and %d attempts, want %v to %v and %d", test.name, took,
					len(s.at), test.took, test.atMost, test.attempts)
			}
			if err == nil || !strings.Contains(err.Error(), "replied 451") {
				t.Errorf("%s: got %v, want the server's reply code", test.name, err)
			}
			cancel()
			<-s.ended
		}
	})
}
