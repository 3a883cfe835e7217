package people_test

import (
	"testing"

	"gatehouse/actors/account"
	"gatehouse/actors/people"
)

func TestMetrics(t *testing.T) {
	f := newCodeFixture(t)
	token := f.register(t, eve)
	code := f.receive(t, eve, account.RegisterCode)
	if _, err := f.confirm(t, token, wrongCode(code)); err == nil {
		t.Error("got no error")
	}
	if _, err := f.confirm(t, token, code); err != nil {
		t.Error(err)
	}
	_, err := f.SignIn(t.Context(), people.SignIn{Email: eve, Password: wrongPassword}, f.now)
	if err == nil {
		t.Error("got no error")
	}
	got := f.counters(t)
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
func (f *codeFixture) counters(t *testing.T) map[string]float64 {
	t.Helper()
	families, err := f.metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			name := family.GetName()
			for _, label := range m.GetLabel() {
				name += " " + label.GetValue()
			}
			all[name] = m.GetCounter().GetValue()
		}
	}
	return all
}
