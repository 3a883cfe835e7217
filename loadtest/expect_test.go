package loadtest_test

import (
	"strings"
	"testing"
	"time"

	"gatehouse/loadtest"
)

func TestExpectations(t *testing.T) {
	result := &loadtest.Result{
		All: loadtest.Step{Name: "all", Attempts: 2000, Failed: 2, Rate: 200, P50: time.Millisecond,
			P99: 20 * time.Millisecond},
		Steps: []loadtest.Step{
			{Name: "lookup", Attempts: 1000, Failed: 0, Rate: 100, Mean: 2 * time.Millisecond,
				P50: time.Millisecond, P90: 5 * time.Millisecond, P99: 10 * time.Millisecond,
				P999: 20 * time.Millisecond, Max: 30 * time.Millisecond},
			{Name: "token", Attempts: 0},
		},
	}
	for _, c := range []struct {
		text string
		ok   bool
	}{
		{"lookup p99<10.1ms", true}, {"lookup p99<10ms", false}, {"lookup p99<=10ms", true}, {"lookup p99>9ms", true}, {"lookup p99>=10ms", true}, {"lookup p99>10ms", false},
		{"p99 < 10ms", false}, {"all p99<21ms", true}, {"lookup p50<2ms", true}, {"lookup p90<5ms", false}, {"lookup p99.9<=20ms", true}, {"lookup max<30ms", false},
		{"lookup mean<3ms", true}, {"errors<0.1%", false}, {"errors<=0.1%", true}, {"lookup errors<0.1%", true}, {"lookup errors<=0", true}, {"rate>199", true},
		{"lookup rate>=101/s", false}, {"token p99<1s", false}, {"nothing errors<1%", false},
	} {
		e, err := loadtest.ParseExpectation(c.text)
		if err != nil {
			t.Errorf("%s: got %v, want no error", c.text, err)
			continue
		}
		if got := e.Check(result); got.OK != c.ok || got.What != c.text || got.Seen == "" {
			t.Errorf("%s: got %+v, want %v", c.text, got, c.ok)
		}
	}
	for _, text := range []string{"", "p99", "p99<10", "p98<1ms", "errors<1", "errors<x%",
		"rate>fast", "p99=1ms", "a b p99<1ms", "p99<1ms extra"} {
		if e, err := loadtest.ParseExpectation(text); err == nil ||
			!strings.Contains(err.Error(), "METRIC") {
			t.Errorf("%q: got %v, %v, want an error that says how to write it", text, e, err)
		}
	}
}

func TestOwners(t *testing.T) {
	for _, c := range []struct {
		target loadtest.Target
		owned  string
		want   string
	}{
		{loadtest.Target{Base: "http://127.0.0.1:8080"}, "", ""},
		{loadtest.Target{Base: "http://127.9.9.9:8080"}, "", ""},
		{loadtest.Target{Base: "http://[::1]:8080"}, "", ""},
		{loadtest.Target{Base: "http://localhost:8080/"}, "", ""},
		{loadtest.Target{Base: "https://gatehouse.example"}, "", "--i-own-this-target gatehouse.example"},
		{loadtest.Target{Base: "https://gatehouse.example"}, "gatehouse.example", ""},
		{loadtest.Target{Base: "https://gatehouse.example"}, "example", "--i-own-this-target"},
		{loadtest.Target{Base: "http://localhost.example"}, "", "--i-own-this-target"},
		{loadtest.Target{Base: "http://127.0.0.1:8080", Admin: "http://192.0.2.1:8081"}, "", "--i-own-this-target"},
		{loadtest.Target{Base: "http://127.0.0.1:8080", Simulator: "http://192.0.2.1:8081"}, "", "--i-own-this-target"},
		{loadtest.Target{Base: "127.0.0.1:8080"}, "", "scheme, host and port"},
		{loadtest.Target{Base: "ftp://127.0.0.1"}, "", "scheme, host and port"},
		{loadtest.Target{Base: "http://127.0.0.1:8080/api"}, "", "scheme, host and port"},
		{loadtest.Target{Base: "http://user@127.0.0.1:8080"}, "", "scheme, host and port"},
	} {
		err := c.target.CheckOwner(c.owned)
		if c.want == "" && err != nil || c.want != "" &&
			(err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v, %q: got %v, want %q", c.target, c.owned, err, c.want)
		}
	}
}

func TestMixes(t *testing.T) {
	mix, err := loadtest.ParseMix("lookup-hot=60, bulk=0.5")
	if err != nil || len(mix) != 2 || mix["lookup-hot"] != 60 || mix["bulk"] != 0.5 {
		t.Errorf("got %v, %v, want two weights", mix, err)
	}
	for _, text := range []string{"", "lookup-hot", "lookup-hot=0", "lookup-hot=-1",
		"lookup-hot=NaN", "nothing=1", "soak=1", "outage=1", "lookup-hot=1,"} {
		if mix, err := loadtest.ParseMix(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, mix)
		}
	}
}
