package sidecar

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/pintle/pintle/internal/exposition"
)

// Sample is one value of one GPU.
type Sample struct {
	Metric string
	GPU    string // its UUID
	Value  float64
}

// maxText is how many bytes of an exporter's answer are read: enough for some 1,000 GPUs.
const maxText = 16 << 20

// Parse reads an exporter's text. It leaves out metrics without a UUID, which belong to no GPU, and values that CloudWatch doesn't accept:
// API_MetricDatum.
func Parse(r io.Reader) ([]Sample, error) {
	all, err := exposition.Parse(io.LimitReader(r, maxText))
	if err != nil {
		return nil, fmt.Errorf("read the exporter's metrics: %w", err)
	}
	var out []Sample
	for _, s := range all {
		if gpu := s.Label("UUID"); gpu != "" && math.Abs(s.Value) <= math.Ldexp(1, 360) {
			out = append(out, Sample{s.Metric, gpu, s.Value})
		}
	}
	return out, nil
}

// Selection says which samples to publish, and under which dimensions.
type Selection struct {
	Task    Task
	Metrics []string
	GPUs    []string // by UUID; empty for all
	ByTask  bool     // also by task
	ByGPU   bool     // also by GPU
}

// includes reports whether to publish a sample.
func (s *Selection) includes(sample Sample) bool {
	return slices.Contains(s.Metrics, sample.Metric) && (len(s.GPUs) == 0 || slices.Contains(s.GPUs, sample.GPU))
}

// units are CloudWatch's units for DCGM's metrics; others have none.
var units = map[string]types.StandardUnit{
	"DCGM_FI_DEV_GPU_UTIL":      types.StandardUnitPercent,
	"DCGM_FI_DEV_MEM_COPY_UTIL": types.StandardUnitPercent,
	"DCGM_FI_DEV_FB_USED":       types.StandardUnitMegabytes,
	"DCGM_FI_DEV_FB_FREE":       types.StandardUnitMegabytes,
}

// Data turns samples into CloudWatch's data, with a value for each GPU. So the average over what all of a service's tasks publish is the
// average over the service's GPUs.
func Data(samples []Sample, s Selection, at time.Time, fine bool) []types.MetricDatum {
	cluster := dimension("ClusterName", s.Task.Cluster)
	service := []types.Dimension{cluster, dimension("ServiceName", s.Task.Service)}
	d := data{at: at, fine: fine, index: map[string]int{}}
	for _, sample := range samples {
		if !s.includes(sample) {
			continue
		}
		d.add(sample, service...)
		if s.ByTask {
			d.add(sample, cluster, dimension("TaskId", s.Task.ID))
		}
		if s.ByGPU {
			d.add(sample, cluster, dimension("UUID", sample.GPU))
		}
	}
	return d.data
}

func dimension(name, value string) types.Dimension {
	return types.Dimension{Name: &name, Value: &value}
}

// maxValues is the most values in a datum: API_MetricDatum.
const maxValues = 150

// data collects the values of each metric and set of dimensions.
type data struct {
	at    time.Time
	fine  bool
	data  []types.MetricDatum
	index map[string]int
}

func (d *data) add(s Sample, dimensions ...types.Dimension) {
	key := s.Metric
	for _, dim := range dimensions {
		key += "\x00" + *dim.Name + "\x00" + *dim.Value
	}
	i, ok := d.index[key]
	if !ok || len(d.data[i].Values) == maxValues {
		i = len(d.data)
		d.index[key] = i
		d.data = append(d.data, d.datum(s.Metric, dimensions))
	}
	m := &d.data[i]
	at := slices.Index(m.Values, s.Value)
	if at < 0 { // equal values are sent once, with a count
		m.Values = append(m.Values, s.Value)
		m.Counts = append(m.Counts, 0)
		at = len(m.Values) - 1
	}
	m.Counts[at]++
}

func (d *data) datum(metric string, dimensions []types.Dimension) types.MetricDatum {
	m := types.MetricDatum{
		MetricName:        &metric,
		Dimensions:        dimensions,
		Timestamp:         &d.at,
		Unit:              types.StandardUnitNone,
		StorageResolution: aws.Int32(60),
	}
	if u, ok := units[metric]; ok {
		m.Unit = u
	}
	if d.fine {
		m.StorageResolution = aws.Int32(1)
	}
	return m
}

// String formats a datum for people.
func String(m types.MetricDatum) string {
	var b strings.Builder
	b.WriteString(*m.MetricName)
	for _, dim := range m.Dimensions {
		fmt.Fprintf(&b, " %s=%s", *dim.Name, *dim.Value)
	}
	for i, v := range m.Values {
		fmt.Fprintf(&b, " %g×%g", m.Counts[i], v)
	}
	return b.String()
}
