package cloudformation

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
)

// found has all that there is of Cloud Map.
const found = `
Resources:
  Names:
    Type: AWS::ServiceDiscovery::PrivateDnsNamespace
    Properties: {Name: corp.local, Vpc: vpc-1, Description: one, Properties: {DnsProperties: {SOA: {TTL: 30}}}, Tags: [{Key: a, Value: b}]}
  Plain:
    Type: AWS::ServiceDiscovery::HttpNamespace
    Properties: {Name: plain, Description: one}
  Web:
    Type: AWS::ServiceDiscovery::Service
    Properties:
      Name: web
      Description: one
      DnsConfig: {NamespaceId: !Ref Names, DnsRecords: [{Type: A, TTL: '10'}]}
      HealthCheckCustomConfig: {FailureThreshold: 1}
      ServiceAttributes: {gone: x, kept: one}
      Tags: [{Key: a, Value: b}]
  Generated:
    Type: AWS::ServiceDiscovery::Service
    Properties: {NamespaceId: !GetAtt Plain.Id}
  One:
    Type: AWS::ServiceDiscovery::Instance
    Properties: {ServiceId: !GetAtt Web.Id, InstanceId: one, InstanceAttributes: {AWS_INSTANCE_IPV4: 10.0.0.1}}
Outputs:
  Arn: {Value: !GetAtt Web.Arn}
  Zone: {Value: !GetAtt Names.HostedZoneId}
`

// TestDiscovery: a stack of names changes in place, is as its template says, and leaves nothing.
func TestDiscovery(t *testing.T) {
	w := newWorld(t, nil)
	w.create("names", found)
	w.expect(types.StackStatusCreateComplete)
	v := w.store.View()
	ids := physicalIDs(v)
	if n := v.Namespaces.Get(ids["Names"]); n.TTL != 30 || *n.Tags[0].Value != "b" || v.DiscoveryServices.Len() != 2 || v.DiscoveryInstances.Len() != 1 {
		t.Errorf("%+v", n)
	}
	if outputs := find(v, w.onlyStack()).Outputs; len(outputs) != 2 || !strings.HasSuffix(*outputs[0].OutputValue, ":service/"+ids["Web"]) {
		t.Errorf("%v", outputs)
	}
	changed := strings.NewReplacer("Description: one", "Description: two", "TTL: 30", "TTL: 60", "TTL: '10'", "TTL: '20'", "10.0.0.1", "10.0.0.2",
		"gone: x, kept: one", "kept: two", "Value: b", "Value: c").Replace(found)
	w.become("names", changed)
	w.expect(types.StackStatusUpdateComplete)
	v = w.store.View()
	if !slices.Equal(sortedIDs(ids), sortedIDs(physicalIDs(v))) {
		t.Errorf("%v became %v", ids, physicalIDs(v))
	}
	n, s, i := v.Namespaces.Get(ids["Names"]), v.DiscoveryServices.Get(ids["Web"]), v.DiscoveryInstances.Get(ids["Web"]+" one")
	if n.TTL != 60 || n.Description != "two" || *n.Tags[0].Value != "c" || v.Namespaces.Get(ids["Plain"]).Description != "two" {
		t.Errorf("%+v", n)
	}
	if *s.DNS.DnsRecords[0].TTL != 20 || s.Description != "two" || len(s.Attributes) != 1 || s.Attributes["kept"] != "two" || *s.Tags[0].Value != "c" {
		t.Errorf("%+v", s)
	}
	if i.Attributes["AWS_INSTANCE_IPV4"] != "10.0.0.2" {
		t.Errorf("%+v", i)
	}
	w.remove("names")
	if v := w.store.View(); v.Namespaces.Len()+v.DiscoveryServices.Len()+v.DiscoveryInstances.Len() != 0 {
		t.Error("the deleted stack has left something")
	}
}

func sortedIDs(all map[string]string) (ids []string) {
	for _, id := range all {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}
