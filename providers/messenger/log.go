package messenger

import (
	"context"
	"log/slog"

	"gatehouse/actors/account"
)

// journal writes messages to the log, for demos and for trying things out: whoever reads it can sign in.
type journal struct{ log *slog.Logger }

// Send writes one line at level info: "phone code" or "email code" with code and address, or "phone notice" or "email notice" where there is
// no code.
func (j *journal) Send(ctx context.Context, m account.Message) error {
	name := "email"
	if m.Channel == account.SMS {
		name = "phone"
	}
	if m.Kind.HasCode() {
		j.log.InfoContext(ctx, name+" code", "code", m.Code, "to", m.To, "kind", string(m.Kind))
		return nil
	}
	j.log.InfoContext(ctx, name+" notice", "to", m.To, "kind", string(m.Kind))
	return nil
}
