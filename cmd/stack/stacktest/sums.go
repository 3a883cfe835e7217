package stacktest

import (
	"slices"
	"strings"

	dto "github.com/prometheus/client_model/go"

	"gatehouse/cmd/stack"
)

// sums gathers the metrics of nodes: each value is the sum of theirs.
type sums []*stack.Stack

// Gather implements prometheus.Gatherer.
func (s sums) Gather() ([]*dto.MetricFamily, error) {
	if len(s) == 1 {
		return s[0].Metrics.Gather()
	}
	var all []*dto.MetricFamily
	byName := map[string]*dto.MetricFamily{}
	for _, node := range s {
		families, err := node.Metrics.Gather()
		if err != nil {
			return nil, err
		}
		for _, family := range families {
			if sum := byName[family.GetName()]; sum != nil {
				addFamily(sum, family)
				continue
			}
			byName[family.GetName()] = family
			all = append(all, family)
		}
	}
	slices.SortFunc(all, func(a, b *dto.MetricFamily) int {
		return strings.Compare(a.GetName(), b.GetName())
	})
	return all, nil
}

// addFamily adds the metrics of another node.
func addFamily(sum, more *dto.MetricFamily) {
	for _, m := range more.Metric {
		i := slices.IndexFunc(sum.Metric, func(to *dto.Metric) bool {
			return slices.EqualFunc(to.Label, m.Label, func(a, b *dto.LabelPair) bool {
				return a.GetName() == b.GetName() && a.GetValue() == b.GetValue()
			})
		})
		if i < 0 {
			sum.Metric = append(sum.Metric, m)
			continue
		}
		addMetric(sum.Metric[i], m)
	}
}

func addMetric(to, m *dto.Metric) {
	switch {
	case to.Counter != nil:
		*to.Counter.Value += m.Counter.GetValue()
	case to.Gauge != nil:
		*to.Gauge.Value += m.Gauge.GetValue()
	case to.Histogram != nil:
		*to.Histogram.SampleCount += m.Histogram.GetSampleCount()
		*to.Histogram.SampleSum += m.Histogram.GetSampleSum()
		for i, bucket := range m.Histogram.Bucket {
			*to.Histogram.Bucket[i].CumulativeCount += bucket.GetCumulativeCount()
		}
	}
}
