package people

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"time"

	"gatehouse/actors/account"
)

// BeginChange asks for the code that makes an address or number that of a signed-in user, and returns the token for the cookie by which
// ConfirmChange knows it. One that has an account is told so in the message and nowhere else: answer and time are the
// same. Its error is account.FieldErrors about email or phone_number, a *ThrottledError, account.ErrNotFound,
// account.ErrBusy, oauth.ErrBusy or a failure.
func (s *Service) BeginChange(ctx context.Context, userID int64, channel account.Channel, address string, caller netip.Addr, now time.Time) (token string, err error) {
	if address, err = parseAddress(channel, address, now); err != nil {
		return "", err
	}
	u, err := s.config.Store.User(ctx, userID)
	if err != nil {
		return "", fmt.Errorf("read user: %w", err)
	}
	if err := checkChange(u, channel, address); err != nil {
		return "", err
	}
	err = s.asked(account.ForChange, caller, now, func() error {
		c := &account.Challenge{Purpose: account.ForChange, Channel: channel, Address: address, UserID: userID, Message: account.ChangeCode}
		other, err := s.owner(ctx, c)
		if err != nil {
			return err
		}
		if other.ID != 0 && other.ID != userID {
			c.Message = account.AccountExists
		}
		token, err = s.begin(ctx, c, now)
		return err
	})
	return token, err
}

// checkChange returns account.FieldErrors when there would be nothing to change.
func checkChange(u *account.User, channel account.Channel, address string) error {
	field, present := "email", u.Email
	if channel == account.SMS {
		field, present = "phone_number", u.Phone
	}
	if present == address {
		return account.FieldErrors{{Field: field, Message: "is yours already"}}
	}
	return nil
}

// ConfirmChange gives a user the address or number that the code was sent to; the former one is told. Its error is ErrWrongCode, ErrCodeExpired (also when the code
// is for another user), a *ThrottledError, account.ErrTaken, account.ErrNotFound or a failure.
func (s *Service) ConfirmChange(ctx context.Context, userID int64, token, code string, now time.Time) (*account.User, error) {
	c, err := s.challenge(ctx, token, now)
	if err != nil {
		return nil, err
	}
	if c.Purpose != account.ForChange || c.UserID != userID {
		return nil, ErrCodeExpired
	}
	if err := s.enter(ctx, c, code, &account.User{}, Visitor{}, now); err != nil {
		return nil, err
	}
	if err := s.take(ctx, c, nil, now); err != nil {
		return nil, err
	}
	former := ""
	u, err := s.changeUser(ctx, userID, now, func(u *account.User) error {
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
		s.tell(account.Message{Channel: c.Channel, To: former, Kind: account.AddressLeft})
	}
	return u, nil
}

// tell sends a message without which everything is as it should be.
func (s *Service) tell(m account.Message) {
	if err := s.sender.enqueue(m); err != nil {
		s.config.Logger.Warn("a message was not sent", "channel", string(m.Channel), "kind", string(m.Kind), "error", err)
	}
}

// parseAddress returns the form of an address or number in which it is kept, or account.FieldErrors.
func parseAddress(channel account.Channel, text string, now time.Time) (string, error) {
	if channel == account.SMS {
		phone, err := account.ParsePhone(text)
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
