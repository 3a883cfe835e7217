package bulklookupclient

import (
	"strconv"
	"strings"
	"time"
)

// Result is the result of a query. An unknown value is "", 0 or false.
type Result struct {
	OK        bool     `json:"ok"`
	Query     string   `json:"query"`     // as sent; the address for MyIP
	IP        string   `json:"ip"`        // of the query, or of its domain
	IPVersion string   `json:"ipVersion"` // "IPv4" or "IPv6"
	Location  Location `json:"location"`
	Network   Network  `json:"network"`
	Flags     Flags    `json:"flags"`
	Data      Data     `json:"data,omitzero"` // if asked for
}

// Location is the location of an address, up to its city.
type Location struct {
	Continent        string  `json:"continent"`
	Country          string  `json:"country"`
	CountryCode      string  `json:"countryCode"` // ISO 3166-1, upper case
	RegionName       string  `json:"regionName"`
	City             string  `json:"city"`
	Zip              string  `json:"zip"`
	Lat              float64 `json:"lat"` // degrees
	Lon              float64 `json:"lon"` // degrees
	Timezone         string  `json:"timezone"`
	UTCOffsetSeconds int     `json:"utcOffsetSeconds"`
	Currency         string  `json:"currency"` // ISO 4217
}

// Network is the network of an address.
type Network struct {
	ISP     string `json:"isp"`
	Org     string `json:"org"`
	AS      string `json:"as"` // number and name
	ASName  string `json:"asname"`
	Reverse string `json:"reverse"` // DNS name
}

// Flags describe the use of an address.
type Flags struct {
	Mobile  bool `json:"mobile"`
	Proxy   bool `json:"proxy"`
	Hosting bool `json:"hosting"`
}

// Data is what the service's provider knows of an answer. An unknown value is "" or 0.
type Data struct {
	Prefix           string `json:"prefix"` // CIDR
	AccuracyRadiusKm int    `json:"accuracyRadiusKm"`
	ASN              int    `json:"asn"`
	Source           string `json:"source"`
	AsOf             string `json:"asOf"` // date
}

// Lookup is a Result with its Origin.
type Lookup struct {
	Result Result
	Origin Origin
}

// Origin is the source of a result and how long it may be cached.
type Origin struct {
	Source string        // "upstream", "mmdb" or "sim"
	Cached bool          // in the service
	Age    time.Duration // since it was fetched; 0 = unknown
	MaxAge time.Duration // from then; 0 = do not cache
}

// Batch is the result of Bulk.
type Batch struct {
	OK      bool     `json:"ok"`
	Count   int      `json:"count"`
	Failed  int      `json:"failed"` // items that are not ok
	Items   []Item   `json:"results"`
	Sources []string `json:"-"` // of the items that are ok
}

// Item is the Result or the error of one query of a Batch.
type Item struct {
	Result
	Code              string `json:"error"` // "" when OK
	Reason            string `json:"reason"`
	Message           string `json:"message"`
	RetryAfterSeconds int    `json:"retry_after"` // 0 = unknown
}

// Err returns nil for a Result, else an *Error without a status.
func (i *Item) Err() error {
	if i.OK {
		return nil
	}
	return &Error{Code: i.Code, Reason: i.Reason, Query: i.Query, Message: i.Message,
		RetryAfter: time.Duration(i.RetryAfterSeconds) * time.Second}
}

func originOf(r *Response) Origin {
	o := Origin{Source: r.Header("X-Geo-Source"), Cached: r.Header("X-Cache") == "hit",
		Age: seconds(r.Header("Age"))}
	for _, directive := range r.values("Cache-Control") {
		if age, ok := strings.CutPrefix(directive, "max-age="); ok {
			o.MaxAge = seconds(age)
		}
	}
	return o
}

// seconds parses whole seconds; anything else is 0.
func seconds(s string) time.Duration {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return 0
	}
	return time.Duration(n) * time.Second
}
