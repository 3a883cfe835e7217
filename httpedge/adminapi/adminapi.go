// Package adminapi has the endpoints with which operators manage clients, users and keys.
package adminapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/valyala/fasthttp"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
	"gatehouse/actors/people"
	"gatehouse/actors/token"
	"gatehouse/httpedge/endpoint"
)

// Paths of the admin API, on the admin listener.
const (
	pathAdminClients = "/admin/v1/clients"
	pathAdminUsers   = "/admin/v1/users"
	pathAdminRotate  = "/admin/v1/keys/rotate"
)

const (
	adminTimeout = 10 * time.Second // for one request
	maxPage      = 200              // records of a list
	defaultPage  = 50
)

var (
	headerAuthenticate = []byte(fasthttp.HeaderWWWAuthenticate)
	headerRetryAfter   = []byte(fasthttp.HeaderRetryAfter)
)

// challengeOperator is for tokens without the scope server-operations (RFC 6750 section 3).
var challengeOperator = []byte(`Bearer realm="gatehouse", error="insufficient_scope", scope="server-operations"`)

// service is what the handlers share.
type service struct {
	tokens *token.Service
	people *people.Service
	log    *slog.Logger
}

// adminCall is one request of an operator: admitted, with a deadline, its path checked.
type adminCall struct {
	*fasthttp.RequestCtx
	*service
	context context.Context
	now     time.Time
}

// adminHandler does what an operator asks for. What it answers is JSON, or nil for 204.
type adminHandler func(*adminCall) (answer any, err error)

// Endpoints returns the rows of the table of routes.
func Endpoints(tokens, people *people.Service, log *slog.Logger) []endpoint.Endpoint {
	s := &service{tokens, people, log}
	row := func(pattern string, methods map[string]adminHandler) endpoint.Endpoint {
		if read := methods[fasthttp.MethodGet]; read != nil {
			methods[fasthttp.MethodHead] = read
		}
		e := endpoint.Endpoint{Pattern: pattern, Handle: s.operatorOnly(methods), Head: endpoint.SetPrivateJSON}
		for _, m := range []string{fasthttp.MethodGet, fasthttp.MethodHead, fasthttp.MethodPost, fasthttp.MethodPatch, fasthttp.MethodDelete} {
			if methods[m] != nil {
				e.Methods = append(e.Methods, m)
			}
		}
		return e
	}
	get, post, patch, remove := fasthttp.MethodGet, fasthttp.MethodPost, fasthttp.MethodPatch, fasthttp.MethodDelete
	client, user := pathAdminClients+"/{id}", pathAdminUsers+"/{id}"
	return []endpoint.Endpoint{
		row(pathAdminClients, map[string]adminHandler{get: listClients, post: createClient}),
		row(client, map[string]adminHandler{get: showClient, patch: updateClient, remove: deleteClient}),
		row(client+"/approve", map[string]adminHandler{post: setApproved(true)}),
		row(client+"/unapprove", map[string]adminHandler{post: setApproved(false)}),
		row(client+"/disable", map[string]adminHandler{post: setClientDisabled(true)}),
		row(client+"/enable", map[string]adminHandler{post: setClientDisabled(false)}),
		row(client+"/secrets", map[string]adminHandler{post: rotateSecret}),
		row(client+"/secrets/{secret}", map[string]adminHandler{remove: revokeSecret}),
		row(pathAdminUsers, map[string]adminHandler{get: listUsers, post: createUser}),
		row(user, map[string]adminHandler{get: showUser, patch: updateUser, remove: deleteUser}),
		row(user+"/disable", map[string]adminHandler{post: setUserDisabled(true)}),
		row(user+"/enable", map[string]adminHandler{post: setUserDisabled(false)}),
		row(user+"/reset-password", map[string]adminHandler{post: resetPassword}),
		row(user+"/revoke-tokens", map[string]adminHandler{post: revokeUserTokens}),
		row(pathAdminRotate, map[string]adminHandler{post: rotateKeys}),
	}
}

// operatorOnly answers requests that carry an access token with the scope server-operations, and refuses all others.
func (s *service) operatorOnly(methods map[string]adminHandler) fasthttp.RequestHandler {
	return func(ctx *fasthttp.RequestCtx) {
		now := time.Now()
		token, tried := endpoint.BearerToken(&ctx.Request.Header)
		if token == "" {
			endpoint.RefuseBearer(ctx, tried)
			return
		}
		if verdict := s.tokens.AdmitOperator(token, now); verdict != token.Admitted {
			refuseOperator(ctx, verdict)
			return
		}
		deadline, cancel := context.WithTimeout(context.Background(), adminTimeout)
		defer cancel()
		call := &adminCall{RequestCtx: ctx, service: s, context: deadline, now: now}
		answer, err := methods[string(ctx.Method())](call)
		if err != nil {
			s.refuseAdmin(ctx, err)
			return
		}
		call.answer(answer)
	}
}

func refuseOperator(ctx *fasthttp.RequestCtx, verdict token.Verdict) {
	if verdict != token.InsufficientScope {
		endpoint.RefuseAdmission(ctx, token.BasicProfile, token.Admission{Verdict: verdict})
		return
	}
	ctx.SetStatusCode(fasthttp.StatusForbidden)
	ctx.Response.Header.SetCanonical(headerAuthenticate, challengeOperator)
	endpoint.WriteRefusal(ctx, "insufficient_scope", "The access token lacks the scope server-operations.",
		"Use a token of an operator client, asked for with the scope server-operations.")
}

// answer writes v as JSON, after a status that is not 200 was set by the handler.
func (c *adminCall) answer(v any) {
	if v == nil {
		c.Response.Header.Del(fasthttp.HeaderContentType)
		c.SetStatusCode(fasthttp.StatusNoContent)
		return
	}
	c.SetBody(encodeJSON(v))
}

// encodeJSON writes records of strings, numbers and lists of them, which cannot fail.
func encodeJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// created says that the record at path is new.
func (c *adminCall) created(path string) {
	c.SetStatusCode(fasthttp.StatusCreated)
	c.Response.Header.Set(fasthttp.HeaderLocation, path)
}

// pathValue returns the part of the path that the pattern calls name. It does not share memory with the request.
func (c *adminCall) pathValue(name string) string {
	value, _ := c.UserValue(name).(string)
	return strings.Clone(value)
}

// clientID returns the id in the path; what no id can be is oauth.ErrNotFound.
func (c *adminCall) clientID() (string, error) {
	id := c.pathValue("id")
	if !isClientID(id) {
		return "", oauth.ErrNotFound
	}
	return id, nil
}

// isClientID reports whether text is a UUID as ids of clients are written.
func isClientID(text string) bool {
	id, err := uuid.Parse(text)
	return err == nil && id.String() == text
}

// userID returns the id in the path; what no id can be is account.ErrNotFound.
func (c *adminCall) userID() (int64, error) {
	text := c.pathValue("id")
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 1 || strconv.FormatInt(id, 10) != text {
		return 0, account.ErrNotFound
	}
	return id, nil
}

// errAfter is for a page that begins after what no record of the list can be.
var errAfter = &adminProblem{fields: map[string]string{"after": "must be the next of the page before"}}

// page returns from where and how many records are asked for.
func (c *adminCall) page() (after string, limit int, err error) {
	params, ok := endpoint.ParseParameters(c.URI().QueryString())
	if !ok {
		return "", 0, &adminProblem{message: "The query is malformed."}
	}
	limit = defaultPage
	if text := endpoint.Value(params, "limit"); text != "" {
		if limit, err = strconv.Atoi(text); err != nil || limit < 1 || limit > maxPage {
			return "", 0, &adminProblem{fields: map[string]string{"limit": "must be a number from 1 to 200"}}
		}
	}
	return endpoint.Value(params, "after"), limit, nil
}

// adminProblem is what is wrong with a request.
type adminProblem struct {
	status  int               // 0 = 400
	code    string            // "" = invalid_request
	message string            // "" = that fields say it
	fields  map[string]string // what is wrong with each
}

func (p *adminProblem) Error() string { return p.message }

// problemOf is the one map from an error to an answer of the admin API; nil = a failure of ours.
func problemOf(err error) *adminProblem {
	var problem *adminProblem
	var registration *oauth.RegistrationError
	var field account.FieldError
	var fields account.FieldErrors
	switch {
	case errors.As(err, &problem):
		return problem
	case errors.As(err, &registration) && registration.Field == "secrets":
		return &adminProblem{status: fasthttp.StatusConflict, code: "conflict", message: "secrets: " + registration.Message + "."}
	case errors.As(err, &registration):
		return &adminProblem{fields: map[string]string{registration.Field: registration.Message}}
	case errors.As(err, &field):
		fields = account.FieldErrors{field}
		fallthrough
	case errors.As(err, &fields):
		problem = &adminProblem{fields: map[string]string{}}
		for _, f := range fields {
			problem.fields[f.Field] = f.Message
		}
		return problem
	case errors.Is(err, account.ErrTaken):
		return &adminProblem{status: fasthttp.StatusConflict, code: "conflict",
			message: "The e-mail address, phone number or username belongs to another user."}
	case errors.Is(err, oauth.ErrNotFound), errors.Is(err, account.ErrNotFound):
		return &adminProblem{status: fasthttp.StatusNotFound, code: "not_found", message: "There is no such record."}
	case errors.Is(err, oauth.ErrBusy), errors.Is(err, account.ErrBusy), errors.Is(err, context.DeadlineExceeded):
		return &adminProblem{status: fasthttp.StatusServiceUnavailable, code: "temporarily_unavailable",
			message: "The service has too much to do now. Nothing was changed; try again in a few seconds."}
	case errors.Is(err, oauth.ErrUnknownOutcome):
		return &adminProblem{status: fasthttp.StatusServiceUnavailable, code: "temporarily_unavailable",
			message: "The change was not confirmed in time. Look whether it was made before you try again."}
	}
	return nil
}

// refuseAdmin answers with what err stands for. Errors of the stores hold no secrets and no personal data.
func (s *service) refuseAdmin(ctx *fasthttp.RequestCtx, err error) {
	problem := problemOf(err)
	if problem == nil {
		s.log.Error("admin request failed", "error", err, "request_id", endpoint.RequestID(ctx))
		problem = &adminProblem{status: fasthttp.StatusServiceUnavailable, code: "temporarily_unavailable",
			message: "The service cannot do this at the moment; its log says why. The request id helps to find it there."}
	}
	ctx.SetStatusCode(fasthttp.StatusBadRequest)
	if problem.status != 0 {
		ctx.SetStatusCode(problem.status)
	}
	if problem.status == fasthttp.StatusServiceUnavailable {
		ctx.Response.Header.SetCanonical(headerRetryAfter, []byte("1"))
	}
	body := struct {
		Error   string            `json:"error"`
		Message string            `json:"message"`
		Fields  map[string]string `json:"fields,omitempty"`
	}{problem.code, problem.message, problem.fields}
	if body.Error == "" {
		body.Error = "invalid_request"
	}
	if body.Message == "" {
		body.Message = "Some members of the request cannot be as they are: see fields."
	}
	ctx.SetBody(encodeJSON(body))
}
