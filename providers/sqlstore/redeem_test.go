package sqlstore_test

import (
	"strings"
	"sync"
	"testing"
	"time"

	"gatehouse/actors/oauth"
)

// TestRedemptionsShareStatements redeems 40 codes in one batch, some of them invalid. The valid
// ones are taken in few statements, each for its own family. Then it redeems a code that the same
// batch saved, and one of the codes again.
func TestRedemptionsShareStatements(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			f := newFaulty(t, d.make(t))
			redeems := make([]*oauth.Redeem, 40)
			for i := range redeems {
				redeems[i] = f.redeem()
				if i != 7 {
					f.save(redeems[i])
				}
			}
			gone := map[int]string{7: "unknown", 11: "expired", 23: "of another client",
				39: "of another user"}
			redeems[11].Now = redeems[11].Now.Add(2 * time.Minute)
			redeems[23].Family.ClientID = "other"
			redeems[39].Family.UserID++
			replay, late := f.redeem(), f.redeem()
			replay.Code = redeems[3].Code

			var ops []oauth.Operation
			for _, r := range redeems {
				ops = append(ops, r)
			}
			ops = append(ops, &oauth.SaveCode{Code: oauth.AuthorizationCode{Hash: late.Code,
				ClientID: "app", UserID: f.user.ID, Epochs: oauth.Epochs{User: f.user.Epoch},
				Expires: late.Now.Add(time.Minute)}}, late,
				replay)
			f.inOneBatch(ops)

			for i, r := range redeems {
				want := oauth.OutcomeDone
				if gone[i] != "" {
					want = oauth.OutcomeGone
				}
				if r.Outcome != want {
					t.Errorf("code %d %s: got outcome %d, want %d", i, gone[i], r.Outcome, want)
				}
				if want != oauth.OutcomeDone {
					continue
				}
				code, err := f.AuthorizationCode(t.Context(), r.Code)
				if err != nil || code.FamilyID != r.Family.ID ||
					!code.Used.Equal(r.Now.Truncate(time.Millisecond)) {
					t.Errorf("code %d: got %+v and %v, want family %s", i, code, err, r.Family.ID)
				}
				if r.Epochs.User != f.user.Epoch || r.Epochs.User == 0 {
					t.Errorf("code %d: got epochs %+v, want %d of the user", i, r.Epochs,
						f.user.Epoch)
				}
			}
			if late.Outcome != oauth.OutcomeDone || replay.Outcome != oauth.OutcomeReused ||
				len(replay.Ended) != 1 || replay.Ended[0].FamilyID != redeems[3].Family.ID {
				t.Errorf("got outcomes %d and %d with %d ends, want done and reused with one family",
					late.Outcome, replay.Outcome, len(replay.Ended))
			}
			takes := 0
			for _, statement := range f.seen {
				if strings.HasPrefix(statement, "UPDATE authorization_codes SET used_at") {
					takes++
				}
			}
			want := 3 + 1 // 32, 8 and 1 rows, and then the replay
			if d.name == "PostgreSQL" {
				want = 1 + 1 // all others, and then the replay
			}
			if takes != want {
				t.Errorf("got %d statements that take codes, want %d", takes, want)
			}
		})
	}
}

// inOneBatch executes operations in one transaction.
func (f *faulty) inOneBatch(ops []oauth.Operation) {
	f.Helper()
	release := hold(f.Store)
	var ended sync.WaitGroup
	for _, op := range ops {
		ended.Add(1)
		op.OnDone(func(err error) {
			if err != nil {
				f.Errorf("%T: %v", op, err)
			}
			ended.Done()
		})
		f.Submit(op)
	}
	f.seen = nil
	release()
	ended.Wait()
}
