package cloudformation

import (
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	awsec2 "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/pintle/pintle/internal/account/accounttest"
	"github.com/pintle/pintle/internal/logs"
	"github.com/pintle/pintle/internal/logs/streams"
	"github.com/pintle/pintle/internal/s3"
	"github.com/pintle/pintle/internal/s3/objects"
	"github.com/pintle/pintle/internal/state/statetest"
)

// trained builds an image on a GPU instance, pushes it to a repository, and has a task definition for it that takes its data from the
// environment and puts results into a bucket: what templates of training runs have.
const trained = `
Parameters:
  KeyName: {Type: 'AWS::EC2::KeyPair::KeyName', Description: of the instances}
  Size: {Type: String, Default: g2.2xlarge, AllowedValues: [g2.2xlarge, g2.8xlarge]}
  Range: {Type: String, MinLength: '9', MaxLength: '18', Default: 0.0.0.0/0, AllowedPattern: '(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})/(\d{1,2})', ConstraintDescription: must be a CIDR range}
Mappings:
  Images: {us-east-1: {ID: ami-1}}
Resources:
  VPC: {Type: 'AWS::EC2::VPC', Properties: {CidrBlock: 10.0.0.0/16, EnableDnsSupport: 'true', EnableDnsHostnames: 'true'}}
  Subnet: {Type: 'AWS::EC2::Subnet', Properties: {VpcId: !Ref VPC, CidrBlock: 10.0.0.0/24, MapPublicIpOnLaunch: 'true'}}
  Gateway: {Type: 'AWS::EC2::InternetGateway'}
  Attachment: {Type: 'AWS::EC2::VPCGatewayAttachment', Properties: {VpcId: !Ref VPC, InternetGatewayId: !Ref Gateway}}
  Table: {Type: 'AWS::EC2::RouteTable', Properties: {VpcId: !Ref VPC}}
  Route: {Type: 'AWS::EC2::Route', DependsOn: Attachment, Properties: {RouteTableId: !Ref Table, DestinationCidrBlock: 0.0.0.0/0, GatewayId: !Ref Gateway}}
  TableOfSubnet: {Type: 'AWS::EC2::SubnetRouteTableAssociation', Properties: {SubnetId: !Ref Subnet, RouteTableId: !Ref Table}}
  Access: {Type: 'AWS::EC2::SecurityGroup', Properties: {GroupDescription: shells, VpcId: !Ref VPC,
    SecurityGroupIngress: [{IpProtocol: tcp, FromPort: '22', ToPort: '22', CidrIp: !Ref Range}]}}
  Cluster: {Type: 'AWS::ECS::Cluster'}
  Images: {Type: 'AWS::ECR::Repository', DeletionPolicy: Delete, Properties: {
    RepositoryPolicyText: {Version: '2012-10-17', Statement: [{Sid: all, Effect: Allow, Principal: {AWS: !Sub 'arn:aws:iam::${AWS::AccountId}:root'}, Action: ['ecr:*']}]}}}
  Results: {Type: 'AWS::S3::Bucket', Properties: {AccessControl: BucketOwnerFullControl}}
  Logs: {Type: 'AWS::Logs::LogGroup', Properties: {RetentionInDays: 7}}
  InstanceRole: {Type: 'AWS::IAM::Role', Properties: {Path: /,
    AssumeRolePolicyDocument: {Statement: [{Effect: Allow, Principal: {Service: [ec2.amazonaws.com]}, Action: ['sts:AssumeRole']}]},
    Policies: [{PolicyName: node, PolicyDocument: {Statement: [{Effect: Allow, Resource: '*', Action: ['ecs:*', 'ecr:*', 'logs:*']}]}}]}}
  TaskRole: {Type: 'AWS::IAM::Role', Properties: {
    AssumeRolePolicyDocument: {Statement: [{Effect: Allow, Principal: {Service: [ecs-tasks.amazonaws.com]}, Action: ['sts:AssumeRole']}]},
    Policies: [{PolicyName: results, PolicyDocument: {Statement: [{Effect: Allow, Action: 's3:PutObject', Resource: !Join ['', ['arn:aws:s3:::', !Ref Results, '/*']]}]}}]}}
  Profile: {Type: 'AWS::IAM::InstanceProfile', Properties: {Path: /, Roles: [!Ref InstanceRole]}}
  Launch:
    Type: AWS::AutoScaling::LaunchConfiguration
    Properties:
      ImageId: !FindInMap [Images, !Ref 'AWS::Region', ID]
      InstanceType: !Ref Size
      KeyName: !Ref KeyName
      IamInstanceProfile: !Ref Profile
      SecurityGroups: [!Ref Access]
      AssociatePublicIpAddress: 'true'
      BlockDeviceMappings: [{DeviceName: /dev/xvda, Ebs: {VolumeSize: '30'}}]
      UserData:
        Fn::Base64: !Sub |
          #!/bin/bash
          echo ECS_CLUSTER=${Cluster} >> /etc/ecs/ecs.config
          $(aws ecr get-login --region ${AWS::Region} --no-include-email)
          docker build -t ${AWS::AccountId}.dkr.ecr.${AWS::Region}.amazonaws.com/${Images}:latest . && docker push ${AWS::AccountId}.dkr.ecr.${AWS::Region}.amazonaws.com/${Images}:latest
          cfn-signal -e $? --stack ${AWS::StackName} --resource Group --region ${AWS::Region}
  Group:
    Type: AWS::AutoScaling::AutoScalingGroup
    CreationPolicy: {ResourceSignal: {Timeout: PT120M}}
    Properties: {VPCZoneIdentifier: [!Ref Subnet], LaunchConfigurationName: !Ref Launch, MinSize: '1', MaxSize: '1', DesiredCapacity: '1',
      Tags: [{Key: Name, Value: GPU node, PropagateAtLaunch: 'true'}]}
  Training:
    Type: AWS::ECS::TaskDefinition
    Properties:
      TaskRoleArn: !GetAtt TaskRole.Arn
      ContainerDefinitions:
        - Name: train
          Image: !Join ['', [!Ref 'AWS::AccountId', .dkr.ecr., !Ref 'AWS::Region', .amazonaws.com/, !Ref Images, ':latest']]
          Cpu: '8'
          Memory: '15000'
          Privileged: 'true'
          Environment: [{Name: RESULTS, Value: !Ref Results}]
          Command:
            - train -c config.json -i gl_input.nc
              -o gl_output.nc -n gl.nc
          LogConfiguration: {LogDriver: awslogs, Options: {awslogs-group: !Ref Logs, awslogs-region: !Ref 'AWS::Region'}}
Outputs:
  Image: {Value: !Join ['', [!Ref 'AWS::AccountId', .dkr.ecr., !Ref 'AWS::Region', .amazonaws.com/, !Ref Images]]}
  Repository: {Value: !GetAtt Images.RepositoryUri}
  Results: {Value: !Ref Results}
`

// TestTrained: a stack that builds an image into a repository is made and deleted.
func TestTrained(t *testing.T) {
	owner := accounttest.New(time.Now)
	files, err := objects.Open(t.TempDir(), time.Now)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { files.Close() })
	events, err := streams.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { events.Close() })
	w := newWorld(t, nil,
		s3.API(s3.New(files, s3.Options{Account: owner})),
		logs.API(logs.New(events, logs.Options{Account: owner, State: statetest.Open(t)})))
	call1[awsec2.CreateKeyPairOutput](w, &awsec2.CreateKeyPairInput{KeyName: aws.String("mine")})
	w.create("training", strings.Replace(trained, "Description: of the instances", "Default: mine", 1))
	w.live()
	w.expect(types.StackStatusCreateComplete)
	outputs := map[string]string{}
	for _, o := range find(w.store.View(), w.onlyStack()).Outputs {
		outputs[*o.OutputKey] = *o.OutputValue
	}
	if outputs["Image"] != outputs["Repository"] || !strings.HasPrefix(outputs["Image"], "000000000000.dkr.ecr.us-east-1.amazonaws.com/training-images-") {
		t.Errorf("the image is %s, and the repository %s", outputs["Image"], outputs["Repository"])
	}
	ids := w.ids()
	container := w.store.View().TaskDefinitions.Get(ids["Training"]).ContainerDefinitions[0]
	if *container.Image != outputs["Image"]+":latest" || container.Command[0] != "train -c config.json -i gl_input.nc -o gl_output.nc -n gl.nc" {
		t.Errorf("the container is %s %q", *container.Image, container.Command)
	}
	w.remove("training")
	w.live()
	w.expect(types.StackStatusDeleteComplete)
	if v := w.store.View(); v.Repositories.Len() != 0 || rowsOfGroups(v) != "" {
		t.Errorf("left: %d repositories, %s", v.Repositories.Len(), rowsOfGroups(v))
	}
}
