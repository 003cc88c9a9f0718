// A cluster of GPU instances that comes and goes, and on it a service whose tasks have a GPU each and follow how busy the GPUs are. A second
// container in each task makes the metric of what a dcgm-exporter says on each machine, where nothing else does.
const cdk = require('aws-cdk-lib');
const {
  aws_autoscaling: autoscaling, aws_cloudwatch: cloudwatch, aws_ec2: ec2, aws_ecs: ecs,
  aws_iam: iam, aws_logs: logs,
} = cdk;

const app = new cdk.App();
const setting = (name, otherwise) => app.node.tryGetContext(name) ?? otherwise;
const most = Number(setting('most', 4)); // tasks, and machines of one GPU
const image = setting('image', 'ubuntu');
const stress = setting('stress', '/tmp/gpu-service'); // how busy a simulated GPU is, says the file stress in this directory of the machine

const stack = new cdk.Stack(app, 'GpuService', {
  env: { account: process.env.CDK_DEFAULT_ACCOUNT, region: process.env.CDK_DEFAULT_REGION },
  description: 'A GPU service that follows its load',
});

const vpc = new ec2.Vpc(stack, 'Vpc', {
  maxAzs: 2, natGateways: 0, subnetConfiguration: [{ name: 'public', subnetType: ec2.SubnetType.PUBLIC }],
});
const cluster = new ecs.Cluster(stack, 'Cluster', { vpc, clusterName: 'gpu-service' });

const group = new autoscaling.AutoScalingGroup(stack, 'Machines', {
  vpc, minCapacity: 0, maxCapacity: most, updatePolicy: autoscaling.UpdatePolicy.rollingUpdate(),
  launchTemplate: new ec2.LaunchTemplate(stack, 'Machine', {
    instanceType: new ec2.InstanceType(setting('instanceType', 'g4dn.xlarge')),
    machineImage: ecs.EcsOptimizedImage.amazonLinux2(ecs.AmiHardwareType.GPU),
    userData: ec2.UserData.forLinux(), requireImdsv2: true, associatePublicIpAddress: true,
    securityGroup: new ec2.SecurityGroup(stack, 'MachinesGroup', { vpc, description: 'Machines of the GPU service' }),
    role: new iam.Role(stack, 'MachineRole', {
      assumedBy: new iam.ServicePrincipal('ec2.amazonaws.com'),
      managedPolicies: [iam.ManagedPolicy.fromAwsManagedPolicyName('service-role/AmazonEC2ContainerServiceforEC2Role')],
    }),
  }),
});
// Machines come when tasks need them. One that is to go is drained first, and stays as long as tasks run there.
const provider = new ecs.AsgCapacityProvider(stack, 'Provider', {
  autoScalingGroup: group, enableManagedScaling: true, enableManagedTerminationProtection: true, enableManagedDraining: true,
  targetCapacityPercent: 100, instanceWarmupPeriod: 30,
});
cluster.addAsgCapacityProvider(provider);

// On AWS nothing makes a metric of what GPUs do. --context collector=IMAGE adds a sidecar to each task that does, on the machine's network, where
// its dcgm-exporter is.
const collector = setting('collector');
const definition = new ecs.Ec2TaskDefinition(stack, 'Definition', {
  family: 'gpu-service', networkMode: collector ? ecs.NetworkMode.HOST : ecs.NetworkMode.BRIDGE, volumes: [{ name: 'switch', host: { sourcePath: stress } }],
});
definition.addContainer('gpu', {
  image: ecs.ContainerImage.fromRegistry(image),
  command: ['sh', '-c', "trap 'exit 0' TERM; while :; do sleep 1; done"],
  environment: { PINTLE_SIMULATED_GPU_LOAD: `${stress}/stress` },
  gpuCount: 1, cpu: 64, memoryLimitMiB: 64, stopTimeout: cdk.Duration.seconds(5),
  dockerLabels: { ECS_PROMETHEUS_EXPORTER_PORT: '9400' },
  logging: ecs.LogDrivers.awsLogs({ streamPrefix: 'gpu', logGroup: new logs.LogGroup(stack, 'Logs', { removalPolicy: cdk.RemovalPolicy.DESTROY, retention: logs.RetentionDays.ONE_WEEK }) }),
}).addMountPoints({ sourceVolume: 'switch', containerPath: stress, readOnly: true });

const service = new ecs.Ec2Service(stack, 'Service', {
  cluster, serviceName: 'gpu-service', taskDefinition: definition, enableExecuteCommand: true, minHealthyPercent: 0, maxHealthyPercent: 100,
  circuitBreaker: { rollback: true }, capacityProviderStrategies: [{ capacityProvider: provider.capacityProviderName, weight: 1 }],
});
service.autoScaleTaskCount({ minCapacity: 1, maxCapacity: most }).scaleToTrackCustomMetric('Load', {
  metric: new cloudwatch.Metric({
    namespace: 'ECS/ContainerInsights/Prometheus', metricName: 'DCGM_FI_DEV_GPU_UTIL', statistic: 'Average',
    dimensionsMap: { ClusterName: cluster.clusterName, ServiceName: 'gpu-service' },
  }),
  targetValue: 75, scaleOutCooldown: cdk.Duration.seconds(5), scaleInCooldown: cdk.Duration.seconds(5), policyName: 'gpu',
});

if (collector) {
  definition.addContainer('metrics', {
    image: ecs.ContainerImage.fromRegistry(collector), essential: false, cpu: 32, memoryLimitMiB: 64,
    command: ['pintle', 'metrics', '--url', setting('exporter', 'http://localhost:9400/metrics'), '--metric', 'DCGM_FI_DEV_GPU_UTIL', '--interval', '5s'],
  });
  definition.addToTaskRolePolicy(new iam.PolicyStatement({ actions: ['cloudwatch:PutMetricData', 'ecs:DescribeTasks'], resources: ['*'] }));
}

new cdk.CfnOutput(stack, 'ClusterName', { value: cluster.clusterName });
new cdk.CfnOutput(stack, 'ServiceName', { value: service.serviceName });
