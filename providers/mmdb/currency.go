package mmdb

import (
	"golang.org/x/text/currency"
	"golang.org/x/text/language"
)

// newerCurrencies holds the currencies that changed after the Unicode data of golang.org/x/text
// (CLDR 32, 2017), and those for which that data prefers another currency than ISO 4217.
var newerCurrencies = map[string]string{
	"BG": "EUR", // 2026
	"CW": "XCG", // 2025
	"HR": "EUR", // 2023
	"LS": "LSL", // and the rand
	"MR": "MRU", // 2018
	"SL": "SLE", // 2022
	"SX": "XCG", // 2025
	"VE": "VES", // 2018
	"ZW": "ZWG", // 2024
}

// currencyOf returns the ISO 4217 code of a country's currency, or "" if it is not known.
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
