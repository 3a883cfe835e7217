package main

import (
	"cmp"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strconv"
	"strings"
	"time"
)

// The parts of a document of SPDX 2.3 that are used.
type (
	document struct {
		Version       string         `json:"spdxVersion"`
		License       string         `json:"dataLicense"`
		ID            string         `json:"SPDXID"`
		Name          string         `json:"name"`
		Namespace     string         `json:"documentNamespace"`
		Creation      creation       `json:"creationInfo"`
		Packages      []spdxPackage  `json:"packages"`
		Relationships []relationship `json:"relationships"`
	}
	creation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID            string      `json:"SPDXID"`
		Name          string      `json:"name"`
		Version       string      `json:"versionInfo"`
		Download      string      `json:"downloadLocation"`
		FilesAnalyzed bool        `json:"filesAnalyzed"`
		File          string      `json:"packageFileName,omitempty"`
		Checksums     []checksum  `json:"checksums,omitempty"`
		Concluded     string      `json:"licenseConcluded"`
		Declared      string      `json:"licenseDeclared"`
		Copyright     string      `json:"copyrightText"`
		Comment       string      `json:"comment,omitempty"`
		References    []reference `json:"externalRefs,omitempty"`
	}
	checksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	reference struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	relationship struct {
		From string `json:"spdxElementId"`
		Type string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

const unknown = "NOASSERTION"

// writeSBOM writes which modules a program has linked, as Go recorded them in it. The document's
// time is SOURCE_DATE_EPOCH, so that the same program gives the same document.
func writeSBOM(out io.Writer, program string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("%s: %w", program, err)
	}
	text, err := os.ReadFile(program)
	if err != nil {
		return err
	}
	seconds, err := strconv.ParseInt(cmp.Or(os.Getenv("SOURCE_DATE_EPOCH"), "0"), 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	sum := fmt.Sprintf("%x", sha256.Sum256(text))
	name, version := filepath.Base(program), cmp.Or(os.Getenv("VERSION"), info.Main.Version)
	root := spdxPackage{ID: "SPDXRef-gatehouse", Name: "gatehouse", Version: version, File: name,
		Checksums: []checksum{{"SHA256", sum}}, Download: unknown, Concluded: unknown,
		Declared: "Apache-2.0", Copyright: unknown}
	d := document{Version: "SPDX-2.3", License: "CC0-1.0", ID: "SPDXRef-DOCUMENT", Name: name + " " + version,
		Namespace: "urn:gatehouse:sbom:" + sum,
		Creation: creation{Created: time.Unix(seconds, 0).UTC().Format(time.RFC3339),
			Creators: []string{"Tool: gatehouse-deploy-make"}},
		Packages:      []spdxPackage{root},
		Relationships: []relationship{{"SPDXRef-DOCUMENT", "DESCRIBES", root.ID}}}
	golang := &debug.Module{Path: "stdlib", Version: strings.TrimPrefix(info.GoVersion, "go")}
	for _, m := range append([]*debug.Module{golang}, info.Deps...) {
		if m.Replace != nil {
			m = m.Replace
		}
		p := packageOf(m)
		d.Packages = append(d.Packages, p)
		d.Relationships = append(d.Relationships, relationship{root.ID, "DEPENDS_ON", p.ID})
	}
	encoder := json.NewEncoder(out)
	encoder.SetIndent("", " ")
	return encoder.Encode(d)
}

var notInID = regexp.MustCompile(`[^A-Za-z0-9.-]+`)

// packageOf describes a linked module. Its license is in the notices.
func packageOf(m *debug.Module) spdxPackage {
	p := spdxPackage{ID: "SPDXRef-" + notInID.ReplaceAllString(m.Path+"-"+m.Version, "-"), Name: m.Path,
		Version: m.Version, Download: unknown, Concluded: unknown, Declared: unknown, Copyright: unknown,
		References: []reference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + m.Path + "@" + m.Version}}}
	if m.Sum != "" {
		p.Comment = "go.sum " + m.Sum
	}
	return p
}
