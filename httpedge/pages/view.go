package pages

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"sync"

	"gatehouse/actors/brand"
	"gatehouse/actors/texts"
)

// View renders pages in one brand and one language. Make it with NewView. It may be used by many
// goroutines.
type View struct {
	*face
	language *texts.Language
	others   []*texts.Language // that a person can choose instead
	// templates has copies of the templates that are bound to this View, made at the first use: an
	// html/template cannot be copied after it was executed.
	templates sync.Map // *pageTemplate to func() *template.Template
}

// face is what the pages of one brand share, in all languages.
type face struct {
	brand     brand.Brand
	style     string
	hash      string // source expression of style
	icon      *brand.Image
	languages *texts.Set
	views     map[*texts.Language]*View
}

// NewView returns a View in the language of people whose own is not known.
func NewView(b brand.Brand, languages *texts.Set) *View {
	f := &face{brand: b, style: styleOf(b.Color), icon: b.Logo, languages: languages,
		views: map[*texts.Language]*View{}}
	f.hash = sourceOf(f.style)
	if f.icon == nil {
		f.icon = iconOf(b)
	}
	for _, l := range languages.All() {
		f.views[l] = &View{face: f, language: l,
			others: slices.DeleteFunc(slices.Clone(languages.All()),
				func(other *texts.Language) bool { return other == l })}
	}
	return f.views[languages.Initial()]
}

// In returns the View of the same brand in another language of its set.
func (v *View) In(l *texts.Language) *View { return v.views[l] }

// Languages returns the languages of the pages.
func (v *View) Languages() *texts.Set { return v.languages }

// Language returns the language of the pages.
func (v *View) Language() *texts.Language { return v.language }

// StyleSource returns the source expression that lets the pages' style sheet pass a
// Content-Security-Policy.
func (v *View) StyleSource() string { return v.hash }

// ServiceName returns what people call the service.
func (v *View) ServiceName() string { return v.brand.Name }

// Logo returns the logo; nil = there is none.
func (v *View) Logo() *brand.Image { return v.brand.Logo }

// Icon returns the picture of the service in tabs: the logo, or the first letter of its name.
func (v *View) Icon() *brand.Image { return v.icon }

func (v *View) render(of *pageTemplate, data any) ([]byte, error) {
	bound, ok := v.templates.Load(of)
	if !ok {
		bound, _ = v.templates.LoadOrStore(of, sync.OnceValue(func() *template.Template {
			return template.Must(of.parsed().Clone()).Funcs(v.functions())
		}))
	}
	var page bytes.Buffer
	if err := bound.(func() *template.Template)().ExecuteTemplate(&page, "page",
		data); err != nil {
		return nil, fmt.Errorf("render %s: %w", of.name, err)
	}
	return page.Bytes(), nil
}

// functions are what templates call.
func (v *View) functions() template.FuncMap {
	return template.FuncMap{
		"style":    func() template.CSS { return template.CSS(v.style) },
		"brand":    func() brand.Brand { return v.brand },
		"logo":     func() string { return pathOf(PathLogo, v.brand.Logo) },
		"icon":     func() string { return pathOf(PathIcon, v.icon) },
		"language": func() *texts.Language { return v.language },
		"others":   func() []*texts.Language { return v.others },
		"menu":     func() []menuItem { return menu },
		// t writes a text, or that of a key with the names and values of its slots in turn.
		"t": func(text any, slots ...any) template.HTML {
			return v.language.HTML(textOf(text, slots), "")
		},
		"plain": func(text any, slots ...any) string { // in titles and attributes
			return v.language.Plain(textOf(text, slots))
		},
		"linked": func(key, path string) template.HTML {
			return v.language.HTML(texts.Of(key), path)
		},
		"site": v.site,
		// time is shown in the zone of the person by Script, and as written without it.
		"time": func(at string, t texts.Text) template.HTML {
			return `<time datetime="` + escaped(at) + `">` + v.language.HTML(t, "") + `</time>`
		},
		"script":       func() template.JS { return template.JS(script) },
		"example":      func(text string) template.HTML { return `<span class="nw" dir="ltr">` + escaped(text) + `</span>` },
		"code":         func(text string) template.HTML { return `<code>` + escaped(text) + `</code>` },
		"providerIcon": func(name string) template.HTML { return providerIcons[name] },
	}
}

func textOf(text any, slots []any) texts.Text {
	if key, ok := text.(string); ok {
		return texts.Of(key, slots...)
	}
	whole, _ := text.(texts.Text)
	return whole
}

func escaped(text string) template.HTML { return template.HTML(template.HTMLEscapeString(text)) }

// site returns a link to a page of a client's owner.
func (v *View) site(s *Site) template.HTML {
	return `<a href="` + escaped(s.URL) + `" target="_blank" rel="noopener noreferrer"><bdi>` +
		escaped(s.Host) + `</bdi><span class="vh"> ` +
		v.language.HTML(texts.Of("page.new_tab"), "") + `</span></a>`
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
	return shorter.Replace(strings.TrimSpace(string(text)))
}

// shorter keeps pages small: it takes out line ends, and shortens the names of colours.
var shorter = strings.NewReplacer("\n", "", "--on-strong", "--o", "--stronger", "--r", "--strong", "--s",
	"--alarm-ground", "--b", "--alarm", "--a", "--good-ground", "--h", "--good", "--g",
	"--warn-ground", "--x", "--warn", "--w", "--ground", "--d", "--sheet", "--e", "--ink", "--i",
	"--soft", "--f", "--line", "--l", "--hair", "--j", "--tint", "--t")

// styleOf returns the style sheet with that accent.
func styleOf(accent brand.Color) string {
	if accent == (brand.Color{}) {
		return style
	}
	rule := func(p brand.Palette) string {
		return fmt.Sprintf(":root{--strong:%v;--stronger:%v;--on-strong:%v}", p.Strong, p.Stronger, p.On)
	}
	return style + shorter.Replace(rule(accent.Light())+"@media (prefers-color-scheme:dark){"+
		rule(accent.Dark())+"}")
}

// iconOf returns a picture of the first letter of the name.
func iconOf(b brand.Brand) *brand.Image {
	return &brand.Image{Type: "image/svg+xml", Data: fmt.Appendf(nil,
		`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64"><rect width="64" height="64" rx="14" fill="%v"/><text x="32" y="46" font-family="system-ui,sans-serif" font-size="40" font-weight="600" text-anchor="middle" fill="#fff">%s</text></svg>`,
		cmp.Or(b.Color, brand.DefaultColor), template.HTMLEscapeString(b.Initial()))}
}
