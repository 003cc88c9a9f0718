package test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// training is a stack as old templates of training runs have it: a GPU instance in a network that is there, which signals once its user data
// has run, a repository for the image, a log group, a bucket for results, and a task definition whose commands come from its environment. Its
// task has no role of its own and writes into the bucket as its instance.
const training = `
Parameters:
  KeyName: {Type: 'AWS::EC2::KeyPair::KeyName'}
  VpcId: {Type: 'AWS::EC2::VPC::Id'}
  Subnets: {Type: 'List<AWS::EC2::Subnet::Id>'}
  InstanceType: {Type: String, Default: g2.2xlarge, AllowedValues: [g2.2xlarge, g2.8xlarge]}
Mappings:
  Images: {us-east-1: {AMI: ami-50b4f047}}
Resources:
  Cluster: {Type: 'AWS::ECS::Cluster'}
  Repository: {Type: 'AWS::ECR::Repository'}
  Logs: {Type: 'AWS::Logs::LogGroup', Properties: {RetentionInDays: '7'}}
  Results: {Type: 'AWS::S3::Bucket'}
  Access: {Type: 'AWS::EC2::SecurityGroup', Properties: {GroupDescription: shells, VpcId: !Ref VpcId,
    SecurityGroupIngress: [{IpProtocol: tcp, FromPort: '22', ToPort: '22', CidrIp: 0.0.0.0/0}]}}
  Role: {Type: 'AWS::IAM::Role', Properties: {
    AssumeRolePolicyDocument: {Statement: [{Effect: Allow, Principal: {Service: ec2.amazonaws.com}, Action: 'sts:AssumeRole'}]},
    ManagedPolicyArns: ['arn:aws:iam::aws:policy/service-role/AmazonEC2ContainerServiceforEC2Role'],
    Policies: [{PolicyName: results, PolicyDocument: {Statement: [{Effect: Allow, Action: 's3:PutObject', Resource: !Sub 'arn:aws:s3:::${Results}/*'}]}}]}}
  Profile: {Type: 'AWS::IAM::InstanceProfile', Properties: {Roles: [!Ref Role]}}
  Launch:
    Type: AWS::AutoScaling::LaunchConfiguration
    Properties:
      ImageId: !FindInMap [Images, !Ref 'AWS::Region', AMI]
      InstanceType: !Ref InstanceType
      KeyName: !Ref KeyName
      IamInstanceProfile: !Ref Profile
      SecurityGroups: [!Ref Access]
      UserData:
        Fn::Base64: !Sub |
          #!/bin/bash
          echo ECS_CLUSTER=${Cluster} >> /etc/ecs/ecs.config
          docker push ${AWS::AccountId}.dkr.ecr.${AWS::Region}.amazonaws.com/${Repository}:latest
          cfn-signal -e $? --stack ${AWS::StackName} --resource Nodes --region ${AWS::Region}
  Nodes:
    Type: AWS::AutoScaling::AutoScalingGroup
    CreationPolicy: {ResourceSignal: {Timeout: PT60M}}
    Properties: {VPCZoneIdentifier: !Ref Subnets, LaunchConfigurationName: !Ref Launch, MinSize: '1', MaxSize: '1', DesiredCapacity: '1'}
  Training:
    Type: AWS::ECS::TaskDefinition
    Properties:
      ContainerDefinitions:
        - Name: train
          Image: !Sub '${AWS::AccountId}.dkr.ecr.${AWS::Region}.amazonaws.com/${Repository}:latest'
          Memory: '1000'
          Privileged: 'true'
          EntryPoint: [/bin/bash, -c]
          Command: ['echo "running $TRAIN" && $TRAIN && aws s3 cp $OUTPUT s3://$RESULTS/results.$HOSTNAME && echo "all is done"']
          Environment: [{Name: RESULTS, Value: !Ref Results}, {Name: TRAIN, Value: train -c config}, {Name: OUTPUT, Value: results}]
          LogConfiguration: {LogDriver: awslogs, Options: {awslogs-group: !Ref Logs, awslogs-region: !Ref 'AWS::Region'}}
Outputs:
  Cluster: {Value: !Ref Cluster}
  Definition: {Value: !Ref Training}
  Logs: {Value: !Ref Logs}
  Repository: {Value: !GetAtt Repository.RepositoryUri}
  Results: {Value: !Ref Results}
`

// TestTrainingStack deploys such a stack with the AWS CLI, runs its task with other commands, finds its log and its results, and deletes it all.
func TestTrainingStack(t *testing.T) {
	t.Parallel()
	p := UpWithFleet(t)
	dir := t.TempDir()
	file := filepath.Join(dir, "training.yml")
	if err := os.WriteFile(file, []byte(training), 0o600); err != nil {
		t.Fatal(err)
	}
	p.AWS("ec2", "create-key-pair", "--key-name", "mine")
	vpc := p.AWS("ec2", "describe-vpcs", "--query", "Vpcs[0].VpcId", "--output", "text")
	subnets := strings.Join(strings.Fields(p.AWS("ec2", "describe-subnets", "--query", "Subnets[:2].SubnetId", "--output", "text")), ",")
	p.AWS("cloudformation", "deploy", "--stack-name", "training", "--template-file", file, "--capabilities", "CAPABILITY_IAM",
		"--parameter-overrides", "KeyName=mine", "VpcId="+vpc, "Subnets="+subnets)
	output := func(name string) string {
		return p.AWS("cloudformation", "describe-stacks", "--stack-name", "training", "--output", "text",
			"--query", "Stacks[0].Outputs[?OutputKey=='"+name+"'].OutputValue")
	}
	cluster, bucket := output("Cluster"), output("Results")
	if uri := output("Repository"); !strings.HasPrefix(uri, "000000000000.dkr.ecr.us-east-1.amazonaws.com/training-repository-") {
		t.Errorf("the repository is %s", uri)
	}
	result := filepath.Join(dir, "result")
	task, _ := p.run(t, output("Definition"), `{"containerOverrides":[{"name":"train","environment":[
		{"name":"TRAIN","value":"cp `+file+` `+result+`"},{"name":"OUTPUT","value":"`+result+`"}]}]}`, "--cluster", cluster)
	p.AWS("ecs", "wait", "tasks-stopped", "--cluster", cluster, "--tasks", task)
	code := p.AWS("ecs", "describe-tasks", "--cluster", cluster, "--tasks", task, "--query", "tasks[0].containers[0].exitCode", "--output", "text")
	var log string
	Eventually(t, "the end of the log", func() bool {
		log = p.AWS("logs", "filter-log-events", "--log-group-name", output("Logs"), "--query", "events[].message", "--output", "text")
		return code != "0" || strings.Contains(log, "all is done")
	})
	if code != "0" || !strings.Contains(log, "running cp ") {
		t.Errorf("the task ends with %s; its log is %s", code, log)
	}
	if got := p.AWS("s3", "ls", "s3://"+bucket); !strings.Contains(got, "results.") {
		t.Errorf("the bucket has %q", got)
	}
	p.AWS("s3", "rm", "--recursive", "s3://"+bucket)
	p.AWS("cloudformation", "delete-stack", "--stack-name", "training")
	p.AWS("cloudformation", "wait", "stack-delete-complete", "--stack-name", "training")
	for what, args := range map[string][]string{
		"clusters":       {"ecs", "list-clusters", "--query", "clusterArns[?!ends_with(@, '/default')]"},
		"repositories":   {"ecr", "describe-repositories", "--query", "repositories"},
		"groups of logs": {"logs", "describe-log-groups", "--query", "logGroups"},
		"buckets":        {"s3api", "list-buckets", "--query", "Buckets"},
		"roles":          {"iam", "list-roles", "--query", "Roles[?starts_with(RoleName, 'training-')]"},
		"instances":      {"ec2", "describe-instances", "--query", "Reservations[].Instances[?State.Name!='terminated'][]"},
	} {
		if got := p.AWS(append(args, "--output", "json")...); got != "[]" {
			t.Errorf("%s are left: %s", what, got)
		}
	}
	if found, err := os.ReadDir(filepath.Join(p.data, "fleet")); err != nil || len(found) > 0 {
		t.Errorf("of the machines there is %v, %v", found, err)
	}
}
