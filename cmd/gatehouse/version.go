package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"gatehouse/cmd/stack"
)

// version is set at link time: -X main.version=v1.2.3.
var version string

type versionCommand struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Help is shown by gatehouse version --help.
func (*versionCommand) Help() string {
	return "Example:\n\n    gatehouse version --json"
}

// Run prints the version of gatehouse, of Go and of the platform.
func (c *versionCommand) Run(p *program) error {
	if !c.JSON {
		_, err := fmt.Fprintf(p.stdout, "gatehouse %s %s %s/%s\n", buildVersion(),
			runtime.Version(), runtime.GOOS, runtime.GOARCH)
		return err
	}
	built := struct {
		Version string   `json:"version"`
		Commit  string   `json:"commit"` // "" = not known
		Go      string   `json:"go"`
		OS      string   `json:"os"`
		Arch    string   `json:"arch"`
		Modules []module `json:"modules"`
	}{Version: buildVersion(), Go: runtime.Version(), OS: runtime.GOOS, Arch: runtime.GOARCH,
		Modules: []module{}}
	if info, ok := debug.ReadBuildInfo(); ok {
		built.Commit = stack.Commit(info)
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			built.Modules = append(built.Modules, module{m.Path, m.Version, m.Sum})
		}
	}
	return json.NewEncoder(p.stdout).Encode(built)
}

// module is a module of Go that the program has linked.
type module struct {
	Path    string `json:"path"`
	Version string `json:"version"`
	Sum     string `json:"sum"` // as in go.sum
}

// buildVersion returns the stamped version, else the module's version or commit that Go recorded.
func buildVersion() string {
	if version != "" {
		return version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	if v := info.Main.Version; v != "" && v != "(devel)" {
		return v
	}
	return cmp.Or(stack.Commit(info), "unknown")
}
