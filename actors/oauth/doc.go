// Package oauth holds the rules of the authorization server as values: RFC 6749 (OAuth 2.0), RFC
// 7636 (PKCE), RFC 9700 (security best practice), RFC 7009 (revocation), RFC 7662 (introspection),
// RFC 9207 (issuer identification).
//
// Nothing here does I/O, starts a goroutine or reads a clock; time comes in as now. Decisions that
// concurrent requests compete for, such as redeeming a code, are Operations: the Store decides
// them.
package oauth
