package adminapi

import "gatehouse/actors/account"

// invitationRecord is an invitation as the admin API shows it.
type invitationRecord struct {
	ID        string   `json:"id"`
	Email     string   `json:"email"`
	Name      *string  `json:"name"`
	Groups    []string `json:"groups"`
	CreatedAt string   `json:"created_at"`
	ExpiresAt string   `json:"expires_at"`
}

func newInvitationRecord(i *account.Invitation) invitationRecord {
	return invitationRecord{i.ID, i.Email, orNull(i.Name), orEmpty(i.Groups.Names()),
		timestamp(i.Made), timestamp(i.Ends)}
}

func listInvitations(c *adminCall) (any, error) {
	after, limit, err := c.page()
	if err != nil {
		return nil, err
	}
	all, err := c.people.Invitations(c.context, after, limit)
	if err != nil {
		return nil, err
	}
	page := struct {
		Invitations []invitationRecord `json:"invitations"`
		Next        string             `json:"next"` // the parameter after of the next page; "" = none
	}{Invitations: make([]invitationRecord, len(all))}
	for n, i := range all {
		page.Invitations[n] = newInvitationRecord(i)
	}
	if len(all) == limit {
		page.Next = all[limit-1].ID
	}
	return page, nil
}

func createInvitation(c *adminCall) (any, error) {
	o, err := c.object()
	if err != nil {
		return nil, err
	}
	var email, name string
	var groups []string
	o.text("email", &email)
	o.clearable("name", &name)
	o.texts("groups", &groups)
	if err := o.end(); err != nil {
		return nil, err
	}
	i, err := c.people.Invite(c.context, email, name, groups, c.now)
	if err != nil {
		return nil, err
	}
	c.created(pathAdminInvitations + "/" + i.ID)
	return newInvitationRecord(i), nil
}

func deleteInvitation(c *adminCall) (any, error) {
	return nil, c.people.EndInvitation(c.context, c.pathValue("id"))
}
