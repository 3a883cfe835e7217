package adminapi

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"gatehouse/actors/account"
)

// TestObjectIsReadAgain applies one body to two copies of a record, as when another process
// changed it in between.
func TestObjectIsReadAgain(t *testing.T) {
	o := &object{members: map[string]json.RawMessage{}, known: map[string]bool{},
		problems: map[string]string{}}
	if !o.read(json.NewDecoder(strings.NewReader(`{"name":"Ann","bio":null,"gender":"female"}`))) {
		t.Fatal("got no object")
	}
	for range 2 {
		u := account.User{Name: "Ada", Bio: "b", Address: "a"}
		profile(o, &u)
		if err := o.end(); err != nil ||
			!reflect.DeepEqual(u, account.User{Name: "Ann", Gender: "female", Address: "a"}) {
			t.Errorf("got %+v, %v, want the three changes", u, err)
		}
	}
}
