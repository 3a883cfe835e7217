package people

import (
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

func knownTo(keys oauth.Keys) knownBrowsers {
	return knownBrowsers{keys: func() oauth.Keys { return keys }}
}

func TestKnownBrowsers(t *testing.T) {
	keys := oauth.Keys{Current: [32]byte{1}}
	k := knownTo(keys)
	rotated := knownTo(oauth.Keys{Current: [32]byte{2}, Previous: [32]byte{1}})
	other := knownTo(oauth.Keys{Current: [32]byte{3}})
	ann := &account.User{ID: 7, PasswordHash: "$a"}
	mark := k.mark(ann, noon)
	for _, c := range []struct {
		name  string
		k     knownBrowsers
		mark  string
		user  account.User
		after time.Duration
		want  bool
	}{
		{"the same", k, mark, *ann, time.Hour, true},
		{"after a rotation of keys", rotated, mark, *ann, time.Hour, true},
		{"another account", k, mark, account.User{ID: 8, PasswordHash: "$a"}, 0, false},
		{"another password", k, mark, account.User{ID: 7, PasswordHash: "$b"}, 0, false},
		{"too old", k, mark, *ann, knownFor + time.Minute, false},
		{"other keys", other, mark, *ann, 0, false},
		{"none", k, "", *ann, 0, false},
		{"garbage", k, "x!", *ann, 0, false},
		{"cut", k, mark[:20], *ann, 0, false},
		{"changed time", k, "B" + mark[1:], *ann, 0, false},
	} {
		if got := c.k.knows(c.mark, &c.user, noon.Add(c.after)); got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
}
