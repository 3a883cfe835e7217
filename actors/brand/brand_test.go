package brand_test

import (
	"bytes"
	"image"
	"image/png"
	"strings"
	"testing"

	"gatehouse/actors/brand"
)

// TestParseColor refuses what nobody could read, and proposes a colour that is taken.
func TestParseColor(t *testing.T) {
	for text, want := range map[string]string{
		"#1f4fc4": "", "#000000": "", "#7a0019": "",
		"#ffcc00": "needs 4.5:1: the nearest good colour is #", "#ffffff": "nearest good colour is #",
		"#777777": "has a contrast of 4.1:1", "": "such as #1f4fc4", "red": "such as #1f4fc4",
		"1f4fc4": "such as #1f4fc4", "#1f4fc": "such as #1f4fc4", "#1f4fcg": "such as #1f4fc4",
	} {
		c, err := brand.ParseColor(text)
		if want == "" {
			for _, p := range []brand.Palette{c.Light(), c.Dark()} {
				if err != nil || p.Strong.Contrast(p.On) < brand.MinContrast ||
					p.Stronger.Contrast(p.On) < brand.MinContrast {
					t.Errorf("%s: got %v, %v, want colours that can be read", text, p, err)
				}
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want an error with %q", text, err, want)
			continue
		}
		if _, proposed, ok := strings.Cut(err.Error(), "colour is "); ok {
			if _, err := brand.ParseColor(proposed); err != nil {
				t.Errorf("%s: got the proposal %s, which is refused: %v", text, proposed, err)
			}
		}
	}
}

func TestParseImage(t *testing.T) {
	picture := func(side int) string {
		var data bytes.Buffer
		if err := png.Encode(&data, image.NewGray(image.Rect(0, 0, side, side))); err != nil {
			t.Fatal(err)
		}
		return data.String()
	}
	svg := func(inside string) string {
		return `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9">` + inside + `</svg>`
	}
	for _, test := range []struct{ data, want string }{
		{svg(`<g fill="url(#a)"/><use href="#b"/><style>g{fill:red}</style>`), ""},
		{"<?xml version=\"1.0\"?>\n<!DOCTYPE svg>\n" + svg(""), ""}, {picture(8), ""},
		{picture(2049), "2049 by 2049 pixels"}, {"\x89PNG\r\n", "export the picture again"},
		{strings.Repeat(" ", 10<<20), "has more than 64 KB"}, {"", "neither an SVG nor a PNG"},
		{"<html></html>", "neither an SVG nor a PNG"}, {svg("<g>"), "neither an SVG nor a PNG"},
		{svg("<script>alert(1)</script>"), "<script>"}, {svg("<SCRIPT/>"), "<script>"},
		{svg(`<g onload="alert(1)"/>`), "script in onload"}, {svg("<foreignObject/>"), "without scripts"},
		{svg(`<image href="https://evil.example/a.png"/>`), "embed it"},
		{svg(`<use xmlns:x="http://www.w3.org/1999/xlink" x:href="javascript:alert(1)"/>`), "embed it"},
		{svg(`<g style="fill:url('https://evil.example')"/>`), "embed it"},
		{svg(`<style>@import "https://evil.example"</style>`), "styles into the file"},
		{`<?xml-stylesheet href="a.css"?>` + svg(""), "styles into the file"},
		{`<!DOCTYPE svg [<!ENTITY a "b">]>` + svg(""), "entities"},
	} {
		if _, err := brand.ParseImage([]byte(test.data)); test.want == "" && err != nil ||
			test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%.80q: got %v, want an error with %q", test.data, err, test.want)
		}
	}
	if _, err := brand.ParsePNG([]byte(svg(""))); err == nil {
		t.Error("got an SVG taken for mails, want an error")
	}
}
