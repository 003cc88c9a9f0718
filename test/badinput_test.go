package test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// refusal is a request that must fail with an AWS error and change nothing.
type refusal struct {
	operation, body string
	code            string
	says            string // what the message must contain
}

const ok = `"name":"a","image":"i","memory":64,"command":["true"]`

// definition returns a RegisterTaskDefinition request with one container, and more fields after it.
func definition(container, more string) string {
	return fmt.Sprintf(`{"family":"f","containerDefinitions":[{%s}]%s}`, container, more)
}

var refusals = []refusal{
	// Not JSON, or JSON of the wrong types.
	{"ListClusters", `{`, "SerializationException", "JSON"},
	{"ListClusters", `[]`, "SerializationException", "object"},
	{"ListClusters", `null x`, "SerializationException", ""},
	{"ListClusters", `{} {}`, "SerializationException", ""},
	{"ListClusters", `"text"`, "SerializationException", "object"},
	{"ListClusters", "{\"nextToken\":\"\xff\"}", "SerializationException", ""},
	{"ListClusters", `{"maxResults":1,"maxResults":2}`, "SerializationException", "maxResults"},
	{"ListClusters", `{"maxResults":"1"}`, "SerializationException", "maxResults"},
	{"ListClusters", `{"maxResults":1.5}`, "SerializationException", "maxResults"},
	{"ListClusters", `{"maxResults":99999999999}`, "SerializationException", "maxResults"},
	{"ListClusters", `{"maxResults":true}`, "SerializationException", "maxResults"},
	{"ListClusters", `{"nextToken":7}`, "SerializationException", "nextToken"},
	{"ListClusters", `{"unknown":1}`, "SerializationException", "unknown"},
	{"ListClusters", `{"MaxResults":1}`, "SerializationException", "MaxResults"},
	{"DescribeClusters", `{"clusters":"a"}`, "SerializationException", "clusters"},
	{"DescribeClusters", `{"clusters":[1]}`, "SerializationException", "clusters"},
	{"CreateCluster", `{"tags":{"a":"b"}}`, "SerializationException", "tags"},
	{"CreateCluster", `{"settings":[[]]}`, "SerializationException", "settings"},
	{"RunTask", `{"overrides":[]}`, "SerializationException", "overrides"},
	{"RunTask", `{"overrides":{"containerOverrides":[{"cpu":"1"}]}}`, "SerializationException", "cpu"},
	{"RunTask", `{"taskDefinition":{"a":1}}`, "SerializationException", "taskDefinition"},
	{"RegisterTaskDefinition", definition(`"name":1`, ""), "SerializationException", "name"},
	{"RegisterTaskDefinition", definition(`"essential":"yes"`, ""), "SerializationException", "essential"},
	{"RegisterTaskDefinition", definition(`"dockerLabels":["a"]`, ""), "SerializationException", "dockerLabels"},
	{"RegisterTaskDefinition", `{"family":"` + strings.Repeat("a", 10<<20) + `"}`, "RequestEntityTooLargeException", ""},
	{"SubmitTaskStateChange", `{"pullStartedAt":"yesterday"}`, "SerializationException", "pullStartedAt"},
	// Unknown and unimplemented operations.
	{"DanceTask", `{}`, "UnknownOperationException", "DanceTask"},
	{"", `{}`, "UnknownOperationException", ""},
	{"CreateDaemon", `{}`, "NotImplementedException", "CreateDaemon"},
	// Clusters.
	{"CreateCluster", `{"clusterName":"a b"}`, "InvalidParameterException", "clusterName"},
	{"CreateCluster", `{"clusterName":"` + strings.Repeat("a", 256) + `"}`, "InvalidParameterException", "clusterName"},
	{"CreateCluster", `{"clusterName":"x","settings":[{"name":"other","value":"enabled"}]}`, "InvalidParameterException", "settings"},
	{"CreateCluster", `{"clusterName":"x","settings":[{"name":"containerInsights","value":"maybe"}]}`,
		"InvalidParameterException", "containerInsights"},
	{"CreateCluster", `{"clusterName":"x","capacityProviders":["none"]}`, "InvalidParameterException", "none"},
	{"CreateCluster", `{"clusterName":"x","tags":[{"key":"aws:x","value":"v"}]}`, "InvalidParameterException", "aws:"},
	{"CreateCluster", `{"clusterName":"x","tags":[{"key":"","value":"v"}]}`, "InvalidParameterException", "tag key"},
	{"CreateCluster", `{"clusterName":"x","tags":[{"key":"a"},{"key":"a"}]}`, "InvalidParameterException", "twice"},
	{"CreateCluster", `{"clusterName":"x","tags":[{"key":"a","value":"` + strings.Repeat("v", 257) + `"}]}`,
		"InvalidParameterException", "256"},
	{"CreateCluster",
		`{"clusterName":"x","capacityProviders":["FARGATE"],"defaultCapacityProviderStrategy":[{"capacityProvider":"FARGATE_SPOT"}]}`,
		"InvalidParameterException", "FARGATE_SPOT"},
	{"PutClusterCapacityProviders", `{"cluster":"default","capacityProviders":["none"],"defaultCapacityProviderStrategy":[]}`,
		"InvalidParameterException", "none"},
	{"PutClusterCapacityProviders",
		`{"cluster":"default","capacityProviders":["FARGATE"],"defaultCapacityProviderStrategy":[{"capacityProvider":"FARGATE",` +
			`"weight":-1}]}`, "InvalidParameterException", "defaultCapacityProviderStrategy.weight"},
	// Capacity providers.
	{"CreateCapacityProvider", `{}`, "InvalidParameterException", "name"},
	{"CreateCapacityProvider", `{"name":"a b","autoScalingGroupProvider":{"autoScalingGroupArn":"g"}}`,
		"InvalidParameterException", "name"},
	{"CreateCapacityProvider", `{"name":"ECSown","autoScalingGroupProvider":{"autoScalingGroupArn":"g"}}`,
		"InvalidParameterException", "ecs"},
	{"CreateCapacityProvider", `{"name":"fargate-2","autoScalingGroupProvider":{"autoScalingGroupArn":"g"}}`,
		"InvalidParameterException", "fargate"},
	{"CreateCapacityProvider", `{"name":"p"}`, "InvalidParameterException", "autoScalingGroupProvider"},
	{"CreateCapacityProvider",
		`{"name":"p","managedInstancesProvider":{"infrastructureRoleArn":"r","instanceLaunchTemplate":{"ec2InstanceProfileArn":"p",` +
			`"networkConfiguration":{}}}}`, "UnsupportedFeatureException", "managedInstancesProvider"},
	{"CreateCapacityProvider", `{"name":"p","cluster":"default","autoScalingGroupProvider":{"autoScalingGroupArn":"g"}}`,
		"InvalidParameterException", "cluster"},
	{"CreateCapacityProvider", group(`"managedTerminationProtection":"ENABLED"`),
		"InvalidParameterException", "managedTerminationProtection"},
	{"CreateCapacityProvider", group(`"managedTerminationProtection":"MAYBE"`),
		"InvalidParameterException", "managedTerminationProtection"},
	{"CreateCapacityProvider", group(`"managedDraining":"MAYBE"`), "InvalidParameterException", "managedDraining"},
	{"CreateCapacityProvider", group(`"managedScaling":{"status":"MAYBE"}`), "InvalidParameterException", "status"},
	{"CreateCapacityProvider", group(`"managedScaling":{"targetCapacity":0}`), "InvalidParameterException", "targetCapacity"},
	{"CreateCapacityProvider", group(`"managedScaling":{"targetCapacity":101}`), "InvalidParameterException", "targetCapacity"},
	{"CreateCapacityProvider", group(`"managedScaling":{"minimumScalingStepSize":0}`),
		"InvalidParameterException", "minimumScalingStepSize"},
	{"CreateCapacityProvider", group(`"managedScaling":{"minimumScalingStepSize":3,"maximumScalingStepSize":2}`),
		"InvalidParameterException", "minimumScalingStepSize"},
	{"CreateCapacityProvider", group(`"managedScaling":{"instanceWarmupPeriod":10001}`),
		"InvalidParameterException", "instanceWarmupPeriod"},
	{"UpdateCapacityProvider", `{"name":"none","autoScalingGroupProvider":{}}`, "ClientException", "none"},
	{"UpdateCapacityProvider", `{"name":"FARGATE","autoScalingGroupProvider":{}}`, "InvalidParameterException", "FARGATE"},
	{"UpdateCapacityProvider", `{"name":"none"}`, "InvalidParameterException", "autoScalingGroupProvider"},
	{"DeleteCapacityProvider", `{}`, "InvalidParameterException", "name"},
	{"DeleteCapacityProvider", `{"capacityProvider":"none"}`, "ClientException", "none"},
	{"DeleteCapacityProvider", `{"capacityProvider":"FARGATE_SPOT"}`, "InvalidParameterException", "FARGATE_SPOT"},
	{"DescribeCapacityProviders", `{"maxResults":11}`, "InvalidParameterException", "maxResults"},
	{"DescribeCapacityProviders", `{"cluster":"nowhere"}`, "ClusterNotFoundException", ""},
	// Task sets.
	{"CreateTaskSet", `{"cluster":"default","service":"s"}`, "InvalidParameterException", "taskDefinition"},
	{"CreateTaskSet", `{"service":"s","taskDefinition":"good"}`, "InvalidParameterException", "cluster"},
	{"CreateTaskSet", taskSet(``), "ServiceNotFoundException", ""},
	{"CreateTaskSet", taskSet(`,"scale":{"value":101}`), "InvalidParameterException", "scale.value"},
	{"CreateTaskSet", taskSet(`,"scale":{"value":-0.5}`), "InvalidParameterException", "scale.value"},
	{"CreateTaskSet", taskSet(`,"scale":{"value":1,"unit":"TASKS"}`), "InvalidParameterException", "scale.unit"},
	{"CreateTaskSet", taskSet(`,"launchType":"BALLOON"`), "InvalidParameterException", "launchType"},
	{"CreateTaskSet", taskSet(`,"launchType":"EC2","capacityProviderStrategy":[{"capacityProvider":"p"}]`),
		"InvalidParameterException", "launch type"},
	{"CreateTaskSet", taskSet(`,"loadBalancers":[{"containerName":"a"}]`), "InvalidParameterException", "targetGroupArn"},
	{"CreateTaskSet", taskSet(`,"serviceRegistries":[{"registryArn":""}]`), "InvalidParameterException", "serviceRegistries.registryArn"},
	{"CreateTaskSet", taskSet(`,"platformVersion":"1.4.0"`), "ServiceNotFoundException", ""},
	{"CreateTaskSet", taskSet(`,"clientToken":"a b"`), "InvalidParameterException", "clientToken"},
	{"CreateTaskSet", taskSet(`,"tags":[{"key":"aws:x"}]`), "InvalidParameterException", "aws:"},
	{"UpdateTaskSet", `{"cluster":"default","service":"s","taskSet":"t"}`, "InvalidParameterException", "scale"},
	{"UpdateTaskSet", `{"cluster":"default","service":"s","taskSet":"t","scale":{"value":50}}`, "ServiceNotFoundException", ""},
	{"DeleteTaskSet", `{"cluster":"default","service":"s","taskSet":"t"}`, "ServiceNotFoundException", ""},
	{"UpdateServicePrimaryTaskSet", `{"cluster":"default","service":"s","primaryTaskSet":"t"}`, "ServiceNotFoundException", ""},
	{"DescribeTaskSets", `{"cluster":"default"}`, "InvalidParameterException", "service"},
	{"DescribeTaskSets", `{"cluster":"default","service":"s"}`, "ServiceNotFoundException", ""},
	{"RunTask", `{"taskDefinition":"good","capacityProviderStrategy":[{"capacityProvider":"p","weight":1}]}`,
		"InvalidParameterException", "capacityProviderStrategy"},
	{"RunTask", `{"taskDefinition":"good","launchType":"EC2","capacityProviderStrategy":[{"capacityProvider":"p","weight":1}]}`,
		"InvalidParameterException", "launch type"},
	{"DeleteCluster", `{}`, "InvalidParameterException", "cluster"},
	{"DeleteCluster", `{"cluster":"nowhere"}`, "ClusterNotFoundException", ""},
	{"DeleteCluster", `{"cluster":"default"}`, "ClusterContainsContainerInstancesException", ""},
	{"UpdateCluster", `{"cluster":"nowhere"}`, "ClusterNotFoundException", ""},
	{"ListClusters", `{"maxResults":0}`, "InvalidParameterException", "maxResults"},
	{"ListClusters", `{"maxResults":101}`, "InvalidParameterException", "maxResults"},
	{"ListClusters", `{"nextToken":"%%%"}`, "InvalidParameterException", "nextToken"},
	{"ListClusters", `{"nextToken":"aGVsbG8"}`, "InvalidParameterException", "nextToken"},
	// Task definitions.
	{"RegisterTaskDefinition", `{}`, "ClientException", "Family"},
	{"RegisterTaskDefinition", `{"family":"a/b","containerDefinitions":[]}`, "ClientException", "Family"},
	{"RegisterTaskDefinition", `{"family":"f"}`, "ClientException", "Container list"},
	{"RegisterTaskDefinition", definition(`"image":"i","memory":64`, ""), "ClientException", "name"},
	{"RegisterTaskDefinition", definition(`"name":"a b","image":"i","memory":64`, ""), "ClientException", "name"},
	{"RegisterTaskDefinition", definition(`"name":"a","memory":64`, ""), "ClientException", "image"},
	{"RegisterTaskDefinition", definition(`"name":"a","image":"i"`, ""), "ClientException", "'memory'"},
	{"RegisterTaskDefinition", definition(`"name":"a","image":"i","memory":3`, ""), "ClientException", "'memory'"},
	{"RegisterTaskDefinition", definition(`"name":"a","image":"i","memory":-1`, ""), "ClientException", "'memory'"},
	{"RegisterTaskDefinition", definition(`"name":"a","image":"i","memory":8,"memoryReservation":9`, ""),
		"ClientException", "memoryReservation"},
	{"RegisterTaskDefinition", definition(ok+`,"cpu":-1`, ""), "ClientException", "'cpu'"},
	{"RegisterTaskDefinition", definition(ok+`,"essential":false`, ""), "ClientException", "essential"},
	{"RegisterTaskDefinition", definition(ok+`,"resourceRequirements":[{"type":"GPU","value":"0"}]`, ""), "ClientException", "GPU"},
	{"RegisterTaskDefinition", definition(ok+`,"resourceRequirements":[{"type":"GPU","value":"1.5"}]`, ""), "ClientException", "GPU"},
	{"RegisterTaskDefinition", definition(ok+`,"resourceRequirements":[{"type":"GPU","value":"-2"}]`, ""), "ClientException", "GPU"},
	{"RegisterTaskDefinition", definition(ok+`,"resourceRequirements":[{"type":"TPU","value":"1"}]`, ""), "ClientException", "TPU"},
	{"RegisterTaskDefinition", definition(ok+`,"resourceRequirements":[{"type":"GPU","value":"1"},{"type":"GPU","value":"1"}]`, ""),
		"ClientException", "twice"},
	{"RegisterTaskDefinition", definition(ok+`,"healthCheck":{"command":["true"]}`, ""), "ClientException", "CMD"},
	{"RegisterTaskDefinition", definition(ok+`,"healthCheck":{"command":["CMD","true"],"interval":4}`, ""), "ClientException", "interval"},
	{"RegisterTaskDefinition", definition(ok+`,"healthCheck":{"command":["CMD","true"],"retries":11}`, ""), "ClientException", "retries"},
	{"RegisterTaskDefinition", definition(ok+`,"ulimits":[{"name":"nofile","softLimit":2,"hardLimit":1}]`, ""),
		"ClientException", "nofile"},
	{"RegisterTaskDefinition", definition(ok+`,"ulimits":[{"name":"nothing","softLimit":1,"hardLimit":1}]`, ""),
		"ClientException", "nothing"},
	{"RegisterTaskDefinition", definition(ok+`,"linuxParameters":{"sharedMemorySize":0}`, ""), "ClientException", "sharedMemorySize"},
	{"RegisterTaskDefinition", definition(ok+`,"linuxParameters":{"swappiness":101}`, ""), "ClientException", "swappiness"},
	{"RegisterTaskDefinition", definition(ok+`,"mountPoints":[{"sourceVolume":"v","containerPath":"/v"}]`, ""),
		"ClientException", "volume"},
	{"RegisterTaskDefinition", definition(ok+`,"logConfiguration":{"logDriver":"pigeon"}`, ""), "ClientException", "pigeon"},
	{"RegisterTaskDefinition", definition(ok+`,"logConfiguration":{"logDriver":"awslogs"}`, ""), "ClientException", "awslogs-group"},
	{"RegisterTaskDefinition", definition(ok+`,"portMappings":[{"containerPort":70000}]`, ""), "ClientException", "65535"},
	{"RegisterTaskDefinition", definition(ok+`,"portMappings":[{"containerPort":80,"protocol":"sctp"}]`, ""),
		"ClientException", "protocol"},
	{"RegisterTaskDefinition", definition(ok+`,"portMappings":[{"containerPort":80,"hostPort":81}]`, `,"networkMode":"host"`),
		"ClientException", "host"},
	{"RegisterTaskDefinition", definition(ok+`,"portMappings":[{"containerPort":80,"hostPort":90},{"containerPort":81,"hostPort":90}]`, ""),
		"ClientException", "90"},
	{"RegisterTaskDefinition", definition(ok+`,"dependsOn":[{"containerName":"b","condition":"START"}]`, ""), "ClientException", "'b'"},
	{"RegisterTaskDefinition", definition(ok+`,"dependsOn":[{"containerName":"a","condition":"START"}]`, ""), "ClientException", "itself"},
	{"RegisterTaskDefinition", definition(ok+`,"dependsOn":[{"containerName":"a","condition":"SOMEDAY"}]`, ""),
		"ClientException", "SOMEDAY"},
	{"RegisterTaskDefinition", definition(ok+`,"links":["b"]`, ""), "ClientException", "'b'"},
	{"RegisterTaskDefinition", definition(ok+`},{`+ok, ""), "ClientException", "twice"},
	{"RegisterTaskDefinition", definition(ok+`,"environment":[{"name":"A=B","value":"c"}]`, ""), "ClientException", "environment"},
	{"RegisterTaskDefinition", definition(ok+`,"secrets":[{"name":"A"}]`, ""), "ClientException", "valueFrom"},
	{"RegisterTaskDefinition", definition(ok+`,"secrets":[{"name":"A","valueFrom":"a"}]`, ""), "ClientException", "executionRoleArn"},
	{"RegisterTaskDefinition", definition(ok+`,"repositoryCredentials":{"credentialsParameter":"a"}`, ""), "ClientException", "executionRoleArn"},
	{"RegisterTaskDefinition", definition(ok+`,"environmentFiles":[{"type":"s3","value":"arn:aws:s3:::b/k.env"}]`, ""), "ClientException", "executionRoleArn"},
	{"RegisterTaskDefinition", definition(ok+`,"environmentFiles":[{"type":"s3","value":"arn:aws:s3:::b/k.txt"}]`, ""), "ClientException", ".env"},
	{"RegisterTaskDefinition", definition(ok+`,"environmentFiles":[{"type":"efs","value":"arn:aws:s3:::b/k.env"}]`, ""), "ClientException", "must be s3"},
	{"RegisterTaskDefinition", definition(ok, `,"networkMode":"tube"`), "ClientException", "tube"},
	{"RegisterTaskDefinition", definition(ok, `,"cpu":"lots"`), "ClientException", "cpu"},
	{"RegisterTaskDefinition", definition(ok, `,"memory":"32"`), "ClientException", "memory"},
	{"RegisterTaskDefinition", definition(ok, `,"requiresCompatibilities":["FARGATE"]`), "ClientException", "awsvpc"},
	{"RegisterTaskDefinition", definition(ok, `,"requiresCompatibilities":["MOON"]`), "ClientException", "MOON"},
	{"RegisterTaskDefinition", definition(ok, `,"volumes":[{"name":"v"},{"name":"v"}]`), "ClientException", "twice"},
	{"RegisterTaskDefinition", definition(ok, `,"placementConstraints":[{"type":"memberOf","expression":"rack =="}]`),
		"ClientException", "expression"},
	{"RegisterTaskDefinition", definition(ok, `,"taskRoleArn":"not a role"`), "ClientException", "taskRoleArn"},
	{"DeregisterTaskDefinition", `{"taskDefinition":"none"}`, "ClientException", "revision"},
	{"DeregisterTaskDefinition", `{"taskDefinition":"none:1"}`, "ClientException", "none:1"},
	{"DescribeTaskDefinition", `{}`, "InvalidParameterException", "taskDefinition"},
	{"DeleteTaskDefinitions", `{"taskDefinitions":[]}`, "InvalidParameterException", "taskDefinitions"},
	{"ListTaskDefinitions", `{"status":"SLEEPING"}`, "InvalidParameterException", "status"},
	// Tasks.
	{"RunTask", `{}`, "InvalidParameterException", "taskDefinition"},
	{"RunTask", `{"taskDefinition":"none"}`, "ClientException", "TaskDefinition not found"},
	{"RunTask", `{"taskDefinition":"good","cluster":"nowhere"}`, "ClusterNotFoundException", ""},
	{"RunTask", `{"taskDefinition":"f","clientToken":"` + strings.Repeat("a", 65) + `"}`, "InvalidParameterException", "clientToken"},
	{"RunTask", `{"taskDefinition":"f","clientToken":"a b"}`, "InvalidParameterException", "clientToken"},
	{"RunTask", `{"taskDefinition":"good","count":0}`, "InvalidParameterException", "count"},
	{"RunTask", `{"taskDefinition":"good","count":-1}`, "InvalidParameterException", "count"},
	{"RunTask", `{"taskDefinition":"good","count":11}`, "InvalidParameterException", "count"},
	{"RunTask", `{"taskDefinition":"good","launchType":"BALLOON"}`, "InvalidParameterException", "launchType"},
	{"RunTask", `{"taskDefinition":"good","overrides":{"containerOverrides":[{"name":"b"}]}}`, "InvalidParameterException", "named b"},
	{"RunTask", `{"taskDefinition":"good","overrides":{"containerOverrides":[{"name":"a","memory":1}]}}`,
		"InvalidParameterException", "memory"},
	{"RunTask", `{"taskDefinition":"good","overrides":{"cpu":"x"}}`, "InvalidParameterException", "cpu"},
	{"RunTask", `{"taskDefinition":"good","placementConstraints":[{"type":"memberOf","expression":"((("}]}`,
		"InvalidParameterException", "character"},
	{"RunTask", `{"taskDefinition":"good","placementConstraints":[{"type":"near"}]}`, "InvalidParameterException", "near"},
	{"RunTask", `{"taskDefinition":"good","placementStrategy":[{"type":"binpack","field":"color"}]}`, "InvalidParameterException", "color"},
	{"RunTask", `{"taskDefinition":"good","placementStrategy":[{"type":"heap"}]}`, "InvalidParameterException", "heap"},
	{"RunTask", `{"taskDefinition":"good","networkConfiguration":{"awsvpcConfiguration":{"subnets":["s"]}}}`,
		"InvalidParameterException", "Network Configuration"},
	{"StartTask", `{"taskDefinition":"good","containerInstances":[]}`, "InvalidParameterException", "containerInstances"},
	{"StopTask", `{}`, "InvalidParameterException", "taskId"},
	{"StopTask", `{"task":"none"}`, "InvalidParameterException", "task"},
	{"DescribeTasks", `{"tasks":[]}`, "InvalidParameterException", "Tasks"},
	{"ListTasks", `{"desiredStatus":"TIRED"}`, "InvalidParameterException", "desiredStatus"},
	{"ListTasks", `{"containerInstance":"none"}`, "InvalidParameterException", "none"},
	// Services.
	{"CreateService", `{}`, "InvalidParameterException", "serviceName"},
	{"CreateService", `{"serviceName":"a b"}`, "InvalidParameterException", "serviceName"},
	{"CreateService", `{"serviceName":"s","desiredCount":1}`, "InvalidParameterException", "taskDefinition"},
	{"CreateService", `{"serviceName":"s","taskDefinition":"none","desiredCount":1}`, "ClientException", "TaskDefinition not found"},
	{"CreateService", service(`"cluster":"nowhere"`), "ClusterNotFoundException", ""},
	{"CreateService", `{"serviceName":"s","taskDefinition":"good"}`, "InvalidParameterException", "desiredCount"},
	{"CreateService", `{"serviceName":"s","taskDefinition":"good","desiredCount":-1}`, "InvalidParameterException", "desiredCount"},
	{"CreateService", service(`"schedulingStrategy":"DAEMON"`), "InvalidParameterException", "desiredCount"},
	{"CreateService", service(`"schedulingStrategy":"ANGEL"`), "InvalidParameterException", "schedulingStrategy"},
	{"CreateService", `{"serviceName":"s","taskDefinition":"good","schedulingStrategy":"DAEMON","placementStrategy":[{"type":"random"}]}`,
		"InvalidParameterException", "placementStrategy"},
	{"CreateService", service(`"launchType":"BALLOON"`), "InvalidParameterException", "launchType"},
	{"CreateService", service(`"launchType":"EC2","capacityProviderStrategy":[{"capacityProvider":"p"}]`),
		"InvalidParameterException", "launch type"},
	{"CreateService", service(`"capacityProviderStrategy":[{"capacityProvider":"p","weight":1001}]`),
		"InvalidParameterException", "weight"},
	{"CreateService", service(`"clientToken":"a b"`), "InvalidParameterException", "clientToken"},
	{"CreateService", service(`"propagateTags":"EVERYWHERE"`), "InvalidParameterException", "propagateTags"},
	{"CreateService", service(`"healthCheckGracePeriodSeconds":-1`), "InvalidParameterException", "healthCheckGracePeriodSeconds"},
	{"CreateService", service(`"placementConstraints":[{"type":"near"}]`), "InvalidParameterException", "near"},
	{"CreateService", service(`"placementStrategy":[{"type":"heap"}]`), "InvalidParameterException", "heap"},
	{"CreateService", service(`"tags":[{"key":"aws:x"}]`), "InvalidParameterException", "aws:"},
	{"CreateService", service(`"networkConfiguration":{"awsvpcConfiguration":{"subnets":["s"]}}`),
		"InvalidParameterException", "Network Configuration"},
	{"CreateService", service(`"deploymentConfiguration":{"minimumHealthyPercent":101}`),
		"InvalidParameterException", "minimumHealthyPercent"},
	{"CreateService", service(`"deploymentConfiguration":{"maximumPercent":99}`), "InvalidParameterException", "maximumPercent"},
	{"CreateService", service(`"deploymentConfiguration":{"maximumPercent":100}`), "InvalidParameterException", "maximumPercent"},
	{"CreateService",
		service(`"deploymentConfiguration":{"deploymentCircuitBreaker":{"enable":true,"rollback":true,"thresholdConfiguration":{` +
			`"type":"COUNT","value":0}}}`), "InvalidParameterException", "thresholdConfiguration"},
	{"CreateService", service(`"deploymentConfiguration":{"strategy":"SLOW"}`), "InvalidParameterException", "strategy"},
	{"CreateService", service(`"deploymentConfiguration":{"strategy":"BLUE_GREEN","canaryConfiguration":{}}`),
		"InvalidParameterException", "canaryConfiguration"},
	{"CreateService", service(`"deploymentConfiguration":{"strategy":"LINEAR","linearConfiguration":{"stepPercent":2.9}}`),
		"InvalidParameterException", "stepPercent"},
	{"CreateService", service(`"deploymentConfiguration":{"strategy":"CANARY","canaryConfiguration":{"canaryPercent":0.05}}`),
		"InvalidParameterException", "canaryPercent"},
	{"CreateService", service(`"deploymentConfiguration":{"strategy":"BLUE_GREEN"},"loadBalancers":[{"targetGroupArn":"t",` +
		`"containerName":"a","containerPort":80}]`), "InvalidParameterException", "advancedConfiguration"},
	{"CreateService", service(`"deploymentConfiguration":{"strategy":"BLUE_GREEN","lifecycleHooks":[{"hookTargetArn":"arn:f",` +
		`"lifecycleStages":["POST_SCALE_UP"]}]}`), "InvalidParameterException", "arn:f"},
	{"CreateService", service(`"deploymentConfiguration":{"strategy":"BLUE_GREEN","lifecycleHooks":[{"targetType":"PAUSE",` +
		`"lifecycleStages":["PRODUCTION_TRAFFIC_SHIFT"]}]}`), "InvalidParameterException", "PRODUCTION_TRAFFIC_SHIFT"},
	{"CreateService", service(`"deploymentConfiguration":{"lifecycleHooks":[{"targetType":"PAUSE","lifecycleStages":["POST_SCALE_UP"]}]}`),
		"UnsupportedFeatureException", "lifecycleHooks"},
	{"CreateService", service(`"deploymentController":{"type":"CODE_DEPLOY"}`), "UnsupportedFeatureException", "deploymentController"},
	{"CreateService", service(`"deploymentController":{"type":"EXTERNAL"}`), "InvalidParameterException", "taskDefinition"},
	{"CreateService", external(`"launchType":"EC2"`), "InvalidParameterException", "launchType"},
	{"CreateService", external(`"capacityProviderStrategy":[{"capacityProvider":"FARGATE","weight":1}]`),
		"InvalidParameterException", "capacityProviderStrategy"},
	{"CreateService", external(`"networkConfiguration":{"awsvpcConfiguration":{"subnets":["s"]}}`),
		"InvalidParameterException", "networkConfiguration"},
	{"CreateService", external(`"schedulingStrategy":"DAEMON"`), "InvalidParameterException", "schedulingStrategy"},
	{"CreateService", external(`"deploymentConfiguration":{"deploymentCircuitBreaker":{"enable":true,"rollback":true}}`),
		"InvalidParameterException", "deploymentCircuitBreaker"},
	{"CreateService", external(`"loadBalancers":[{"containerName":"a","containerPort":80}]`),
		"InvalidParameterException", "loadBalancers"},
	{"CreateService", service(`"capacityProviderStrategy":[{"weight":1}]`), "InvalidParameterException", "capacityProvider"},
	{"CreateService", service(`"capacityProviderStrategy":[{"capacityProvider":"p","base":-1}]`), "InvalidParameterException", "base"},
	{"CreateService", service(`"capacityProviderStrategy":[{"capacityProvider":"p","base":1},{"capacityProvider":"q","base":1}]`),
		"InvalidParameterException", "base"},
	{"CreateService", service(`"capacityProviderStrategy":[{"capacityProvider":"p"},{"capacityProvider":"p"}]`),
		"InvalidParameterException", "twice"},
	{"CreateService", service(`"capacityProviderStrategy":[{"capacityProvider":"p","weight":1},{"capacityProvider":"FARGATE"}]`),
		"InvalidParameterException", "mix"},
	{"CreateService", service(`"capacityProviderStrategy":[` + strings.Repeat(`{"capacityProvider":"p"},`, 20) +
		`{"capacityProvider":"p"}]`), "InvalidParameterException", "20"},
	{"CreateService", service(`"capacityProviderStrategy":[{"capacityProvider":"p","weight":1}]`), "InvalidParameterException", `"p"`},
	{"CreateService",
		`{"serviceName":"s","taskDefinition":"good","schedulingStrategy":"DAEMON","capacityProviderStrategy":[{"capacityProvider":"p",` +
			`"weight":1}]}`, "InvalidParameterException", "capacityProviderStrategy"},
	{"CreateService", service(`"serviceConnectConfiguration":{"enabled":true}`), "InvalidParameterException", "namespace"},
	{"CreateService", service(`"loadBalancers":[{"containerName":"a","containerPort":80}]`),
		"InvalidParameterException", "targetGroupArn"},
	{"CreateService", service(`"loadBalancers":[{"loadBalancerName":"b","containerName":"a","containerPort":80}]`),
		"InvalidParameterException", "loadBalancerName"},
	{"CreateService", service(`"serviceRegistries":[{"registryArn":"r"}]`), "InvalidParameterException", "serviceRegistries.registryArn"},
	{"CreateService", service(`"serviceConnectConfiguration":{"enabled":true,"namespace":"n"}`), "NamespaceNotFoundException", "n"},
	{"CreateService", service(`"serviceConnectConfiguration":{"enabled":true,"namespace":"n","services":[{"portName":"web",` +
		`"discoveryName":"-"}]}`), "InvalidParameterException", "serviceConnectConfiguration.services.discoveryName"},
	{"CreateService", service(`"serviceConnectConfiguration":{"enabled":true,"namespace":"n","services":[{"portName":"web",` +
		`"tls":{"issuerCertificateAuthority":{}}}]}`), "UnsupportedFeatureException", "serviceConnectConfiguration.services.tls"},
	{"CreateService", service(`"serviceConnectConfiguration":{"enabled":true,"namespace":"n","logConfiguration":{"logDriver":"splunk"}}`),
		"UnsupportedFeatureException", "serviceConnectConfiguration.logConfiguration.logDriver"},
	{"CreateService", service(`"serviceConnectConfiguration":{"enabled":true,"namespace":"n","logConfiguration":{"logDriver":"awslogs"}}`),
		"ClientException", "serviceConnectConfiguration.logConfiguration"},
	{"CreateService", service(`"monitoring":{"metricConfigurations":[{"metricNames":["CPUUtilization"],"resolutionSeconds":10}]}`),
		"InvalidParameterException", "resolutionSeconds"},
	{"CreateService", service(`"monitoring":{"metricConfigurations":[{"metricNames":["GPUUtilization"],"resolutionSeconds":20}]}`),
		"InvalidParameterException", "metricNames"},
	{"UpdateService", `{"service":"s","monitoring":{"metricConfigurations":[{"metricNames":[],"resolutionSeconds":20}]}}`,
		"InvalidParameterException", "metricNames"},
	{"ListServicesByNamespace", `{}`, "InvalidParameterException", "namespace"},
	{"ListServicesByNamespace", `{"namespace":"nowhere"}`, "NamespaceNotFoundException", "nowhere"},
	{"CreateService", service(`"deploymentConfiguration":{"alarms":{"alarmNames":[],"enable":true,"rollback":true}}`),
		"InvalidParameterException", "alarmNames"},
	{"CreateService", service(`"deploymentConfiguration":{"bakeTimeInMinutes":1441}`), "InvalidParameterException", "bakeTimeInMinutes"},
	{"CreateService",
		service(`"availabilityZoneRebalancing":"ENABLED","deploymentConfiguration":{"minimumHealthyPercent":0,"maximumPercent":100}`),
		"InvalidParameterException", "Availability Zone Rebalancing does not support maximumPercent"},
	{"CreateService", service(`"availabilityZoneRebalancing":"ON"`), "InvalidParameterException", "availabilityZoneRebalancing"},
	{"UpdateService", `{}`, "InvalidParameterException", "service"},
	{"UpdateService", `{"service":"none","desiredCount":1}`, "ServiceNotFoundException", ""},
	{"DeleteService", `{}`, "InvalidParameterException", "service"},
	{"DeleteService", `{"service":"none","force":true}`, "ServiceNotFoundException", ""},
	{"DescribeServices", `{"services":[]}`, "InvalidParameterException", "Services"},
	{"DescribeServices", `{"services":["1","2","3","4","5","6","7","8","9","10","11"]}`, "InvalidParameterException", "services"},
	{"ListServices", `{"maxResults":101}`, "InvalidParameterException", "maxResults"},
	{"ListServices", `{"schedulingStrategy":"ANGEL"}`, "InvalidParameterException", "schedulingStrategy"},
	{"ListTasks", `{"serviceName":"none"}`, "ServiceNotFoundException", ""},
	{"ListServiceDeployments", `{"service":"none"}`, "ServiceNotFoundException", ""},
	{"DescribeServiceDeployments", `{"serviceDeploymentArns":[]}`, "InvalidParameterException", "serviceDeploymentArns"},
	{"DescribeServiceRevisions", `{"serviceRevisionArns":[]}`, "InvalidParameterException", "serviceRevisionArns"},
	{"ContinueServiceDeployment", `{}`, "InvalidParameterException", "serviceDeploymentArn"},
	{"ContinueServiceDeployment", `{"serviceDeploymentArn":"arn:none"}`, "InvalidParameterException", "hookId"},
	{"ContinueServiceDeployment", `{"serviceDeploymentArn":"arn:none","hookId":"h"}`, "ServiceDeploymentNotFoundException", "arn:none"},
	{"StopServiceDeployment", `{}`, "InvalidParameterException", "serviceDeploymentArn"},
	{"StopServiceDeployment", `{"serviceDeploymentArn":"arn:none"}`, "ServiceDeploymentNotFoundException", "arn:none"},
	{"UpdateTaskProtection", `{"cluster":"default","tasks":[],"protectionEnabled":true}`, "InvalidParameterException", "tasks"},
	{"UpdateTaskProtection", `{"cluster":"default","tasks":["t"],"protectionEnabled":true,"expiresInMinutes":0}`,
		"InvalidParameterException", "expiresInMinutes"},
	// Container instances.
	{"RegisterContainerInstance", `{}`, "InvalidParameterException", "totalResources"},
	{"RegisterContainerInstance",
		`{"cluster":"nowhere","totalResources":[{"name":"CPU","integerValue":1},{"name":"MEMORY","integerValue":1}]}`,
		"ClusterNotFoundException", ""},
	{"RegisterContainerInstance",
		`{"totalResources":[{"name":"CPU","integerValue":1},{"name":"MEMORY","integerValue":1}],"platformDevices":[{"id":"g",` +
			`"type":"GPU"},{"id":"g","type":"GPU"}]}`, "InvalidParameterException", "twice"},
	{"DescribeContainerInstances", `{"containerInstances":[]}`, "InvalidParameterException", "containerInstances"},
	{"UpdateContainerInstancesState", `{"containerInstances":["x"],"status":"GONE"}`, "InvalidParameterException", "GONE"},
	{"ListContainerInstances", `{"filter":"attribute:a in"}`, "InvalidParameterException", "filter"},
	{"PutAttributes", `{"attributes":[]}`, "InvalidParameterException", "attributes"},
	{"PutAttributes", `{"attributes":[{"name":"a b","targetId":"x"}]}`, "InvalidParameterException", "a b"},
	{"PutAttributes", `{"attributes":[{"name":"a","targetId":"x"}]}`, "TargetNotFoundException", "x"},
	{"TagResource", `{"resourceArn":"arn:aws:s3:::x","tags":[{"key":"a"}]}`, "InvalidParameterException", "resourceArn"},
	{"TagResource", `{"resourceArn":"arn:aws:ecs:us-east-1:000000000000:cluster/none","tags":[{"key":"a"}]}`,
		"ResourceNotFoundException", "none"},
	{"PutAccountSetting", `{"name":"taskLongArnFormat","value":"perhaps"}`, "InvalidParameterException", "perhaps"},
	{"PutAccountSetting", `{"name":"nothing","value":"enabled"}`, "InvalidParameterException", "nothing"},
}

// external returns a CreateService request with the deployment controller EXTERNAL and more fields.
func external(more string) string {
	return `{"serviceName":"s","desiredCount":1,"deploymentController":{"type":"EXTERNAL"},` + more + `}`
}

// group returns a CreateCapacityProvider request with more fields in its Auto Scaling group.
func group(more string) string {
	return `{"name":"p","autoScalingGroupProvider":{"autoScalingGroupArn":"g",` + more + `}}`
}

// taskSet returns a CreateTaskSet request with more fields.
func taskSet(more string) string {
	return `{"cluster":"default","service":"s","taskDefinition":"good"` + more + `}`
}

// service returns a CreateService request that is valid except for the given fields.
func service(rest string) string {
	return `{"serviceName":"s","taskDefinition":"good","desiredCount":1,` + rest + `}`
}

// TestBadInput sends requests that must be refused, then checks that nothing changed.
func TestBadInput(t *testing.T) {
	t.Parallel()
	p := Up(t, "p3.2xlarge")
	const ecs = "AmazonEC2ContainerServiceV20141113."
	if status, answer, err := p.Post(ecs+"RegisterTaskDefinition", `{"family":"good","containerDefinitions":[{`+ok+`}]}`); err != nil ||
		status != 200 {
		t.Fatal(status, answer, err)
	}
	before := p.readAll(t)
	if len(refusals) < 100 {
		t.Errorf("only %d refusals", len(refusals))
	}
	for _, r := range refusals {
		status, answer, err := p.Post(ecs+r.operation, r.body)
		if err != nil {
			t.Errorf("%s %.100s: %v", r.operation, r.body, err)
			continue
		}
		var e struct {
			Type    string `json:"__type"`
			Message string `json:"message"`
		}
		if json.Unmarshal([]byte(answer), &e) != nil || status < 400 || e.Type != r.code || e.Message == "" && r.says != "" ||
			!strings.Contains(e.Message, r.says) {
			t.Errorf("%s %.100s:\n got %d %s\nwant %s naming %q", r.operation, r.body, status, answer, r.code, r.says)
		}
	}
	if after := p.readAll(t); after != before {
		t.Errorf("refused calls have changed something:\n%s\n%s", before, after)
	}
}

// readAll reads all state that the refused calls could have changed.
func (p *Pintle) readAll(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, c := range []struct{ operation, body string }{
		{"ListClusters", `{}`}, {"DescribeClusters", `{"include":["TAGS","SETTINGS"]}`}, {"ListTaskDefinitions", `{}`},
		{"ListTasks", `{}`}, {"ListTasks", `{"desiredStatus":"STOPPED"}`}, {"ListContainerInstances", `{}`},
		{"ListServices", `{}`}, {"DescribeCapacityProviders", `{}`},
		{"ListAttributes", `{"targetType":"container-instance"}`}, {"ListAccountSettings", `{}`},
	} {
		status, answer, err := p.Post("AmazonEC2ContainerServiceV20141113."+c.operation, c.body)
		if err != nil || status != 200 {
			t.Fatal(c, status, answer, err)
		}
		all.WriteString(answer + "\n")
	}
	return all.String()
}

// TestSignatures sends valid and invalid signatures to a control plane that checks them.
func TestSignatures(t *testing.T) {
	t.Parallel()
	p := UpSigned(t, "c5.large")
	cases := []struct{ id, secret, code string }{
		{"AKID", "secret", ""},
		{"AKID", "wrong", "InvalidSignatureException"},
		{"AKIDOTHER", "secret", "UnrecognizedClientException"},
	}
	for _, c := range cases {
		cmd := p.Command("aws", "--endpoint-url", p.Endpoint, "ecs", "list-clusters")
		cmd.Env = append(cmd.Env, "AWS_ACCESS_KEY_ID="+c.id, "AWS_SECRET_ACCESS_KEY="+c.secret)
		out, err := cmd.CombinedOutput()
		if c.code == "" && err != nil || c.code != "" && !strings.Contains(string(out), c.code) {
			t.Errorf("key %s, secret %s: %v %s, want %q", c.id, c.secret, err, out, c.code)
		}
	}
	if status, answer, err := p.Post("AmazonEC2ContainerServiceV20141113.ListClusters", `{}`); err != nil || status != 400 ||
		!strings.Contains(answer, "MissingAuthenticationTokenException") {
		t.Errorf("unsigned: %d %s %v", status, answer, err)
	}
}
