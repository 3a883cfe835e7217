package pagestest_test

import (
	"bytes"
	"flag"
	"image"
	"image/draw"
	"image/png"
	"os"
	"testing"

	"github.com/chromedp/chromedp"

	"gatehouse/loadtest/lab/browser"
)

var (
	update      = flag.Bool("update", false, "make the pictures of the documents anew")
	screenshots = flag.Bool("screenshots", false, "keep a picture of each page in screenshots/")
)

const (
	pictureWidth  = 560 // of each half
	pictureHeight = 764
)

// TestPictures makes the pictures that the documents show, when asked to: a page by day and by
// night. Fonts differ between machines, so that they are not compared.
func TestPictures(t *testing.T) {
	for page, picture := range map[string]string{
		"login": "../signin.png", "brand": "../../../docs/branding.png",
	} {
		if *update {
			take(t, page, picture)
		}
		data, err := os.ReadFile(picture)
		if err != nil {
			t.Fatal(err)
		}
		config, err := png.DecodeConfig(bytes.NewReader(data))
		if err != nil || config.Width != 2*pictureWidth || config.Height != pictureHeight ||
			len(data) >= 64<<10 {
			t.Errorf("%s: got a picture of %d by %d in %d bytes, %v, want %d by %d in less than 64 KiB",
				picture, config.Width, config.Height, len(data), err, 2*pictureWidth, pictureHeight)
		}
	}
}

// take makes the picture of a page.
func take(t *testing.T, page, picture string) {
	t.Helper()
	tab := browser.Open(t, chromium)
	page = serve(t) + "/" + page
	both := image.NewRGBA(image.Rect(0, 0, 2*pictureWidth, pictureHeight))
	for i, dark := range []bool{false, true} {
		if err := browser.Look(tab, browser.View{Width: pictureWidth, Dark: dark}); err != nil {
			t.Fatal(err)
		}
		if err := chromedp.Do(tab, chromedp.Navigate(page)); err != nil {
			t.Fatal(err)
		}
		data, err := chromedp.Run(tab, chromedp.CaptureScreenshot())
		if err != nil {
			t.Fatal(err)
		}
		half, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		draw.Draw(both, image.Rect(i*pictureWidth, 0, (i+1)*pictureWidth, pictureHeight), half,
			image.Point{}, draw.Src)
	}
	var out bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&out, both); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(picture, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
