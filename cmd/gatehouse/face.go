package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/alecthomas/kong"
	"golang.org/x/text/language"

	"gatehouse/actors/brand"
	"gatehouse/actors/texts"
)

// faceSettings say what people see on pages and in messages.
type faceSettings struct {
	ServiceName     serviceName  `name:"service-name" variable:"GATEHOUSE_SERVICE_NAME" group:"face" placeholder:"NAME" help:"Name of the service on pages and in messages (default: the host of the issuer)."`
	ServiceLogo     logoFile     `name:"service-logo" variable:"GATEHOUSE_SERVICE_LOGO" group:"face" placeholder:"FILE" help:"Logo of pages: an SVG or PNG of at most 64 KB (default: none)."`
	ServiceLogoMail mailLogoFile `name:"service-logo-mail" variable:"GATEHOUSE_SERVICE_LOGO_MAIL" group:"face" placeholder:"FILE" help:"Logo of e-mails: a PNG of at most 64 KB (default: none)."`
	ServiceColor    accentColor  `name:"service-color" variable:"GATEHOUSE_SERVICE_COLOR" default:"#1f4fc4" group:"face" placeholder:"COLOR" help:"Colour of buttons and links (${default})."`
	SupportURL      supportLink  `name:"support-url" variable:"GATEHOUSE_SUPPORT_URL" group:"face" placeholder:"URL" help:"Where people get help: https or mailto (default: nowhere)."`
	TermsURL        pageLink     `name:"terms-url" variable:"GATEHOUSE_TERMS_URL" group:"face" placeholder:"URL" help:"Page with the terms of service, https (default: none)."`
	PrivacyURL      pageLink     `name:"privacy-url" variable:"GATEHOUSE_PRIVACY_URL" group:"face" placeholder:"URL" help:"Page about privacy, https (default: none)."`
	Home            homePage     `name:"home" variable:"GATEHOUSE_HOME" group:"face" placeholder:"identity|geo|both|off" help:"What / shows to browsers: the way to sign in, a form for lookups, both, or nothing (default: the roles)."`
	Language        languageTag  `name:"language" variable:"GATEHOUSE_LANGUAGE" default:"en" group:"face" placeholder:"TAG" help:"Language of pages and messages for people whose own is not known (${default})."`
	Languages       languageDir  `name:"languages" variable:"GATEHOUSE_LANGUAGES" group:"face" placeholder:"DIR" help:"Folder of files such as de.toml that add or replace texts (default: none)."`
	LanguagesDraft  toggle       `name:"languages-draft" variable:"GATEHOUSE_LANGUAGES_DRAFT" default:"false" group:"face" help:"Whether to offer languages that are drafts too: Arabic and Japanese (${default})."`
}

// homePage is what the page at / shows; "" = what the roles offer.
type homePage string

func parseHomePage(text string, _ *kong.Tag) (homePage, error) {
	switch text {
	case "", "identity", "geo", "both", "off":
		return homePage(text), nil
	}
	return "", errors.New("must be identity, geo, both or off")
}

// check returns an error if the page at / would show what the service does not offer.
func (h homePage) check(s *serviceSettings) error {
	signIn := h == "identity" || h == "both"
	form := h == "geo" || h == "both"
	switch {
	case signIn && !slices.Contains(s.Roles, "identity"):
		return refuse("home", h, "needs the identity service: add identity to roles")
	case form && !slices.Contains(s.Roles, "geo"):
		return refuse("home", h, "needs lookups: add geo to roles")
	case form && bool(s.GeoKeysRequired):
		return refuse("home", h, "offers lookups without a key, which geo-keys-required forbids")
	}
	return nil
}

// languageTag is the tag of a language.
type languageTag string

func parseLanguageTag(text string, _ *kong.Tag) (languageTag, error) {
	if tag, err := language.Parse(text); err != nil || tag.String() != text {
		return "", errors.New("must be a language such as de or pt-BR")
	}
	return languageTag(text), nil
}

// languageDir is a folder with catalogues.
type languageDir string

func parseLanguageDir(text string, _ *kong.Tag) (languageDir, error) {
	if text == "" {
		return "", nil
	}
	// Drafts may be replaced too. Whether the default language is there is for Validate.
	_, err := texts.Load(texts.Options{Drafts: true, Dir: os.DirFS(text)})
	return languageDir(text), err
}

// languages returns the languages of pages and messages. The error is about Language: Languages was
// read before.
func (s *faceSettings) languages() (*texts.Set, error) {
	o := texts.Options{Initial: string(s.Language), Drafts: bool(s.LanguagesDraft)}
	if s.Languages != "" {
		o.Dir = os.DirFS(string(s.Languages))
	}
	return texts.Load(o)
}

func (s *faceSettings) brand() brand.Brand {
	return brand.Brand{Name: string(s.ServiceName), Logo: s.ServiceLogo.image,
		MailLogo: s.ServiceLogoMail.image, Color: s.ServiceColor.Color,
		Support: string(s.SupportURL), Terms: string(s.TermsURL), Privacy: string(s.PrivacyURL)}
}

// serviceName is a name for people.
type serviceName string

func parseServiceName(text string, _ *kong.Tag) (serviceName, error) {
	if text == "" {
		return "", nil
	}
	name, err := brand.ParseName(text)
	return serviceName(name), err
}

// logoFile is a file with a picture.
type logoFile struct {
	path  string
	image *brand.Image // nil = none
}

// String returns the file's name.
func (f logoFile) String() string { return f.path }

func parseLogoFile(text string, _ *kong.Tag) (logoFile, error) {
	return readLogo(text, brand.ParseImage)
}

// mailLogoFile is a file with a picture for e-mails.
type mailLogoFile struct{ logoFile }

func parseMailLogoFile(text string, _ *kong.Tag) (mailLogoFile, error) {
	logo, err := readLogo(text, brand.ParsePNG)
	return mailLogoFile{logo}, err
}

// readLogo reads a picture; "" = none.
func readLogo(path string, parse func([]byte) (*brand.Image, error)) (logoFile, error) {
	if path == "" {
		return logoFile{}, nil
	}
	file, err := os.Open(path)
	if err != nil {
		var pathError *os.PathError
		if errors.As(err, &pathError) {
			err = pathError.Err
		}
		return logoFile{}, fmt.Errorf("must be a file that can be read: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, brand.MaxImage+1))
	if err != nil {
		return logoFile{}, errors.New("must be a file that can be read")
	}
	image, err := parse(data)
	return logoFile{path, image}, err
}

// accentColor is the colour of buttons and links.
type accentColor struct {
	brand.Color
	text string
}

// String returns the colour as it was given.
func (c accentColor) String() string { return c.text }

func parseAccentColor(text string, _ *kong.Tag) (accentColor, error) {
	c, err := brand.ParseColor(text)
	if c == brand.DefaultColor { // whose dark variant was chosen by hand
		c = brand.Color{}
	}
	return accentColor{c, text}, err
}

// supportLink is a page or an e-mail address.
type supportLink string

func parseSupportLink(text string, _ *kong.Tag) (supportLink, error) {
	if text == "" {
		return "", nil
	}
	link, err := brand.ParseLink(text, true)
	return supportLink(link), err
}

// pageLink is a page.
type pageLink string

func parsePageLink(text string, _ *kong.Tag) (pageLink, error) {
	if text == "" {
		return "", nil
	}
	link, err := brand.ParseLink(text, false)
	return pageLink(link), err
}
