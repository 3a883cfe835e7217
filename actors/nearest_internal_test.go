package actors

import (
	"testing"
	"time"
	"unsafe"

	"gatehouse/actors/oauth"
)

// TestNearestKnowsNobodyWhoWasTakenOut looks for actors whose places are the same, and for those that were taken out.
func TestNearestKnowsNobodyWhoWasTakenOut(t *testing.T) {
	d := newDirectory()
	var hashes []oauth.Hash
	for i := range 3 {
		a := &limitActor{hash: oauth.Hash{0: 5, 31: byte(i)}} // all in one place
		hashes = append(hashes, a.hash)
		if !d.insert(a, 0) {
			t.Fatal("got an insert refused")
		}
	}
	for range 2 {
		for i := range hashes {
			if a := d.find(&hashes[i]); a == nil || a.hash != hashes[i] {
				t.Fatalf("got %v for token %d, want its actor", a, i)
			}
		}
	}
	last := d.find(&hashes[2])
	d.find(&hashes[0])
	if taken := d.take(hashes[:1]); len(taken) != 1 || d.find(&hashes[0]) != nil {
		t.Error("got a token that was taken out")
	}
	d.find(&hashes[2])
	if !d.remove(last) || d.find(&hashes[2]) != nil || d.remove(last) {
		t.Error("got a token that was removed")
	}
	if a := d.find(&hashes[1]); a == nil || a.hash != hashes[1] {
		t.Error("got nobody for the token that is left")
	}
}

func TestNearestGrowsWithTheDirectory(t *testing.T) {
	d := newDirectory()
	for i := range 10_000 {
		d.insert(&limitActor{hash: oauth.Hash{0: byte(i), 8: byte(i), 9: byte(i >> 8)}}, 0)
	}
	if got := len(d.nearest.Load().places); got < 20_000 || got > 80_000 {
		t.Errorf("got %d places for 10,000 actors, want two to eight for each", got)
	}
}

// TestAnActorFillsTwoCacheLines, and no more.
func TestAnActorFillsTwoCacheLines(t *testing.T) {
	if got := unsafe.Sizeof(limitActor{}); got != 128 {
		t.Errorf("got %d bytes, want 128", got)
	}
}

func TestAnswersNowOnlyInTurn(t *testing.T) {
	d := openDoor(t, nil)
	token, now := d.token("app", oauth.ViewUser), time.Now()
	wantVerdict(t, "the first", d.Admit(token, BasicProfile, now), Admitted)
	hash := oauth.HashOf(token)
	a := d.limits.directory.find(&hash)
	for name, occupy := range map[string]func(bool){
		"running": func(yes bool) { a.turn.running = yes },
		"stopped": func(yes bool) { a.turn.stopped = yes },
		"locked": func(yes bool) {
			if yes {
				a.turn.mu.Lock()
			} else {
				a.turn.mu.Unlock()
			}
		},
	} {
		occupy(true)
		if _, answered := a.answerNow(BasicProfile, now); answered {
			t.Errorf("%s: got an answer", name)
		}
		occupy(false)
		if reply, answered := a.answerNow(BasicProfile, now); !answered || reply.outcome != askDecided {
			t.Errorf("not %s: got %v %v, want an answer", name, reply, answered)
		}
	}
	if got := d.Admit(token, BasicProfile, now).Rate.Remaining; got != 95 {
		t.Errorf("got %d remaining, want 95", got)
	}
}

func TestAPanicInAnAnswerNowRefusesItAlone(t *testing.T) {
	d := openDoor(t, nil)
	token, now := d.token("app", oauth.ViewUser), time.Now()
	wantVerdict(t, "before", d.Admit(token, BasicProfile, now), Admitted)
	hash := oauth.HashOf(token)
	a := d.limits.directory.find(&hash)
	client := a.session.client
	a.session.client = nil
	wantVerdict(t, "with a broken session", d.Admit(token, BasicProfile, now), TryLater)
	a.session.client = client
	wantVerdict(t, "after", d.Admit(token, BasicProfile, now), Admitted)
}
