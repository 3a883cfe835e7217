package audit

// Action is what was done. The vocabulary is fixed.
type Action string

// What people do, or others in their name.
const (
	// SignIn has the app as its target. Details: the means; new_browser if unknown. Data: factors.
	SignIn           Action = "sign_in"
	SignOut          Action = "sign_out"          // details: others, or all: several sessions
	BrowserConfirmed Action = "browser_confirmed" // a code made the browser known to the account
	AccountCreated   Action = "account_created"   // details: the means
	AccountChanged   Action = "account_changed"   // details: the changed members
	AccountDisabled  Action = "account_disabled"
	AccountEnabled   Action = "account_enabled"
	AccountDeleted   Action = "account_deleted"
	PasswordChanged  Action = "password_changed" // by the person, who knew the former one
	PasswordReset    Action = "password_reset"   // by a code, or by an operator
	AddressChanged   Action = "address_changed"  // details: email or phone_number
	ChangeUndone     Action = "change_undone"    // by the link of a notice; details: as above
	PasskeyAdded     Action = "passkey_added"
	PasskeyRemoved   Action = "passkey_removed"
	PasskeyRefused   Action = "passkey_refused" // its counter has fallen back: perhaps a copy
	// FactorsChanged has details: authenticator_added, authenticator_removed, security_key_added,
	// security_key_removed, recovery_codes_replaced.
	FactorsChanged Action = "factors_changed"
	FactorUsed     Action = "factor_used" // details: app, recovery_code or security_key; new_browser
	// ConnectionAdded and ConnectionRemoved have the issuer of another provider as their target.
	ConnectionAdded   Action = "connection_added"
	ConnectionRemoved Action = "connection_removed"
	// ConsentGiven and Authorized have the client as their target, the scopes as details, and as
	// data the resources with their scopes. Authorized, a code that was issued, also has the session.
	// For an ID-JAG that was accepted it has the issuer as provider, for one that was issued the
	// audience.
	ConsentGiven     Action = "consent_given"
	Authorized       Action = "authorized"
	ConsentWithdrawn Action = "consent_withdrawn"
	DeviceAllowed    Action = "device_allowed" // target: the client; details: the scopes
	DeviceDenied     Action = "device_denied"  // target: the client
)

// LogoutLost says that a client could not be told of the end of a session. Its target is the
// client.
const LogoutLost Action = "logout_lost"

// What happens to tokens.
const (
	TokensRevoked Action = "tokens_revoked" // details: token, family, user, client or consent
	FamilyReused  Action = "family_reused"  // a code or token came again; target: the family
)

// What operators do.
const (
	ClientCreated    Action = "client_created"
	ClientChanged    Action = "client_changed" // details: the changed members; data: their values
	ClientDeleted    Action = "client_deleted"
	SecretCreated    Action = "secret_created"
	SecretRevoked    Action = "secret_revoked"
	ClientApproved   Action = "client_approved" // for detail-user
	ClientUnapproved Action = "client_unapproved"
	ClientDisabled   Action = "client_disabled"
	ClientEnabled    Action = "client_enabled"
	ResourceCreated  Action = "resource_created" // target: its URI
	ResourceChanged  Action = "resource_changed" // target: its URI
	ResourceDeleted  Action = "resource_deleted" // target: its URI
	ProviderCreated  Action = "provider_created" // target: its id; data: the values, without the secret
	ProviderChanged  Action = "provider_changed" // details: the changed members; data: their values
	ProviderDeleted  Action = "provider_deleted"
	KeysRotated      Action = "keys_rotated" // target: the purpose; details: now
	KeysDropped      Action = "keys_dropped"
	UserRead         Action = "user_read"    // details: sessions or passkeys if those were read
	UsersListed      Action = "users_listed" // data: their number, and the first and last id
	// UsersImported is one part of an import. Data: the import, its line, how many users were created
	// and refused, and the first and last id.
	UsersImported Action = "users_imported"
	UsersExported Action = "users_exported" // with password hashes; data: as of UsersListed
	TrailRead     Action = "trail_read"     // data: the filter, and the number of events
	AdminRefused  Action = "admin_refused"  // target: the route; details: why
	// MemberAdded and MemberRemoved have the user as their subject, and the group as their target.
	MemberAdded   Action = "member_added"
	MemberRemoved Action = "member_removed"
	GroupCreated  Action = "group_created" // target: its name
	GroupChanged  Action = "group_changed" // target: its name
	GroupDeleted  Action = "group_deleted" // target: its name
	// AttributeChanged and ClaimChanged are about what may be there, not about a person. Target: the
	// name; details: created, changed or deleted; data: the values.
	AttributeChanged Action = "attribute_changed"
	ClaimChanged     Action = "claim_changed"
	InvitationSent   Action = "invitation_sent"  // target: its id; data: address, name and groups
	InvitationEnded  Action = "invitation_ended" // by an operator; target: its id
)

// What clients that register themselves do. The subject of both is the service, since anybody can
// register many: the target is the client.
const (
	ClientRegistered Action = "client_registered"
	ClientEnded      Action = "client_ended" // details: unconsented or idle
)

// ClientFailed says that requests of a client have failed, or requests of others with its id. Its
// details name the error code.
const ClientFailed Action = "client_failed"

// BudgetReached says that a limit against abuse was reached. Its details name the limit.
const BudgetReached Action = "budget_reached"

// Actions are all actions.
var Actions = []Action{
	SignIn, SignOut, BrowserConfirmed, AccountCreated, AccountChanged, AccountDisabled,
	AccountEnabled, AccountDeleted, PasswordChanged, PasswordReset, AddressChanged, ConsentGiven,
	ConsentWithdrawn, DeviceAllowed, DeviceDenied, TokensRevoked, FamilyReused, ClientCreated,
	ClientChanged, ClientDeleted, SecretCreated, SecretRevoked, ClientApproved, ClientUnapproved,
	ClientDisabled, ClientEnabled,
	KeysRotated, KeysDropped, BudgetReached, ResourceCreated, ResourceChanged, ResourceDeleted, LogoutLost,
	ClientRegistered, ClientEnded, ClientFailed, ChangeUndone, Authorized, UserRead, UsersListed,
	TrailRead, AdminRefused, UsersImported, UsersExported, PasskeyAdded, PasskeyRemoved,
	PasskeyRefused,
	MemberAdded, MemberRemoved, GroupCreated,
	GroupChanged, GroupDeleted, AttributeChanged, ClaimChanged, InvitationSent, InvitationEnded,
	FactorsChanged, FactorUsed,
	ConnectionAdded, ConnectionRemoved, ProviderCreated, ProviderChanged, ProviderDeleted,
}
