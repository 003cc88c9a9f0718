package iam

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"strings"
	"time"

	"github.com/pintle/pintle/internal/state"
)

// list is a value of an element of a policy document: one, or several.
type list []string

// MarshalJSON writes one value without a list around it, as people do.
func (l list) MarshalJSON() ([]byte, error) {
	if len(l) == 1 {
		return json.Marshal(l[0])
	}
	return json.Marshal([]string(l))
}

// statement is a statement of a policy document that is made here.
type statement struct {
	Effect    string
	Principal map[string]string `json:",omitempty"`
	Action    list              `json:",omitempty"`
	NotAction list              `json:",omitempty"`
	Resource  list              `json:",omitempty"`
	Condition map[string]any    `json:",omitempty"`
}

func document(statements ...statement) string {
	b, _ := json.Marshal(map[string]any{"Version": "2012-10-17", "Statement": statements}) // texts always marshal
	return string(b)
}

// awsCreated is when AWS's own policies, and the account's root, were made.
var awsCreated = time.Date(2015, 2, 6, 18, 40, 0, 0, time.UTC)

func awsARN(pathAndName string) string { return "arn:aws:iam::aws:policy/" + pathAndName }

// awsPolicies makes AWS's own policies: those that people attach to what runs here. Their names, paths and ARNs are AWS's. Their documents
// allow what the names promise, in few words: for some that's more than AWS's own documents do, which list each action.
func awsPolicies() map[string]*state.ManagedPolicy {
	all := map[string]*state.ManagedPolicy{}
	for name, text := range awsDocuments() {
		path, base := "/", name
		if i := strings.LastIndexByte(name, '/'); i >= 0 {
			path = "/" + name[:i+1]
			base = name[i+1:]
		}
		sum := sha256.Sum256([]byte(name))
		all[awsARN(name)] = &state.ManagedPolicy{
			Name:     base,
			Path:     path,
			ID:       "ANPA" + base32.StdEncoding.EncodeToString(sum[:])[:17],
			Created:  awsCreated,
			Updated:  awsCreated,
			Default:  1,
			Latest:   1,
			Versions: []state.PolicyVersion{{Number: 1, Document: text, Created: awsCreated}},
		}
	}
	return all
}

// allow returns a statement that allows actions, separated by blanks, on everything.
func allow(actions string) statement {
	return statement{Effect: "Allow", Action: strings.Fields(actions), Resource: list{"*"}}
}

// passTo returns a statement that allows to hand roles to services.
func passTo(services ...string) statement {
	return statement{
		Effect:    "Allow",
		Action:    list{"iam:PassRole"},
		Resource:  list{"*"},
		Condition: map[string]any{"StringLike": map[string]any{"iam:PassedToService": list(services)}},
	}
}

// linkTo returns a statement that allows to create the roles that are linked to services.
func linkTo(services ...string) statement {
	return statement{
		Effect:    "Allow",
		Action:    list{"iam:CreateServiceLinkedRole"},
		Resource:  list{"*"},
		Condition: map[string]any{"StringLike": map[string]any{"iam:AWSServiceName": list(services)}},
	}
}

// The actions of several policies.
const (
	pullImages = "ecr:GetAuthorizationToken ecr:BatchCheckLayerAvailability ecr:GetDownloadUrlForLayer ecr:BatchGetImage"
	readImages = pullImages + " ecr:GetRepositoryPolicy ecr:DescribeRepositories ecr:ListImages ecr:DescribeImages " +
		"ecr:GetLifecyclePolicy ecr:GetLifecyclePolicyPreview ecr:ListTagsForResource ecr:DescribeImageScanFindings"
	pushImages = readImages + " ecr:InitiateLayerUpload ecr:UploadLayerPart ecr:CompleteLayerUpload ecr:PutImage"
	writeLogs  = "logs:CreateLogGroup logs:CreateLogStream logs:PutLogEvents"
	manageENIs = "ec2:CreateNetworkInterface ec2:DescribeNetworkInterfaces ec2:DescribeSubnets ec2:DeleteNetworkInterface " +
		"ec2:AssignPrivateIpAddresses ec2:UnassignPrivateIpAddresses"
	balance = "elasticloadbalancing:DeregisterInstancesFromLoadBalancer elasticloadbalancing:DeregisterTargets " +
		"elasticloadbalancing:Describe* elasticloadbalancing:RegisterInstancesWithLoadBalancer elasticloadbalancing:RegisterTargets"
	readMetrics = "autoscaling:Describe* cloudwatch:BatchGet* cloudwatch:Describe* cloudwatch:GenerateQuery cloudwatch:Get* " +
		"cloudwatch:List* logs:Describe* logs:Get* logs:List* logs:StartQuery logs:StopQuery logs:TestMetricFilter " +
		"logs:FilterLogEvents logs:StartLiveTail logs:StopLiveTail oam:ListSinks sns:Get* sns:List*"
	manageInstance = "ssm:DescribeAssociation ssm:GetDeployablePatchSnapshotForInstance ssm:GetDocument ssm:DescribeDocument ssm:GetManifest " +
		"ssm:GetParameter ssm:GetParameters ssm:ListAssociations ssm:ListInstanceAssociations ssm:PutInventory ssm:PutComplianceItems " +
		"ssm:PutConfigurePackageResult ssm:UpdateAssociationStatus ssm:UpdateInstanceAssociationStatus ssm:UpdateInstanceInformation " +
		"ssmmessages:CreateControlChannel ssmmessages:CreateDataChannel ssmmessages:OpenControlChannel ssmmessages:OpenDataChannel " +
		"ec2messages:AcknowledgeMessage ec2messages:DeleteMessage ec2messages:FailMessage ec2messages:GetEndpoint " +
		"ec2messages:GetMessages ec2messages:SendReply"
	sendMetrics = "cloudwatch:PutMetricData ec2:DescribeVolumes ec2:DescribeTags logs:PutLogEvents logs:PutRetentionPolicy " +
		"logs:DescribeLogStreams logs:DescribeLogGroups logs:CreateLogStream logs:CreateLogGroup " +
		"xray:PutTraceSegments xray:PutTelemetryRecords xray:GetSamplingRules xray:GetSamplingTargets xray:GetSamplingStatisticSummaries"
	joinCluster = "ec2:DescribeTags ecs:CreateCluster ecs:DeregisterContainerInstance ecs:DiscoverPollEndpoint ecs:Poll " +
		"ecs:RegisterContainerInstance ecs:StartTelemetrySession ecs:UpdateContainerInstancesState ecs:Submit*"
	deployECS = "ecs:DescribeServices ecs:CreateTaskSet ecs:UpdateServicePrimaryTaskSet ecs:DeleteTaskSet " +
		"elasticloadbalancing:DescribeTargetGroups elasticloadbalancing:DescribeListeners elasticloadbalancing:ModifyListener " +
		"elasticloadbalancing:DescribeRules elasticloadbalancing:ModifyRule lambda:InvokeFunction cloudwatch:DescribeAlarms " +
		"sns:Publish s3:GetObject s3:GetObjectVersion"
)

// awsDocuments returns the documents of AWS's own policies, by path and name.
func awsDocuments() map[string]string {
	all := map[string]string{}
	for name, actions := range simpleDocuments {
		all[name] = document(allow(actions))
	}
	for name, statements := range otherDocuments {
		all[name] = document(statements...)
	}
	return all
}

// simpleDocuments are the policies that allow actions on everything.
var simpleDocuments = map[string]string{
	"AdministratorAccess":   "*",
	"IAMFullAccess":         "iam:*",
	"IAMReadOnlyAccess":     "iam:GenerateCredentialReport iam:GenerateServiceLastAccessedDetails iam:Get* iam:List* iam:SimulateCustomPolicy iam:SimulatePrincipalPolicy",
	"IAMUserChangePassword": "iam:ChangePassword iam:GetAccountPasswordPolicy",
	"SecurityAudit": "autoscaling:Describe* cloudformation:Describe* cloudformation:List* cloudwatch:Describe* ec2:Describe* ecr:Describe* " +
		"ecr:GetRepositoryPolicy ecs:Describe* ecs:List* iam:Get* iam:List* iam:GenerateCredentialReport logs:Describe* s3:GetBucket* " +
		"s3:GetEncryptionConfiguration s3:GetLifecycleConfiguration s3:ListAllMyBuckets sns:Get* sns:List* sqs:GetQueueAttributes " +
		"sqs:ListQueues ssm:Describe* sts:GetAccessKeyInfo",
	"ReadOnlyAccess": "application-autoscaling:Describe* application-autoscaling:List* autoscaling:Describe* autoscaling:Get* " +
		"batch:Describe* batch:List* cloudformation:Describe* cloudformation:Estimate* cloudformation:Get* cloudformation:List* " +
		"cloudformation:ValidateTemplate cloudwatch:Describe* cloudwatch:Get* cloudwatch:List* ec2:Describe* ec2:Get* ecr:BatchCheck* " +
		"ecr:BatchGet* ecr:Describe* ecr:Get* ecr:List* ecs:Describe* ecs:Get* ecs:List* elasticloadbalancing:Describe* events:Describe* " +
		"events:List* iam:Generate* iam:Get* iam:List* iam:Simulate* kms:Describe* kms:Get* kms:List* lambda:Get* lambda:List* " +
		"logs:Describe* logs:FilterLogEvents logs:Get* logs:List* logs:StartQuery logs:StopQuery logs:TestMetricFilter s3:Get* s3:List* " +
		"secretsmanager:Describe* secretsmanager:GetResourcePolicy secretsmanager:List* servicediscovery:Get* servicediscovery:List* " +
		"sns:Get* sns:List* sqs:Get* sqs:List* ssm:Describe* ssm:Get* ssm:List* sts:GetAccessKeyInfo sts:GetCallerIdentity sts:GetSessionToken",
	"job-function/ViewOnlyAccess": "autoscaling:Describe* cloudformation:DescribeStacks cloudformation:List* cloudwatch:Describe* cloudwatch:List* " +
		"ec2:Describe* ecr:Describe* ecs:Describe* ecs:List* elasticloadbalancing:Describe* events:List* iam:GetAccountSummary iam:List* " +
		"lambda:List* logs:Describe* s3:ListAllMyBuckets s3:ListBucket sns:List* sqs:List* ssm:Describe* ssm:List*",

	"service-role/AmazonEC2ContainerServiceforEC2Role":    joinCluster + " " + pullImages + " logs:CreateLogStream logs:PutLogEvents",
	"service-role/AmazonECSTaskExecutionRolePolicy":       pullImages + " logs:CreateLogStream logs:PutLogEvents",
	"service-role/AmazonEC2ContainerServiceRole":          "ec2:AuthorizeSecurityGroupIngress ec2:Describe* " + balance,
	"service-role/AmazonEC2ContainerServiceAutoscaleRole": "ecs:DescribeServices ecs:UpdateService cloudwatch:DescribeAlarms cloudwatch:PutMetricAlarm",
	"service-role/AmazonECSInfrastructureRolePolicyForVolumes": "ec2:CreateVolume ec2:CreateTags ec2:DescribeVolumes ec2:DescribeAvailabilityZones " +
		"ec2:DescribeInstances ec2:AttachVolume ec2:DetachVolume ec2:DeleteVolume",
	"aws-service-role/AmazonECSServiceRolePolicy": "autoscaling:Describe* autoscaling:DeletePolicy autoscaling:PutScalingPolicy " +
		"autoscaling:SetInstanceProtection autoscaling:UpdateAutoScalingGroup autoscaling:PutLifecycleHook autoscaling:DeleteLifecycleHook " +
		"autoscaling:CompleteLifecycleAction autoscaling-plans:* cloudwatch:DeleteAlarms cloudwatch:DescribeAlarms cloudwatch:PutMetricAlarm " +
		"ec2:AttachNetworkInterface ec2:CreateNetworkInterface ec2:CreateNetworkInterfacePermission ec2:CreateTags ec2:DeleteNetworkInterface " +
		"ec2:DeleteNetworkInterfacePermission ec2:Describe* ec2:DetachNetworkInterface events:* logs:CreateLogGroup logs:CreateLogStream " +
		"logs:DescribeLogGroups logs:PutLogEvents route53:* servicediscovery:* ssm:DescribeSessions " + balance,
	"AWSCodeDeployRoleForECSLimited": deployECS,
	"AmazonECSInfrastructureRolePolicyForLoadBalancers": "elasticloadbalancing:DescribeListeners elasticloadbalancing:DescribeRules " +
		"elasticloadbalancing:DescribeTargetGroups elasticloadbalancing:DescribeTargetHealth elasticloadbalancing:ModifyListener " +
		"elasticloadbalancing:ModifyRule elasticloadbalancing:RegisterTargets elasticloadbalancing:DeregisterTargets",

	"AmazonEC2ReadOnlyAccess":                        "ec2:Describe* ec2:GetSecurityGroupsForVpc elasticloadbalancing:Describe* cloudwatch:ListMetrics cloudwatch:GetMetricStatistics cloudwatch:Describe* autoscaling:Describe*",
	"AmazonVPCReadOnlyAccess":                        "ec2:Describe* ec2:GetSecurityGroupsForVpc",
	"AutoScalingReadOnlyAccess":                      "autoscaling:Describe* autoscaling:GetPredictiveScalingForecast",
	"service-role/AutoScalingNotificationAccessRole": "sqs:SendMessage sqs:GetQueueUrl sns:Publish",
	"service-role/AmazonEC2SpotFleetTaggingRole": "ec2:DescribeImages ec2:DescribeSubnets ec2:RequestSpotInstances ec2:TerminateInstances " +
		"ec2:DescribeInstanceStatus ec2:CreateTags ec2:RunInstances " + balance,
	"aws-service-role/AutoScalingServiceRolePolicy": "ec2:* elasticloadbalancing:* cloudwatch:DeleteAlarms cloudwatch:DescribeAlarms " +
		"cloudwatch:GetMetricData cloudwatch:PutMetricAlarm sns:Publish sqs:SendMessage ssm:GetParameters events:*",
	"aws-service-role/AWSApplicationAutoscalingECSServicePolicy":     "ecs:DescribeServices ecs:UpdateService cloudwatch:PutMetricAlarm cloudwatch:DescribeAlarms cloudwatch:GetMetricData cloudwatch:DeleteAlarms",
	"aws-service-role/AWSApplicationAutoScalingCustomResourcePolicy": "execute-api:Invoke cloudwatch:PutMetricAlarm cloudwatch:DescribeAlarms cloudwatch:DeleteAlarms",
	"aws-service-role/AWSElasticLoadBalancingServiceRolePolicy":      "ec2:* logs:CreateLogDelivery logs:GetLogDelivery logs:UpdateLogDelivery logs:DeleteLogDelivery logs:ListLogDeliveries",
	"aws-service-role/BatchServiceRolePolicy":                        "ec2:* autoscaling:* ecs:* logs:* iam:GetInstanceProfile iam:GetRole",
	"aws-service-role/CloudWatchEventsServiceRolePolicy":             "cloudwatch:DescribeAlarms ec2:DescribeInstanceStatus ec2:DescribeInstances ec2:DescribeVolumeStatus ec2:CreateSnapshot ec2:RebootInstances ec2:StopInstances ec2:TerminateInstances",
	"aws-service-role/AWSEC2SpotServiceRolePolicy":                   "ec2:DescribeInstances ec2:StartInstances ec2:StopInstances ec2:RunInstances ec2:CreateTags ec2:TerminateInstances",
	"aws-service-role/AWSEC2SpotFleetServiceRolePolicy":              "ec2:Describe* ec2:RequestSpotInstances ec2:RunInstances ec2:CreateTags ec2:TerminateInstances " + balance,
	"AmazonSSMManagedInstanceCore":                                   manageInstance,
	"service-role/AmazonEC2RoleforSSM":                               manageInstance + " cloudwatch:PutMetricData ec2:DescribeInstanceStatus logs:CreateLogGroup logs:CreateLogStream logs:DescribeLogGroups logs:DescribeLogStreams logs:PutLogEvents s3:GetBucketLocation s3:PutObject s3:GetObject s3:ListBucket",
	"AmazonSSMReadOnlyAccess":                                        "ssm:Describe* ssm:Get* ssm:List*",
	"EC2InstanceConnect":                                             "ec2:DescribeInstances ec2-instance-connect:SendSSHPublicKey",
	"AmazonEC2ContainerRegistryPullOnly":                             pullImages + " ecr:BatchImportUpstreamImage",
	"AmazonEC2ContainerRegistryReadOnly":                             readImages,
	"AmazonEC2ContainerRegistryPowerUser":                            pushImages,
	"AmazonElasticContainerRegistryPublicReadOnly":                   "ecr-public:GetAuthorizationToken sts:GetServiceBearerToken ecr-public:BatchCheckLayerAvailability ecr-public:Describe* ecr-public:Get*",

	"service-role/AWSLambdaBasicExecutionRole":     writeLogs,
	"service-role/AWSLambdaVPCAccessExecutionRole": writeLogs + " " + manageENIs,
	"service-role/AWSLambdaSQSQueueExecutionRole":  writeLogs + " sqs:ReceiveMessage sqs:DeleteMessage sqs:GetQueueAttributes",
	"service-role/AWSLambdaDynamoDBExecutionRole":  writeLogs + " dynamodb:DescribeStream dynamodb:GetRecords dynamodb:GetShardIterator dynamodb:ListStreams",
	"service-role/AWSLambdaKinesisExecutionRole":   writeLogs + " kinesis:DescribeStream kinesis:DescribeStreamSummary kinesis:GetRecords kinesis:GetShardIterator kinesis:ListShards kinesis:ListStreams kinesis:SubscribeToShard",
	"service-role/AWSLambdaRole":                   "lambda:InvokeFunction",
	"AWSLambdaExecute":                             "logs:* s3:GetObject s3:PutObject",
	"AWSLambdaInvocation-DynamoDB":                 "lambda:InvokeFunction dynamodb:DescribeStream dynamodb:GetRecords dynamodb:GetShardIterator dynamodb:ListStreams",
	"AWSLambda_ReadOnlyAccess":                     "lambda:Get* lambda:List* cloudwatch:GetMetricData cloudwatch:ListMetrics ec2:DescribeSecurityGroups ec2:DescribeSubnets ec2:DescribeVpcs iam:GetPolicy iam:GetPolicyVersion iam:GetRole iam:GetRolePolicy iam:ListAttachedRolePolicies iam:ListRolePolicies iam:ListRoles logs:DescribeLogGroups",

	"CloudWatchReadOnlyAccess":                          readMetrics,
	"CloudWatchLogsReadOnlyAccess":                      "logs:Describe* logs:Get* logs:List* logs:StartQuery logs:StopQuery logs:TestMetricFilter logs:FilterLogEvents logs:StartLiveTail logs:StopLiveTail cloudwatch:GenerateQuery",
	"CloudWatchLogsFullAccess":                          "logs:* cloudwatch:GenerateQuery",
	"CloudWatchAgentServerPolicy":                       sendMetrics + " ssm:GetParameter",
	"CloudWatchAgentAdminPolicy":                        sendMetrics + " ssm:GetParameter ssm:PutParameter",
	"service-role/AmazonAPIGatewayPushToCloudWatchLogs": writeLogs + " logs:DescribeLogGroups logs:DescribeLogStreams logs:GetLogEvents logs:FilterLogEvents",
	"AWSXRayDaemonWriteAccess":                          "xray:PutTraceSegments xray:PutTelemetryRecords xray:GetSamplingRules xray:GetSamplingTargets xray:GetSamplingStatisticSummaries",
	"AmazonPrometheusRemoteWriteAccess":                 "aps:RemoteWrite",
	"AmazonPrometheusQueryAccess":                       "aps:GetLabels aps:GetMetricMetadata aps:GetSeries aps:QueryMetrics",

	"AmazonS3FullAccess":                           "s3:* s3-object-lambda:*",
	"AmazonS3ReadOnlyAccess":                       "s3:Get* s3:List* s3:Describe* s3-object-lambda:Get* s3-object-lambda:List*",
	"AmazonSQSFullAccess":                          "sqs:*",
	"AmazonSQSReadOnlyAccess":                      "sqs:GetQueueAttributes sqs:GetQueueUrl sqs:ListDeadLetterSourceQueues sqs:ListQueues sqs:ListMessageMoveTasks sqs:ListQueueTags",
	"AmazonSNSFullAccess":                          "sns:*",
	"AmazonSNSReadOnlyAccess":                      "sns:Get* sns:List* sns:CheckIfPhoneNumberIsOptedOut",
	"AmazonSSMFullAccess":                          "ssm:* cloudwatch:PutMetricData ds:CreateComputer ds:DescribeDirectories ec2:DescribeInstanceStatus logs:* ec2messages:*",
	"SecretsManagerReadWrite":                      "secretsmanager:* cloudformation:CreateChangeSet cloudformation:DescribeChangeSet cloudformation:DescribeStackResource cloudformation:DescribeStacks cloudformation:ExecuteChangeSet ec2:DescribeSecurityGroups ec2:DescribeSubnets ec2:DescribeVpcs kms:DescribeKey kms:ListAliases kms:ListKeys lambda:ListFunctions rds:DescribeDBClusters rds:DescribeDBInstances tag:GetResources",
	"AmazonDynamoDBReadOnlyAccess":                 "dynamodb:BatchGetItem dynamodb:Describe* dynamodb:GetItem dynamodb:List* dynamodb:PartiQLSelect dynamodb:Query dynamodb:Scan",
	"AWSCloudFormationFullAccess":                  "cloudformation:*",
	"AWSCloudFormationReadOnlyAccess":              "cloudformation:Describe* cloudformation:EstimateTemplateCost cloudformation:Get* cloudformation:List* cloudformation:ValidateTemplate cloudformation:Detect*",
	"ElasticLoadBalancingReadOnly":                 "elasticloadbalancing:Describe* elasticloadbalancing:Get* ec2:DescribeInstances ec2:DescribeClassicLinkInstances ec2:DescribeSecurityGroups",
	"AmazonEventBridgeReadOnlyAccess":              "events:Describe* events:List* events:TestEventPattern scheduler:Get* scheduler:List*",
	"AWSCloudMapReadOnlyAccess":                    "servicediscovery:Get* servicediscovery:List* servicediscovery:DiscoverInstances",
	"AWSCloudMapDiscoverInstanceAccess":            "servicediscovery:DiscoverInstances servicediscovery:DiscoverInstancesRevision",
	"AmazonElasticFileSystemClientReadWriteAccess": "elasticfilesystem:ClientMount elasticfilesystem:ClientWrite elasticfilesystem:DescribeMountTargets",
	"AmazonElasticFileSystemReadOnlyAccess":        "elasticfilesystem:Describe* elasticfilesystem:ListTagsForResource cloudwatch:DescribeAlarmsForMetric cloudwatch:GetMetricData ec2:Describe* kms:ListAliases",
	"AWSKeyManagementServicePowerUser":             "kms:CreateAlias kms:CreateKey kms:DeleteAlias kms:Describe* kms:GenerateRandom kms:Get* kms:List* kms:TagResource kms:UntagResource iam:ListGroups iam:ListRoles iam:ListUsers",
}

// otherDocuments are the policies with conditions, or more than one statement.
var otherDocuments = map[string][]statement{
	"PowerUserAccess": {
		{Effect: "Allow", NotAction: list{"iam:*", "organizations:*", "account:*"}, Resource: list{"*"}},
		allow("account:GetAccountInformation account:GetPrimaryEmail account:ListRegions iam:CreateServiceLinkedRole iam:DeleteServiceLinkedRole iam:ListRoles organizations:DescribeOrganization"),
	},
	"AmazonECS_FullAccess": {
		allow("application-autoscaling:* appmesh:* autoscaling:* cloudformation:CreateStack cloudformation:DeleteStack cloudformation:DescribeStack* " +
			"cloudformation:UpdateStack cloudwatch:* codedeploy:* ec2:* ecs:* elasticfilesystem:Describe* elasticloadbalancing:* events:* " +
			"fsx:DescribeFileSystems iam:ListAttachedRolePolicies iam:ListInstanceProfiles iam:ListRoles lambda:ListFunctions logs:* route53:* " +
			"servicediscovery:* sns:ListTopics ssm:GetParameter ssm:GetParameters ssm:GetParametersByPath"),
		passTo("ecs-tasks.amazonaws.com", "ecs.amazonaws.com", "ec2.amazonaws.com", "ec2.amazonaws.com.cn", "application-autoscaling.amazonaws.com"),
		linkTo("autoscaling.amazonaws.com", "ecs.amazonaws.com", "ecs.application-autoscaling.amazonaws.com", "spot.amazonaws.com",
			"spotfleet.amazonaws.com", "elasticloadbalancing.amazonaws.com"),
	},
	"service-role/AmazonEC2ContainerServiceEventsRole": {allow("ecs:RunTask ecs:TagResource"), passTo("ecs-tasks.amazonaws.com")},
	"AWSCodeDeployRoleForECS":                          {allow(deployECS), passTo("ecs-tasks.amazonaws.com")},
	"AmazonEC2FullAccess": {
		allow("ec2:* elasticloadbalancing:* cloudwatch:* autoscaling:*"),
		linkTo("autoscaling.amazonaws.com", "ec2scheduled.amazonaws.com", "elasticloadbalancing.amazonaws.com", "spot.amazonaws.com",
			"spotfleet.amazonaws.com", "transitgateway.amazonaws.com"),
	},
	"AmazonVPCFullAccess":                  {allow("ec2:*")},
	"AutoScalingFullAccess":                {allow("autoscaling:* cloudwatch:PutMetricAlarm ec2:Describe* elasticloadbalancing:Describe*"), linkTo("autoscaling.amazonaws.com")},
	"AutoScalingConsoleFullAccess":         {allow("autoscaling:* cloudwatch:* ec2:* elasticloadbalancing:Describe* sns:List* iam:ListRoles"), linkTo("autoscaling.amazonaws.com")},
	"AmazonEC2ContainerRegistryFullAccess": {allow("ecr:* cloudtrail:LookupEvents"), linkTo("replication.ecr.amazonaws.com")},
	"AWSLambda_FullAccess": {
		allow("lambda:* cloudformation:DescribeStacks cloudformation:ListStackResources cloudwatch:GetMetricData cloudwatch:ListMetrics " +
			"ec2:DescribeSecurityGroups ec2:DescribeSubnets ec2:DescribeVpcs iam:GetPolicy iam:GetPolicyVersion iam:GetRole iam:GetRolePolicy " +
			"iam:ListAttachedRolePolicies iam:ListRolePolicies iam:ListRoles kms:ListAliases logs:DescribeLogGroups logs:DescribeLogStreams " +
			"logs:GetLogEvents logs:FilterLogEvents states:DescribeStateMachine states:ListStateMachines tag:GetResources xray:*"),
		passTo("lambda.amazonaws.com"),
	},
	"CloudWatchFullAccess":              {allow("autoscaling:Describe* cloudwatch:* logs:* sns:* iam:GetPolicy iam:GetPolicyVersion iam:GetRole"), linkTo("events.amazonaws.com")},
	"CloudWatchFullAccessV2":            {allow("application-autoscaling:DescribeScalingPolicies autoscaling:Describe* cloudwatch:* logs:* sns:CreateTopic sns:ListSubscriptions sns:ListTopics sns:Subscribe iam:GetPolicy iam:GetPolicyVersion iam:GetRole"), linkTo("events.amazonaws.com")},
	"CloudWatchEventsFullAccess":        {allow("events:* scheduler:* iam:ListRoles"), passTo("events.amazonaws.com")},
	"AmazonEventBridgeFullAccess":       {allow("events:* schemas:* scheduler:* pipes:*"), passTo("events.amazonaws.com", "scheduler.amazonaws.com", "pipes.amazonaws.com")},
	"AmazonDynamoDBFullAccess":          {allow("dynamodb:* dax:* application-autoscaling:* cloudwatch:*"), passTo("application-autoscaling.amazonaws.com", "dax.amazonaws.com")},
	"ElasticLoadBalancingFullAccess":    {allow("elasticloadbalancing:* ec2:Describe* cognito-idp:DescribeUserPoolClient"), linkTo("elasticloadbalancing.amazonaws.com")},
	"AWSXrayFullAccess":                 {allow("xray:*")},
	"AWSCloudMapFullAccess":             {allow("servicediscovery:* route53:* ec2:DescribeVpcs ec2:DescribeRegions ec2:DescribeInstances")},
	"AmazonElasticFileSystemFullAccess": {allow("elasticfilesystem:* ec2:*NetworkInterface* ec2:Describe* cloudwatch:DescribeAlarmsForMetric cloudwatch:GetMetricData kms:DescribeKey kms:ListAliases"), linkTo("elasticfilesystem.amazonaws.com")},
	"AWSBatchFullAccess":                {allow("batch:* cloudwatch:GetMetricStatistics ec2:Describe* ecs:DescribeClusters ecs:Describe* ecs:List* logs:Describe* logs:Get* iam:ListInstanceProfiles iam:ListRoles"), passTo("batch.amazonaws.com", "ecs-tasks.amazonaws.com"), linkTo("batch.amazonaws.com")},
	"service-role/AWSBatchServiceRole":  {allow("autoscaling:* ec2:* ecs:* logs:CreateLogGroup logs:CreateLogStream logs:PutLogEvents logs:DescribeLogGroups iam:GetInstanceProfile iam:GetRole"), passTo("ec2.amazonaws.com", "ec2.amazonaws.com.cn", "ecs-tasks.amazonaws.com"), linkTo("autoscaling.amazonaws.com", "ecs.amazonaws.com", "spot.amazonaws.com", "spotfleet.amazonaws.com")},
}
