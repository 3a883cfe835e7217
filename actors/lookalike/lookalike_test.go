package lookalike_test

import (
	"testing"

	"gatehouse/actors/lookalike"
)

func TestLooks(t *testing.T) {
	for _, row := range []struct {
		name, other string
		want        bool
	}{
		{"Atlas", "Atlas", true}, {"ATLAS", "atlas", true}, {"A t l a s", "Atlas", true},
		{"\u0410tl\u0430s", "Atlas", true}, // with Cyrillic letters
		{"\u0391tlas", "Atlas", true},      // with a Greek one
		{"AtIas", "Atlas", true}, {"At1as", "Atlas", true}, {"Ätlas", "Atlas", true}, {"Ａｔｌａｓ", "Atlas", true},
		{"At\u200blas", "Atlas", true},
		{"Atlas Account Security", "Atlas", true}, {"Modern", "Modem", true},
		{"Notes", "Atlas", false}, {"Atla", "Atlas", false}, {"Maps of Ada", "Ada", false}, {"Ada", "Ada", true},
		{"", "", false}, {"x", "", false}, {"Атлас", "Atlas", false}, {"李小龍", "李小龍", true},
	} {
		if got := lookalike.Looks(row.name, row.other); got != row.want {
			t.Errorf("%q beside %q: got %t (%q, %q), want %t", row.name, row.other, got,
				lookalike.Skeleton(row.name), lookalike.Skeleton(row.other), row.want)
		}
	}
}

func TestMixesScripts(t *testing.T) {
	for name, want := range map[string]bool{"Atlas": false, "Атлас": false, "Аtlas": true, "Atlas Атлас": false,
		"αtlas": true, "アトラス Atlas": false, "": false, "Café 24": false} {
		if got := lookalike.MixesScripts(name); got != want {
			t.Errorf("%q: got %t, want %t", name, got, want)
		}
	}
}

func TestHostLooks(t *testing.T) {
	for host, want := range map[string]bool{"id.atlas.example": false, "a.id.atlas.example": false,
		"id.atlas.example.evil.example": true, "id-atlas-example.evil": true, "atlas-login.example": true,
		"xn--tls-5cdc.example": true, "at1as.example": true, "notes.example": false, "": false} {
		if got := lookalike.HostLooks(host, "id.atlas.example", "Atlas"); got != want {
			t.Errorf("%q: got %t, want %t", host, got, want)
		}
	}
}
