package signin

import (
	"errors"

	"gatehouse/actors/oauth"
	"gatehouse/httpedge/endpoint"
	"gatehouse/httpedge/visit"
)

// pendingClient sets the client of the pending request. When the browser must not be redirected, it
// responds with a page and returns false.
func (s *service) pendingClient(v *visit.Visit, request *oauth.AuthorizationRequest) bool {
	if s.tokens.TakesMetadata(request.ClientID) {
		return s.describedClient(v, request)
	}
	client, err := s.tokens.Client(v.Ctx, request.ClientID)
	if err != nil && !errors.Is(err, oauth.ErrNotFound) {
		s.WriteFailure(v.HTTP, "read a client", err)
		return false
	}
	if client != nil && client.HasLapsed(v.Now) {
		client = nil
	}
	v.Pending.Client = client
	return true
}

// describedClient is pendingClient for a client that a metadata document describes. Nobody can make
// this server fetch one before they have signed in: until then, only its host is known.
func (s *service) describedClient(v *visit.Visit, request *oauth.AuthorizationRequest) bool {
	visitors, err := s.Visitors(v)
	if err != nil {
		s.WriteFailure(v.HTTP, "read sessions", err)
		return false
	}
	if len(visitors) == 0 {
		unread := &oauth.Client{ID: oauth.StoredClientID(request.ClientID),
			Options: oauth.ClientOptions{MetadataURL: request.ClientID}}
		unread.Name = unread.Host()
		v.Pending.Client, v.Pending.Unread = unread, true
		return true
	}
	client, changed, err := s.tokens.MetadataClient(v.Ctx, request.ClientID, visitors[0].User.ID,
		v.Now)
	var fault *oauth.Error
	switch {
	case errors.As(err, &fault) && fault.Code == oauth.InvalidClient:
		s.refuseRequest(v, fault)
		return false
	case errors.As(err, &fault):
		s.ShowProblem(v.HTTP, problemOf(fault))
		return false
	case err != nil:
		s.WriteFailure(v.HTTP, "read a client", err)
		return false
	}
	v.Pending.Client, v.Pending.Changed = client, changed
	return true
}

func problemOf(fault *oauth.Error) *endpoint.Problem {
	problem := endpoint.ProblemOf(fault)
	return &problem
}
