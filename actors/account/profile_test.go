package account_test

import (
	"encoding/json"
	"testing"

	"gatehouse/actors/account"
)

func full() *account.User {
	return &account.User{
		ID: 9007199254740991, ServiceID: "7f9c24e8-3b12-4f0a-9d3e-0d5f6a1b2c3d",
		Name:  `Ann "A" <b> & Ö`,
		Email: "ann@example.com", Phone: "+491701234567", Username: "ann", Gender: "female",
		Bio:          "one\ntwo",
		PlaceOfBirth: "Ulm", DateOfBirth: "1990-02-28", Address: "1 High St",
		ProfilePicture: "https://example.com/a?b&c",
		PasswordHash:   "$argon2id$secret",
	}
}

func TestProfiles(t *testing.T) {
	const (
		nobody   = `{"id":1,"name":"N","email":null,"profile_picture":null,"username":null,"gender":null`
		somebody = `{"id":9007199254740991,"name":"Ann \"A\" <b> & Ö","email":"ann@example.com",` +
			`"profile_picture":"https://example.com/a?b&c","username":"ann","gender":"female"`
	)
	for _, c := range []struct {
		name            string
		user            *account.User
		basic, detailed string
	}{
		{"nothing set", &account.User{ID: 1, Name: "N"}, nobody + `}`,
			nobody +
				`,"bio":null,"phone_number":null,"place_of_birth":null,"date_of_birth":null,"address":null,"service_id":null}`},
		{"everything set", full(), somebody + `}`,
			somebody + `,"bio":"one\ntwo","phone_number":"+491701234567",` +
				`"place_of_birth":"Ulm","date_of_birth":"1990-02-28","address":"1 High St","service_id":"7f9c24e8-3b12-4f0a-9d3e-0d5f6a1b2c3d"}`},
	} {
		if got := string(c.user.AppendBasic(nil)); got != c.basic {
			t.Errorf("%s: got %s, want %s", c.name, got, c.basic)
		}
		if got := string(c.user.AppendDetailed([]byte(">"))); got != ">"+c.detailed {
			t.Errorf("%s: got %s, want %s", c.name, got, ">"+c.detailed)
		}
	}
}

// FuzzProfile checks that a profile is valid JSON with any name.
func FuzzProfile(f *testing.F) {
	f.Add("Ann")
	f.Add("\x00\xff\u2028</script>")
	f.Fuzz(func(t *testing.T, name string) {
		u := &account.User{ID: 1, Name: name, Bio: name}
		if got := u.AppendDetailed(nil); !json.Valid(got) {
			t.Errorf("got %q, want valid JSON", got)
		}
	})
}
