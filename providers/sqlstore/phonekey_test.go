package sqlstore_test

import (
	"testing"

	"gatehouse/providers/sqlstore"
)

// TestMigrationOfPhoneKeys migrates numbers in the forms with and without an optional digit. Where
// two users have one number, both keep it.
func TestMigrationOfPhoneKeys(t *testing.T) {
	for _, d := range databases {
		t.Run(d.name, func(t *testing.T) {
			config := sqlstore.Config{URL: d.empty(t), Logger: quiet}
			if err := sqlstore.MigrateTo(t.Context(), config, 4); err != nil {
				t.Fatal(err)
			}
			phones := map[int64]string{
				1: "+5491123456789", 2: "+5215512345678", 3: "+5491100000000", 4: "+541100000000",
				5: "+14155550123",
			}
			insertPhones(t, config.URL, phones)
			s := open(t, config)
			for phone, want := range map[string]int64{
				"+5491123456789": 1, "+541123456789": 1, "+525512345678": 2, "+5491100000000": 3,
				"+541100000000": 4, "+14155550123": 5,
			} {
				u, err := s.UserByPhone(t.Context(), phone)
				if err != nil || u.ID != want {
					t.Errorf("%s: got user %+v, error %v, want %d", phone, u, err, want)
				}
			}
			for id := range phones {
				u, err := s.User(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				u.Name = "New"
				if err := s.UpdateUser(t.Context(), u); err != nil {
					t.Errorf("update user %d: %v", id, err)
				}
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			if err := sqlstore.MigrateTo(t.Context(), config, 4); err != nil {
				t.Errorf("migrate down: %v", err)
			}
		})
	}
}

// insertPhones inserts a user for each number into a database of schema version 4.
func insertPhones(t *testing.T, url string, phones map[int64]string) {
	t.Helper()
	db := direct(t, url)
	for id, phone := range phones {
		if _, err := db.ExecContext(t.Context(), `INSERT INTO users (id, service_id, name, email, phone, phone_key, username,
gender, bio, place_of_birth, date_of_birth, address, profile_picture, password_hash, disabled, created, updated, version)
VALUES ($1, $2, 'Ada', '', $2, $2, '', '', '', '', '', '', '', '', $3, 0, 0, 0)`, id, phone, false); err != nil {
			t.Fatal(err)
		}
	}
}
