package metering

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

const (
	clusterArn  = "arn:aws:ecs:r:1:cluster/prod"
	instanceArn = "arn:aws:ecs:r:1:container-instance/prod/node"
)

// world returns a store with a node of 4 CPUs, 8 GiB and four GPUs in an Auto Scaling group, a service's task with one of
// the GPUs, and a task without a service.
func world(t *testing.T, insights string) *state.Store {
	t.Helper()
	store := statetest.Open(t)
	task := func(id, service string, cpu, memory int64, gpus ...state.HeldGPU) *state.Task {
		family := cmp.Or(service, "job")
		row := &state.Task{
			Task: types.Task{
				TaskArn:              aws.String("arn:aws:ecs:r:1:task/prod/" + id),
				ClusterArn:           aws.String(clusterArn),
				ContainerInstanceArn: aws.String(instanceArn),
				LastStatus:           aws.String("RUNNING"),
				DesiredStatus:        aws.String("RUNNING"),
				TaskDefinitionArn:    aws.String("arn:aws:ecs:r:1:task-definition/" + family + ":3"),
				Containers:           []types.Container{{Name: aws.String("main")}},
			},
			Reserved: state.Resources{CPU: cpu, MemoryMiB: memory}, GPUs: gpus,
		}
		if service != "" {
			row.ServiceArn = "arn:aws:ecs:r:1:service/prod/" + service
		}
		return row
	}
	err := store.Update(t.Context(), func(tx *state.Tx) error {
		cluster := &state.Cluster{
			Cluster: types.Cluster{ClusterArn: aws.String(clusterArn), ClusterName: aws.String("prod"), Status: aws.String("ACTIVE")},
		}
		cluster.Settings = []types.ClusterSetting{{Name: types.ClusterSettingNameContainerInsights, Value: &insights}}
		tx.Clusters.Put(cluster)
		tx.ContainerInstances.Put(&state.ContainerInstance{
			ContainerInstance: types.ContainerInstance{
				ContainerInstanceArn: aws.String(instanceArn),
				Status:               aws.String("ACTIVE"),
				AgentConnected:       true,
				Ec2InstanceId:        aws.String("i-1"),
			},
			ClusterArn: clusterArn,
			GPUs:       []state.GPU{{ID: "GPU-1"}, {ID: "GPU-2"}, {ID: "GPU-3"}, {ID: "GPU-4"}},
			Capacity:   state.Resources{CPU: 4096, MemoryMiB: 8192},
		})
		tx.Instances.Put(&state.Instance{
			Instance: ec2types.Instance{
				InstanceId: aws.String("i-1"),
				State:      &ec2types.InstanceState{Name: ec2types.InstanceStateNameRunning},
			},
			Member: &state.Member{Group: "gpus"},
		})
		tx.Tasks.Put(task("one", "web", 1024, 2048, state.HeldGPU{Container: "main", ID: "GPU-1", Milli: 1000}))
		tx.Tasks.Put(task("two", "", 512, 1024))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

func use(cpuPercent, memoryMiB float64) acs.ContainerMetric {
	return acs.ContainerMetric{
		ContainerName: "main", CPUStatsSet: acs.StatsSet{Min: 0, Max: 2 * cpuPercent, Sum: 4 * cpuPercent, SampleCount: 4},
		MemoryStatsSet: acs.StatsSet{Min: memoryMiB, Max: memoryMiB, Sum: memoryMiB, SampleCount: 1},
	}
}

// told runs a meter for a while and returns what it put.
func told(t *testing.T, store *state.Store, d time.Duration, tell func(*Meter)) map[string]string {
	t.Helper()
	got := map[string]string{}
	m := New(store, Options{Now: time.Now, Log: slog.Default(), Put: func(samples []metrics.Sample) error {
		for _, s := range samples {
			key := s.Metric.Namespace + " " + s.Metric.Name
			for _, d := range s.Metric.Dimensions {
				key += " " + d.Name + "=" + d.Value
			}
			got[key] = fmt.Sprintf("%g %s x %g", s.Set.Sum/s.Set.Count, s.Unit, s.Set.Count)
			if s.At == 0 {
				t.Errorf("%s has no time", key)
			}
		}
		return nil
	}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	tell(m)
	time.Sleep(d)
	cancel()
	<-done
	return got
}

func TestUseOfServicesAndNodes(t *testing.T) {
	store := world(t, "enabled")
	synctest.Test(t, func(t *testing.T) {
		got := told(t, store, 2*time.Second, func(m *Meter) {
			m.Observe(instanceArn, &acs.PublishMetricsRequest{TaskMetrics: []acs.TaskMetric{
				{
					TaskArn:              "arn:aws:ecs:r:1:task/prod/one",
					TaskDefinitionFamily: "web",
					ContainerMetrics:     []acs.ContainerMetric{use(10, 512), use(2.5, 512)},
				},
			}})
			m.Observe(instanceArn, &acs.PublishMetricsRequest{Metadata: acs.MetricsMetadata{Fin: true}, TaskMetrics: []acs.TaskMetric{
				{
					TaskArn:              "arn:aws:ecs:r:1:task/prod/two",
					TaskDefinitionFamily: "job",
					ContainerMetrics:     []acs.ContainerMetric{use(25, 1024)},
				},
				{TaskArn: "arn:aws:ecs:r:1:task/prod/gone", ContainerMetrics: []acs.ContainerMetric{use(25, 1024)}},
			}})
			m.Observe("nobody", &acs.PublishMetricsRequest{Metadata: acs.MetricsMetadata{Fin: true}})
		})
		for key, want := range map[string]string{
			// 12.5 % of 4096 units, of 1024
			"AWS/ECS CPUUtilization ClusterName=prod ServiceName=web":                     "50 Percent x 1",
			"AWS/ECS MemoryUtilization ClusterName=prod ServiceName=web":                  "50 Percent x 1",
			"AWS/ECS CPUUtilization ClusterName=prod":                                     "37.5 Percent x 1",
			"AWS/ECS MemoryUtilization ClusterName=prod":                                  "25 Percent x 1",
			"AWS/EC2 CPUUtilization InstanceId=i-1":                                       "37.5 Percent x 1",
			"AWS/EC2 CPUUtilization AutoScalingGroupName=gpus":                            "37.5 Percent x 1",
			"ECS/ContainerInsights CpuUtilized ClusterName=prod ServiceName=web":          "512 None x 1",
			"ECS/ContainerInsights CpuReserved ClusterName=prod":                          "768 None x 2",
			"ECS/ContainerInsights MemoryUtilized ClusterName=prod ServiceName=web":       "1024 Megabytes x 1",
			"ECS/ContainerInsights CpuUtilized ClusterName=prod TaskDefinitionFamily=job": "1024 None x 1",
		} {
			if got[key] != want {
				t.Errorf("%s is %q, want %q", key, got[key], want)
			}
		}
	})
}

// TestANodeThatLies: reports of another node's task, or of a GPU that the node doesn't have, are ignored.
func TestANodeThatLies(t *testing.T) {
	store := world(t, "enabled")
	const liar = "arn:aws:ecs:r:1:container-instance/prod/liar"
	err := store.Update(t.Context(), func(tx *state.Tx) error {
		tx.ContainerInstances.Put(&state.ContainerInstance{
			ContainerInstance: types.ContainerInstance{
				ContainerInstanceArn: aws.String(liar),
				Status:               aws.String("ACTIVE"),
				AgentConnected:       true,
			},
			ClusterArn: clusterArn, GPUs: []state.GPU{{ID: "GPU-9"}},
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		got := told(t, store, 2*time.Second, func(m *Meter) {
			m.Observe(liar, &acs.PublishMetricsRequest{TaskMetrics: []acs.TaskMetric{
				{
					TaskArn:              "arn:aws:ecs:r:1:task/prod/one",
					TaskDefinitionFamily: "made up",
					ContainerMetrics:     []acs.ContainerMetric{use(100, 1)},
				},
			}})
			m.Observe(liar, &acs.PintleGPUTelemetry{GPUs: []acs.GPULoad{
				{ID: "GPU-1", UtilizationPct: new(100.0)}, {ID: "GPU-9", TaskArn: "arn:aws:ecs:r:1:task/prod/one", UtilizationPct: new(50.0)},
			}})
		})
		for key := range got {
			if !strings.HasSuffix(key, "ClusterName=prod") && !strings.HasSuffix(key, "UUID=GPU-9") {
				t.Errorf("it was believed on %s", key)
			}
		}
	})
}

func TestWithoutInsights(t *testing.T) {
	store := world(t, "disabled")
	synctest.Test(t, func(t *testing.T) {
		got := told(t, store, 2*time.Second, func(m *Meter) {
			m.Observe(instanceArn, &acs.PublishMetricsRequest{Metadata: acs.MetricsMetadata{Fin: true}, TaskMetrics: []acs.TaskMetric{
				{TaskArn: "arn:aws:ecs:r:1:task/prod/one", ContainerMetrics: []acs.ContainerMetric{use(10, 512)}},
			}})
		})
		if len(got) != 6 { // AWS/ECS's and AWS/EC2's
			t.Errorf("got %v", got)
		}
	})
}

func TestGPUs(t *testing.T) {
	store := world(t, "disabled")
	synctest.Test(t, func(t *testing.T) {
		got := told(t, store, 2*time.Second, func(m *Meter) {
			for range 2 {
				m.Observe(instanceArn, &acs.PintleGPUTelemetry{GPUs: []acs.GPULoad{
					{
						ID:             "GPU-1",
						UtilizationPct: new(90.0),
						MemoryUsedMiB:  1000,
						TemperatureC:   70,
						PowerW:         200,
						XIDErrors:      []uint64{31, 79},
						TaskArn:        "arn:aws:ecs:r:1:task/prod/one",
						Container:      "main",
					},
					{ID: "GPU-2", UtilizationPct: new(0.0)},
				}})
			}
		})
		const prefix = "ECS/ContainerInsights/Prometheus DCGM_FI_DEV_"
		for key, want := range map[string]string{
			"GPU_UTIL ClusterName=prod":                 "45 Percent x 4",
			"GPU_UTIL AutoScalingGroupName=gpus":        "45 Percent x 4",
			"GPU_UTIL ClusterName=prod ServiceName=web": "90 Percent x 2",
			"GPU_UTIL ClusterName=prod TaskId=one":      "90 Percent x 2",
			"GPU_UTIL ClusterName=prod UUID=GPU-2":      "0 Percent x 2",
			"FB_USED ClusterName=prod ServiceName=web":  "1000 Megabytes x 2",
			"POWER_USAGE ClusterName=prod UUID=GPU-1":   "200 None x 2",
			"GPU_TEMP ClusterName=prod ServiceName=web": "70 None x 2",
			"XID_ERRORS ClusterName=prod UUID=GPU-1":    "55 None x 4",
			"XID_ERRORS ClusterName=prod UUID=GPU-2":    "0 None x 2",
			"XID_ERRORS ClusterName=prod TaskId=one":    "55 None x 4",
		} {
			if got[prefix+key] != want {
				t.Errorf("%s is %q, want %q", key, got[prefix+key], want)
			}
		}
	})
}

// TestAGPUIsOneTasks: each of a GPU's metrics counts for its cluster, itself, the task using it and that task's
// service, and for nothing else. A free GPU counts for its cluster and itself.
func TestAGPUIsOneTasks(t *testing.T) {
	store := world(t, "disabled")
	synctest.Test(t, func(t *testing.T) {
		got := told(t, store, 2*time.Second, func(m *Meter) {
			m.Observe(instanceArn, &acs.PintleGPUTelemetry{GPUs: []acs.GPULoad{
				{ID: "GPU-1", UtilizationPct: new(90.0), TaskArn: "arn:aws:ecs:r:1:task/prod/one", Container: "main"},
				{ID: "GPU-2", UtilizationPct: new(10.0), TaskArn: "arn:aws:ecs:r:1:task/prod/two", Container: "main"},
				{ID: "GPU-3", UtilizationPct: new(50.0)},
			}})
		})
		for _, name := range []string{"GPU_UTIL", "GPU_TEMP", "POWER_USAGE", "FB_USED", "XID_ERRORS"} {
			var by []string
			for key := range got {
				if d, ok := strings.CutPrefix(key, "ECS/ContainerInsights/Prometheus DCGM_FI_DEV_"+name+" ClusterName=prod"); ok {
					by = append(by, strings.TrimSpace(d))
				}
			}
			slices.Sort(by)
			want := []string{"", "ServiceName=web", "TaskId=one", "TaskId=two", "UUID=GPU-1", "UUID=GPU-2", "UUID=GPU-3"}
			if !slices.Equal(by, want) {
				t.Errorf("%s is told by %q, want %q", name, by, want)
			}
		}
		const load = "ECS/ContainerInsights/Prometheus DCGM_FI_DEV_GPU_UTIL ClusterName=prod"
		for by, want := range map[string]string{
			"":                 "50 Percent x 3",
			" ServiceName=web": "90 Percent x 1",
			" TaskId=one":      "90 Percent x 1",
			" TaskId=two":      "10 Percent x 1",
			" UUID=GPU-3":      "50 Percent x 1",
		} {
			if got[load+by] != want {
				t.Errorf("load by%s is %q, want %q", by, got[load+by], want)
			}
		}
	})
}

// TestUtilizationThatIsNotKnown: what a slice of a GPU doesn't say is no data, and not 0, by which a service would be scaled in.
func TestUtilizationThatIsNotKnown(t *testing.T) {
	store := world(t, "disabled")
	synctest.Test(t, func(t *testing.T) {
		got := told(t, store, 2*time.Second, func(m *Meter) {
			m.Observe(instanceArn, &acs.PintleGPUTelemetry{GPUs: []acs.GPULoad{
				{ID: "GPU-1", MemoryUsedMiB: 7, TaskArn: "arn:aws:ecs:r:1:task/prod/one", Container: "main"},
				{ID: "GPU-2", UtilizationPct: new(40.0)},
			}})
		})
		const prefix = "ECS/ContainerInsights/Prometheus DCGM_FI_DEV_"
		for key, want := range map[string]string{
			"GPU_UTIL ClusterName=prod":                 "40 Percent x 1",
			"GPU_UTIL ClusterName=prod ServiceName=web": "",
			"GPU_UTIL ClusterName=prod UUID=GPU-1":      "",
			"FB_USED ClusterName=prod ServiceName=web":  "7 Megabytes x 1",
		} {
			if got[prefix+key] != want {
				t.Errorf("%s is %q, want %q", key, got[prefix+key], want)
			}
		}
	})
}

func TestReservation(t *testing.T) {
	store := world(t, "disabled")
	synctest.Test(t, func(t *testing.T) {
		got := told(t, store, 62*time.Second, func(*Meter) {})
		for name, want := range map[string]string{"CPU": "37.5 Percent x 1", "Memory": "37.5 Percent x 1", "GPU": "25 Percent x 1"} {
			if key := "AWS/ECS " + name + "Reservation ClusterName=prod"; got[key] != want {
				t.Errorf("%s is %q, want %q", key, got[key], want)
			}
		}
	})
}

// TestTaskCounts: a service's tasks are counted as DescribeServices counts them. A service without tasks counts 0. A
// deleted service, or one without Container Insights, isn't counted.
func TestTaskCounts(t *testing.T) {
	for _, c := range []struct {
		name, insights string
		want           map[string]string
	}{
		{"Container Insights", "enabled", map[string]string{
			"RunningTaskCount ClusterName=prod ServiceName=web":  "2 Count x 1",
			"PendingTaskCount ClusterName=prod ServiceName=web":  "1 Count x 1",
			"DesiredTaskCount ClusterName=prod ServiceName=web":  "4 Count x 1",
			"RunningTaskCount ClusterName=prod ServiceName=idle": "0 Count x 1",
			"PendingTaskCount ClusterName=prod ServiceName=idle": "0 Count x 1",
			"DesiredTaskCount ClusterName=prod ServiceName=idle": "0 Count x 1",
		}},
		{"enhanced", "enhanced", map[string]string{"RunningTaskCount ClusterName=prod ServiceName=web": "2 Count x 1"}},
		{"none", "disabled", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := world(t, c.insights)
			err := store.Update(t.Context(), func(tx *state.Tx) error {
				for name, desired := range map[string]int32{"web": 4, "idle": 0, "gone": 3} {
					row := &state.Service{Service: types.Service{
						ServiceArn:   aws.String("arn:aws:ecs:r:1:service/prod/" + name),
						ClusterArn:   aws.String(clusterArn),
						Status:       aws.String(state.ServiceActive),
						DesiredCount: desired,
					}}
					if name == "gone" {
						row.Status = aws.String(state.ServiceInactive)
					}
					tx.Services.Put(row)
				}
				for id, status := range map[string][2]string{
					"three": {"RUNNING", "RUNNING"},
					"four":  {"PENDING", "RUNNING"},
					"five":  {"RUNNING", "STOPPED"},
				} {
					tx.Tasks.Put(&state.Task{ServiceArn: "arn:aws:ecs:r:1:service/prod/web", Task: types.Task{
						TaskArn:       aws.String("arn:aws:ecs:r:1:task/prod/" + id),
						ClusterArn:    aws.String(clusterArn),
						LastStatus:    &status[0],
						DesiredStatus: &status[1],
					}})
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			synctest.Test(t, func(t *testing.T) {
				got := told(t, store, 12*time.Second, func(*Meter) {})
				for key, want := range c.want {
					if got["ECS/ContainerInsights "+key] != want {
						t.Errorf("%s is %q, want %q", key, got["ECS/ContainerInsights "+key], want)
					}
				}
				if c.want == nil && len(got) != 0 {
					t.Errorf("got %v", got)
				}
				for key := range got {
					if strings.Contains(key, "gone") {
						t.Errorf("%s is told", key)
					}
				}
			})
		})
	}
}

// TestStartTimes: tasks that begin to run tell how long that took, by cluster and service.
func TestStartTimes(t *testing.T) {
	store := world(t, "disabled")
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	started := func(service string, pull, start time.Duration) *state.Task {
		row := &state.Task{Task: types.Task{ClusterArn: aws.String(clusterArn), CreatedAt: &began, StartedAt: new(began.Add(start))}}
		if pull != 0 {
			row.PullStartedAt = new(began.Add(time.Second))
			row.PullStoppedAt = new(began.Add(time.Second + pull))
		}
		if service != "" {
			row.ServiceArn = "arn:aws:ecs:r:1:service/prod/" + service
		}
		return row
	}
	synctest.Test(t, func(t *testing.T) {
		got := told(t, store, 2*time.Second, func(m *Meter) {
			m.Started(started("web", 4*time.Second, 6*time.Second))
			m.Started(started("web", 2*time.Second, 3*time.Second))
			m.Started(started("", 0, 3*time.Second))          // it pulled nothing
			m.Started(started("", -time.Hour, 4*time.Second)) // by a clock that was set back
		})
		for key, want := range map[string]string{
			"TaskStartTime ClusterName=prod":                 "4 Seconds x 4",
			"TaskStartTime ClusterName=prod ServiceName=web": "4.5 Seconds x 2",
			"ImagePullTime ClusterName=prod":                 "2 Seconds x 3",
			"ImagePullTime ClusterName=prod ServiceName=web": "3 Seconds x 2",
		} {
			if got["Pintle/ECS "+key] != want {
				t.Errorf("%s is %q, want %q", key, got["Pintle/ECS "+key], want)
			}
		}
	})
}
