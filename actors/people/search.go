package people

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

// searchTime is how long a search in the names of all users may take.
const searchTime = 2 * time.Second

// FindUsers returns up to limit users for an operator's text: an ID, a phone number or an e-mail
// address as a whole, or a part of a name, an e-mail address or a username. Who has exactly that ID,
// number or address comes first, the others by name. isAll is false if the search took too long for
// all users.
func (s *Service) FindUsers(
	ctx context.Context, text string, limit int,
) (found []*account.User, isAll bool, err error) {
	text = strings.TrimSpace(text)
	if text == "" {
		return nil, true, nil
	}
	exact, err := s.exactUsers(ctx, text)
	if err != nil {
		return nil, false, err
	}
	isAll = true
	within, cancel := context.WithTimeout(ctx, searchTime)
	defer cancel()
	found, err = s.config.Store.FindUsers(within, text, limit)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		isAll, err = false, nil
	}
	if err != nil {
		return nil, false, err
	}
	slices.SortFunc(found, func(a, b *account.User) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	for _, u := range found {
		if !slices.ContainsFunc(exact, func(e *account.User) bool { return e.ID == u.ID }) {
			exact = append(exact, u)
		}
	}
	return exact[:min(limit, len(exact))], isAll, nil
}

// exactUsers returns the users who have a text as ID, phone number or e-mail address.
func (s *Service) exactUsers(ctx context.Context, text string) (found []*account.User, err error) {
	add := func(u *account.User, err error) error {
		if err == nil {
			found = append(found, u)
		}
		if errors.Is(err, account.ErrNotFound) {
			return nil
		}
		return err
	}
	if id, wrong := strconv.ParseInt(text, 10, 64); wrong == nil {
		err = add(s.config.Store.User(ctx, id))
	}
	if phone, wrong := account.ParsePhone(text); err == nil && wrong == nil {
		err = add(s.config.Store.UserByPhone(ctx, phone))
	}
	if err == nil && strings.Contains(text, "@") {
		err = add(s.config.Store.UserByEmail(ctx, text))
	}
	return found, err
}

// EndSessions ends all sessions of a user.
func (s *Service) EndSessions(ctx context.Context, userID int64) error {
	ctx = ofUser(ctx, audit.SignOut, userID, "all")
	tokens, err := s.config.Store.DeleteSessions(ctx, userID, oauth.Hash{})
	return s.tokensEnded("end sessions", tokens, err)
}

// MessagesWaiting returns how many notices to people are still to be sent, by any server.
func (s *Service) MessagesWaiting(ctx context.Context, now time.Time) (int, error) {
	_, waiting, err := s.config.Store.DueNotices(ctx, now, 0)
	return waiting, err
}
