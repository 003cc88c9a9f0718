package ecs

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/wire/call"
)

// RegisterTaskDefinition adds the next revision of a family. It keeps every field that was sent.
func (s *Service) RegisterTaskDefinition(
	ctx context.Context, in *ecs.RegisterTaskDefinitionInput,
) (*ecs.RegisterTaskDefinitionOutput, error) {
	if err := checkTags(in.Tags); err != nil {
		return nil, err
	}
	if err := checkDefinitionSize(in); err != nil {
		return nil, err
	}
	if err := checkFunctions(ctx, in.Volumes); err != nil {
		return nil, err
	}
	td, err := newTaskDefinition(in)
	if err != nil {
		return nil, err
	}
	caller := call.From(ctx)
	if err := checkPassed(caller, td, nil); err != nil {
		return nil, err
	}
	if err := checkImages(caller, td); err != nil {
		return nil, err
	}
	family := *td.Family
	td.RegisteredAt = s.now()
	td.RegisteredBy = aws.String(s.root())
	row := &state.TaskDefinition{TaskDefinition: *td, Tags: in.Tags}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		revision := int32(1)
		if f := tx.TaskFamilies.Get(family); f != nil {
			revision = f.LastRevision + 1
		}
		row.Revision = revision
		row.TaskDefinitionArn = aws.String(s.taskDefinitionArn(family, revision))
		tx.TaskFamilies.Put(&state.TaskFamily{Family: family, LastRevision: revision})
		tx.TaskDefinitions.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecs.RegisterTaskDefinitionOutput{TaskDefinition: &row.TaskDefinition, Tags: notNil(row.Tags)}, nil
}

func (s *Service) taskDefinitionArn(family string, revision int32) string {
	return s.arn("task-definition", family) + ":" + strconv.Itoa(int(revision))
}

// newTaskDefinition checks the input and turns it into a definition. It fills in defaults, and works out what the definition is
// compatible with and which attributes it requires of an instance.
func newTaskDefinition(in *ecs.RegisterTaskDefinitionInput) (*types.TaskDefinition, error) {
	td := &types.TaskDefinition{
		ContainerDefinitions:    slices.Clone(in.ContainerDefinitions),
		EnableFaultInjection:    in.EnableFaultInjection,
		EphemeralStorage:        in.EphemeralStorage,
		ExecutionRoleArn:        in.ExecutionRoleArn,
		Family:                  in.Family,
		InferenceAccelerators:   in.InferenceAccelerators,
		IpcMode:                 in.IpcMode,
		NetworkMode:             in.NetworkMode,
		PidMode:                 in.PidMode,
		PlacementConstraints:    notNil(in.PlacementConstraints),
		ProxyConfiguration:      in.ProxyConfiguration,
		RequiresCompatibilities: in.RequiresCompatibilities,
		RuntimePlatform:         in.RuntimePlatform,
		Status:                  types.TaskDefinitionStatusActive,
		TaskRoleArn:             in.TaskRoleArn,
		Volumes:                 notNil(in.Volumes),
	}
	for _, role := range []**string{&td.ExecutionRoleArn, &td.TaskRoleArn} {
		if aws.ToString(*role) == "" { // forms that were not filled in send ""
			*role = nil
		}
	}
	var err error
	if td.Cpu, err = taskCPU(in.Cpu); err != nil {
		return nil, err
	}
	if td.Memory, err = taskMemory(in.Memory); err != nil {
		return nil, err
	}
	for i := range td.ContainerDefinitions {
		td.ContainerDefinitions[i] = withDefaults(td.ContainerDefinitions[i], td.NetworkMode)
	}
	if err := checkTaskDefinition(td); err != nil {
		return nil, err
	}
	td.Compatibilities = compatibilities(td)
	for _, c := range td.RequiresCompatibilities {
		if !slices.Contains(td.Compatibilities, c) {
			return nil, incompatible(td, c)
		}
	}
	td.RequiresAttributes = requiredAttributes(td)
	return td, nil
}

// withDefaults fills in the defaults that ECS shows in a container definition.
func withDefaults(c types.ContainerDefinition, mode types.NetworkMode) types.ContainerDefinition {
	if c.Essential == nil {
		c.Essential = aws.Bool(true)
	}
	c.Environment = notNil(c.Environment)
	c.MountPoints = notNil(c.MountPoints)
	c.VolumesFrom = notNil(c.VolumesFrom)
	c.SystemControls = notNil(c.SystemControls)
	c.PortMappings = slices.Clone(notNil(c.PortMappings))
	for i, p := range c.PortMappings {
		c.PortMappings[i] = portDefaults(p, mode)
	}
	if h := c.HealthCheck; h != nil {
		c.HealthCheck = &types.HealthCheck{
			Command:     h.Command,
			StartPeriod: h.StartPeriod,
			Interval:    cmp.Or(h.Interval, aws.Int32(30)),
			Timeout:     cmp.Or(h.Timeout, aws.Int32(5)),
			Retries:     cmp.Or(h.Retries, aws.Int32(3)),
		}
	}
	return c
}

// portDefaults fills in a port mapping's protocol and host port.
func portDefaults(p types.PortMapping, mode types.NetworkMode) types.PortMapping {
	p.Protocol = cmp.Or(p.Protocol, types.TransportProtocolTcp)
	sameOnHost := mode == types.NetworkModeHost || mode == types.NetworkModeAwsvpc
	if aws.ToInt32(p.HostPort) == 0 && p.ContainerPort != nil {
		if p.HostPort = aws.Int32(0); sameOnHost {
			p.HostPort = p.ContainerPort
		}
	}
	return p
}

// findTaskDefinition finds a task definition by ARN, family:revision or family, or returns nil. For a family it is the newest
// ACTIVE revision.
func (s *Service) findTaskDefinition(v *state.View, name string) *state.TaskDefinition {
	if isArn(name) {
		name, _ = s.opts.ResourceOf("ecs", "task-definition/", name) // "", of which there's none, if it's another account's or region's
	}
	family, revision, ok := strings.Cut(name, ":")
	if ok {
		return v.TaskDefinitions.Get(s.arn("task-definition", family) + ":" + revision)
	}
	var newest *state.TaskDefinition
	for td := range v.TaskDefinitions.By(state.TaskDefinitionsByFamily, family) {
		if td.Status == types.TaskDefinitionStatusActive && (newest == nil || td.Revision > newest.Revision) {
			newest = td
		}
	}
	return newest
}

// DescribeTaskDefinition describes a revision, or a family's newest ACTIVE one.
func (s *Service) DescribeTaskDefinition(
	_ context.Context, in *ecs.DescribeTaskDefinitionInput,
) (*ecs.DescribeTaskDefinitionOutput, error) {
	name := aws.ToString(in.TaskDefinition)
	if name == "" {
		return nil, invalidParameter("taskDefinition must not be empty.")
	}
	if err := checkOneOf("include", types.TaskDefinitionField("").Values(), in.Include...); err != nil {
		return nil, err
	}
	td := s.findTaskDefinition(s.store.View(), name)
	if td == nil {
		return nil, clientError("Unable to describe task definition.")
	}
	out := &ecs.DescribeTaskDefinitionOutput{TaskDefinition: &td.TaskDefinition}
	if slices.Contains(in.Include, types.TaskDefinitionFieldTags) {
		out.Tags = notNil(td.Tags)
	}
	return out, nil
}

// DeregisterTaskDefinition makes a revision INACTIVE. Its tasks keep running, but new ones can't use it.
func (s *Service) DeregisterTaskDefinition(
	ctx context.Context, in *ecs.DeregisterTaskDefinitionInput,
) (*ecs.DeregisterTaskDefinitionOutput, error) {
	name := aws.ToString(in.TaskDefinition)
	if !strings.Contains(state.NameOf(name), ":") {
		return nil, clientError("Invalid revision number. taskDefinition %q must name a revision: family:revision or its ARN.", name)
	}
	var row *state.TaskDefinition
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old := s.findTaskDefinition(tx.View, name)
		if old == nil || old.Status == types.TaskDefinitionStatusDeleteInProgress {
			return clientError("The specified task definition %q does not exist.", name)
		}
		row = tx.Deregister(old, s.now())
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecs.DeregisterTaskDefinitionOutput{TaskDefinition: &row.TaskDefinition}, nil
}

// maxDelete bounds the task definitions of one DeleteTaskDefinitions call.
const maxDelete = 10

// DeleteTaskDefinitions makes INACTIVE revisions DELETE_IN_PROGRESS. The sweep removes each once no task uses it.
func (s *Service) DeleteTaskDefinitions(ctx context.Context, in *ecs.DeleteTaskDefinitionsInput) (*ecs.DeleteTaskDefinitionsOutput, error) {
	if n := len(in.TaskDefinitions); n == 0 || n > maxDelete {
		return nil, invalidParameter("taskDefinitions must have between 1 and %d members, not %d.", maxDelete, n)
	}
	out := &ecs.DeleteTaskDefinitionsOutput{TaskDefinitions: []types.TaskDefinition{}, Failures: []types.Failure{}}
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		for _, name := range in.TaskDefinitions {
			row, failure := s.deleteTaskDefinition(tx, name)
			if failure != "" {
				out.Failures = append(out.Failures, types.Failure{Arn: aws.String(name), Reason: aws.String(failure)})
				continue
			}
			out.TaskDefinitions = append(out.TaskDefinitions, row.TaskDefinition)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// deleteTaskDefinition deletes one revision. failure is why it can't, or "".
func (s *Service) deleteTaskDefinition(tx *state.Tx, name string) (row *state.TaskDefinition, failure string) {
	if !strings.Contains(state.NameOf(name), ":") {
		return nil, "The task definition must be specified as family:revision or as an ARN."
	}
	old := s.findTaskDefinition(tx.View, name)
	if old == nil {
		return nil, "The specified task definition was not found."
	}
	if old.Status == types.TaskDefinitionStatusActive {
		return nil, "The specified task definition is still in ACTIVE status. Please deregister the target and try again."
	}
	row, _ = clone(old)
	row.Status = types.TaskDefinitionStatusDeleteInProgress
	if row.DeleteRequestedAt == nil {
		row.DeleteRequestedAt = s.now()
	}
	tx.TaskDefinitions.Put(row)
	return row, ""
}

// ListTaskDefinitions lists the ARNs of revisions, ordered by family and revision.
func (s *Service) ListTaskDefinitions(_ context.Context, in *ecs.ListTaskDefinitionsInput) (*ecs.ListTaskDefinitionsOutput, error) {
	status := cmp.Or(in.Status, types.TaskDefinitionStatusActive)
	if !slices.Contains(status.Values(), status) {
		return nil, invalidParameter("status must be ACTIVE, INACTIVE or DELETE_IN_PROGRESS, not %q.", status)
	}
	if err := checkSort(in.Sort); err != nil {
		return nil, err
	}
	prefix := aws.ToString(in.FamilyPrefix)
	var found []*state.TaskDefinition
	for td := range s.store.View().TaskDefinitions.All() {
		if td.Status == status && (prefix == "" || *td.Family == prefix) {
			found = append(found, td)
		}
	}
	slices.SortFunc(found, byFamilyAndRevision)
	l := listing("ListTaskDefinitions")
	if l.Descending = in.Sort == types.SortOrderDesc; l.Descending {
		slices.Reverse(found)
	}
	found, next, err := account.Sorted(l, found, in.MaxResults, in.NextToken, familyAndRevision)
	if err != nil {
		return nil, err
	}
	arns := make([]string, len(found))
	for i, td := range found {
		arns[i] = *td.TaskDefinitionArn
	}
	return &ecs.ListTaskDefinitionsOutput{TaskDefinitionArns: arns, NextToken: next}, nil
}

func checkSort(sort types.SortOrder) error {
	if sort != "" && !slices.Contains(sort.Values(), sort) {
		return invalidParameter("sort must be ASC or DESC, not %q.", sort)
	}
	return nil
}

func byFamilyAndRevision(a, b *state.TaskDefinition) int {
	return cmp.Or(cmp.Compare(*a.Family, *b.Family), cmp.Compare(a.Revision, b.Revision))
}

// familyAndRevision returns a key that sorts like byFamilyAndRevision.
func familyAndRevision(td *state.TaskDefinition) string {
	return fmt.Sprintf("%s\x00%010d", *td.Family, td.Revision)
}

// ListTaskDefinitionFamilies lists families. The status filters by whether they have ACTIVE revisions.
func (s *Service) ListTaskDefinitionFamilies(
	_ context.Context, in *ecs.ListTaskDefinitionFamiliesInput,
) (*ecs.ListTaskDefinitionFamiliesOutput, error) {
	status := cmp.Or(in.Status, types.TaskDefinitionFamilyStatusAll)
	if !slices.Contains(status.Values(), status) {
		return nil, invalidParameter("status must be ACTIVE, INACTIVE or ALL, not %q.", status)
	}
	v := s.store.View()
	families, next, err := page(listing("ListTaskDefinitionFamilies"), in.MaxResults, in.NextToken,
		func(string) iter.Seq[*state.TaskFamily] { return v.TaskFamilies.All() },
		func(f *state.TaskFamily) string { return f.Family },
		func(f *state.TaskFamily) bool {
			return strings.HasPrefix(f.Family, aws.ToString(in.FamilyPrefix)) && familyHasStatus(v, f.Family, status)
		})
	if err != nil {
		return nil, err
	}
	return &ecs.ListTaskDefinitionFamiliesOutput{Families: families, NextToken: next}, nil
}

// familyHasStatus reports whether a family is listed under the status. A family with an ACTIVE revision is ACTIVE, and one
// without is INACTIVE. A family whose revisions are all deleted isn't listed at all.
func familyHasStatus(v *state.View, family string, status types.TaskDefinitionFamilyStatus) bool {
	active, any := false, false
	for td := range v.TaskDefinitions.By(state.TaskDefinitionsByFamily, family) {
		any = true
		active = active || td.Status == types.TaskDefinitionStatusActive
	}
	switch status {
	case types.TaskDefinitionFamilyStatusActive:
		return active
	case types.TaskDefinitionFamilyStatusInactive:
		return any && !active
	}
	return any
}
