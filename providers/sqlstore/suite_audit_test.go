package sqlstore_test

import (
	"context"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"gatehouse/actors/account"
	"gatehouse/actors/audit"
	"gatehouse/actors/oauth"
)

var auditTests = map[string]func(*testing.T, *fixture){
	"EventsAreReadAsRecorded":     eventsAsRecorded,
	"WritesRecordTheirEvents":     writesRecord,
	"WritesWithoutEffectDoNot":    noEffectRecordsNone,
	"EventsOfARetriedBatch":       eventsOfRetriedBatch,
	"EventsOutliveTheirUser":      eventsOutliveUser,
	"SelectEvents":                selectEvents,
	"ManyEventsBecomeACount":      manyEventsCount,
	"ManyConsentsHideNone":        manyConsentsHideNone,
	"NobodyHidesEvents":           nobodyHidesEvents,
	"ManyEventsOfOneTransaction":  manyEventsOfOneTransaction,
	"CountsAreDeletedAfterHours":  countsAreDeleted,
	"TextThatCannotBeStoredEmpty": badTextOfEvents,
}

// request is a context of a request by a user.
func (f *fixture) request() context.Context {
	return audit.WithSource(f.ctx, audit.Source{
		Actor:     audit.Actor{Kind: audit.User, ID: strconv.FormatInt(f.user.ID, 10)},
		RequestID: "request-1", Caller: netip.MustParseAddr("192.0.2.7"),
	})
}

// events returns the events that a filter selects, 1000 at most.
func (f *fixture) events(filter audit.Filter) []audit.Event {
	f.Helper()
	if filter.Limit == 0 {
		filter.Limit = 1000
	}
	events, err := f.Events(f.ctx, filter)
	f.must(err)
	return events
}

// lastEvent returns the number of the last event.
func (f *fixture) lastEvent() int64 {
	f.Helper()
	for _, e := range f.events(audit.Filter{Newest: true, Limit: 1}) {
		return e.Number
	}
	return 0
}

// recorded checks the events above a number. The caller and what the Store sets are not compared.
func (f *fixture) recorded(what string, after int64, want ...audit.Event) {
	f.Helper()
	got := f.events(audit.Filter{After: after})
	for i := range got {
		got[i].Number, got[i].Time, got[i].Count, got[i].From = 0, time.Time{}, 0, ""
	}
	if len(got) != len(want) || len(want) > 0 && !reflect.DeepEqual(got, want) {
		f.Errorf("%s: got %+v, want %+v", what, got, want)
	}
}

func eventsAsRecorded(t *testing.T, f *fixture) {
	ctx := audit.With(f.request(), audit.Event{Action: audit.SignIn,
		Subject: audit.OfUser(f.user.ID), Details: []string{"password", "new_browser"}})
	ctx = audit.With(ctx, audit.Event{Action: audit.ConsentGiven, Outcome: audit.Refused,
		Subject: audit.OfClient(f.client.ID), Target: "target", Count: 7})
	before := time.Now()
	f.must(f.Record(ctx))
	got := f.events(audit.Filter{})
	if len(got) != 2 {
		t.Fatalf("got %d events, want 2", len(got))
	}
	for i, e := range got {
		if e.Time.Before(before.Truncate(time.Millisecond)) || e.Time.After(time.Now()) {
			t.Errorf("got time %v, want that of the write", e.Time)
		}
		got[i].Time = time.Time{}
	}
	source := audit.SourceOf(ctx)
	source.Caller = netip.Addr{}
	if want := []audit.Event{
		{Number: 1, Action: audit.SignIn, Outcome: audit.OK, Subject: audit.OfUser(f.user.ID),
			Details: []string{"password", "new_browser"}, Count: 1, From: "192.0.2.0/24",
			Source: source},
		{Number: 2, Action: audit.ConsentGiven, Outcome: audit.Refused,
			Subject: audit.OfClient(f.client.ID), Target: "target", Count: 7, From: "192.0.2.0/24",
			Source: source},
	}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// writes returns writes, each of which records an event. The event's subject is the service, except
// for those that the Store sets.
func (f *fixture) writes() []auditedWrite {
	session := &account.Session{Hash: newHash(), UserID: f.user.ID, Created: f.now,
		Expires: f.now.Add(time.Hour)}
	other := &account.Session{Hash: newHash(), UserID: f.user.ID, Created: f.now,
		Expires: f.now.Add(time.Hour)}
	f.endedTokens(f.CreateSession(f.ctx, other))
	grant := oauth.Grant{UserID: f.user.ID, ClientID: f.client.ID}
	token, family, code := f.machine(), f.family(), f.code()
	redeemed := f.redeem(code.Hash, f.now).Family
	redeeming := func(ctx context.Context) error {
		op := f.redeem(code.Hash, f.now)
		op.Context, op.Family.ID = ctx, redeemed.ID
		return f.submit(op)()[0]
	}
	rotating := func(ctx context.Context) error {
		op := f.rotate(redeemed, 1, f.now, 0)
		op.Context = ctx
		return f.submit(op)()[0]
	}
	revoking := func(r *oauth.Revoke) func(context.Context) error {
		return func(ctx context.Context) error {
			return f.submit(&oauth.Revoke{Write: oauth.Write{Context: ctx}, Token: r.Token,
				FamilyID: r.FamilyID, UserID: r.UserID, ClientID: r.ClientID,
				Consent: r.Consent})()[0]
		}
	}
	return []auditedWrite{
		{"create session", func(ctx context.Context) error {
			_, err := f.CreateSession(ctx, session)
			return err
		}},
		{"update session", func(ctx context.Context) error {
			return f.UpdateSession(ctx, session)
		}},
		{"delete session", func(ctx context.Context) error {
			_, err := f.DeleteSession(ctx, session.Hash)
			return err
		}},
		{"delete sessions", func(ctx context.Context) error {
			_, err := f.DeleteSessions(ctx, f.user.ID, [32]byte{})
			return err
		}},
		{"grant consent", func(ctx context.Context) error {
			return f.GrantConsent(ctx, &account.Consent{UserID: f.user.ID, ClientID: f.client.ID,
				Granted: f.now}, time.Time{})
		}},
		{"save code", func(ctx context.Context) error {
			op := &oauth.SaveCode{Code: code}
			op.Context = ctx
			return f.submit(op)()[0]
		}},
		{"redeem", redeeming},
		{"rotate", rotating},
		{"revoke token", revoking(&oauth.Revoke{Token: &token.end})},
		{"revoke family", revoking(&oauth.Revoke{FamilyID: family.Family.ID})},
		{"revoke consent", revoking(&oauth.Revoke{Consent: &grant})},
		{"revoke user", revoking(&oauth.Revoke{UserID: f.user.ID})},
		{"revoke client", revoking(&oauth.Revoke{ClientID: f.client.ID})},
		{"record", func(ctx context.Context) error {
			op := &oauth.Record{}
			op.Context = ctx
			return f.submit(op)()[0]
		}},
		{"update user", func(ctx context.Context) error { return f.UpdateUser(ctx, f.user) }},
		{"replace password", func(ctx context.Context) error {
			return f.ChangeCredentials(ctx, f.user, account.CredentialChange{EndTokens: true})
		}},
		{"update client", func(ctx context.Context) error { return f.UpdateClient(ctx, f.client) }},
		{"rotate keys", func(ctx context.Context) error {
			err := f.RotateKeys(ctx, oauth.KeyRotation{Purpose: oauth.FormKeys, Now: f.now,
				Expires: f.now})
			return err
		}},
		{"create client", func(ctx context.Context) error {
			return f.CreateClient(ctx, &oauth.Client{ID: uuid.NewString(), Created: f.now})
		}},
		{"delete client", func(ctx context.Context) error {
			return f.DeleteClient(ctx, f.client.ID)
		}},
		{"delete user", func(ctx context.Context) error { return f.DeleteUser(ctx, f.user.ID, [32]byte{}) }},
	}
}

// auditedWrite is a write that records the events of its context.
type auditedWrite struct {
	name string
	do   func(context.Context) error
}

func writesRecord(t *testing.T, f *fixture) {
	source := audit.SourceOf(f.request())
	source.Caller = netip.Addr{}
	want := audit.Event{Action: audit.AccountChanged, Outcome: audit.OK, Source: source}
	for _, write := range f.writes() {
		before := f.lastEvent()
		f.must(write.do(audit.With(f.request(), audit.Event{Action: audit.AccountChanged})))
		f.recorded(write.name, before, want)
	}
	f.user, f.client = f.newUser(), f.newClient()
	want.Action = audit.AccountCreated
	ctx := audit.With(f.request(), audit.Event{Action: audit.AccountCreated})
	want.RequestID, want.Actor = "request-1", audit.SourceOf(ctx).Actor

	before, created := f.lastEvent(), &account.User{Name: "Ada"}
	f.must(f.CreateUser(ctx, created))
	want.Subject = audit.OfUser(created.ID)
	f.recorded("create user", before, want)

	challenge := &account.Challenge{Hash: newHash(), Purpose: account.ForPhone, CodeHash: "code",
		Channel: account.SMS, Address: "+12025550100", Sent: f.now, Expires: f.now.Add(time.Hour),
		Ends: f.now.Add(time.Hour)}
	_, err := f.CreateChallenge(f.ctx, challenge, [32]byte{})
	f.must(err)
	before, created = f.lastEvent(), &account.User{Name: "Ada", Phone: "+12025550100"}
	f.must(f.TakeChallenge(ctx, challenge, created, f.now))
	want.Subject = audit.OfUser(created.ID)
	f.recorded("take challenge", before, want)

	want.Action, want.Subject = audit.FamilyReused, audit.OfUser(f.user.ID)
	want.Outcome = audit.Refused
	for what, reuse := range map[string]func(*oauth.Redeem) (oauth.Operation, *oauth.Write){
		"replay of a code": func(r *oauth.Redeem) (oauth.Operation, *oauth.Write) {
			again := f.redeem(r.Code, f.now)
			return again, &again.Write
		},
		"reuse of a refresh token": func(r *oauth.Redeem) (oauth.Operation, *oauth.Write) {
			f.do(f.rotate(r.Family, 1, f.now, 0))
			again := f.rotate(r.Family, 1, f.now, 0)
			return again, &again.Write
		},
	} {
		r := f.family()
		op, write := reuse(r)
		before := f.lastEvent()
		write.Context = f.request()
		f.do(op)
		want.Target = r.Family.ID.String()
		f.recorded(what, before, want)
	}
}

func noEffectRecordsNone(t *testing.T, f *fixture) {
	writes, ended := f.writes(), f.machine()
	for _, write := range writes {
		f.must(write.do(f.ctx))
	}
	// The user and the client are gone now, and the code and the tokens have ended.
	none := audit.With(f.request(), audit.Event{Action: audit.AccountChanged})
	for _, write := range writes {
		switch write.name {
		case "grant consent", "update session", "create session", "update user", "update client",
			"replace password", "delete client", "delete user":
			if write.do(none) == nil {
				t.Errorf("%s: got no error", write.name)
			}
		case "create client", "rotate keys", "save code", "record": // these have one again
		default:
			f.must(write.do(none))
		}
	}
	ended.end.Expires = f.now
	f.do(&oauth.Revoke{Write: oauth.Write{Context: none}, Token: &ended.end})
	f.recorded("writes without effect", 0)
}

func eventsOfRetriedBatch(t *testing.T, f *fixture) {
	ctx := audit.With(f.ctx, audit.Event{Action: audit.TokensRevoked})
	bad, token := &oauth.SaveCode{Code: f.code()}, f.machine()
	f.do(&oauth.SaveCode{Code: bad.Code})
	bad.Context = ctx
	good := &oauth.Revoke{Write: oauth.Write{Context: ctx}, Token: &token.end}
	if errs := f.inOneBatch(good, bad); errs[0] != nil || errs[1] == nil {
		t.Errorf("got errors %v, want one of the second", errs)
	}
	f.recorded("a batch that was executed again", 0, audit.Event{Action: audit.TokensRevoked,
		Outcome: audit.OK})
}

func eventsOutliveUser(t *testing.T, f *fixture) {
	want := audit.Event{Action: audit.AccountDeleted, Outcome: audit.OK,
		Subject: audit.OfUser(f.user.ID)}
	f.must(f.DeleteUser(audit.With(f.ctx, want), f.user.ID, [32]byte{}))
	f.recorded("delete user", 0, want)
}

func selectEvents(t *testing.T, f *fixture) {
	event := func(action audit.Action, s audit.Subject, target string, actor audit.Actor) {
		ctx := audit.WithActor(f.ctx, actor)
		f.must(f.Record(audit.With(ctx, audit.Event{Action: action, Subject: s, Target: target})))
	}
	app := audit.OfClient("app")
	event(audit.SignIn, audit.OfUser(7), "", audit.Actor{Kind: audit.User, ID: "7"})             // 1
	event(audit.ConsentGiven, audit.OfUser(7), "app", audit.Actor{Kind: audit.User, ID: "7"})    // 2
	event(audit.ClientCreated, app, "", audit.Actor{Kind: audit.Operator, ID: "ops"})            // 3
	event(audit.SignIn, audit.OfUser(8), "", audit.Actor{Kind: audit.User, ID: "app"})           // 4
	event(audit.TokensRevoked, audit.OfUser(8), "x", audit.Actor{Kind: audit.Client, ID: "app"}) // 5
	event(audit.KeysRotated, audit.Subject{}, "tokens", audit.Actor{})                           // 6
	event(audit.SecretCreated, app, "app", audit.Actor{Kind: audit.Operator, ID: "app"})         // 7
	past, future := f.now.Add(-time.Hour), time.Now().Add(time.Hour)
	for _, row := range []struct {
		filter audit.Filter
		want   []int64
	}{
		{audit.Filter{}, []int64{1, 2, 3, 4, 5, 6, 7}},
		{audit.Filter{Newest: true}, []int64{7, 6, 5, 4, 3, 2, 1}},
		{audit.Filter{Limit: 2}, []int64{1, 2}},
		{audit.Filter{Newest: true, Limit: 2}, []int64{7, 6}},
		{audit.Filter{After: 5}, []int64{6, 7}},
		{audit.Filter{After: 2, Before: 5}, []int64{3, 4}},
		{audit.Filter{Before: 3, Newest: true}, []int64{2, 1}},
		{audit.Filter{UserID: 7}, []int64{1, 2}},
		{audit.Filter{UserID: 7, Action: audit.SignIn}, []int64{1}},
		{audit.Filter{Action: audit.SignIn}, []int64{1, 4}},
		{audit.Filter{Action: audit.SignOut}, nil},
		{audit.Filter{ClientID: "app"}, []int64{2, 3, 5, 7}},
		{audit.Filter{ClientID: "app", Newest: true, Limit: 2}, []int64{7, 5}},
		{audit.Filter{ClientID: "app", UserID: 7}, []int64{2}},
		{audit.Filter{ClientID: "app", Action: audit.ClientCreated, Since: past}, []int64{3}},
		{audit.Filter{ClientID: "ops"}, []int64{3}},
		{audit.Filter{ClientID: "\x00"}, nil},
		{audit.Filter{Since: past}, []int64{1, 2, 3, 4, 5, 6, 7}},
		{audit.Filter{Since: past, After: 6}, []int64{7}},
		{audit.Filter{Since: past, UserID: 8, Newest: true}, []int64{5, 4}},
		{audit.Filter{Since: future}, nil},
		{audit.Filter{Since: future, UserID: 7}, nil},
	} {
		var got []int64
		for _, e := range f.events(row.filter) {
			got = append(got, e.Number)
		}
		if !slices.Equal(got, row.want) {
			t.Errorf("%+v: got %d, want %d", row.filter, got, row.want)
		}
	}
}

// inOneHour calls test, again if an hour has ended meanwhile.
func inOneHour(test func()) {
	for {
		begin := time.Now().Truncate(time.Hour)
		test()
		if begin.Equal(time.Now().Truncate(time.Hour)) {
			return
		}
	}
}

func manyEventsCount(t *testing.T, f *fixture) {
	const surplus = 20
	inOneHour(func() {
		user := f.newUser()
		again, last := audit.Filter{UserID: user.ID, Action: audit.SignIn}, int64(0)
		for i := range audit.MaxRows + surplus {
			ctx := audit.With(f.request(),
				audit.Event{Action: audit.SignIn, Outcome: audit.Failed,
					Subject: audit.OfUser(user.ID), Details: []string{fmt.Sprint(i), "all"}, Count: 2,
					Target: fmt.Sprint("app ", i)}, // whom strangers choose
				audit.Event{Action: audit.SignOut, Subject: audit.OfUser(user.ID)})
			if i%2 == 0 {
				ctx = audit.With(ctx, audit.Event{Action: audit.SignIn,
					Subject: audit.OfUser(user.ID)})
			}
			f.must(f.Record(ctx))
			if i%7 == 0 { // a follower sees each count once it has grown
				again.After = last
				page := f.events(again)
				if len(page) == 0 {
					t.Fatalf("got no event above %d", last)
				}
				last = page[len(page)-1].Number
			}
		}
		rows, sum := map[audit.Outcome]int{}, map[audit.Outcome]int{}
		events := f.events(audit.Filter{UserID: user.ID, Action: audit.SignIn})
		for _, e := range events {
			rows[e.Outcome]++
			sum[e.Outcome] += e.Count
		}
		const all = audit.MaxRows + surplus
		if rows[audit.Failed] != audit.MaxRows+1 || sum[audit.Failed] != 2*all {
			t.Errorf("got %d rows of %d failures, want %d of %d", rows[audit.Failed],
				sum[audit.Failed], audit.MaxRows+1, 2*all)
		}
		if rows[audit.OK] != all/2 || sum[audit.OK] != all/2 {
			t.Errorf("got %d rows of %d sign-ins, want %d of each", rows[audit.OK], sum[audit.OK],
				all/2)
		}
		newest := events[len(events)-1]
		want := []string{fmt.Sprint(audit.MaxRows), "all"}
		for i := range surplus - 1 {
			want = append(want, fmt.Sprint(audit.MaxRows+1+i))
		}
		if newest.Count != 2*surplus || !slices.Equal(newest.Details, want) {
			t.Errorf("got a last row of %d events with %v, want %d with %v", newest.Count,
				newest.Details, 2*surplus, want)
		}
	})
}

// manyConsentsHideNone gives consent to a second client among many consents to a first.
func manyConsentsHideNone(t *testing.T, f *fixture) {
	inOneHour(func() {
		user := f.newUser()
		consent := func(client string) audit.Event {
			return audit.Event{Action: audit.ConsentGiven, Subject: audit.OfUser(user.ID), Target: client}
		}
		for i := range 2 * audit.MaxRows {
			events := []audit.Event{consent("first")}
			if i == audit.MaxRows+10 {
				events = append(events, consent("second"), consent("first"))
			}
			f.must(f.Record(audit.With(f.ctx, events...)))
		}
		rows := map[string]int{}
		for _, e := range f.events(audit.Filter{UserID: user.ID}) {
			rows[e.Target]++
		}
		if rows["first"] != audit.MaxRows+1 || rows["second"] != 1 {
			t.Errorf("got rows %v, want %d for the first client and 1 for the second", rows,
				audit.MaxRows+1)
		}
	})
}

// nobodyHidesEvents has strangers of one network and an operator do much: what another network and
// the operator do has rows of its own.
func nobodyHidesEvents(t *testing.T, f *fixture) {
	inOneHour(func() {
		user := f.newUser()
		from := func(address string, by audit.Actor) context.Context {
			return audit.With(audit.WithSource(f.ctx, audit.Source{Actor: by,
				Caller: netip.MustParseAddr(address)}), audit.Event{Action: audit.SignIn,
				Outcome: audit.Failed, Subject: audit.OfUser(user.ID)})
		}
		stranger, operator := audit.Actor{Kind: audit.User}, audit.Actor{Kind: audit.Operator, ID: "op"}
		for range audit.MaxRows + 10 {
			f.must(f.Record(from("192.0.2.1", stranger)))
			f.must(f.Record(from("192.0.2.1", operator)))
		}
		for _, address := range []string{"192.0.2.200", "198.51.100.1", "2001:db8::1"} {
			f.must(f.Record(from(address, stranger)))
		}
		rows, counts := map[audit.ActorKind]int{}, map[audit.ActorKind]int{}
		for _, e := range f.events(audit.Filter{UserID: user.ID}) {
			rows[e.Actor.Kind]++
			counts[e.Actor.Kind] += e.Count
		}
		if rows[audit.User] != audit.MaxRows+1+2 || counts[audit.User] != audit.MaxRows+13 ||
			rows[audit.Operator] != audit.MaxRows+10 {
			t.Errorf("got rows %v of events %v, want those of one network shared", rows, counts)
		}
	})
}

func manyEventsOfOneTransaction(t *testing.T, f *fixture) {
	inOneHour(func() {
		user, other := audit.OfUser(f.newUser().ID), audit.OfUser(f.newUser().ID)
		var ops []oauth.Operation
		for range 3 * audit.MaxRows {
			token := f.machine()
			op := &oauth.Revoke{Token: &token.end}
			op.Context = audit.With(f.ctx, audit.Event{Action: audit.TokensRevoked, Subject: user},
				audit.Event{Action: audit.TokensRevoked, Subject: other})
			ops = append(ops, op)
		}
		for _, err := range f.inOneBatch(ops...) {
			f.must(err)
		}
		for _, s := range []audit.Subject{user, other} {
			events := f.events(audit.Filter{UserID: s.UserID})
			last := events[len(events)-1]
			if len(events) != audit.MaxRows+1 || last.Count != 2*audit.MaxRows {
				t.Errorf("got %d rows, the last of %d events, want %d and %d", len(events),
					last.Count, audit.MaxRows+1, 2*audit.MaxRows)
			}
		}
	})
}

// eventsInOrder records events concurrently, through stores on one database. It checks that
// somebody who reads the events above the last number, again and again, sees each of them once.
func eventsInOrder(t *testing.T, stores []audit.Store) {
	t.Helper()
	const writers, each = 6, 20
	wrote := make(chan struct{}, 1)
	var writing sync.WaitGroup
	for i := range writers {
		writing.Go(func() {
			for n := range each {
				ctx := audit.With(t.Context(),
					audit.Event{Action: audit.SignIn, Subject: audit.OfUser(int64(i*each + n + 1))},
					// Both processes count these: they must not wait for each other for ever.
					audit.Event{Action: audit.SignOut, Subject: audit.OfUser(int64(n%5 + 1000))})
				if err := stores[i%len(stores)].Record(ctx); err != nil {
					t.Error(err)
					return
				}
				notify(wrote)
			}
		})
	}
	written := make(chan struct{})
	go func() { writing.Wait(); close(written) }()
	after, seen := int64(0), map[int64]int{}
	for ended := false; ; {
		select {
		case <-written:
			ended = true
		case <-wrote: // while others write
		}
		page, err := stores[0].Events(t.Context(), audit.Filter{After: after, Limit: 50,
			Action: audit.SignIn})
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range page {
			seen[e.Subject.UserID]++
			after = e.Number
		}
		if ended && len(page) == 0 {
			break
		}
	}
	for i := range int64(writers * each) {
		if seen[i+1] != 1 {
			t.Errorf("got event %d %d times, want once", i+1, seen[i+1])
		}
	}
}

func countsAreDeleted(t *testing.T, f *fixture) {
	f.must(f.Record(audit.With(f.ctx, audit.Event{Action: audit.SignIn},
		audit.Event{Action: audit.SignOut})))
	for _, row := range []struct {
		at   time.Time
		want int
	}{
		{time.Now().Add(time.Hour), 0}, {time.Now().Add(3 * time.Hour), 2},
		{time.Now().Add(3 * time.Hour), 0},
	} {
		removed, err := f.Sweep(f.ctx, row.at)
		f.must(err)
		if removed != row.want {
			t.Errorf("got %d rows removed at %v, want %d", removed, row.at, row.want)
		}
	}
	if got := len(f.events(audit.Filter{})); got != 2 {
		t.Errorf("got %d events, want 2: this Store keeps them for ever", got)
	}
}

func badTextOfEvents(t *testing.T, f *fixture) {
	ctx := audit.WithSource(f.ctx, audit.Source{Actor: audit.Actor{ID: "\x00"}, RequestID: "\xff"})
	f.must(f.Record(audit.With(ctx, audit.Event{Action: audit.SignIn,
		Subject: audit.OfClient("\xff"), Target: "\x00"})))
	f.recorded("bad text", 0, audit.Event{Action: audit.SignIn, Outcome: audit.OK})
}
