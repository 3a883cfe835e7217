package main

import (
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/alecthomas/kong"
)

// first returns the first text that is not empty.
func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}

// environment holds the variables of the process by name.
type environment map[string]string

// newEnvironment reads variables in the form of os.Environ. An empty one counts as not set.
func newEnvironment(variables []string) environment {
	env := make(environment, len(variables))
	for _, v := range variables {
		if name, value, _ := strings.Cut(v, "="); value != "" {
			env[name] = value
		}
	}
	return env
}

// get returns a variable, and whether it is set.
func (env environment) get(name string) (value string, ok bool) {
	value, ok = env[name]
	return value, ok
}

// unknown returns the names of variables that look like settings but are not, sorted. Kubernetes
// sets some for a service called gatehouse.
func (env environment) unknown() []string {
	known := make(map[string]bool, len(allSettings))
	for _, s := range slices.Concat(allSettings, operatorSettings) {
		known[s.variable] = true
	}
	var names []string
	for name := range env {
		if strings.HasPrefix(name, "GATEHOUSE_") && !known[name] {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

// origin says where a setting's value was written. The zero value is the default or a flag.
type origin struct{ variable, file string }

// rank orders the sources of values: the highest wins.
func (o origin) rank() int {
	switch {
	case o.file != "":
		return 1
	case o.variable != "":
		return 2
	}
	return 3
}

// resolver gives kong the settings that the command line leaves out: from the environment, else
// from the settings file. It remembers the source of each.
type resolver struct {
	environment environment
	path        string            // of the settings file; "" = none
	file        map[string]string // its values by setting
	origins     map[string]origin
	secretFlags map[string]string // the flags of type secretFile
}

func newResolver(env environment) *resolver {
	return &resolver{environment: env, origins: map[string]origin{}, secretFlags: map[string]string{}}
}

// Validate has nothing to check: readFile checks the settings file.
func (r *resolver) Validate(*kong.Application) error { return nil }

// Resolve returns the value of flag as text, or nil when it is not set.
func (r *resolver) Resolve(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
	s, ok := settingNamed(flag.Name)
	if !ok || flag.Tag.Get("variable") != s.variable {
		return nil, nil // a flag of one command
	}
	value, from, ok := r.lookUp(s.name)
	if secret, err := r.secret(s.name, from, ok); err != nil || secret != "" {
		return secret, err
	}
	if !ok {
		return nil, nil
	}
	r.origins[s.name] = from
	return value, nil
}

// lookUp returns the value of a setting in the environment or the settings file, and where it is.
func (r *resolver) lookUp(name string) (value string, from origin, ok bool) {
	s, _ := settingNamed(name)
	if value, ok := r.environment[s.variable]; ok {
		return value, origin{variable: s.variable}, true
	}
	value, ok = r.file[name]
	return value, origin{file: r.path}, ok
}

// given returns the name of a setting as it was given: its variable, its key in the file or its
// flag.
func (r *resolver) given(name string) string {
	switch o := r.origins[name]; {
	case o.variable != "":
		return o.variable
	case o.file != "":
		return fmt.Sprintf("%s in %s", name, o.file)
	}
	return "--" + name
}

// source returns where a setting's value comes from: flag, env NAME, file PATH or default.
func (r *resolver) source(parsed *kong.Context, name string) string {
	o := r.origins[name]
	switch {
	case o.variable != "":
		return "env " + o.variable
	case o.file != "":
		return "file " + o.file
	case r.isFlag(parsed, name), r.secretFlags[name+fileSuffix] != "":
		return "flag"
	}
	return "default"
}

// isFlag reports whether the command line has a flag.
func (*resolver) isFlag(parsed *kong.Context, name string) bool {
	return slices.ContainsFunc(parsed.Path, func(p *kong.Path) bool {
		return p.Flag != nil && !p.Resolved && p.Flag.Name == name
	})
}
