package sqlstore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

const (
	selectGroup = `SELECT name, set_name, declared, (SELECT COUNT(DISTINCT m.user_id) FROM group_members m WHERE m.group_id = g.id)
FROM user_groups g `
	selectGroups      = selectGroup + `WHERE name > $1 ORDER BY name LIMIT CAST($2 AS BIGINT)`
	selectGroupByName = selectGroup + `WHERE name = $1`
	selectMembers     = selectUser + `WHERE id IN (SELECT m.user_id FROM group_members m JOIN user_groups g ON g.id = m.group_id
WHERE g.name = $1 AND m.user_id > $2) ORDER BY id LIMIT CAST($3 AS BIGINT)`

	nextGroup   = `UPDATE counters SET value = value + 1 WHERE name = 'group' RETURNING value`
	insertGroup = `INSERT INTO user_groups (id, name, set_name, declared) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING`
	groupNumber = `SELECT id FROM user_groups WHERE name = $1`
	changeGroup = `UPDATE user_groups SET set_name = $2, declared = $3, released = $4 WHERE name = $1`
	// The row stays locked until the commit, so that nobody joins a group that is being deleted.
	lockGroup   = `UPDATE user_groups SET name = name WHERE name = $1 RETURNING id, declared`
	deleteGroup = `DELETE FROM user_groups WHERE id = $1`

	someMembers = `SELECT DISTINCT m.user_id FROM group_members m JOIN user_groups g ON g.id = m.group_id
WHERE g.name = $1 ORDER BY m.user_id LIMIT CAST($2 AS BIGINT)`
	countGroups  = `SELECT COUNT(DISTINCT group_id) FROM group_members WHERE user_id = $1 AND group_id <> $2`
	insertMember = `INSERT INTO group_members (user_id, group_id) VALUES ($1, $2) ON CONFLICT DO NOTHING`
	insertMapped = `INSERT INTO group_members (user_id, group_id, source) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING`
	deleteMapped = `DELETE FROM group_members WHERE user_id = $1 AND group_id = $2 AND source = $3`
	// mappedBy returns what one connection gives, and someMapped a part of what all do.
	mappedBy   = `SELECT g.id, g.name FROM group_members m JOIN user_groups g ON g.id = m.group_id WHERE m.user_id = $1 AND m.source = $2`
	someMapped = `SELECT m.user_id, m.group_id, m.source, g.name FROM group_members m JOIN user_groups g ON g.id = m.group_id
WHERE m.source <> '' AND (m.user_id, m.group_id, m.source) > ($1, $2, $3) ORDER BY m.user_id, m.group_id, m.source LIMIT CAST($4 AS BIGINT)`
	isMember     = `SELECT user_id FROM group_members WHERE user_id = $1 AND group_id = $2 LIMIT 1`
	deleteMember = `DELETE FROM group_members WHERE user_id = $1 AND group_id = $2`
	userGroups   = `SELECT g.name FROM group_members m JOIN user_groups g ON g.id = m.group_id WHERE m.user_id = $1`
	groupNumbers = `SELECT id, name FROM user_groups`

	restrictedClients = `SELECT id, options FROM clients WHERE options LIKE '%"require_groups":%' ORDER BY id`

	selectAttributes = `SELECT name, type, changer, set_name, declared FROM attributes ORDER BY name`
	putAttribute     = `INSERT INTO attributes (name, type, changer, set_name, declared) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (name) DO UPDATE SET type = excluded.type, changer = excluded.changer, set_name = excluded.set_name, declared = excluded.declared`
	deleteAttribute = `DELETE FROM attributes WHERE name = $1`
	attributeUsed   = `SELECT 1 FROM claims WHERE attribute = $1 LIMIT 1`
)

// Groups implements account.GroupStore.
func (s *Store) Groups(
	ctx context.Context, after string, limit int,
) (groups []account.Group, err error) {
	if !isText(after) {
		return nil, fmt.Errorf("read groups: %w", errText)
	}
	err = readAll(ctx, s, selectGroups, []any{after, max(0, limit)}, func(r row) error {
		g, err := scanGroup(r)
		groups = append(groups, g)
		return err
	})
	return groups, wrap("read groups", err)
}

// Group implements account.GroupStore.
func (s *Store) Group(ctx context.Context, name string) (g account.Group, err error) {
	if !account.IsGroupName(name) {
		return g, fmt.Errorf("read group: %w", account.ErrNoGroup)
	}
	err = readOne(ctx, s, account.ErrNoGroup, selectGroupByName, []any{name}, func(r row) error {
		g, err = scanGroup(r)
		return err
	})
	return g, wrap("read group", err)
}

func scanGroup(r row) (g account.Group, err error) {
	err = r.Scan(&g.Name, &g.Set, &g.Declared, &g.Members)
	return g, err
}

// Members implements account.GroupStore.
func (s *Store) Members(ctx context.Context, group string, after int64,
	limit int) (users []*account.User, err error) {
	if _, err := s.Group(ctx, group); err != nil {
		return nil, err
	}
	err = readAll(ctx, s, selectMembers, []any{group, after, max(0, limit)}, func(r row) error {
		u, err := scanUser(r)
		users = append(users, u)
		return err
	})
	return users, wrap("read members", err)
}

// CreateGroup implements account.GroupStore.
func (s *Store) CreateGroup(ctx context.Context, g account.Group) error {
	return wrap("create group", s.do(ctx, func(b *batch) error { return b.createGroup(&g) }))
}

func (b *batch) createGroup(g *account.Group) error {
	if found, err := b.conn.has(b.ctx, groupNumber, g.Name); err != nil || found {
		return cmp.Or[error](err, refusal{account.ErrGroupTaken})
	}
	var id int64
	if err := b.conn.one(b.ctx, nextGroup, nil, &id); err != nil {
		return err
	}
	b.groups = nil
	n, err := b.conn.exec(b.ctx, insertGroup, id, g.Name, g.Set, g.Declared)
	if err == nil && n == 0 { // by another process since; the number stays unused
		err = refusal{account.ErrGroupTaken}
	}
	return err
}

// ChangeGroup implements account.GroupStore.
func (s *Store) ChangeGroup(ctx context.Context, g account.Group) error {
	return wrap("change group", s.do(ctx, func(b *batch) error {
		if _, err := b.lockGroup(g.Name, true); err != nil {
			return err
		}
		_, err := b.conn.exec(b.ctx, changeGroup, g.Name, g.Set, false, false)
		return err
	}))
}

// lockGroup locks a group until the commit, and returns its number. With free, a declared one is
// refused.
func (b *batch) lockGroup(name string, free bool) (id int64, err error) {
	if !account.IsGroupName(name) {
		return 0, refusal{account.ErrNoGroup}
	}
	var declared bool
	err = b.conn.one(b.ctx, lockGroup, []any{name}, &id, &declared)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return 0, refusal{account.ErrNoGroup}
	case err == nil && free && declared:
		return 0, refusal{oauth.ErrDeclared}
	}
	return id, err
}

// DeleteGroup implements account.GroupStore.
func (s *Store) DeleteGroup(
	ctx context.Context, name string,
) (changed []int64, deleted bool, err error) {
	err = s.delete(ctx, func(b *batch) error {
		changed, deleted = nil, false
		restricted, err := b.restrictedTo(name)
		if err != nil {
			return err
		}
		err = b.conn.rows(b.ctx, someMembers, []any{name, account.GroupMembersPart}, func(r row) error {
			var user int64
			err := r.Scan(&user)
			changed = append(changed, user)
			return err
		})
		if err != nil {
			return err
		}
		if restricted != nil { // nobody may leave the last group of a client twice at once
			for _, user := range changed {
				if _, err := b.conn.exec(b.ctx, lockUser, user); err != nil {
					return err
				}
			}
		}
		id, err := b.lockGroup(name, true)
		if err != nil {
			return err
		}
		b.groups = nil
		for _, user := range changed {
			if err := b.removeMember(user, id, restricted); err != nil {
				return err
			}
			b.events = append(b.events, audit.Event{Action: audit.MemberRemoved, Target: name,
				Subject: audit.OfUser(user), Source: audit.SourceOf(ctx)})
		}
		if deleted = len(changed) < account.GroupMembersPart; !deleted {
			return errNoEffect // on the group
		}
		_, err = b.conn.exec(b.ctx, deleteGroup, id)
		return err
	})
	return changed, deleted, wrap("delete group", err)
}

// AddMember implements account.GroupStore.
func (s *Store) AddMember(
	ctx context.Context, group string, userID int64,
) (changed bool, err error) {
	err = s.do(ctx, func(b *batch) error {
		changed = false
		if err := b.change(lockUser, userID); err != nil {
			return err
		}
		id, err := b.lockGroup(group, false)
		if err != nil {
			return err
		}
		var others int
		if err := b.conn.one(b.ctx, countGroups, []any{userID, id}, &others); err != nil {
			return err
		}
		if others >= account.MostGroups {
			return refusal{account.ErrTooManyGroups}
		}
		n, err := b.conn.exec(b.ctx, insertMember, userID, id)
		if err != nil {
			return err
		}
		if n == 0 {
			return errNoEffect
		}
		changed = true
		b.noteUser(userID)
		return nil
	})
	return changed, wrap("add member", err)
}

// RemoveMember implements account.GroupStore.
func (s *Store) RemoveMember(
	ctx context.Context, group string, userID int64,
) (changed bool, err error) {
	err = s.delete(ctx, func(b *batch) error {
		changed = false
		if err := b.change(lockUser, userID); err != nil {
			return err
		}
		id, err := b.lockGroup(group, false)
		if err != nil {
			return err
		}
		is, err := b.conn.has(b.ctx, isMember, userID, id)
		if err != nil {
			return err
		}
		if !is {
			return errNoEffect
		}
		restricted, err := b.restrictedTo(group)
		if err != nil {
			return err
		}
		changed = true
		return b.removeMember(userID, id, restricted)
	})
	return changed, wrap("remove member", err)
}

// removeMember takes a user out of a group, and ends the grants to those of the restricted clients
// that the user has no access to any more.
func (b *batch) removeMember(userID, groupID int64, restricted []*oauth.Client) error {
	if _, err := b.conn.exec(b.ctx, deleteMember, userID, groupID); err != nil {
		return err
	}
	b.noteUser(userID)
	if len(restricted) == 0 {
		return nil
	}
	groups, err := b.groupsOf(userID)
	if err != nil {
		return err
	}
	return b.endAccess(userID, groups, restricted)
}

// endAccess ends the grants to those of the restricted clients that a user who is in groups has no
// access to.
func (b *batch) endAccess(userID int64, groups account.Groups, restricted []*oauth.Client) error {
	for _, c := range restricted {
		if groups.HasAny(c.Options.RequireGroups) {
			continue
		}
		if _, err := b.conn.exec(b.ctx, revokeGrantCodes, userID, c.ID); err != nil {
			return err
		}
		if _, err := b.endFamilies(revokeGrantFamilies, userID, c.ID); err != nil {
			return err
		}
	}
	return nil
}

func (b *batch) groupsOf(userID int64) (account.Groups, error) {
	var names []string
	err := b.conn.rows(b.ctx, userGroups, []any{userID}, func(r row) error {
		var name string
		err := r.Scan(&name)
		names = append(names, name)
		return err
	})
	return account.NewGroups(names), err
}

// restrictedTo returns the clients that people must be in one of the groups for, or in one of several.
// Only ID and Options are set.
func (b *batch) restrictedTo(groups ...string) (clients []*oauth.Client, err error) {
	err = b.conn.rows(b.ctx, restrictedClients, nil, func(r row) error {
		var c oauth.Client
		var options string
		if err := r.Scan(&c.ID, &options); err != nil {
			return err
		}
		c.Options, err = parseOptions(options)
		if slices.ContainsFunc(groups, func(name string) bool {
			return slices.Contains(c.Options.RequireGroups, name)
		}) {
			clients = append(clients, &c)
		}
		return err
	})
	return clients, err
}

// insertMembers makes a new user a member of u's groups. It returns a refusal if one of them does not
// exist.
func (b *batch) insertMembers(u *account.User) error {
	missing, err := b.missingGroup(u)
	if err == nil && missing != "" {
		err = refusal{account.ErrNoGroup}
	}
	if err != nil {
		return err
	}
	for _, name := range u.Groups.Names() {
		if _, err := b.conn.exec(b.ctx, insertMember, u.ID, b.groups[name]); err != nil {
			return err
		}
	}
	return nil
}

// missingGroup returns the first of u's groups that does not exist; "" = all do.
func (b *batch) missingGroup(u *account.User) (name string, err error) {
	if u.Groups == "" {
		return "", nil
	}
	if err := b.readGroups(); err != nil {
		return "", err
	}
	for _, name := range u.Groups.Names() {
		if b.groups[name] == 0 {
			return name, nil
		}
	}
	return "", nil
}

// readGroups sets b.groups.
func (b *batch) readGroups() error {
	if b.groups != nil {
		return nil
	}
	groups := map[string]int64{}
	err := b.conn.rows(b.ctx, groupNumbers, nil, func(r row) error {
		var id int64
		var name string
		err := r.Scan(&id, &name)
		groups[name] = id
		return err
	})
	if err == nil {
		b.groups = groups
	}
	return err
}

// Attributes implements account.GroupStore.
func (s *Store) Attributes(ctx context.Context) (all []account.Attribute, err error) {
	err = readAll(ctx, s, selectAttributes, nil, func(r row) error {
		a, err := scanAttribute(r)
		all = append(all, a)
		return err
	})
	return all, wrap("read attributes", err)
}

func scanAttribute(r row) (a account.Attribute, err error) {
	err = r.Scan(&a.Name, &a.Type, &a.Change, &a.Set, &a.Declared)
	return a, err
}

// PutAttribute implements account.GroupStore.
func (s *Store) PutAttribute(ctx context.Context, a account.Attribute) error {
	return wrap("write attribute", s.do(ctx, func(b *batch) error { return b.putAttribute(a) }))
}

func (b *batch) putAttribute(a account.Attribute) error {
	b.noteClaims() // which are made of attributes
	_, err := b.conn.exec(b.ctx, putAttribute, a.Name, a.Type, a.Change, a.Set, a.Declared)
	return err
}

// DeleteAttribute implements account.GroupStore.
func (s *Store) DeleteAttribute(ctx context.Context, name string) error {
	return wrap("delete attribute", s.do(ctx, func(b *batch) error {
		if used, err := b.conn.has(b.ctx, attributeUsed, name); err != nil {
			return err
		} else if used {
			return refusal{account.ErrConflict}
		}
		return b.change(deleteAttribute, name)
	}))
}
