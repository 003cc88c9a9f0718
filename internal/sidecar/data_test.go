package sidecar

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

const exporter = `# HELP DCGM_FI_DEV_GPU_UTIL GPU utilization (in %).
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a",device="nvidia0",modelName="Tesla T4",Hostname="h"} 80
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-b",device="nvidia1",modelName="Tesla T4",Hostname="h"} 40
DCGM_FI_DEV_GPU_UTIL{gpu="2",UUID="GPU-c",device="nvidia2",modelName="Tesla T4",Hostname="h"} NaN
# TYPE DCGM_FI_DEV_FB_USED gauge
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a"} 1024
# TYPE DCGM_FI_DEV_XID_ERRORS counter
DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-a"} 79
DCGM_EXP_UNTYPED{UUID="GPU-a"} 1
# TYPE go_goroutines gauge
go_goroutines 12
`

func TestParse(t *testing.T) {
	got, err := Parse(strings.NewReader(exporter))
	want := []Sample{
		{"DCGM_FI_DEV_GPU_UTIL", "GPU-a", 80},
		{"DCGM_FI_DEV_GPU_UTIL", "GPU-b", 40},
		{"DCGM_FI_DEV_FB_USED", "GPU-a", 1024},
		{"DCGM_FI_DEV_XID_ERRORS", "GPU-a", 79},
		{"DCGM_EXP_UNTYPED", "GPU-a", 1},
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"{", "DCGM_FI_DEV_GPU_UTIL{UUID=\"GPU-a\"} much\n", "<html>"} {
		if got, err := Parse(strings.NewReader(bad)); err == nil {
			t.Errorf("%q is %v", bad, got)
		}
	}
}

func TestData(t *testing.T) {
	samples, err := Parse(strings.NewReader(exporter))
	if err != nil {
		t.Fatal(err)
	}
	task := Task{Cluster: "c", Service: "s", ID: "t"}
	util := []string{"DCGM_FI_DEV_GPU_UTIL"}
	for _, c := range []struct {
		name string
		of   Selection
		want []string
	}{
		{"all GPUs", Selection{Metrics: util}, []string{"DCGM_FI_DEV_GPU_UTIL ClusterName=c ServiceName=s 1×80 1×40"}},
		{
			"the task's", Selection{Metrics: util, GPUs: []string{"GPU-b"}},
			[]string{"DCGM_FI_DEV_GPU_UTIL ClusterName=c ServiceName=s 1×40"},
		},
		{"two metrics", Selection{Metrics: append(util, "DCGM_FI_DEV_FB_USED"), GPUs: []string{"GPU-a"}}, []string{
			"DCGM_FI_DEV_GPU_UTIL ClusterName=c ServiceName=s 1×80", "DCGM_FI_DEV_FB_USED ClusterName=c ServiceName=s 1×1024",
		}},
		{"by task", Selection{Metrics: util, ByTask: true}, []string{
			"DCGM_FI_DEV_GPU_UTIL ClusterName=c ServiceName=s 1×80 1×40", "DCGM_FI_DEV_GPU_UTIL ClusterName=c TaskId=t 1×80 1×40",
		}},
		{"by GPU", Selection{Metrics: util, ByGPU: true}, []string{
			"DCGM_FI_DEV_GPU_UTIL ClusterName=c ServiceName=s 1×80 1×40", "DCGM_FI_DEV_GPU_UTIL ClusterName=c UUID=GPU-a 1×80",
			"DCGM_FI_DEV_GPU_UTIL ClusterName=c UUID=GPU-b 1×40",
		}},
		{"others' GPUs", Selection{Metrics: util, GPUs: []string{"GPU-z"}}, nil},
	} {
		c.of.Task = task
		var got []string
		for _, m := range Data(samples, c.of, time.Unix(0, 0), true) {
			got = append(got, String(m))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q", c.name, got)
		}
	}
	selection := Selection{Task: task, Metrics: util}
	fine := Data(samples, selection, time.Unix(0, 0), true)[0]
	coarse := Data(samples, selection, time.Unix(0, 0), false)[0]
	if *fine.StorageResolution != 1 || *coarse.StorageResolution != 60 || fine.Unit != "Percent" || !fine.Timestamp.Equal(time.Unix(0, 0)) {
		t.Errorf("got %+v and %+v", fine, coarse)
	}
}

// TestDataKeepsTheAverage checks that no GPU's value is lost or counted twice, and that no datum has more values than CloudWatch accepts.
func TestDataKeepsTheAverage(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		values := rapid.SliceOfN(rapid.IntRange(0, 400), 0, 500).Draw(r, "values")
		var samples []Sample
		var want, got, n float64
		for i, v := range values {
			samples = append(samples, Sample{"m", fmt.Sprint(i), float64(v)})
			want += float64(v)
		}
		for _, m := range Data(samples, Selection{Metrics: []string{"m"}}, time.Now(), false) {
			if len(m.Values) > maxValues || len(m.Values) != len(m.Counts) {
				r.Fatalf("%d values, %d counts", len(m.Values), len(m.Counts))
			}
			for i := range m.Values {
				got += m.Values[i] * m.Counts[i]
				n += m.Counts[i]
			}
		}
		if got != want || n != float64(len(values)) {
			r.Fatalf("%g of %g, want %g of %d", got, n, want, len(values))
		}
	})
}
