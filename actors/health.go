package actors

import (
	"context"
	"errors"
	"fmt"

	"gatehouse/actors/account"
)

// CheckStore returns why the database cannot be read, or nil. It reads one row by its key.
func (s *Identity) CheckStore(ctx context.Context) error {
	if _, err := s.config.Accounts.User(ctx, 0); err != nil && !errors.Is(err, account.ErrNotFound) {
		return fmt.Errorf("check database: %w", err)
	}
	return nil
}
