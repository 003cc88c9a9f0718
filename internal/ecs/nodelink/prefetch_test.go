package nodelink

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"

	"github.com/pintle/pintle/internal/acs"
	"github.com/pintle/pintle/internal/state"
)

// served is a service of one task, of a definition with an image.
func served(tx *state.Tx, name, image string, created int64, change func(*state.Service, *state.TaskDefinition)) {
	td := definitionRow()
	td.TaskDefinitionArn = aws.String("arn:aws:ecs:us-east-1:000000000000:task-definition/" + name + ":1")
	td.ContainerDefinitions = []types.ContainerDefinition{{Name: aws.String("main"), Image: &image, Cpu: 1024, Memory: aws.Int32(64)}}
	at := time.Unix(created, 0)
	s := &state.Service{
		Service: types.Service{
			ServiceArn: aws.String("arn:aws:ecs:us-east-1:000000000000:service/poc/" + name), ClusterArn: aws.String(clusterArn),
			Status: aws.String(state.ServiceActive), DesiredCount: 1,
		},
		Deployments: []state.Deployment{{Deployment: types.Deployment{TaskDefinition: td.TaskDefinitionArn, CreatedAt: &at}}},
	}
	if change != nil {
		change(s, td)
	}
	tx.TaskDefinitions.Put(td)
	tx.Services.Put(s)
}

func imagesIn(m *acs.PintlePrefetch) string {
	var all []string
	for _, i := range m.Images {
		all = append(all, i.Image)
	}
	return strings.Join(all, " ")
}

// TestNextImages: a node is told of the images of services whose tasks it could take, and of no others.
func TestNextImages(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	node := instanceRow()
	node.Attributes = []types.Attribute{{Name: aws.String("ecs.cpu-architecture"), Value: aws.String("x86_64")}, {Name: aws.String("rack"), Value: aws.String("a")}}
	w.update(func(tx *state.Tx) {
		tx.ContainerInstances.Put(node)
		other := taskRow("other", "RUNNING", "RUNNING", "GPU-0")
		other.Reserved = state.Resources{CPU: 4096}
		tx.Tasks.Put(other)
		served(tx, "old", "old", 1, nil)
		served(tx, "new", "000000000000.dkr.ecr.us-east-1.amazonaws.com/new", 2, nil)
		served(tx, "none", "none", 3, func(s *state.Service, _ *state.TaskDefinition) { s.DesiredCount = 0 })
		served(tx, "file", "rootfs:/x", 3, nil)
		served(tx, "private", "private", 3, func(_ *state.Service, td *state.TaskDefinition) {
			td.ContainerDefinitions[0].RepositoryCredentials = &types.RepositoryCredentials{}
		})
		served(tx, "large", "large", 3, func(_ *state.Service, td *state.TaskDefinition) { td.ContainerDefinitions[0].Cpu = 4097 })
		served(tx, "gpus", "gpus", 3, func(_ *state.Service, td *state.TaskDefinition) {
			td.ContainerDefinitions[0].ResourceRequirements = []types.ResourceRequirement{{Type: types.ResourceTypeGpu, Value: aws.String("2")}}
		})
		served(tx, "gpu", "gpu", 0, func(_ *state.Service, td *state.TaskDefinition) {
			td.ContainerDefinitions[0].ResourceRequirements = []types.ResourceRequirement{{Type: types.ResourceTypeGpu, Value: aws.String("1")}}
		})
		served(tx, "arm", "arm", 3, func(_ *state.Service, td *state.TaskDefinition) {
			td.RuntimePlatform = &types.RuntimePlatform{CpuArchitecture: types.CPUArchitectureArm64}
		})
		served(tx, "elsewhere", "elsewhere", 3, func(s *state.Service, _ *state.TaskDefinition) {
			s.PlacementConstraints = []types.PlacementConstraint{{Type: types.PlacementConstraintTypeMemberOf, Expression: aws.String("attribute:rack == b")}}
		})
		served(tx, "provided", "provided", 3, func(s *state.Service, _ *state.TaskDefinition) {
			s.Deployments[0].CapacityProviderStrategy = []types.CapacityProviderStrategyItem{{CapacityProvider: aws.String("p")}}
		})
	})
	v := w.store.View()
	m := &acs.PintlePrefetch{Images: nextImages(v, node)}
	if got := imagesIn(m); got != "000000000000.dkr.ecr.us-east-1.amazonaws.com/new old gpu" {
		t.Errorf("it's told of %q", got)
	}
	if a := m.Images[0].RegistryAuthentication; a == nil || a.ECRAuthData == nil || a.ECRAuthData.UseExecutionRole {
		t.Errorf("it pulls from ECR with %+v", a)
	}
	drains := node.In(types.ContainerInstanceStatusDraining)
	if got := nextImages(v, drains); len(got) > 0 {
		t.Errorf("while it drains, it's told of %v", got)
	}
}

// TestPrefetch: a node that asks for it is told of images as they change, and others aren't.
func TestPrefetch(t *testing.T) {
	w := newWorld(t, newJournal(), Options{})
	node := instanceRow()
	node.Attributes = []types.Attribute{{Name: aws.String(acs.Prefetching)}}
	w.update(func(tx *state.Tx) {
		tx.ContainerInstances.Put(node)
		served(tx, "s", "one", 1, nil)
	})
	a, _ := w.connectACS()
	if got := imagesIn(next[*acs.PintlePrefetch](a)); got != "one" {
		t.Errorf("it's told of %q", got)
	}
	w.update(func(tx *state.Tx) { served(tx, "s", "two", 2, nil) })
	if got := imagesIn(next[*acs.PintlePrefetch](a)); got != "two" {
		t.Errorf("it's told of %q", got)
	}
}
