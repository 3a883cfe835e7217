package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// platforms are what releases are built for.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/arm64", "windows/amd64"}

// module is a module whose packages are linked, with the folders of these packages.
type module struct {
	Path, Version, Dir string
	folders            []string
}

// writeNotices writes the licenses of a program, of Go, and of each module that is linked on one of
// the platforms. Modules with the same text share it. source is the package of the program.
func writeNotices(out io.Writer, source string) error {
	modules, err := linked(source)
	if err != nil {
		return err
	}
	users := map[string][]string{}
	for _, m := range modules {
		texts, err := m.licenses()
		if err != nil {
			return err
		}
		for _, text := range texts {
			users[text] = append(users[text], strings.TrimSpace(m.Path+" "+m.Version))
		}
	}
	texts := make([]string, 0, len(users))
	for text := range users {
		texts = append(texts, text)
	}
	slices.SortFunc(texts, func(a, b string) int {
		return cmp.Or(slices.Compare(users[a], users[b]), cmp.Compare(a, b))
	})
	line := strings.Repeat("=", 80)
	for _, text := range texts {
		_, err = fmt.Fprintf(out, "%s\n%s\n%s\n\n%s\n\n", line, strings.Join(users[text], "\n"), line, text)
		if err != nil {
			return err
		}
	}
	return nil
}

// linked returns what a program consists of on all platforms: itself, Go and modules.
func linked(source string) ([]*module, error) {
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	golang := &module{Path: "Go, its standard library and runtime", Dir: strings.TrimSpace(string(goroot))}
	found := map[string]*module{"": golang}
	for _, platform := range platforms {
		system, processor, _ := strings.Cut(platform, "/")
		list := exec.Command("go", "list", "-deps", "-tags=netgo,osusergo", "-json=Dir,Standard,Module",
			source)
		list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+system, "GOARCH="+processor)
		list.Stderr = os.Stderr
		text, err := list.Output()
		if err != nil {
			return nil, err
		}
		for decoder := json.NewDecoder(bytes.NewReader(text)); ; {
			var p struct {
				Dir      string
				Standard bool
				Module   *module
			}
			if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				return nil, err
			}
			if p.Standard {
				continue
			}
			if found[p.Module.Path] == nil {
				found[p.Module.Path] = p.Module
			}
			m := found[p.Module.Path]
			m.folders = append(m.folders, p.Dir)
		}
	}
	modules := make([]*module, 0, len(found))
	for _, m := range found {
		modules = append(modules, m)
	}
	slices.SortFunc(modules, func(a, b *module) int { return cmp.Compare(a.Path, b.Path) })
	return modules, nil
}

var isLicense = regexp.MustCompile(`(?i)^(.*-)?(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// licenses returns the texts of a module: of its folder, and of folders with linked packages.
func (m *module) licenses() ([]string, error) {
	folders := []string{m.Dir}
	for _, folder := range m.folders {
		for ; len(folder) > len(m.Dir); folder = filepath.Dir(folder) {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	var texts []string
	for _, folder := range slices.Compact(folders) {
		entries, err := os.ReadDir(folder)
		if err != nil {
			return nil, err
		}
		for _, entry := range entries {
			if !isLicense.MatchString(entry.Name()) || filepath.Ext(entry.Name()) == ".go" || entry.IsDir() {
				continue
			}
			text, err := os.ReadFile(filepath.Join(folder, entry.Name()))
			if err != nil {
				return nil, err
			}
			clean := strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n"))
			if !slices.Contains(texts, clean) {
				texts = append(texts, clean)
			}
		}
	}
	if len(texts) == 0 {
		return nil, fmt.Errorf("%s %s: has no license", m.Path, m.Version)
	}
	return texts, nil
}
