// Package adminapi serves the endpoints with which operators manage clients, users and keys,
// and read the audit trail.
package adminapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
	"gatehouse/actors/token"
	"gatehouse/httpedge/endpoint"
)

// Paths of the admin API, on the admin listener.
const (
	pathAdminClients   = "/admin/v1/clients"
	pathAdminUsers     = "/admin/v1/users"
	pathAdminKeys      = "/admin/v1/keys"
	pathAdminAudit     = "/admin/v1/audit"
	pathAdminResources = "/admin/v1/resources"

	pathAdminGroups     = "/admin/v1/groups"
	pathAdminAttributes = "/admin/v1/attributes"
	pathAdminClaims     = "/admin/v1/claims"

	pathAdminInvitations = "/admin/v1/invitations"
	pathAdminProviders   = "/admin/v1/providers"
)

const (
	adminTimeout = 10 * time.Second // per request
	maxPage      = 200              // records in a list
	defaultPage  = 50
)

// service holds what the handlers share.
type service struct {
	tokens   *token.Service
	people   *people.Service
	audit    audit.Store
	caller   func(*fasthttp.RequestCtx) netip.Addr
	failures *endpoint.Failures
}

// adminCall is one admitted request of an operator.
type adminCall struct {
	*fasthttp.RequestCtx
	*service
	context context.Context
	now     time.Time
}

// adminHandler handles a request. The response is rendered as JSON; nil is 204.
type adminHandler func(*adminCall) (response any, err error)

// Endpoints returns the endpoints. caller returns the address of the client, or the zero Addr.
func Endpoints(
	tokens *token.Service, people *people.Service, trail audit.Store,
	caller func(*fasthttp.RequestCtx) netip.Addr, failures *endpoint.Failures,
) []endpoint.Endpoint {
	s := &service{tokens, people, trail, caller, failures}
	row := func(pattern string, methods map[string]adminHandler) endpoint.Endpoint {
		if read := methods[fasthttp.MethodGet]; read != nil {
			methods[fasthttp.MethodHead] = read
		}
		e := endpoint.Endpoint{Pattern: pattern, Handle: s.operatorOnly(pattern, methods),
			Head: endpoint.SetPrivateJSON}
		for _, m := range []string{fasthttp.MethodGet, fasthttp.MethodHead, fasthttp.MethodPost,
			fasthttp.MethodPut, fasthttp.MethodPatch, fasthttp.MethodDelete} {
			if methods[m] != nil {
				e.Methods = append(e.Methods, m)
			}
		}
		return e
	}
	get, post, put, patch, remove := fasthttp.MethodGet, fasthttp.MethodPost, fasthttp.MethodPut,
		fasthttp.MethodPatch, fasthttp.MethodDelete
	client, user := pathAdminClients+"/{id}", pathAdminUsers+"/{id}"
	return []endpoint.Endpoint{
		row(pathAdminClients, map[string]adminHandler{get: listClients, post: createClient}),
		row(client, map[string]adminHandler{get: showClient, put: putClient,
			patch: updateClient, remove: deleteClient}),
		row(client+"/approve", map[string]adminHandler{post: setApproved(true)}),
		row(client+"/verify", map[string]adminHandler{post: setVerified(true)}),
		row(client+"/unverify", map[string]adminHandler{post: setVerified(false)}),
		row(client+"/logo", map[string]adminHandler{put: putLogo, remove: removeLogo}),
		row(client+"/unapprove", map[string]adminHandler{post: setApproved(false)}),
		row(client+"/disable", map[string]adminHandler{post: setClientDisabled(true)}),
		row(client+"/enable", map[string]adminHandler{post: setClientDisabled(false)}),
		row(client+"/secrets", map[string]adminHandler{post: rotateSecret}),
		row(client+"/secrets/{secret}", map[string]adminHandler{remove: revokeSecret}),
		row(pathAdminUsers, map[string]adminHandler{get: listUsers, post: createUser}),
		row(pathAdminImport, map[string]adminHandler{post: importUsers}),
		row(pathAdminExport, map[string]adminHandler{get: exportUsers}),
		row(user, map[string]adminHandler{get: readUser, patch: updateUser, remove: deleteUser}),
		row(user+"/disable", map[string]adminHandler{post: setUserDisabled(true)}),
		row(user+"/enable", map[string]adminHandler{post: setUserDisabled(false)}),
		row(user+"/reset-password", map[string]adminHandler{post: resetPassword}),
		row(user+"/reset-factors", map[string]adminHandler{post: resetFactors}),
		row(user+"/passkeys", map[string]adminHandler{get: listPasskeys}),
		row(user+"/sessions", map[string]adminHandler{get: listSessions}),
		row(user+"/sessions/{session}", map[string]adminHandler{remove: endSession}),
		row(user+"/revoke-tokens", map[string]adminHandler{post: revokeUserTokens}),
		row(pathAdminResources, map[string]adminHandler{get: listResources, post: createResource,
			put: putResource}),
		row(pathAdminResources+"/{number}", map[string]adminHandler{get: showResource,
			remove: deleteResource}),
		row(pathAdminInvitations, map[string]adminHandler{get: listInvitations,
			post: createInvitation}),
		row(pathAdminInvitations+"/{id}", map[string]adminHandler{remove: deleteInvitation}),
		row(pathAdminGroups, map[string]adminHandler{get: listGroups, post: createGroup}),
		row(pathAdminGroups+"/{name}", map[string]adminHandler{get: showGroup, put: putGroup,
			remove: deleteGroup}),
		row(pathAdminGroups+"/{name}/members", map[string]adminHandler{get: listMembers}),
		row(pathAdminGroups+"/{name}/members/{id}", map[string]adminHandler{
			put:    changeMember(s.people.AddMember),
			remove: changeMember(s.people.RemoveMember)}),
		row(pathAdminAttributes, map[string]adminHandler{get: listAttributes}),
		row(pathAdminAttributes+"/{name}", map[string]adminHandler{put: putAttribute,
			remove: deleteAttribute}),
		row(pathAdminClaims, map[string]adminHandler{get: listClaims}),
		row(pathAdminClaims+"/{name}", map[string]adminHandler{put: putClaim, remove: deleteClaim}),
		row(pathAdminProviders, map[string]adminHandler{get: listProviders}),
		row(pathAdminProviders+"/{id}", map[string]adminHandler{get: showProvider, put: putProvider,
			remove: deleteProvider}),
		row(pathAdminKeys, map[string]adminHandler{get: listKeys}),
		row(pathAdminKeys+"/rotate", map[string]adminHandler{post: rotateKeys}),
		row(pathAdminAudit, map[string]adminHandler{get: listEvents}),
	}
}

// operatorOnly serves requests with an access token of an operator (scope server-operations) and
// refuses all others.
func (s *service) operatorOnly(pattern string,
	methods map[string]adminHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		now := time.Now()
		bearer, err := endpoint.BearerToken(&ctx.Request.Header)
		if err != nil {
			s.recordRefusal(ctx, pattern, "", "no_token")
			endpoint.WriteError(ctx, endpoint.JSON, err)
			return
		}
		verdict, operator := s.tokens.AdmitOperator(bearer, now)
		if verdict != token.Admitted {
			if word := refusalWords[verdict]; word != "" {
				s.recordRefusal(ctx, pattern, operator, word)
			}
			endpoint.WriteError(ctx, endpoint.JSON,
				&endpoint.Refusal{Verdict: verdict, Audience: s.tokens.Audience(bearer),
					Scope:  oauth.ServerOperations.String(),
					Advice: "Use a token of an operator client, requested with the scope server-operations."})
			return
		}
		deadline, cancel := context.WithTimeout(context.Background(), adminTimeout)
		defer cancel()
		source := audit.WithSource(deadline, audit.Source{
			Actor:     audit.Actor{Kind: audit.Operator, ID: operator},
			RequestID: endpoint.RequestID(ctx), Trace: endpoint.Trace(ctx), Caller: s.caller(ctx),
		})
		call := &adminCall{RequestCtx: ctx, service: s, context: source, now: now}
		response, err := methods[string(ctx.Method())](call)
		if err != nil {
			s.writeError(ctx, err)
			return
		}
		call.respond(response)
	}
}

// refusalWords say in the audit trail why a token is refused.
var refusalWords = map[token.Verdict]string{
	token.TokenInvalid: "token_invalid", token.TokenExpired: "token_expired",
	token.InsufficientScope: "insufficient_scope",
}

// recordRefusal records that a caller was refused at an endpoint. client is the id of the caller; "" =
// unknown.
func (s *service) recordRefusal(ctx *fasthttp.RequestCtx, pattern, client, why string) {
	deadline, cancel := context.WithTimeout(context.Background(), recordTimeout)
	defer cancel()
	s.record(audit.With(audit.WithSource(deadline, audit.Source{
		Actor:     audit.Actor{Kind: audit.Client, ID: client},
		RequestID: endpoint.RequestID(ctx), Trace: endpoint.Trace(ctx), Caller: s.caller(ctx),
	}), audit.Event{Action: audit.AdminRefused, Outcome: audit.Refused, Target: pattern,
		Details: []string{why}}))
}

// recordTimeout is how long the record of a refusal or of a read may take.
const recordTimeout = 2 * time.Second

// record writes the events of ctx. The request goes on without them if that fails: what cannot be
// written is in the log.
func (s *service) record(ctx context.Context) {
	if err := s.audit.Record(ctx); err != nil {
		s.failures.Log("record an admin request", err)
	}
}

// recordRead records that the operator has read something.
func (c *adminCall) recordRead(e audit.Event) {
	ctx, cancel := context.WithTimeout(c.context, recordTimeout)
	defer cancel()
	c.service.record(audit.With(ctx, e))
}

// respond writes v as JSON, with the status that the handler has set.
func (c *adminCall) respond(v any) {
	if v == nil {
		c.Response.Header.Del(fasthttp.HeaderContentType)
		c.SetStatusCode(fasthttp.StatusNoContent)
		return
	}
	c.SetBody(encodeJSON(v))
}

// encodeJSON encodes a record. It panics on a value that JSON cannot hold, which no record has.
func encodeJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// created sets status 201 and the path of the new record.
func (c *adminCall) created(path string) {
	c.SetStatusCode(fasthttp.StatusCreated)
	c.Response.Header.Set(fasthttp.HeaderLocation, path)
}

// pathValue returns a copy of the path parameter with that name.
func (c *adminCall) pathValue(name string) string {
	value, _ := c.UserValue(name).(string)
	return strings.Clone(value)
}

// clientID returns the client id in the path, or oauth.ErrNotFound when it cannot be one.
func (c *adminCall) clientID() (string, error) {
	id := c.pathValue("id")
	if !oauth.IsClientID(id) {
		return "", oauth.ErrNotFound
	}
	return id, nil
}

// userID returns the user id in the path, or account.ErrNotFound when it cannot be one.
func (c *adminCall) userID() (int64, error) {
	text := c.pathValue("id")
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 || strconv.FormatInt(id, 10) != text {
		return 0, account.ErrNotFound
	}
	return id, nil
}

// errAfter is the error of a parameter after that no page has returned.
var errAfter = account.FieldError{Field: "after",
	Message: "must be the value of next on the previous page"}

// page returns the parameters after and limit.
func (c *adminCall) page() (after string, limit int, err error) {
	params, ok := endpoint.ParseParameters(c.URI().QueryString())
	if !ok {
		return "", 0, endpoint.ErrInvalidRequest.Saying("The query is malformed.")
	}
	limit, err = pageLimit(endpoint.Value(params, "limit"))
	return endpoint.Value(params, "after"), limit, err
}

// dryRun returns the parameter dry_run.
func (c *adminCall) dryRun() (bool, error) {
	switch params, ok := endpoint.ParseParameters(c.URI().QueryString()); {
	case !ok:
		return false, endpoint.ErrInvalidRequest.Saying("The query is malformed.")
	default:
		switch endpoint.Value(params, "dry_run") {
		case "", "false":
			return false, nil
		case "true":
			return true, nil
		}
	}
	return false, account.FieldError{Field: "dry_run", Message: "must be true or false"}
}

// pageLimit returns the value of the parameter limit; "" = defaultPage.
func pageLimit(text string) (int, error) {
	if text == "" {
		return defaultPage, nil
	}
	limit, err := strconv.Atoi(text)
	if err != nil || limit < 1 || limit > maxPage {
		return 0, account.FieldError{Field: "limit", Message: "must be a number from 1 to 200"}
	}
	return limit, nil
}

// writeError responds with the problem of err. Errors of the stores hold no secrets and no personal
// data.
func (s *service) writeError(ctx *fasthttp.RequestCtx, err error) {
	if problem := endpoint.ProblemOf(err); problem.Unexpected {
		s.failures.Log("admin request failed", err, endpoint.Attributes(ctx)...)
	}
	endpoint.WriteError(ctx, endpoint.JSON, err)
}
