package state

import (
	"cmp"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	ecs "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	"github.com/aws/aws-sdk-go-v2/service/servicediscovery/types"

	"github.com/pintle/pintle/internal/store"
)

// The rows of AWS Cloud Map.

// Namespace is a namespace: the services in it are found by names below its own, or by DiscoverInstances alone.
type Namespace struct {
	ID               string
	ARN              string
	Name             string
	Type             types.NamespaceType
	Description      string      `json:",omitempty"`
	VPC              string      `json:",omitempty"` // kept for who asks: all nodes answer all names
	HostedZone       string      `json:",omitempty"` // an id without a zone behind it
	TTL              int64       `json:",omitempty"` // of its SOA record
	CreatorRequestID string      `json:",omitempty"`
	Tags             []types.Tag `json:",omitempty"`
	Created          time.Time
}

// HasNames reports whether nodes answer names of the namespace.
func (n *Namespace) HasNames() bool { return n.Type == types.NamespaceTypeDnsPrivate }

// DiscoveryService is a service of Cloud Map.
type DiscoveryService struct {
	ID               string
	ARN              string
	Name             string
	NamespaceID      string
	Description      string                         `json:",omitempty"`
	DNS              *types.DnsConfig               `json:",omitempty"` // nil if it has no names
	CustomHealth     *types.HealthCheckCustomConfig `json:",omitempty"`
	Attributes       map[string]string              `json:",omitempty"`
	Endpoint         *Endpoint                      `json:",omitempty"` // nil unless it is one of Service Connect
	Revision         int64                          // of its instances
	CreatorRequestID string                         `json:",omitempty"`
	Request          []byte                         `json:",omitempty"` // the hash of what created it
	Tags             []types.Tag                    `json:",omitempty"`
	Created          time.Time
}

// DiscoveryInstance is an instance of a service of Cloud Map.
type DiscoveryInstance struct {
	Service          string // its id
	ID               string
	Attributes       map[string]string
	Health           types.CustomHealthStatus // for a service with custom health
	CreatorRequestID string                   `json:",omitempty"`
	Task             string                   `json:",omitempty"` // the ARN of the ECS task that it is, or ""
}

// Key returns the instance's key.
func (i *DiscoveryInstance) Key() string { return InstanceKey(i.Service, i.ID) }

// InstanceKey returns the key of a service's instance.
func InstanceKey(service, id string) string { return service + " " + id }

// The attributes of instances that Cloud Map gives a meaning, and those that ECS sets:
// API_RegisterInstance, and "Use service discovery to connect Amazon ECS services with DNS names".
const (
	AttributeIPv4         = "AWS_INSTANCE_IPV4"
	AttributeIPv6         = "AWS_INSTANCE_IPV6"
	AttributePort         = "AWS_INSTANCE_PORT"
	AttributeCNAME        = "AWS_INSTANCE_CNAME"
	AttributeAlias        = "AWS_ALIAS_DNS_NAME"
	AttributeInstanceID   = "AWS_EC2_INSTANCE_ID"
	AttributeInitHealth   = "AWS_INIT_HEALTH_STATUS"
	attributeZone         = "AVAILABILITY_ZONE"
	attributeRegion       = "REGION"
	attributeClusterName  = "ECS_CLUSTER_NAME"
	attributeServiceName  = "ECS_SERVICE_NAME"
	attributeFamily       = "ECS_TASK_DEFINITION_FAMILY"
	attributeTaskSet      = "ECS_TASK_SET_EXTERNAL_ID"
	attributeTaskInstance = "EC2_INSTANCE_ID"
)

// DiscoveryOperation is the record of a change. Pintle makes it at once, so it's there only for who waits for it.
type DiscoveryOperation struct {
	types.Operation
	RequestID string `json:",omitempty"` // the CreatorRequestId or UpdaterRequestId of the call
	Request   []byte `json:",omitempty"` // the hash of the call's input
}

// TaskRegistry is where a service of ECS registers its task in Cloud Map.
type TaskRegistry struct {
	Service       string // the id of Cloud Map's service
	Port          int32  `json:",omitzero"`
	ContainerName string `json:",omitempty"`
	ContainerPort int32  `json:",omitzero"`
	TaskSet       string `json:",omitempty"` // the external id of its task set
	// Checked means that one of its essential containers has a health check.
	Checked bool `json:",omitzero"`
}

// Endpoint is what ECS knows of a service of Cloud Map that it manages for Service Connect: an ECS service is reached by it.
type Endpoint struct {
	Owner    string                  // the ARN of the ECS service
	Protocol ecs.ApplicationProtocol `json:",omitempty"` // of the port; TCP if it is empty
	Aliases  []EndpointAlias         // by which clients reach it
	// IdleSeconds and RequestSeconds are the time-outs that its proxies keep, if they aren't the default ones. 0 is none.
	IdleSeconds    *int32 `json:",omitempty"`
	RequestSeconds *int32 `json:",omitempty"`
}

// EndpointAlias is a name and a port of an endpoint.
type EndpointAlias struct {
	Name string
	Port int32
}

// TaskConnect is how a task takes part in Service Connect, as its deployment began.
type TaskConnect struct {
	Endpoints []TaskEndpoint `json:",omitempty"` // by which others reach it
	Reaches   []string       `json:",omitempty"` // the ids of Cloud Map's services that it reaches
	// Log is where its proxy logs, if that isn't on the node alone, and Attributes what an instance needs for that.
	Log        *ecs.LogConfiguration `json:",omitempty"`
	Attributes []string              `json:",omitempty"`
}

// TaskEndpoint is one endpoint of a task.
type TaskEndpoint struct {
	TaskRegistry
	Endpoint Endpoint
	// Ingress is the port at which the proxy lets others in, or 0 if they reach the container itself.
	Ingress int32 `json:",omitzero"`
}

// PublishEndpoints makes what a deployment says of its endpoints what new clients are told.
func (tx *Tx) PublishEndpoints(c *TaskConnect) {
	if c == nil {
		return
	}
	for _, e := range c.Endpoints {
		s := tx.DiscoveryServices.Get(e.Service)
		if s == nil {
			continue // somebody has deleted it
		}
		row := *s
		row.Endpoint = &e.Endpoint
		tx.DiscoveryServices.Put(&row)
	}
}

// DropEndpoint deletes the service of Cloud Map behind an endpoint that an ECS service doesn't have anymore.
func (tx *Tx) DropEndpoint(id, owner string) {
	s := tx.DiscoveryServices.Get(id)
	if s == nil || s.Endpoint == nil || s.Endpoint.Owner != owner {
		return
	}
	for _, i := range slices.Collect(tx.InstancesOf(id)) {
		tx.DiscoveryInstances.Delete(i.Key())
	}
	tx.DiscoveryServices.Delete(id)
}

// EndpointsOf returns the endpoints of Service Connect in a namespace.
func (v *View) EndpointsOf(namespace string) iter.Seq[*DiscoveryService] {
	return func(yield func(*DiscoveryService) bool) {
		for s := range v.DiscoveryServicesOf(namespace) {
			if s.Endpoint != nil && !yield(s) {
				return
			}
		}
	}
}

// NamespaceNamed returns the namespace with a name, or nil. Names of DNS have no case.
func (v *View) NamespaceNamed(name string) *Namespace {
	for n := range v.Namespaces.By(namespacesByName, strings.ToLower(name)) {
		return n
	}
	return nil
}

// DiscoveryServicesOf returns the services of a namespace.
func (v *View) DiscoveryServicesOf(namespace string) iter.Seq[*DiscoveryService] {
	return v.DiscoveryServices.By(discoveryServicesByNamespace, namespace)
}

// InstancesOf returns the instances of a service of Cloud Map, sorted by their ids.
func (v *View) InstancesOf(service string) iter.Seq[*DiscoveryInstance] {
	return func(yield func(*DiscoveryInstance) bool) {
		for i := range v.DiscoveryInstances.Behind(service + " ") {
			if i.Service != service || !yield(i) {
				return
			}
		}
	}
}

// PutInstance puts an instance, and counts the change unless it's one of the health alone: API_DiscoverInstancesRevision.
func (tx *Tx) PutInstance(i *DiscoveryInstance) {
	old := tx.DiscoveryInstances.Get(i.Key())
	tx.DiscoveryInstances.Put(i)
	if old == nil || !maps.Equal(old.Attributes, i.Attributes) {
		tx.changedInstances(i.Service, 1)
	} else {
		tx.changedInstances(i.Service, 0)
	}
}

// DeleteInstance deletes an instance. If it's a task, the task stays unregistered.
func (tx *Tx) DeleteInstance(i *DiscoveryInstance) {
	tx.DiscoveryInstances.Delete(i.Key())
	tx.changedInstances(i.Service, 1)
	t := tx.Tasks.Get(i.Task)
	if i.Task == "" || t == nil {
		return
	}
	c := *t
	if c.Registry != nil && c.Registry.Service == i.Service {
		c.Registry = nil
	}
	if c.Connect != nil {
		left := *c.Connect
		left.Endpoints = slices.DeleteFunc(slices.Clone(left.Endpoints), func(e TaskEndpoint) bool { return e.Service == i.Service })
		c.Connect = &left
	}
	tx.Tasks.Put(&c)
}

// changedInstances puts a service's row anew, so that who looks for changes of the row hears of those of its instances, too. Some count.
func (tx *Tx) changedInstances(service string, count int64) {
	if s := tx.DiscoveryServices.Get(service); s != nil {
		c := *s
		c.Revision += count
		tx.DiscoveryServices.Put(&c)
	}
}

// changedTasksOf tells who looks for changes of services that the tasks of a container instance have changed, as instances of theirs.
func (tx *Tx) changedTasksOf(containerInstance string) {
	changed := map[string]bool{}
	for t := range tx.Tasks.By(TasksByInstance, containerInstance) {
		if t.Registry != nil {
			changed[t.Registry.Service] = true
		}
		if t.Connect == nil {
			continue
		}
		for _, e := range t.Connect.Endpoints {
			changed[e.Service] = true
		}
	}
	for service := range changed {
		tx.changedInstances(service, 0)
	}
}

// IsUnhealthy reports whether an instance is to be asked only where all are unhealthy: as its checks say, if the service has some, or as its
// task's node is away.
func (v *View) IsUnhealthy(s *DiscoveryService, i *DiscoveryInstance) bool {
	if s.CustomHealth != nil && i.Health == types.CustomHealthStatusUnhealthy {
		return true
	}
	t := v.Tasks.Get(i.Task)
	if t == nil {
		return false
	}
	node := v.ContainerInstances.Get(aws.ToString(t.ContainerInstanceArn))
	return node != nil && node.Away
}

// taskTable is the table of tasks in a transaction: what Cloud Map says of a task changes together with its row, whoever changes it.
type taskTable struct {
	Table[*Task]
	tx *Tx
}

// Put puts a task, and has it registered in Cloud Map as long as it runs and is to run.
func (t taskTable) Put(row *Task) {
	old := t.Get(aws.ToString(row.TaskArn))
	t.Table.Put(row)
	t.tx.emitTask(old, row)
	t.tx.emitRemaining(old, row)
	if row.Registry != nil {
		t.tx.register(old, row, row.Registry)
	}
	if row.Connect == nil {
		return
	}
	for i := range row.Connect.Endpoints {
		t.tx.register(old, row, &row.Connect.Endpoints[i].TaskRegistry)
	}
}

// register keeps the instance of a task in one registry as the task is.
func (tx *Tx) register(old, t *Task, r *TaskRegistry) {
	id := NameOf(*t.TaskArn)
	was := tx.DiscoveryInstances.Get(InstanceKey(r.Service, id))
	attributes := tx.attributesOf(t, r)
	switch s := tx.DiscoveryServices.Get(r.Service); {
	case attributes == nil || s == nil:
		if was != nil {
			tx.DiscoveryInstances.Delete(was.Key())
			tx.changedInstances(was.Service, 1)
		}
	case was == nil:
		attributes[AttributeInitHealth] = string(t.initialHealth(r))
		tx.PutInstance(&DiscoveryInstance{Service: s.ID, ID: id, Attributes: attributes, Health: t.initialHealth(r), Task: *t.TaskArn})
	default:
		i := *was
		i.Attributes = attributes
		attributes[AttributeInitHealth] = was.Attributes[AttributeInitHealth]
		if old == nil || old.HealthStatus != t.HealthStatus {
			i.Health = t.registeredHealth(i.Health)
		}
		if i.Health != was.Health || !maps.Equal(attributes, was.Attributes) {
			tx.PutInstance(&i)
		}
	}
}

// initialHealth is healthy, or for a task with health checks what they say so far.
func (t *Task) initialHealth(r *TaskRegistry) types.CustomHealthStatus {
	if r.Checked && t.HealthStatus != ecs.HealthStatusHealthy {
		return types.CustomHealthStatusUnhealthy
	}
	return types.CustomHealthStatusHealthy
}

// registeredHealth returns the health of the task's instance after the task's health has changed.
func (t *Task) registeredHealth(was types.CustomHealthStatus) types.CustomHealthStatus {
	switch t.HealthStatus {
	case ecs.HealthStatusHealthy:
		return types.CustomHealthStatusHealthy
	case ecs.HealthStatusUnhealthy:
		return types.CustomHealthStatusUnhealthy
	}
	return was
}

// attributesOf returns the attributes of a task's instance, or nil if it has none: it doesn't run, or nobody knows its address yet.
func (v *View) attributesOf(t *Task, r *TaskRegistry) map[string]string {
	if *t.LastStatus != "RUNNING" || *t.DesiredStatus != "RUNNING" {
		return nil
	}
	ip, port := v.registeredAt(t, r)
	if ip == "" {
		return nil
	}
	out := map[string]string{
		AttributeIPv4:        ip,
		attributeZone:        aws.ToString(t.AvailabilityZone),
		attributeRegion:      regionOf(*t.TaskArn),
		attributeClusterName: NameOf(*t.ClusterArn),
		attributeServiceName: NameOf(t.ServiceArn),
		attributeFamily:      familyOf(*t.TaskDefinitionArn),
		attributeTaskSet:     r.TaskSet,
	}
	if port > 0 {
		out[AttributePort] = strconv.Itoa(int(port))
	}
	if node := v.ContainerInstances.Get(aws.ToString(t.ContainerInstanceArn)); node != nil {
		out[attributeTaskInstance] = aws.ToString(node.Ec2InstanceId)
	}
	maps.DeleteFunc(out, func(_, value string) bool { return value == "" })
	return out
}

// registeredAt returns the address and port of a task: its own in network mode awsvpc, else its machine's with the port that the container's
// is bound to. It returns "" while they aren't known.
func (v *View) registeredAt(t *Task, r *TaskRegistry) (ip string, port int32) {
	port = cmp.Or(r.Port, r.ContainerPort)
	if ip := t.PrivateIPv4(); ip != "" || t.hasInterface() {
		return ip, port
	}
	node := v.ContainerInstances.Get(aws.ToString(t.ContainerInstanceArn))
	if node == nil {
		return "", 0
	}
	td := v.TaskDefinitions.Get(*t.TaskDefinitionArn)
	if r.ContainerName != "" && (td == nil || td.NetworkMode != ecs.NetworkModeHost) {
		if port = t.BoundPort(r.ContainerName, r.ContainerPort, ""); port == 0 {
			return "", 0
		}
	}
	return node.PrivateIPAddress, port
}

// hasInterface reports whether the task has an interface of its own, or will have one.
func (t *Task) hasInterface() bool { return slices.ContainsFunc(t.Attachments, IsInterface) }

// BoundPort returns the port of its machine at which a container's port for a protocol, or for any, is found, or 0 while it isn't known.
func (t *Task) BoundPort(container string, port int32, protocol ecs.TransportProtocol) int32 {
	for _, c := range t.Containers {
		if aws.ToString(c.Name) != container {
			continue
		}
		for _, n := range c.NetworkBindings {
			isMeant := protocol == "" || protocol == cmp.Or(n.Protocol, ecs.TransportProtocolTcp)
			if aws.ToInt32(n.ContainerPort) == port && n.HostPort != nil && isMeant {
				return *n.HostPort
			}
		}
	}
	return 0
}

// regionOf returns the region in an ARN.
func regionOf(arn string) string {
	if parts := strings.SplitN(arn, ":", 5); len(parts) == 5 {
		return parts[3]
	}
	return ""
}

// familyOf returns the family of a task definition by its ARN.
func familyOf(arn string) string {
	family, _, _ := strings.Cut(NameOf(arn), ":")
	return family
}

// keepOperations is how long the record of a change is kept. AWS names no time; a day outlasts whatever waits for it.
const keepOperations = 24 * time.Hour

var (
	namespacesByName = Index[*Namespace]{Name: "name", Value: func(n *Namespace) string { return strings.ToLower(n.Name) }}
	namespaces       = &store.Definition[*Namespace]{
		Name:    "namespaces",
		Key:     func(n *Namespace) string { return n.ID },
		Indexes: []Index[*Namespace]{namespacesByName},
	}

	discoveryServicesByNamespace = Index[*DiscoveryService]{Name: "namespace", Value: func(s *DiscoveryService) string { return s.NamespaceID }}
	discoveryServices            = &store.Definition[*DiscoveryService]{
		Name:    "discovery_services",
		Key:     func(s *DiscoveryService) string { return s.ID },
		Indexes: []Index[*DiscoveryService]{discoveryServicesByNamespace},
	}

	discoveryInstances = &store.Definition[*DiscoveryInstance]{Name: "discovery_instances", Key: (*DiscoveryInstance).Key}

	discoveryOperations = &store.Definition[*DiscoveryOperation]{
		Name:     "discovery_operations",
		Key:      func(o *DiscoveryOperation) string { return aws.ToString(o.Id) },
		Indexes:  []Index[*DiscoveryOperation]{OperationsByRequest},
		Lifetime: store.KeepFor(keepOperations, func(o *DiscoveryOperation) *time.Time { return o.UpdateDate }),
	}
	// OperationsByRequest finds what a call with a request id has begun.
	OperationsByRequest = Index[*DiscoveryOperation]{Name: "request", Value: func(o *DiscoveryOperation) string { return o.RequestID }}
)

// discoveryTables are the tables of Cloud Map.
type discoveryTables struct {
	DiscoveryInstances  Table[*DiscoveryInstance]
	DiscoveryOperations Table[*DiscoveryOperation]
	DiscoveryServices   Table[*DiscoveryService]
	Namespaces          Table[*Namespace]
}

// newDiscoveryTables binds the tables to a view.
func newDiscoveryTables(v *store.View) discoveryTables {
	return discoveryTables{
		DiscoveryInstances:  discoveryInstances.In(v),
		DiscoveryOperations: discoveryOperations.In(v),
		DiscoveryServices:   discoveryServices.In(v),
		Namespaces:          namespaces.In(v),
	}
}
