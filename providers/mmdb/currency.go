package mmdb

import (
	"golang.org/x/text/currency"
	"golang.org/x/text/language"
)

// newerCurrencies are those that changed since the Unicode data of golang.org/x/text (CLDR 32, of 2017), and those
// where ISO 4217 names another first.
var newerCurrencies = map[string]string{
	"BG": "EUR", // 2026
	"CW": "XCG", // 2025
	"HR": "EUR", // 2023
	"LS": "LSL", // beside the rand
	"MR": "MRU", // 2018
	"SL": "SLE", // 2022
	"SX": "XCG", // 2025
	"VE": "VES", // 2018
	"ZW": "ZWG", // 2024
}

// currencyOf returns the ISO 4217 code of the currency of a country, "" when there is none.
func currencyOf(countryCode string) string {
	if code, ok := newerCurrencies[countryCode]; ok {
		return code
	}
	region, err := language.ParseRegion(countryCode)
	if err != nil {
		return ""
	}
	unit, ok := currency.FromRegion(region)
	if !ok || unit == currency.XXX {
		return ""
	}
	return unit.String()
}
