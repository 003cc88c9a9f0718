package node

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"path"
	"path/filepath"
	goruntime "runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/file"
	"github.com/pintle/pintle/internal/node/kernel"
	"github.com/pintle/pintle/internal/node/network"
)

// identity is what a node remembers about itself.
type identity struct {
	Cluster              string
	ContainerInstanceArn string
	// Owner marks the node's containers. It's the first ARN that the node ever had, and stays even if the control plane gives the
	// node another one: the containers must still be found.
	Owner string
	// InstanceID is the machine's id, in EC2's form.
	InstanceID string
	// InstanceType is what the node was registered as; a container instance keeps its type.
	InstanceType string
	// MetadataPort is the port of the metadata endpoint that containers were given.
	MetadataPort int
	// ProxyPort is that of the proxy for AWS's hosts, or 0.
	ProxyPort int `json:",omitempty"`
}

func (a *Agent) identityPath() string { return filepath.Join(a.config.DataDir, "instance.json") }

// loadIdentity reads who this node was. A node that has forgotten it would not find its containers, and give others what they hold.
func (a *Agent) loadIdentity() (id identity, err error) {
	path := a.identityPath()
	b, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return id, nil
	}
	if err != nil {
		return id, err
	}
	content, sealed := file.Unseal(b)
	if !sealed {
		content = b // agents before 2026-12 wrote no checksum
	}
	if err := json.Unmarshal(content, &id); err != nil {
		return id, fmt.Errorf("%s is damaged, which says who this node is and whose its containers are: put back a copy of it, or stop the node's "+
			"containers and start the agent in another data directory (pintle up --fresh): %w", path, err)
	}
	return id, nil
}

func (a *Agent) storeIdentity(id identity) error {
	a.identity.Store(&id)
	return errors.Join(file.WriteSealed(a.identityPath(), id, true), file.SyncDir(a.config.DataDir))
}

// register registers the node, under its old ARN if it has one. It retries if the control plane can't answer yet, but not if that refuses.
func (a *Agent) register(ctx context.Context) error {
	id, err := a.loadIdentity()
	if err != nil {
		return err
	}
	if id.InstanceType != "" && id.InstanceType != a.config.InstanceType {
		return fmt.Errorf("the node of %s is a %s and cannot become a %s: give it the type that it had, or another data directory (pintle up --fresh)",
			a.config.DataDir, id.InstanceType, a.config.InstanceType)
	}
	id.InstanceType = a.config.InstanceType
	id.InstanceID = cmp.Or(a.config.InstanceID, id.InstanceID, newInstanceID())
	if err := a.claim(id); err != nil {
		return err
	}
	in := a.registration(ctx)
	document, err := json.Marshal(a.identityDocument(ctx, id.InstanceID))
	if err != nil {
		return err
	}
	in.InstanceIdentityDocument = aws.String(string(document))
	if id.Cluster == a.config.Cluster && id.ContainerInstanceArn != "" {
		in.ContainerInstanceArn = aws.String(id.ContainerInstanceArn)
	}
	refusals := 0
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 10*time.Second) {
		out, err := a.config.ECS.RegisterContainerInstance(ctx, in)
		if err == nil {
			id.Cluster = a.config.Cluster
			id.ContainerInstanceArn = aws.ToString(out.ContainerInstance.ContainerInstanceArn)
			if id.Owner == "" {
				id.Owner = id.ContainerInstanceArn
			}
			a.log.Info("registered", "cluster", id.Cluster, "containerInstance", id.ContainerInstanceArn, "endpoint", a.config.Endpoint,
				"runtime", a.config.Runtime.Name())
			return errors.Join(a.claim(id), a.storeIdentity(id))
		}
		if isRefused(err) {
			if in.ContainerInstanceArn == nil {
				return fmt.Errorf("register as a container instance of cluster %s: %w", a.config.Cluster, err)
			}
			in.ContainerInstanceArn = nil // the old one was deregistered or forgotten, so this becomes a new instance
			continue
		}
		if isOfKey(err) {
			if refusals++; refusals == maxRefusals {
				return fmt.Errorf("the control plane at %s refuses this node's key: start the agent with the one that the control plane has, "+
					"in AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY: %w", a.config.Endpoint, err)
			}
		}
		a.log.Warn("cannot register; trying again", "error", err)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
}

// claim makes this process the only one on the machine that is the node. An agent with a copy of the data directory would remove the
// containers that were started after it was copied, before the control plane could refuse it.
func (a *Agent) claim(id identity) error {
	if id.Owner == "" || a.release != nil {
		return nil
	}
	release, held, err := kernel.Claim("pintle-node/" + path.Base(id.Owner) + "/" + id.InstanceID)
	if held {
		return fmt.Errorf("another agent on this machine is the node of %s, which is a copy: end that agent, or start this one with an empty "+
			"data directory", a.config.DataDir)
	}
	a.release = release
	return err
}

// newInstanceID makes up a machine id in EC2's form.
func newInstanceID() string {
	var b [9]byte
	rand.Read(b[:]) // never fails
	return "i-" + hex.EncodeToString(b[:])[:17]
}

// identityDocument describes the machine as EC2 does to its instances:
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-identity-documents.html
func (a *Agent) identityDocument(ctx context.Context, id string) map[string]string {
	m := map[string]string{
		"instanceId":       id,
		"instanceType":     a.config.InstanceType,
		"region":           a.config.Region,
		"availabilityZone": a.config.Zone,
		"architecture":     architecture(),
	}
	if ip := addressTowards(ctx, a.config.Endpoint); ip != "" {
		m["privateIp"] = ip
	}
	return m
}

// addressTowards returns the machine's address in the network of an endpoint, or "" if it can't tell. It sends no packet.
func addressTowards(ctx context.Context, endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second) // for the name lookup
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "udp", net.JoinHostPort(u.Hostname(), cmp.Or(u.Port(), "443")))
	if err != nil {
		return ""
	}
	defer c.Close() //nolint:errcheck // nothing was sent
	return c.LocalAddr().(*net.UDPAddr).IP.String()
}

// maxRefusals is how often a node tries to register with a key that is refused. The key may be about to be changed.
const maxRefusals = 5

// isOfKey reports whether a call was refused because of the key it was signed with.
func isOfKey(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && slices.Contains([]string{
		"UnrecognizedClientException", "InvalidSignatureException", "MissingAuthenticationTokenException", "AccessDeniedException",
		"IncompleteSignatureException", "ExpiredTokenException",
	}, api.ErrorCode())
}

// refusals are the codes of calls that will never be accepted. AccessDeniedException means that something is another node's.
var refusals = []string{"AccessDeniedException", "ClientException", "ClusterNotFoundException", "InvalidParameterException"}

// isRefused reports whether the control plane understood a call and will never accept it.
func isRefused(err error) bool {
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && slices.Contains(refusals, api.ErrorCode())
}

// machinePorts are reserved for the machine: SSH, the Docker engine's and Amazon's agent's.
var machinePorts = []string{"22", "2375", "2376", "51678", "51679"}

func (a *Agent) registration(ctx context.Context) *ecs.RegisterContainerInstanceInput {
	in := &ecs.RegisterContainerInstanceInput{
		Cluster: &a.config.Cluster,
		TotalResources: []types.Resource{
			{Name: aws.String("CPU"), Type: aws.String("INTEGER"), IntegerValue: int32(a.config.CPU)},
			{Name: aws.String("MEMORY"), Type: aws.String("INTEGER"), IntegerValue: int32(a.config.MemoryMiB)},
			{Name: aws.String("PORTS"), Type: aws.String("STRINGSET"), StringSetValue: machinePorts},
			{Name: aws.String("PORTS_UDP"), Type: aws.String("STRINGSET"), StringSetValue: []string{}},
		},
		VersionInfo: &types.VersionInfo{AgentVersion: aws.String(a.config.Version)},
	}
	for _, d := range a.config.GPUs.Devices() {
		in.PlatformDevices = append(in.PlatformDevices, types.PlatformDevice{Id: aws.String(d.ID), Type: types.PlatformDeviceTypeGpu})
	}
	attributes := a.attributes()
	for _, driver := range a.volumeDrivers(ctx) {
		attributes["ecs.capability.docker-plugin."+strings.ReplaceAll(driver, ":", ".")] = "" // attributes' names have no colons
	}
	for _, name := range slices.Sorted(maps.Keys(attributes)) {
		at := types.Attribute{Name: aws.String(name)}
		if v := attributes[name]; v != "" {
			at.Value = aws.String(v)
		}
		in.Attributes = append(in.Attributes, at)
	}
	return in
}

// capabilities are what task definitions may require, named as Amazon's agent does.
var capabilities = []string{
	"com.amazonaws.ecs.capability.logging-driver.awslogs", "com.amazonaws.ecs.capability.logging-driver.json-file",
	"com.amazonaws.ecs.capability.logging-driver.none", "com.amazonaws.ecs.capability.privileged-container",
	"com.amazonaws.ecs.capability.task-iam-role", "com.amazonaws.ecs.capability.task-iam-role-network-host",
	"com.amazonaws.ecs.capability.docker-remote-api.1.17", "com.amazonaws.ecs.capability.docker-remote-api.1.18",
	"com.amazonaws.ecs.capability.docker-remote-api.1.19", "com.amazonaws.ecs.capability.docker-remote-api.1.21",
	"com.amazonaws.ecs.capability.docker-remote-api.1.24", "com.amazonaws.ecs.capability.docker-remote-api.1.25",
	"com.amazonaws.ecs.capability.docker-remote-api.1.29", "com.amazonaws.ecs.capability.docker-remote-api.1.32",
	"com.amazonaws.ecs.capability.docker-remote-api.1.35",
	"ecs.capability.container-health-check", "ecs.capability.container-ordering", "ecs.capability.container-restart-policy",
	"ecs.capability.docker-plugin.local", "ecs.capability.execute-command", "ecs.capability.execution-role-awslogs", "ecs.capability.external",
	"ecs.capability.network.container-port-range",
	"ecs.capability.pid-ipc-namespace-sharing", "ecs.capability.task-cpu-mem-limit", "ecs.capability.task-protection",
}

// firelensCapabilities are those of nodes that can run log routers. A configuration from S3 isn't one of them.
var firelensCapabilities = []string{
	"com.amazonaws.ecs.capability.logging-driver.awsfirelens", "ecs.capability.firelens.fluentbit", "ecs.capability.firelens.fluentd",
	"ecs.capability.firelens.non-root-user", "ecs.capability.firelens.options.config.file",
	"ecs.capability.logging-driver.awsfirelens.log-driver-buffer-limit",
}

// routesLogs reports whether the node's containers can have files of this machine, as a log router's configuration and socket, and the
// agent may write to a socket that belongs to whoever the router runs as.
func (a *Agent) routesLogs() bool { return a.mounts() && os.Geteuid() == 0 }

// enforcesGroups reports whether the rules of security groups hold in the networks of the node's tasks.
func (a *Agent) enforcesGroups() bool {
	return a.mounts() && os.Geteuid() == 0 && network.CanRestrict()
}

// volumeDrivers lists the drivers that the runtime has for volumes besides Docker's own. An engine that doesn't answer now is asked again by the
// next agent.
func (a *Agent) volumeDrivers(ctx context.Context) []string {
	engine, ok := a.config.Runtime.(interface {
		VolumeDrivers(context.Context) ([]string, error)
	})
	if !ok {
		return nil
	}
	drivers, err := engine.VolumeDrivers(ctx)
	if err != nil {
		a.log.Warn("tasks with volumes of the engine's plugins aren't placed here", "error", err)
	}
	return drivers
}

// mounts reports whether containers can have files of this machine mounted.
func (a *Agent) mounts() bool {
	local, ok := a.config.Runtime.(interface{ IsLocal() bool })
	return a.config.Runtime.Name() != "process" && (!ok || local.IsLocal())
}

// hasDataSets reports whether tasks can have volumes that show what lies in S3.
func (a *Agent) hasDataSets() bool {
	return a.config.DataSets != nil && a.config.Objects != nil && a.mounts()
}

// architectures maps Go's names to ECS's.
var architectures = map[string]string{"amd64": "x86_64"}

// architecture returns the machine's architecture, in ECS's words.
func architecture() string { return cmp.Or(architectures[goruntime.GOARCH], goruntime.GOARCH) }

// fetches returns the capabilities of what the node can fetch as a task's execution role.
func (a *Agent) fetches() (all []string) {
	if a.config.Parameters != nil {
		all = append(all, "ecs.capability.secrets.ssm.environment-variables")
		if a.routesLogs() {
			all = append(all, "ecs.capability.secrets.ssm.bootstrap.log-driver")
		}
	}
	if a.config.SecretValues != nil {
		all = append(all, "ecs.capability.secrets.asm.environment-variables", "ecs.capability.private-registry-authentication.secretsmanager")
		if a.routesLogs() {
			all = append(all, "ecs.capability.secrets.asm.bootstrap.log-driver")
		}
	}
	if a.config.Objects != nil {
		all = append(all, "ecs.capability.env-files.s3")
	}
	if a.hasDataSets() {
		all = append(all, "ecs.capability.docker-plugin."+acs.S3Driver)
	}
	return all
}

// hasFileSystems reports whether tasks can have directories of shared file systems. Mounting them takes root.
func (a *Agent) hasFileSystems() bool {
	return a.config.FileSystems != nil && a.mounts() && os.Geteuid() == 0
}

// hasBlockVolumes reports whether tasks can have volumes of EBS's kind.
func (a *Agent) hasBlockVolumes() bool { return a.config.BlockVolumes != nil && a.mounts() }

func (a *Agent) attributes() map[string]string {
	m := map[string]string{
		"ecs.instance-type":     a.config.InstanceType,
		"ecs.availability-zone": a.config.Zone,
		"ecs.os-type":           "linux",
		"ecs.cpu-architecture":  architecture(),
		"pintle.runtime":        a.config.Runtime.Name(),
		"pintle.node":           a.config.Name,
	}
	for _, c := range capabilities {
		m[c] = ""
	}
	for _, c := range a.fetches() {
		m[c] = ""
	}
	if a.hasFileSystems() {
		m["ecs.capability.efs"] = ""
		m["ecs.capability.efsAuth"] = ""
	}
	if a.config.Prefetch {
		m[acs.Prefetching] = ""
	}
	if a.hasBlockVolumes() {
		m["ecs.capability.storage.ebs-task-volume-attach"] = ""
		m[acs.ManagedVolumes] = ""
		for _, fileSystem := range a.config.BlockVolumes.FileSystems() {
			m[acs.ManagedVolumes+"."+fileSystem] = ""
		}
	}
	if a.config.Networks != nil || a.config.Runtime.Name() == "process" {
		m["ecs.capability.task-eni"] = ""
	}
	m["pintle.security-groups"] = "ignored"
	if a.enforcesGroups() {
		m["pintle.security-groups"] = "enforced"
	}
	if a.canConnect() {
		m[connectAttribute] = ""
	}
	if a.routesLogs() {
		for _, c := range firelensCapabilities {
			m[c] = ""
		}
	}
	if driver := a.config.GPUs.Driver(); driver != "" {
		m["ecs.capability.gpu-driver-version"] = driver
		m["ecs.capability.nvidia-driver-version."+driver] = ""
	}
	if a.simulated() {
		m["pintle.gpu"] = "simulated"
	}
	maps.Copy(m, a.config.Attributes)
	return m
}

// listen opens the metadata endpoint on the port that running containers know, or on any other.
func (a *Agent) listen() (net.Listener, error) {
	id := *a.identity.Load()
	l, err := net.Listen("tcp", "127.0.0.1:"+strconv.Itoa(id.MetadataPort))
	if err != nil && id.MetadataPort != 0 {
		a.log.Warn("the metadata endpoint moves: running containers will not find it", "error", err)
		l, err = net.Listen("tcp", "127.0.0.1:0")
	}
	if err != nil {
		return nil, fmt.Errorf("listen for the task metadata endpoint: %w", err)
	}
	id.MetadataPort = l.Addr().(*net.TCPAddr).Port
	return l, a.storeIdentity(id)
}
