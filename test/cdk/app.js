// The services that people make of Amazon ECS with the CDK, in one stack: TestCDK deploys it, changes it, and destroys it.
const cdk = require('aws-cdk-lib');
const {
  aws_applicationautoscaling: scaling, aws_autoscaling: autoscaling, aws_cloudwatch: cloudwatch, aws_cloudwatch_actions: actions,
  aws_ec2: ec2, aws_ecr: ecr, aws_ecs: ecs, aws_ecs_patterns: patterns, aws_efs: efs, aws_elasticloadbalancingv2: elb, aws_iam: iam,
  aws_secretsmanager: secretsmanager, aws_servicediscovery: servicediscovery, aws_sns: sns, aws_ssm: ssm,
} = cdk;

const app = new cdk.App();
const message = app.node.tryGetContext('message') ?? 'v1';
const { REPOSITORY: repository } = process.env;
const account = '000000000000';
const idle = ['sh', '-c', "trap 'exit 0' TERM; while :; do sleep 1; done"];
const serve = ['sh', '-c', `trap 'exit 0' TERM; echo ${message} > /index.html; httpd -f -p 80 -h / & wait`];
const health = {
  path: '/index.html', interval: cdk.Duration.seconds(5), timeout: cdk.Duration.seconds(2), healthyThresholdCount: 2,
};

const stack = new cdk.Stack(app, 'Patterns', { env: { account, region: 'us-east-1' } });
const image = ecs.ContainerImage.fromEcrRepository(ecr.Repository.fromRepositoryName(stack, 'Images', repository), 'v1');
const part = (id) => new (require('constructs').Construct)(stack, id);

const vpc = new ec2.Vpc(stack, 'Vpc', {
  maxAzs: 2, natGateways: 1, gatewayEndpoints: { s3: { service: ec2.GatewayVpcEndpointAwsService.S3 } },
});
const cluster = new ecs.Cluster(stack, 'Cluster', {
  vpc, clusterName: 'patterns', containerInsightsV2: ecs.ContainerInsights.ENABLED, defaultCloudMapNamespace: { name: 'app.local', useForServiceConnect: true },
});
const template = new ec2.LaunchTemplate(stack, 'Template', {
  machineImage: ecs.EcsOptimizedImage.amazonLinux2023(), instanceType: new ec2.InstanceType('c5.4xlarge'),
  userData: ec2.UserData.forLinux(), securityGroup: new ec2.SecurityGroup(stack, 'Instances', { vpc }), requireImdsv2: true,
  role: new iam.Role(stack, 'InstanceRole', { assumedBy: new iam.ServicePrincipal('ec2.amazonaws.com') }),
});
const provider = new ecs.AsgCapacityProvider(stack, 'Provider', {
  autoScalingGroup: new autoscaling.AutoScalingGroup(stack, 'Group', { vpc, launchTemplate: template, minCapacity: 1, maxCapacity: 2 }),
  enableManagedTerminationProtection: false,
});
cluster.addAsgCapacityProvider(provider);
const gpus = new ecs.AsgCapacityProvider(stack, 'GpuProvider', {
  autoScalingGroup: new autoscaling.AutoScalingGroup(stack, 'Gpus', {
    vpc, instanceType: new ec2.InstanceType('g4dn.xlarge'), machineImage: ecs.EcsOptimizedImage.amazonLinux2(ecs.AmiHardwareType.GPU),
    minCapacity: 0, maxCapacity: 2,
  }),
});
cluster.addAsgCapacityProvider(gpus);
cluster.addAsgCapacityProvider(new ecs.AsgCapacityProvider(stack, 'DrainedProvider', {
  autoScalingGroup: new autoscaling.AutoScalingGroup(stack, 'Drained', { vpc, launchTemplate: template, minCapacity: 0, maxCapacity: 1 }),
  enableManagedTerminationProtection: false, enableManagedDraining: false, // so the CDK drains by a function, a topic and a lifecycle hook
}));
const capacityProviderStrategies = [{ capacityProvider: provider.capacityProviderName, weight: 1 }];

// service makes a service of one task, with what a definition or its container has besides.
function service(scope, command, { definition = {}, container = {}, ...props } = {}) {
  const taskDefinition = new ecs.Ec2TaskDefinition(scope, 'Definition', definition);
  taskDefinition.addContainer('main', {
    image, command, memoryLimitMiB: 64, cpu: 16, logging: ecs.LogDrivers.awsLogs({ streamPrefix: 'main' }), ...container,
  });
  return new ecs.Ec2Service(scope, 'Service', {
    cluster, taskDefinition, capacityProviderStrategies: props.daemon ? undefined : capacityProviderStrategies, minHealthyPercent: 0, ...props,
  });
}

const common = { cluster, memoryLimitMiB: 64, cpu: 16, capacityProviderStrategies, circuitBreaker: { rollback: true } };

const web = new patterns.ApplicationLoadBalancedEc2Service(stack, 'Web', {
  ...common, desiredCount: 2, taskImageOptions: { image, command: serve },
});
web.targetGroup.configureHealthCheck(health);
web.targetGroup.setAttribute('deregistration_delay.timeout_seconds', '1');
const tasks = web.service.autoScaleTaskCount({ minCapacity: 2, maxCapacity: 4 });
tasks.scaleOnCpuUtilization('Cpu', { targetUtilizationPercent: 60 });
tasks.scaleOnRequestCount('Requests', { requestsPerTarget: 1000, targetGroup: web.targetGroup });
tasks.scaleOnSchedule('Morning', { schedule: scaling.Schedule.cron({ hour: '8', minute: '0' }), minCapacity: 2 });

new patterns.NetworkLoadBalancedEc2Service(stack, 'Tcp', { ...common, desiredCount: 1, listenerPort: 8080, taskImageOptions: { image, containerPort: 80 } });

new patterns.QueueProcessingEc2Service(stack, 'Worker', { ...common, image, command: idle, minScalingCapacity: 1, maxScalingCapacity: 3 });

new patterns.ScheduledEc2Task(stack, 'Nightly', {
  cluster, schedule: scaling.Schedule.cron({ hour: '3', minute: '0' }),
  scheduledEc2TaskImageOptions: { image, command: ['sh', '-c', 'echo nightly'], memoryLimitMiB: 64 },
});

service(part('Gpu'), idle, { container: { gpuCount: 1 }, capacityProviderStrategies: [{ capacityProvider: gpus.capacityProviderName, weight: 1 }] });

service(part('CloudMap'), serve, {
  definition: { networkMode: ecs.NetworkMode.AWS_VPC }, container: { portMappings: [{ containerPort: 80 }] },
  cloudMapOptions: { name: 'pages', dnsRecordType: servicediscovery.DnsRecordType.A },
});

service(part('Exec'), idle, { enableExecuteCommand: true });

const password = new secretsmanager.Secret(stack, 'Password', {
  generateSecretString: { secretStringTemplate: '{"user":"a"}', generateStringKey: 'password' },
});
const parameter = new ssm.StringParameter(stack, 'Parameter', { stringValue: message });
new cdk.CfnOutput(stack, 'Message', { value: parameter.stringValue });
service(part('Secrets'), idle, {
  container: {
    secrets: { PASSWORD: ecs.Secret.fromSecretsManager(password, 'password'), PARAMETER: ecs.Secret.fromSsmParameter(parameter) },
  },
});

const files = new efs.FileSystem(stack, 'Models', { vpc, lifecyclePolicy: efs.LifecyclePolicy.AFTER_14_DAYS, removalPolicy: cdk.RemovalPolicy.DESTROY });
const point = files.addAccessPoint('Point', {
  path: '/models', createAcl: { ownerGid: '1000', ownerUid: '1000', permissions: '755' }, posixUser: { uid: '1000', gid: '1000' },
});
const volume = {
  name: 'models',
  efsVolumeConfiguration: {
    fileSystemId: files.fileSystemId, transitEncryption: 'ENABLED', authorizationConfig: { accessPointId: point.accessPointId },
  },
};
const withFiles = service(part('Files'), idle, { definition: { volumes: [volume] } });
withFiles.taskDefinition.defaultContainer.addMountPoints({ sourceVolume: 'models', containerPath: '/models', readOnly: false });
withFiles.node.addDependency(files.mountTargetsAvailable);

const blueGreen = part('BlueGreen');
const [blue, green] = ['Blue', 'Green'].map((id) => new elb.ApplicationTargetGroup(blueGreen, id, {
  vpc, port: 80, targetType: elb.TargetType.INSTANCE, deregistrationDelay: cdk.Duration.seconds(1), healthCheck: health,
}));
const rule = new elb.ApplicationListenerRule(blueGreen, 'Rule', {
  listener: new elb.ApplicationLoadBalancer(blueGreen, 'Balancer', { vpc }).addListener('Listener', {
    port: 8081, protocol: elb.ApplicationProtocol.HTTP, defaultAction: elb.ListenerAction.fixedResponse(404),
  }),
  priority: 1, conditions: [elb.ListenerCondition.pathPatterns(['/*'])],
  action: elb.ListenerAction.weightedForward([{ targetGroup: blue, weight: 100 }, { targetGroup: green, weight: 0 }]),
});
service(blueGreen, serve, {
  container: { portMappings: [{ containerPort: 80 }] }, desiredCount: 1, deploymentStrategy: ecs.DeploymentStrategy.BLUE_GREEN,
  bakeTime: cdk.Duration.minutes(0), minHealthyPercent: undefined,
}).loadBalancerTarget({
  containerName: 'main', containerPort: 80,
  alternateTarget: new ecs.AlternateTarget('Alternate', {
    alternateTargetGroup: green, productionListener: ecs.ListenerRuleConfiguration.applicationListenerRule(rule),
  }),
}).attachToApplicationTargetGroup(blue);

service(part('Connect'), serve, {
  container: { portMappings: [{ containerPort: 80, name: 'web', appProtocol: ecs.AppProtocol.http }] },
  serviceConnectConfiguration: {
    services: [{ portMappingName: 'web', dnsName: 'web', port: 80 }], logDriver: ecs.LogDrivers.awsLogs({ streamPrefix: 'connect' }),
  },
});

const everywhere = service(part('Daemon'), idle, { definition: { networkMode: ecs.NetworkMode.HOST }, daemon: true });
everywhere.metricCpuUtilization().createAlarm(stack, 'Busy', { threshold: 90, evaluationPeriods: 2 })
  .addAlarmAction(new actions.SnsAction(new sns.Topic(stack, 'Topic')));
new cloudwatch.Dashboard(stack, 'Dashboard', { widgets: [[new cloudwatch.GraphWidget({ left: [everywhere.metricMemoryUtilization()] })]] });
