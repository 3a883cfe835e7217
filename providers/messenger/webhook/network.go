package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
)

// Network errors. The errors of the standard library are not returned: they contain whole URLs,
// which may contain a password.
var (
	errNoName    = errors.New("the name does not resolve")
	errNoConnect = errors.New("cannot connect")
	errTimedOut  = errors.New("timed out")
	ErrTLS       = errors.New("cannot set up TLS") // such as a certificate of another name
	errBroken    = errors.New("the connection broke")
)

// KindOf returns the context's error if it has ended, or else the kind of a network error.
func KindOf(ctx context.Context, err error) error {
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
	case errors.As(err, &certificate), errors.As(err, &record), errors.As(err,
		&alert), errors.Is(err, http.ErrSchemeMismatch):
		return ErrTLS
	case errors.As(err, &timeout) && timeout.Timeout():
		return errTimedOut
	case errors.As(err, &op) && (op.Op == "dial" || op.Op == "proxyconnect"):
		return errNoConnect
	}
	return errBroken
}
