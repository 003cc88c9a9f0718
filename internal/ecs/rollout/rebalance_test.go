package rollout

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsecs "github.com/aws/aws-sdk-go-v2/service/ecs"
	"github.com/aws/aws-sdk-go-v2/service/ecs/types"
)

// zoned adds a node in a zone. It takes tasks that ask for the attribute zoned.
func (w *world) zoned(zone string) string {
	return w.node(types.Attribute{
		Name:  aws.String("ecs.availability-zone"),
		Value: &zone,
	}, types.Attribute{
		Name:  aws.String("zoned"),
		Value: aws.String("1"),
	})
}

func onZoned(in *awsecs.CreateServiceInput) {
	in.PlacementConstraints = []types.PlacementConstraint{{
		Type:       types.PlacementConstraintTypeMemberOf,
		Expression: aws.String("attribute:zoned == 1"),
	}}
}

// zones counts the service's tasks by zone.
func (w *world) zones() string {
	n := map[string]int{}
	for _, task := range w.tasks() {
		n[aws.ToString(task.AvailabilityZone)]++
	}
	var out []string
	for _, zone := range slices.Sorted(maps.Keys(n)) {
		out = append(out, fmt.Sprintf("%s:%d", zone, n[zone]))
	}
	return strings.Join(out, " ")
}

func TestRebalance(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.zoned("a")
		w.create(4, onZoned)
		if s := w.after(time.Minute); s.AvailabilityZoneRebalancing != types.AvailabilityZoneRebalancingEnabled {
			t.Errorf("by default it is %s", s.AvailabilityZoneRebalancing)
		}
		before := len(w.service().Events)
		w.zoned("rack b")
		expect(t, w.after(time.Second), 4, 1, 1, completed)
		if got := w.zones(); got != "a:4 rack b:1" {
			t.Errorf("first there are %s", got)
		}
		expect(t, w.after(10*time.Minute), 4, 0, 1, completed)
		if got := w.zones(); got != "a:2 rack b:2" {
			t.Errorf("in the end there are %s", got)
		}
		want := []string{
			"(service s) is not AZ balanced with 4 tasks in a, 0 tasks in rack b. AZ Rebalancing in progress.",
			"(service s) has started 1 tasks in rack b to AZ Rebalance: (task ID).",
			"(service s) has stopped 1 running tasks in a due to AZ rebalancing: (task ID).",
			"(service s) has started 1 tasks in rack b to AZ Rebalance: (task ID).",
			"(service s) has stopped 1 running tasks in a due to AZ rebalancing: (task ID).",
			"(service s) is AZ balanced with 2 tasks in a, 2 tasks in rack b.",
			"(service s) has reached a steady state.",
		}
		if got := events(w.service())[before:]; !reflect.DeepEqual(got, want) {
			t.Errorf("events %q", got)
		}
		revision := w.store.Revision()
		if w.after(time.Hour); w.store.Revision() != revision {
			t.Error("a balanced service goes on changing")
		}
	})
}

func TestRebalanceWaits(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.define("gpu", oneGPU)
		w.zoned("a")
		w.zoned("a")
		w.create(2, onZoned, func(in *awsecs.CreateServiceInput) {
			in.AvailabilityZoneRebalancing = types.AvailabilityZoneRebalancingEnabled
		})
		expect(t, w.after(time.Minute), 2, 0, 1, completed)

		// Protected tasks are not moved.
		var tasks []string
		for _, task := range w.tasks() {
			tasks = append(tasks, *task.TaskArn)
		}
		if _, err := w.ecs.UpdateTaskProtection(w.ctx, &awsecs.UpdateTaskProtectionInput{
			Cluster:           aws.String("default"),
			Tasks:             tasks,
			ProtectionEnabled: true,
			ExpiresInMinutes:  aws.Int32(5),
		}); err != nil {
			t.Fatal(err)
		}
		before := len(w.service().Events)
		other, err := w.ecs.RunTask(w.ctx, &awsecs.RunTaskInput{TaskDefinition: aws.String("f")}) // the nodes outside each have one
		if err != nil || len(other.Failures) > 0 {
			t.Fatal(other, err)
		}
		b := w.zoned("b")
		expect(t, w.after(4*time.Minute), 2, 0, 1, completed)
		if got := w.zones(); !strings.HasPrefix(got, ":1 a:2") {
			t.Errorf("while they are protected there are %s", got)
		}

		// None is started where there is no room.
		if _, err := w.ecs.StartTask(w.ctx, &awsecs.StartTaskInput{
			TaskDefinition:     aws.String("f"),
			ContainerInstances: []string{b},
		}); err != nil {
			t.Fatal(err)
		}
		w.after(10 * time.Minute)
		want := []string{
			"(service s) is not AZ balanced with 2 tasks in a, 0 tasks in b. AZ Rebalancing in progress.",
			"(service s) was unable to AZ Rebalance because (taskSet ID) was unable to scale in due to (reason 2 tasks under protection)",
			"(service s) is unable to place a task in b because no container instance met all of its requirements.",
		}
		if got := events(w.service())[before:]; !reflect.DeepEqual(got, want) {
			t.Errorf("events %q", got)
		}

		// One is moved once there is room, but a deployment comes first.
		w.zoned("b")
		expect(t, w.after(time.Second), 2, 1, 1, completed)
		w.change(&awsecs.UpdateServiceInput{ForceNewDeployment: true})
		if got := events(w.after(time.Second)); !slices.Contains(got, "(service s) stopped AZ Rebalancing.") {
			t.Errorf("events %q", got)
		}
		expect(t, w.after(10*time.Minute), 2, 0, 1, completed)
	})
}

func TestRebalanceOnlyWhereWanted(t *testing.T) {
	for name, change := range map[string]func(*awsecs.CreateServiceInput){
		"disabled": func(in *awsecs.CreateServiceInput) {
			in.AvailabilityZoneRebalancing = types.AvailabilityZoneRebalancingDisabled
		},
		"without room for one more": func(in *awsecs.CreateServiceInput) {
			in.DeploymentConfiguration = &types.DeploymentConfiguration{
				MinimumHealthyPercent: aws.Int32(50),
				MaximumPercent:        aws.Int32(100),
			}
		},
		"packed": func(in *awsecs.CreateServiceInput) {
			in.PlacementStrategy = []types.PlacementStrategy{{Type: types.PlacementStrategyTypeBinpack, Field: aws.String("memory")}}
		},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				w.zoned("a")
				w.create(4, onZoned, change)
				w.after(time.Minute)
				w.zoned("b")
				w.after(10 * time.Minute)
				if got := w.zones(); got != "a:4" {
					t.Errorf("there are %s", got)
				}
			})
		})
	}
}
