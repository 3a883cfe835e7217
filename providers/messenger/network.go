package messenger

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
)

// What an exchange fails of, beside what the other side says. The errors of the standard library are not passed on: they name whole
// URLs, which may hold a password.
var (
	errNoName    = errors.New("the name does not resolve")
	errNoConnect = errors.New("cannot connect")
	errTimedOut  = errors.New("timed out")
	errTLS       = errors.New("TLS cannot be set up")
	errBroken    = errors.New("the exchange broke off")
)

// kindOf returns what may be told of a network error: the context's error where that has ended, else the kind.
func kindOf(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	var (
		dns         *net.DNSError
		timeout     net.Error
		op          *net.OpError
		certificate *tls.CertificateVerificationError
		record      tls.RecordHeaderError
		alert       tls.AlertError
	)
	switch {
	case errors.As(err, &dns):
		return errNoName
	case errors.As(err, &certificate), errors.As(err, &record), errors.As(err, &alert), errors.Is(err, http.ErrSchemeMismatch):
		return errTLS
	case errors.As(err, &timeout) && timeout.Timeout():
		return errTimedOut
	case errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect"):
		return errNoConnect
	}
	return errBroken
}
