package gpu

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pintle/pintle/internal/node/gpu/nvml"
	"github.com/pintle/pintle/internal/node/gpu/nvml/nvmltest"
)

// find finds a machine's GPUs. What is logged is in the buffer.
func find(t *testing.T, m *nvmltest.Machine) (*NVML, *bytes.Buffer) {
	t.Helper()
	var log bytes.Buffer
	n, err := NewNVML(m.Open(), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Close)
	return n, &log
}

const switchBus = "00000000:C1:00.0"

func TestNVMLDevices(t *testing.T) {
	n, log := find(t, nvmltest.New(t, 8))
	for i, d := range n.Devices() {
		if d.ID != nvmltest.UUID(i) || d.Bus != nvmltest.Bus(i) || d.Index != i || d.Simulated || d.MemoryMiB != 40960 ||
			d.Model != "NVIDIA A100-SXM4-40GB" {
			t.Errorf("got %+v", d)
		}
	}
	if len(n.Devices()) != 8 || n.Driver() != "580.95.05" || log.Len() > 0 {
		t.Errorf("%d GPUs, want 8; driver %q; log %s", len(n.Devices()), n.Driver(), log)
	}
}

// TestOldDriver: before R510 the library lacks nvmlDeviceGetMemoryInfo_v2, and much more.
func TestOldDriver(t *testing.T) {
	m := nvmltest.New(t, 2, "-DOLD").Set("events", "1:79", "1.utilization", "70", "1.used", fmt.Sprint(1000<<20))
	n, _ := find(t, m)
	l := n.Load(t.Context(), nil)
	if len(l) != 2 || l[1].MemoryUsedMiB != 1300 || *l[1].UtilizationPct != 70 || l[1].Fault != "Xid 79, it has fallen off the bus" {
		t.Fatalf("got %+v", l)
	}
	if _, ok := l[1].Figures[fbReserved]; ok || l[1].Figures[smClock] != 1410 {
		t.Errorf("the figures are %v", l[1].Figures)
	}
}

func TestNVLinks(t *testing.T) {
	neighbour := func(gpu int) string { return nvmltest.Bus(gpu ^ 1) }
	for _, c := range []struct {
		name   string
		links  int
		remote func(gpu int) string
		want   []int // of GPU 2
	}{
		{"none", 0, neighbour, []int{0, 0, 0, 0, 0, 0, 0, 0}},
		{"through switches", 12, func(int) string { return switchBus }, []int{12, 12, 0, 12, 12, 12, 12, 12}},
		{"in pairs", 4, neighbour, []int{0, 0, 0, 4, 0, 0, 0, 0}},
	} {
		m := nvmltest.New(t, 8).Set("links", fmt.Sprint(c.links))
		for i := range 8 {
			m.Set(fmt.Sprintf("%d.remote", i), c.remote(i))
		}
		n, _ := find(t, m)
		if got := n.Devices()[2].Links; !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

func TestNVMLLoadAndErrors(t *testing.T) {
	m := nvmltest.New(t, 8).Set("events", "2:79,2:31", "2.utilization", "20", "2.used", fmt.Sprint(1000<<20),
		"5.utilization", "50", "5.remapfailed", "1", "7.ecc", "3")
	n, _ := find(t, m)
	l := n.Load(context.Background(), nil)
	if g := l[2]; *g.UtilizationPct != 20 || g.TemperatureC != 40 || g.PowerW != 61.5 || g.MemoryMiB != 40960 ||
		g.MemoryUsedMiB != 1000 || !slices.Equal(g.XIDErrors, []uint64{79, 31}) {
		t.Errorf("got %+v", g)
	}
	if l[2].Fault != "Xid 79, it has fallen off the bus" || l[7].Fault != "memory errors that could not be corrected: 3" ||
		l[5].Fault != "a row of its memory could not be remapped" || l[0].Fault != "" {
		t.Errorf("the faults are %q, %q, %q and %q", l[2].Fault, l[7].Fault, l[5].Fault, l[0].Fault)
	}
	want := map[string]float64{
		smClock: 1410, memClock: 1215, memTemp: 44, energy: 123456, pcieReplays: 5, encoderUtil: 6, fbReserved: 300, memCopyUtil: 0,
		remappedCorr: 1, remappedUnc: 2, remapFailure: 1, engineActive: 0.5,
	}
	if !maps.Equal(l[5].Figures, want) {
		t.Errorf("figures %v, want %v", l[5].Figures, want)
	}
	if l = n.Load(context.Background(), nil); l[2].XIDErrors != nil || l[2].Fault != "" {
		t.Errorf("told again: %+v", l)
	}
}

// TestOneBrokenGPU: whatever one of eight GPUs answers, the node has the other seven, and says which is missing.
func TestOneBrokenGPU(t *testing.T) {
	for _, c := range []struct{ name, key, answer string }{
		{"lost", "3.handle", "!15"},
		{"no power cable", "3.handle", "!8"},
		{"an interrupt is lost", "3.handle", "!11"},
		{"unknown", "3.handle", "!999"},
		{"lost, and its handle is there", "3.uuid", "!15"},
		{"no id", "3.uuid", "!999"},
		{"an id and nothing else", "3.memory", "!999"},
		{"it wants a reset", "3.memory", "!16"},
	} {
		n, log := find(t, nvmltest.New(t, 8).Set(c.key, c.answer))
		var ids []string
		for _, d := range n.Devices() {
			ids = append(ids, d.ID)
		}
		if len(ids) != 7 || slices.Contains(ids, nvmltest.UUID(3)) || len(n.Load(t.Context(), nil)) != 7 {
			t.Errorf("%s: %v", c.name, ids)
		}
		if s := log.String(); strings.Count(s, "level=WARN") != 1 || !strings.Contains(s, "index=3") || !strings.Contains(s, "error "+c.answer[1:]) {
			t.Errorf("%s: the log says %s", c.name, s)
		}
	}
}

// TestMemoryOfTheMachine: a GPU that shares the machine's memory has none of its own to tell of, and is well.
func TestMemoryOfTheMachine(t *testing.T) {
	m := nvmltest.New(t, 1)
	m.Unset("memory")
	n, log := find(t, m)
	for range 2 * maxSilence {
		if l := n.Load(t.Context(), nil); len(l) != 1 || l[0].Fault != "" {
			t.Fatalf("got %+v", l)
		}
	}
	if log.Len() > 0 {
		t.Errorf("the log says %s", log)
	}
}

// TestLostGPU: a lost GPU's error is reported although the GPU itself no longer answers.
func TestLostGPU(t *testing.T) {
	m := nvmltest.New(t, 8)
	n, _ := find(t, m)
	m.Set("2.bus", "!15", "events", "2:79")
	if l := n.Load(t.Context(), nil); l[2].Fault != "Xid 79, it has fallen off the bus" || l[1].Fault != "" {
		t.Errorf("the faults are %q and %q", l[2].Fault, l[1].Fault)
	}
}

// TestSilentGPU: what the driver fails to answer once may be chance; what it fails to answer for seconds is a fault.
func TestSilentGPU(t *testing.T) {
	m := nvmltest.New(t, 2)
	n, _ := find(t, m)
	load := func(times int, want string) {
		t.Helper()
		var l []Sample
		for range times {
			l = n.Load(t.Context(), nil)
		}
		if l[1].Fault != want || l[0].Fault != "" {
			t.Errorf("the faults are %q and %q, want %q", l[1].Fault, l[0].Fault, want)
		}
	}
	m.Set("1.memory", "!999")
	load(maxSilence-1, "")
	m.Set("1.memory", "1")
	load(1, "")
	m.Set("1.memory", "!999")
	load(maxSilence-1, "")
	load(1, "the driver does not answer for it: unknown error of the driver (NVML error 999)")
}

func TestFaultsThatTheDriverReports(t *testing.T) {
	m := nvmltest.New(t, 5).Set("0.field230", "0", "1.field230", "2")
	n, _ := find(t, m)
	m.Set("2.ecc", "!15", "3.ecc", "!16", "4.ecc", "!3", "4.memory", "!15")
	l := n.Load(t.Context(), nil)
	for gpu, want := range []string{
		"", "the driver asks to reboot the machine", "the driver has lost it", "the driver wants it reset", "the driver has lost it",
	} {
		if l[gpu].Fault != want {
			t.Errorf("GPU %d: %q, want %q", gpu, l[gpu].Fault, want)
		}
	}
	for gpu, want := range []bool{true, false, false} { // the driver doesn't say for GPU 2
		if got := n.Recovered(n.Devices()[gpu].ID); got != want {
			t.Errorf("GPU %d needs no repair: %v, want %v", gpu, got, want)
		}
	}
}

// sliced is a machine with two GPUs, of which the first has two slices. NVML doesn't know how busy these are.
func sliced(t *testing.T) *nvmltest.Machine {
	m := nvmltest.New(t, 2).Set("0.mig", "1", "0.slices", "7", "0.utilization", "!3")
	for i := range 2 {
		slice := fmt.Sprintf("0/%d.", i)
		m.Set(slice+"uuid", fmt.Sprintf("MIG-%d", i), slice+"instance", fmt.Sprint(1+i), slice+"name", "A100 MIG 3g.20gb",
			slice+"memory", fmt.Sprint(20<<30), slice+"used", fmt.Sprint(5<<30))
	}
	return m
}

func TestSlices(t *testing.T) {
	n, _ := find(t, sliced(t))
	got := n.Devices()
	if len(got) != 3 || got[0].ID != "MIG-0" || got[1].ID != "MIG-1" || got[1].MemoryMiB != 20480 || got[1].Index != 0 ||
		got[1].Slice != "2" || got[1].Profile != "3g.20gb" || got[2].Index != 1 || got[2].Slice != "" {
		t.Errorf("got %+v", got)
	}
	l := n.Load(t.Context(), nil)
	if s := l[1]; s.UtilizationPct != nil || s.MemoryUsedMiB != 5120 || s.TemperatureC != 40 || s.Fault != "" {
		t.Errorf("a slice: %+v", s)
	}
	if _, ok := l[1].Figures[engineActive]; ok || l[2].UtilizationPct == nil {
		t.Errorf("a slice has %v, and a GPU %v", l[1].Figures, l[2].UtilizationPct)
	}
}

// TestGPUsComeAndGo: what the driver no longer lists is broken, and what it lists anew waits for the agent's restart.
func TestGPUsComeAndGo(t *testing.T) {
	m := sliced(t)
	n, log := find(t, m)
	later := func() []Sample {
		t.Helper()
		for range lookAgain - 1 {
			n.Load(t.Context(), nil)
		}
		return n.Load(t.Context(), nil)
	}
	if l := later(); l[0].Fault != "" || l[1].Fault != "" || l[2].Fault != "" || log.Len() > 0 {
		t.Fatalf("nothing has changed: %+v %s", l, log)
	}
	m.Unset("0/1.uuid")
	m.Set("0/2.uuid", "MIG-2", "0/2.memory", "1")
	l := later()
	if len(l) != 3 || l[0].Fault != "" || l[1].Fault != "the driver no longer lists it" || l[2].Fault != "" {
		t.Errorf("got %+v", l)
	}
	later()
	if s := log.String(); strings.Count(s, "there is a new GPU") != 1 || !strings.Contains(s, "gpu=MIG-2") {
		t.Errorf("the log says %s", s)
	}
	if len(n.Devices()) != 3 {
		t.Errorf("the node has %+v", n.Devices())
	}
}

// TestListIsNotComplete: while one GPU doesn't answer, the driver's list says nothing about the others.
func TestListIsNotComplete(t *testing.T) {
	m := nvmltest.New(t, 3)
	n, _ := find(t, m)
	m.Set("1.handle", "!999", "2.handle", "!999")
	for range lookAgain {
		for _, l := range n.Load(t.Context(), nil) {
			if l.Fault != "" {
				t.Fatalf("got %+v", l)
			}
		}
	}
}

func TestWithoutNVML(t *testing.T) {
	if _, err := nvml.Open(filepath.Join(t.TempDir(), nvml.Name)); err == nil || !strings.Contains(err.Error(), nvml.Name) {
		t.Errorf("without the library: %v", err)
	}
	for want, answers := range map[string][]string{
		"the driver is not loaded (NVML error 9)": {"init", "!9"},
		"have different versions (NVML error 18)": {"init", "!18"},
		"there is no GPU that answers":            {"count", "0"},
		"no GPU that answers":                     {"handle", "!999"},
		"count GPUs: unknown error":               {"count", "!999"},
	} {
		lib := nvmltest.New(t, 2).Set(answers...).Open()
		if _, err := NewNVML(lib, slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: error %v, want %s", answers, err, want)
		}
	}
}

func TestNUMANode(t *testing.T) {
	root := t.TempDir()
	for bus, content := range map[string]string{"0000:01:00.0": "1\n", "0000:02:00.0": "-1\n"} {
		if err := os.MkdirAll(filepath.Join(root, bus), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(root, bus, "numa_node"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for gpu, want := range []int{1, 0, 0} {
		if got := numaNode(root, busID(nvmltest.Bus(gpu))); got != want {
			t.Errorf("GPU %d: node %d, want %d", gpu, got, want)
		}
	}
}
