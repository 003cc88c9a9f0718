// Package metering is the loop that turns nodes' reports and the store's rows into metrics. CPU and memory use get
// CloudWatch's own names, and GPUs' load those of NVIDIA's DCGM. From the rows come reservations, services' task
// counts and Auto Scaling groups' instance counts. It adds up reports and puts them once a second. It drops what
// it can't put in time, since load is no record.
package metering

import (
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/cloudwatch/metrics"
	"github.com/pintle/pintle/internal/state"
)

// The namespaces of ECS, EC2 and Container Insights, as CloudWatch documents them, and our own.
const (
	namespaceOwn      = state.NamespaceTasks
	namespaceECS      = "AWS/ECS"
	namespaceEC2      = "AWS/EC2"
	namespaceInsights = "ECS/ContainerInsights"
	namespaceGPU      = "ECS/ContainerInsights/Prometheus"
)

// Options holds what the loop needs besides the store.
type Options struct {
	Now func() time.Time
	// Put stores samples. It returns once they're durable.
	Put func([]metrics.Sample) error
	// NoGPUs leaves the metrics of GPUs to others, as AWS does.
	NoGPUs bool
	Log    *slog.Logger
}

// Meter adds up what the nodes report.
type Meter struct {
	store *state.Store
	opts  Options

	mu    sync.Mutex
	sums  map[string]*sum
	nodes map[string]*node // the part of each node's batch received so far, by container instance
}

// sum is a metric and its data since the last put.
type sum struct {
	metric metrics.Metric
	unit   string
	set    metrics.Set
}

// node adds up the use of a node's tasks until its batch is complete.
type node struct {
	cpu       float64 // units
	memoryMiB float64
}

// New returns a meter for the store.
func New(store *state.Store, opts Options) *Meter {
	return &Meter{store: store, opts: opts, sums: map[string]*sum{}, nodes: map[string]*node{}}
}

// How often the loop puts sums, counts services' tasks and groups' instances, and adds up reservations.
const (
	putEvery     = time.Second
	countEvery   = 10 * time.Second
	reserveEvery = time.Minute
)

// Run counts and puts metrics until ctx ends.
func (m *Meter) Run(ctx context.Context) error {
	put, count, reserve := time.NewTicker(putEvery), time.NewTicker(countEvery), time.NewTicker(reserveEvery)
	defer put.Stop()
	defer count.Stop()
	defer reserve.Stop()
	counted := m.opts.Now()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-count.C:
			m.countTasks(m.store.View())
			m.countInstances(m.store.View())
			now := m.opts.Now()
			m.countUsage(m.store.View(), now.Sub(counted))
			counted = now
		case <-reserve.C:
			m.addReservations(m.store.View())
		case <-put.C:
			if err := m.put(); err != nil {
				m.opts.Log.Error("cannot keep the nodes' metrics", "error", err)
			}
		}
	}
}

// put stores the sums since its last call.
func (m *Meter) put() error {
	m.mu.Lock()
	sums := m.sums
	m.sums = map[string]*sum{}
	m.mu.Unlock()
	if len(sums) == 0 {
		return nil
	}
	at := m.opts.Now().Unix()
	samples := make([]metrics.Sample, 0, len(sums))
	for _, s := range sums {
		samples = append(samples, metrics.Sample{Metric: s.metric, Unit: s.unit, At: at, Fine: true, Set: s.set})
	}
	return m.opts.Put(samples)
}

// dimensions are a metric's dimensions.
type dimensions []metrics.Dimension

func (m *Meter) add(namespace, name, unit string, value float64, by ...dimensions) {
	m.addSet(namespace, name, unit, metrics.One(value), by...)
}

func (m *Meter) addSet(namespace, name, unit string, set metrics.Set, by ...dimensions) {
	for _, d := range by {
		metric := metrics.NewMetric(namespace, name, d...)
		key := metric.Key() + "\x00" + unit
		s := m.sums[key]
		if s == nil {
			s = &sum{metric: metric, unit: unit}
			m.sums[key] = s
		}
		s.set.Add(set)
	}
}

// Count adds one to a metric by each list of dimensions, in which names and values take turns.
func (m *Meter) Count(namespace, name string, by ...[]string) {
	m.Measure(namespace, name, "Count", 1, by...)
}

// Measure adds a value to a metric as Count does.
func (m *Meter) Measure(namespace, name, unit string, value float64, by ...[]string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, pairs := range by {
		var d dimensions
		for i := 0; i+1 < len(pairs); i += 2 {
			d = append(d, metrics.Dimension{Name: pairs[i], Value: pairs[i+1]})
		}
		m.add(namespace, name, unit, value, d)
	}
}

// Observe adds a node's report. It doesn't block.
func (m *Meter) Observe(instanceArn string, message acs.Message) {
	v := m.store.View()
	instance := v.ContainerInstances.Get(instanceArn)
	if instance == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch message := message.(type) {
	case *acs.PublishMetricsRequest:
		for i := range message.TaskMetrics {
			m.task(v, instance, &message.TaskMetrics[i])
		}
		if message.Metadata.Fin || message.Metadata.Idle {
			m.node(v, instance)
		}
	case *acs.PintleGPUTelemetry:
		if m.opts.NoGPUs {
			return
		}
		for i := range message.GPUs {
			m.gpu(v, instance, &message.GPUs[i])
		}
	}
}

// task adds a task's use to its service's and its node's.
func (m *Meter) task(v *state.View, instance *state.ContainerInstance, t *acs.TaskMetric) {
	row := taskOn(v, instance, t.TaskArn)
	if row == nil {
		return
	}
	for i := range t.ServiceConnect {
		m.connect(v, row, &t.ServiceConnect[i])
	}
	if len(t.ContainerMetrics) == 0 && len(t.ServiceConnect) > 0 {
		return // its containers weren't sampled
	}
	var cpu, memory float64 // units, MiB
	for _, c := range t.ContainerMetrics {
		cpu += mean(c.CPUStatsSet) / 100 * float64(instance.Capacity.CPU)
		memory += mean(c.MemoryStatsSet)
	}
	n := m.nodes[*instance.ContainerInstanceArn]
	if n == nil {
		n = new(node)
		m.nodes[*instance.ContainerInstanceArn] = n
	}
	n.cpu += cpu
	n.memoryMiB += memory
	cluster, service := clusterOf(row), serviceOf(row)
	by := []dimensions{cluster, append(cluster[:1:1], metrics.Dimension{Name: "TaskDefinitionFamily", Value: familyOf(row)})}
	if service != nil {
		by = append(by, service)
		if row.Reserved.CPU > 0 {
			m.add(namespaceECS, "CPUUtilization", "Percent", 100*cpu/float64(row.Reserved.CPU), service)
		}
		if row.Reserved.MemoryMiB > 0 {
			m.add(namespaceECS, "MemoryUtilization", "Percent", 100*memory/float64(row.Reserved.MemoryMiB), service)
		}
	}
	if !insights(v, aws.ToString(row.ClusterArn)) {
		return
	}
	m.add(namespaceInsights, "CpuUtilized", "None", cpu, by...)
	m.add(namespaceInsights, "CpuReserved", "None", float64(row.Reserved.CPU), by...)
	m.add(namespaceInsights, "MemoryUtilized", "Megabytes", memory, by...)
	m.add(namespaceInsights, "MemoryReserved", "Megabytes", float64(row.Reserved.MemoryMiB), by...)
}

// Started adds how long a task that runs now took to get there, and how much of that its images' pulls took. AWS has no such metrics.
func (m *Meter) Started(t *state.Task) {
	m.mu.Lock()
	defer m.mu.Unlock()
	by := []dimensions{clusterOf(t)}
	if service := serviceOf(t); service != nil {
		by = append(by, service)
	}
	m.addTime("TaskStartTime", t.CreatedAt, t.StartedAt, by)
	m.addTime("ImagePullTime", t.PullStartedAt, t.PullStoppedAt, by)
}

// addTime adds the seconds between two times, if both are known. They may be of two machines, whose clocks differ.
func (m *Meter) addTime(name string, from, to *time.Time, by []dimensions) {
	if from != nil && to != nil {
		m.add(namespaceOwn, name, "Seconds", max(0, to.Sub(*from).Seconds()), by...)
	}
}

// taskOn returns a task that a node reports, or nil if the task isn't on that node.
func taskOn(v *state.View, instance *state.ContainerInstance, arn string) *state.Task {
	row := v.Tasks.Get(arn)
	if row == nil || aws.ToString(row.ContainerInstanceArn) != *instance.ContainerInstanceArn {
		return nil
	}
	return row
}

// familyOf returns the family of a task's definition, whose name is family:revision.
func familyOf(t *state.Task) string {
	family, _, _ := strings.Cut(state.NameOf(aws.ToString(t.TaskDefinitionArn)), ":")
	return family
}

// node adds a node's use to its cluster's. Each node counts as one value, so the mean is the cluster's if its
// nodes are alike. On an EC2 instance only containers count.
func (m *Meter) node(v *state.View, instance *state.ContainerInstance) {
	n := m.nodes[*instance.ContainerInstanceArn]
	if n == nil {
		n = new(node) // the node is idle
	}
	delete(m.nodes, *instance.ContainerInstanceArn)
	cluster := dimensions{{Name: "ClusterName", Value: state.NameOf(instance.ClusterArn)}}
	if instance.Capacity.CPU > 0 {
		percent := 100 * n.cpu / float64(instance.Capacity.CPU)
		m.add(namespaceECS, "CPUUtilization", "Percent", percent, cluster)
		if id := aws.ToString(instance.Ec2InstanceId); id != "" {
			m.add(namespaceEC2, "CPUUtilization", "Percent", percent, dimensions{{Name: "InstanceId", Value: id}})
		}
		if group := groupOf(v, instance); group != nil {
			m.add(namespaceEC2, "CPUUtilization", "Percent", percent, group)
		}
	}
	if instance.Capacity.MemoryMiB > 0 {
		m.add(namespaceECS, "MemoryUtilization", "Percent", 100*n.memoryMiB/float64(instance.Capacity.MemoryMiB), cluster)
	}
}

// gpu adds a GPU's load to its cluster's, its Auto Scaling group's, its own, and that of the task and service using it.
func (m *Meter) gpu(v *state.View, instance *state.ContainerInstance, g *acs.GPULoad) {
	if !slices.ContainsFunc(instance.GPUs, func(have state.GPU) bool { return have.ID == g.ID }) {
		return
	}
	cluster := dimensions{{Name: "ClusterName", Value: state.NameOf(instance.ClusterArn)}}
	by := []dimensions{cluster, append(cluster[:1:1], metrics.Dimension{Name: "UUID", Value: g.ID})}
	if group := groupOf(v, instance); group != nil {
		by = append(by, group)
	}
	if row := taskOn(v, instance, g.TaskArn); row != nil {
		by = append(by, append(cluster[:1:1], metrics.Dimension{Name: "TaskId", Value: state.NameOf(g.TaskArn)}))
		if service := serviceOf(row); service != nil {
			by = append(by, service)
		}
	}
	if g.UtilizationPct != nil { // 0 would be an idle GPU, and scale a service in
		m.add(namespaceGPU, "DCGM_FI_DEV_GPU_UTIL", "Percent", *g.UtilizationPct, by...)
	}
	m.add(namespaceGPU, "DCGM_FI_DEV_GPU_TEMP", "None", g.TemperatureC, by...)
	m.add(namespaceGPU, "DCGM_FI_DEV_POWER_USAGE", "None", g.PowerW, by...)
	m.add(namespaceGPU, "DCGM_FI_DEV_FB_USED", "Megabytes", float64(g.MemoryUsedMiB), by...)
	for _, xid := range xidsOrZero(g.XIDErrors) {
		m.add(namespaceGPU, "DCGM_FI_DEV_XID_ERRORS", "None", float64(xid), by...)
	}
}

// xidsOrZero returns 0 if there are no errors, as DCGM reports it. So an alarm on the maximum always has data.
func xidsOrZero(xids []uint64) []uint64 {
	if len(xids) == 0 {
		return []uint64{0}
	}
	return xids
}

// addReservations adds the share of each cluster that tasks have reserved.
func (m *Meter) addReservations(v *state.View) {
	type share struct{ reserved, capacity [3]float64 } // of CPU, memory and GPUs
	clusters := map[string]*share{}
	for row := range v.ContainerInstances.All() {
		if aws.ToString(row.Status) != "ACTIVE" {
			continue
		}
		s := clusters[row.ClusterArn]
		if s == nil {
			s = new(share)
			clusters[row.ClusterArn] = s
		}
		s.capacity[0] += float64(row.Capacity.CPU)
		s.capacity[1] += float64(row.Capacity.MemoryMiB)
		s.capacity[2] += float64(len(row.GPUs))
	}
	for row := range v.Tasks.All() {
		s := clusters[aws.ToString(row.ClusterArn)]
		if s == nil || aws.ToString(row.LastStatus) == "STOPPED" {
			continue
		}
		s.reserved[0] += float64(row.Reserved.CPU)
		s.reserved[1] += float64(row.Reserved.MemoryMiB)
		for _, g := range row.GPUs {
			s.reserved[2] += float64(g.Milli) / 1000
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for arn, s := range clusters {
		for i, name := range []string{"CPUReservation", "MemoryReservation", "GPUReservation"} {
			if s.capacity[i] > 0 {
				cluster := dimensions{{Name: "ClusterName", Value: state.NameOf(arn)}}
				m.add(namespaceECS, name, "Percent", 100*s.reserved[i]/s.capacity[i], cluster)
			}
		}
	}
}

// countTasks adds how many tasks each service has and wants, if its cluster has Container Insights. It counts
// services without tasks too: policies compute a backlog per task from it.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/Container-Insights-metrics-ECS.html
func (m *Meter) countTasks(v *state.View) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for row := range v.Services.All() {
		if aws.ToString(row.Status) == state.ServiceInactive || !insights(v, aws.ToString(row.ClusterArn)) {
			continue
		}
		running, pending := 0, 0
		for t := range v.Tasks.By(state.TasksByService, *row.ServiceArn) {
			switch {
			case aws.ToString(t.DesiredStatus) != "RUNNING": // stopping
			case aws.ToString(t.LastStatus) == "RUNNING":
				running++
			default:
				pending++
			}
		}
		by := serviceDimensions(*row.ClusterArn, *row.ServiceArn)
		m.add(namespaceInsights, "RunningTaskCount", "Count", float64(running), by)
		m.add(namespaceInsights, "PendingTaskCount", "Count", float64(pending), by)
		m.add(namespaceInsights, "DesiredTaskCount", "Count", float64(row.DesiredCount), by)
	}
}

// insights reports whether a cluster has Container Insights.
func insights(v *state.View, clusterArn string) bool {
	row := v.Clusters.Get(clusterArn)
	if row == nil {
		return false
	}
	for _, s := range row.Settings {
		if s.Name == types.ClusterSettingNameContainerInsights {
			return aws.ToString(s.Value) != "disabled"
		}
	}
	return false
}

func clusterOf(t *state.Task) dimensions {
	return dimensions{{Name: "ClusterName", Value: state.NameOf(aws.ToString(t.ClusterArn))}}
}

// groupOf returns the dimensions of the Auto Scaling group of a node's EC2 instance, or nil.
func groupOf(v *state.View, instance *state.ContainerInstance) dimensions {
	machine := v.Instances.Get(aws.ToString(instance.Ec2InstanceId))
	if machine == nil || machine.Member == nil {
		return nil
	}
	return dimensions{{Name: "AutoScalingGroupName", Value: machine.Member.Group}}
}

// serviceOf returns the dimensions of a task's service, or nil.
func serviceOf(t *state.Task) dimensions {
	if t.ServiceArn == "" {
		return nil
	}
	return serviceDimensions(aws.ToString(t.ClusterArn), t.ServiceArn)
}

func serviceDimensions(clusterArn, serviceArn string) dimensions {
	return dimensions{{Name: "ClusterName", Value: state.NameOf(clusterArn)}, {Name: "ServiceName", Value: state.NameOf(serviceArn)}}
}

func mean(s acs.StatsSet) float64 {
	if s.SampleCount == 0 {
		return 0
	}
	return s.Sum / float64(s.SampleCount)
}
