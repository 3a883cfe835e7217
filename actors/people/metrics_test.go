package people_test

import (
	"testing"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
)

func TestWhatPeopleDoIsCounted(t *testing.T) {
	r := newReception(t)
	token := r.register(t, eve)
	code := r.message(t, eve, account.RegisterCode)
	if _, err := r.confirm(t, token, otherThan(code)); err == nil {
		t.Error("got no error")
	}
	if _, err := r.confirm(t, token, code); err != nil {
		t.Error(err)
	}
	if _, err := r.SignIn(t.Context(), people.SignIn{Email: eve, Password: another}, r.now); err == nil {
		t.Error("got no error")
	}
	got := r.counters(t)
	for name, want := range map[string]float64{
		"gatehouse_registrations_total email":             1,
		"gatehouse_registrations_total sms":               0,
		"gatehouse_sign_ins_total registration ok":        1,
		"gatehouse_sign_ins_total registration wrong":     1,
		"gatehouse_sign_ins_total password wrong":         1,
		"gatehouse_sign_ins_total phone ok":               0,
		"gatehouse_code_requests_total registration ok":   1,
		"gatehouse_code_entries_total registration ok":    1,
		"gatehouse_code_entries_total registration wrong": 1,
		"gatehouse_code_entries_total reset ok":           0,
	} {
		if value, ok := got[name]; !ok || value != want {
			t.Errorf("%s: got %v, %t, want %v", name, value, ok, want)
		}
	}
}

// counters returns the values of all counters by name and labels.
func (r *reception) counters(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := r.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			name := f.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			all[name] = m.GetCounter().GetValue()
		}
	}
	return all
}
