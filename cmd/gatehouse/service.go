package main

import (
	"errors"
	"fmt"
	"strings"

	"gatehouse/actors/geo"
	"gatehouse/cmd/stack"
	"gatehouse/providers/ipapi"
	"gatehouse/providers/messenger"
	"gatehouse/providers/mmdb"
	"gatehouse/providers/ptr"
	"gatehouse/providers/sqlstore"
)

// stack returns what a process with these settings consists of.
func (c config) stack() stack.Config {
	s := stack.Config{
		Listen: c.Listen, AdminListen: c.AdminListen, Issuer: c.BaseURL,
		TrustedProxies: c.TrustedProxies, ForwardedHeader: c.ForwardedHeader,
		ReadTimeout: c.ReadTimeout, WriteTimeout: c.WriteTimeout, IdleTimeout: c.IdleTimeout,
		MaxConnections: c.MaxConnections, CertFile: c.TLSCert, KeyFile: c.TLSKey,
		DrainDelay: c.DrainDelay, DrainTimeout: c.DrainTimeout,
		LogLevel: c.LogLevel, LogText: c.LogFormat == "text",
	}
	if c.Geo {
		s.Lookups = &stack.Lookups{
			Files:        mmdb.Config{Files: c.MMDB},
			CacheEntries: c.CacheEntries, Timeout: c.LookupTimeout, Concurrency: c.UpstreamConcurrency,
			UpstreamShare: c.UpstreamShare, CallerLimit: c.GeoLimit,
			Breaker: geo.BreakerConfig{Failures: c.BreakerFailures, Cooldown: c.BreakerCooldown, Hold: c.ForbiddenHold},
		}
		if c.Provider != "mmdb" {
			s.Lookups.Upstream = ipapi.Config{Base: c.Base, Tier: ipapi.Tier(c.Provider), Key: c.Key}
		}
		if c.PTR != "off" {
			s.Lookups.Reverse = ptr.Config{Server: c.PTR}
		}
	}
	if c.Identity {
		s.Identity = &stack.Identity{
			Database:  sqlstore.Config{URL: c.DatabaseURL, Migrate: c.Migrate, Exclusive: true},
			Messenger: messenger.Config{Targets: c.Messengers, Secret: c.MessengerSecret, From: c.MessengerFrom},
			Lifetimes: c.Lifetimes, SessionTTL: c.SessionTTL,
			DefaultScopes: c.DefaultScopes, SkipChooserParameter: c.SkipChooser,
		}
	}
	return s
}

// serve starts a service, calls started, and serves until the program is asked to stop.
func (p *program) serve(c stack.Config, started func(*stack.Stack) error) (err error) {
	c.Log = p.stderr
	s, err := stack.Start(p.ctx, c)
	if err != nil {
		return startError(err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := started(s); err != nil {
		return err
	}
	for _, name := range p.environment.unknown() {
		s.Logger.Warn("unknown variable in the environment", "name", name)
	}
	if c.Lookups != nil {
		upstream := c.Lookups.Upstream
		if upstream.Tier == ipapi.Free {
			s.Logger.Warn("the free tier of ip-api is rate-limited, speaks plain HTTP and is for non-commercial use only")
			if upstream.Key != "" {
				s.Logger.Warn("IP_API_KEY is set, but only the provider ip-api-pro sends a key")
			}
		}
	}
	if s.Simulator != nil {
		s.Logger.Info("simulating the upstream", "address", s.UpstreamURL)
	}
	s.Logger.Info("serving", "listen", s.Listen, "admin_listen", s.AdminListen, "version", buildVersion())
	return s.Serve(p.ctx)
}

// startError names the flag that is to blame where a service could not be started.
func startError(err error) error {
	var wrong *stack.Error
	if !errors.As(err, &wrong) {
		return err
	}
	switch wrong.Field {
	case "Listen":
		return fmt.Errorf("--listen: %w", wrong.Err)
	case "AdminListen":
		return fmt.Errorf("--admin-listen: %w", wrong.Err)
	case "Lookups.Simulator":
		return fmt.Errorf("--sim-listen: %w", wrong.Err)
	case "Identity.Database":
		return fmt.Errorf("--database-url: %w", wrong.Err)
	case "Identity.Messenger":
		return fmt.Errorf("--messenger: %w", wrong.Err)
	case "Lookups.Upstream":
		return usagef("--ip-api-base (IP_API_BASE): %v", wrong.Err)
	case "Lookups.Files":
		return usagef("--ip-mmdb (IP_MMDB): %v", wrong.Err)
	case "Lookups.Reverse":
		return usagef("--ptr (GATEHOUSE_PTR): %v", wrong.Err)
	}
	return err
}

// curl returns the command line that requests path at base, which is a URL or the address of a Unix socket.
func curl(base, path string) string {
	if socket, ok := strings.CutPrefix(base, "unix:"); ok {
		return "curl --unix-socket '" + socket + "' 'http://localhost" + path + "'"
	}
	return "curl '" + base + path + "'"
}
