package brand

import (
	"encoding/hex"
	"errors"
	"fmt"
	"math"
)

// Color is an sRGB colour. The zero value, black, stands for the default accent.
type Color struct{ R, G, B uint8 }

// The colours of the pages that text in the accent colour stands on.
var (
	lightTint = Color{0xf4, 0xf5, 0xf9}
	darkTint  = Color{0x20, 0x24, 0x2c}
	white     = Color{0xff, 0xff, 0xff}
)

// DefaultColor is the accent without a setting.
var DefaultColor = Color{0x1f, 0x4f, 0xc4}

// MinContrast is the least contrast of text (WCAG 2.2, success criterion 1.4.3).
const MinContrast = 4.5

// ParseColor parses #RRGGBB. Its error continues a sentence that begins with the setting's name. It
// proposes the nearest darker colour when text could not be read.
func ParseColor(text string) (Color, error) {
	raw, err := hex.DecodeString(text[min(1, len(text)):])
	if err != nil || len(raw) != 3 || text[0] != '#' {
		return Color{}, errors.New("must be a colour such as #1f4fc4")
	}
	c := Color{raw[0], raw[1], raw[2]}
	if ratio := c.Contrast(lightTint); ratio < MinContrast {
		return Color{}, fmt.Errorf("has a contrast of %.1f:1 to the light background, and needs %v:1: "+
			"the nearest good colour is %v", math.Floor(ratio*10)/10, MinContrast, c.readable())
	}
	if c == (Color{}) {
		c.B = 1 // black itself stands for the default
	}
	return c, nil
}

// String returns the colour as #rrggbb.
func (c Color) String() string { return fmt.Sprintf("#%02x%02x%02x", c.R, c.G, c.B) }

// Contrast returns the contrast ratio of two colours, from 1 to 21 (WCAG 2.2).
func (c Color) Contrast(other Color) float64 {
	a, b := c.luminance(), other.luminance()
	return (max(a, b) + 0.05) / (min(a, b) + 0.05)
}

func (c Color) luminance() float64 {
	linear := func(v uint8) float64 {
		s := float64(v) / 255
		if s <= 0.04045 {
			return s / 12.92
		}
		return math.Pow((s+0.055)/1.055, 2.4)
	}
	return 0.2126*linear(c.R) + 0.7152*linear(c.G) + 0.0722*linear(c.B)
}

// mix returns c with a part of other, from 0 to 1.
func (c Color) mix(other Color, part float64) Color {
	one := func(a, b uint8) uint8 {
		return uint8(math.Round(float64(a)*(1-part) + float64(b)*part))
	}
	return Color{one(c.R, other.R), one(c.G, other.G), one(c.B, other.B)}
}

// toward returns the first mix of c with other that has the contrast on ground.
func (c Color) toward(other, ground Color, contrast float64) Color {
	for part := range 101 {
		if mixed := c.mix(other, float64(part)/100); mixed.Contrast(ground) >= contrast {
			return mixed
		}
	}
	return other
}

// readable returns the nearest darker colour that text may have.
func (c Color) readable() Color { return c.toward(Color{}, lightTint, MinContrast) }

// Palette is the accent with what derives from it.
type Palette struct {
	Strong   Color // links and buttons
	Stronger Color // the same below the pointer
	On       Color // text on both
}

// Light returns the palette of light pages.
func (c Color) Light() Palette {
	return Palette{Strong: c, Stronger: c.mix(Color{}, 0.2), On: white}
}

// Dark returns the palette of dark pages.
func (c Color) Dark() Palette {
	strong := c.toward(white, darkTint, 7)
	return Palette{Strong: strong, Stronger: strong.mix(white, 0.4), On: Color{0x0c, 0x11, 0x1c}}
}
