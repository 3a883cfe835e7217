package console

import (
	"encoding/json"

	"github.com/valyala/fasthttp"

	"gatehouse/actors/texts"
	"gatehouse/httpedge/pages"
	"gatehouse/httpedge/visit"
)

// flash is what a form leaves for the page after its redirect, which shows it once.
type flash struct {
	Notice string            `json:"n,omitempty"` // key of a text
	Wrong  []wrong           `json:"w,omitempty"`
	Fields map[string]string `json:"f,omitempty"` // as they were entered, if something is wrong
	Secret string            `json:"s,omitempty"` // of a client
}

// wrong is a problem.
type wrong struct {
	Field string `json:"f,omitempty"` // "" = the form as a whole
	Key   string `json:"k,omitempty"` // of a text
	N     int    `json:"n,omitempty"` // of the text
	Text  string `json:"t,omitempty"` // in place of Key
}

// problems returns the problems for display.
func (f *flash) problems() (all pages.Problems) {
	for _, w := range f.Wrong {
		text := texts.Literal(w.Text)
		if w.Key != "" {
			text = texts.Of(w.Key, "n", w.N)
		}
		all = append(all, pages.Problem{Field: w.Field, Text: text})
	}
	return all
}

// leave redirects to a page that shows f.
func (s *service) leave(o *operator, path string, f flash) {
	text, err := json.Marshal(f)
	if err != nil {
		panic(err) // texts alone
	}
	if !s.Flash(o.Visit, o.bound(), text) {
		f.Fields = nil // too long to keep: the page shows what is stored
		if text, err = json.Marshal(f); err != nil || !s.Flash(o.Visit, o.bound(), text) {
			s.WriteMessage(o.HTTP, fasthttp.StatusRequestEntityTooLarge, pages.Message{
				Title: texts.Of("message.large_form"), Text: texts.Of("message.large_form_text"),
				Advice: texts.Of("message.large_form_advice")})
			return
		}
	}
	visit.Redirect(o.HTTP, path)
}

// takeFlash returns what the form before has left; a form takes nothing.
func (s *service) takeFlash(o *operator) (f flash) {
	if o.HTTP.IsPost() {
		return f
	}
	if json.Unmarshal(s.TakeFlash(o.Visit, o.bound()), &f) != nil {
		return flash{}
	}
	return f
}
