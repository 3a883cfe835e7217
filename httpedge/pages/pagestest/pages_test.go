// Package pagestest looks at every golden page in chromium.
package pagestest_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"gatehouse/httpedge/pages"
	"gatehouse/loadtest/lab/browser"
)

var chromium context.Context

func TestMain(m *testing.M) {
	os.Exit(browser.Run(func(ctx context.Context) int {
		chromium = ctx
		return m.Run()
	}))
}

const golden = "../testdata"

// logo is that of the pages in the brand of an operator.
const logo = `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 64 64" width="64" height="64"><circle cx="32" cy="32" r="30" fill="#7a0019"/><path d="M18 46 32 14l14 32M24 36h16" fill="none" stroke="#fff" stroke-width="5"/></svg>`

// names returns the golden pages' names.
func names(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(golden, "*.html"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d golden pages, %v, want some", len(files), err)
	}
	for i, file := range files {
		files[i] = strings.TrimSuffix(filepath.Base(file), ".html")
	}
	return files
}

// serve serves the golden pages as the service does.
func serve(t *testing.T) string { return serveFrom(t, golden) }

func serveFrom(t *testing.T, folder string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if strings.HasPrefix(r.URL.Path, "/service/") {
			w.Header().Set("Content-Type", "image/svg+xml")
			w.Write([]byte(logo))
			return
		}
		if r.URL.Path == "/" {
			return
		}
		page, err := os.ReadFile(filepath.Join(folder, filepath.Base(r.URL.Path)+".html"))
		if err != nil {
			http.NotFound(w, r)
			return
		}
		_, style, _ := bytes.Cut(page, []byte("<style>"))
		style, _, _ = bytes.Cut(style, []byte("</style>"))
		sum := sha256.Sum256(style)
		w.Header().Set("Content-Security-Policy", "default-src 'none'; style-src 'sha256-"+
			base64.StdEncoding.EncodeToString(sum[:])+"'; script-src "+pages.ScriptSource+"; img-src 'self'; base-uri 'none'; frame-ancestors 'self'")
		w.Write(page)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// look is what is examined of a page in a view. Colours do not depend on the width, and a page that
// fits does so by day and by night. No rule but those about colours depends on the width.
type look struct {
	browser.View
	rules browser.Rules // "" = only that it fits
}

// views are those that each page is examined in.
var views = []look{
	{browser.View{Width: 320}, browser.AllRules},
	{browser.View{Width: 320, Dark: true}, browser.Colours},
	{browser.View{Width: 390}, ""},
	{browser.View{Width: 1280}, ""},
	{browser.View{Width: 1280, Dark: true}, ""},
}

// TestEveryPageIsAccessibleAndFits loads each page once, in one of two tabs.
func TestEveryPageIsAccessibleAndFits(t *testing.T) {
	url, all := serve(t), names(t)
	for half := range 2 {
		t.Run(fmt.Sprint("tab ", half+1), func(t *testing.T) {
			t.Parallel()
			tab := browser.Open(t, chromium)
			if err := browser.Preload(tab); err != nil {
				t.Fatal(err)
			}
			for i := half; i < len(all); i += 2 {
				t.Run(all[i], func(t *testing.T) { examine(t, tab, url, all[i]) })
			}
		})
	}
}

func examine(t *testing.T, tab context.Context, url, name string) {
	for i, l := range views {
		if l.Dark && l.rules == "" && !*screenshots {
			continue
		}
		if err := browser.Look(tab, l.View); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			if err := chromedp.Do(tab, chromedp.Navigate(url+"/"+name)); err != nil {
				t.Fatal(err)
			}
		}
		fits(t, tab, l.View)
		if l.rules != "" {
			isAccessible(t, tab, l.View, l.rules)
		}
		if l.Width == 1280 && strings.HasPrefix(name, "me") && !strings.HasPrefix(name, "message") &&
			!strings.Contains(name, "hostile") {
			isShort(t, tab)
		}
		if *screenshots {
			keep(t, tab, name, l.View)
		}
	}
}

// isShort checks how high a page about an account is: me_full has every row at once.
func isShort(t *testing.T, tab context.Context) {
	t.Helper()
	const most = 1400
	got, err := chromedp.Run(tab, chromedp.Evaluate[int]("document.documentElement.scrollHeight"))
	if err != nil || got > most {
		t.Errorf("got %d pixels, %v, want at most %d", got, err, most)
	}
}

// fits checks that the tab's page is not wider than the window.
func fits(t *testing.T, tab context.Context, view browser.View) {
	t.Helper()
	if over, err := browser.Overflow(tab); err != nil || over > 0 {
		t.Errorf("%s: got a page %d pixels wider than the window, %v, want none", view, over, err)
	}
}

func isAccessible(t *testing.T, tab context.Context, view browser.View, rules browser.Rules) {
	t.Helper()
	found, err := browser.Examine(tab, rules)
	if err != nil {
		t.Fatal(err)
	}
	for _, violation := range found {
		t.Errorf("%s: got %s", view, violation)
	}
}

// keep takes a picture of the tab's page.
func keep(t *testing.T, tab context.Context, name string, view browser.View) {
	t.Helper()
	if err := browser.Keep(tab, name+"-"+view.String()); err != nil {
		t.Error(err)
	}
}

// TestOtherLanguagesFit puts each page in each language but English into a page as on the smallest
// phone, one after the other. With pictures it looks at each page alone, and examines it: its elements
// are those of the English one.
func TestOtherLanguagesFit(t *testing.T) {
	folder := t.TempDir()
	write := exec.Command("go", "test", "-vet=off", "-count=1", "-run", "^TestPagesInEveryLanguage$",
		"gatehouse/httpedge/pages", "-pages", folder)
	if out, err := write.CombinedOutput(); err != nil {
		t.Fatalf("write the pages: %v: %s", err, out)
	}
	files, err := filepath.Glob(filepath.Join(folder, "*.html"))
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d pages, %v, want some", len(files), err)
	}
	var names []string
	for _, file := range files {
		if name := strings.TrimSuffix(filepath.Base(file), ".html"); !strings.Contains(name, "hostile") {
			names = append(names, name)
		}
	}
	address, tab := serveFrom(t, folder), browser.Open(t, chromium)
	if err := browser.Look(tab, browser.View{Width: 320}); err != nil {
		t.Fatal(err)
	}
	list, err := json.Marshal(names)
	if err != nil {
		t.Fatal(err)
	}
	const overflow = `(async names => {
	const over = {};
	for (const name of names) {
		const text = await (await fetch(name)).text();
		document.documentElement.replaceWith(new DOMParser().parseFromString(text, "text/html").documentElement);
		for (const script of document.scripts) {
			const again = document.createElement("script"); // one that is parsed so does not run
			Object.assign(again.dataset, script.dataset);
			again.text = "{" + script.text + "}";
			script.replaceWith(again);
		}
		const page = document.documentElement;
		over[name] = page.lang ? page.scrollWidth - page.clientWidth : NaN;
	}
	return over;
})(%s)`
	err = chromedp.Do(tab, chromedp.Navigate(address))
	over, failed := chromedp.Run(tab, chromedp.Evaluate[map[string]*int](fmt.Sprintf(overflow, list),
		chromedp.EvalAwaitPromise))
	if err = errors.Join(err, failed); err != nil || len(over) != len(names) {
		t.Fatalf("got %v of %d pages, %v", over, len(names), err)
	}
	for name, pixels := range over {
		if pixels == nil {
			t.Errorf("%s: got no page", name)
		} else if *pixels > 0 {
			t.Errorf("%s: got a page %d pixels wider than the phone, want none", name, *pixels)
		}
	}
	for _, name := range names {
		if *screenshots {
			t.Run(name, func(t *testing.T) { examineTranslation(t, tab, address, name) })
		}
	}
}

func examineTranslation(t *testing.T, tab context.Context, url, name string) {
	view := browser.View{Width: 390}
	if err := browser.Look(tab, view); err != nil {
		t.Fatal(err)
	}
	if err := chromedp.Do(tab, chromedp.Navigate(url+"/"+name)); err != nil {
		t.Fatal(err)
	}
	fits(t, tab, view)
	isAccessible(t, tab, view, browser.NotColours)
	keep(t, tab, name, view)
}

// TestAxeFindsWhatIsWrong makes sure that the examination can fail.
func TestAxeFindsWhatIsWrong(t *testing.T) {
	tab := browser.Open(t, chromium)
	const bad = `document.querySelectorAll("label").forEach(l => l.remove()); document.body.style.width = "5000px"; true`
	if err := chromedp.Do(tab, chromedp.Navigate(serve(t)+"/phone")); err != nil {
		t.Fatal(err)
	}
	if _, err := chromedp.Run(tab, chromedp.Evaluate[bool](bad)); err != nil {
		t.Fatal(err)
	}
	found, err := browser.Examine(tab, browser.AllRules)
	if err != nil || !strings.Contains(strings.Join(found, "\n"), "label: ") {
		t.Errorf("got %q, %v, want an input without a label", found, err)
	}
	if over, err := browser.Overflow(tab); err != nil || over <= 0 {
		t.Errorf("got a page %d pixels wider than the window, %v, want some", over, err)
	}
}

// TestAddressesAreNotBroken shows the chooser on phones of all widths: the addresses of its
// accounts fit in one line.
func TestAddressesAreNotBroken(t *testing.T) {
	tab, url := browser.Open(t, chromium), serve(t)
	const lines = `Math.max(...[...document.querySelectorAll(".who bdi")].map(address => {
	const range = document.createRange();
	range.selectNodeContents(address);
	return new Set([...range.getClientRects()].map(line => Math.round(line.top))).size;
}))`
	for _, name := range []string{"accounts", "accounts_shown"} {
		for width := int64(320); width <= 480; width += 2 {
			if err := browser.Look(tab, browser.View{Width: width}); err != nil {
				t.Fatal(err)
			}
			if width == 320 {
				if err := chromedp.Do(tab, chromedp.Navigate(url+"/"+name)); err != nil {
					t.Fatal(err)
				}
			}
			if got, err := chromedp.Run(tab, chromedp.Evaluate[int](lines)); err != nil || got != 1 {
				t.Errorf("%s: got an address in %d lines at %d pixels, %v, want one line", name, got,
					width, err)
			}
		}
	}
}
