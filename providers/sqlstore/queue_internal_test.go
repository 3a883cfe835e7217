package sqlstore

import (
	"context"
	"net/netip"
	"testing"

	"github.com/google/uuid"

	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

func TestAskerOf(t *testing.T) {
	family, grant := uuid.New(), oauth.Grant{UserID: 7, ClientID: "app"}
	from := func(kind audit.ActorKind, id, caller string) oauth.Operation {
		return &task{Write: oauth.Write{Context: audit.WithSource(context.Background(), audit.Source{
			Actor: audit.Actor{Kind: kind, ID: id}, Caller: netip.MustParseAddr(caller)})}}
	}
	redeem := &oauth.Redeem{Family: oauth.Family{UserID: 7, ClientID: "app"}}
	redeem.Context = audit.WithActor(context.Background(), audit.Actor{Kind: audit.Client, ID: "app"})
	user, client := asker{user: 7}, asker{client: "app"}
	for what, c := range map[string]struct {
		op   oauth.Operation
		want asker
	}{
		"code":             {&oauth.SaveCode{Code: oauth.AuthorizationCode{UserID: 7, ClientID: "app"}}, user},
		"redemption":       {redeem, user},
		"rotation":         {&oauth.Rotate{FamilyID: family, Grant: grant}, user},
		"end of a family":  {&oauth.Revoke{FamilyID: family, Grant: grant}, user},
		"end of a consent": {&oauth.Revoke{Consent: &grant}, user},
		"end of a token":   {&oauth.Revoke{Token: &oauth.TokenEnd{UserID: 7, ClientID: "app"}}, user},
		"client's token":   {&oauth.Revoke{Token: &oauth.TokenEnd{ClientID: "app"}}, client},
		"end of a user":    {&oauth.Revoke{UserID: 7}, user},
		"end of a client":  {&oauth.Revoke{ClientID: "app"}, client},
		"person":           {from(audit.User, "7", "192.0.2.1"), user},
		"operator":         {from(audit.Operator, "app", "192.0.2.1"), client},
		"caller by IPv4":   {from(audit.User, "", "192.0.2.1"), asker{caller: netip.MustParsePrefix("192.0.2.1/32")}},
		"mapped IPv4": {from(audit.User, "", "::ffff:192.0.2.1"),
			asker{caller: netip.MustParsePrefix("192.0.2.1/32")}},
		"caller by IPv6": {from(audit.User, "", "2001:db8:1:2::3"),
			asker{caller: netip.MustParsePrefix("2001:db8:1::/48")}},
		"service": {&task{}, asker{}},
	} {
		if got := askerOf(c.op); got != c.want {
			t.Errorf("%s: got %+v, want %+v", what, got, c.want)
		}
	}
}
