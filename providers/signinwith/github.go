package signinwith

import (
	"context"
	"fmt"
	"strconv"

	"gatehouse/actors/oauth"
)

// gitHubAPI returns the base URL of the REST API: that of GitHub itself, or of an Enterprise Server.
func gitHubAPI(p *oauth.Provider) string {
	if p.Issuer == oauth.GitHubIssuer {
		return "https://api.github.com"
	}
	return p.Issuer + "/api/v3"
}

// gitHubIdentity returns whose access token it is, by the REST API: GitHub has no id_token. An access
// token of another app would be accepted there, but this one came from the token endpoint.
func (c *Client) gitHubIdentity(
	ctx context.Context, p *oauth.Provider, bearer string,
) (*oauth.ProviderIdentity, error) {
	var user struct {
		ID    int64  `json:"id"` // login can be renamed, and given to somebody else
		Login string `json:"login"`
		Name  string `json:"name"`
	}
	if _, _, err := c.get(ctx, gitHubAPI(p)+"/user", bearer, &user); err != nil {
		return nil, fmt.Errorf("read user: %w", err)
	}
	if user.ID <= 0 {
		return nil, &oauth.ProviderError{Reason: "the user has no id"}
	}
	who := &oauth.ProviderIdentity{Issuer: p.Issuer, Subject: strconv.FormatInt(user.ID, 10),
		Name: user.Name, Account: user.Login}
	if who.Name == "" {
		who.Name = user.Login
	}
	var emails []struct {
		Email    string `json:"email"`
		Primary  bool   `json:"primary"`
		Verified bool   `json:"verified"`
	}
	if _, _, err := c.get(ctx, gitHubAPI(p)+"/user/emails?per_page=100", bearer, &emails); err != nil {
		return nil, fmt.Errorf("read addresses: %w", err)
	}
	for _, e := range emails {
		if e.Primary {
			who.Email, who.EmailVerified = e.Email, e.Verified
		}
	}
	if len(p.Groups) == 0 {
		return who, nil
	}
	var organizations []struct {
		Login string `json:"login"`
	}
	_, _, err := c.get(ctx, gitHubAPI(p)+"/user/orgs?per_page=100", bearer, &organizations)
	if err != nil {
		return nil, fmt.Errorf("read organizations: %w", err)
	}
	for _, o := range organizations {
		who.Groups = append(who.Groups, o.Login)
	}
	return who, nil
}
