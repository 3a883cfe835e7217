package loadtest

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// background is the work during a run besides its hits: it runs workload.during and reads the
// target's metrics.
type background struct {
	cancel    context.CancelFunc
	tasks     sync.WaitGroup
	err       error
	resources []Resource
	periods   []Period
}

// startBackground starts the background work of a run. It reads the metrics only if the target has
// an admin address.
func startBackground(ctx context.Context, t Target, w *workload,
	planned time.Duration) *background {
	ctx, cancel := context.WithCancel(ctx)
	b := &background{cancel: cancel}
	if w.during != nil {
		b.tasks.Go(func() {
			if err := w.during(ctx, planned, func(x Period) {
				b.periods = append(b.periods, x)
			}); ctx.Err() == nil {
				b.err = err
			}
		})
	}
	if t.Admin != "" {
		b.tasks.Go(func() { b.observe(ctx, t.Admin) })
	}
	return b
}

// stop stops the work and waits for its end.
func (b *background) stop() ([]Resource, error) {
	b.cancel()
	b.tasks.Wait()
	return b.resources, b.err
}

// observe reads the target's metrics each second, and once more at the end. It ignores errors: the
// run reports a target that does not respond.
func (b *background) observe(ctx context.Context, admin string) {
	client := &http.Client{Timeout: 5 * time.Second}
	defer client.CloseIdleConnections()
	began := time.Now()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	if r, err := readResource(ctx, client, admin); err == nil {
		b.resources = append(b.resources, r)
	}
	for more := true; more; {
		select {
		case <-tick.C:
		case <-ctx.Done():
			more = false
		}
		if r, err := readResource(context.WithoutCancel(ctx), client, admin); err == nil {
			r.At = time.Since(began)
			b.resources = append(b.resources, r)
		}
	}
}

func readResource(ctx context.Context, client *http.Client, admin string) (r Resource, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet,
		strings.TrimSuffix(admin, "/")+"/metrics", nil)
	if err != nil {
		return r, err
	}
	response, err := client.Do(request)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	values := map[string]*float64{"process_resident_memory_bytes": &r.Memory,
		"go_goroutines": &r.Goroutines, "gatehouse_http_connections_open": &r.Connections,
		"process_cpu_seconds_total": &r.CPU}
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), " ")
		if into, ok := values[name]; ok {
			if *into, err = strconv.ParseFloat(value, 64); err != nil {
				return r, err
			}
		}
	}
	return r, lines.Err()
}
