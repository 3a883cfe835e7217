package sqlstore

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

// mappedSource returns the source of the memberships that a connection gives: its issuer, and a hash
// of issuer and subject.
func mappedSource(c *account.Connection) string {
	sum := sha256.Sum256([]byte(c.Way()))
	return c.Issuer + " " + base64.RawURLEncoding.EncodeToString(sum[:12])
}

// setGroups sets the groups of u by a text with a line for each membership: name and source.
func setGroups(u *account.User, text string) {
	name, source, _ := strings.Cut(text, " ")
	if source == "" { // no group, or one that an operator gave
		u.Groups, u.Given = account.Groups(name), account.Groups(name)
		return
	}
	var all, given []string
	mapped := map[string][]string{}
	for line := range strings.SplitSeq(text, "\n") {
		name, source, _ := strings.Cut(line, " ")
		all = append(all, name)
		if issuer, _, ok := strings.Cut(source, " "); ok {
			mapped[issuer] = append(mapped[issuer], name)
		} else {
			given = append(given, name)
		}
	}
	u.Groups, u.Given = account.NewGroups(all), account.NewGroups(given)
	for issuer, names := range mapped {
		if u.Mapped == nil {
			u.Mapped = map[string]account.Groups{}
		}
		u.Mapped[issuer] = account.NewGroups(names)
	}
}

// insertMapped makes a new user a member of those groups of the connections that exist.
func (b *batch) insertMapped(u *account.User) error {
	count := u.Groups.Count()
	for i := range u.Credentials.Connections {
		c := &u.Credentials.Connections[i]
		if len(c.Groups) == 0 {
			continue
		}
		if err := b.readGroups(); err != nil {
			return err
		}
		for _, name := range c.Groups {
			id := b.groups[name]
			if id == 0 || name == account.OperatorsGroup || count >= account.MostGroups {
				continue
			}
			if _, err := b.conn.exec(b.ctx, insertMapped, u.ID, id, mappedSource(c)); err != nil {
				return err
			}
			count++
		}
	}
	return nil
}

// mapGroups makes u, whose row is locked, a member of the groups of the connections that were added,
// used or removed since the stored credentials before.
func (b *batch) mapGroups(u *account.User, before string) error {
	var old account.Credentials
	if before != "" {
		if err := json.Unmarshal([]byte(before), &old); err != nil {
			return err
		}
	}
	groups := map[string][]string{} // by source
	for i := range old.Connections {
		groups[mappedSource(&old.Connections[i])] = nil
	}
	for i := range u.Credentials.Connections {
		c := &u.Credentials.Connections[i]
		same := slices.ContainsFunc(old.Connections, func(o account.Connection) bool {
			return o.Way() == c.Way() && o.Used.Equal(c.Used) && slices.Equal(o.Groups, c.Groups)
		})
		if groups[mappedSource(c)] = c.Groups; same {
			delete(groups, mappedSource(c))
		}
	}
	if len(groups) == 0 {
		return nil
	}
	was, err := b.groupsOf(u.ID)
	if err != nil {
		return err
	}
	for _, source := range slices.Sorted(maps.Keys(groups)) {
		if err := b.mapSource(u.ID, source, groups[source]); err != nil {
			return err
		}
	}
	return b.noteGroups(u.ID, was)
}

// mapSource makes a user a member of the groups with these names by a source, and of no others.
func (b *batch) mapSource(userID int64, source string, names []string) error {
	has := map[string]int64{}
	err := b.conn.rows(b.ctx, mappedBy, []any{userID, source}, func(r row) error {
		var id int64
		var name string
		err := r.Scan(&id, &name)
		has[name] = id
		return err
	})
	if err != nil {
		return err
	}
	for name, id := range has {
		if slices.Contains(names, name) {
			continue
		}
		if _, err := b.conn.exec(b.ctx, deleteMapped, userID, id, source); err != nil {
			return err
		}
	}
	for _, name := range names {
		if has[name] != 0 || name == account.OperatorsGroup {
			continue
		}
		id, err := b.lockGroup(name, false)
		if errors.As(err, new(refusal)) { // there is none
			continue
		}
		if err != nil {
			return err
		}
		var others int
		if err := b.conn.one(b.ctx, countGroups, []any{userID, id}, &others); err != nil {
			return err
		}
		if others >= account.MostGroups {
			return nil
		}
		if _, err := b.conn.exec(b.ctx, insertMapped, userID, id, source); err != nil {
			return err
		}
	}
	return nil
}

// noteGroups notes that the groups of a user have changed since was: all nodes read the user again, the
// audit trail gets the changes, and grants end to clients that the user may not use any more.
func (b *batch) noteGroups(userID int64, was account.Groups) error {
	is, err := b.groupsOf(userID)
	if err != nil || is == was {
		return err
	}
	b.noteUser(userID)
	record := func(action audit.Action, names []string, without account.Groups) (changed []string) {
		for _, name := range names {
			if !without.Has(name) {
				changed = append(changed, name)
				b.events = append(b.events, audit.Event{Action: action, Target: name,
					Subject: audit.OfUser(userID), Source: b.source, Details: []string{"provider"}})
			}
		}
		return changed
	}
	record(audit.MemberAdded, is.Names(), was)
	left := record(audit.MemberRemoved, was.Names(), is)
	if left == nil {
		return nil
	}
	restricted, err := b.restrictedTo(left...)
	if err != nil {
		return err
	}
	return b.endAccess(userID, is, restricted)
}

// membership is a group that a connection gives to a user.
type membership struct {
	user, group  int64
	source, name string
}

// EndMapped implements oauth.ProviderStore.
func (s *Store) EndMapped(ctx context.Context) (ended bool, err error) {
	providers, err := s.Providers(ctx)
	if err != nil {
		return false, err
	}
	isMapped := func(m *membership) bool {
		issuer, _, _ := strings.Cut(m.source, " ")
		return slices.ContainsFunc(providers, func(p *oauth.Provider) bool {
			return p.Issuer == issuer && !p.Disabled && p.MapsTo(m.name)
		})
	}
	for last := (membership{}); ; {
		var stale []membership
		read := 0
		err := readAll(ctx, s, someMapped,
			[]any{last.user, last.group, last.source, account.GroupMembersPart}, func(r row) error {
				read++
				err := r.Scan(&last.user, &last.group, &last.source, &last.name)
				if err == nil && !isMapped(&last) {
					stale = append(stale, last)
				}
				return err
			})
		if err == nil && stale != nil {
			ended = true
			err = s.delete(ctx, func(b *batch) error { return b.endMapped(stale) })
		}
		if err != nil || read < account.GroupMembersPart {
			return ended, wrap("end memberships of providers", err)
		}
	}
}

// endMapped ends memberships, which are sorted by user.
func (b *batch) endMapped(all []membership) error {
	for first := range all {
		user := all[first].user
		if first > 0 && all[first-1].user == user {
			continue
		}
		if _, err := b.conn.exec(b.ctx, lockUser, user); err != nil {
			return err
		}
		was, err := b.groupsOf(user)
		if err != nil {
			return err
		}
		for _, m := range all[first:] {
			if m.user != user {
				break
			}
			if _, err := b.conn.exec(b.ctx, deleteMapped, user, m.group, m.source); err != nil {
				return err
			}
		}
		if err := b.noteGroups(user, was); err != nil {
			return err
		}
	}
	return nil
}
