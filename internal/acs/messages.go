package acs

import "time"

// The messages of ACS.

// HeartbeatMessage keeps a connection alive. Amazon's agent hangs up after a minute or two of silence.
type HeartbeatMessage struct {
	MessageID string `json:"messageId,omitempty"`
	Healthy   bool   `json:"healthy"`
	// IntervalMS is the time to the next heartbeat, in milliseconds. It's Pintle's own: with it, an agent knows sooner that the
	// control plane can't be reached.
	IntervalMS int64 `json:"intervalMs,omitempty"`
}

// HeartbeatAckRequest answers HeartbeatMessage.
type HeartbeatAckRequest struct {
	MessageID string `json:"messageId"`
}

// PayloadMessage has tasks to run or, if their DesiredStatus says so, to stop.
type PayloadMessage struct {
	MessageID            string `json:"messageId"`
	ClusterArn           string `json:"clusterArn"`
	ContainerInstanceArn string `json:"containerInstanceArn"`
	GeneratedAt          int64  `json:"generatedAt"` // milliseconds since 1970
	SeqNum               int64  `json:"seqNum"`
	Timeline             int64  `json:"timeline"`
	Tasks                []Task `json:"tasks"`
}

// AckRequest confirms that a node accepted every task of a payload, or read a manifest.
type AckRequest struct {
	Cluster           string `json:"cluster"`
	ContainerInstance string `json:"containerInstance"`
	MessageID         string `json:"messageId"`
}

// NackRequest tells why a node didn't accept a message.
type NackRequest struct {
	AckRequest
	Reason string `json:"reason"`
}

// TaskManifestMessage lists the tasks that should run on a node.
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
	// LastStatus, in a manifest, is RUNNING if the node has reported that the task runs. It's Pintle's own: such a task isn't on its way to the
	// node any more, so an agent that doesn't know it has lost it.
	LastStatus string `json:"lastStatus,omitempty"`
}

// TaskStopVerificationMessage asks whether to stop tasks that a manifest doesn't name.
type TaskStopVerificationMessage struct {
	MessageID      string           `json:"messageId"`
	StopCandidates []TaskIdentifier `json:"stopCandidates"`
}

// TaskStopVerificationAck names the tasks to stop. MessageID is the manifest's.
type TaskStopVerificationAck struct {
	MessageID   string           `json:"messageId"`
	GeneratedAt int64            `json:"generatedAt"`
	StopTasks   []TaskIdentifier `json:"stopTasks"`
}

// The roles of a task: the one that its containers use, and the one that its node uses on its behalf.
const (
	TaskRole      = "TaskApplication"
	ExecutionRole = "TaskExecution"
)

// IAMRoleCredentialsMessage has new credentials for a task, before the old ones expire.
type IAMRoleCredentialsMessage struct {
	MessageID       string              `json:"messageId"`
	TaskArn         string              `json:"taskArn"`
	RoleType        string              `json:"roleType"` // TaskRole or ExecutionRole
	RoleCredentials *IAMRoleCredentials `json:"roleCredentials"`
}

// IAMRoleCredentialsAckRequest answers IAMRoleCredentialsMessage.
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

// Task is a task for a node, with all overrides merged in.
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
	EnableFaultInjection     bool                `json:"enableFaultInjection,omitempty"`
	// NetworkRules are what its security groups let in and out, or nil if it's in none. It's Pintle's own, as PintleTaskRules is,
	// which changes them.
	NetworkRules *NetworkRules `json:"pintleNetworkRules,omitempty"`
	// ServiceConnect is how it takes part in Service Connect, or nil. It's Pintle's own: Amazon's agent expects the proxy's whole configuration.
	ServiceConnect *ServiceConnect `json:"pintleServiceConnect,omitempty"`
}

// ServiceConnect is what a task's proxy does as long as the task runs. Where the endpoints' tasks are is told by PintleNames.
type ServiceConnect struct {
	Aliases []ConnectAlias   `json:"aliases,omitempty"`
	Ingress []ConnectIngress `json:"ingress,omitempty"`
	// Log is where the proxy logs, as the container with a name; nil keeps that on the node.
	Log       *LogConfig `json:"log,omitempty"`
	Container string     `json:"container,omitempty"`
}

// ConnectAlias is a name and a port at which the task's containers reach an endpoint.
type ConnectAlias struct {
	Name     string `json:"name"`
	Port     uint16 `json:"port"`
	Protocol string `json:"protocol,omitempty"` // http, http2, grpc or, if it's empty, TCP
	// IdleSeconds and RequestSeconds are the time-outs. 0 is none, and nil the default one.
	IdleSeconds    *int32 `json:"idleSeconds,omitempty"`
	RequestSeconds *int32 `json:"requestSeconds,omitempty"`
	Endpoint       string `json:"endpoint"` // the id of the NamedService with the tasks
}

// ConnectIngress is a port at which the proxy lets others in to a container's.
type ConnectIngress struct {
	Port          uint16 `json:"port"`
	ContainerPort uint16 `json:"containerPort"`
}

// Association pins a device to containers. Type is gpu, and Name is the device's id.
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

// Volume is a task's volume. Type is host, docker, efs or ebs.
type Volume struct {
	Name                      string                     `json:"name"`
	Type                      string                     `json:"type"`
	Host                      *HostVolume                `json:"host,omitempty"`
	DockerVolumeConfiguration *DockerVolumeConfiguration `json:"dockerVolumeConfiguration,omitempty"`
	EFSVolumeConfiguration    *EFSVolumeConfiguration    `json:"efsVolumeConfiguration,omitempty"`
	EBSVolume                 *EBSVolume                 `json:"pintleEBSVolume,omitempty"`
}

// EBSVolume is a volume of Amazon EBS that ECS manages: the node makes it for the task. It's Pintle's own; Amazon's agent has such a volume
// attached to its machine, and is told by an attachment.
type EBSVolume struct {
	VolumeID   string `json:"volumeId"`
	SizeGiB    int64  `json:"sizeInGiB"`
	FileSystem string `json:"filesystemType,omitempty"` // "" leaves it to the node
	Keep       bool   `json:"keep,omitempty"`           // when the task has ended, until PintleDeleteVolumes
}

// HostVolume is a directory on the node. Without a path it's a new one, which is deleted with the task.
type HostVolume struct {
	SourcePath string `json:"sourcePath,omitempty"`
}

// DockerVolumeConfiguration is a named volume. Scope is task or shared.
type DockerVolumeConfiguration struct {
	Scope         string            `json:"scope,omitempty"`
	Autoprovision bool              `json:"autoprovision,omitempty"`
	Driver        string            `json:"driver,omitempty"`
	DriverOpts    map[string]string `json:"driverOpts,omitempty"`
	Labels        map[string]string `json:"labels,omitempty"`
}

// S3Driver is the driver of volumes that show what lies in S3, for reading. Its only option, S3Source, says where: s3://bucket/prefix. It's
// Pintle's own; to Amazon's agent it's a driver that must be installed.
const (
	S3Driver = "pintle-s3"
	S3Source = "source"
)

// ManagedVolumes is the attribute of nodes that make an EBSVolume. With a dot and a type of file systems, it's that of those that make it with
// one.
const ManagedVolumes = "pintle.managed-volumes"

// EFSVolumeConfiguration is a file system of Amazon EFS. TransitEncryption is ENABLED or DISABLED.
type EFSVolumeConfiguration struct {
	FileSystemID          string                  `json:"fileSystemId,omitempty"`
	RootDirectory         string                  `json:"rootDirectory,omitempty"`
	TransitEncryption     string                  `json:"transitEncryption,omitempty"`
	TransitEncryptionPort int64                   `json:"transitEncryptionPort,omitempty"`
	AuthorizationConfig   *EFSAuthorizationConfig `json:"authorizationConfig,omitempty"`
	// AccessPoint is what the access point of AuthorizationConfig is, if the control plane has it. It's Pintle's own.
	AccessPoint *EFSAccessPoint `json:"pintleAccessPoint,omitempty"`
}

// EFSAccessPoint is as whom, and from where, a file system is seen through an access point.
type EFSAccessPoint struct {
	RootDirectory string           `json:"rootDirectory"`
	CreationInfo  *EFSCreationInfo `json:"creationInfo,omitempty"`
	PosixUser     *EFSPosixUser    `json:"posixUser,omitempty"`
}

// EFSCreationInfo says how a root directory is made that isn't there. Permissions are octal.
type EFSCreationInfo struct {
	UID         int64  `json:"ownerUid"`
	GID         int64  `json:"ownerGid"`
	Permissions string `json:"permissions"`
}

// EFSPosixUser is whose files an access point's are.
type EFSPosixUser struct {
	UID int64 `json:"uid"`
	GID int64 `json:"gid"`
}

// EFSAuthorizationConfig says as whom a node mounts a file system of Amazon EFS. IAM is ENABLED or DISABLED.
type EFSAuthorizationConfig struct {
	AccessPointID string `json:"accessPointId,omitempty"`
	IAM           string `json:"iam,omitempty"`
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
	LogsAuthStrategy       string                  `json:"logsAuthStrategy,omitempty"` // LogsByExecutionRole
	FirelensConfiguration  *FirelensConfiguration  `json:"firelensConfiguration,omitempty"`
	CredentialSpecs        []string                `json:"credentialSpecs,omitempty"`
	ManagedAgents          []ManagedAgent          `json:"managedAgents,omitempty"`
	DockerConfig           DockerConfig            `json:"dockerConfig"`
}

// ManagedAgent is an agent that the node has in a container. ExecuteCommandAgent is the only one.
type ManagedAgent struct {
	Name       string            `json:"name"`
	Properties map[string]string `json:"properties,omitempty"`
}

// ExecuteCommandAgent is the agent by which commands are executed in a container. On Pintle's nodes it's the node's own.
const ExecuteCommandAgent = "ExecuteCommandAgent"

// LogsByExecutionRole has the log driver awslogs use the credentials of the task's execution role.
const LogsByExecutionRole = "ExecutionRole"

// LogStream returns the name of a container's stream by the options of its log driver awslogs. Without options it's the container's id.
func LogStream(options map[string]string, id, container, task string) string {
	if name := options["awslogs-stream"]; name != "" {
		return name
	}
	if prefix := options["awslogs-stream-prefix"]; prefix != "" {
		return prefix + "/" + container + "/" + task
	}
	return id
}

// FirelensConfiguration makes a container the one that routes the logs of those with the log driver awsfirelens. Type is fluentd or
// fluentbit.
type FirelensConfiguration struct {
	Type    string            `json:"type"`
	Options map[string]string `json:"options,omitempty"`
}

// PortMapping maps a container's port or range of ports. With a HostPort of 0 the node picks one.
type PortMapping struct {
	ContainerPort      int64  `json:"containerPort"`
	ContainerPortRange string `json:"containerPortRange,omitempty"` // first-last
	HostPort           int64  `json:"hostPort"`
	Protocol           string `json:"protocol"`
}

// RegistryAuthentication tells where the credentials of the image's registry are. Type is asm, for Secrets Manager, or ecr.
type RegistryAuthentication struct {
	Type        string       `json:"type"`
	ASMAuthData *ASMAuthData `json:"asmAuthData,omitempty"`
	ECRAuthData *ECRAuthData `json:"ecrAuthData,omitempty"`
}

// ECRAuthData is a registry of Amazon ECR, whose token the node gets as the task's execution role, or else as itself.
type ECRAuthData struct {
	Region           string `json:"region"`
	RegistryID       string `json:"registryId"`
	UseExecutionRole bool   `json:"useExecutionRole"`
}

// ASMAuthData is a secret in Secrets Manager with a user name and a password.
type ASMAuthData struct {
	CredentialsParameter string `json:"credentialsParameter"`
	Region               string `json:"region,omitempty"`
}

// EnvironmentFile is a file of environment variables. Type is s3, and Value is the object's ARN.
type EnvironmentFile struct {
	Type  string `json:"type"`
	Value string `json:"value"`
}

// Secret is a value for an environment variable of the container or an option of its log driver. The node fetches it with the
// task's execution role.
type Secret struct {
	Name      string `json:"name"`
	ValueFrom string `json:"valueFrom"`
	Provider  string `json:"provider"` // asm or ssm
	Region    string `json:"region,omitempty"`
	Type      string `json:"type"`             // ENVIRONMENT_VARIABLE
	Target    string `json:"target,omitempty"` // LOG_DRIVER
}

// MountPoint mounts one of the task's volumes.
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

// ContainerDependency makes a container wait for another one. Condition is START, COMPLETE, SUCCESS or HEALTHY.
type ContainerDependency struct {
	ContainerName string `json:"containerName"`
	Condition     string `json:"condition"`
}

// RestartPolicy restarts a container while its task goes on.
type RestartPolicy struct {
	Enabled              bool    `json:"enabled"`
	IgnoredExitCodes     []int64 `json:"ignoredExitCodes,omitempty"`
	RestartAttemptPeriod int64   `json:"restartAttemptPeriod,omitempty"` // seconds
}

// DockerConfig has the settings without a field in Container, as JSON of the Docker Engine's API: a container's Config and
// HostConfig. The types Config and HostConfig here read and write it.
type DockerConfig struct {
	Config     string `json:"config,omitempty"`
	HostConfig string `json:"hostConfig,omitempty"`
	Version    string `json:"version,omitempty"`
}

// Pintle's own messages.

// PintleNodeInventory tells the control plane about a node what RegisterContainerInstance can't. Nodes send it when they connect
// to ACS, and whenever the health of a GPU changes.
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
	Index     int    `json:"index"`             // the driver's number of the device; for a slice, of the device it's part of
	Bus       string `json:"bus,omitempty"`     // PCI address, as NVIDIA writes it
	Slice     string `json:"slice,omitempty"`   // the number of a slice (MIG) on its device
	Profile   string `json:"profile,omitempty"` // the size of a slice: 3g.20gb
	Links     []int  `json:"links,omitempty"`   // NVLinks to each of the node's devices, in the order of GPUs
	Simulated bool   `json:"simulated,omitempty"`
	// Fault is why no task may have the device, or nil if it's healthy.
	Fault *GPUFault `json:"fault,omitempty"`
}

// GPUFault is a device's fault.
type GPUFault struct {
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

// PintleGPUFault tells a node to make up an error of a simulated GPU. With XID 0 it tells the node that any GPU was repaired, and
// to forget its fault.
type PintleGPUFault struct {
	GPU string `json:"gpu"`
	XID uint64 `json:"xid,omitempty"`
}

// PintleExecute asks a node to run a command at a terminal in a running container. The node connects back for the session.
type PintleExecute struct {
	SessionID     string   `json:"sessionId"`
	TaskArn       string   `json:"taskArn"`
	ContainerName string   `json:"containerName"`
	Command       []string `json:"command"`
	// Log is where the session's transcript is kept, or nil.
	Log *SessionLog `json:"log,omitempty"`
}

// SessionLog is where a session's transcript is kept: in a log group, an S3 bucket, or both.
type SessionLog struct {
	Group  string `json:"group,omitempty"`
	Bucket string `json:"bucket,omitempty"`
	Prefix string `json:"prefix,omitempty"` // of the object's key
}

// SessionEvent tells a node over a session's web socket, as text, what became of the client.
type SessionEvent struct {
	Client SessionClient `json:"client"`
}

// SessionClient is the state of a session's client.
type SessionClient string

// The states of a session's client.
const (
	ClientAttached   SessionClient = "attached"
	ClientDetached   SessionClient = "detached"   // it may come back
	ClientTerminated SessionClient = "terminated" // it doesn't want the session any more
)

// PintleTaskNetwork tells the control plane the addresses of a task with network mode awsvpc, or those of the containers of one with mode
// bridge.
type PintleTaskNetwork struct {
	TaskArn     string `json:"taskArn"`
	PrivateIPv4 string `json:"privateIPv4Address"`
	MacAddress  string `json:"macAddress"`
	// Bridge are the addresses of containers in mode bridge that have some now.
	Bridge []string `json:"bridgeAddresses,omitempty"`
}

// PintleTaskRules tells a node what the security groups of a running task let in and out from now on.
type PintleTaskRules struct {
	TaskArn string        `json:"taskArn"`
	Rules   *NetworkRules `json:"rules"` // nil if it's in no group any more
}

// NetworkRules are what may come in and go out. Replies may always pass, and nothing else may.
type NetworkRules struct {
	In  []NetworkRule `json:"in"`
	Out []NetworkRule `json:"out"`
}

// NetworkRule lets traffic pass.
type NetworkRule struct {
	// Protocol is IANA's number, or -1 for all.
	Protocol int `json:"protocol"`
	// From and To are the first and the last port of TCP and UDP. Of ICMP they are the type and the code, where -1 stands for any. For
	// other protocols they are -1.
	From int `json:"from"`
	To   int `json:"to"`
	// Peers are the blocks of addresses that it comes from or goes to, disjoint and in order.
	Peers []string `json:"peers"`
}

// Prefetching is the attribute of nodes that want to know of images before their tasks do.
const Prefetching = "pintle.prefetch"

// PintlePrefetch tells a node which images its next tasks may have, the most urgent first, instead of those that it was told before.
type PintlePrefetch struct {
	Images []PrefetchImage `json:"images"`
}

// PrefetchImage is an image that the node may pull as itself.
type PrefetchImage struct {
	Image                  string                  `json:"image"`
	RegistryAuthentication *RegistryAuthentication `json:"registryAuthentication,omitempty"`
}

// PintleDeleteVolumes tells a node to delete volumes that it has kept.
type PintleDeleteVolumes struct {
	VolumeIDs []string `json:"volumeIds"`
}

// PintleVolumesDeleted tells the control plane that a node doesn't have volumes any more.
type PintleVolumesDeleted struct {
	VolumeIDs []string `json:"volumeIds"`
}

// PintleNames tells a node the names that it answers to its tasks. It may come in parts.
type PintleNames struct {
	// Zones are all zones, each time.
	Zones []Zone `json:"zones"`
	// Services are those that the node hasn't been told of, or that have changed.
	Services []NamedService `json:"services,omitempty"`
	// Gone are the ids of those that it's to forget.
	Gone []string `json:"gone,omitempty"`
	// Complete ends the parts: from then on the node has been told of all services, so it forgets what an earlier connection told.
	Complete bool `json:"complete,omitempty"`
}

// Zone is the name of a namespace, below which those of its services are.
type Zone struct {
	Name string `json:"name"` // without a dot at its end
	TTL  uint32 `json:"ttl"`  // of negative answers, in seconds
}

// NamedService is a service with a name, or without records an endpoint of Service Connect.
type NamedService struct {
	ID        string            `json:"id"`
	Name      string            `json:"name"`    // without a dot at its end
	Records   map[string]uint32 `json:"records"` // their TTL in seconds, by type: A, AAAA, CNAME, SRV
	Weighted  bool              `json:"weighted,omitempty"`
	Instances []NamedInstance   `json:"instances,omitempty"`
}

// NamedInstance is an instance of a service.
type NamedInstance struct {
	ID        string `json:"id"`
	IPv4      string `json:"ipv4,omitempty"`
	IPv6      string `json:"ipv6,omitempty"`
	CNAME     string `json:"cname,omitempty"`
	Port      uint16 `json:"port,omitempty"`
	Unhealthy bool   `json:"unhealthy,omitempty"`
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
func (*PintleExecute) messageType() string                { return "PintleExecute" }
func (*PintleGPUFault) messageType() string               { return "PintleGPUFault" }
func (*PintleTaskNetwork) messageType() string            { return "PintleTaskNetwork" }
func (*PintleTaskRules) messageType() string              { return "PintleTaskRules" }
func (*PintlePrefetch) messageType() string               { return "PintlePrefetch" }
func (*PintleDeleteVolumes) messageType() string          { return "PintleDeleteVolumes" }
func (*PintleVolumesDeleted) messageType() string         { return "PintleVolumesDeleted" }
func (*PintleNames) messageType() string                  { return "PintleNames" }
