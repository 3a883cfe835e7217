// Package mmdb looks up queries in offline databases in MaxMind's format. It recognizes the members
// of records by their keys, in files of any maker: nested as in GeoIP2, or flat.
//
// It reads the files into memory, because rewriting a memory-mapped file in place would crash the
// process. Each file takes its size in memory (a City file 60 to 130 MB), and twice that during a
// reload.
package mmdb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"gatehouse/actors/geo"
)

const (
	batchSize    = 100
	defaultCheck = 5 * time.Second

	defaultRendered = 100_000
)

// Config configures a Provider. Fields are required unless they say otherwise.
type Config struct {
	// Files are paths of database files, at least one. If several know the location of an address,
	// the first with coordinates is used, or else the first. Data about the network is merged.
	Files []string
	Options
	// Resolver resolves a domain like net.Resolver.LookupNetIP: network is "ip4" or "ip6", and host
	// ends with a dot. It must return when ctx ends and may be called by many goroutines. Optional:
	// the system's resolver.
	Resolver func(ctx context.Context, network, host string) ([]netip.Addr, error)
	Check    time.Duration // interval of checks for changed files; optional: 5 s
	Rendered int           // answers of Find kept rendered; optional: 100,000
	TTL      time.Duration // for which callers may keep a result of Find; optional: 10 minutes
	Logger   *slog.Logger  // for reloads and their errors, never for queries or addresses
}

// Provider is a geo.Provider that uses database files. It reloads changed files until Close. Its
// methods may be called by many goroutines.
type Provider struct {
	resolver  func(ctx context.Context, network, host string) ([]netip.Addr, error)
	resolving chan struct{} // one element for each name being resolved
	callers   callers
	zones     zones
	files     atomic.Pointer[fileSet]
	options   Options
	layouts   sync.Map      // of *layout by language, as far as Names was asked for it
	rendered  int           // answers that a fileSet keeps
	ttl       time.Duration // of their results
	logger    *slog.Logger
	stop      context.CancelFunc
	stopped   chan struct{} // closed when watch has returned
}

var _ geo.Local = (*Provider)(nil)

// Open reads the files and starts to watch them. Its error names the file that cannot be used.
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
	if config.Rendered <= 0 {
		config.Rendered = defaultRendered
	}
	files, watches, err := openAll(config.Files, compile(config.Mapping, config.Language))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	p := &Provider{
		resolver:  config.Resolver,
		resolving: make(chan struct{}, maxResolving),
		options:   config.Options,
		rendered:  config.Rendered,
		ttl:       cmp.Or(config.TTL, geo.ResultTTL),
		logger:    config.Logger,
		stop:      cancel,
		stopped:   make(chan struct{}),
	}
	p.files.Store(newFileSet(files, config.Rendered))
	go p.watch(ctx, config.Check, watches)
	return p, nil
}

func openAll(paths []string, l *layout) ([]*file, []*watched, error) {
	var files []*file
	var watches []*watched
	for _, path := range paths {
		w := &watched{path: path, layout: l}
		f, err := w.open()
		if err != nil {
			return nil, nil, fmt.Errorf("database file: %w", err)
		}
		files, watches = append(files, f), append(watches, w)
	}
	return files, watches, nil
}

// Built calls yield with the path of each file in use and when that was built.
func (p *Provider) Built(yield func(path string, at time.Time)) {
	for _, f := range p.files.Load().files {
		yield(f.path, f.reader.Metadata.BuildTime())
	}
}

// Content returns the bytes of a file in use by the last element of its path, and a hash of them. They
// must not be changed.
func (p *Provider) Content(name string) (data []byte, hash string, ok bool) {
	for _, f := range p.files.Load().files {
		if filepath.Base(f.path) == name {
			return f.data, f.hash(), true
		}
	}
	return nil, "", false
}

// Close stops watching the files. Lookups still work, with the files as they were. It may be called
// again.
func (p *Provider) Close() {
	p.stop()
	<-p.stopped
}

// Terms returns terms without budgets and without reverse names to look up.
func (p *Provider) Terms() geo.Terms {
	return geo.Terms{Source: geo.SourceMMDB, BatchSize: batchSize}
}

// Place returns the city and country of an address, as far as they are known; "" = neither is.
func (p *Provider) Place(addr netip.Addr) string {
	found := p.read(addr.Unmap().WithZone(""), time.Now())
	if found.Err != nil {
		return ""
	}
	return found.Result.Location.Place()
}

// Names implements geo.Local. The layout of a language is compiled once and kept: callers must not
// choose languages freely.
func (p *Provider) Names(addr netip.Addr, language string) geo.Location {
	l, known := p.layouts.Load(language)
	if !known {
		l, _ = p.layouts.LoadOrStore(language, compile(p.options.Mapping, language))
	}
	places, _ := p.files.Load().search(addr, nil)
	for i := range places {
		places[i].layout = l.(*layout)
	}
	all, err := p.merge(places)
	if err != nil {
		return geo.Location{}
	}
	return geo.Location{Country: all.place.country, RegionName: all.place.region, City: all.place.city}
}

// Single looks up q. If a domain cannot be resolved in time, the answer's error is
// CodeProviderUnreachable. Single itself returns an error only if ctx ended before.
func (p *Provider) Single(ctx context.Context, q geo.Query) (geo.Reply, error) {
	if err := ctx.Err(); err != nil {
		return geo.Reply{}, fmt.Errorf("look up: %w", err)
	}
	return geo.Reply{Answers: []geo.Answer{p.answer(ctx, q)}}, nil
}

// Batch looks up each query as Single does.
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
	return p.read(addr, time.Now())
}

var (
	errNotFound    = &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonNotFound}
	errNoLocation  = &geo.Error{Code: geo.CodeInvalidQuery, Reason: geo.ReasonNoLocation}
	errUnreachable = &geo.Error{Code: geo.CodeProviderUnreachable}
	errDamaged     = &geo.Error{Code: geo.CodeProviderUnreachable, Damaged: true}
)
