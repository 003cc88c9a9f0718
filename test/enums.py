"""Sends a value that no enum has to each enum of each implemented operation, and says which calls are taken all the same. Members of a call that are needed before its enum is looked at are in `around`."""

import copy
import os
import re
import sys

import boto3
import botocore.client
from botocore.config import Config
from botocore.exceptions import ClientError, FlexibleChecksumError

endpoint = os.environ["AWS_ENDPOINT_URL"]
BAD = "no-such-value"
TITLES = {"Amazon ECS": "ecs", "Amazon EC2": "ec2", "Amazon SQS": "sqs", "Amazon CloudWatch": "cloudwatch", "Amazon S3": "s3",
    "EC2 Auto Scaling": "autoscaling", "Application Auto Scaling": "application-autoscaling", "CloudWatch Logs": "logs", "Amazon SNS": "sns",
    "Amazon EventBridge": "events", "Amazon EventBridge Scheduler": "scheduler", "AWS Systems Manager": "ssm",
    "AWS Secrets Manager": "secretsmanager", "Amazon ECR": "ecr", "AWS Certificate Manager": "acm", "Amazon EFS": "efs", "AWS Lambda": "lambda",
    "Elastic Load Balancing": "elbv2", "AWS Cloud Map": "servicediscovery", "AWS IAM": "iam", "AWS STS": "sts",
    "AWS CloudFormation": "cloudformation", "AWS Cloud Control API": "cloudcontrol"}


checksums = botocore.client.resolve_checksum_context


def send_all_the_same(request, model, params):
    """Sends a checksum algorithm that boto3 doesn't know, too."""
    try:
        checksums(request, model, params)
    except FlexibleChecksumError:
        request["headers"]["x-amz-sdk-checksum-algorithm"] = BAD


botocore.client.resolve_checksum_context = send_all_the_same


def client(service):
    return boto3.client(service, endpoint_url=endpoint, config=Config(retries={"total_max_attempts": 1}, parameter_validation=False))


clients = {service: client(service) for service in TITLES.values()}
ecs, ec2, sqs, s3, events = (clients[service] for service in ("ecs", "ec2", "sqs", "s3", "events"))

container = {"name": "c", "image": "i", "command": ["sleep", "1"], "memory": 64}
network = {"awsvpcConfiguration": {"subnets": ["subnet-1"]}}
connect = {"enabled": True, "namespace": "n"}
ecs.register_task_definition(family="f", networkMode="awsvpc", containerDefinitions=[container])
ecs.create_service(serviceName="s", taskDefinition="f", desiredCount=0, networkConfiguration=network)
ecs.create_service(serviceName="ext", desiredCount=0, deploymentController={"type": "EXTERNAL"})
instance = ecs.list_container_instances()["containerInstanceArns"][0]
vpc, subnet = ec2.describe_vpcs()["Vpcs"][0]["VpcId"], ec2.describe_subnets()["Subnets"][0]["SubnetId"]
queue = sqs.create_queue(QueueName="q")["QueueUrl"]
launch = {"cluster": "default", "taskDefinition": "f", "networkConfiguration": network, "overrides": {"containerOverrides": [{"name": "c"}]}}
bucket = {"Bucket": "bucket"}
s3.create_bucket(**bucket)
thing = {**bucket, "Key": "k"}
s3.put_object(**thing, Body=b"x")
upload, other = (s3.create_multipart_upload(**thing, ChecksumAlgorithm="CRC32")["UploadId"] for _ in "ab")
arn = "arn:aws:sns:us-east-1:000000000000:t"
clients["sns"].create_topic(Name="t")
events.put_rule(Name="r", ScheduleExpression="rate(1 day)")
times = {"StartTime": 1700000000, "EndTime": 1700000600}

around = {
    "ecs:CreateService": {"serviceName": "new", "taskDefinition": "f", "desiredCount": 0, "networkConfiguration": network,
        "serviceConnectConfiguration": connect},
    "ecs:UpdateService": {"service": "s", "networkConfiguration": network, "serviceConnectConfiguration": connect},
    "ecs:RunTask": launch,
    "ecs:StartTask": {**launch, "containerInstances": [instance]},
    "ecs:CreateTaskSet": {"cluster": "default", "service": "ext", "taskDefinition": "f", "networkConfiguration": network},
    "ecs:DescribeTaskDefinition": {"taskDefinition": "f"},
    "ecs:DescribeTaskSets": {"cluster": "default", "service": "ext"},
    "ecs:DescribeTasks": {"cluster": "default", "tasks": ["0" * 32]},
    "ecs:DescribeServices": {"services": ["s"]},
    "ecs:UpdateCluster": {"cluster": "default"},
    "ecs:UpdateClusterSettings": {"cluster": "default"},
    "ecs:RegisterTaskDefinition": {"family": "g", "containerDefinitions": [container]},
    "ecs:RegisterContainerInstance": {"totalResources": [
        {"name": "CPU", "type": "INTEGER", "integerValue": 1}, {"name": "MEMORY", "type": "INTEGER", "integerValue": 100}]},
    "ec2:RunInstances": {"ImageId": "ami-1", "InstanceType": "g4dn.xlarge", "MinCount": 1, "MaxCount": 1, "BlockDeviceMappings": [{"DeviceName": "/dev/sda1"}]},
    "ec2:CreateNatGateway": {"SubnetId": subnet},
    "ec2:CreatePlacementGroup": {"GroupName": "g"},
    "ec2:CreateVpcEndpoint": {"VpcId": vpc, "ServiceName": "com.amazonaws.us-east-1.s3"},
    "ec2:CreateSubnet": {"VpcId": vpc, "CidrBlock": "172.31.254.0/24"},
    "ec2:CreateVpc": {"CidrBlock": "10.9.0.0/16"},
    "ec2:DescribeVpcAttribute": {"VpcId": vpc},
    "cloudwatch:GetMetricData": times,
    "cloudwatch:GetMetricStatistics": times,
    **{f"sqs:{name}": {"QueueUrl": queue} for name in ("GetQueueAttributes", "ReceiveMessage", "SendMessage", "SendMessageBatch", "SetQueueAttributes")},
}
around.update({
    "s3:AbortMultipartUpload": {**thing, "UploadId": upload},
    "s3:CompleteMultipartUpload": {**thing, "UploadId": other, "MultipartUpload": {"Parts": [{"PartNumber": 1, "ETag": "x"}]}},
    "s3:CopyObject": {**bucket, "Key": "copy", "CopySource": "bucket/k"},
    "s3:CreateBucket": {"Bucket": "another"},
    "s3:DeleteObjects": {**bucket, "Delete": {"Objects": [{"Key": "none"}]}},
    "s3:DeleteObject": {**bucket, "Key": "none"},
    "s3:GetObjectAttributes": {**thing, "ObjectAttributes": ["ETag"]},
    "s3:ListParts": {**thing, "UploadId": other},
    "s3:PutBucketAcl": {**bucket, "ACL": "private"},
    "s3:PutBucketCors": {**bucket, "CORSConfiguration": {"CORSRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": ["*"]}]}},
    "s3:PutBucketEncryption": {**bucket, "ServerSideEncryptionConfiguration": {"Rules": [
        {"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]}},
    "s3:PutBucketLifecycleConfiguration": {**bucket, "LifecycleConfiguration": {"Rules": [
        {"ID": "r", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 1}}]}},
    "s3:PutBucketNotificationConfiguration": {**bucket, "NotificationConfiguration": {"TopicConfigurations": [
        {"TopicArn": arn, "Events": ["s3:ObjectCreated:*"]}]}},
    "s3:PutBucketOwnershipControls": {**bucket, "OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}},
    "s3:PutBucketRequestPayment": {**bucket, "RequestPaymentConfiguration": {"Payer": "BucketOwner"}},
    "s3:PutBucketVersioning": {**bucket, "VersioningConfiguration": {"Status": "Suspended"}},
    "s3:PutObjectAcl": {**thing, "ACL": "private"},
    "s3:UploadPart": {**thing, "UploadId": other, "PartNumber": 2, "Body": b"x"},
    "s3:UploadPartCopy": {**thing, "UploadId": other, "PartNumber": 2, "CopySource": "bucket/k"},
    "events:PutTargets": {"Rule": "r", "Targets": [{"Id": "t", "Arn": arn.replace("sns", "ecs").replace(":t", ":cluster/default"),
        "EcsParameters": {"TaskDefinitionArn": "f"}}]},
})


def paths(shape, above=()):
    """Yields where a call's enums are."""
    if shape.name in above:
        return
    above += (shape.name,)
    if shape.type_name == "structure":
        for name, member in shape.members.items():
            yield from ((name, *p) for p in paths(member, above))
    elif shape.type_name == "list":
        yield from ((0, *p) for p in paths(shape.member, above))
    elif shape.type_name == "map":
        yield from ((("k", *p) for p in paths(shape.value, above)))
    elif shape.type_name == "string" and shape.enum:
        yield ()


SIMPLE = {"integer": 1, "long": 1, "double": 1.0, "float": 1.0, "boolean": False, "timestamp": 1700000000, "blob": b"x"}


def made(shape, path, given=None):
    """Returns a value of a shape with BAD at a path, around what is given, and nothing else but what the model requires."""
    kind = shape.type_name
    if path == ():
        return BAD
    if kind == "structure":
        out = dict(given or {})
        for name, member in shape.members.items():
            if path and path[0] == name:
                out[name] = made(member, path[1:], out.get(name))
            elif name in shape.required_members and name not in out:
                out[name] = made(member, None)
        return out
    if given is not None and path is None:
        return given
    if kind == "list":
        return [made(shape.member, path and path[1:], given[0] if given else None), *(given or [])[1:]]
    if kind == "map":
        return {"k": made(shape.value, path and path[1:])}
    if kind == "string":
        return shape.enum[0] if shape.enum else "arn:aws:iam::000000000000:role/r" if shape.name == "IAMRoleArn" else "x"
    return SIMPLE[kind]


# S3's headers that say how a client wants to be served, of which Pintle knows but one way.
HABITS = {"RequestPayer", "ChecksumMode", "OptionalObjectAttributes"}
# Elsewhere the algorithm is said by the SDK to itself: what S3 checks is the header with the checksum.
MAKES_CHECKSUMS = {"CopyObject", "CreateMultipartUpload", "PutObject", "UploadPart"}


def call(service, method, given):
    """Calls an operation. A launch template's values count when something is launched by it."""
    getattr(clients[service], method)(**given)
    if "LaunchTemplateData" in given:
        ec2.run_instances(MinCount=1, MaxCount=1, LaunchTemplate={"LaunchTemplateName": given["LaunchTemplateName"]})


sent, taken, service = 0, [], None
for line in open("../docs/coverage.md"):
    if title := re.match(r"## (.+)", line):
        service = TITLES.get(title[1].strip())
    implemented = re.match(r"- \[x\] (\w+)", line)
    if not implemented or not service or implemented[1] == "CreateLaunchTemplateVersion":
        continue
    shape = clients[service].meta.service_model.operation_model(implemented[1]).input_shape
    operation = f"{service}:{implemented[1]}"
    method = next(m for m, name in clients[service].meta.method_to_api_mapping.items() if name == implemented[1])
    for path in paths(shape) if shape else ():
        if service == "s3" and (path[0] in HABITS or path[0] == "ChecksumAlgorithm" and implemented[1] not in MAKES_CHECKSUMS):
            continue
        sent += 1
        try:
            given = copy.deepcopy(around.get(operation) or (service == "s3" and (thing if "Key" in shape.members else bucket)))
            if "LaunchTemplateData" in shape.members:
                given = {"LaunchTemplateName": f"template-{sent}", "LaunchTemplateData": {"ImageId": "ami-1", "InstanceType": "g4dn.xlarge"}}
            call(service, method, made(shape, path, given))
            taken.append((operation, *path))
        except ClientError as e:
            if "-v" in sys.argv and BAD not in str(e):
                print(operation, path, e)
assert sent > 150, sent
assert not taken, "\n".join(map(str, taken))
