package token

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"gatehouse/actors/audit"
	"gatehouse/actors/mailbox"
	"gatehouse/actors/oauth"
	"gatehouse/actors/ratelimit"
)

// Fetcher fetches documents that clients serve: their metadata and their keys.
type Fetcher interface {
	// Fetch returns the JSON document at an https URL, which may have been fetched maxAge ago; 0 =
	// for as long as its headers say. The error is that of the payer's Charge, or oauth.ErrBusy when
	// too many requests are under way, in all or for this payer.
	Fetch(ctx context.Context, url string, maxAge time.Duration, by oauth.Payer) ([]byte, error)
}

// How many metadata documents are requested for a user: ten at once, and then one each six minutes.
const (
	userFetches      = 10
	userFetchesEvery = time.Hour / userFetches
	userFetchers     = 100_000
)

func newFetchLimit(nodes ratelimit.Nodes) ratelimit.Limiter[int64] {
	return ratelimit.SharePacer(nodes, "client_documents",
		ratelimit.NewPacer[int64](userFetches, userFetchesEvery, userFetchers),
		func(id int64) []byte { return strconv.AppendInt(nil, id, 10) },
		func(text []byte) (int64, bool) {
			id, err := strconv.ParseInt(string(text), 10, 64)
			return id, err == nil
		})
}

// Metadata returns the metadata of the service as JSON (RFC 8414).
func (s *Service) Metadata() []byte {
	return oauth.Metadata(oauth.About{Issuer: s.config.Issuer, Registration: s.TakesRegistrations(),
		Documents: s.config.ClientMetadata, Terms: s.config.Terms, Privacy: s.config.Privacy,
		Languages: s.config.Languages, IDJAG: s.config.IDJAG})
}

// TakesMetadata reports whether a client_id names a client that a metadata document describes.
func (s *Service) TakesMetadata(clientID string) bool {
	return s.config.ClientMetadata && oauth.IsMetadataURL(clientID)
}

// MetadataClient returns the client that the document at a URL describes, with what operators have
// decided of it. It need not be stored. A stored one that a person has consented to holds for a month
// if its document cannot be fetched. changed says that no earlier consent counts. A request for the
// document is charged to the user. The *oauth.Error is for a page.
func (s *Service) MetadataClient(
	ctx context.Context, address string, userID int64, now time.Time,
) (c *oauth.Client, changed bool, err error) {
	stored, err := s.Client(ctx, oauth.StoredClientID(address))
	if err != nil && !errors.Is(err, oauth.ErrNotFound) {
		return nil, false, err
	}
	if stored != nil && stored.Disabled {
		return stored, false, nil
	}
	charged := false
	by := oauth.Payer{
		ID: "user " + strconv.FormatInt(userID, 10), Class: oauth.People,
		Network: ratelimit.SitePrefix(audit.SourceOf(ctx).Caller),
	}
	by.Charge = func() error {
		if wait := s.fetches.Take(userID, now); wait > 0 {
			return &oauth.Error{Code: oauth.TemporarilyUnavailable, Throttled: true, RetryAfter: wait,
				Description: "You have opened too many new applications within an hour.",
				Hint:        "Wait before another application is opened."}
		}
		charged = true
		return nil
	}
	text, err := s.config.Fetcher.Fetch(ctx, address, 0, by)
	var fresh *oauth.Client
	var wrong error
	if err == nil {
		fresh, wrong = s.parseDocument(ctx, address, text)
	}
	if charged && (err != nil || wrong != nil) { // a server's failure keeps nobody from other applications
		s.fetches.Forgive(userID)
	}
	if err == nil && stored != nil {
		s.noteFetched(ctx, stored, wrong == nil && !stored.IsOutdatedBy(fresh), now)
	}
	if err != nil && stored.Holds(now) {
		if known, failed := s.config.Tokens.HasConsent(ctx, stored.ID); failed != nil {
			return nil, false, failed
		} else if known {
			return stored, false, nil
		}
	}
	var fault *oauth.Error
	switch {
	case errors.As(err, &fault):
		return nil, false, fault
	case errors.Is(err, oauth.ErrBusy):
		return nil, false, errUnavailable
	case err != nil:
		return nil, false, &oauth.Error{Code: oauth.InvalidClient,
			Description: "The document that describes the application cannot be read.",
			Hint:        "client_id must lead to a JSON document: " + err.Error() + "."}
	case wrong != nil:
		return nil, false, &oauth.Error{Code: oauth.InvalidClient,
			Description: "The document that describes the application is not valid.",
			Hint:        "Correct the document at client_id: " + wrong.Error() + "."}
	}
	c, changed = stored.Describe(fresh)
	return c, changed, nil
}

// noteFetched notes of a stored client whether its document has just said what people have consented
// to. When it has not, the stored description no longer holds without the document.
func (s *Service) noteFetched(
	ctx context.Context, stored *oauth.Client, isSame bool, now time.Time,
) {
	fetched := int64(0)
	if isSame {
		fetched = now.UnixMilli()
	}
	if isSame && !stored.NeedsFetched(now) || fetched == stored.Options.MetadataFetched {
		return
	}
	_, err := s.writeClient(ctx, stored.ID, func(c *oauth.Client) error {
		c.Options.MetadataFetched = fetched
		return nil
	})
	if err != nil { // the next request tries again
		s.config.Logger.Warn("a client's document was not noted as fetched", "error", err)
	}
}

// parseDocument returns the client that a metadata document describes. The error is for people to
// read.
func (s *Service) parseDocument(
	ctx context.Context, address string, text []byte,
) (*oauth.Client, error) {
	c, err := oauth.ParseMetadataDocument(address, text, s.config.RedirectSchemes)
	if err != nil {
		return nil, err
	}
	return c, s.checkKeysURL(ctx, c)
}

// KeepMetadataClient stores the client that a person has just consented to, as its document
// described it. Call it before the consent is stored.
func (s *Service) KeepMetadataClient(
	ctx context.Context, described *oauth.Client, now time.Time,
) error {
	stored, err := s.config.Tokens.Client(ctx, described.ID)
	switch {
	case errors.Is(err, oauth.ErrNotFound):
		return s.createMetadataClient(ctx, described, now)
	case err != nil:
		return fmt.Errorf("read client: %w", err)
	case stored.IsSame(described):
		return nil
	}
	_, err = s.changeClient(ctx, described.ID, func(c *oauth.Client) error {
		d, changed := c.Describe(described)
		if changed {
			d.Options.MetadataChanged = now.UnixMilli()
			d.Secrets = nil
		}
		d.Options.MetadataFetched = now.UnixMilli()
		*c = *d
		return nil
	})
	return err
}

func (s *Service) createMetadataClient(
	ctx context.Context, described *oauth.Client, now time.Time,
) error {
	if !s.inflight.Enter() {
		return mailbox.ErrStopped
	}
	defer s.inflight.Leave()
	c := *described
	c.Created, c.Options.MetadataFetched = now, now.UnixMilli()
	err := s.config.Tokens.CreateClient(ofWholeClient(ctx, audit.ClientCreated, audit.After, &c), &c)
	if err == nil {
		return nil
	}
	if _, found := s.config.Tokens.Client(ctx, c.ID); found == nil {
		return nil // another request was faster
	}
	return fmt.Errorf("create client: %w", err)
}
