package messenger

import (
	_ "embed"
	"fmt"
	"html/template"
	"strings"

	"gatehouse/actors/brand"
	"gatehouse/actors/texts"
)

// logoID is the content id of the logo in a mail.
const logoID = "logo"

//go:embed mail.html
var mailSource string

var mailTemplate = template.Must(template.New("mail.html").Parse(mailSource))

// htmlOf returns the text of a mail as HTML that loads nothing: with the brand above it and a link
// where the text has one.
func htmlOf(t text, b brand.Brand) (string, error) {
	type line struct{ Text, Link string }
	data := struct {
		Brand    brand.Brand
		Language *texts.Language
		Help     string
		Logo     template.URL // "" = none
		Lines    []line
	}{Brand: b, Language: t.language, Help: t.language.Plain(texts.Of("page.help"))}
	if b.MailLogo != nil {
		data.Logo = "cid:" + logoID
	}
	for paragraph := range strings.SplitSeq(strings.TrimSpace(t.body), "\n\n") {
		if strings.HasPrefix(paragraph, "https://") || strings.HasPrefix(paragraph, "http://") {
			data.Lines = append(data.Lines, line{Link: paragraph})
			continue
		}
		data.Lines = append(data.Lines, line{Text: paragraph})
	}
	var out strings.Builder
	if err := mailTemplate.Execute(&out, data); err != nil {
		return "", fmt.Errorf("smtp: write a mail: %w", err)
	}
	return out.String(), nil
}
