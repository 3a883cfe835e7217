package mmdb

import "testing"

func TestCurrencyOf(t *testing.T) {
	for code, want := range map[string]string{
		"DE": "EUR", "HR": "EUR", "BG": "EUR", "LT": "EUR", "XK": "EUR", "CH": "CHF",
		"GB": "GBP", "US": "USD",
		"JP": "JPY", "BR": "BRL", "IN": "INR", "CN": "CNY", "BY": "BYN", "ST": "STN",
		"GG": "GBP", "PR": "USD",
		"ZW": "ZWG", "VE": "VES", "LS": "LSL", "SL": "SLE", "MR": "MRU", "CW": "XCG",
		"SX": "XCG", "BQ": "USD",
		"AQ": "", "": "", "AP": "", "EU": "EUR", "ZZ": "", "de": "EUR", "?!": "",
	} {
		if got := currencyOf(code); got != want {
			t.Errorf("%q: got %q, want %q", code, got, want)
		}
	}
}
