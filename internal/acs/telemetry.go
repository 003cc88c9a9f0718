package acs

// The messages of TCS.

// PublishMetricsRequest has the tasks' resource use. Agents send it every 20 seconds.
type PublishMetricsRequest struct {
	Metadata    MetricsMetadata `json:"metadata"`
	TaskMetrics []TaskMetric    `json:"taskMetrics,omitempty"`
	Timestamp   float64         `json:"timestamp"`
}

// MetricsMetadata tells whose metrics they are. Fin marks the last frame of a batch.
type MetricsMetadata struct {
	Cluster           string `json:"cluster"`
	ContainerInstance string `json:"containerInstance"`
	Idle              bool   `json:"idle"`
	Fin               bool   `json:"fin"`
	MessageID         string `json:"messageId"`
}

// TaskMetric is one task's resource use.
type TaskMetric struct {
	TaskArn               string            `json:"taskArn"`
	TaskDefinitionFamily  string            `json:"taskDefinitionFamily"`
	TaskDefinitionVersion string            `json:"taskDefinitionVersion"`
	ContainerMetrics      []ContainerMetric `json:"containerMetrics"`
	// ServiceConnect is what the task's proxies have passed on since the last message. It's Pintle's own: Amazon's agent names metrics itself.
	ServiceConnect []ConnectUsage `json:"pintleServiceConnect,omitempty"`
}

// ConnectUsage is what a proxy has passed on to one endpoint.
type ConnectUsage struct {
	Endpoint    string   `json:"endpoint"`    // the id of the NamedService
	Connections int64    `json:"connections"` // that were opened
	Active      int64    `json:"active"`      // that are open now
	Bytes       int64    `json:"bytes"`
	Requests    int64    `json:"requests"`
	GRPC        int64    `json:"grpc"`    // how many of them were gRPC's
	Classes     [6]int64 `json:"classes"` // answers by the first digit of their codes
	// ResponseTime is how long the endpoint's tasks took to answer, in milliseconds.
	ResponseTime StatsSet `json:"responseTime"`
	Targets      int      `json:"targets"` // how many tasks there are now
}

// ContainerMetric is one container's resource use: CPU in percent of the whole machine, memory in MiB.
type ContainerMetric struct {
	ContainerName  string   `json:"containerName"`
	CPUStatsSet    StatsSet `json:"cpuStatsSet"`
	MemoryStatsSet StatsSet `json:"memoryStatsSet"`
}

// StatsSet sums up several samples.
type StatsSet struct {
	Min         float64 `json:"min"`
	Max         float64 `json:"max"`
	Sum         float64 `json:"sum"`
	SampleCount int64   `json:"sampleCount"`
}

// AckPublishMetric answers PublishMetricsRequest.
type AckPublishMetric struct {
	Message string `json:"message"`
}

// PublishHealthRequest has the health of containers with a health check.
type PublishHealthRequest struct {
	Metadata  MetricsMetadata `json:"metadata"`
	Tasks     []TaskHealth    `json:"tasks"`
	Timestamp float64         `json:"timestamp"`
}

// TaskHealth is the health of one task's containers.
type TaskHealth struct {
	TaskArn    string            `json:"taskArn"`
	Containers []ContainerHealth `json:"containers"`
}

// ContainerHealth is a container's health. HealthStatus is HEALTHY, UNHEALTHY or UNKNOWN.
type ContainerHealth struct {
	ContainerName string  `json:"containerName"`
	HealthStatus  string  `json:"healthStatus"`
	StatusSince   float64 `json:"statusSince"` // seconds since 1970
}

// AckPublishHealth answers PublishHealthRequest.
type AckPublishHealth struct {
	Message string `json:"message"`
}

// PublishInstanceStatusRequest has the health of an agent's machine.
type PublishInstanceStatusRequest struct {
	Metadata  MetricsMetadata  `json:"metadata"`
	Statuses  []InstanceStatus `json:"statuses"`
	Timestamp float64          `json:"timestamp"`
}

// InstanceStatus is the health of one part of the machine. Status is OK, IMPAIRED or INSUFFICIENT_DATA.
type InstanceStatus struct {
	Type             string  `json:"type"` // ContainerRuntime
	Status           string  `json:"status"`
	LastUpdated      float64 `json:"lastUpdated"`
	LastStatusChange float64 `json:"lastStatusChange"`
}

// AckPublishInstanceStatus answers PublishInstanceStatusRequest.
type AckPublishInstanceStatus struct {
	Message string `json:"message"`
}

// PintleGPUTelemetry has the current load of a node's GPUs.
type PintleGPUTelemetry struct {
	GPUs []GPULoad `json:"gpus"`
}

// GPULoad is one device's load.
type GPULoad struct {
	ID             string   `json:"id"`
	UtilizationPct *float64 `json:"utilizationPct,omitempty"` // nil where the device doesn't say, as with MIG
	MemoryUsedMiB  int64    `json:"memoryUsedMiB"`
	MemoryMiB      int64    `json:"memoryMiB"`
	TemperatureC   float64  `json:"temperatureC"`
	PowerW         float64  `json:"powerW"`
	Simulated      bool     `json:"simulated,omitempty"`
	// XIDErrors are the driver's error codes since the last message.
	XIDErrors []uint64 `json:"xidErrors,omitempty"`
	// TaskArn and Container are what the node has pinned the device to. They are empty for a free device.
	TaskArn   string `json:"taskArn,omitempty"`
	Container string `json:"container,omitempty"`
}

func (*PublishMetricsRequest) messageType() string        { return "PublishMetricsRequest" }
func (*AckPublishMetric) messageType() string             { return "AckPublishMetric" }
func (*PublishHealthRequest) messageType() string         { return "PublishHealthRequest" }
func (*AckPublishHealth) messageType() string             { return "AckPublishHealth" }
func (*PublishInstanceStatusRequest) messageType() string { return "PublishInstanceStatusRequest" }
func (*AckPublishInstanceStatus) messageType() string     { return "AckPublishInstanceStatus" }
func (*PintleGPUTelemetry) messageType() string           { return "PintleGPUTelemetry" }
