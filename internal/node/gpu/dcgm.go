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
	"strconv"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/pintle/pintle/internal/acs"
)

// DCGM reads the load of a node's GPUs from the dcgm-exporter that watches them already. Which devices there
// are, and how well, is what another source says, or the exporter itself where there is no other. While the
// exporter does not answer, the other source's figures stand.
type DCGM struct {
	Source
	url  string
	log  *slog.Logger
	away bool
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
	told, err := d.scrape(ctx)
	if err != nil {
		return nil, err
	}
	if devices == nil {
		if d.Source, err = exportedBy(told); err != nil {
			return nil, fmt.Errorf("%s: %w", url, err)
		}
	}
	for id, t := range told { // what was before the agent counts only where the driver says so itself
		d.xids[id] = uint64(t.values[loadXID])
	}
	return d, nil
}

// told is what the exporter says of a device.
type told struct {
	labels map[string]string
	values map[string]float64
}

// scrape reads the exporter's metrics, by the devices' ids. Slices of devices, which it does not give ids, are
// left out, and so is what is no number.
func (d *DCGM) scrape(ctx context.Context) (map[string]*told, error) {
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
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(io.LimitReader(resp.Body, maxScrape))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", d.url, err)
	}
	out := map[string]*told{}
	for name, f := range families {
		for _, m := range f.Metric {
			labels := map[string]string{}
			for _, l := range m.Label {
				labels[l.GetName()] = l.GetValue()
			}
			id := labels["UUID"]
			if id == "" || labels["GPU_I_ID"] != "" {
				continue
			}
			if out[id] == nil {
				out[id] = &told{labels, map[string]float64{}}
			}
			if v := value(m); !math.IsNaN(v) && !math.IsInf(v, 0) {
				out[id].values[name] = v
			}
		}
	}
	return out, nil
}

// value is that of a gauge or counter; the exporter has no others.
func value(m *dto.Metric) float64 {
	return cmp.Or(m.GetGauge().GetValue(), m.GetCounter().GetValue(), m.GetUntyped().GetValue())
}

// Load is Source's.
func (d *DCGM) Load(ctx context.Context, busy func(id string) float64) []Sample {
	out := d.Source.Load(ctx, busy)
	all, err := d.scrape(ctx)
	if err != nil && !d.away {
		d.log.Warn("the exporter of the GPUs' metrics does not answer", "error", err)
	}
	d.away = err != nil
	for i := range out {
		if t := all[out[i].ID]; t != nil {
			d.overlay(&out[i], t)
		}
	}
	return out
}

// overlay puts what the exporter says of a device over what is known of it. The exporter tells the last error
// alone, and goes on telling it.
func (d *DCGM) overlay(s *Sample, t *told) {
	for name, into := range map[string]*float64{loadUtil: &s.UtilizationPct, loadTemp: &s.TemperatureC, loadPower: &s.PowerW} {
		if v, ok := t.values[name]; ok {
			*into = v
		}
	}
	if used, ok := t.values[loadMemoryUsed]; ok {
		s.MemoryUsedMiB = int64(used)
	}
	if s.Figures == nil {
		s.Figures = map[string]float64{}
	}
	for _, f := range Figures {
		if v, ok := t.values[f.Name]; ok {
			s.Figures[f.Name] = v
		}
	}
	signs := Signs{UncorrectedECC: uint64(t.values[uncorrected]), RemapFailed: t.values[remapFailure] > 0}
	if x := uint64(t.values[loadXID]); x != d.xids[s.ID] {
		d.xids[s.ID] = x
		if x != 0 && !slices.Contains(s.XIDErrors, x) {
			s.XIDErrors = append(s.XIDErrors, x)
			signs.XIDs = []uint64{x}
		}
	}
	s.Fault = cmp.Or(s.Fault, Fault(signs))
}

// exported are the devices that an exporter tells of.
type exported struct {
	devices []acs.GPUDevice
	driver  string
}

func exportedBy(all map[string]*told) (*exported, error) {
	if len(all) == 0 {
		return nil, fmt.Errorf("it tells of no GPUs")
	}
	e := &exported{}
	for id, t := range all {
		bus := t.labels["pci_bus_id"]
		index, _ := strconv.Atoi(t.labels["gpu"])
		e.devices = append(e.devices, acs.GPUDevice{
			ID: id, Model: t.labels["modelName"], MemoryMiB: int64(t.values[loadMemoryUsed] + t.values[loadMemoryFree]),
			Index: index, Bus: bus, NUMA: numaNode(pciDevices, busID(bus)),
		})
		e.driver = t.labels["DCGM_FI_DRIVER_VERSION"]
	}
	slices.SortFunc(e.devices, func(a, b acs.GPUDevice) int { return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.ID, b.ID)) })
	return e, nil
}

// Devices is Source's.
func (e *exported) Devices() []acs.GPUDevice { return e.devices }

// Driver is Source's.
func (e *exported) Driver() string { return e.driver }

// Load is Source's.
func (e *exported) Load(context.Context, func(string) float64) []Sample {
	var out []Sample
	for _, d := range e.devices {
		out = append(out, Sample{GPULoad: acs.GPULoad{ID: d.ID, MemoryMiB: d.MemoryMiB}})
	}
	return out
}

// Recovered is Source's.
func (e *exported) Recovered(string) bool { return false }
