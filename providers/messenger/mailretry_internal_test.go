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

// mailSays stands for a mail server, so that time can be the test's: in each session it answers one command as it is told, "220" for
// the greeting and "." for the end of the message, and all others well.
type mailSays struct {
	t       *testing.T
	refuses []string // "command: answer" of each session, the last one for ever; "" = takes the message
	at      []time.Duration
	ids     []string // of the messages that were sent, taken or not
	began   time.Time
	ended   chan struct{}
}

// open is that of a post.
func (s *mailSays) open(context.Context) (net.Conn, error) {
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

func (s *mailSays) speak(conn net.Conn, refused string) {
	defer conn.Close()
	command, answer, _ := strings.Cut(refused, ": ")
	say := func(to, well string) bool {
		if to == command {
			well = answer
		}
		if well == "" {
			return false
		}
		_, err := io.WriteString(conn, well+"\r\n")
		return err == nil
	}
	if !say("220", "220 mail.example.com") {
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
			if !say(".", "250 taken") {
				return
			}
		case inData:
		case verb == "DATA":
			inData = command != "DATA"
			if !say("DATA", "354 go on") {
				return
			}
		default:
			if !say(verb, "250 go on") {
				return
			}
		}
	}
}

// mailedTo sends a message to a server that refuses so, with 30 seconds for it.
func mailedTo(t *testing.T, refuses ...string) (*mailSays, error) {
	t.Helper()
	s := &mailSays{t: t, refuses: refuses, began: time.Now()}
	p := newTestPost(t, "smtp://127.0.0.1", "")
	p.open = s.open
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	err := p.Send(ctx, resetCode)
	if s.ended != nil {
		<-s.ended
	}
	return s, err
}

func TestMailTries(t *testing.T) {
	const greylisted = "RCPT: 450 4.2.0 ada@example.com comes back later"
	for _, test := range []struct {
		name    string
		refuses []string
		tries   int
		want    string // part of the error; "" = none
	}{
		{"taken", []string{""}, 1, ""},
		{"taken after a 450 for the recipient", []string{greylisted, ""}, 2, ""},
		{"taken after a 421 for the greeting", []string{"220: 421 too busy", ""}, 2, ""},
		{"taken after a 451 for the sender", []string{"MAIL: 451 later", ""}, 2, ""},
		{"taken after a 452 for the data", []string{"DATA: 452 full", "DATA: 452 full", ""}, 3, ""},
		{"taken after a 451 for the message", []string{".: 451 later", ""}, 2, ""},
		{"taken the last time", []string{greylisted, greylisted, greylisted, ""}, 4, ""},
		{"always 450", []string{greylisted}, 4, "answered 450"},
		{"refused", []string{"RCPT: 550 no such user"}, 1, "answered 550"},
		{"refused after a 450", []string{greylisted, "RCPT: 550 no such user", ""}, 2, "answered 550"},
		{"refused message", []string{".: 554 spam", ""}, 1, "answered 554"},
		{"nobody there", []string{"dial", ""}, 1, "cannot connect"},
		{"broken off where nobody knows what became of it", []string{".: ", ""}, 1, "broke off"},
		{"taken before a 421", []string{"QUIT: 421 closing", ""}, 1, ""},
		{"taken before a 451", []string{"RSET: 451 what?", ""}, 1, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, err := mailedTo(t, test.refuses...)
				if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				if err != nil && strings.Contains(err.Error(), "ada@") {
					t.Errorf("got %v, want nothing of what the server said", err)
				}
				if len(s.at) != test.tries {
					t.Errorf("got %d tries, want %d", len(s.at), test.tries)
				}
				for _, id := range s.ids {
					if id != s.ids[0] {
						t.Errorf("got messages %q, want one", s.ids)
					}
				}
			})
		})
	}
}

// TestWaitsForAMailServerGrow looks at the waits for one that is always busy: each is the longest of its step, or up to half less.
func TestWaitsForAMailServerGrow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		first := map[time.Duration]bool{}
		for range 10 {
			s, _ := mailedTo(t, "MAIL: 451 later")
			for i, longest := range []time.Duration{3 * time.Second, 6 * time.Second, 12 * time.Second} {
				if wait := s.at[i+1] - s.at[i]; wait < longest/2 || wait > longest {
					t.Errorf("got %v before try %d, want %v to %v", wait, i+2, longest/2, longest)
				}
			}
			if over := time.Since(s.began); over != s.at[3] {
				t.Errorf("got the end after %v, want it with the last try, after %v", over, s.at[3])
			}
			first[s.at[1]] = true
		}
		if len(first) < 5 {
			t.Errorf("got first waits %v, want them by chance", first)
		}
	})
}

// TestMailEndsWithItsTime gives up at once where the next try would come too late, and when it is told to.
func TestMailEndsWithItsTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newTestPost(t, "smtp://127.0.0.1", "")
		s := &mailSays{t: t, refuses: []string{"MAIL: 451 later"}}
		p.open = s.open
		for _, test := range []struct {
			name         string
			make         func() (context.Context, context.CancelFunc)
			took, atMost time.Duration
			tries        int
		}{
			{"too short", func() (context.Context, context.CancelFunc) { return context.WithTimeout(t.Context(), time.Second) }, 0, 0, 1},
			{"told to", func() (context.Context, context.CancelFunc) {
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(time.Second, cancel)
				return ctx, cancel
			}, time.Second, time.Second, 1},
			{"room for one more", func() (context.Context, context.CancelFunc) {
				return context.WithTimeout(t.Context(), 3*time.Second+time.Millisecond)
			}, 1500 * time.Millisecond, 3 * time.Second, 2},
		} {
			ctx, cancel := test.make()
			s.at, s.began = nil, time.Now()
			err := p.Send(ctx, resetCode)
			if took := time.Since(s.began); took < test.took || took > test.atMost || len(s.at) != test.tries {
				t.Errorf("%s: got the end after %v and %d tries, want %v to %v and %d", test.name, took, len(s.at), test.took, test.atMost, test.tries)
			}
			if err == nil || !strings.Contains(err.Error(), "answered 451") {
				t.Errorf("%s: got %v, want what the server answered", test.name, err)
			}
			cancel()
			<-s.ended
		}
	})
}
