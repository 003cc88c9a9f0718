package servicediscovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	ecstypes "github.com/aws/aws-sdk-go-v2/service/ecs/types"
	api "github.com/aws/aws-sdk-go-v2/service/servicediscovery"
	"github.com/aws/aws-sdk-go-v2/service/servicediscovery/types"
	"github.com/aws/smithy-go"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/state"
	"github.com/pintle/pintle/internal/state/statetest"
)

func newService(t *testing.T) *Service {
	return New(statetest.Open(t), Options{Account: accounttest.New(time.Now)})
}

// refused checks that a call was refused, by its code and a word of its message.
func refused(t *testing.T, err error, code, word string) {
	t.Helper()
	refusal, ok := errors.AsType[smithy.APIError](err)
	if !ok || refusal.ErrorCode() != code || !strings.Contains(refusal.ErrorMessage(), word) {
		t.Errorf("want %s with %q, got %v", code, word, err)
	}
}

// must returns the answer of a call that isn't refused.
func must[T any](t *testing.T) func(T, error) T {
	return func(out T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
}

// namespace creates a private DNS namespace and returns its id.
func (s *Service) testNamespace(t *testing.T, name string) *string {
	t.Helper()
	in := &api.CreatePrivateDnsNamespaceInput{Name: &name, Vpc: new("vpc-1")}
	out := must[*api.CreatePrivateDnsNamespaceOutput](t)(s.CreatePrivateDnsNamespace(t.Context(), in))
	o := must[*api.GetOperationOutput](t)(s.GetOperation(t.Context(), &api.GetOperationInput{OperationId: out.OperationId})).Operation
	if o.Status != types.OperationStatusSuccess || o.Type != types.OperationTypeCreateNamespace {
		t.Fatalf("%+v", o)
	}
	return new(o.Targets["NAMESPACE"])
}

func records(kinds ...types.RecordType) (out []types.DnsRecord) {
	for _, k := range kinds {
		out = append(out, types.DnsRecord{Type: k, TTL: new(int64(10))})
	}
	return out
}

func (s *Service) testService(t *testing.T, namespace *string, name string, kinds ...types.RecordType) *types.Service {
	t.Helper()
	in := &api.CreateServiceInput{Name: &name, NamespaceId: namespace, HealthCheckCustomConfig: &types.HealthCheckCustomConfig{}}
	if len(kinds) > 0 {
		in.DnsConfig = &types.DnsConfig{DnsRecords: records(kinds...)}
	}
	return must[*api.CreateServiceOutput](t)(s.CreateService(t.Context(), in)).Service
}

func (s *Service) testInstance(t *testing.T, service *string, id string, attributes map[string]string) {
	t.Helper()
	must[*api.RegisterInstanceOutput](t)(s.RegisterInstance(t.Context(), &api.RegisterInstanceInput{
		ServiceId: service, InstanceId: &id, Attributes: attributes,
	}))
}

// TestNamespaces: a name belongs to one namespace, which goes only once it's empty.
func TestNamespaces(t *testing.T) {
	ctx, s := t.Context(), newService(t)
	id := s.testNamespace(t, "corp.local")
	_, err := s.CreateHttpNamespace(ctx, &api.CreateHttpNamespaceInput{Name: new("Corp.local")})
	refused(t, err, "NamespaceAlreadyExists", "Corp.local")
	_, err = s.CreatePublicDnsNamespace(ctx, &api.CreatePublicDnsNamespaceInput{Name: new("example.com")})
	refused(t, err, "InvalidInput", "public DNS")
	for _, bad := range []string{"two words", "arn:x", strings.Repeat("a", 64) + ".b", "a..b", "-a.b", strings.Repeat("abc.", 64)} {
		_, err = s.CreatePrivateDnsNamespace(ctx, &api.CreatePrivateDnsNamespaceInput{Name: &bad, Vpc: new("vpc-1")})
		refused(t, err, "InvalidInput", "Name")
	}
	web := s.testService(t, id, "web", types.RecordTypeA)
	_, err = s.DeleteNamespace(ctx, &api.DeleteNamespaceInput{Id: id})
	refused(t, err, "ResourceInUse", "1 services")
	change := &types.PrivateDnsNamespaceChange{Description: new("d"), Properties: &types.PrivateDnsNamespacePropertiesChange{
		DnsProperties: &types.PrivateDnsPropertiesMutableChange{SOA: &types.SOAChange{TTL: new(int64(60))}},
	}}
	must[*api.UpdatePrivateDnsNamespaceOutput](t)(s.UpdatePrivateDnsNamespace(ctx, &api.UpdatePrivateDnsNamespaceInput{Id: id, Namespace: change}))
	n := must[*api.GetNamespaceOutput](t)(s.GetNamespace(ctx, &api.GetNamespaceInput{Id: id})).Namespace
	if *n.Description != "d" || *n.Properties.DnsProperties.SOA.TTL != 60 || *n.ServiceCount != 1 || *n.Properties.HttpProperties.HttpName != "corp.local" {
		t.Errorf("%+v", n)
	}
	_, err = s.UpdateHttpNamespace(ctx, &api.UpdateHttpNamespaceInput{Id: id, Namespace: &types.HttpNamespaceChange{Description: new("d")}})
	refused(t, err, "InvalidInput", "DNS_PRIVATE")
	must[*api.DeleteServiceOutput](t)(s.DeleteService(ctx, &api.DeleteServiceInput{Id: web.Id}))
	must[*api.DeleteNamespaceOutput](t)(s.DeleteNamespace(ctx, &api.DeleteNamespaceInput{Id: n.Arn}))
	_, err = s.GetNamespace(ctx, &api.GetNamespaceInput{Id: id})
	refused(t, err, "NamespaceNotFound", *id)
	ended := must[*api.ListOperationsOutput](t)(s.ListOperations(ctx, &api.ListOperationsInput{Filters: []types.OperationFilter{
		{Name: types.OperationFilterNameNamespaceId, Values: []string{*id}},
		{Name: types.OperationFilterNameType, Values: []string{"DELETE_NAMESPACE", "UPDATE_NAMESPACE"}, Condition: types.FilterConditionIn},
		{Name: types.OperationFilterNameUpdateDate, Values: []string{"0", "99999999999"}, Condition: types.FilterConditionBetween},
	}}))
	if len(ended.Operations) != 2 {
		t.Errorf("%+v", ended.Operations)
	}
}

// TestRequestIDs: a request that comes twice is made once, and its id isn't taken for another.
func TestRequestIDs(t *testing.T) {
	ctx, s := t.Context(), newService(t)
	create := func(name string) (*api.CreateHttpNamespaceOutput, error) {
		return s.CreateHttpNamespace(ctx, &api.CreateHttpNamespaceInput{Name: &name, CreatorRequestId: new("r")})
	}
	first := must[*api.CreateHttpNamespaceOutput](t)(create("a"))
	if again := must[*api.CreateHttpNamespaceOutput](t)(create("a")); *again.OperationId != *first.OperationId {
		t.Errorf("%s, then %s", *first.OperationId, *again.OperationId)
	}
	_, err := create("b")
	refused(t, err, "DuplicateRequest", `"r"`)
	namespace := must[*api.ListNamespacesOutput](t)(s.ListNamespaces(ctx, &api.ListNamespacesInput{})).Namespaces[0].Id
	service := &api.CreateServiceInput{Name: new("web"), NamespaceId: namespace, CreatorRequestId: new("s")}
	one := must[*api.CreateServiceOutput](t)(s.CreateService(ctx, service)).Service
	if two := must[*api.CreateServiceOutput](t)(s.CreateService(ctx, service)).Service; *two.Id != *one.Id {
		t.Errorf("%s, then %s", *one.Id, *two.Id)
	}
	_, err = s.CreateService(ctx, &api.CreateServiceInput{Name: new("web"), NamespaceId: namespace})
	refused(t, err, "ServiceAlreadyExists", "web")
}

// TestRefusedServices: what a service can't be is refused by the name of the member.
func TestRefusedServices(t *testing.T) {
	ctx, s := t.Context(), newService(t)
	id := s.testNamespace(t, "corp.local")
	must[*api.CreateHttpNamespaceOutput](t)(s.CreateHttpNamespace(ctx, &api.CreateHttpNamespaceInput{Name: new("web")}))
	plain := new(s.store.View().NamespaceNamed("web").ID)
	with := func(policy types.RoutingPolicy, kinds ...types.RecordType) *types.DnsConfig {
		return &types.DnsConfig{RoutingPolicy: policy, DnsRecords: records(kinds...)}
	}
	for _, c := range []struct {
		name       string
		in         api.CreateServiceInput
		code, word string
	}{
		{"no namespace", api.CreateServiceInput{}, "InvalidInput", "NamespaceId"},
		{"a missing one", api.CreateServiceInput{NamespaceId: new("ns-1")}, "NamespaceNotFound", "ns-1"},
		{"two", api.CreateServiceInput{NamespaceId: id, DnsConfig: &types.DnsConfig{NamespaceId: plain, DnsRecords: records("A")}}, "InvalidInput", "NamespaceId"},
		{"names in HTTP", api.CreateServiceInput{NamespaceId: plain, DnsConfig: with("", "A")}, "InvalidInput", "DnsConfig"},
		{"names of type HTTP", api.CreateServiceInput{NamespaceId: id, Type: "HTTP", DnsConfig: with("", "A")}, "InvalidInput", "DnsConfig"},
		{"Route 53's checks", api.CreateServiceInput{NamespaceId: id, HealthCheckConfig: &types.HealthCheckConfig{Type: "HTTP"}}, "InvalidInput", "HealthCheckConfig"},
		{"two of a type", api.CreateServiceInput{NamespaceId: id, DnsConfig: with("", "A", "A")}, "InvalidInput", "DnsRecords"},
		{"an alias and an address", api.CreateServiceInput{NamespaceId: id, DnsConfig: with("WEIGHTED", "A", "CNAME")}, "InvalidInput", "CNAME"},
		{"several aliases", api.CreateServiceInput{NamespaceId: id, DnsConfig: with("MULTIVALUE", "CNAME")}, "InvalidInput", "RoutingPolicy"},
	} {
		c.in.Name = new("x")
		_, err := s.CreateService(ctx, &c.in)
		t.Log(c.name)
		refused(t, err, c.code, c.word)
	}
	if s.store.View().DiscoveryServices.Len() != 0 {
		t.Error("a refused service is there")
	}
}

// TestRefusedInstances: an instance has what its service's records need.
func TestRefusedInstances(t *testing.T) {
	ctx, s := t.Context(), newService(t)
	id := s.testNamespace(t, "corp.local")
	address, port := s.testService(t, id, "a", types.RecordTypeA), s.testService(t, id, "srv", types.RecordTypeSrv)
	many := map[string]string{}
	for i := range 31 {
		many[fmt.Sprint("a", i)] = "x"
	}
	for _, c := range []struct {
		service    *types.Service
		attributes map[string]string
		word       string
	}{
		{address, map[string]string{"AWS_INSTANCE_IPV4": "10.0.0"}, "AWS_INSTANCE_IPV4"},
		{address, map[string]string{"AWS_INSTANCE_IPV6": "10.0.0.1"}, "AWS_INSTANCE_IPV6"},
		{address, map[string]string{"color": "red"}, "AWS_INSTANCE_IPV4"},
		{address, map[string]string{"AWS_ALIAS_DNS_NAME": "lb.example.com"}, "AWS_ALIAS_DNS_NAME"},
		{address, map[string]string{"AWS_EC2_INSTANCE_ID": "i-1"}, "AWS_EC2_INSTANCE_ID"},
		{address, map[string]string{"AWS_INSTANCE_IPV4": "10.0.0.1", "AWS_INIT_HEALTH_STATUS": "WELL"}, "AWS_INIT_HEALTH_STATUS"},
		{address, many, "31 members"},
		{address, map[string]string{"a": strings.Repeat("x", 6000)}, "characters"},
		{port, map[string]string{"AWS_INSTANCE_IPV4": "10.0.0.1"}, "AWS_INSTANCE_PORT"},
		{port, map[string]string{"AWS_INSTANCE_PORT": "80"}, "AWS_INSTANCE_IPV4"},
		{port, map[string]string{"AWS_INSTANCE_IPV4": "10.0.0.1", "AWS_INSTANCE_PORT": "65536"}, "AWS_INSTANCE_PORT"},
	} {
		_, err := s.RegisterInstance(ctx, &api.RegisterInstanceInput{ServiceId: c.service.Id, InstanceId: new("i"), Attributes: c.attributes})
		refused(t, err, "InvalidInput", c.word)
	}
	if s.store.View().DiscoveryInstances.Len() != 0 {
		t.Error("a refused instance is there")
	}
}

// discovered returns the ids of the instances that DiscoverInstances returns, sorted.
func (s *Service) discovered(t *testing.T, in api.DiscoverInstancesInput) string {
	t.Helper()
	in.NamespaceName, in.ServiceName = new("corp.local"), new("web")
	var ids []string
	for _, i := range must[*api.DiscoverInstancesOutput](t)(s.DiscoverInstances(context.Background(), &in)).Instances {
		ids = append(ids, *i.InstanceId+":"+string(i.HealthStatus))
	}
	return strings.Join(slices.Sorted(slices.Values(ids)), " ")
}

// TestDiscovered: who asks gets the instances by health and attributes.
func TestDiscovered(t *testing.T) {
	ctx, s := t.Context(), newService(t)
	web := s.testService(t, s.testNamespace(t, "corp.local"), "web", types.RecordTypeA)
	revision := func() int64 {
		in := &api.DiscoverInstancesRevisionInput{NamespaceName: new("corp.local"), ServiceName: new("web")}
		return *must[*api.DiscoverInstancesRevisionOutput](t)(s.DiscoverInstancesRevision(ctx, in)).InstancesRevision
	}
	for i, color := range []string{"red", "red", "blue"} {
		s.testInstance(t, web.Id, fmt.Sprint("i", i), map[string]string{"AWS_INSTANCE_IPV4": fmt.Sprint("10.0.0.", i), "color": color, "n": fmt.Sprint(i)})
	}
	if revision() != 3 {
		t.Errorf("revision %d after three instances", revision())
	}
	set := func(id string, h types.CustomHealthStatus) {
		must[*api.UpdateInstanceCustomHealthStatusOutput](t)(s.UpdateInstanceCustomHealthStatus(ctx, &api.UpdateInstanceCustomHealthStatusInput{
			ServiceId: web.Id, InstanceId: &id, Status: h,
		}))
	}
	set("i0", types.CustomHealthStatusUnhealthy)
	if revision() != 3 {
		t.Errorf("revision %d after a change of health", revision())
	}
	red, other := map[string]string{"color": "red"}, map[string]string{"n": "7"}
	for _, c := range []struct {
		in   api.DiscoverInstancesInput
		want string
	}{
		{api.DiscoverInstancesInput{}, "i1:HEALTHY i2:HEALTHY"},
		{api.DiscoverInstancesInput{HealthStatus: "ALL"}, "i0:UNHEALTHY i1:HEALTHY i2:HEALTHY"},
		{api.DiscoverInstancesInput{HealthStatus: "UNHEALTHY"}, "i0:UNHEALTHY"},
		{api.DiscoverInstancesInput{HealthStatus: "ALL", QueryParameters: red}, "i0:UNHEALTHY i1:HEALTHY"},
		{api.DiscoverInstancesInput{HealthStatus: "ALL", OptionalParameters: red}, "i0:UNHEALTHY i1:HEALTHY"},
		{api.DiscoverInstancesInput{HealthStatus: "ALL", QueryParameters: red, OptionalParameters: other}, "i0:UNHEALTHY i1:HEALTHY"},
		{api.DiscoverInstancesInput{QueryParameters: other}, ""},
	} {
		if got := s.discovered(t, c.in); got != c.want {
			t.Errorf("%+v: %q, want %q", c.in, got, c.want)
		}
	}
	if got := s.discovered(t, api.DiscoverInstancesInput{HealthStatus: "ALL", MaxResults: new(int32(2))}); len(strings.Fields(got)) != 2 {
		t.Errorf("at most two: %q", got)
	}
	set("i1", types.CustomHealthStatusUnhealthy)
	set("i2", types.CustomHealthStatusUnhealthy)
	if got := s.discovered(t, api.DiscoverInstancesInput{HealthStatus: "HEALTHY"}); got != "" {
		t.Errorf("none is healthy, but: %q", got)
	}
	if got := s.discovered(t, api.DiscoverInstancesInput{}); len(strings.Fields(got)) != 3 {
		t.Errorf("where none is healthy all are returned, not %q", got)
	}
	health := must[*api.GetInstancesHealthStatusOutput](t)(s.GetInstancesHealthStatus(ctx, &api.GetInstancesHealthStatusInput{ServiceId: web.Id}))
	if want := (map[string]types.HealthStatus{"i0": "UNHEALTHY", "i1": "UNHEALTHY", "i2": "UNHEALTHY"}); !maps.Equal(health.Status, want) {
		t.Errorf("%v", health.Status)
	}
	_, err := s.DeleteService(ctx, &api.DeleteServiceInput{Id: web.Id})
	refused(t, err, "ResourceInUse", "3 instances")
	must[*api.DeregisterInstanceOutput](t)(s.DeregisterInstance(ctx, &api.DeregisterInstanceInput{ServiceId: web.Id, InstanceId: new("i1")}))
	if got := s.discovered(t, api.DiscoverInstancesInput{HealthStatus: "ALL"}); got != "i0:UNHEALTHY i2:UNHEALTHY" || revision() != 4 {
		t.Errorf("%q, revision %d", got, revision())
	}
	_, err = s.DeregisterInstance(ctx, &api.DeregisterInstanceInput{ServiceId: web.Id, InstanceId: new("i1")})
	refused(t, err, "InstanceNotFound", "i1")
}

// TestServiceChanges: a service's TTL changes, the types of its records don't.
func TestServiceChanges(t *testing.T) {
	ctx, s := t.Context(), newService(t)
	web := s.testService(t, s.testNamespace(t, "corp.local"), "web", types.RecordTypeA)
	update := func(all []types.DnsRecord) error {
		_, err := s.UpdateService(ctx, &api.UpdateServiceInput{Id: web.Id, Service: &types.ServiceChange{DnsConfig: &types.DnsConfigChange{DnsRecords: all}}})
		return err
	}
	refused(t, update(records("SRV")), "InvalidInput", "DnsRecords")
	if err := update([]types.DnsRecord{{Type: "A", TTL: new(int64(99))}}); err != nil {
		t.Fatal(err)
	}
	attributes := map[string]string{"a": "1", "b": "2"}
	must[*api.UpdateServiceAttributesOutput](t)(s.UpdateServiceAttributes(ctx, &api.UpdateServiceAttributesInput{ServiceId: web.Id, Attributes: attributes}))
	must[*api.DeleteServiceAttributesOutput](t)(s.DeleteServiceAttributes(ctx, &api.DeleteServiceAttributesInput{ServiceId: web.Id, Attributes: []string{"a"}}))
	got := must[*api.GetServiceAttributesOutput](t)(s.GetServiceAttributes(ctx, &api.GetServiceAttributesInput{ServiceId: web.Id})).ServiceAttributes
	row := must[*api.GetServiceOutput](t)(s.GetService(ctx, &api.GetServiceInput{Id: web.Arn})).Service
	if *row.DnsConfig.DnsRecords[0].TTL != 99 || row.Type != types.ServiceTypeDnsHttp || !maps.Equal(got.Attributes, map[string]string{"b": "2"}) {
		t.Errorf("%+v, %v", row, got.Attributes)
	}
	must[*api.TagResourceOutput](t)(s.TagResource(ctx, &api.TagResourceInput{ResourceARN: web.Arn, Tags: []types.Tag{{Key: new("k"), Value: new("v")}}}))
	must[*api.UntagResourceOutput](t)(s.UntagResource(ctx, &api.UntagResourceInput{ResourceARN: web.Arn, TagKeys: []string{"none"}}))
	if tags := must[*api.ListTagsForResourceOutput](t)(s.ListTagsForResource(ctx, &api.ListTagsForResourceInput{ResourceARN: web.Arn})).Tags; len(tags) != 1 {
		t.Errorf("%v", tags)
	}
	_, err := s.ListTagsForResource(ctx, &api.ListTagsForResourceInput{ResourceARN: new("arn:aws:servicediscovery:us-east-1:000000000000:service/srv-1")})
	refused(t, err, "ResourceNotFoundException", "srv-1")
}

// TestTasksOfNodesAway: who asks for healthy instances gets none of tasks whose node is away, unless all are.
func TestTasksOfNodesAway(t *testing.T) {
	s := newService(t)
	web := s.testService(t, s.testNamespace(t, "corp.local"), "web", types.RecordTypeA)
	away := func(nodes ...string) {
		t.Helper()
		err := s.store.Update(t.Context(), func(tx *state.Tx) error {
			for _, name := range []string{"one", "two"} {
				tx.ContainerInstances.Put(&state.ContainerInstance{
					ContainerInstance: ecstypes.ContainerInstance{ContainerInstanceArn: &name}, Away: slices.Contains(nodes, name),
				})
				tx.Tasks.Put(&state.Task{Task: ecstypes.Task{TaskArn: &name, ContainerInstanceArn: &name}})
				tx.PutInstance(&state.DiscoveryInstance{
					Service: *web.Id, ID: name, Task: name, Health: types.CustomHealthStatusHealthy, Attributes: map[string]string{},
				})
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	away("one")
	if got := s.discovered(t, api.DiscoverInstancesInput{}); got != "two:HEALTHY" {
		t.Errorf("one is away: %q", got)
	}
	if got := s.discovered(t, api.DiscoverInstancesInput{HealthStatus: "ALL"}); got != "one:UNHEALTHY two:HEALTHY" {
		t.Errorf("all, one of which is away: %q", got)
	}
	away("one", "two")
	if got := s.discovered(t, api.DiscoverInstancesInput{}); got != "one:UNHEALTHY two:UNHEALTHY" {
		t.Errorf("both are away: %q", got)
	}
}
