package wire_test

import (
	"fmt"
	"testing"
	"time"

	"gatehouse/actors/wire"
)

func TestReader(t *testing.T) {
	for _, row := range []struct {
		what, bytes string
		read        func(r *wire.Reader) any
		want        string // the value, what is left and whether it is malformed
	}{
		{"uint", "\x80\x01z", func(r *wire.Reader) any { return r.Uint() }, `128 "z" false`},
		{"uint without its end", "\x80", func(r *wire.Reader) any { return r.Uint() }, `0 "" true`},
		{"uint of 65 bits", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02z",
			func(r *wire.Reader) any { return r.Uint() }, `0 "" true`},
		{"int", "\x03z", func(r *wire.Reader) any { return r.Int() }, `-2 "z" false`},
		{"no int", "", func(r *wire.Reader) any { return r.Int() }, `0 "" true`},
		{"up to 3", "\x03z", func(r *wire.Reader) any { return r.UpTo(3) }, `3 "z" false`},
		{"beyond 3", "\x04z", func(r *wire.Reader) any { return r.UpTo(3) }, `0 "" true`},
		{"count", "\x02abcd", func(r *wire.Reader) any { return r.Count(2) }, `2 "abcd" false`},
		{"count of too many", "\x02abc", func(r *wire.Reader) any { return r.Count(2) }, `0 "" true`},
		{"hour", string(wire.AppendDuration(nil, 2*time.Hour)),
			func(r *wire.Reader) any { return r.Duration() }, `1h0m0s "" false`},
		{"duration", string(wire.AppendDuration(nil, 1500*time.Nanosecond)),
			func(r *wire.Reader) any { return r.Duration() }, `1µs "" false`},
		{"negative duration", string(wire.AppendDuration(nil, -time.Second)),
			func(r *wire.Reader) any { return r.Duration() }, `0s "" false`},
		{"byte", "az", func(r *wire.Reader) any { return r.Byte() }, `97 "z" false`},
		{"no byte", "", func(r *wire.Reader) any { return r.Byte() }, `0 "" true`},
		{"bool", "\x01z", func(r *wire.Reader) any { return r.Bool() }, `true "z" false`},
		{"no bool", "\x02z", func(r *wire.Reader) any { return r.Bool() }, `false "" true`},
		{"bytes", "abz", func(r *wire.Reader) any { return string(r.Bytes(2)) }, `ab "z" false`},
		{"too few bytes", "a", func(r *wire.Reader) any { return string(r.Bytes(2)) }, ` "" true`},
		{"field", "\x02abz", func(r *wire.Reader) any { return string(r.Field()) }, `ab "z" false`},
		{"longer field", "\x02a", func(r *wire.Reader) any { return string(r.Field()) }, ` "" true`},
		{"all", "ab", func(r *wire.Reader) any { return string(r.All()) }, `ab "" false`},
		{"all of nothing", "", func(r *wire.Reader) any { return r.All() == nil }, `true "" false`},
		{"after a failure", "", func(r *wire.Reader) any { r.Byte(); return r.Uint() }, `0 "" true`},
	} {
		r := wire.Reader{Rest: []byte(row.bytes)}
		got := fmt.Sprint(row.read(&r))
		if got = fmt.Sprintf("%s %q %t", got, r.Rest, r.Bad); got != row.want {
			t.Errorf("%s: got %s, want %s", row.what, got, row.want)
		}
	}
}
