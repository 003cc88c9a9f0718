package acs

// The parts of the Docker Engine API's Config and HostConfig that ECS sets, under the Engine's names:
// https://docs.docker.com/reference/api/engine/

// Config is a container's Config.
type Config struct {
	User            string            `json:",omitempty"`
	WorkingDir      string            `json:",omitempty"`
	Hostname        string            `json:",omitempty"`
	Labels          map[string]string `json:",omitempty"`
	Tty             bool              `json:",omitempty"`
	OpenStdin       bool              `json:",omitempty"`
	Healthcheck     *Healthcheck      `json:",omitempty"`
	NetworkDisabled bool              `json:",omitempty"`
}

// Healthcheck is a container's health check. Its times are in nanoseconds.
type Healthcheck struct {
	Test        []string
	Interval    int64 `json:",omitempty"`
	Timeout     int64 `json:",omitempty"`
	StartPeriod int64 `json:",omitempty"`
	Retries     int   `json:",omitempty"`
}

// HostConfig is a container's HostConfig.
type HostConfig struct {
	NetworkMode       string            `json:",omitempty"`
	LogConfig         *LogConfig        `json:",omitempty"`
	Privileged        bool              `json:",omitempty"`
	ReadonlyRootfs    bool              `json:",omitempty"`
	Init              *bool             `json:",omitempty"`
	CapAdd            []string          `json:",omitempty"`
	CapDrop           []string          `json:",omitempty"`
	DNS               []string          `json:"Dns,omitempty"`
	DNSSearch         []string          `json:"DnsSearch,omitempty"`
	ExtraHosts        []string          `json:",omitempty"`
	SecurityOpt       []string          `json:",omitempty"`
	Ulimits           []Ulimit          `json:",omitempty"`
	Devices           []DeviceMapping   `json:",omitempty"`
	Tmpfs             map[string]string `json:",omitempty"`
	Sysctls           map[string]string `json:",omitempty"`
	ShmSize           int64             `json:",omitempty"` // bytes
	MemoryReservation int64             `json:",omitempty"` // bytes
	MemorySwap        int64             `json:",omitempty"` // bytes
	MemorySwappiness  *int64            `json:",omitempty"`
}

// LogConfig is a log driver and its options.
type LogConfig struct {
	Type   string
	Config map[string]string `json:",omitempty"`
}

// Ulimit is a resource limit.
type Ulimit struct {
	Name string
	Soft int64
	Hard int64
}

// DeviceMapping maps a device of the node into a container.
type DeviceMapping struct {
	PathOnHost        string
	PathInContainer   string
	CgroupPermissions string
}
