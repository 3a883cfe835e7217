package console

import (
	"net/netip"
	"slices"
	"time"

	"gatehouse/actors/account"
)

const (
	// freshSignIn is how old the sign-in of a session may be that sees the console.
	freshSignIn = time.Hour
	// freshFactor is how long ago a factor may have been used before something is changed.
	freshFactor = 10 * time.Minute
)

// refusal says why somebody may not see or change something; "" = nothing stands against it. It is
// also the word for it in the audit trail.
type refusal string

const (
	notOperator refusal = "not_operator"
	oneFactor   refusal = "one_factor"
	oldSignIn   refusal = "old_sign_in"
	oldFactor   refusal = "old_factor"
)

// mayEnter returns why a person in a session may not see the console, at now.
func mayEnter(u *account.User, session *account.Session, now time.Time) refusal {
	switch {
	case !isOperator(u):
		return notOperator
	case !session.HasTwoFactors():
		return oneFactor
	case now.Sub(session.SignedIn) >= freshSignIn:
		return oldSignIn
	}
	return ""
}

// mayChange is mayEnter for changes.
func mayChange(u *account.User, session *account.Session, now time.Time) refusal {
	if why := mayEnter(u, session, now); why != "" {
		return why
	}
	if now.Sub(factorUsed(session)) >= freshFactor {
		return oldFactor
	}
	return ""
}

// isOperator reports whether a person may use the console. Each request reads the person anew.
func isOperator(u *account.User) bool { return u.Groups.HasAny(operatorsGroup) }

var operatorsGroup = []string{account.OperatorsGroup}

// factorUsed returns when a factor was last used in a session that has two: the second one, or a
// passkey.
func factorUsed(session *account.Session) time.Time {
	used := session.FactorUsed()
	if session.ProvedBy.IsPasskey() && session.Proved.After(used) {
		return session.Proved
	}
	return used
}

// isHidden reports whether the console does not exist for a caller; the zero Addr is unknown.
func isHidden(networks []netip.Prefix, caller netip.Addr) bool {
	caller = caller.Unmap().WithZone("")
	return len(networks) > 0 && !slices.ContainsFunc(networks, func(p netip.Prefix) bool {
		return p.Contains(caller)
	})
}
