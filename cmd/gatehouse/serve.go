package main

import (
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"

	"gatehouse/cmd/stack"
	"gatehouse/providers/ipapi"
	"gatehouse/providers/messenger"
)

type serveCommand struct {
	serviceSettings
}

// Help is shown by gatehouse serve --help.
func (*serveCommand) Help() string {
	return "Runs until SIGTERM or SIGINT. Then requests under way may end. A second signal ends " +
		"the process at once. After SIGHUP, changed certificates, the log level of the settings " +
		"file and the files of --declare are in force.\n\n" +
		"Example:\n\n    gatehouse serve --listen :8080 --base-url https://id.example.com --database-url sqlite:gatehouse.db"
}

// Run serves until the program is asked to stop.
func (c *serveCommand) Run(p *program) error {
	config := c.stack(p)
	return p.serve(config, c.Declare, func(s *stack.Stack) error {
		if config.Identity != nil && slices.ContainsFunc(c.Messenger.targets(),
			messenger.Target.IsLog) {
			s.Logger.Warn("codes for people are written to this log: " +
				"anybody who reads it can sign in as anybody")
		}
		return nil
	})
}

// serve starts a service, declares what the files at declare say ("" = nothing), calls started, and
// serves until the program is asked to stop.
func (p *program) serve(
	c stack.Config, declare string, started func(*stack.Stack) error,
) (err error) {
	c.Log = p.stderr
	arrived, end := hangups() // from here on: a start may take a while
	defer end()
	report := fitMemory()
	var asked int
	if c.Lookups != nil {
		asked = c.Lookups.CacheEntries
		c.Lookups.CacheEntries = fitEntries(asked, debug.SetMemoryLimit(-1))
	}
	s, err := stack.Start(p.ctx, c)
	if err != nil {
		return p.startError(err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	report(s.Logger)
	if c.Lookups != nil && c.Lookups.CacheEntries < asked {
		s.Logger.Info("the cache keeps fewer results than --cache-entries, so that they take at most a "+
			"quarter of the memory limit", "entries", c.Lookups.CacheEntries, "asked", asked)
	}
	if declare != "" {
		if err := p.declare(p.ctx, s, declare); err != nil {
			return err
		}
	}
	reload := p.reloader(s, declare)
	go func() {
		for range arrived {
			reload()
		}
	}()
	if err := started(s); err != nil {
		return err
	}
	for _, name := range p.environment.unknown() {
		s.Logger.Warn("unknown variable in the environment", "name", name)
	}
	for _, proxies := range c.TrustedProxies {
		if proxies.Bits() == 0 {
			s.Logger.Warn("every peer may say which address a request comes from, and so evade all "+
				"limits by address: name the proxies alone", "trusted_proxies", proxies)
		}
	}
	if c.Lookups != nil {
		upstream := c.Lookups.Upstream
		if upstream.Tier == ipapi.Free {
			s.Logger.Warn("the free tier of ip-api has a rate limit, uses plain HTTP " +
				"and is for non-commercial use only")
			if upstream.Key != "" {
				s.Logger.Warn("IP_API_KEY is set, but only the provider ip-api-pro sends a key")
			}
		}
	}
	if s.Simulator != nil {
		s.Logger.Info("simulating the upstream", "address", s.UpstreamURL)
	}
	where := []any{"listen", s.Listen, "admin_listen", s.AdminListen}
	if s.CompatListen != "" {
		where = append(where, "compat_listen", s.CompatListen)
	}
	s.Logger.Info("serving", append(where, "version", buildVersion())...)
	if err := s.Log.Flush(); err != nil { // programs wait for this line
		return fmt.Errorf("write log: %w", err)
	}
	return s.Serve(p.ctx)
}

// startError names the setting that is to blame where a service could not be started. A file or an
// address of no use is a wrong setting; a listener or a database may fail for other reasons.
func (p *program) startError(err error) error {
	var wrong *stack.Error
	if !errors.As(err, &wrong) {
		return err
	}
	switch wrong.Field {
	case "Identity.Database":
		return p.storeError(wrong.Err)
	case "Lookups.Upstream":
		return &settingError{setting: "ip-api-base", must: wrong.Err}
	case "Lookups.Files":
		return &settingError{setting: "ip-mmdb", must: wrong.Err}
	case "Lookups.CacheFile":
		return &settingError{setting: "cache-file", must: wrong.Err}
	case "Lookups.Reverse":
		return &settingError{setting: "ptr", must: wrong.Err}
	}
	setting, ok := map[string]string{
		"Listen": "listen", "AdminListen": "admin-listen", "CompatListen": "compat-listen",
		"Lookups.Simulator":  "sim-listen",
		"Identity.Messenger": "messenger", "Identity.AuditWebhook": "audit-webhook", "Traces": "otlp-endpoint",
		"Identity.PasskeyDomain": "passkey-domain",
	}[wrong.Field]
	if !ok {
		return err
	}
	return fmt.Errorf("%s: %w", p.resolver.given(setting), wrong.Err)
}

// curl returns the command line that requests path at base, which is a URL or the address of a Unix
// socket.
func curl(base, path string) string {
	if socket, ok := strings.CutPrefix(base, "unix:"); ok {
		return "curl --unix-socket '" + socket + "' 'http://localhost" + path + "'"
	}
	return "curl '" + base + path + "'"
}
