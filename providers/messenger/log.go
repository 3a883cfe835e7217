package messenger

import (
	"context"
	"log/slog"

	"gatehouse/actors/account"
)

// logSender writes messages to the log, for demos and development. Anybody who can read the log can
// sign in as any user.
type logSender struct{ log *slog.Logger }

// Send writes one line at level info: "phone code" or "email code" with code and address, or "phone
// notice" or "email notice" for a message without a code.
func (s *logSender) Send(ctx context.Context, m account.Message) error {
	name := "email"
	if m.Channel == account.SMS {
		name = "phone"
	}
	if m.Kind.HasCode() {
		s.log.InfoContext(ctx, name+" code", "code", m.Code, "to", m.To, "kind", string(m.Kind))
		return nil
	}
	if m.Link != "" {
		s.log.InfoContext(ctx, name+" notice", "to", m.To, "kind", string(m.Kind), "link", m.Link)
		return nil
	}
	s.log.InfoContext(ctx, name+" notice", "to", m.To, "kind", string(m.Kind))
	return nil
}
