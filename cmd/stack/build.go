package stack

import (
	"cmp"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/prometheus/client_golang/prometheus"
)

// registerBuild registers a metric that says what the program was built from.
func (s *Stack) registerBuild() error {
	labels := prometheus.Labels{"version": s.config.Version, "commit": "", "go": ""}
	if info, ok := debug.ReadBuildInfo(); ok {
		labels["go"] = info.GoVersion
		labels["version"] = cmp.Or(s.config.Version, info.Main.Version)
		labels["commit"] = Commit(info)
	}
	build := prometheus.NewGauge(prometheus.GaugeOpts{Name: "gatehouse_build_info",
		Help: "Always 1. The labels say what the program was built from.", ConstLabels: labels})
	build.Set(1)
	if err := s.Metrics.Register(build); err != nil &&
		!errors.As(err, new(prometheus.AlreadyRegisteredError)) {
		return fmt.Errorf("register metrics: %w", err)
	}
	return nil
}

// Commit returns the commit that a program was built from; "" = it is not known.
func Commit(info *debug.BuildInfo) string {
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" {
			return s.Value
		}
	}
	return ""
}
