package emf

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

const meta = `"_aws":{"Timestamp":1700000000123,"CloudWatchMetrics":[{"Namespace":"n",` +
	`"Dimensions":[["Service"],["Service","GPU"]],"Metrics":[{"Name":"util","Unit":"Percent","StorageResolution":1}]}]}`

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, line, want string }{
		{
			"two sets of dimensions", `{` + meta + `,"Service":"s","GPU":"0","util":75.5,"more":{"x":[]}}`,
			"n util [{Service s}] Percent 1 [75.5]; n util [{Service s} {GPU 0}] Percent 1 [75.5]",
		},
		{
			"a list of values", `{` + meta + `,"Service":"s","GPU":"0","util":[1,2]}`,
			"n util [{Service s}] Percent 1 [1 2]; n util [{Service s} {GPU 0}] Percent 1 [1 2]",
		},
		{"a dimension is missing", `{` + meta + `,"Service":"s","util":1}`, "n util [{Service s}] Percent 1 [1]"},
		{"a dimension is a number", `{` + meta + `,"Service":"s","GPU":0,"util":1}`, "n util [{Service s}] Percent 1 [1]"},
		{"the metric is missing", `{` + meta + `,"Service":"s"}`, ""},
		{"the metric is text", `{` + meta + `,"Service":"s","util":"1"}`, ""},
		{"the metric is null", `{` + meta + `,"Service":"s","util":null}`, ""},
		{"a null among values", `{` + meta + `,"Service":"s","util":[1,null]}`, ""},
		{"no values", `{` + meta + `,"Service":"s","util":[]}`, ""},
		{"too many values", `{` + meta + `,"Service":"s","util":[` + strings.Repeat("1,", 100) + `1]}`, ""},
		{
			"no dimensions",
			`{"_aws":{"Timestamp":1700000000123,"CloudWatchMetrics":[{"Namespace":"n","Metrics":[{"Name":"m"}]}]},"m":1}`,
			"n m []  0 [1]",
		},
		{
			"the older version",
			`{"CloudWatchMetrics":[{"Namespace":"ECS/ContainerInsights/Prometheus","Dimensions":[["ClusterName"]],` +
				`"Metrics":[{"Name":"DCGM_FI_DEV_GPU_UTIL"}]}],"Timestamp":"1700000000123","Version":"0","ClusterName":"c",` +
				`"DCGM_FI_DEV_GPU_UTIL":98}`,
			"ECS/ContainerInsights/Prometheus DCGM_FI_DEV_GPU_UTIL [{ClusterName c}]  0 [98]",
		},
		{"no timestamp", `{"_aws":{"CloudWatchMetrics":[{"Namespace":"n","Metrics":[{"Name":"m"}]}]},"m":1}`, ""},
		{"no namespace", `{"_aws":{"Timestamp":1,"CloudWatchMetrics":[{"Metrics":[{"Name":"m"}]}]},"m":1}`, ""},
		{"cut off", `{` + meta, ""},
		{"no object", `["CloudWatchMetrics"]`, ""},
		{"text", `what "CloudWatchMetrics" are`, ""},
		{"nothing", ``, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, m := range Parse(c.line) {
				if m.At.UnixMilli() != 1700000000123 {
					t.Errorf("at %s", m.At)
				}
				got = append(got, fmt.Sprint(m.Namespace, " ", m.Name, " ", m.Dimensions, " ", m.Unit, " ", m.Resolution, " ", m.Values))
			}
			if got := strings.Join(got, "; "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// FuzzParse: nothing makes Parse panic, and the metrics that it finds are complete.
func FuzzParse(f *testing.F) {
	f.Add(`{` + meta + `,"Service":"s","GPU":"0","util":[1,2]}`)
	f.Add(`{"CloudWatchMetrics":[{"Namespace":"n","Dimensions":[[]],"Metrics":[{"Name":"m"}]}],"Timestamp":"1","m":1e308}`)
	f.Fuzz(func(t *testing.T, line string) {
		for _, m := range Parse(line) {
			if m.Namespace == "" || len(m.Values) == 0 || len(m.Dimensions) > maxDimensions || m.At.IsZero() {
				t.Fatalf("found %+v", m)
			}
			for _, v := range m.Values {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					t.Fatalf("found %+v", m)
				}
			}
		}
	})
}
