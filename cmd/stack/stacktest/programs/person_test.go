//go:build programs

package programs_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"gatehouse/loadtest/lab/browser"
)

// timeout only keeps a test from hanging.
const timeout = 2 * time.Minute

// person uses a new browser.
type person struct {
	t   *testing.T
	tab context.Context
	// asked are the elements of the pages on which the person did something.
	asked []string
}

func newPerson(t *testing.T) *person {
	t.Helper()
	return &person{t: t, tab: browser.Open(t, chromium)}
}

// do performs an action, again when the page changes meanwhile and isDone is false or nil.
func (p *person) do(what string, action chromedp.Action[chromedp.Void], isDone func() bool) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.tab, timeout)
	defer cancel()
	for {
		err := chromedp.Do(ctx, action)
		if err == nil {
			return
		}
		if ctx.Err() != nil || !browser.IsStale(err) {
			p.t.Fatalf("%s at %s: %v", what, p.address(), err)
		}
		if isDone != nil && isDone() {
			return
		}
	}
}

func (p *person) visit(address string) {
	p.t.Helper()
	p.do("visit "+address, chromedp.Navigate(address), nil)
}

// click clicks the element of a CSS selector. The next page may come before the click returns.
func (p *person) click(selector string) {
	p.t.Helper()
	p.do("click "+selector, chromedp.Click(chromedp.CSS(selector)),
		func() bool { return !p.has(selector) })
}

// fill enters a text into the field of a CSS selector.
func (p *person) fill(selector, text string) {
	p.t.Helper()
	p.do("fill "+selector, browser.Fill(selector, text), nil)
}

// evaluate returns the value of a JavaScript expression; the zero value while a page loads.
func evaluate[T any](p *person, expression string) (value T) {
	ctx, cancel := context.WithTimeout(p.tab, timeout)
	defer cancel()
	value, _ = chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	return value
}

func (p *person) address() string { return evaluate[string](p, `location.href`) }

func (p *person) text() string {
	return evaluate[string](p, `document.body ? document.body.innerText : ""`)
}

// has reports whether the page has an element.
func (p *person) has(selector string) bool {
	return evaluate[bool](p, fmt.Sprintf(`document.querySelector(%q) !== null`, selector))
}

// step is what a person does on a page.
type step struct {
	when   string // CSS selector of an element that the page has
	fields map[string]string
	press  string // CSS selector
}

// reach answers the pages of a provider by steps until the address has a prefix and done is true.
func (p *person) reach(prefix string, steps []step, done func() bool) {
	p.t.Helper()
	last := ""
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		at := p.address()
		if strings.HasPrefix(at, prefix) && done() {
			return
		}
		if time.Since(begin) > timeout {
			p.t.Fatalf("got stuck at %s:\n%s\nwant %s", at, p.text(), prefix)
		}
		for _, step := range steps {
			if at+step.when == last || !p.has(step.when) {
				continue
			}
			for field, text := range step.fields {
				p.fill(field, text)
			}
			last = at + step.when
			p.asked = append(p.asked, step.when)
			p.click(step.press)
			break
		}
	}
}

// state returns what the app shows of itself.
func (p *person) state() (state map[string]any) {
	text := evaluate[string](p,
		`document.getElementById("state") ? document.getElementById("state").textContent : ""`)
	if json.Unmarshal([]byte(text), &state) != nil {
		return nil
	}
	return state
}
