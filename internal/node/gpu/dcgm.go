package gpu

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"slices"
	"sort"
	"strconv"
	"time"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/exposition"
)

// DCGM reads the load of a node's GPUs from a dcgm-exporter that already watches them. Another source lists the devices and their health;
// without one, the exporter does. While the exporter doesn't answer, the other source's values count.
type DCGM struct {
	Source
	url  string
	log  *slog.Logger
	down bool              // the exporter didn't answer the last time
	xids map[string]uint64 // the last of each device
}

// The bounds of a scrape.
const (
	scrapeTime = 2 * time.Second
	maxScrape  = 8 << 20
)

// NewDCGM scrapes the exporter for the first time. devices may be nil.
func NewDCGM(ctx context.Context, url string, devices Source, log *slog.Logger) (*DCGM, error) {
	d := &DCGM{Source: devices, url: url, log: log, xids: map[string]uint64{}}
	first, err := d.scrape(ctx)
	if err != nil {
		return nil, err
	}
	if devices == nil {
		if d.Source, err = newExported(first); err != nil {
			return nil, fmt.Errorf("%s: %w", url, err)
		}
	}
	for id, m := range first { // an error from before the agent started counts only if the driver itself still reports a fault
		d.xids[id] = uint64(m.values[loadXID])
	}
	return d, nil
}

// metrics is what the exporter reports about one device.
type metrics struct {
	first  exposition.Sample // all have the same labels
	values map[string]float64
}

// scrape reads the exporter's metrics by device id. It skips slices of devices, which have no ids there, and values that aren't finite
// numbers.
func (d *DCGM) scrape(ctx context.Context) (map[string]*metrics, error) {
	ctx, cancel := context.WithTimeout(ctx, scrapeTime)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, d.url, nil)
	if err != nil {
		return nil, err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", d.url, resp.Status)
	}
	samples, err := exposition.Parse(io.LimitReader(resp.Body, maxScrape))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.url, err)
	}
	out := map[string]*metrics{}
	for _, s := range samples {
		id := s.Label("UUID")
		if id == "" || s.Label("GPU_I_ID") != "" {
			continue
		}
		if out[id] == nil {
			out[id] = &metrics{s, map[string]float64{}}
		}
		if !math.IsNaN(s.Value) && !math.IsInf(s.Value, 0) {
			out[id].values[s.Metric] = s.Value
		}
	}
	return out, nil
}

// Load implements Source.
func (d *DCGM) Load(ctx context.Context, busy func(id string) float64) []Sample {
	out := d.Source.Load(ctx, busy)
	all, err := d.scrape(ctx)
	if err != nil && !d.down {
		d.log.Warn("the exporter of the GPUs' metrics does not answer", "error", err)
	}
	d.down = err != nil
	for i := range out {
		if m := all[out[i].ID]; m != nil {
			d.overlay(&out[i], m)
		}
	}
	return out
}

// overlay replaces a sample's values with the exporter's. The exporter reports only the last error, and keeps reporting it, so only a
// change is news.
func (d *DCGM) overlay(s *Sample, m *metrics) {
	if v, ok := m.values[loadUtil]; ok {
		s.UtilizationPct = new(v)
	}
	for name, into := range map[string]*float64{loadTemp: &s.TemperatureC, loadPower: &s.PowerW} {
		if v, ok := m.values[name]; ok {
			*into = v
		}
	}
	if used, ok := m.values[loadMemoryUsed]; ok {
		s.MemoryUsedMiB = int64(used)
	}
	if s.Figures == nil {
		s.Figures = map[string]float64{}
	}
	for _, f := range Figures {
		if v, ok := m.values[f.Name]; ok {
			s.Figures[f.Name] = v
		}
	}
	signs := Signs{UncorrectedECC: uint64(m.values[uncorrected]), RemapFailed: m.values[remapFailure] > 0}
	if x := uint64(m.values[loadXID]); x != d.xids[s.ID] {
		d.xids[s.ID] = x
		if x != 0 && !slices.Contains(s.XIDErrors, x) {
			s.XIDErrors = append(s.XIDErrors, x)
			signs.XIDs = []uint64{x}
		}
	}
	s.Fault = cmp.Or(s.Fault, Fault(signs))
}

// exported is the source that takes the devices themselves from an exporter's metrics.
type exported struct {
	devices []acs.GPUDevice
	driver  string
}

func newExported(all map[string]*metrics) (*exported, error) {
	if len(all) == 0 {
		return nil, fmt.Errorf("it reports no GPUs")
	}
	e := &exported{}
	for id, m := range all {
		bus := m.first.Label("pci_bus_id")
		index, _ := strconv.Atoi(m.first.Label("gpu"))
		e.devices = append(e.devices, acs.GPUDevice{
			ID:        id,
			Model:     m.first.Label("modelName"),
			MemoryMiB: int64(m.values[loadMemoryUsed] + m.values[loadMemoryFree]),
			Index:     index,
			Bus:       bus,
			NUMA:      numaNode(pciDevices, busID(bus)),
		})
		e.driver = m.first.Label("DCGM_FI_DRIVER_VERSION")
	}
	sort.Slice(e.devices, func(i, j int) bool {
		a, b := &e.devices[i], &e.devices[j]
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.ID, b.ID)) < 0
	})
	return e, nil
}

// Devices implements Source.
func (e *exported) Devices() []acs.GPUDevice { return e.devices }

// Driver implements Source.
func (e *exported) Driver() string { return e.driver }

// Load implements Source.
func (e *exported) Load(context.Context, func(string) float64) []Sample {
	var out []Sample
	for _, d := range e.devices {
		out = append(out, Sample{GPULoad: acs.GPULoad{ID: d.ID, MemoryMiB: d.MemoryMiB}})
	}
	return out
}

// Recovered implements Source.
func (e *exported) Recovered(string) bool { return false }
