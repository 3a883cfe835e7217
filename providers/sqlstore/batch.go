package sqlstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

// batch is a transaction in progress. It collects inserts and redemptions of many operations, so
// that one statement executes several of them. settle executes them before any statement that
// depends on their rows. Changes are collected until the end.
type batch struct {
	ctx  context.Context
	conn *conn

	codes    []oauth.AuthorizationCode
	families []oauth.Family
	refresh  []oauth.RefreshToken // only Family.ID is set of Family
	changes  []change
	events   []audit.Event    // of the audit trail
	created  int64            // the user whom the last task has created; 0 = none
	source   audit.Source     // of the last task
	trace    string           // context of its request (package trace); "" = none
	groups   map[string]int64 // numbers of all groups by name; nil = not read yet

	redeems  []*oauth.Redeem
	redeemed map[oauth.Hash]*oauth.Epochs // codes of redeems; nil = not taken

	args []any // buffer for the values of a statement
}

func (b *batch) executeAll(ops []oauth.Operation) error {
	for _, op := range ops {
		if err := b.execute(op); err != nil {
			return err
		}
	}
	return b.settle()
}

// execute executes one operation. It may be executed again after a transaction that failed.
func (b *batch) execute(op oauth.Operation) error {
	switch op := op.(type) {
	case *oauth.SaveCode:
		b.codes = append(b.codes, op.Code)
		b.record(op.Context)
		return nil
	case *oauth.Redeem:
		op.Outcome, op.Epochs, op.Ended = 0, oauth.Epochs{}, nil
		return wrap("redeem code", b.redeem(op))
	case *oauth.Rotate:
		op.Outcome, op.Epochs, op.Ended = 0, oauth.Epochs{}, nil
		return wrap("rotate refresh token", b.rotate(op))
	case *oauth.Revoke:
		op.Ended = nil
		return wrap("revoke tokens", b.revoke(op))
	case *oauth.Record:
		b.record(op.Context)
		return nil
	case *task:
		return b.executeTask(op)
	}
	return fmt.Errorf("no such operation: %T", op)
}

func (b *batch) executeTask(t *task) error {
	t.refusal, b.source = nil, audit.SourceOf(t.Context)
	b.trace = b.source.Trace
	if err := b.settle(); err != nil {
		return err
	}
	err := t.execute(b)
	var expected refusal
	switch {
	case err == nil:
		b.record(t.Context)
	case errors.Is(err, errNoEffect):
		return nil
	case errors.As(err, &expected):
		t.refusal = expected.error
		return nil
	}
	return err
}

func wrap(step string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", step, err)
	}
	return nil
}

// settle executes the collected inserts and redemptions.
func (b *batch) settle() error {
	for _, write := range []func() error{b.settleCodes, b.settleRedeems, b.settleFamilies,
		b.settleRefresh} {
		if err := write(); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) settleCodes() error {
	err := insertAll(b, codesTable, b.codes, func(args []any, c *oauth.AuthorizationCode) []any {
		var used any
		if !c.Used.IsZero() {
			used = millis(c.Used)
		}
		return append(args, c.Hash[:], c.ClientID, c.UserID, c.RedirectURI, int64(c.Scopes),
			c.DefaultScopes, c.CodeChallenge, millis(c.Expires), used, familyText(c.FamilyID),
			c.Epochs.Client, c.Epochs.User, sessionBytes(c.Session), detailsText(&c.Details))
	})
	b.codes = b.codes[:0]
	return wrap("save code", err)
}

func (b *batch) settleFamilies() error {
	err := insertAll(b, familiesTable, b.families, func(args []any, f *oauth.Family) []any {
		return append(args, f.ID.String(), f.ClientID, f.UserID, int64(f.Scopes), f.Generation,
			millis(f.Advanced), millis(f.Expires), millis(f.Ends), millis(f.AccessExpires),
			f.Revoked, sessionBytes(f.Session), detailsText(&f.Details))
	})
	b.families = b.families[:0]
	return wrap("save family", err)
}

func (b *batch) settleRefresh() error {
	err := insertAll(b, refreshTable, b.refresh, func(args []any, t *oauth.RefreshToken) []any {
		return append(args, t.Hash[:], t.Family.ID.String(), t.Generation)
	})
	b.refresh = b.refresh[:0]
	return wrap("save refresh token", err)
}

// familyText returns the stored form of a family's ID: "" for none.
func familyText(id uuid.UUID) string {
	if id == uuid.Nil {
		return ""
	}
	return id.String()
}
