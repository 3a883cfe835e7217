package brand

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"strings"
)

const (
	// MaxImage is the largest file of a logo, in bytes.
	MaxImage = 64 << 10
	maxSide  = 2048 // pixels of a PNG
)

// Image is a picture that was checked.
type Image struct {
	Type string // media type: image/png or image/svg+xml
	Data []byte
}

// ParseImage checks a logo: SVG or PNG. Its error continues a sentence that begins with the name of
// the file.
func ParseImage(data []byte) (*Image, error) {
	if len(data) > MaxImage {
		return nil, fmt.Errorf("has more than %d KB: make the picture smaller", MaxImage>>10)
	}
	if bytes.HasPrefix(data, []byte("\x89PNG")) {
		return parsePNG(data)
	}
	if err := checkSVG(data); err != nil {
		return nil, err
	}
	return &Image{"image/svg+xml", data}, nil
}

// ParsePNG is ParseImage for PNG alone, the only kind that mail programs show.
func ParsePNG(data []byte) (*Image, error) {
	image, err := ParseImage(data)
	if err == nil && image.Type != "image/png" {
		return nil, errors.New("must be a PNG: mail programs show no SVG")
	}
	return image, err
}

func parsePNG(data []byte) (*Image, error) {
	config, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return nil, errors.New("is not a PNG that can be read: export the picture again")
	}
	if max(config.Width, config.Height) > maxSide {
		return nil, fmt.Errorf("is %d by %d pixels: make the picture at most %d by %d", config.Width,
			config.Height, maxSide, maxSide)
	}
	return &Image{"image/png", data}, nil
}

// unsafeElements are elements of SVG that could run or load something.
var unsafeElements = map[string]bool{"script": true, "foreignobject": true, "iframe": true,
	"object": true, "embed": true, "audio": true, "video": true, "handler": true, "listener": true,
	"a": true, "set": true, "animate": true}

// checkSVG returns an error unless data is an SVG picture that neither runs nor loads anything.
func checkSVG(data []byte) error {
	decoder := xml.NewDecoder(bytes.NewReader(data))
	root := false
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) && root {
			return nil
		}
		if err != nil {
			return errors.New("is neither an SVG nor a PNG that can be read: export the picture again")
		}
		switch t := token.(type) {
		case xml.StartElement:
			if !root && t.Name.Local != "svg" {
				return errors.New("is neither an SVG nor a PNG")
			}
			root = true
			err = checkElement(t)
		case xml.CharData:
			err = checkStyle(string(t))
		case xml.ProcInst:
			if t.Target != "xml" {
				err = errors.New("loads a style sheet: put the styles into the file")
			}
		case xml.Directive:
			if bytes.ContainsAny(t, "[%") {
				err = errors.New("defines entities: export the picture again without them")
			}
		}
		if err != nil {
			return err
		}
	}
}

func checkElement(t xml.StartElement) error {
	if name := strings.ToLower(t.Name.Local); unsafeElements[name] {
		return fmt.Errorf("has the element <%s>: export the picture without scripts, links and animations",
			name)
	}
	for _, a := range t.Attr {
		name, value := strings.ToLower(a.Name.Local), strings.TrimSpace(a.Value)
		switch {
		case strings.HasPrefix(name, "on"):
			return fmt.Errorf("has a script in %s: export the picture without scripts", name)
		case (name == "href" || name == "src") && !strings.HasPrefix(value, "#") &&
			!strings.HasPrefix(value, "data:image/png") && !strings.HasPrefix(value, "data:image/jpeg"):
			return errors.New("refers to something outside the file: embed it")
		}
		if err := checkStyle(value); err != nil {
			return err
		}
	}
	return nil
}

// checkStyle returns an error when a text, which may be a style, loads something.
func checkStyle(text string) error {
	text = strings.ToLower(text)
	if strings.Contains(text, "@import") {
		return errors.New("loads a style sheet: put the styles into the file")
	}
	for {
		_, rest, found := strings.Cut(text, "url(")
		if !found {
			return nil
		}
		if !strings.HasPrefix(strings.TrimLeft(rest, ` "'`), "#") {
			return errors.New("refers to something outside the file: embed it")
		}
		text = rest
	}
}
