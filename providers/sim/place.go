package sim

import (
	"sync"
	"time"
)

// place is a city with the location members of an answer.
type place struct {
	continent *continent
	country   *country
	region    string // region code of the country, mostly from ISO 3166-2
	name      string // of the region
	city      string
	zip       string
	lat, lon  float64 // degrees
	zone      string  // IANA zone name
}

type continent struct{ name, code string }

type country struct{ name, code, currency string }

var (
	africa       = &continent{"Africa", "AF"}
	asia         = &continent{"Asia", "AS"}
	europe       = &continent{"Europe", "EU"}
	northAmerica = &continent{"North America", "NA"}
	oceania      = &continent{"Oceania", "OC"}
	southAmerica = &continent{"South America", "SA"}

	australia = &country{"Australia", "AU", "AUD"}
	brazil    = &country{"Brazil", "BR", "BRL"}
	canada    = &country{"Canada", "CA", "CAD"}
	germany   = &country{"Germany", "DE", "EUR"}
	india     = &country{"India", "IN", "INR"}
	usa       = &country{"United States", "US", "USD"}
)

// places must not change: answers depend on the number and order of the rows.
var places = [...]place{
	{northAmerica, usa, "NY", "New York", "New York", "10001", 40.7128, -74.006, "America/New_York"},
	{northAmerica, usa, "IL", "Illinois", "Chicago", "60601", 41.8781, -87.6298, "America/Chicago"},
	{northAmerica, usa, "CO", "Colorado", "Denver", "80202", 39.7392, -104.9903, "America/Denver"},
	{northAmerica, usa, "CA", "California", "San Francisco", "94102", 37.7749, -122.4194, "America/Los_Angeles"},
	{northAmerica, usa, "HI", "Hawaii", "Honolulu", "96813", 21.3069, -157.8583, "Pacific/Honolulu"},
	{northAmerica, canada, "ON", "Ontario", "Toronto", "M5H", 43.6532, -79.3832, "America/Toronto"},
	{northAmerica, canada, "NL", "Newfoundland and Labrador", "St. John's", "A1C", 47.5615, -52.7126, "America/St_Johns"},
	{northAmerica, &country{"Mexico", "MX", "MXN"}, "CMX", "Mexico City", "Mexico City", "06000", 19.4326, -99.1332, "America/Mexico_City"},
	{southAmerica, brazil, "SP", "São Paulo", "São Paulo", "01000-000", -23.5505, -46.6333, "America/Sao_Paulo"},
	{southAmerica, brazil, "AM", "Amazonas", "Manaus", "69000-000", -3.119, -60.0217, "America/Manaus"},
	{southAmerica, &country{"Argentina", "AR", "ARS"}, "C", "Buenos Aires F.D.", "Buenos Aires", "C1000", -34.6037, -58.3816, "America/Argentina/Buenos_Aires"},
	{southAmerica, &country{"Chile", "CL", "CLP"}, "RM", "Santiago Metropolitan", "Santiago", "8320000", -33.4489, -70.6693, "America/Santiago"},
	{southAmerica, &country{"Colombia", "CO", "COP"}, "DC", "Bogota D.C.", "Bogotá", "110111", 4.711, -74.0721, "America/Bogota"},
	{europe, &country{"United Kingdom", "GB", "GBP"}, "ENG", "England", "London", "EC1A", 51.5074, -0.1278, "Europe/London"},
	{europe, &country{"Ireland", "IE", "EUR"}, "L", "Leinster", "Dublin", "D01", 53.3498, -6.2603, "Europe/Dublin"},
	{europe, &country{"Portugal", "PT", "EUR"}, "11", "Lisbon", "Lisbon", "1000-001", 38.7223, -9.1393, "Europe/Lisbon"},
	{europe, &country{"Spain", "ES", "EUR"}, "MD", "Madrid", "Madrid", "28001", 40.4168, -3.7038, "Europe/Madrid"},
	{europe, &country{"France", "FR", "EUR"}, "IDF", "Île-de-France", "Paris", "75001", 48.8566, 2.3522, "Europe/Paris"},
	{europe, &country{"Netherlands", "NL", "EUR"}, "NH", "North Holland", "Amsterdam", "1012", 52.3676, 4.9041, "Europe/Amsterdam"},
	{europe, germany, "BE", "Berlin", "Berlin", "10115", 52.52, 13.405, "Europe/Berlin"},
	{europe, germany, "HE", "Hesse", "Frankfurt am Main", "60311", 50.1109, 8.6821, "Europe/Berlin"},
	{europe, &country{"Switzerland", "CH", "CHF"}, "ZH", "Zurich", "Zürich", "8001", 47.3769, 8.5417, "Europe/Zurich"},
	{europe, &country{"Sweden", "SE", "SEK"}, "AB", "Stockholm County", "Stockholm", "111 20", 59.3293, 18.0686, "Europe/Stockholm"},
	{europe, &country{"Poland", "PL", "PLN"}, "14", "Mazovia", "Warsaw", "00-001", 52.2297, 21.0122, "Europe/Warsaw"},
	{europe, &country{"Finland", "FI", "EUR"}, "18", "Uusimaa", "Helsinki", "00100", 60.1699, 24.9384, "Europe/Helsinki"},
	{europe, &country{"Iceland", "IS", "ISK"}, "1", "Capital Region", "Reykjavik", "101", 64.1466, -21.9426, "Atlantic/Reykjavik"},
	{asia, &country{"Türkiye", "TR", "TRY"}, "34", "Istanbul", "Istanbul", "34000", 41.0082, 28.9784, "Europe/Istanbul"},
	{africa, &country{"Egypt", "EG", "EGP"}, "C", "Cairo", "Cairo", "11511", 30.0444, 31.2357, "Africa/Cairo"},
	{africa, &country{"Nigeria", "NG", "NGN"}, "LA", "Lagos", "Lagos", "100001", 6.5244, 3.3792, "Africa/Lagos"},
	{africa, &country{"Kenya", "KE", "KES"}, "30", "Nairobi County", "Nairobi", "00100", -1.2921, 36.8219, "Africa/Nairobi"},
	{africa, &country{"South Africa", "ZA", "ZAR"}, "WC", "Western Cape", "Cape Town", "8001", -33.9249, 18.4241, "Africa/Johannesburg"},
	{asia, &country{"United Arab Emirates", "AE", "AED"}, "DU", "Dubai", "Dubai", "", 25.2048, 55.2708, "Asia/Dubai"},
	{asia, india, "MH", "Maharashtra", "Mumbai", "400001", 19.076, 72.8777, "Asia/Kolkata"},
	{asia, india, "KA", "Karnataka", "Bengaluru", "560001", 12.9716, 77.5946, "Asia/Kolkata"},
	{asia, &country{"Nepal", "NP", "NPR"}, "P3", "Bagmati", "Kathmandu", "44600", 27.7172, 85.324, "Asia/Kathmandu"},
	{asia, &country{"Thailand", "TH", "THB"}, "10", "Bangkok", "Bangkok", "10100", 13.7563, 100.5018, "Asia/Bangkok"},
	{asia, &country{"Singapore", "SG", "SGD"}, "01", "Central Singapore", "Singapore", "018989", 1.3521, 103.8198, "Asia/Singapore"},
	{asia, &country{"South Korea", "KR", "KRW"}, "11", "Seoul", "Seoul", "04524", 37.5665, 126.978, "Asia/Seoul"},
	{asia, &country{"Japan", "JP", "JPY"}, "13", "Tokyo", "Tokyo", "100-0001", 35.6762, 139.6503, "Asia/Tokyo"},
	{oceania, australia, "NSW", "New South Wales", "Sydney", "2000", -33.8688, 151.2093, "Australia/Sydney"},
	{oceania, australia, "SA", "South Australia", "Adelaide", "5000", -34.9285, 138.6007, "Australia/Adelaide"},
	{oceania, &country{"New Zealand", "NZ", "NZD"}, "AUK", "Auckland", "Auckland", "1010", -36.8485, 174.7633, "Pacific/Auckland"},
}

// zones holds the time zone of each place. Without zone data it is UTC, so a program that may run
// on a machine without zone files has to import time/tzdata.
var zones = sync.OnceValue(func() []*time.Location {
	loaded := make([]*time.Location, len(places))
	for i, p := range places {
		zone, err := time.LoadLocation(p.zone)
		if err != nil {
			zone = time.UTC
		}
		loaded[i] = zone
	}
	return loaded
})

// offset returns the UTC offset of a place at now, in seconds, positive east. place is an index in
// places.
func offset(place int, now time.Time) int {
	_, seconds := now.In(zones()[place]).Zone()
	return seconds
}

// network is an invented provider. Its number is reserved for documentation (RFC 5398).
type network struct {
	name            string
	number          int
	asName          string
	mobile, hosting bool
}

// networks must not change, like places.
var networks = [...]network{
	{"Example Net", 64500, "EXAMPLE-NET", false, false},
	{"Example Fibre", 64501, "EXAMPLE-FIBRE", false, false},
	{"Example Cable", 64502, "EXAMPLE-CABLE", false, false},
	{"Example Telecom", 64503, "EXAMPLE-TELECOM", false, false},
	{"Example University", 64504, "EXAMPLE-EDU", false, false},
	{"Example Mobile", 64505, "EXAMPLE-MOBILE", true, false},
	{"Example Wireless", 65536, "EXAMPLE-WIRELESS", true, false},
	{"Example Hosting", 65537, "EXAMPLE-HOSTING", false, true},
	{"Example Cloud", 65538, "EXAMPLE-CLOUD", false, true},
	{"Example Exchange", 65539, "EXAMPLE-IX", false, false},
	{"Example Broadband", 65540, "EXAMPLE-BROADBAND", false, false},
}
