package people

import (
	"testing"
	"time"

	"gatehouse/actors/account"
	"gatehouse/actors/oauth"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// knownTo returns the marks under keys with these secrets, the current one first.
func knownTo(secrets ...byte) knownBrowsers {
	var keys []oauth.Key
	for _, secret := range secrets {
		keys = append(keys, oauth.Key{Purpose: oauth.BrowserKeys, Secret: [32]byte{secret}})
	}
	return knownBrowsers{keys: func() []oauth.Key { return keys }}
}

func TestKnownBrowsers(t *testing.T) {
	k := knownTo(1)
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
		{"after a rotation of keys", knownTo(2, 1), mark, *ann, time.Hour, true},
		{"after two rotations", knownTo(3, 2, 1), mark, *ann, time.Hour, true},
		{"by the current of two keys", knownTo(2, 1), knownTo(2).mark(ann, noon), *ann, 0, true},
		{"made after a rotation", knownTo(2), knownTo(2, 1).mark(ann, noon), *ann, 0, true},
		{"another account", k, mark, account.User{ID: 8, PasswordHash: "$a"}, 0, false},
		{"another password", k, mark, account.User{ID: 7, PasswordHash: "$b"}, 0, false},
		{"too old", k, mark, *ann, oauth.BrowserLifetime + time.Minute, false},
		{"other keys", knownTo(3, 2), mark, *ann, 0, false},
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
