package pages

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"strings"
	"sync"

	"gatehouse/actors/brand"
)

// View renders pages in one brand. Make it with NewView. It may be used by many goroutines.
type View struct {
	brand brand.Brand
	style string
	hash  string // source expression of style
	icon  *brand.Image
	// templates has copies of the templates that are bound to this View, made at the first use: an
	// html/template cannot be copied after it was executed.
	templates sync.Map // *template.Template to func() *template.Template
}

// NewView returns a View.
func NewView(b brand.Brand) *View {
	v := &View{brand: b, style: styleOf(b.Color), icon: b.Logo}
	v.hash = sourceOf(v.style)
	if v.icon == nil {
		v.icon = iconOf(b)
	}
	return v
}

// StyleSource returns the source expression that lets the pages' style sheet pass a
// Content-Security-Policy.
func (v *View) StyleSource() string { return v.hash }

// Logo returns the logo; nil = there is none.
func (v *View) Logo() *brand.Image { return v.brand.Logo }

// Icon returns the picture of the service in tabs: the logo, or the first letter of its name.
func (v *View) Icon() *brand.Image { return v.icon }

func (v *View) render(t *template.Template, data any) ([]byte, error) {
	bound, ok := v.templates.Load(t)
	if !ok {
		bound, _ = v.templates.LoadOrStore(t, sync.OnceValue(func() *template.Template {
			return template.Must(t.Clone()).Funcs(v.functions())
		}))
	}
	var page bytes.Buffer
	if err := bound.(func() *template.Template)().ExecuteTemplate(&page, "page",
		data); err != nil {
		return nil, fmt.Errorf("render %s: %w", t.Name(), err)
	}
	return page.Bytes(), nil
}

// functions are what templates call.
func (v *View) functions() template.FuncMap {
	return template.FuncMap{
		"style": func() template.CSS { return template.CSS(v.style) },
		"brand": func() brand.Brand { return v.brand },
		"logo":  func() string { return pathOf(PathLogo, v.brand.Logo) },
		"icon":  func() string { return pathOf(PathIcon, v.icon) },
	}
}

// pathOf returns the path of a picture, which changes with it, since browsers keep pictures; "" =
// there is none.
func pathOf(path string, image *brand.Image) string {
	if image == nil {
		return ""
	}
	sum := sha256.Sum256(image.Data)
	return path + "?v=" + base64.RawURLEncoding.EncodeToString(sum[:6])
}

var style = readStyle()

func readStyle() string {
	text, err := files.ReadFile("style.css")
	if err != nil {
		panic(err) // it is part of the program
	}
	return strings.TrimSpace(string(text))
}

// styleOf returns the style sheet with that accent.
func styleOf(accent brand.Color) string {
	if accent == (brand.Color{}) {
		return style
	}
	rule := func(p brand.Palette) string {
		return fmt.Sprintf(":root{--strong:%v;--stronger:%v;--on-strong:%v}", p.Strong, p.Stronger, p.On)
	}
	return style + "\n" + rule(accent.Light()) + "\n@media (prefers-color-scheme:dark){" +
		rule(accent.Dark()) + "}"
}

// iconOf returns a picture of the first letter of the name.
func iconOf(b brand.Brand) *brand.Image {
	return &brand.Image{Type: "image/svg+xml", Data: fmt.Appendf(nil,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><rect width="64" height="64" rx="14" fill="%v"/><text x="32" y="46" font-family="system-ui,sans-serif" font-size="40" font-weight="600" text-anchor="middle" fill="#fff">%s</text></svg>`,
		cmp.Or(b.Color, brand.DefaultColor), template.HTMLEscapeString(b.Initial()))}
}
