package acs

import "time"

// The messages of ACS.

// HeartbeatMessage keeps a connection alive; an agent hangs up after a minute or two of silence.
type HeartbeatMessage struct {
	MessageID string `json:"messageId,omitempty"`
	Healthy   bool   `json:"healthy"`
}

// HeartbeatAckRequest answers it.
type HeartbeatAckRequest struct {
	MessageID string `json:"messageId"`
}

// PayloadMessage brings tasks to run, or to stop where DesiredStatus says so.
type PayloadMessage struct {
	MessageID            string `json:"messageId"`
	ClusterArn           string `json:"clusterArn"`
	ContainerInstanceArn string `json:"containerInstanceArn"`
	GeneratedAt          int64  `json:"generatedAt"` // milliseconds since 1970
	SeqNum               int64  `json:"seqNum"`
	Timeline             int64  `json:"timeline"`
	Tasks                []Task `json:"tasks"`
}

// AckRequest says that every task of a payload was taken, or a manifest read.
type AckRequest struct {
	Cluster           string `json:"cluster"`
	ContainerInstance string `json:"containerInstance"`
	MessageID         string `json:"messageId"`
}

// NackRequest says that a message was not taken, and why.
type NackRequest struct {
	AckRequest
	Reason string `json:"reason"`
}

// TaskManifestMessage lists what should run on a node.
type TaskManifestMessage struct {
	MessageID            string           `json:"messageId"`
	ClusterArn           string           `json:"clusterArn"`
	ContainerInstanceArn string           `json:"containerInstanceArn"`
	GeneratedAt          int64            `json:"generatedAt"`
	Timeline             int64            `json:"timeline"`
	Tasks                []TaskIdentifier `json:"tasks"`
}

// TaskIdentifier names a task.
type TaskIdentifier struct {
	TaskArn        string `json:"taskArn"`
	DesiredStatus  string `json:"desiredStatus"`
	TaskClusterArn string `json:"taskClusterArn"`
}

// TaskStopVerificationMessage asks whether tasks that a manifest does not name should be stopped.
type TaskStopVerificationMessage struct {
	MessageID      string           `json:"messageId"`
	StopCandidates []TaskIdentifier `json:"stopCandidates"`
}

// TaskStopVerificationAck names those that should. MessageID is the manifest's.
type TaskStopVerificationAck struct {
	MessageID   string           `json:"messageId"`
	GeneratedAt int64            `json:"generatedAt"`
	StopTasks   []TaskIdentifier `json:"stopTasks"`
}

// The roles of a task: its containers', and the one that its node uses on its behalf.
const (
	TaskRole      = "TaskApplication"
	ExecutionRole = "TaskExecution"
)

// IAMRoleCredentialsMessage brings a task new credentials before the old ones expire.
type IAMRoleCredentialsMessage struct {
	MessageID       string              `json:"messageId"`
	TaskArn         string              `json:"taskArn"`
	RoleType        string              `json:"roleType"` // TaskRole or ExecutionRole
	RoleCredentials *IAMRoleCredentials `json:"roleCredentials"`
}

// IAMRoleCredentialsAckRequest answers it.
type IAMRoleCredentialsAckRequest struct {
	MessageID     string `json:"messageId"`
	CredentialsID string `json:"credentialsId"`
	Expiration    string `json:"expiration"`
}

// IAMRoleCredentials are a role's temporary credentials.
type IAMRoleCredentials struct {
	CredentialsID   string `json:"credentialsId"`
	AccessKeyID     string `json:"accessKeyId"`
	SecretAccessKey string `json:"secretAccessKey"`
	SessionToken    string `json:"sessionToken"`
	Expiration      string `json:"expiration"` // RFC 3339
	RoleArn         string `json:"roleArn"`
}

// Task is a task as a node gets it, with all overrides merged in.
type Task struct {
	Arn                      string              `json:"arn"`
	Family                   string              `json:"family"`
	Version                  string              `json:"version"`
	DesiredStatus            string              `json:"desiredStatus"`
	TaskClusterArn           string              `json:"taskClusterArn,omitempty"`
	LaunchType               string              `json:"launchType,omitempty"`
	NetworkMode              string              `json:"networkMode,omitempty"`
	CPU                      float64             `json:"cpu,omitempty"`    // cores
	Memory                   int64               `json:"memory,omitempty"` // MiB
	Overrides                string              `json:"overrides"`
	PidMode                  string              `json:"pidMode,omitempty"`
	IpcMode                  string              `json:"ipcMode,omitempty"`
	Group                    string              `json:"group,omitempty"`
	ServiceName              string              `json:"serviceName,omitempty"`
	RoleCredentials          *IAMRoleCredentials `json:"roleCredentials,omitempty"`
	ExecutionRoleCredentials *IAMRoleCredentials `json:"executionRoleCredentials,omitempty"`
	Associations             []Association       `json:"associations,omitempty"`
	Volumes                  []Volume            `json:"volumes,omitempty"`
	Containers               []Container         `json:"containers"`
}

// Association pins a device to a container: Type is gpu, Name the device's id.
type Association struct {
	Containers []string      `json:"containers"`
	Content    EncodedString `json:"content"`
	Name       string        `json:"name"`
	Type       string        `json:"type"`
}

// EncodedString is text in an encoding, such as base64.
type EncodedString struct {
	Encoding string `json:"encoding"`
	Value    string `json:"value"`
}

// Volume is a task's volume: of type host, or docker.
type Volume struct {
	Name                      string                     `json:"name"`
	Type                      string                     `json:"type"`
	Host                      *HostVolume                `json:"host,omitempty"`
	DockerVolumeConfiguration *DockerVolumeConfiguration `json:"dockerVolumeConfiguration,omitempty"`
}

// HostVolume is a directory of the node; without a path, one of its own that ends with the task.
type HostVolume struct {
	SourcePath string `json:"sourcePath,omitempty"`
}

// DockerVolumeConfiguration is a named volume, of scope task or shared.
type DockerVolumeConfiguration struct {
	Scope         string            `json:"scope,omitempty"`
	Autoprovision bool              `json:"autoprovision,omitempty"`
	Driver        string            `json:"driver,omitempty"`
	DriverOpts    map[string]string `json:"driverOpts,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"`
}

// Container is a container of a task.
type Container struct {
	Name                   string                  `json:"name"`
	ContainerArn           string                  `json:"containerArn,omitempty"`
	Image                  string                  `json:"image"`
	RegistryAuthentication *RegistryAuthentication `json:"registryAuthentication,omitempty"`
	Essential              bool                    `json:"essential"`
	CPU                    int64                   `json:"cpu"`    // shares
	Memory                 int64                   `json:"memory"` // MiB, the hard limit
	Command                []string                `json:"command,omitempty"`
	EntryPoint             []string                `json:"entryPoint,omitempty"`
	Environment            map[string]string       `json:"environment"`
	EnvironmentFiles       []EnvironmentFile       `json:"environmentFiles,omitempty"`
	Secrets                []Secret                `json:"secrets,omitempty"`
	Overrides              string                  `json:"overrides"`
	PortMappings           []PortMapping           `json:"portMappings,omitempty"`
	MountPoints            []MountPoint            `json:"mountPoints,omitempty"`
	VolumesFrom            []VolumeFrom            `json:"volumesFrom,omitempty"`
	Links                  []string                `json:"links,omitempty"`
	DependsOn              []ContainerDependency   `json:"dependsOn,omitempty"`
	HealthCheckType        string                  `json:"healthCheckType,omitempty"` // "docker", in lower case
	StartTimeout           int64                   `json:"startTimeout,omitempty"`    // seconds
	StopTimeout            int64                   `json:"stopTimeout,omitempty"`     // seconds
	RestartPolicy          *RestartPolicy          `json:"restartPolicy,omitempty"`
	LogsAuthStrategy       string                  `json:"logsAuthStrategy,omitempty"`
	DockerConfig           DockerConfig            `json:"dockerConfig"`
}

// PortMapping maps a container's port, or a range of them; HostPort 0 lets the node pick one.
type PortMapping struct {
	ContainerPort      int64  `json:"containerPort"`
	ContainerPortRange string `json:"containerPortRange,omitempty"` // first-last
	HostPort           int64  `json:"hostPort"`
	Protocol           string `json:"protocol"`
}

// RegistryAuthentication says where the image's registry's credentials are: Type is asm, for Secrets
// Manager.
type RegistryAuthentication struct {
	Type        string       `json:"type"`
	ASMAuthData *ASMAuthData `json:"asmAuthData,omitempty"`
}

// ASMAuthData is a secret of Secrets Manager that holds a user name and a password.
type ASMAuthData struct {
	CredentialsParameter string `json:"credentialsParameter"`
	Region               string `json:"region,omitempty"`
}

// EnvironmentFile is a file of variables: Type is s3, Value the object's ARN.
type EnvironmentFile struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// Secret is a value that the node fetches itself, with the task's execution role, for a variable of
// the container or an option of its log driver.
type Secret struct {
	Name      string `json:"name"`
	ValueFrom string `json:"valueFrom"`
	Provider  string `json:"provider"` // asm or ssm
	Region    string `json:"region,omitempty"`
	Type      string `json:"type"`             // ENVIRONMENT_VARIABLE
	Target    string `json:"target,omitempty"` // LOG_DRIVER
}

// MountPoint mounts a task's volume.
type MountPoint struct {
	SourceVolume  string `json:"sourceVolume"`
	ContainerPath string `json:"containerPath"`
	ReadOnly      bool   `json:"readOnly,omitempty"`
}

// VolumeFrom mounts all volumes of another container.
type VolumeFrom struct {
	SourceContainer string `json:"sourceContainer"`
	ReadOnly        bool   `json:"readOnly,omitempty"`
}

// ContainerDependency is START, COMPLETE, SUCCESS or HEALTHY of another container.
type ContainerDependency struct {
	ContainerName string `json:"containerName"`
	Condition     string `json:"condition"`
}

// RestartPolicy restarts a container without its task.
type RestartPolicy struct {
	Enabled              bool    `json:"enabled"`
	IgnoredExitCodes     []int64 `json:"ignoredExitCodes,omitempty"`
	RestartAttemptPeriod int64   `json:"restartAttemptPeriod,omitempty"` // seconds
}

// DockerConfig carries what has no field of its own, as JSON of the Docker Engine's API:
// a container's Config and HostConfig. Config and HostConfig here read and write it.
type DockerConfig struct {
	Config     string `json:"config,omitempty"`
	HostConfig string `json:"hostConfig,omitempty"`
	Version    string `json:"version,omitempty"`
}

// Pintle's own messages.

// PintleNodeInventory tells the control plane what registering cannot: sent once connected to ACS, and
// whenever the health of a GPU has changed.
type PintleNodeInventory struct {
	Version      string      `json:"version"`
	Runtime      string      `json:"runtime"`
	InstanceType string      `json:"instanceType"`
	GPUs         []GPUDevice `json:"gpus"`
}

// GPUDevice is one device of a node.
type GPUDevice struct {
	ID        string `json:"id"`
	Model     string `json:"model"`
	MemoryMiB int64  `json:"memoryMiB"`
	NUMA      int    `json:"numa"`
	Index     int    `json:"index"`             // the driver's number of it, or of the device that it is a slice of
	Bus       string `json:"bus,omitempty"`     // its PCI address, as NVIDIA writes it
	Slice     string `json:"slice,omitempty"`   // the number of a slice (MIG) among its device's
	Profile   string `json:"profile,omitempty"` // and its size: 3g.20gb
	Links     []int  `json:"links,omitempty"`   // NVLinks to the node's devices, by their place
	Simulated bool   `json:"simulated,omitempty"`
	// Fault is why no task may have the device; nil where it is well.
	Fault *GPUFault `json:"fault,omitempty"`
}

// GPUFault is what is wrong with a device.
type GPUFault struct {
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

// PintleGPUFault tells a node to make up an error of a simulated GPU, or with XID 0 to forget the fault of
// any GPU, which was repaired.
type PintleGPUFault struct {
	GPU string `json:"gpu"`
	XID uint64 `json:"xid,omitempty"`
}

// PintleTaskNetwork tells the address that a task of network mode awsvpc got.
type PintleTaskNetwork struct {
	TaskArn     string `json:"taskArn"`
	PrivateIPv4 string `json:"privateIPv4Address"`
	MacAddress  string `json:"macAddress"`
}

func (*HeartbeatMessage) messageType() string             { return "HeartbeatMessage" }
func (*HeartbeatAckRequest) messageType() string          { return "HeartbeatAckRequest" }
func (*PayloadMessage) messageType() string               { return "PayloadMessage" }
func (*AckRequest) messageType() string                   { return "AckRequest" }
func (*NackRequest) messageType() string                  { return "NackRequest" }
func (*TaskManifestMessage) messageType() string          { return "TaskManifestMessage" }
func (*TaskStopVerificationMessage) messageType() string  { return "TaskStopVerificationMessage" }
func (*TaskStopVerificationAck) messageType() string      { return "TaskStopVerificationAck" }
func (*IAMRoleCredentialsMessage) messageType() string    { return "IAMRoleCredentialsMessage" }
func (*IAMRoleCredentialsAckRequest) messageType() string { return "IAMRoleCredentialsAckRequest" }
func (*PintleNodeInventory) messageType() string          { return "PintleNodeInventory" }
func (*PintleGPUFault) messageType() string               { return "PintleGPUFault" }
func (*PintleTaskNetwork) messageType() string            { return "PintleTaskNetwork" }
