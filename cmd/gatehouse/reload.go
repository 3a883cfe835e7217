package main

import (
	"context"
	"io"
	"log/slog"
	"reflect"
	"slices"

	"github.com/alecthomas/kong"

	"gatehouse/cmd/stack"
)

// reloader returns a function that reads the settings file, the certificates, the API keys of
// lookups and the files in the folder declare again. The log level changes at once. The function
// logs which other settings have changed, which need a restart.
func (p *program) reloader(s *stack.Stack, declare string) (reload func()) {
	before := p.given
	return func() {
		s.Server.CheckCertificate()
		if s.LookupKeys != nil {
			if err := s.LookupKeys.Reload(); err != nil {
				s.Logger.Warn("SIGHUP: the API keys stay as they were", "cause", err)
			}
		}
		if declare != "" {
			if err := p.declare(p.ctx, s, declare); err != nil {
				s.Logger.Warn("SIGHUP: what is declared stays as it was", "cause", err)
			}
		}
		after, wrong, err := p.values()
		if err != nil {
			s.Logger.Warn("SIGHUP: no setting is changed, since one is wrong", "cause", wrong)
			return
		}
		changed, later := []string{}, []string{}
		for name, value := range after {
			switch {
			case reflect.DeepEqual(value, before[name]):
			case name == "log-level":
				s.SetLogLevel(logLevels[value.(choice)])
				before[name] = value
				changed = append(changed, name)
			default:
				later = append(later, name)
			}
		}
		slices.Sort(later)
		level := slog.LevelInfo
		if len(later) > 0 {
			level = slog.LevelWarn // a server that logs warnings only must say so too
		}
		s.Logger.Log(context.Background(), level, "SIGHUP: settings and certificates are read again",
			"changed", changed, "need_restart", later)
	}
}

// values returns the value of each flag by name, as the command line, the environment and the
// settings file give it now. With an error it returns the line that says what is wrong.
func (p *program) values() (values map[string]any, wrong string, err error) {
	now := &program{ctx: p.ctx, args: p.args, stdin: p.stdin, stdout: io.Discard, stderr: io.Discard,
		environment: p.environment, resolver: newResolver(p.environment)}
	parser, err := newParser(now, p.args, io.Discard, func(int) {})
	if err != nil {
		return nil, err.Error(), err
	}
	parsed, err := parser.Parse(p.args)
	if err != nil {
		err = commandLineError(err)
		_, wrong = now.explain(err)
		return nil, wrong, err
	}
	return given(parsed), "", nil
}

// given returns the value of each flag by name.
func given(parsed *kong.Context) map[string]any {
	values := map[string]any{}
	for _, flag := range parsed.Flags() {
		values[flag.Name] = flag.Target.Interface()
	}
	return values
}
