package geo

import (
	"math"
	"net/netip"
	"slices"
	"strconv"
	"time"
	"unicode/utf8"
)

// AppendQuoted appends s as a JSON string (RFC 8259 section 7). Bytes that are not UTF-8 become
// U+FFFD. It escapes only what JSON requires, so the result is not safe inside HTML.
func AppendQuoted(dst []byte, s string) []byte {
	dst = append(dst, '"')
	done := 0 // s[:done] is in dst
	for i := 0; i < len(s); {
		if plain[s[i]] {
			i++
			continue
		}
		r, size := utf8.DecodeRuneInString(s[i:])
		if r >= utf8.RuneSelf && (r != utf8.RuneError || size > 1) {
			i += size
			continue
		}
		dst = append(dst, s[done:i]...)
		dst = appendEscaped(dst, r)
		i += size
		done = i
	}
	dst = append(dst, s[done:]...)
	return append(dst, '"')
}

// plain marks the ASCII bytes that need no escape in a JSON string.
var plain = func() (t [256]bool) {
	for b := byte(' '); b < utf8.RuneSelf; b++ {
		t[b] = b != '"' && b != '\\'
	}
	return t
}()

// appendEscaped appends an ASCII character that needs an escape, or U+FFFD.
func appendEscaped(dst []byte, r rune) []byte {
	const hex = "0123456789abcdef"
	switch r {
	case '"', '\\':
		return append(dst, '\\', byte(r))
	case '\n':
		return append(dst, `\n`...)
	case '\r':
		return append(dst, `\r`...)
	case '\t':
		return append(dst, `\t`...)
	case utf8.RuneError:
		return utf8.AppendRune(dst, r)
	}
	return append(dst, '\\', 'u', '0', '0', hex[r>>4], hex[r&0xf])
}

// AppendJSON appends the part of a response after the value of "query": from the comma before "ip"
// to the closing brace of the whole object. It always writes every documented member.
func (r *Result) AppendJSON(dst []byte) []byte {
	dst = slices.Grow(dst, r.jsonSize())
	return r.appendTail(appendIP(dst, r.IP))
}

// appendTail appends the part of a response after the value of "ipVersion".
func (r *Result) appendTail(dst []byte) []byte {
	dst = r.Location.appendJSON(append(dst, `,"location":`...))
	dst = r.Network.appendJSON(append(dst, `,"network":`...))
	dst = r.Flags.appendJSON(append(dst, `,"flags":`...))
	return append(dst, '}')
}

// appendJSON appends the member "data" of a result of source.
func (d *Data) appendJSON(dst []byte, source Source) []byte {
	return d.appendTail(appendPrefix(append(dst, dataHead...), d.Prefix), source)
}

// dataHead is the JSON of "data" before the value of "prefix".
const dataHead = `{"prefix":`

// appendPrefix appends p as a JSON string, or null if p is not known.
func appendPrefix(dst []byte, p netip.Prefix) []byte {
	if !p.IsValid() {
		return append(dst, "null"...)
	}
	return append(p.AppendTo(append(dst, '"')), '"')
}

// appendTail appends the members of "data" after the prefix.
func (d *Data) appendTail(dst []byte, source Source) []byte {
	dst = appendKnown(append(dst, `,"accuracyRadiusKm":`...), int64(d.AccuracyRadiusKm))
	dst = appendKnown(append(dst, `,"asn":`...), int64(d.ASN))
	dst = appendString(dst, `,"source":`, string(source))
	dst = append(dst, `,"asOf":`...)
	if d.AsOf.IsZero() {
		dst = append(dst, "null"...)
	} else {
		dst = append(d.AsOf.UTC().AppendFormat(append(dst, '"'), time.DateOnly), '"')
	}
	return append(d.appendMore(dst), '}')
}

// appendMore appends the members that only some providers know, as far as they are known.
func (d *Data) appendMore(dst []byte) []byte {
	for _, m := range [...]struct{ name, value string }{
		{`,"regionCode":`, d.RegionCode}, {`,"continentCode":`, d.ContinentCode},
		{`,"connectionType":`, d.ConnectionType}, {`,"asDomain":`, d.ASDomain},
	} {
		if m.value != "" {
			dst = appendString(dst, m.name, m.value)
		}
	}
	if d.GeonameID != 0 {
		dst = strconv.AppendUint(append(dst, `,"geonameId":`...), uint64(d.GeonameID), 10)
	}
	if d.Confidence != 0 {
		dst = strconv.AppendUint(append(dst, `,"confidence":`...), uint64(d.Confidence), 10)
	}
	for _, m := range [...]struct {
		name  string
		value Truth
	}{
		{`,"isEU":`, d.IsEU}, {`,"isVPN":`, d.IsVPN}, {`,"isTor":`, d.IsTor},
		{`,"isProxy":`, d.IsProxy}, {`,"isHosting":`, d.IsHosting},
	} {
		if m.value != Unknown {
			dst = strconv.AppendBool(append(dst, m.name...), m.value == Yes)
		}
	}
	return dst
}

// appendKnown appends n, or null if it is 0.
func appendKnown(dst []byte, n int64) []byte {
	if n == 0 {
		return append(dst, "null"...)
	}
	return strconv.AppendInt(dst, n, 10)
}

// jsonSize returns an upper estimate of the JSON's size in bytes, exact to a few bytes if no
// character is escaped and degrees have four decimals.
func (r *Result) jsonSize() int {
	const frame = 364 // names, punctuation, numbers, flags and the longest address
	l, n := &r.Location, &r.Network
	return frame + len(l.Continent) + len(l.Country) + len(l.CountryCode) + len(l.RegionName) +
		len(l.City) + len(l.Zip) +
		len(l.Timezone) + len(l.Currency) + len(n.ISP) + len(n.Org) + len(n.AS) + len(n.ASName) +
		len(n.Reverse)
}

// appendIP appends the members "ip" and "ipVersion". Both are "" when the address is not known.
func appendIP(dst []byte, ip netip.Addr) []byte {
	dst = append(dst, `,"ip":"`...)
	if ip.IsValid() {
		dst = ip.AppendTo(dst)
	}
	switch {
	case ip.Is4():
		return append(dst, `","ipVersion":"IPv4"`...)
	case ip.Is6():
		return append(dst, `","ipVersion":"IPv6"`...)
	}
	return append(dst, `","ipVersion":""`...)
}

func (l *Location) appendJSON(dst []byte) []byte {
	dst = appendString(dst, `{"continent":`, l.Continent)
	dst = appendString(dst, `,"country":`, l.Country)
	dst = appendString(dst, `,"countryCode":`, l.CountryCode)
	dst = appendString(dst, `,"regionName":`, l.RegionName)
	dst = appendString(dst, `,"city":`, l.City)
	dst = appendString(dst, `,"zip":`, l.Zip)
	dst = appendDegrees(append(dst, `,"lat":`...), l.Lat)
	dst = appendDegrees(append(dst, `,"lon":`...), l.Lon)
	dst = appendString(dst, `,"timezone":`, l.Timezone)
	dst = strconv.AppendInt(append(dst, `,"utcOffsetSeconds":`...), int64(l.UTCOffsetSeconds), 10)
	dst = appendString(dst, `,"currency":`, l.Currency)
	return append(dst, '}')
}

func (n *Network) appendJSON(dst []byte) []byte {
	dst = appendString(dst, `{"isp":`, n.ISP)
	dst = appendString(dst, `,"org":`, n.Org)
	dst = appendString(dst, `,"as":`, n.AS)
	dst = appendString(dst, `,"asname":`, n.ASName)
	dst = appendString(dst, `,"reverse":`, n.Reverse)
	return append(dst, '}')
}

func (f Flags) appendJSON(dst []byte) []byte {
	dst = strconv.AppendBool(append(dst, `{"mobile":`...), f.Mobile)
	dst = strconv.AppendBool(append(dst, `,"proxy":`...), f.Proxy)
	dst = strconv.AppendBool(append(dst, `,"hosting":`...), f.Hosting)
	return append(dst, '}')
}

func appendString(dst []byte, name, value string) []byte {
	return AppendQuoted(append(dst, name...), value)
}

// appendDegrees appends f without an exponent. It writes 0 for NaN and infinities, which JSON
// lacks.
func appendDegrees(dst []byte, f float64) []byte {
	if f == 0 || math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, '0')
	}
	return strconv.AppendFloat(dst, f, 'f', -1, 64)
}
