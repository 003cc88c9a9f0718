package ecs

import (
	"cmp"
	"context"
	"iter"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/account"
	"github.com/pintle/pintle/internal/ecs/capacity"
	"github.com/pintle/pintle/internal/pattern"
	"github.com/pintle/pintle/internal/state"
)

// The statuses of clusters and container instances. As on ECS, a deleted cluster stays INACTIVE.
const (
	statusActive   = "ACTIVE"
	statusInactive = "INACTIVE"
	statusDraining = "DRAINING"
)

// nameForm matches the names of clusters, services, task definitions and containers: letters, numbers, hyphens and underscores.
var nameForm = pattern.New(`^[a-zA-Z0-9_-]+$`, 255)

// clusterArn returns the ARN of the cluster that a call gives by name or ARN. Without one it is the default cluster's.
func (s *Service) clusterArn(cluster *string) string {
	name := aws.ToString(cluster)
	if name == "" {
		name = defaultCluster
	}
	if isArn(name) {
		return name
	}
	return s.arn("cluster", name)
}

// activeCluster finds the cluster that a call gives. It doesn't find deleted clusters.
func (s *Service) activeCluster(v *state.View, cluster *string) (*state.Cluster, error) {
	if name := aws.ToString(cluster); name != "" && !isArn(name) && !nameForm.MatchString(name) {
		return nil, invalidParameter("Identifier cluster %q contains invalid characters.", name)
	}
	c := v.Clusters.Get(s.clusterArn(cluster))
	if c == nil || aws.ToString(c.Status) != statusActive {
		return nil, clusterNotFound()
	}
	return c, nil
}

// CreateCluster creates a cluster. It returns an active cluster of the same name unchanged.
func (s *Service) CreateCluster(ctx context.Context, in *ecs.CreateClusterInput) (*ecs.CreateClusterOutput, error) {
	name := aws.ToString(in.ClusterName)
	if name == "" {
		name = defaultCluster
	}
	if !nameForm.MatchString(name) {
		return nil, invalidParameter("clusterName %q must have up to 255 letters, numbers, hyphens and underscores.", name)
	}
	if err := cmp.Or(checkTags(in.Tags), checkConfiguration(in.Configuration)); err != nil {
		return nil, err
	}
	settings, err := clusterSettings(nil, in.Settings)
	if err != nil {
		return nil, err
	}
	if err := checkClusterProviders(in.CapacityProviders, in.DefaultCapacityProviderStrategy); err != nil {
		return nil, err
	}
	row := &state.Cluster{Cluster: types.Cluster{
		ClusterArn:                      aws.String(s.arn("cluster", name)),
		ClusterName:                     aws.String(name),
		Status:                          aws.String(statusActive),
		Settings:                        settings,
		Configuration:                   in.Configuration,
		Tags:                            in.Tags,
		CapacityProviders:               notNil(in.CapacityProviders),
		DefaultCapacityProviderStrategy: notNil(in.DefaultCapacityProviderStrategy),
	}}
	err = s.store.Update(ctx, func(tx *state.Tx) error {
		if old := tx.Clusters.Get(*row.ClusterArn); old != nil && aws.ToString(old.Status) == statusActive {
			row = old
			return nil
		}
		if err := s.checkAssociations(tx.View, row, row.CapacityProviders); err != nil {
			return err
		}
		defaults, err := s.serviceConnectDefaults(tx, in.ServiceConnectDefaults)
		if err != nil {
			return err
		}
		row.ServiceConnectDefaults = defaults
		tx.Clusters.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecs.CreateClusterOutput{Cluster: new(describeCluster(s.store.View(), row, allClusterFields))}, nil
}

// clusterSettings merges new settings over old ones, and refuses settings that ECS doesn't have.
func clusterSettings(old, change []types.ClusterSetting) ([]types.ClusterSetting, error) {
	value := "disabled"
	for _, set := range slices.Concat(old, change) {
		if set.Name != types.ClusterSettingNameContainerInsights {
			return nil, invalidParameter("settings.name must be containerInsights, not %q.", set.Name)
		}
		value = aws.ToString(set.Value)
		if !slices.Contains([]string{"enabled", "disabled", "enhanced"}, value) {
			return nil, invalidParameter("The value of the setting containerInsights must be enabled, disabled or enhanced, not %q.", value)
		}
	}
	return []types.ClusterSetting{{Name: types.ClusterSettingNameContainerInsights, Value: &value}}, nil
}

// DeleteCluster makes an empty cluster INACTIVE.
func (s *Service) DeleteCluster(ctx context.Context, in *ecs.DeleteClusterInput) (*ecs.DeleteClusterOutput, error) {
	if aws.ToString(in.Cluster) == "" {
		return nil, invalidParameter("cluster must not be empty.")
	}
	var row *state.Cluster
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.activeCluster(tx.View, in.Cluster)
		if err != nil {
			return err
		}
		for i := range tx.ContainerInstances.By(state.InstancesByCluster, *old.ClusterArn) {
			if aws.ToString(i.Status) != statusInactive {
				return &types.ClusterContainsContainerInstancesException{
					Message: aws.String("The Cluster cannot be deleted while Container Instances are active or draining."),
				}
			}
		}
		for row := range tx.Services.By(state.ServicesByCluster, *old.ClusterArn) {
			if *row.Status != state.ServiceInactive {
				return &types.ClusterContainsServicesException{
					Message: aws.String("The Cluster cannot be deleted while Services are active."),
				}
			}
		}
		for _, desired := range []string{"RUNNING", "STOPPED"} {
			for t := range tx.Tasks.By(state.TasksByCluster, state.ClusterStatus(*old.ClusterArn, desired)) {
				if aws.ToString(t.LastStatus) != "STOPPED" { // one that stops may be on a machine of another cluster
					return &types.ClusterContainsTasksException{Message: aws.String("The Cluster cannot be deleted while Tasks are active.")}
				}
			}
		}
		row, _ = clone(old)
		row.Status = aws.String(statusInactive)
		tx.Clusters.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecs.DeleteClusterOutput{Cluster: new(describeCluster(s.store.View(), row, allClusterFields))}, nil
}

// checkConfiguration refuses a way of logging that there isn't, and keys that would encrypt storage which nodes don't have.
func checkConfiguration(c *types.ClusterConfiguration) error {
	if c == nil {
		return nil
	}
	if c.ManagedStorageConfiguration != nil {
		return invalidParameter("configuration.managedStorageConfiguration: Pintle manages no storage of tasks, so nothing would be encrypted.")
	}
	if e := c.ExecuteCommandConfiguration; e != nil {
		return checkOneOf("logging", e.Logging.Values(), e.Logging)
	}
	return nil
}

// UpdateCluster changes a cluster's settings, configuration and Service Connect namespace.
func (s *Service) UpdateCluster(ctx context.Context, in *ecs.UpdateClusterInput) (*ecs.UpdateClusterOutput, error) {
	if err := checkConfiguration(in.Configuration); err != nil {
		return nil, err
	}
	row, err := s.changeCluster(ctx, in.Cluster, func(tx *state.Tx, c *state.Cluster) (err error) {
		if in.Settings != nil {
			if c.Settings, err = clusterSettings(c.Settings, in.Settings); err != nil {
				return err
			}
		}
		if in.Configuration != nil {
			c.Configuration = in.Configuration
		}
		if in.ServiceConnectDefaults != nil {
			if c.ServiceConnectDefaults, err = s.serviceConnectDefaults(tx, in.ServiceConnectDefaults); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return &ecs.UpdateClusterOutput{Cluster: row}, nil
}

// UpdateClusterSettings changes a cluster's settings.
func (s *Service) UpdateClusterSettings(ctx context.Context, in *ecs.UpdateClusterSettingsInput) (*ecs.UpdateClusterSettingsOutput, error) {
	row, err := s.changeCluster(ctx, in.Cluster, func(_ *state.Tx, c *state.Cluster) (err error) {
		c.Settings, err = clusterSettings(c.Settings, in.Settings)
		return err
	})
	if err != nil {
		return nil, err
	}
	return &ecs.UpdateClusterSettingsOutput{Cluster: row}, nil
}

func (s *Service) changeCluster(
	ctx context.Context, cluster *string, change func(*state.Tx, *state.Cluster) error,
) (*types.Cluster, error) {
	if aws.ToString(cluster) == "" {
		return nil, invalidParameter("cluster must not be empty.")
	}
	var row *state.Cluster
	err := s.store.Update(ctx, func(tx *state.Tx) error {
		old, err := s.activeCluster(tx.View, cluster)
		if err != nil {
			return err
		}
		row, _ = clone(old)
		if err := change(tx, row); err != nil {
			return err
		}
		tx.Clusters.Put(row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return new(describeCluster(s.store.View(), row, allClusterFields)), nil
}

// DescribeClusters describes clusters. It reports clusters that don't exist as failures.
func (s *Service) DescribeClusters(_ context.Context, in *ecs.DescribeClustersInput) (*ecs.DescribeClustersOutput, error) {
	names := in.Clusters
	if len(names) == 0 {
		names = []string{defaultCluster}
	}
	if len(names) > maxPage {
		return nil, invalidParameter("clusters has %d members, at most %d are allowed.", len(names), maxPage)
	}
	if err := checkOneOf("include", types.ClusterField("").Values(), in.Include...); err != nil {
		return nil, err
	}
	v := s.store.View()
	out := &ecs.DescribeClustersOutput{Clusters: []types.Cluster{}, Failures: []types.Failure{}}
	for _, name := range names {
		arn := s.clusterArn(&name)
		if c := v.Clusters.Get(arn); c != nil {
			out.Clusters = append(out.Clusters, describeCluster(v, c, in.Include))
		} else {
			out.Failures = append(out.Failures, missing(arn))
		}
	}
	return out, nil
}

// allClusterFields are the optional fields of a cluster. Calls that change a cluster return all of them.
var allClusterFields = []types.ClusterField{
	types.ClusterFieldAttachments, types.ClusterFieldConfigurations, types.ClusterFieldSettings, types.ClusterFieldTags,
}

// describeCluster returns the row with its counts and the optional fields that include asks for.
func describeCluster(v *state.View, row *state.Cluster, include []types.ClusterField) types.Cluster {
	c := row.Cluster
	asked := func(f types.ClusterField) bool { return slices.Contains(include, f) }
	c.Statistics = []types.KeyValuePair{}
	if !asked(types.ClusterFieldTags) {
		c.Tags = nil
	}
	c.Tags = notNil(c.Tags)
	if !asked(types.ClusterFieldSettings) {
		c.Settings = nil
	}
	c.Settings = notNil(c.Settings)
	if !asked(types.ClusterFieldConfigurations) {
		c.Configuration = nil
	}
	if asked(types.ClusterFieldAttachments) {
		if c.Attachments = attachments(v, row); len(c.Attachments) > 0 {
			c.AttachmentsStatus = aws.String("UPDATE_COMPLETE")
		}
	}
	for i := range v.ContainerInstances.By(state.InstancesByCluster, *row.ClusterArn) {
		if aws.ToString(i.Status) != statusInactive {
			c.RegisteredContainerInstancesCount++
		}
	}
	tasks, services := countByLaunchType(v, *row.ClusterArn)
	for _, launchType := range launchTypes {
		c.RunningTasksCount += tasks["running"+launchType]
		c.PendingTasksCount += tasks["pending"+launchType]
		c.ActiveServicesCount += services["active"+launchType]
	}
	if asked(types.ClusterFieldStatistics) {
		c.Statistics = statistics(tasks, services)
	}
	return c
}

// attachments returns what a cluster's capacity providers do to their Auto Scaling groups: managed scaling and managed draining. Providers
// take effect with the call that names them, so that all are CREATED. Managed scaling needs no scaling policy here, and names none.
func attachments(v *state.View, row *state.Cluster) (out []types.Attachment) {
	attach := func(p *state.CapacityProvider, kind string, more ...types.KeyValuePair) {
		out = append(out, types.Attachment{
			Id:      aws.String(account.UUID(*row.ClusterArn, *p.CapacityProviderArn, kind)),
			Type:    &kind,
			Status:  aws.String("CREATED"),
			Details: append([]types.KeyValuePair{{Name: aws.String("capacityProviderName"), Value: p.Name}}, more...),
		})
	}
	for _, name := range row.CapacityProviders {
		p := v.CapacityProviderNamed(state.NameOf(name))
		if p == nil { // Fargate's
			continue
		}
		if p.AutoScalingGroupProvider.ManagedScaling.Status == types.ManagedScalingStatusEnabled {
			attach(p, "as_policy")
		}
		if p.AutoScalingGroupProvider.ManagedDraining == types.ManagedDrainingEnabled {
			attach(p, "managed_draining", types.KeyValuePair{
				Name:  aws.String("autoScalingLifecycleHookName"),
				Value: aws.String(state.DrainingHook),
			})
		}
	}
	return out
}

// launchTypes are the launch types as the names of statistics spell them.
var launchTypes = []string{"EC2", "Fargate", "External"}

// spelled returns a launch type as the names of statistics spell it. A service without one launches on EC2, unless its first
// capacity provider is Fargate's.
func spelled(t types.LaunchType, strategy []types.CapacityProviderStrategyItem) string {
	if t == "" && len(strategy) > 0 {
		t = capacity.LaunchType(*strategy[0].CapacityProvider)
	}
	switch t {
	case types.LaunchTypeFargate:
		return "Fargate"
	case types.LaunchTypeExternal:
		return "External"
	}
	return "EC2"
}

// countByLaunchType counts a cluster's tasks, running and pending, and its services, active and draining, each by launch type.
func countByLaunchType(v *state.View, clusterArn string) (tasks, services map[string]int32) {
	tasks, services = map[string]int32{}, map[string]int32{}
	for t := range v.Tasks.By(state.TasksByCluster, state.ClusterStatus(clusterArn, "RUNNING")) {
		is := "pending"
		if aws.ToString(t.LastStatus) == "RUNNING" {
			is = "running"
		}
		tasks[is+spelled(t.LaunchType, nil)]++
	}
	for s := range v.Services.By(state.ServicesByCluster, clusterArn) {
		if *s.Status != state.ServiceInactive {
			services[strings.ToLower(*s.Status)+spelled(s.LaunchType, s.CapacityProviderStrategy)]++
		}
	}
	return tasks, services
}

// statistics returns a cluster's counts under ECS's names for them, such as runningEC2TasksCount and activeFargateServiceCount.
func statistics(tasks, services map[string]int32) (out []types.KeyValuePair) {
	add := func(counts map[string]int32, is, what string) {
		for _, launchType := range launchTypes {
			out = append(out, types.KeyValuePair{
				Name:  aws.String(is + launchType + what),
				Value: aws.String(strconv.Itoa(int(counts[is+launchType]))),
			})
		}
	}
	add(tasks, "running", "TasksCount")
	add(tasks, "pending", "TasksCount")
	add(services, "active", "ServiceCount")
	add(services, "draining", "ServiceCount")
	return out
}

// ListClusters lists the ARNs of the active clusters.
func (s *Service) ListClusters(_ context.Context, in *ecs.ListClustersInput) (*ecs.ListClustersOutput, error) {
	v := s.store.View()
	arns, next, err := page(listing("ListClusters"), in.MaxResults, in.NextToken,
		func(string) iter.Seq[*state.Cluster] { return v.Clusters.All() },
		func(c *state.Cluster) string { return *c.ClusterArn },
		func(c *state.Cluster) bool { return aws.ToString(c.Status) == statusActive })
	if err != nil {
		return nil, err
	}
	return &ecs.ListClustersOutput{ClusterArns: arns, NextToken: next}, nil
}

// notNil returns an empty list for nil, so that clients get [] and not null.
func notNil[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}
