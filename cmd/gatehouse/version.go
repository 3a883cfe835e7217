package main

import (
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"
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
	return json.NewEncoder(p.stdout).Encode(map[string]string{
		"version": buildVersion(), "go": runtime.Version(), "os": runtime.GOOS,
		"arch": runtime.GOARCH,
	})
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
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return "unknown"
}
