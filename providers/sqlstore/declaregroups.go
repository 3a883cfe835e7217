package sqlstore

import (
	"slices"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

const (
	ownedGroups = `SELECT name, set_name, declared, released FROM user_groups`
	ownedClaims = `SELECT name, attribute, scope, set_name, declared, '' FROM claims`
)

// event collects an event of what the files declare.
func (d *declaring) event(e audit.Event) {
	e.Source = audit.SourceOf(d.ctx)
	d.events = append(d.events, e)
}

// ownedGroup is a group and whose it is.
type ownedGroup struct {
	account.Group
	released bool
}

// declareGroups creates the groups of the sets. Those that are gone from the files stay with their
// members, and belong to nobody.
func (d *declaring) declareGroups(sets []*oauth.DeclaredSet) error {
	known := map[string]ownedGroup{}
	err := d.conn.rows(d.ctx, ownedGroups, nil, func(r row) error {
		var g ownedGroup
		err := r.Scan(&g.Name, &g.Set, &g.Declared, &g.released)
		known[g.Name] = g
		return err
	})
	if err != nil {
		return err
	}
	described := map[string]bool{}
	for _, set := range sets {
		for _, name := range set.Groups {
			described[name] = true
			old, exists := known[name]
			if !exists {
				g := account.Group{Name: name, Set: set.Name, Declared: true}
				if err := d.createGroup(&g); err != nil {
					return undone(err)
				}
				d.event(audit.Event{Action: audit.GroupCreated, Target: name})
				continue
			}
			if !old.released {
				if err := d.checkOwner(set, "group "+name, old.Set, old.Declared); err != nil {
					return err
				}
			}
			if err := d.ownGroup(&old, set.Name, true); err != nil {
				return err
			}
		}
	}
	for _, g := range known {
		if g.Declared && d.due[g.Set] != nil && !described[g.Name] {
			if err := d.ownGroup(&g, "", false); err != nil {
				return err
			}
		}
	}
	return nil
}

// ownGroup makes a group one of a set, or of none.
func (d *declaring) ownGroup(g *ownedGroup, set string, declared bool) error {
	if g.Set == set && g.Declared == declared {
		return nil
	}
	d.event(audit.Event{Action: audit.GroupChanged, Target: g.Name, Details: []string{"set"}})
	_, err := d.conn.exec(d.ctx, changeGroup, g.Name, set, declared, !declared)
	return err
}

// declareAttributes makes the attributes of the sets what they say. Those that are gone are deleted.
func (d *declaring) declareAttributes(sets []*oauth.DeclaredSet) error {
	known := map[string]account.Attribute{}
	err := d.conn.rows(d.ctx, selectAttributes, nil, func(r row) error {
		a, err := scanAttribute(r)
		known[a.Name] = a
		return err
	})
	if err != nil {
		return err
	}
	described := map[string]bool{}
	for _, set := range sets {
		for _, one := range set.Attributes {
			described[one.Name] = true
			a := account.Attribute{Name: one.Name, Type: one.Type, Change: one.Change,
				Set: set.Name, Declared: true}
			old, exists := known[one.Name]
			var before audit.Data
			if exists {
				if err := d.checkOwner(set, "attribute "+a.Name, old.Set, old.Declared); err != nil {
					return err
				}
				before = attributeData(&old)
			}
			if old == a {
				continue
			}
			d.event(audit.ChangeOf(audit.AttributeChanged, a.Name, before, attributeData(&a)))
			if err := d.putAttribute(a); err != nil {
				return err
			}
			known[a.Name] = a
		}
	}
	for _, a := range known {
		if !a.Declared || d.due[a.Set] == nil || described[a.Name] {
			continue
		}
		d.event(audit.ChangeOf(audit.AttributeChanged, a.Name, attributeData(&a), nil))
		d.noteClaims()
		if _, err := d.conn.exec(d.ctx, deleteAttribute, a.Name); err != nil {
			return err
		}
		delete(known, a.Name)
	}
	for _, set := range sets {
		if len(known) > account.MostAttributes && len(set.Attributes) > 0 {
			return refused(set, "there are more than %d attributes", account.MostAttributes)
		}
		for _, c := range set.Claims {
			if _, ok := known[c.Attribute]; !ok {
				return refused(set, "claim %s: there is no attribute %s", c.Name, c.Attribute)
			}
		}
	}
	return nil
}

func attributeData(a *account.Attribute) audit.Data {
	return audit.Data{"type": a.Type, "change": a.Change, "set": a.Set}
}

// declareClaims makes the claims of the sets what they say. Those that are gone are deleted.
func (d *declaring) declareClaims(sets []*oauth.DeclaredSet) error {
	var known []oauth.Claim
	err := d.conn.rows(d.ctx, ownedClaims, nil, func(r row) error {
		c, err := scanClaim(r)
		known = append(known, c)
		return err
	})
	if err != nil {
		return err
	}
	described := map[string]bool{}
	for _, set := range sets {
		for _, c := range set.Claims {
			described[c.Name], c.Set = true, set.Name
			i := slices.IndexFunc(known, func(k oauth.Claim) bool { return k.Name == c.Name })
			var before audit.Data
			if i >= 0 {
				old := &known[i]
				if err := d.checkOwner(set, "claim "+c.Name, old.Set, old.Declared); err != nil {
					return err
				}
				if *old == c {
					continue
				}
				before = claimData(old)
			}
			d.event(audit.ChangeOf(audit.ClaimChanged, c.Name, before, claimData(&c)))
			if err := d.putClaim(c); err != nil {
				return err
			}
		}
		if len(known) > oauth.MostClaims && len(set.Claims) > 0 {
			return refused(set, "there are more than %d claims", oauth.MostClaims)
		}
	}
	for _, c := range known {
		if !c.Declared || d.due[c.Set] == nil || described[c.Name] {
			continue
		}
		d.event(audit.ChangeOf(audit.ClaimChanged, c.Name, claimData(&c), nil))
		d.noteClaims()
		if _, err := d.conn.exec(d.ctx, deleteClaim, c.Name); err != nil {
			return err
		}
	}
	return nil
}

func claimData(c *oauth.Claim) audit.Data {
	return audit.Data{"from": c.From(), "scope": c.Scope, "set": c.Set}
}
