// Package mmdb answers from offline databases in MaxMind's format: the City, Country, Enterprise, ASN, ISP,
// Connection-Type and Anonymous-IP files of MaxMind, and their like by DB-IP.
//
// The files are held in memory, so that one that is rewritten in place cannot harm the process as it would under a
// memory map: each costs its size (a City file 60 to 130 MB), and twice that while a new one is read.
package mmdb

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"gatehouse/actors/geo"
)

// The Terms of the provider and how often the files are looked at.
const (
	batchSize    = 100
	defaultCheck = 5 * time.Second
)

// Config is what a Provider is made of. Fields are required unless they say otherwise.
type Config struct {
	// Files are paths of database files, at least one. Where several know the place of an address, the first with
	// coordinates counts, else the first; what is known of the network is put together.
	Files []string
	// Resolver finds the addresses of a domain, as net.Resolver.LookupNetIP does: network is "ip4" or "ip6", host ends
	// in a dot. It returns when ctx ends and may be called by many goroutines. Optional: the system's.
	Resolver func(ctx context.Context, network, host string) ([]netip.Addr, error)
	Check    time.Duration // how often to look for changed files; optional: 5 s
	Logger   *slog.Logger  // told of files that were read again or cannot be; never of queries or addresses
}

// Provider is a geo.Provider over database files that follows their changes until Close.
type Provider struct {
	resolver  func(ctx context.Context, network, host string) ([]netip.Addr, error)
	resolving chan struct{} // a slot for each name being resolved
	zones     zones
	files     atomic.Pointer[[]*file]
	logger    *slog.Logger
	stop      context.CancelFunc
	stopped   chan struct{} // closed when watch has ended
}

var _ geo.Provider = (*Provider)(nil)

// Open reads the files and starts to watch them. The error names the file that cannot be read or is of no use.
func Open(config Config) (*Provider, error) {
	if len(config.Files) == 0 {
		return nil, errors.New("no database files given")
	}
	if config.Resolver == nil {
		config.Resolver = net.DefaultResolver.LookupNetIP
	}
	if config.Check <= 0 {
		config.Check = defaultCheck
	}
	files, watches, err := openAll(config.Files)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Provider{
		resolver:  config.Resolver,
		resolving: make(chan struct{}, maxResolving),
		logger:    config.Logger,
		stop:      cancel,
		stopped:   make(chan struct{}),
	}
	p.files.Store(&files)
	go p.watch(ctx, config.Check, watches)
	return p, nil
}

func openAll(paths []string) ([]*file, []*watched, error) {
	var files []*file
	var watches []*watched
	for _, path := range paths {
		w := &watched{path: path}
		f, err := w.open()
		if err != nil {
			return nil, nil, fmt.Errorf("database file: %w", err)
		}
		files, watches = append(files, f), append(watches, w)
	}
	return files, watches, nil
}

// Close ends the watch over the files. Look-ups still work, on the files as they were. It may be called again.
func (p *Provider) Close() {
	p.stop()
	<-p.stopped
}

// Terms says that nothing has to be saved: no budgets, and no reverse names to look up beside offline data.
func (p *Provider) Terms() geo.Terms {
	return geo.Terms{Source: geo.SourceMMDB, BatchSize: batchSize}
}

// Single answers q. A domain whose addresses cannot be found out in time has the answer CodeProviderUnreachable; an
// error is returned only when ctx had ended before.
func (p *Provider) Single(ctx context.Context, q geo.Query) (geo.Reply, error) {
	if err := ctx.Err(); err != nil {
		return geo.Reply{}, fmt.Errorf("look up: %w", err)
	}
	return geo.Reply{Answers: []geo.Answer{p.answer(ctx, q)}}, nil
}

// Batch answers addresses as Single does each of them.
func (p *Provider) Batch(ctx context.Context, qs []geo.Query) (geo.Reply, error) {
	if err := ctx.Err(); err != nil {
		return geo.Reply{}, fmt.Errorf("look up: %w", err)
	}
	answers := make([]geo.Answer, len(qs))
	for i, q := range qs {
		answers[i] = p.answer(ctx, q)
	}
	return geo.Reply{Answers: answers}, nil
}

func (p *Provider) answer(ctx context.Context, q geo.Query) geo.Answer {
	addr := q.Addr()
	if q.IsDomain() {
		var refused *geo.Error
		if addr, refused = p.resolve(ctx, q.String()); refused != nil {
			return geo.Answer{Err: refused}
		}
	}
	return p.find(addr, time.Now())
}

var (
	errNotFound    = &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonNotFound}
	errUnreachable = &geo.Error{Code: geo.CodeProviderUnreachable}
)

// find puts together what the files know of addr. A file with a damaged record says nothing; where no other knows
// the address, the answer is errUnreachable.
func (p *Provider) find(addr netip.Addr, now time.Time) geo.Answer {
	var all record
	var found, damaged bool
	for _, f := range *p.files.Load() {
		r, ok, err := f.find(addr)
		if err != nil {
			damaged = true
			f.report(p.logger)
		}
		if ok {
			found = true
			all.merge(&r)
		}
	}
	switch {
	case found:
		return geo.Answer{Result: all.result(addr, &p.zones, now)}
	case damaged:
		return geo.Answer{Err: errUnreachable}
	}
	return geo.Answer{Err: errNotFound}
}
