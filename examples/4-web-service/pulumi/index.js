// The service of web.yml as a Pulumi program: a load balancer in the default VPC, a cluster, a service for Fargate, and its scaling policy.
const pulumi = require("@pulumi/pulumi");
const aws = require("@pulumi/aws");

const config = new pulumi.Config();
const image = config.get("image") || "web-service";
const maxTasks = config.getNumber("maxTasks") || 10;

const vpc = aws.ec2.getVpcOutput({ default: true });
const subnets = aws.ec2.getSubnetsOutput({ filters: [{ name: "vpc-id", values: [vpc.id] }] });
const everywhere = [{ protocol: "-1", fromPort: 0, toPort: 0, cidrBlocks: ["0.0.0.0/0"] }];

const balancerGroup = new aws.ec2.SecurityGroup("balancer", {
  description: "the load balancer", vpcId: vpc.id,
  ingress: [{ protocol: "tcp", fromPort: 80, toPort: 80, cidrBlocks: ["0.0.0.0/0"] }],
  egress: everywhere,
});
const taskGroup = new aws.ec2.SecurityGroup("tasks", {
  description: "the tasks, which the load balancer alone reaches", vpcId: vpc.id,
  ingress: [{ protocol: "tcp", fromPort: 80, toPort: 80, securityGroups: [balancerGroup.id] }],
  egress: everywhere,
});

const balancer = new aws.lb.LoadBalancer("web", {
  subnets: subnets.ids.apply(ids => ids.slice().sort().slice(0, 2)), securityGroups: [balancerGroup.id],
});
const targets = new aws.lb.TargetGroup("web", {
  port: 80, protocol: "HTTP", targetType: "ip", vpcId: vpc.id, deregistrationDelay: 5,
  healthCheck: { path: "/health", interval: 5, timeout: 2, healthyThreshold: 2 },
});
const listener = new aws.lb.Listener("web", {
  loadBalancerArn: balancer.arn, port: 80,
  defaultActions: [{ type: "forward", targetGroupArn: targets.arn }],
});

const cluster = new aws.ecs.Cluster("ml-cluster");
const role = new aws.iam.Role("ecsTaskExecutionRole", {
  assumeRolePolicy: JSON.stringify({
    Version: "2012-10-17",
    Statement: [{ Action: "sts:AssumeRole", Effect: "Allow", Principal: { Service: "ecs-tasks.amazonaws.com" } }],
  }),
});
const attachment = new aws.iam.RolePolicyAttachment("ecs-task-execution-role-policy", {
  role: role.name, policyArn: "arn:aws:iam::aws:policy/service-role/AmazonECSTaskExecutionRolePolicy",
});
const definition = new aws.ecs.TaskDefinition("ml-task", {
  family: "ml-task-family", cpu: "256", memory: "512", networkMode: "awsvpc", requiresCompatibilities: ["FARGATE"],
  executionRoleArn: role.arn,
  containerDefinitions: JSON.stringify([{
    name: "ml-container", image, command: ["web-service"], cpu: 256, memory: 512, essential: true,
    portMappings: [{ containerPort: 80, hostPort: 80 }],
  }]),
});
const service = new aws.ecs.Service("ml-service", {
  cluster: cluster.arn, taskDefinition: definition.arn, launchType: "FARGATE", desiredCount: 1,
  networkConfiguration: { subnets: subnets.ids, securityGroups: [taskGroup.id], assignPublicIp: true },
  loadBalancers: [{ targetGroupArn: targets.arn, containerName: "ml-container", containerPort: 80 }],
}, { dependsOn: [attachment, listener], ignoreChanges: ["desiredCount"] });

const target = new aws.appautoscaling.Target("ecs-appautoscaling-target", {
  minCapacity: 1, maxCapacity: maxTasks, serviceNamespace: "ecs", scalableDimension: "ecs:service:DesiredCount",
  resourceId: pulumi.interpolate`service/${cluster.name}/${service.name}`,
});
new aws.appautoscaling.Policy("ecs-appautoscaling-policy", {
  policyType: "TargetTrackingScaling",
  resourceId: target.resourceId, scalableDimension: target.scalableDimension, serviceNamespace: target.serviceNamespace,
  targetTrackingScalingPolicyConfiguration: {
    targetValue: 75, scaleInCooldown: 60, scaleOutCooldown: 60,
    predefinedMetricSpecification: { predefinedMetricType: "ECSServiceAverageCPUUtilization" },
  },
});

exports.clusterName = cluster.name;
exports.serviceName = service.name;
exports.url = pulumi.interpolate`http://${balancer.dnsName}`;
