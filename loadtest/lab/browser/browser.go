// Package browser drives chromium in tests and examines pages with axe-core, which scripts/setup
// installs.
package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// View is a window size and colour scheme.
type View struct {
	Width int64 // of the window, in CSS pixels
	Dark  bool  // prefers-color-scheme: dark
}

// String returns the view's name, as in 320-dark.
func (v View) String() string {
	if v.Dark {
		return fmt.Sprintf("%d-dark", v.Width)
	}
	return fmt.Sprintf("%d-light", v.Width)
}

// Rules are those of axe-core that Examine checks, as its options.
type Rules string

const (
	AllRules   Rules = `{}`
	Colours    Rules = `{runOnly: ["color-contrast"]}` // takes half of the time
	NotColours Rules = `{rules: {"color-contrast": {enabled: false}}}`
)

// Start starts a headless chromium with an empty profile. The context is the parent for Open. stop
// ends the process and removes the profile.
func Start() (ctx context.Context, stop func(), err error) {
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("disable-component-update", true),
		chromedp.Flag("hide-scrollbars", true),
	)
	// The same engine without windows takes a quarter of the processor time.
	if shell, err := exec.LookPath("chromium-headless-shell"); err == nil {
		options = append(options, chromedp.ExecPath(shell))
	}
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, release := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	stop = func() { cancel(); release() }
	if err := chromedp.Do(ctx); err != nil {
		stop()
		return nil, nil, fmt.Errorf("start chromium: %w", err)
	}
	return ctx, stop, nil
}

// Run calls run with the context of Start, such as in TestMain, and returns its exit code.
func Run(run func(ctx context.Context) int) int {
	ctx, stop, err := Start()
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer stop()
	return run(ctx)
}

// Open opens a tab with its own cookies and returns its context. The tab closes at the test's end.
func Open(tb testing.TB, parent context.Context) context.Context {
	tb.Helper()
	ctx, cancel := chromedp.NewContext(parent, chromedp.WithNewBrowserContext())
	tb.Cleanup(cancel)
	if err := chromedp.Do(ctx); err != nil {
		tb.Fatalf("open a tab: %v", err)
	}
	return ctx
}

// Fill replaces the text of the field of a CSS selector.
func Fill(selector, text string) chromedp.Action[chromedp.Void] {
	return chromedp.QueryAfter(chromedp.CSS(selector),
		func(ctx context.Context, t *chromedp.Target, nodes []*chromedp.Node) (chromedp.Void, error) {
			if _, err := cdp.Call(ctx, t, dom.Focus, dom.FocusParams{NodeID: nodes[0].NodeID}); err != nil {
				return chromedp.Void{}, err
			}
			for _, command := range []string{"selectAll", "delete"} {
				key := input.DispatchKeyEventParams{Type: input.DispatchKeyEventTypeRawKeyDown,
					Commands: []string{command}}
				if _, err := cdp.Call(ctx, t, input.DispatchKeyEvent, key); err != nil {
					return chromedp.Void{}, err
				}
			}
			_, err := cdp.Call(ctx, t, input.InsertText, input.InsertTextParams{Text: text})
			return chromedp.Void{}, err
		}, chromedp.NodeVisible)
}

// IsStale reports whether an action failed because the page changed meanwhile: its elements no
// longer exist.
func IsStale(err error) bool { return strings.Contains(err.Error(), "with given id") }

// Look sets the tab's view for this and all later pages.
func Look(ctx context.Context, v View) error {
	scheme := "light"
	if v.Dark {
		scheme = "dark"
	}
	options := []chromedp.EmulateViewportOption{chromedp.EmulatePortrait}
	if v.Width < 600 {
		options = append(options, chromedp.EmulateMobile)
	}
	if err := chromedp.Do(ctx, chromedp.EmulateViewport(v.Width, 800, options...)); err != nil {
		return fmt.Errorf("set the window's size: %w", err)
	}
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{
			{Name: "prefers-color-scheme", Value: scheme},
			// no transitions, so that final colours are examined
			{Name: "prefers-reduced-motion", Value: "reduce"},
		},
	})
	if err != nil {
		return fmt.Errorf("set the colour scheme: %w", err)
	}
	return nil
}

// Examine returns axe-core's violations on the tab's page, one line for each element. It does not
// wait for files, which no page loads from elsewhere.
func Examine(ctx context.Context, rules Rules) ([]string, error) {
	run := `axe.run({resultTypes: ["violations"], preload: false, ...` + string(rules) + `}).then(
		result => JSON.stringify(result.violations.flatMap(
			v => v.nodes.map(n => v.id + ": " + n.html + ": " + n.failureSummary))))`
	loaded, err := chromedp.Run(ctx, chromedp.Evaluate[bool](`typeof axe !== "undefined"`))
	if err == nil && !loaded {
		var source string
		if source, err = axe(); err == nil {
			_, err = chromedp.Run(ctx, chromedp.Evaluate[bool]("(() => {"+source+"\n})() || true"))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("load axe-core: %w", err)
	}
	result, err := chromedp.Run(ctx, chromedp.Evaluate[string](run, chromedp.EvalAwaitPromise))
	if err != nil {
		return nil, fmt.Errorf("run axe-core: %w", err)
	}
	var found []string
	if err := json.Unmarshal([]byte(result), &found); err != nil {
		return nil, fmt.Errorf("read axe-core's result: %w", err)
	}
	return found, nil
}

// Preload keeps axe-core in each page that the tab opens from now on, so that it is sent once.
func Preload(ctx context.Context) error {
	source, err := axe()
	if err != nil {
		return err
	}
	_, err = chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument,
		page.AddScriptToEvaluateOnNewDocumentParams{Source: source})
	return err
}

// Overflow returns the number of CSS pixels by which the page is wider than the window.
func Overflow(ctx context.Context) (int, error) {
	return chromedp.Run(ctx,
		chromedp.Evaluate[int](`document.documentElement.scrollWidth - document.documentElement.clientWidth`))
}

// Keep writes a screenshot of the whole page to screenshots/name.png in the test's folder.
func Keep(ctx context.Context, name string) error {
	yes := true
	shot, err := chromedp.Call(ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{
		Format: page.CaptureScreenshotFormatPng, CaptureBeyondViewport: &yes, FromSurface: &yes,
		OptimizeForSpeed: &yes,
	})
	if err != nil {
		return fmt.Errorf("take a screenshot: %w", err)
	}
	if err := os.MkdirAll("screenshots", 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join("screenshots", name+".png"), shot.Data, 0o644)
}

// axe returns the script, from any folder of the module.
func axe() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			break
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", fmt.Errorf("find the module: no go.mod above the test")
		}
		folder = parent
	}
	script, err := os.ReadFile(filepath.Join(folder,
		"loadtest/lab/browser/node_modules/axe-core/axe.min.js"))
	if err != nil {
		return "", fmt.Errorf("read axe-core, which scripts/setup installs: %w", err)
	}
	return strings.TrimSpace(string(script)), nil
}
