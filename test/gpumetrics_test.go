package test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// scrapeLoads scrapes a node as Prometheus does. It returns each GPU's load, labeled with the task and container that hold it.
func scrapeLoads(t *testing.T, address string) map[string]string {
	t.Helper()
	resp, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return nil // it isn't up yet
	}
	defer resp.Body.Close()
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, m := range families["DCGM_FI_DEV_GPU_UTIL"].GetMetric() {
		labels := map[string]string{}
		for _, l := range m.Label {
			labels[l.GetName()] = l.GetValue()
		}
		out[labels["UUID"]] = fmt.Sprintf("%v %s/%s", m.GetGauge().GetValue(), labels["task"], labels["container"])
	}
	return out
}

// TestGPUMetrics: a GPU's load is attributed to its task and container for Prometheus. In CloudWatch it's available by service,
// cluster, task and GPU.
func TestGPUMetrics(t *testing.T) {
	t.Parallel()
	metrics := freeAddress(t)
	p := Up(t, "p3.8xlarge=1", "--settle", "1s", "--metrics", metrics)
	p.AWS("ecs", "register-task-definition", "--family", "busy", "--container-definitions",
		`[{"name":"model","image":"i","memory":64,"stopTimeout":2,"command":["/bin/sh","-c","exec sleep 600"],"environment":[{`+
			`"name":"PINTLE_SIMULATED_GPU_LOAD","value":"0.75"}],"resourceRequirements":[{"type":"GPU","value":"1"}]}]`)
	p.AWS("ecs", "create-service", "--service-name", "web", "--task-definition", "busy", "--desired-count", "2")
	p.awaitService("two tasks", "web", described.isCompleted)
	task := p.task(p.tasksOf("web")[0])
	gpu, id := task.Containers[0].GpuIds[0], task.TaskArn[strings.LastIndex(task.TaskArn, "/")+1:]
	Eventually(t, "the load of the GPU's task, and two of four GPUs that nobody has", func() bool {
		all, free := scrapeLoads(t, metrics), 0
		for _, l := range all {
			if l == "0 /" {
				free++
			}
		}
		return all[gpu] == "75 "+id+"/model" && free == 2
	})
	client := p.cloudWatch()
	for name, by := range map[string][]string{
		"the service": {"ClusterName", "default", "ServiceName", "web"}, "the cluster": {"ClusterName", "default"},
		"the task": {"ClusterName", "default", "TaskId", id}, "the GPU": {"ClusterName", "default", "UUID", gpu},
	} {
		in := &cloudwatch.GetMetricStatisticsInput{
			Namespace:  aws.String("ECS/ContainerInsights/Prometheus"),
			MetricName: aws.String("DCGM_FI_DEV_GPU_UTIL"),
			Period:     aws.Int32(60),
			StartTime:  aws.Time(time.Now().Add(-5 * time.Minute)),
			EndTime:    aws.Time(time.Now().Add(2 * patience)),
			Statistics: []types.Statistic{types.StatisticMaximum},
		}
		for i := 0; i < len(by); i += 2 {
			in.Dimensions = append(in.Dimensions, types.Dimension{Name: &by[i], Value: &by[i+1]})
		}
		Eventually(t, "the load of "+name+" in CloudWatch", func() bool {
			out, err := client.GetMetricStatistics(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			return slices.ContainsFunc(out.Datapoints, func(d types.Datapoint) bool { return aws.ToFloat64(d.Maximum) == 75 })
		})
	}
}

// TestGPUsOfAnExporter: if a dcgm-exporter watches the GPUs, the node takes their load and errors from it.
func TestGPUsOfAnExporter(t *testing.T) {
	t.Parallel()
	var xid atomic.Int64
	id := fmt.Sprint("GPU-e", os.Getpid()) // unique, because only one agent on a machine may have a GPU and other tests run here too
	exporter := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		for name, v := range map[string]int64{
			"DCGM_FI_DEV_GPU_UTIL": 42, "DCGM_FI_DEV_GPU_TEMP": 66, "DCGM_FI_DEV_FB_USED": 1024, "DCGM_FI_DEV_FB_FREE": 3072,
			"DCGM_FI_DEV_XID_ERRORS": xid.Load(),
		} {
			fmt.Fprintf(w,
				"# HELP %s h\n# TYPE %s gauge\n%s{gpu=\"0\",UUID=\"%s\",pci_bus_id=\"00000000:3B:00.0\",device=\"nvidia0\","+
					"modelName=\"Tesla T4\",Hostname=\"h\",DCGM_FI_DRIVER_VERSION=\"580.1\"} %d\n", name, name, name, id, v)
		}
		io.WriteString(w, "\n") //nolint:errcheck // a test
	}))
	defer exporter.Close()
	p := Up(t, "c5.xlarge=1")
	metrics := freeAddress(t)
	agent := &daemon{
		t: t,
		args: []string{"agent", "--endpoint", p.Endpoint, "--data", t.TempDir(), "--name", "gpu-box",
			"--runtime", "process", "--metrics", metrics, "--gpu-exporter", exporter.URL + "/metrics"},
	}
	agent.start()
	defer agent.kill()
	shows := func(parts ...string) func() bool {
		return func() bool {
			out, err := p.pintle("gpus")
			for line := range strings.Lines(out) {
				if strings.Contains(line, id) && !slices.ContainsFunc(parts, func(s string) bool { return !strings.Contains(line, s) }) {
					return err == nil
				}
			}
			return false
		}
	}
	Eventually(t, "the exporter's load", shows("Tesla T4", "42 %", "1024/4096 MiB", "66 °C", "ok"))
	Eventually(t, "the same load for Prometheus", func() bool { return scrapeLoads(t, metrics)[id] == "42 /" })
	if out, err := p.pintle("gpus", "fault", id); err == nil || !strings.Contains(out, "not simulated") {
		t.Errorf("an error of a real GPU is made up: %v, %s", err, out)
	}
	xid.Store(79)
	Eventually(t, "the exporter's error", shows("Xid 79"))
	if out, err := p.pintle("gpus", "clear", id); err != nil {
		t.Fatal(err, out)
	}
	Eventually(t, "the repaired GPU", shows("ok"))

	refused := p.Command(bin(t, "pintle"), "agent", "--endpoint", p.Endpoint, "--data", t.TempDir(), "--name", "none",
		"--runtime", "process", "--metrics=", "--gpu-exporter", "http://"+freeAddress(t)+"/metrics")
	if out, err := refused.CombinedOutput(); err == nil || !strings.Contains(string(out), "--gpu-exporter") {
		t.Errorf("an exporter that is not there is taken: %v, %s", err, out)
	}
}
