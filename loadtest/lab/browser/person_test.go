package browser_test

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"gatehouse/loadtest/lab/browser"
)

// timeout only keeps a test from hanging.
const timeout = 2 * time.Minute

// person uses a new browser: reads its page and uses the controls.
type person struct {
	*service
	t       *testing.T
	tab     context.Context
	scripts bool   // the browser runs scripts; then axe-core examines each page
	reads   string // the language that each page must have; "" = any
	status  int64  // of the current page
	path    string
	query   url.Values
}

// person opens a browser. It runs scripts of pages only if scripts is true.
func (s *service) person(t *testing.T, scripts bool) *person {
	t.Helper()
	p := &person{service: s, t: t, tab: browser.Open(t, chromium), scripts: scripts}
	if !scripts {
		if _, err := chromedp.Call(p.tab, emulation.SetScriptExecutionDisabled,
			emulation.SetScriptExecutionDisabledParams{Value: true}); err != nil {
			t.Fatal(err)
		}
	}
	if err := browser.Look(p.tab, small); err != nil {
		t.Fatal(err)
	}
	return p
}

// withAndWithoutScripts runs a test twice: with and without scripts in the browser.
func withAndWithoutScripts(t *testing.T, test func(t *testing.T, p *person)) {
	t.Helper()
	for _, scripts := range []bool{true, false} {
		t.Run(map[bool]string{true: "scripts", false: "no scripts"}[scripts], func(t *testing.T) {
			test(t, newService(t).person(t, scripts))
		})
	}
}

// do performs an action in the tab.
func (p *person) do(what string, action chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.tab, timeout)
	defer cancel()
	if err := retryStale(ctx, func() error { return chromedp.Do(ctx, action) }); err != nil {
		p.t.Fatalf("%s at %s: %v", what, p.path, err)
	}
}

// leave performs an action that leads to another page, and waits for it.
func (p *person) leave(what string, action chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.tab, timeout)
	defer cancel()
	var response *network.Response
	err := retryStale(ctx, func() (err error) {
		response, err = chromedp.RunResponse(ctx, action)
		return err
	})
	if err != nil {
		p.t.Fatalf("%s at %s: %v; the page says:\n%s", what, p.path, err, p.read())
	}
	p.arrive(response)
}

func (p *person) arrive(response *network.Response) {
	p.t.Helper()
	u, err := url.Parse(response.URL)
	if err != nil {
		p.t.Fatal(err)
	}
	p.status, p.path, p.query = response.Status, u.Path, u.Query()
	if !strings.HasPrefix(response.URL, p.URL+"/") {
		return
	}
	if p.scripts {
		p.examine()
	}
	if p.reads == "" {
		return
	}
	if got := evaluate[string](p, `document.documentElement.lang`); got != p.reads {
		p.t.Errorf("%d at %s: got a page in %s, want %s", p.status, p.path, got, p.reads)
	}
}

// retryStale retries f while the browser changes pages, when it returns elements that no longer
// exist.
func retryStale(ctx context.Context, f func() error) error {
	for {
		err := f()
		if err == nil || ctx.Err() != nil || !browser.IsStale(err) {
			return err
		}
	}
}

// visit opens an address: a path of the service or a URL.
func (p *person) visit(address string) {
	p.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = p.URL + address
	}
	p.leave("visit "+address, chromedp.Navigate(address))
}

// press presses the button with this text, including text for screen readers only.
func (p *person) press(button string) {
	p.t.Helper()
	p.leave("press "+button, click(fmt.Sprintf(`//button[normalize-space(.)="%s"]`, button)))
}

// follow follows the link with this text to another page.
func (p *person) follow(link string) {
	p.t.Helper()
	p.leave("follow "+link,
		click(fmt.Sprintf(`//a[normalize-space(.)="%s"][not(starts-with(@href, "#"))]`, link)))
}

// choose chooses the language with that tag, whose name is also given, at the foot of the page.
func (p *person) choose(tag, name string) {
	p.t.Helper()
	p.do("open the languages", click(`//footer//summary`))
	p.reads = tag
	p.press(name)
}

// sends fills fields, by name and text in turn, and presses the first button that sends a form,
// whatever its language.
func (p *person) sends(fields ...string) {
	p.t.Helper()
	for i := 0; i < len(fields); i += 2 {
		p.fill(fields[i], fields[i+1])
	}
	p.leave("send the form", click(`//main//form[not(@hidden)]//button[not(@type="button")]`))
}

// tick ticks the checkbox with this name.
func (p *person) tick(field string) {
	p.t.Helper()
	p.do("tick "+field, click(fmt.Sprintf(`//input[@type="checkbox"][@name="%s"]`, field)))
}

func click(path string) chromedp.Action[chromedp.Void] {
	return chromedp.Click(chromedp.Search(path))
}

// fill replaces the text of the field with this name.
func (p *person) fill(field, text string) {
	p.t.Helper()
	p.do("fill "+field, browser.Fill(fmt.Sprintf(`[name="%s"]`, field), text))
}

// evaluate returns the value of a JavaScript expression, even if the page may not run scripts.
func evaluate[T any](p *person, expression string) T {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.tab, timeout)
	defer cancel()
	value, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatalf("evaluate %s at %s: %v", expression, p.path, err)
	}
	return value
}

// value returns the value of the field with this name.
func (p *person) value(field string) string {
	p.t.Helper()
	return evaluate[string](p, fmt.Sprintf(`document.getElementsByName(%q)[0].value`, field))
}

// read returns the text of the page.
func (p *person) read() string {
	p.t.Helper()
	return evaluate[string](p, `document.body.innerText`)
}

// sees checks the page's path and heading, and that it has all texts.
func (p *person) sees(path, heading string, texts ...string) {
	p.t.Helper()
	all := p.read()
	if p.path != path || p.status != 200 || !strings.Contains(all, heading) {
		p.t.Fatalf("got %d at %s:\n%s\nwant %s with %q", p.status, p.path, all, path, heading)
	}
	p.contains(all, texts)
}

// refused checks that the page shows a problem and, unless field is "", that it stands at that field.
func (p *person) refused(path, field, problem string) {
	p.t.Helper()
	all := p.read()
	if p.path != path || p.status < 400 || p.status > 499 {
		p.t.Fatalf("got %d at %s:\n%s\nwant %s with a problem", p.status, p.path, all, path)
	}
	p.contains(all, []string{problem})
	if field == "" {
		return
	}
	const linked = `(field => field.getAttribute("aria-invalid") === "true" &&
		field.getAttribute("aria-describedby").split(" ").every(id => document.getElementById(id) !== null))(document.getElementsByName(%q)[0])`
	if !evaluate[bool](p, fmt.Sprintf(linked, field)) {
		p.t.Errorf("got no problem with %s at %s, want it marked and described",
			field, p.path)
	}
}

// contains checks that all contains each of texts.
func (p *person) contains(all string, texts []string) {
	p.t.Helper()
	for _, text := range texts {
		if !strings.Contains(all, text) {
			p.t.Errorf("got at %s:\n%s\nwant %q", p.path, all, text)
		}
	}
}

// lacks checks that the page has none of texts.
func (p *person) lacks(texts ...string) {
	p.t.Helper()
	all := p.read()
	for _, text := range texts {
		if strings.Contains(all, text) {
			p.t.Errorf("got at %s:\n%s\nwant no %q", p.path, all, text)
		}
	}
}

// seen holds the examined pages, by the kinds of their elements.
var seen sync.Map

// small is the view of a person. The golden pages are examined in all views.
var small = browser.View{Width: 320}

// examine runs axe-core on the page, unless a page with the same kinds of elements was examined
// before. It also checks that the page is not wider than the window.
func (p *person) examine() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.tab, 3*timeout)
	defer cancel()
	const kinds = `[...new Set([...document.querySelectorAll("body *")].map(e => e.localName + "." + e.className + "#" + e.id))].join()`
	page := evaluate[string](p, kinds)
	if _, known := seen.LoadOrStore(page, true); known {
		return
	}
	problems, err := browser.Examine(ctx, browser.AllRules)
	if err != nil {
		p.t.Fatalf("examine %s: %v", p.path, err)
	}
	for _, problem := range problems {
		p.t.Errorf("%d at %s: %s", p.status, p.path, problem)
	}
	if over, err := browser.Overflow(ctx); err != nil || over > 0 {
		p.t.Errorf("%d at %s: got %d pixels too many, %v, want none", p.status, p.path, over, err)
	}
}
