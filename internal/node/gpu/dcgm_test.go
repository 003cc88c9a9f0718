package gpu

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pintle/pintle/internal/node/gpu/nvml/nvmltest"
)

// exporter serves the metrics of a dcgm-exporter, for two GPUs in no particular order and a slice of the first. xid is the second GPU's
// last error, and ecc the number of its uncorrected memory errors.
func exporter(t *testing.T, xid, ecc *atomic.Int64, down *atomic.Bool) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			http.Error(w, "no", http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, "# HELP DCGM_FI_DEV_GPU_UTIL u\n# TYPE DCGM_FI_DEV_GPU_UTIL gauge\n") //nolint:errcheck // a test
		write := func(name string, gpu int, slice string, v float64) {
			const line = `%s{gpu="%d",UUID="GPU-%c",pci_bus_id="00000000:0%d:00.0",device="nvidia%d",modelName="H200",` +
				`Hostname="h",DCGM_FI_DRIVER_VERSION="580.1"%s} %v` + "\n"
			fmt.Fprintf(w, line, name, gpu, 'a'+1-gpu, gpu+1, gpu, slice, v)
		}
		write(loadUtil, 1, "", 40)
		write(loadUtil, 0, "", 90)
		write(loadUtil, 0, `,GPU_I_PROFILE="1g.5gb",GPU_I_ID="7"`, 3)
		for name, v := range map[string]float64{
			loadTemp: 61, loadPower: 300.5, loadMemoryUsed: 1000, loadMemoryFree: 9000, tensorActive: 0.25, "DCGM_FI_DEV_OTHER": 1,
		} {
			io.WriteString(w, "# TYPE "+name+" gauge\n") //nolint:errcheck // a test
			write(name, 0, "", v)
		}
		io.WriteString(w, "# TYPE "+energy+" counter\n# TYPE "+loadXID+" gauge\n") //nolint:errcheck // a test
		write(energy, 0, "", 7)
		write(loadXID, 1, "", float64(xid.Load()))
		io.WriteString(w, "# TYPE "+uncorrected+" counter\n") //nolint:errcheck // a test
		write(uncorrected, 1, "", float64(ecc.Load()))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestLoadFromAnExporter(t *testing.T) {
	var xid, ecc atomic.Int64
	var down atomic.Bool
	xid.Store(31) // from before the agent started
	url := exporter(t, &xid, &ecc, &down)
	d, err := NewDCGM(t.Context(), url, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	devices := d.Devices()
	if len(devices) != 2 || devices[0].ID != "GPU-b" || devices[0].Model != "H200" || devices[0].MemoryMiB != 10000 ||
		devices[0].Bus != "00000000:01:00.0" || d.Driver() != "580.1" {
		t.Fatalf("devices %+v, driver %s", devices, d.Driver())
	}
	l := d.Load(t.Context(), nil)
	if g := l[0]; *g.UtilizationPct != 90 || g.TemperatureC != 61 || g.PowerW != 300.5 || g.MemoryUsedMiB != 1000 || g.MemoryMiB != 10000 ||
		g.Figures[tensorActive] != 0.25 || g.Figures[energy] != 7 || len(g.Figures) != 2 {
		t.Errorf("got %+v", g)
	}
	if g := l[1]; *g.UtilizationPct != 40 || g.XIDErrors != nil || g.Fault != "" {
		t.Errorf("got %+v", g)
	}
	xid.Store(79)
	if g := d.Load(t.Context(), nil)[1]; !slices.Equal(g.XIDErrors, []uint64{79}) || g.Fault != "Xid 79, it has fallen off the bus" {
		t.Errorf("an error: %+v", g)
	}
	if g := d.Load(t.Context(), nil)[1]; g.XIDErrors != nil || g.Fault != "" {
		t.Errorf("told again: %+v", g)
	}
	ecc.Store(2)
	if g := d.Load(t.Context(), nil)[1]; g.Fault != "memory errors that could not be corrected: 2" {
		t.Errorf("an uncorrected error: %+v", g)
	}
	down.Store(true)
	if l := d.Load(t.Context(), nil); len(l) != 2 || l[0].UtilizationPct != nil { // 0 would be an idle GPU
		t.Errorf("without the exporter: %+v", l)
	}
	if _, err := NewDCGM(t.Context(), url, nil, slog.New(slog.DiscardHandler)); err == nil {
		t.Error("an exporter that does not answer is taken")
	}
}

// TestExporterBesideNVML: NVML lists the devices, and its values count where the exporter has none.
func TestExporterBesideNVML(t *testing.T) {
	var xid, ecc atomic.Int64
	var down atomic.Bool
	n, _ := find(t, nvmltest.New(t, 8).Set("links", "12", "remote", switchBus, "2.utilization", "20", "3.utilization", "30"))
	n.gpus[3].ID = "GPU-b"
	d, err := NewDCGM(t.Context(), exporter(t, &xid, &ecc, &down), n, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	l := d.Load(t.Context(), nil)
	if len(d.Devices()) != 8 || d.Devices()[0].Links == nil || *l[3].UtilizationPct != 90 || l[3].Figures[smClock] != 1410 ||
		*l[2].UtilizationPct != 20 {
		t.Errorf("got %+v", l)
	}
	down.Store(true)
	if l := d.Load(t.Context(), nil); *l[3].UtilizationPct != 30 {
		t.Errorf("NVML's figure is %v", *l[3].UtilizationPct)
	}
}

// TestNotANumber: NaN and infinities are left out. They're no errors, and JSON can't hold them.
func TestNotANumber(t *testing.T) {
	var text strings.Builder
	for _, name := range []string{loadUtil, loadMemoryUsed, loadXID, uncorrected, tensorActive} {
		fmt.Fprintf(&text, "%s{UUID=\"GPU-a\",gpu=\"0\"} NaN\n%s{UUID=\"GPU-b\",gpu=\"1\"} +Inf\n", name, name)
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, text.String()) //nolint:errcheck // a test
	}))
	defer s.Close()
	d, err := NewDCGM(t.Context(), s.URL, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range d.Load(t.Context(), nil) {
		if _, err := json.Marshal(g.GPULoad); err != nil || g.Fault != "" || g.XIDErrors != nil || len(g.Figures) > 0 {
			t.Errorf("%+v, error %v", g, err)
		}
	}
	if n := len(d.Devices()); n != 2 {
		t.Errorf("%d devices", n)
	}
}
