package ecs

import (
	"cmp"
	"context"
	"encoding/json"
	"iter"
	"regexp"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/ecs/query"
	"github.com/pintle/pintle/internal/ecs/scheduler"
	"github.com/pintle/pintle/internal/pattern"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// findInstance finds a container instance of the cluster, or returns nil.
func (s *Service) findInstance(v *state.View, clusterArn, instance string) *state.ContainerInstance {
	row := v.ContainerInstances.Get(inCluster(clusterArn, "container-instance", instance))
	if row == nil || row.ClusterArn != clusterArn {
		return nil
	}
	return row
}

// isWarm reports whether a container instance's machine is in the warm pool of an Auto Scaling group: it's to take no tasks.
func isWarm(v *state.View, c *state.ContainerInstance) bool {
	machine := v.Instances.Get(aws.ToString(c.Ec2InstanceId))
	return machine != nil && machine.Member != nil && machine.Member.IsWarm()
}

// RegisterContainerInstance adds a node, or takes back one that restarted. Agents call it. The answer has every attribute
// that was sent, because Amazon's agent insists on it.
func (s *Service) RegisterContainerInstance(
	ctx context.Context, in *ecs.RegisterContainerInstanceInput,
) (*ecs.RegisterContainerInstanceOutput, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	if err := checkAttributes(in.Attributes); err != nil {
		return nil, err
	}
	capacity, gpus, err := registeredCapacity(in)
	if err != nil {
		return nil, err
	}
	var row *state.ContainerInstance
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		c, err := s.activeCluster(tx.View, in.Cluster)
		if err != nil {
			return err
		}
		arn, err := s.registeredAs(ctx, tx, *c.ClusterArn, in)
		if err != nil {
			return err
		}
		old := tx.ContainerInstances.Get(arn)
		if row, err = reregister(old, arn, *c.ClusterArn, in); err != nil {
			return err
		}
		row.Attributes = mergeAttributes(row.Attributes, s.networkAttributes(tx.View, row, in.Attributes))
		if old == nil {
			row.RegisteredAt = s.now()
		}
		row.Capacity = capacity
		row.GPUs = mergeGPUs(row.GPUs, gpus)
		row.RegisteredResources = registeredResources(row)
		if isWarm(tx.View, row) {
			row = row.In(types.ContainerInstanceStatusDraining) // until it comes into service
		}
		tx.ContainerInstances.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecs.RegisterContainerInstanceOutput{ContainerInstance: new(describeInstance(s.store.View(), row, nil))}, nil
}

// registeredAs returns the ARN that a registration is for: the one that it names, or the one that the node's key is bound to, or
// a new one.
func (s *Service) registeredAs(
	ctx context.Context, tx *state.Tx, clusterArn string, in *ecs.RegisterContainerInstanceInput,
) (string, error) {
	named := aws.ToString(in.ContainerInstanceArn)
	if call.From(ctx).Node {
		return s.registeredByKey(ctx, tx, clusterArn, named)
	}
	arn := cmp.Or(named, neverConnectedArn(tx.View, clusterArn, identityDocument(in.InstanceIdentityDocument).InstanceID))
	if arn == "" {
		arn = state.InCluster(clusterArn, "container-instance", s.scheduler.NewID())
	}
	return arn, nil
}

// registeredByKey returns the ARN for a registration with a node's key, which the first registration binds to a new instance.
func (s *Service) registeredByKey(ctx context.Context, tx *state.Tx, clusterArn, named string) (string, error) {
	c := call.From(ctx)
	key := tx.NodeKeys.Get(c.AccessKeyID)
	if key == nil {
		return "", denied(c, cmp.Or(named, "*"), "the key was revoked")
	}
	if arn := key.ContainerInstanceArn; named != "" && named != arn {
		return "", denied(c, named, "the key is of another container instance")
	} else if arn != "" {
		return arn, nil
	}
	arn := state.InCluster(clusterArn, "container-instance", s.scheduler.NewID())
	tx.NodeKeys.Put(key.BoundTo(arn))
	return arn, nil
}

// neverConnectedArn returns the ARN under which a machine is registered in a cluster but was never connected, or "". That
// happens when the control plane is killed before it answers the registration, and the agent asks again. Amazon's agent
// sends a token for this.
func neverConnectedArn(v *state.View, clusterArn string, machine *string) string {
	for row := range v.ContainerInstances.By(state.InstancesByMachine, aws.ToString(machine)) {
		isFresh := *row.Status == statusActive || isWarm(v, row) // one of a warm pool begins as DRAINING
		if row.ClusterArn == clusterArn && isFresh && !row.AgentConnected && row.DisconnectedAt == nil {
			return *row.ContainerInstanceArn
		}
	}
	return ""
}

// reregister returns the row for a registration: a new one, or the old one with the changes that a registration may make.
func reregister(
	old *state.ContainerInstance, arn, clusterArn string, in *ecs.RegisterContainerInstanceInput,
) (*state.ContainerInstance, error) {
	row, exists := clone(old)
	if !exists {
		row = &state.ContainerInstance{ClusterArn: clusterArn}
		row.Version = 1
		row.ContainerInstanceArn = &arn
		row.Status = aws.String(statusActive)
		row.AgentUpdateStatus = ""
	}
	if exists && (row.ClusterArn != clusterArn || aws.ToString(row.Status) == statusInactive) {
		return nil, clientError("The container instance %s cannot be registered again: it is %s, in cluster %s.",
			arn, aws.ToString(row.Status), state.NameOf(row.ClusterArn))
	}
	was, given := scheduler.AttributeValue(row.Attributes, state.InstanceTypeAttribute), scheduler.AttributeValue(in.Attributes, state.InstanceTypeAttribute)
	if exists && changes(was, given) {
		return nil, clientError("Container instance type changes are not supported. Container instance %s is a %s.", arn, *was)
	}
	machine := identityDocument(in.InstanceIdentityDocument)
	row.Attributes = mergeAttributes(mergeAttributes(row.Attributes, machine.attributes()), in.Attributes)
	row.Tags = account.MergeTags(row.Tags, in.Tags, keyAndValue)
	row.VersionInfo = cmp.Or(in.VersionInfo, row.VersionInfo)
	row.Ec2InstanceId = cmp.Or(machine.InstanceID, row.Ec2InstanceId, scheduler.AttributeValue(in.Attributes, "ecs.instance-id"))
	row.PrivateIPAddress = cmp.Or(machine.PrivateIP, row.PrivateIPAddress)
	row.CapacityProviderName = cmp.Or(scheduler.AttributeValue(in.Attributes, CapacityProviderAttribute), row.CapacityProviderName)
	return row, nil
}

// changes reports whether both values are known and differ.
func changes(old, given *string) bool { return old != nil && given != nil && *old != *given }

// machine is what we read from an instance identity document:
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-identity-documents.html
type machine struct {
	InstanceID   *string `json:"instanceId"`
	PrivateIP    string  `json:"privateIp"`
	Architecture string  `json:"architecture"`
}

// attributes returns what agents on EC2 instances leave to the document.
func (m machine) attributes() []types.Attribute {
	if m.Architecture == "" {
		return nil
	}
	return []types.Attribute{{Name: aws.String("ecs.cpu-architecture"), Value: &m.Architecture}}
}

// networkAttributes returns what agents on EC2 register of their machine's network, as far as the agent doesn't: the zone, and the subnet that
// the machine was launched in, or else the default one of its zone. It's what DescribeInstances tells.
func (s *Service) networkAttributes(v *state.View, row *state.ContainerInstance, given []types.Attribute) []types.Attribute {
	if row.Ec2InstanceId == nil {
		return nil
	}
	zone := cmp.Or(scheduler.AttributeValue(row.Attributes, zoneAttribute), new(s.opts.Region+"a"))
	var subnet, vpc *string
	if i := v.Instances.Get(*row.Ec2InstanceId); i != nil && i.Placement != nil {
		zone, subnet, vpc = i.Placement.AvailabilityZone, i.SubnetId, i.VpcId
	} else if found := v.DefaultSubnet(*zone); found != nil {
		subnet, vpc = found.SubnetId, found.VpcId
	}
	all := []types.Attribute{
		{Name: aws.String(zoneAttribute), Value: zone},
		{Name: aws.String("ecs.subnet-id"), Value: subnet},
		{Name: aws.String("ecs.vpc-id"), Value: vpc},
	}
	return slices.DeleteFunc(all, func(a types.Attribute) bool { return a.Value == nil || scheduler.AttributeValue(given, *a.Name) != nil })
}

// identityDocument parses the document that an agent sends. Agents send none on machines that don't have one.
func identityDocument(text *string) (m machine) {
	if json.Unmarshal([]byte(aws.ToString(text)), &m) != nil || aws.ToString(m.InstanceID) == "" {
		return machine{}
	}
	return m
}

// registeredCapacity parses the resources and GPUs that an agent registers.
func registeredCapacity(in *ecs.RegisterContainerInstanceInput) (state.Resources, []state.GPU, error) {
	var r state.Resources
	for _, t := range in.TotalResources {
		var err error
		switch aws.ToString(t.Name) {
		case "CPU":
			r.CPU = max(int64(t.IntegerValue), t.LongValue)
		case "MEMORY":
			r.MemoryMiB = max(int64(t.IntegerValue), t.LongValue)
		case "PORTS":
			r.PortsTCP, err = ports(t.StringSetValue)
		case "PORTS_UDP":
			r.PortsUDP, err = ports(t.StringSetValue)
		}
		if err != nil {
			return r, nil, err
		}
	}
	if r.CPU <= 0 || r.MemoryMiB <= 0 {
		return r, nil, invalidParameter("totalResources must hold CPU and MEMORY, both above 0.")
	}
	var gpus []state.GPU
	for _, d := range in.PlatformDevices {
		id := aws.ToString(d.Id)
		if d.Type != types.PlatformDeviceTypeGpu || id == "" {
			return r, nil, invalidParameter("platformDevices must be of type GPU and have an id, not %q of type %q.", id, d.Type)
		}
		if slices.ContainsFunc(gpus, func(g state.GPU) bool { return g.ID == id }) {
			return r, nil, invalidParameter("platformDevices has the GPU %q twice.", id)
		}
		gpus = append(gpus, state.GPU{ID: id})
	}
	return r, gpus, nil
}

func ports(set []string) ([]uint16, error) {
	var out []uint16
	for _, p := range set {
		n, err := strconv.ParseUint(p, 10, 16)
		if err != nil {
			return nil, invalidParameter("totalResources has a port %q.", p)
		}
		out = append(out, uint16(n))
	}
	return out, nil
}

// mergeGPUs returns the registered GPUs, keeping what we learned about those that were registered before.
func mergeGPUs(old, registered []state.GPU) []state.GPU {
	for i, g := range registered {
		for _, o := range old {
			if o.ID == g.ID {
				registered[i] = o
			}
		}
	}
	return registered
}

// registeredResources returns the instance's capacity as ECS shows it. Amazon's agent lists GPUs only as devices, so the
// resource GPU is made from those.
func registeredResources(row *state.ContainerInstance) []types.Resource {
	ids := make([]string, len(row.GPUs))
	for i, g := range row.GPUs {
		ids[i] = g.ID
	}
	return resources(row.Capacity, ids)
}

func resources(r state.Resources, gpus []string) []types.Resource {
	out := []types.Resource{
		{Name: aws.String("CPU"), Type: aws.String("INTEGER"), IntegerValue: int32(r.CPU)},
		{Name: aws.String("MEMORY"), Type: aws.String("INTEGER"), IntegerValue: int32(r.MemoryMiB)},
		{Name: aws.String("PORTS"), Type: aws.String("STRINGSET"), StringSetValue: portStrings(r.PortsTCP)},
		{Name: aws.String("PORTS_UDP"), Type: aws.String("STRINGSET"), StringSetValue: portStrings(r.PortsUDP)},
	}
	if len(gpus) > 0 {
		out = append(out, types.Resource{Name: aws.String("GPU"), Type: aws.String("STRINGSET"), StringSetValue: gpus})
	}
	return out
}

func portStrings(ports []uint16) []string {
	out := []string{}
	for _, p := range ports {
		out = append(out, strconv.Itoa(int(p)))
	}
	return out
}

// DescribeInstance returns a container instance with what is derived of it, for its events.
func DescribeInstance(v *state.View, row *state.ContainerInstance) types.ContainerInstance {
	return describeInstance(v, row, nil)
}

// describeInstance returns the row with its remaining resources and its task counts.
func describeInstance(v *state.View, row *state.ContainerInstance, include []types.ContainerInstanceField) types.ContainerInstance {
	c := row.ContainerInstance
	c.Attachments = notNil(c.Attachments)
	c.Attributes = notNil(c.Attributes)
	if !slices.Contains(include, types.ContainerInstanceFieldTags) {
		c.Tags = nil
	}
	c.Tags = notNil(c.Tags)
	if !slices.Contains(include, types.ContainerInstanceFieldContainerInstanceHealth) {
		c.HealthStatus = nil
	} else {
		c.HealthStatus = row.Health()
	}
	left := row.Capacity
	held := map[string]bool{}
	left.PortsTCP = slices.Clone(left.PortsTCP)
	left.PortsUDP = slices.Clone(left.PortsUDP)
	for t := range v.Tasks.By(state.TasksByInstance, *row.ContainerInstanceArn) {
		if !t.Holds() {
			continue
		}
		if aws.ToString(t.LastStatus) == "RUNNING" {
			c.RunningTasksCount++
		} else {
			c.PendingTasksCount++
		}
		left.CPU -= t.Reserved.CPU
		left.MemoryMiB -= t.Reserved.MemoryMiB
		left.PortsTCP = append(left.PortsTCP, t.Reserved.PortsTCP...)
		left.PortsUDP = append(left.PortsUDP, t.Reserved.PortsUDP...)
		for _, g := range t.GPUs {
			held[g.ID] = true
		}
	}
	free := []string{}
	for _, g := range row.GPUs {
		if !held[g.ID] && g.Fault == nil {
			free = append(free, g.ID)
		}
	}
	c.RemainingResources = resources(left, nil)
	if len(row.GPUs) > 0 {
		c.RemainingResources = append(c.RemainingResources, types.Resource{
			Name:           aws.String("GPU"),
			Type:           aws.String("STRINGSET"),
			StringSetValue: free,
		})
	}
	return c
}

// DeregisterContainerInstance removes a node from its cluster. It refuses while the node runs tasks, unless force is set:
// then it marks them stopped.
func (s *Service) DeregisterContainerInstance(
	ctx context.Context, in *ecs.DeregisterContainerInstanceInput,
) (*ecs.DeregisterContainerInstanceOutput, error) {
	var row *state.ContainerInstance
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		c, err := s.activeCluster(tx.View, in.Cluster)
		if err != nil {
			return err
		}
		old := s.findInstance(tx.View, *c.ClusterArn, aws.ToString(in.ContainerInstance))
		if old == nil || aws.ToString(old.Status) == statusInactive {
			return invalidParameter("The specified container instance %q does not exist in cluster %s.",
				aws.ToString(in.ContainerInstance), *c.ClusterName)
		}
		if err := checkOwnInstance(ctx, *old.ContainerInstanceArn); err != nil {
			return err
		}
		var running []*state.Task
		for t := range tx.Tasks.By(state.TasksByInstance, *old.ContainerInstanceArn) {
			if t.Holds() {
				running = append(running, t)
			}
		}
		if len(running) > 0 && !aws.ToBool(in.Force) {
			return invalidParameter("Found running tasks on the instance.")
		}
		for _, t := range running {
			tx.Tasks.Put(t.Stopped(types.TaskStopCodeTerminationNotice,
				"Container instance "+state.NameOf(*old.ContainerInstanceArn)+" was deregistered.", *s.now()))
		}
		row = old.Deregistered(*s.now())
		tx.ContainerInstances.Put(row)
		tx.RevokeNodeKeys(*row.ContainerInstanceArn)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecs.DeregisterContainerInstanceOutput{ContainerInstance: new(describeInstance(s.store.View(), row, nil))}, nil
}

// DescribeContainerInstances describes nodes. It reports nodes that don't exist as failures.
func (s *Service) DescribeContainerInstances(
	_ context.Context, in *ecs.DescribeContainerInstancesInput,
) (*ecs.DescribeContainerInstancesOutput, error) {
	if n := len(in.ContainerInstances); n == 0 || n > maxPage {
		return nil, invalidParameter("containerInstances must have between 1 and %d members, not %d.", maxPage, n)
	}
	if err := checkOneOf("include", types.ContainerInstanceField("").Values(), in.Include...); err != nil {
		return nil, err
	}
	v := s.store.View()
	c, err := s.activeCluster(v, in.Cluster)
	if err != nil {
		return nil, err
	}
	out := &ecs.DescribeContainerInstancesOutput{ContainerInstances: []types.ContainerInstance{}, Failures: []types.Failure{}}
	for _, name := range in.ContainerInstances {
		if err := checkIdentifier(*c.ClusterArn, "container-instance", name); err != nil {
			return nil, err
		}
		if row := s.findInstance(v, *c.ClusterArn, name); row != nil {
			out.ContainerInstances = append(out.ContainerInstances, describeInstance(v, row, in.Include))
		} else {
			out.Failures = append(out.Failures, missing(inCluster(*c.ClusterArn, "container-instance", name)))
		}
	}
	return out, nil
}

// ListContainerInstances lists the nodes of a cluster. Filters are the status and an expression in the cluster query language.
func (s *Service) ListContainerInstances(
	_ context.Context, in *ecs.ListContainerInstancesInput,
) (*ecs.ListContainerInstancesOutput, error) {
	if in.Status != "" && !slices.Contains(in.Status.Values(), in.Status) {
		return nil, invalidParameter("status must be one of %v, not %q.", in.Status.Values(), in.Status)
	}
	v := s.store.View()
	c, err := s.activeCluster(v, in.Cluster)
	if err != nil {
		return nil, err
	}
	matches := func(*state.ContainerInstance) bool { return true }
	if filter := aws.ToString(in.Filter); filter != "" {
		q, err := query.Parse(filter)
		if err != nil {
			return nil, invalidParameter("Invalid filter: %v.", err)
		}
		matches = func(row *state.ContainerInstance) bool { return q.Eval(scheduler.Subject(v, row)) }
	}
	arns, next, err := page(listing("ListContainerInstances"), in.MaxResults, in.NextToken,
		func(string) iter.Seq[*state.ContainerInstance] {
			return v.ContainerInstances.By(state.InstancesByCluster, *c.ClusterArn)
		},
		func(row *state.ContainerInstance) string { return *row.ContainerInstanceArn },
		func(row *state.ContainerInstance) bool { return hasStatus(row, in.Status) && matches(row) })
	if err != nil {
		return nil, err
	}
	return &ecs.ListContainerInstancesOutput{ContainerInstanceArns: arns, NextToken: next}, nil
}

// hasStatus reports whether an instance has the wanted status. Without one, all but INACTIVE instances match.
func hasStatus(row *state.ContainerInstance, want types.ContainerInstanceStatus) bool {
	if want == "" {
		return *row.Status != statusInactive
	}
	return *row.Status == string(want)
}

// maxStates bounds the instances of one UpdateContainerInstancesState call.
const maxStates = 10

// UpdateContainerInstancesState drains nodes, or makes them ACTIVE again.
func (s *Service) UpdateContainerInstancesState(
	ctx context.Context, in *ecs.UpdateContainerInstancesStateInput,
) (*ecs.UpdateContainerInstancesStateOutput, error) {
	if n := len(in.ContainerInstances); n == 0 || n > maxStates {
		return nil, invalidParameter("containerInstances must have between 1 and %d members, not %d.", maxStates, n)
	}
	if in.Status != types.ContainerInstanceStatusActive && in.Status != types.ContainerInstanceStatusDraining {
		return nil, invalidParameter("Container instance status must be one of [ACTIVE, DRAINING], not %q.", in.Status)
	}
	var rows []*state.ContainerInstance
	out := &ecs.UpdateContainerInstancesStateOutput{ContainerInstances: []types.ContainerInstance{}, Failures: []types.Failure{}}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		c, err := s.activeCluster(tx.View, in.Cluster)
		if err != nil {
			return err
		}
		for _, name := range in.ContainerInstances {
			old := s.findInstance(tx.View, *c.ClusterArn, name)
			if old == nil {
				out.Failures = append(out.Failures, missing(inCluster(*c.ClusterArn, "container-instance", name)))
				continue
			}
			if err := checkOwnInstance(ctx, *old.ContainerInstanceArn); err != nil {
				return err
			}
			if *old.Status == statusInactive {
				out.Failures = append(out.Failures, types.Failure{Arn: old.ContainerInstanceArn, Reason: aws.String(statusInactive)})
				continue
			}
			row := old.In(in.Status)
			tx.ContainerInstances.Put(row)
			rows = append(rows, row)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	v := s.store.View()
	for _, row := range rows {
		out.ContainerInstances = append(out.ContainerInstances, describeInstance(v, row, nil))
	}
	return out, nil
}

// DiscoverPollEndpoint tells an agent where to reach the node protocol: where it has just reached us, unless the operator says otherwise.
// Agents cache the answer for hours.
func (s *Service) DiscoverPollEndpoint(ctx context.Context, _ *ecs.DiscoverPollEndpointInput) (*ecs.DiscoverPollEndpointOutput, error) {
	endpoint := cmp.Or(s.opts.Advertise, call.From(ctx).Endpoint)
	return &ecs.DiscoverPollEndpointOutput{
		Endpoint:               aws.String(endpoint + "/acs"),
		TelemetryEndpoint:      aws.String(endpoint + "/tcs"),
		ServiceConnectEndpoint: aws.String(endpoint + "/sc"),
	}, nil
}

// attributeName is the form of names in API_Attribute. Values may have spaces, but not at either end.
var (
	attributeName  = pattern.New(`^[a-zA-Z0-9_./\\-]+$`, 128)
	attributeBlank = regexp.MustCompile(`^\s|\s$`)
)

func checkAttributes(attributes []types.Attribute) error {
	for _, a := range attributes {
		name, value := aws.ToString(a.Name), aws.ToString(a.Value)
		if !attributeName.MatchString(name) {
			return invalidParameter("Attribute name %q must have between 1 and 128 letters, numbers, and the characters - _ . / \\.", name)
		}
		if len(value) > 128 || attributeBlank.MatchString(value) {
			return invalidParameter("The value of attribute %q must have at most 128 characters, and no blank at either end.", name)
		}
		if err := checkOneOf("targetType", a.TargetType.Values(), a.TargetType); err != nil {
			return err
		}
	}
	return nil
}

// mergeAttributes adds attributes, which replace old ones of the same name.
func mergeAttributes(old, add []types.Attribute) []types.Attribute {
	out := slices.DeleteFunc(slices.Clone(old), func(a types.Attribute) bool {
		return slices.ContainsFunc(add, func(b types.Attribute) bool { return aws.ToString(a.Name) == aws.ToString(b.Name) })
	})
	for _, a := range add {
		out = append(out, types.Attribute{Name: a.Name, Value: a.Value})
	}
	return out
}
