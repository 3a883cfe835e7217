package sim

import (
	"regexp"
	"testing"
	"time"
)

func TestPlacesAreComplete(t *testing.T) {
	code, currency := regexp.MustCompile(`^[A-Z]{2}$`), regexp.MustCompile(`^[A-Z]{3}$`)
	for _, p := range places {
		if !code.MatchString(p.country.code) || !code.MatchString(p.continent.code) ||
			!currency.MatchString(p.country.currency) {
			t.Errorf("%s: got codes %s %s %s", p.city, p.continent.code, p.country.code,
				p.country.currency)
		}
		if p.lat < -56 || p.lat > 72 || p.lon < -180 || p.lon > 180 ||
			p.region == "" || p.name == "" {
			t.Errorf("%s: got %v %v %q %q", p.city, p.lat, p.lon, p.region, p.name)
		}
		if _, err := time.LoadLocation(p.zone); err != nil {
			t.Errorf("%s: %v", p.city, err)
		}
	}
}

func TestOffset(t *testing.T) {
	winter, summer := time.Date(2026, 1, 15, 0, 0, 0, 0, time.UTC), time.Date(2026, 7, 15, 0, 0,
		0, 0, time.UTC)
	wants := map[string][2]int{
		"Kathmandu":  {20700, 20700},
		"St. John's": {-12600, -9000},
		"Berlin":     {3600, 7200},
		"Adelaide":   {37800, 34200},
	}
	for i, p := range places {
		want, ok := wants[p.city]
		if !ok {
			continue
		}
		if got := [2]int{offset(i, winter), offset(i, summer)}; got != want {
			t.Errorf("%s: got %v, want %v", p.city, got, want)
		}
		delete(wants, p.city)
	}
	if len(wants) > 0 {
		t.Errorf("got no places for %v", wants)
	}
}

func TestNetworkNumbersAreReserved(t *testing.T) {
	for _, n := range networks {
		if !(n.number >= 64496 && n.number <= 64511 || n.number >= 65536 && n.number <= 65551) {
			t.Errorf("%s: got AS%d, want a number reserved for documentation", n.name, n.number)
		}
	}
}
