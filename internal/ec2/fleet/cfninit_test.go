package fleet

import (
	"encoding/base64"
	"testing"
)

// TestConfigureByCfnInit: a cluster that the user data leaves to cfn-init is the one that the resource's metadata name.
func TestConfigureByCfnInit(t *testing.T) {
	metadata := map[string]string{
		"s Launch": `{"AWS::CloudFormation::Init":{"config":{"files":{
			"/etc/ecs/ecs.config":{"content":"ECS_CLUSTER=file\nECS_INSTANCE_ATTRIBUTES={\"rack\":\"7\"}\n"},
			"/etc/other":{"content":"ECS_CLUSTER=other\n"}}}}}`,
		"s Group": `{"AWS::CloudFormation::Init":{"configSets":{"all":["b","a"]},
			"a":{"commands":{"02":{"command":"echo x"},"01":{"command":"echo ECS_CLUSTER=command >> /etc/ecs/ecs.config","env":{"A":"b"}}}}}}`,
		"s List":  `{"AWS::CloudFormation::Init":{"config":{"files":{"/etc/ecs/ecs.config":{"content":{"a":1}}},"commands":{"a":{"command":["ls"]}}}}}`,
		"s Other": `{"Note":"ECS_CLUSTER=note"}`,
	}
	for script, want := range map[string]string{
		"#!/bin/bash -xe\n/opt/aws/bin/cfn-init -v          --stack s         --resource Launch          --region us-east-1\n": "file",
		"yum install -y aws-cfn-bootstrap; cfn-init -s s -r Group && cfn-signal --stack t --resource Launch":                   "command",
		"cfn-init \\\n  --stack=s \\\n  --resource='Group' \\\n  --configsets all\n":                                           "command",
		"echo ECS_CLUSTER=echo >> /etc/ecs/ecs.config\ncfn-init --stack s --resource List":                                     "echo",
		"cfn-init --stack s --resource Other":  "default",
		"cfn-init --stack s --resource None":   "default",
		"cfn-init --resource Launch":           "default",
		"cfn-signal -e $? --stack s -r Launch": "default",
	} {
		m := Machine{UserData: base64.StdEncoding.EncodeToString([]byte(script))}
		m.Configure(func(stack, resource string) string { return metadata[stack+" "+resource] })
		if m.Cluster != want || (want == "file") != (m.Attributes["rack"] == "7") {
			t.Errorf("%q: the cluster is %s, the attributes %v", script, m.Cluster, m.Attributes)
		}
	}
}
