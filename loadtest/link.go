package loadtest

import (
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// MinToken is the shortest token of agents, in bytes. Anybody who connects to an agent can try tokens
// offline, so a token must not be guessable.
const MinToken = 32

// The sides of a link. Each has a key of its own, so that no side can repeat the other's proof.
const (
	agentSide       = "agent"
	coordinatorSide = "coordinator"
)

// keyOf returns the key pair that a side derives from the token (RFC 5869).
func keyOf(token, side string) (ed25519.PrivateKey, error) {
	seed, err := hkdf.Key(sha256.New, []byte(token), nil, "gatehouse loadtest "+side,
		ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("derive a key: %w", err)
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// errToken is returned if the other side does not know the token.
var errToken = errors.New("the other side has another token")

// tlsOf returns TLS settings with which each side proves that it knows the token: it signs with the
// key that only the token gives (RFC 8446 section 4.4.3).
func tlsOf(token, mine, theirs string) (*tls.Config, error) {
	own, err := keyOf(token, mine)
	if err != nil {
		return nil, err
	}
	other, err := keyOf(token, theirs)
	if err != nil {
		return nil, err
	}
	want := other.Public().(ed25519.PublicKey)
	form := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, form, form, own.Public(), own)
	if err != nil {
		return nil, fmt.Errorf("create a certificate: %w", err)
	}
	return &tls.Config{
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: own}},
		MinVersion:   tls.VersionTLS13, SessionTicketsDisabled: true,
		// No authority signs these certificates: VerifyConnection compares the key instead.
		ClientAuth: tls.RequireAnyClientCert, InsecureSkipVerify: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			key, ok := state.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
			if !ok || subtle.ConstantTimeCompare(key, want) != 1 {
				return errToken
			}
			return nil
		},
	}, nil
}

// Times of a link.
const (
	greeting = 10 * time.Second // for the handshake
	silence  = 15 * time.Second // without a message, after which a side is lost
	alive    = 3 * time.Second  // between messages that say that a side is alive
)

// maxMessage limits a message, such as a job with the rows of a large file.
const maxMessage = 256 << 20

// message is what the two sides of a link send. One without members says that its sender is alive.
type message struct {
	Version string         `json:",omitempty"` // agent: it is free
	Job     *job           `json:",omitempty"` // coordinator: prepare this
	Done    int            `json:",omitempty"` // agent: what it has prepared
	Of      int            `json:",omitempty"`
	What    string         `json:",omitempty"`
	Ready   bool           `json:",omitempty"` // agent: prepared
	Ping    int            `json:",omitempty"` // coordinator; the agent sends it back
	Start   *time.Duration `json:",omitempty"` // coordinator: begin after this time
	Stop    bool           `json:",omitempty"` // coordinator: end early
	Piece   *wirePiece     `json:",omitempty"` // agent: about a second
	Ended   *ending        `json:",omitempty"` // agent: the run has ended
	Error   string         `json:",omitempty"` // agent: what failed; the link ends
}

// ending has the figures of a part's run that its pieces do not have.
type ending struct {
	Hits, Broken, Most   int64
	Last, Late, Spent    time.Duration // Spent is the sum of the durations of hits
	Took                 time.Duration
	UsedUp               bool
	Checks               []Check
	KeysUsed, PeopleUsed int
}

// wirePiece is a piece as a message.
type wirePiece struct {
	piece
	Steps map[string]wireTally
}

// wireTally is a tally as a message. The histogram has every count (HdrHistogram's V2 form).
type wireTally struct {
	Latency  []byte
	Statuses map[int]int64
	Errors   map[string]int64
}

func newWirePiece(p piece) (*wirePiece, error) {
	w := &wirePiece{p, map[string]wireTally{}}
	for name, t := range p.steps {
		if t.attempts() == 0 {
			continue
		}
		latency, err := t.latency.Encode(hdrhistogram.V2CompressedEncodingCookieBase)
		if err != nil {
			return nil, fmt.Errorf("encode latencies: %w", err)
		}
		w.Steps[name] = wireTally{latency, t.statuses, t.errors}
	}
	return w, nil
}

// read returns the piece, or an error if its histograms cannot be merged exactly.
func (w *wirePiece) read() (piece, error) {
	p := w.piece
	p.steps = map[string]*tally{}
	for name, s := range w.Steps {
		t := newTally()
		latency, err := hdrhistogram.Decode(s.Latency)
		if err != nil {
			return p, fmt.Errorf("decode latencies: %w", err)
		}
		if dropped := t.latency.Merge(latency); dropped > 0 ||
			latency.SignificantFigures() != digits {
			return p, errors.New("decode latencies: they have another range or precision")
		}
		for status, n := range s.Statuses {
			t.statuses[status] = n
		}
		for reason, n := range s.Errors {
			t.errors[reason] = n
		}
		p.steps[name] = t
	}
	return p, nil
}

// link is a connection between a coordinator and an agent that have proved that they know the same
// token. send may be called by many goroutines, receive by one.
type link struct {
	conn *tls.Conn
	from limited
	in   *json.Decoder
	mu   sync.Mutex
	out  *json.Encoder
}

// limited is a reader that fails after left bytes.
type limited struct {
	r    io.Reader
	left int
}

func (l *limited) Read(into []byte) (int, error) {
	if l.left <= 0 {
		return 0, errors.New("the message is too long")
	}
	n, err := l.r.Read(into[:min(len(into), l.left)])
	l.left -= n
	return n, err
}

// newLink makes the handshake, and keeps the link alive until it is closed.
func newLink(ctx context.Context, conn *tls.Conn) (*link, error) {
	ctx, cancel := context.WithTimeout(ctx, greeting)
	defer cancel()
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	l := &link{conn: conn, from: limited{r: conn}, out: json.NewEncoder(conn)}
	l.in = json.NewDecoder(&l.from)
	go func() {
		for l.send(message{}) == nil {
			time.Sleep(alive)
		}
	}()
	return l, nil
}

func (l *link) close() error { return l.conn.Close() }

func (l *link) send(m message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.conn.SetWriteDeadline(time.Now().Add(silence)); err != nil {
		return err
	}
	return l.out.Encode(m)
}

// receive returns the next message that says something.
func (l *link) receive() (m message, err error) {
	for m == (message{}) {
		if err := l.conn.SetReadDeadline(time.Now().Add(silence)); err != nil {
			return m, err
		}
		l.from.left = maxMessage
		if err := l.in.Decode(&m); err != nil {
			return m, lostBecause(err)
		}
	}
	return m, nil
}

// lostBecause returns why a link ended, in words.
func lostBecause(err error) error {
	var alert tls.AlertError
	var timeout net.Error
	var op *net.OpError
	switch {
	case errors.As(err, &alert), errors.As(err, &op) && op.Op == "remote error":
		return errToken
	case errors.As(err, &timeout) && timeout.Timeout():
		return fmt.Errorf("it said nothing for %s", silence)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return errors.New("its connection ended")
	}
	return err
}
