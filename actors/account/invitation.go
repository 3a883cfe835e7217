package account

import (
	"context"
	"time"
)

// InvitationLifetime is how long the link of an invitation works.
const InvitationLifetime = 7 * 24 * time.Hour

// Accounts says who may make accounts.
type Accounts string

// The values.
const (
	OpenAccounts     Accounts = "open"      // everybody
	InvitedAccounts  Accounts = "invited"   // operators, and whom they invite
	OperatorAccounts Accounts = "operators" // operators only
)

// Invitation lets a person make the account of an e-mail address.
type Invitation struct {
	ID     string   // shown to operators; no part of the link
	Hash   [32]byte // SHA-256 of the token in the link
	Email  string
	Name   string // "" = the person says it
	Groups Groups
	Made   time.Time
	Ends   time.Time
}

// InvitationStore keeps invitations until they are accepted or end.
type InvitationStore interface {
	// CreateInvitation inserts i in place of an earlier one for the address, and sends the notice. It
	// returns ErrTaken if the address has an account, or ErrNoGroup.
	CreateInvitation(ctx context.Context, i Invitation, n Notice) error
	// Invitation returns an invitation, ended or not, or ErrNotFound.
	Invitation(ctx context.Context, hash [32]byte) (*Invitation, error)
	// InvitationTo returns the one for an e-mail address, ended or not, or ErrNotFound.
	InvitationTo(ctx context.Context, email string) (*Invitation, error)
	// Invitations returns up to limit invitations with an ID above after, by ID.
	Invitations(ctx context.Context, after string, limit int) ([]*Invitation, error)
	// AcceptInvitation creates u as CreateUser does and deletes the invitation, or returns ErrNotFound
	// if it is gone. Of u's groups, those count that exist.
	AcceptInvitation(ctx context.Context, hash [32]byte, u *User) error
	// DeleteInvitation deletes an invitation, or returns ErrNotFound.
	DeleteInvitation(ctx context.Context, id string) error
}
