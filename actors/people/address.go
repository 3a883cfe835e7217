package people

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"gatehouse/actors/account"
)

// BeginChange requests a code that changes a user's e-mail address or phone number. It returns the
// token for the cookie, which ConfirmChange needs. Only the message reveals that the address
// belongs to another account: response and time are the same. The error is account.FieldErrors
// about email or phone_number, a *ThrottledError, account.ErrNotFound, account.ErrBusy,
// oauth.ErrBusy or a failure.
func (s *Service) BeginChange(
	ctx context.Context, userID int64, channel account.Channel, address string,
	by Browser, now time.Time,
) (token string, err error) {
	if address, err = s.parseAddress(channel, address, now); err != nil {
		return "", err
	}
	u, err := s.config.Store.User(ctx, userID)
	if err != nil {
		return "", fmt.Errorf("read user: %w", err)
	}
	if err := checkChange(u, channel, address); err != nil {
		return "", err
	}
	c := &account.Challenge{
		Purpose: account.ForChange, Channel: channel, Address: address, UserID: userID,
		Message: account.ChangeCode,
	}
	return s.requestCode(ctx, c, by, now, func(_ context.Context, owner *account.User) error {
		if owner.ID != 0 && owner.ID != userID {
			c.Message = account.AccountExists
		}
		return nil
	})
}

// checkChange returns account.FieldErrors when u has that address already.
func checkChange(u *account.User, channel account.Channel, address string) error {
	field, current := "email", u.Email
	if channel == account.SMS {
		field, current = "phone_number", u.Phone
	}
	if current == address {
		return account.FieldErrors{{Field: field, Message: "is yours already"}}
	}
	return nil
}

// ConfirmChange gives a user the address or number that the code was sent to, and notifies the
// former one. The error is ErrWrongCode, ErrCodeExpired (also for a code of another user), a
// *ThrottledError, account.ErrTaken, account.ErrNotFound or a failure.
func (s *Service) ConfirmChange(
	ctx context.Context, userID int64, token, code string, now time.Time,
) (*account.User, error) {
	ctx = paidBy(ctx, &account.User{ID: userID}, true, netip.Addr{})
	c, err := s.challenge(ctx, token, now)
	if err != nil {
		return nil, err
	}
	if c.Purpose != account.ForChange || c.UserID != userID {
		return nil, ErrCodeExpired
	}
	if err := s.checkCode(ctx, c, code, &account.User{}, Browser{}, now); err != nil {
		return nil, err
	}
	if err := s.takeChallenge(ctx, c, nil, now); err != nil {
		return nil, err
	}
	former := ""
	u, err := s.changeUser(ctx, userID, now, s.config.Store.UpdateUser, func(u *account.User) error {
		if c.Channel == account.SMS {
			former, u.Phone = u.Phone, c.Address
		} else {
			former, u.Email = u.Email, c.Address
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if former != "" {
		s.notify(account.Message{Channel: c.Channel, To: former, Kind: account.AddressLeft})
	}
	return u, nil
}

// notify enqueues a message. The request succeeds without it, so an error is only logged.
func (s *Service) notify(m account.Message) {
	if err := s.sender.enqueue(m); err != nil {
		s.sender.logFailure(m, err)
	}
}

// parseAddress returns the form of an address or number that is saved, or account.FieldErrors if it
// is malformed or cannot get messages.
func (s *Service) parseAddress(
	channel account.Channel, text string, now time.Time,
) (string, error) {
	if channel == account.SMS {
		phone, err := account.ParsePhone(text)
		if err == nil {
			err = account.CheckSMS(phone, s.config.SMSCountries)
		}
		var wrong account.FieldError
		if errors.As(err, &wrong) {
			return "", account.FieldErrors{wrong}
		}
		return phone, err
	}
	u := account.User{Name: "-", Email: text}
	u.Tidy()
	if u.Email == "" {
		return "", account.FieldErrors{{Field: "email", Message: "is missing"}}
	}
	return u.Email, u.Check(now)
}
