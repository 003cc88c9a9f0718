// Package runtime runs containers on this machine. One interface has three implementations: docker (the Engine API), oci (images unpacked
// here and run by runc) and process (plain child processes without image or isolation; chosen by name only). A runtime knows containers,
// not tasks: the agent's engine decides what runs when, and calls it.
package runtime

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path"
	"time"

	"github.com/moby/moby/api/types/container"
)

// Runtime runs containers. Every method may be called from several goroutines. Containers outlive the agent: after a restart, List finds
// them, and Wait, Stop and Logs work on them as before.
type Runtime interface {
	// Name is docker, oci or process.
	Name() string

	// Pull pulls the image and returns its digest ("sha256:…", "" if there is none). A ref is an OCI reference, "oci-layout:/path" or
	// "rootfs:/path.tar[.gz]".
	Pull(ctx context.Context, ref string, auth *RegistryAuth) (digest string, err error)

	// Stored returns the digest of an image that an earlier Pull has left on this machine, or ErrImageNotFound.
	Stored(ctx context.Context, ref string) (digest string, err error)

	// Create makes the container under spec.ID without starting it. If the ID exists that's no error: the agent may have died before
	// noting that it had created it.
	Create(ctx context.Context, spec *Spec) error

	// Start starts a created container. Starting one that is already started is no error.
	Start(ctx context.Context, id string) error

	// Revive makes a container that ended at this time, as Wait told, ready for Start once more, with its files and its output. A runtime
	// without such a step starts it at once. A container that has been started since then is left as it is.
	Revive(ctx context.Context, id string, ended time.Time) error

	// Wait blocks until the container has exited and its ports are free. The container may have been started by an earlier agent, or
	// have exited already.
	Wait(ctx context.Context, id string) (Exit, error)

	// Stop sends SIGTERM (or the image's stop signal), and SIGKILL after the grace period.
	// It returns when the container has exited.
	Stop(ctx context.Context, id string, grace time.Duration) error

	// Remove deletes an exited or never started container, with what it wrote and its logs.
	Remove(ctx context.Context, id string) error

	// RemoveVolume deletes a named volume that no container uses any more. A missing one is no error.
	RemoveVolume(ctx context.Context, name string) error

	// List returns all containers of an owner, in whatever state.
	List(ctx context.Context, owner string) ([]Container, error)

	// NetNS returns the path of the container's network namespace if that has a way out, else "". It is there once the container is
	// created, or started if the runtime can't make it sooner.
	NetNS(ctx context.Context, id string) (path string, err error)

	// Exec runs a command inside a running container and returns its exit code.
	Exec(ctx context.Context, id string, e Exec) (exitCode int, err error)

	// Stats reads the container's resource use now.
	Stats(ctx context.Context, id string) (Stats, error)

	// Logs streams the container's output after the cursor ("" is the beginning). With follow it goes on to the container's end. emit
	// gets each line with the cursor after it.
	Logs(ctx context.Context, id, cursor string, follow bool, emit func(Line) error) error
}

// GPUChecker is a Runtime that needs something of NVIDIA's to give containers real GPUs.
type GPUChecker interface {
	// CheckGPUs says what is missing for containers to get these GPUs, and what to do. It starts nothing.
	CheckGPUs(ctx context.Context, ids []string) error
}

// Spec describes one container.
type Spec struct {
	ID     string            // unique on the machine; letters, digits, '-', '_'
	Owner  string            // the agent's container instance; List filters by it
	Labels map[string]string // com.amazonaws.ecs.* and the like
	Image  string

	Entrypoint []string // nil: the image's; one empty word: none
	Command    []string // nil: the image's (unless Entrypoint is set, as Docker does)
	Env        []string // KEY=value; added to the image's
	WorkingDir string
	User       string
	Hostname   string

	CgroupParent   string // of the task's containers; empty: the runtime's own
	CPUShares      int64  // relative weight, 1024 a core; at least 2
	CPUQuotaMilli  int64  // hard limit in thousandths of a core; 0 for none
	MemoryBytes    int64  // hard limit; 0 for none
	MemoryReserve  int64  // soft limit; 0 for none
	MemorySwap     int64  // memory plus swap, as Docker has it; 0 for the default, -1 for no limit
	Swappiness     *int64
	ShmSizeBytes   int64
	Ulimits        []Ulimit
	Sysctls        map[string]string
	CapAdd         []string
	CapDrop        []string
	Privileged     bool
	ReadonlyRootfs bool
	Init           bool // run an init process as pid 1
	Tty            bool
	OpenStdin      bool
	Devices        []Device
	Tmpfs          []Tmpfs
	Mounts         []Mount
	VolumesFrom    []VolumesFrom
	ExtraHosts     []string // name:ip
	DNS            []string
	DNSSearch      []string
	SecurityOpt    []string
	StopSignal     string // empty: the image's, else SIGTERM

	// GPUs are the ids (NVML UUIDs) of the devices that the container sees. It sees no others.
	GPUs []string
	// MachineGPUs are all the devices of its node, which a privileged container sees if it has none of its own and doesn't ask for others. nil
	// leaves it what it asks for.
	MachineGPUs []string
	// SimulatedGPUs says that GPUs name no hardware: they only appear in the environment.
	SimulatedGPUs bool

	Network Network
	Pid     string // "host", or "container:<id>"; empty: its own
	IPC     string // likewise
}

// Network says which network a container sees.
type Network struct {
	Mode  string // "host", "none", "bridge", or "netns"
	NetNS string // path of an existing network namespace, for Mode "netns"
	IP    string // its address there
	Ports []Port // published ports, for Mode "bridge"
	Links []string
}

// Port publishes a container's port on the machine.
type Port struct {
	ContainerPort uint16
	HostPort      uint16 // never 0, since the caller picks it
	Protocol      string // tcp or udp
}

// Ulimit is one resource limit of a container.
type Ulimit struct {
	Name string // as in setrlimit(2) without RLIMIT_, lower case: nofile, memlock …
	Soft int64  // -1 is unlimited
	Hard int64  // likewise
}

// Device maps one of the machine's devices into the container.
type Device struct {
	HostPath      string
	ContainerPath string
	Permissions   string // some of "rwm"
}

// Tmpfs mounts memory at a path.
type Tmpfs struct {
	Path      string
	SizeBytes int64
	Options   []string
}

// Mount mounts a directory of the machine, or a named volume.
type Mount struct {
	Source      string // absolute path, or a volume's name when Volume is set
	Destination string
	ReadOnly    bool
	Volume      bool
	MustExist   bool // a missing volume is an error, and isn't made
	// Driver, DriverOpts and Labels are what a volume gets that isn't there yet. An empty driver is local, whose options are type, o and
	// device, as mount(8) has them.
	Driver     string
	DriverOpts map[string]string
	Labels     map[string]string
}

// IsAtSamePlace reports whether a container has both mounts at one path.
func (m Mount) IsAtSamePlace(other Mount) bool {
	return path.Clean(m.Destination) == path.Clean(other.Destination)
}

// NoVolume is the error for a missing volume that MustExist.
func NoVolume(name string) error {
	return fmt.Errorf("volume %s does not exist on this node, and its autoprovision is false", name)
}

// VolumesFrom shows another container's image's volumes.
type VolumesFrom struct {
	ID       string // the other container's
	ReadOnly bool
}

// RegistryAuth holds the credentials for a registry, and how to get there.
type RegistryAuth struct {
	Username string
	Password string
	Via      *Via // nil if the registry is where the image's name says
}

// Via is where a registry is.
type Via struct {
	Host  string // with the port
	Plain bool   // whether it takes HTTP without TLS
	TLS   *tls.Config
	// Through has layers come another way where the registry says so; nil if there is none.
	Through func(http.RoundTripper) http.RoundTripper
}

// Exit says how a container ended.
type Exit struct {
	Code       int
	OOMKilled  bool
	FinishedAt time.Time
	Error      string // why it could not run, if it never did
}

// Container is a container that List found.
type Container struct {
	ID        string // the Spec's
	Unknown   bool   // whose it is isn't known, since its specification is damaged
	RuntimeID string // the runtime's own; empty if it has none
	ImageID   string // likewise
	Labels    map[string]string
	Status    Status
	PID       int // on this machine, when running
	StartedAt time.Time
	Exit      Exit // when exited
}

// Status is a container's state.
type Status string

// The values of Status.
const (
	Created Status = "CREATED"
	Running Status = "RUNNING"
	Exited  Status = "EXITED"
)

// Exec is a command to run inside a container.
type Exec struct {
	Command []string
	User    string
	Env     []string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// Tty gives the command a terminal of a Size, whose output is Stdout. The channel Resize has its later sizes; it may be nil, and is never
	// closed.
	Tty    bool
	Size   Size
	Resize <-chan Size
}

// Size is a terminal's, in characters.
type Size struct{ Cols, Rows uint16 }

// Stats is a container's resource use at one moment.
type Stats struct {
	At          time.Time
	CPU         time.Duration // processor time used since its start
	MemoryBytes int64         // without reclaimable cache
	MemoryLimit int64
	RxBytes     int64
	TxBytes     int64
	ReadBytes   int64
	WrBytes     int64
	// Docker is all that is known, in the form of Docker's API; nil if the runtime knows no more than the above.
	Docker *container.StatsResponse
}

// Line is one line of a container's output.
type Line struct {
	At     time.Time
	Stderr bool
	Text   string // without its newline
	Cursor string // continues after this line
}

// Errors that callers decide on.
var (
	ErrNotFound      = errors.New("no such container")
	ErrImageNotFound = errors.New("no such image")
	ErrImageName     = errors.New("invalid reference format") // no image can have this name
	ErrImageInUse    = errors.New("the image is in use")
	ErrUnsupported   = errors.New("not supported by this runtime")
	ErrUnavailable   = errors.New("the container engine cannot be reached") // it may be restarting
	ErrCannotStart   = errors.New("the container cannot start")             // Create's, for what others find out when they start it
)
