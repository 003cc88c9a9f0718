"""Calls every implemented operation at least once, with their waiters and paginators, and checks the answers: through boto3,
or with the argument aws through the AWS CLI. Prints the operations that it called, one a line."""

import base64
import contextlib
import datetime
import gzip
import hashlib
import io
import json
import os
import re
import sys
import time
import urllib.request
import zipfile

import boto3
from awscli.clidriver import create_clidriver
from botocore.exceptions import ClientError

called = set()
endpoint = os.environ["AWS_ENDPOINT_URL"]


def client(service):
    c = boto3.client(service, endpoint_url=endpoint)
    if sys.argv[1:] == ["aws"]:
        return CLI(service, c)
    c.meta.events.register("before-call", lambda model, **_: called.add(f"{service}:{model.name}"))
    return c


loader = create_clidriver().session.get_component("data_loader")  # caches what it reads, for all calls


class CLI:
    """The AWS CLI with the interface of a boto3 client."""

    def __init__(self, service, boto):
        self.service, self.boto, self.operations = service, boto, boto.meta.method_to_api_mapping

    def __getattr__(self, method):
        def call(**arguments):
            return self.run(method, method.replace("_", "-"), arguments)

        call.__name__ = method
        return call

    def run(self, method, command, arguments, *options):
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):  # starting a process for it would take most of the time
            driver = create_clidriver()
            driver.session.register_component("data_loader", loader)
            failed = driver.main(
                ["--endpoint-url", endpoint, "--output", "json", self.service, *command.split(), "--cli-input-json", json.dumps(arguments, default=bytes.decode),
                    *options])
        if method in self.operations:
            called.add(f"{self.service}:{self.operations[method]}")
        if not failed:
            return json.loads(out.getvalue() or "{}")
        said = re.search(r"An error occurred \(([\w.]+)\) when calling the (\w+) operation.*?: (.*)", err.getvalue(), re.S)
        assert said, err.getvalue()
        raise ClientError({"Error": {"Code": said[1], "Message": said[3].strip()}}, said[2])

    def can_paginate(self, method):
        return self.boto.can_paginate(method)

    def get_paginator(self, method):
        page = lambda PaginationConfig={}, **arguments: [  # the CLI joins the pages
            self.run(method, method.replace("_", "-"), arguments,
                *(["--page-size", str(PaginationConfig["PageSize"])] if PaginationConfig else []))]
        return type("Paginator", (), {"paginate": staticmethod(page)})

    def get_waiter(self, name):
        def wait(WaiterConfig, **arguments):
            # the CLI's own waiters poll every six or fifteen seconds
            self.boto.get_waiter(name).wait(WaiterConfig=WaiterConfig, **arguments)
            self.run(name, "wait " + name.replace("_", "-"), arguments)

        return type("Waiter", (), {"wait": staticmethod(wait)})


def when(t):
    """Converts a time in an answer. The CLI leaves it as it was on the wire, which is a number in CBOR."""
    return datetime.datetime.fromtimestamp(t, datetime.timezone.utc) if isinstance(t, float) else t


ecs, logs, sts, cw, scaling, sqs = client("ecs"), client("logs"), client("sts"), client("cloudwatch"), client(
    "application-autoscaling"), client("sqs")
ec2, asg, ssm, secrets, iam = client("ec2"), client("autoscaling"), client("ssm"), client("secretsmanager"), client("iam")


def refused(code, call, **arguments):
    try:
        call(**arguments)
    except ClientError as e:
        assert e.response["Error"]["Code"] == code, (code, e.response)
        assert e.response["Error"]["Message"], e.response
        return e.response
    raise AssertionError(f"{call.__name__} was not refused with {code}")


def wait(client, name, **arguments):
    client.get_waiter(name).wait(WaiterConfig={"Delay": 0.2, "MaxAttempts": 900}, **arguments)


def until(ok, call):
    """Repeats a call until ok accepts its answer, for three minutes at most, and returns the last answer."""
    end = time.time() + 180
    while not ok(got := call()) and time.time() < end:
        time.sleep(0.1)
    return got


# STS
assert sts.get_caller_identity()["Account"] == "000000000000"

# CloudFormation
template = """Parameters:
  Env: {Type: String, Default: dev, AllowedValues: [dev, prod], Description: which}
Resources:
  Role: {Type: AWS::IAM::Role, Properties: {RoleName: !Sub "${Env}-role"}}
  Queue: {Type: AWS::SQS::Queue}
"""
cfn = client("cloudformation")
v = cfn.validate_template(TemplateBody=template)
assert v["Parameters"] == [{"ParameterKey": "Env", "DefaultValue": "dev", "NoEcho": False, "Description": "which"}], v
assert v["Capabilities"] == ["CAPABILITY_NAMED_IAM"], v
assert v["CapabilitiesReason"] == "The following resource(s) require capabilities: [AWS::IAM::Role]", v
g = cfn.get_template_summary(TemplateBody=template)
assert g["ResourceTypes"] == ["AWS::IAM::Role", "AWS::SQS::Queue"], g
assert g["Parameters"][0]["ParameterConstraints"] == {"AllowedValues": ["dev", "prod"]}, g
assert cfn.estimate_template_cost(TemplateBody=template)["Url"].startswith("https://")
e = refused("ValidationError", cfn.estimate_template_cost, TemplateBody=template, Parameters=[{"ParameterKey": "Env", "ParameterValue": "x"}])
assert "Env" in e["Error"]["Message"], e
e = refused("ValidationError", cfn.validate_template, TemplateBody="Resources: {Q: {Type: X, Properties: {P: !Ref Nope}}}")
assert e["Error"]["Message"].startswith("Template format error: Unresolved resource dependencies [Nope]"), e
refused("ValidationError", cfn.get_template_summary, StackName="nowhere")
stack = """Parameters: {Days: {Type: Number, Default: '7'}}
Resources:
  Jobs: {Type: AWS::SQS::Queue, Properties: {DelaySeconds: '5'}}
  Logs: {Type: AWS::Logs::LogGroup, Properties: {RetentionInDays: !Ref Days}}
Outputs: {Jobs: {Value: !GetAtt Jobs.QueueName, Export: {Name: jobs}}}
"""
assert cfn.create_stack(StackName="one", TemplateBody=stack, Tags=[{"Key": "k", "Value": "v"}])["StackId"]
wait(cfn, "stack_create_complete", StackName="one")
one = cfn.describe_stacks(StackName="one")["Stacks"][0]
assert one["Parameters"] == [{"ParameterKey": "Days", "ParameterValue": "7"}], one
assert one["Outputs"][0]["OutputValue"].startswith("one-Jobs-"), one
assert sqs.list_queue_tags(QueueUrl=sqs.get_queue_url(QueueName=one["Outputs"][0]["OutputValue"])["QueueUrl"])["Tags"] == {"k": "v"}
refused("AlreadyExistsException", cfn.create_stack, StackName="one", TemplateBody=stack)
# Cloud Control
cloud = client("cloudcontrol")
asked = cloud.create_resource(TypeName="AWS::SQS::Queue", DesiredState='{"QueueName": "cloudy", "DelaySeconds": 5}', ClientToken="t")["ProgressEvent"]
wait(cloud, "resource_request_success", RequestToken=asked["RequestToken"])
cloudy = cloud.get_resource_request_status(RequestToken=asked["RequestToken"])["ProgressEvent"]["Identifier"]
assert cloudy in [r["Identifier"] for r in cloud.list_resources(TypeName="AWS::SQS::Queue")["ResourceDescriptions"]]
change = '[{"op": "replace", "path": "/DelaySeconds", "value": 6}]'
asked = cloud.update_resource(TypeName="AWS::SQS::Queue", Identifier=cloudy, PatchDocument=change)["ProgressEvent"]
wait(cloud, "resource_request_success", RequestToken=asked["RequestToken"])
got = json.loads(cloud.get_resource(TypeName="AWS::SQS::Queue", Identifier=cloudy)["ResourceDescription"]["Properties"])
assert (got["DelaySeconds"], got["QueueName"], got["QueueUrl"]) == (6, "cloudy", cloudy), got
refused("ValidationException", cloud.cancel_resource_request, RequestToken=asked["RequestToken"])
asked = cloud.delete_resource(TypeName="AWS::SQS::Queue", Identifier=cloudy)["ProgressEvent"]
wait(cloud, "resource_request_success", RequestToken=asked["RequestToken"])
refused("ResourceNotFoundException", cloud.get_resource, TypeName="AWS::SQS::Queue", Identifier=cloudy)
refused("TypeNotFoundException", cloud.list_resources, TypeName="AWS::SQS::Nothing")
done = cloud.list_resource_requests(ResourceRequestStatusFilter={"Operations": ["DELETE"]})["ResourceRequestStatusSummaries"]
assert [r["OperationStatus"] for r in done] == ["SUCCESS"], done
refused("ValidationError", cfn.update_stack, StackName="one", UsePreviousTemplate=True)
user = "Resources: {Q: {Type: AWS::SQS::Queue, Properties: {QueueName: !Sub ['${J}-too', {J: !ImportValue jobs}]}}}"
cfn.create_change_set(StackName="two", ChangeSetName="c", ChangeSetType="CREATE", TemplateBody=user)
wait(cfn, "change_set_create_complete", StackName="two", ChangeSetName="c")
assert [c["ResourceChange"]["Action"] for c in cfn.describe_change_set(StackName="two", ChangeSetName="c")["Changes"]] == ["Add"]
assert [c["ChangeSetName"] for c in cfn.list_change_sets(StackName="two")["Summaries"]] == ["c"]
cfn.execute_change_set(StackName="two", ChangeSetName="c")
wait(cfn, "stack_create_complete", StackName="two")
assert cfn.describe_change_set(StackName="two", ChangeSetName="c")["ExecutionStatus"] == "EXECUTE_COMPLETE"
cfn.delete_change_set(StackName="two", ChangeSetName="c")
assert [e["Name"] for e in cfn.list_exports()["Exports"]] == ["jobs"] and cfn.list_imports(ExportName="jobs")["Imports"] == ["two"]
e = refused("ValidationError", cfn.delete_stack, StackName="one")
assert e["Error"]["Message"] == "Export jobs cannot be deleted as it is in use by two", e
cfn.update_stack(StackName="one", UsePreviousTemplate=True, Parameters=[{"ParameterKey": "Days", "ParameterValue": "14"}])
wait(cfn, "stack_update_complete", StackName="one")
assert logs.describe_log_groups(logGroupNamePrefix="one-Logs-")["logGroups"][0]["retentionInDays"] == 14
refused("ValidationError", cfn.cancel_update_stack, StackName="one")
refused("ValidationError", cfn.continue_update_rollback, StackName="one")
e = refused("ValidationError", cfn.rollback_stack, StackName="one")
assert e["Error"]["Message"].endswith(" is in UPDATE_COMPLETE state and can not be rolled back."), e
policy = '{"Statement": {"Effect": "Allow", "Action": "Update:*", "Principal": "*", "Resource": "*"}}'
assert "StackPolicyBody" not in cfn.get_stack_policy(StackName="one")
cfn.set_stack_policy(StackName="one", StackPolicyBody=policy)
assert cfn.get_stack_policy(StackName="one")["StackPolicyBody"] == policy
refused("ValidationError", cfn.set_stack_policy, StackName="one", StackPolicyBody="{}")
e = refused("ValidationError", cfn.signal_resource, StackName="one", LogicalResourceId="Jobs", UniqueId="i", Status="SUCCESS")
assert e["Error"]["Message"].endswith(" is in UPDATE_COMPLETE state and cannot be signaled"), e
assert cfn.get_template(StackName="one")["TemplateBody"] == stack
assert cfn.describe_stack_resource(StackName="one", LogicalResourceId="Logs")["StackResourceDetail"]["ResourceStatus"] == "UPDATE_COMPLETE"
assert len(cfn.describe_stack_resources(StackName="one")["StackResources"]) == 2
assert [r["LogicalResourceId"] for r in cfn.list_stack_resources(StackName="one")["StackResourceSummaries"]] == ["Jobs", "Logs"]
pages = cfn.get_paginator("describe_stack_events").paginate(StackName="one")
events = [e["ResourceStatus"] for p in pages for e in p["StackEvents"] if e["LogicalResourceId"] == "one"]  # the stack's own
jobs = cfn.describe_stack_resource(StackName="one", LogicalResourceId="Jobs")["StackResourceDetail"]["PhysicalResourceId"]
sqs.set_queue_attributes(QueueUrl=jobs, Attributes={"DelaySeconds": "6"})
d = cfn.describe_stack_drift_detection_status(StackDriftDetectionId=cfn.detect_stack_drift(StackName="one")["StackDriftDetectionId"])
assert (d["DetectionStatus"], d["StackDriftStatus"], d["DriftedStackResourceCount"]) == ("DETECTION_COMPLETE", "DRIFTED", 1), d
drifts = cfn.describe_stack_resource_drifts(StackName="one", StackResourceDriftStatusFilters=["MODIFIED"])["StackResourceDrifts"]
assert [d["PropertyDifferences"] for d in drifts] == [
    [{"PropertyPath": "/DelaySeconds", "ExpectedValue": "5", "ActualValue": "6", "DifferenceType": "NOT_EQUAL"}]
], drifts
sqs.set_queue_attributes(QueueUrl=jobs, Attributes={"DelaySeconds": "5"})
d = cfn.detect_stack_resource_drift(StackName="one", LogicalResourceId="Jobs")["StackResourceDrift"]
assert d["StackResourceDriftStatus"] == "IN_SYNC", d
assert events[0] == "UPDATE_COMPLETE" and events[-1] == "CREATE_IN_PROGRESS", events
pages = cfn.get_paginator("list_types").paginate(Visibility="PUBLIC", Filters={"TypeNamePrefix": "AWS::SQS::Queue"}, MaxResults=1)
assert "AWS::SQS::Queue" in [t["TypeName"] for p in pages for t in p["TypeSummaries"]]
assert cfn.list_types()["TypeSummaries"] == []  # private ones
refused("CFNRegistryException", cfn.list_types, ProvisioningType="IMMUTABLE")
cfn.update_termination_protection(StackName="two", EnableTerminationProtection=True)
refused("ValidationError", cfn.delete_stack, StackName="two")
cfn.update_termination_protection(StackName="two", EnableTerminationProtection=False)
for name in "two", "one":
    arn = cfn.describe_stacks(StackName=name)["Stacks"][0]["StackId"]
    cfn.delete_stack(StackName=name)
    wait(cfn, "stack_delete_complete", StackName=name)
    assert cfn.describe_stacks(StackName=arn)["Stacks"][0]["StackStatus"] == "DELETE_COMPLETE"
assert [s["StackName"] for s in cfn.list_stacks(StackStatusFilter=["DELETE_COMPLETE"])["StackSummaries"]] == ["one", "two"]
condition = {"Type": "AWS::CloudFormation::WaitCondition", "CreationPolicy": {"ResourceSignal": {"Timeout": "PT10M"}}}
cfn.create_stack(StackName="waiting", TemplateBody=json.dumps({"Resources": {"Wait": condition}}))
until(lambda r: r["StackResources"], lambda: cfn.describe_stack_resources(StackName="waiting"))
cfn.signal_resource(StackName="waiting", LogicalResourceId="Wait", UniqueId="i", Status="SUCCESS")
wait(cfn, "stack_create_complete", StackName="waiting")
cfn.delete_stack(StackName="waiting")

# Clusters
c = ecs.create_cluster(clusterName="other", tags=[{"key": "k", "value": "v"}],
    settings=[{"name": "containerInsights", "value": "enabled"}])["cluster"]
assert c["status"] == "ACTIVE" and c["tags"] == [{"key": "k", "value": "v"}], c
assert ecs.create_cluster(clusterName="other")["cluster"]["clusterArn"] == c["clusterArn"]
ecs.update_cluster(cluster="other", settings=[{"name": "containerInsights", "value": "disabled"}])
ecs.update_cluster_settings(cluster="other", settings=[{"name": "containerInsights", "value": "enhanced"}])
ecs.put_cluster_capacity_providers(cluster="other", capacityProviders=["FARGATE"],
    defaultCapacityProviderStrategy=[{"capacityProvider": "FARGATE", "weight": 1}])
d = ecs.describe_clusters(clusters=["other", "nowhere"], include=["TAGS", "SETTINGS"])
assert d["clusters"][0]["settings"] == [{"name": "containerInsights", "value": "enhanced"}], d
assert d["failures"][0]["reason"] == "MISSING" and d["failures"][0]["arn"].endswith("cluster/nowhere"), d
arns = [a for p in ecs.get_paginator("list_clusters").paginate(PaginationConfig={"PageSize": 1}) for a in p["clusterArns"]]
assert len(arns) == 2, arns
ecs.tag_resource(resourceArn=c["clusterArn"], tags=[{"key": "k2", "value": "v2"}])
ecs.untag_resource(resourceArn=c["clusterArn"], tagKeys=["k"])
assert ecs.list_tags_for_resource(resourceArn=c["clusterArn"])["tags"] == [{"key": "k2", "value": "v2"}]
refused("ClusterNotFoundException", ecs.list_tasks, cluster="nowhere")

# Account settings
ecs.put_account_setting(name="containerInsights", value="enabled")
ecs.put_account_setting_default(name="taskLongArnFormat", value="enabled")
assert ecs.list_account_settings(name="containerInsights", effectiveSettings=True)["settings"][0]["value"] == "enabled"
ecs.delete_account_setting(name="containerInsights")

# Task definitions: every kind of field comes back as sent
sent = dict(
    family="everything",
    networkMode="bridge",
    cpu="1 vCPU",
    memory="2GB",
    volumes=[{"name": "scratch", "host": {}}, {"name": "shared", "dockerVolumeConfiguration": {"scope": "shared", "autoprovision": True}}],
    placementConstraints=[{"type": "memberOf", "expression": "attribute:ecs.os-type == linux"}],
    containerDefinitions=[
        {
            "name": "main", "image": "img", "entryPoint": ["/bin/sh", "-c"], "command": ["echo out; sleep 300"], "cpu": 256, "memory": 512,
            "memoryReservation": 128, "essential": True,
            "environment": [{"name": "A", "value": "b"}], "workingDirectory": "/tmp",
            "healthCheck": {"command": ["CMD-SHELL", "true"], "interval": 5},
            "ulimits": [{"name": "nofile", "softLimit": 1024, "hardLimit": 2048}],
            "linuxParameters": {"sharedMemorySize": 64, "initProcessEnabled": True, "capabilities": {"add": ["SYS_PTRACE"]},
                "tmpfs": [{"containerPath": "/t", "size": 16}]},
            "logConfiguration": {"logDriver": "awslogs", "options": {"awslogs-group": "made-for-you", "awslogs-stream-prefix": "p"}},
            "resourceRequirements": [{"type": "GPU", "value": "1"}], "dockerLabels": {"l": "v"},
            "extraHosts": [{"hostname": "h", "ipAddress": "127.0.0.1"}], "stopTimeout": 3,
        },
        {"name": "first", "image": "img", "command": ["/bin/true"], "essential": False, "memory": 16},
        {"name": "late", "image": "img", "command": ["/bin/sleep", "300"], "essential": False, "memory": 16,
            "dependsOn": [{"containerName": "first", "condition": "SUCCESS"}]},
    ],
    tags=[{"key": "team", "value": "ml"}],
)
td = ecs.register_task_definition(**sent)["taskDefinition"]
assert (td["cpu"], td["memory"], td["revision"], td["status"]) == ("1024", "2048", 1, "ACTIVE"), td
main = td["containerDefinitions"][0]
for k, v in sent["containerDefinitions"][0].items():
    if k == "healthCheck":
        assert main[k] == {"command": ["CMD-SHELL", "true"], "interval": 5, "timeout": 5, "retries": 3}, main[k]
    else:
        assert main[k] == v, (k, main[k], v)
assert {"name": "com.amazonaws.ecs.capability.logging-driver.awslogs"} in td["requiresAttributes"], td["requiresAttributes"]
two = ecs.register_task_definition(family="everything",
    containerDefinitions=[{"name": "a", "image": "i", "memory": 8, "command": ["true"]}])["taskDefinition"]
assert two["revision"] == 2
assert ecs.describe_task_definition(taskDefinition="everything:1", include=["TAGS"])["tags"] == sent["tags"]
assert ecs.describe_task_definition(taskDefinition="everything")["taskDefinition"]["revision"] == 2
arns = [a for p in ecs.get_paginator("list_task_definitions").paginate(familyPrefix="everything", sort="DESC",
    PaginationConfig={"PageSize": 1}) for a in p["taskDefinitionArns"]]
assert [a.rsplit(":", 1)[1] for a in arns] == ["2", "1"], arns
families = [f for p in ecs.get_paginator("list_task_definition_families").paginate(familyPrefix="every") for f in p["families"]]
assert families == ["everything"], families
refused("ClientException", ecs.describe_task_definition, taskDefinition="nothing")
refused("ClientException", ecs.register_task_definition, family="bad", containerDefinitions=[{"name": "a", "image": "i"}])
ecs.deregister_task_definition(taskDefinition="everything:2")
gone = ecs.delete_task_definitions(taskDefinitions=["everything:2", "everything:1"])
assert gone["taskDefinitions"][0]["status"] == "DELETE_IN_PROGRESS" and len(gone["failures"]) == 1, gone

# Nodes and their attributes
instances = [a for p in ecs.get_paginator("list_container_instances").paginate(PaginationConfig={"PageSize": 1})
    for a in p["containerInstanceArns"]]
assert len(instances) == 2, instances
ecs.put_attributes(attributes=[{"name": "rack", "value": "7", "targetId": instances[0]}])
found = ecs.list_container_instances(filter="attribute:rack == 7 and agentConnected == true")["containerInstanceArns"]
assert found == [instances[0]], found
attributes = [a for p in ecs.get_paginator("list_attributes").paginate(targetType="container-instance", attributeName="rack")
    for a in p["attributes"]]
assert attributes[0]["value"] == "7", attributes
refused("InvalidParameterException", ecs.list_container_instances, filter="rack is 7")
node = ecs.describe_container_instances(containerInstances=instances)["containerInstances"][0]
registered = {r["name"]: r for r in node["registeredResources"]}
assert len(registered["GPU"]["stringSetValue"]) == 1 and node["agentConnected"], node
refused("NoUpdateAvailableException", ecs.update_container_agent, containerInstance=instances[0])

# Tasks
run = ecs.run_task(taskDefinition="everything:1", count=1, startedBy="boto3", clientToken="t1", enableExecuteCommand=False,
                   overrides={"containerOverrides": [{"name": "main", "environment": [{"name": "A", "value": "c"}]}]},
                   placementConstraints=[{"type": "memberOf", "expression": "attribute:rack == 7"}], tags=[{"key": "a", "value": "b"}],
                   propagateTags="TASK_DEFINITION")
task = run["tasks"][0]
assert task["containerInstanceArn"] == instances[0] and len(task["containers"][0]["gpuIds"]) == 1, task
assert {"key": "team", "value": "ml"} in task["tags"], task
again = ecs.run_task(taskDefinition="everything:1", count=1, startedBy="boto3", clientToken="t1", enableExecuteCommand=False,
                     overrides={"containerOverrides": [{"name": "main", "environment": [{"name": "A", "value": "c"}]}]},
                     placementConstraints=[{"type": "memberOf", "expression": "attribute:rack == 7"}], tags=[{"key": "a", "value": "b"}],
                     propagateTags="TASK_DEFINITION")
assert again["tasks"][0]["taskArn"] == task["taskArn"], again
refused("ConflictException", ecs.run_task, taskDefinition="everything:1", clientToken="t1")
wait(ecs, "tasks_running", tasks=[task["taskArn"]])
full = ecs.run_task(taskDefinition="everything:1", placementConstraints=[{"type": "memberOf", "expression": "attribute:rack == 7"}])
assert {f["reason"] for f in full["failures"]} == {"RESOURCE:GPU", "MemberOf placement constraint unsatisfied."}, full
started = ecs.start_task(taskDefinition="everything:1", containerInstances=[instances[1]], enableExecuteCommand=True)
assert not started["failures"] and started["tasks"][0]["containerInstanceArn"] == instances[1], started
agent = started["tasks"][0]["containers"][0]["managedAgents"]
assert agent == [{"name": "ExecuteCommandAgent", "lastStatus": "PENDING"}], agent

# Commands in containers. TestExecuteCommand does it with the CLI, which needs its plugin.
wait(ecs, "tasks_running", tasks=[started["tasks"][0]["taskArn"]])
shell = {"task": started["tasks"][0]["taskArn"], "container": "main", "command": "sh", "interactive": True}
boto = ecs.boto if isinstance(ecs, CLI) else ecs
called.add("ecs:ExecuteCommand")
execution = boto.execute_command(**shell)
assert execution["containerName"] == "main" and execution["session"]["streamUrl"].startswith("ws://"), execution
refused("InvalidParameterException", boto.execute_command, **{**shell, "task": task["taskArn"]})  # not enabled
refused("InvalidParameterException", boto.execute_command, **{**shell, "container": "other"})
refused("InvalidParameterException", boto.execute_command, **{**shell, "interactive": False})
session = execution["session"]["sessionId"]
resumed = ssm.resume_session(SessionId=session)
assert resumed["TokenValue"] not in ("", execution["session"]["tokenValue"]) and session in resumed["StreamUrl"], resumed
assert ssm.terminate_session(SessionId=session)["SessionId"] == session
refused("DoesNotExistException", ssm.resume_session, SessionId=session)
arns = [a for p in ecs.get_paginator("list_tasks").paginate(family="everything", PaginationConfig={"PageSize": 1}) for a in p["taskArns"]]
assert len(arns) == 2, arns
assert ecs.list_tasks(startedBy="boto3")["taskArns"] == [task["taskArn"]]
assert ecs.list_tasks(containerInstance=instances[1])["taskArns"] == [started["tasks"][0]["taskArn"]]
states = lambda t: (t["healthStatus"], *(x["lastStatus"] for x in t["containers"]))
t = until(lambda t: states(t) == ("HEALTHY", "RUNNING", "STOPPED", "RUNNING"), lambda: ecs.describe_tasks(tasks=[task["taskArn"]],
    include=["TAGS"])["tasks"][0])
assert states(t) == ("HEALTHY", "RUNNING", "STOPPED", "RUNNING"), t
refused("InvalidParameterException", ecs.deregister_container_instance, containerInstance=instances[1])
assert ecs.update_container_instances_state(containerInstances=[instances[1]],
    status="DRAINING")["containerInstances"][0]["status"] == "DRAINING"
assert ecs.list_container_instances(status="DRAINING")["containerInstanceArns"] == [instances[1]]
ecs.stop_task(task=task["taskArn"], reason="enough")
ecs.stop_task(task=started["tasks"][0]["taskArn"])
wait(ecs, "tasks_stopped", tasks=[task["taskArn"], started["tasks"][0]["taskArn"]])
t = ecs.describe_tasks(tasks=[task["taskArn"], "0" * 32])
assert t["failures"][0]["reason"] == "MISSING", t
assert (t["tasks"][0]["stopCode"], t["tasks"][0]["stoppedReason"]) == ("UserInitiated", "enough"), t
assert t["tasks"][0]["containers"][0]["exitCode"] in (143, 137), t
assert ecs.list_tasks(desiredStatus="STOPPED")["taskArns"], "no stopped tasks"

# Services
ecs.update_container_instances_state(containerInstances=[instances[1]], status="ACTIVE")
ecs.register_task_definition(family="web", tags=[{"key": "team", "value": "web"}],
    containerDefinitions=[{"name": "main", "image": "i", "memory": 64, "command": ["sleep", "600"], "stopTimeout": 2}])
wish = dict(serviceName="web", taskDefinition="web", desiredCount=2, clientToken="web-1", propagateTags="SERVICE",
    enableECSManagedTags=True, tags=[{"key": "s", "value": "1"}],
            deploymentConfiguration={"minimumHealthyPercent": 50, "maximumPercent": 200, "deploymentCircuitBreaker": {"enable": True,
                "rollback": True}},
            placementStrategy=[{"type": "spread", "field": "instanceId"}])
web = ecs.create_service(**wish)["service"]
assert web["status"] == "ACTIVE" and web["deployments"][0]["rolloutState"] == "IN_PROGRESS" and web["desiredCount"] == 2, web
assert ecs.create_service(**wish)["service"]["createdAt"] == web["createdAt"]
refused("InvalidParameterException", ecs.create_service, serviceName="web", taskDefinition="web", desiredCount=1)
refused("InvalidParameterException", ecs.create_service, serviceName="w b", taskDefinition="web", desiredCount=1)
refused("InvalidParameterException", ecs.create_service, serviceName="w", taskDefinition="web")
refused("InvalidParameterException", ecs.create_service, serviceName="w", taskDefinition="web", desiredCount=1,
    deploymentConfiguration={"minimumHealthyPercent": 100, "maximumPercent": 100})
refused("InvalidParameterException", ecs.create_service, serviceName="w", taskDefinition="web", desiredCount=1, schedulingStrategy="DAEMON")
refused("ClientException", ecs.create_service, serviceName="w", taskDefinition="nothing", desiredCount=1)
no = refused("InvalidParameterException", ecs.create_service, serviceName="w", taskDefinition="web", desiredCount=1,
    loadBalancers=[{"targetGroupArn": "t", "containerName": "main", "containerPort": 80}])
assert "container port 80" in no["Error"]["Message"], no
wait(ecs, "services_stable", services=["web"])
arns = ecs.list_tasks(serviceName="web")["taskArns"]
assert len(arns) == 2 and ecs.list_tasks(startedBy=web["deployments"][0]["id"])["taskArns"] == arns, arns
tasks = ecs.describe_tasks(tasks=arns, include=["TAGS"])["tasks"]
assert {t["group"] for t in tasks} == {"service:web"} and len({t["containerInstanceArn"] for t in tasks}) == 2, tasks
assert {"key": "s", "value": "1"} in tasks[0]["tags"] and {"key": "aws:ecs:serviceName", "value": "web"} in tasks[0]["tags"], tasks
refused("ServiceNotFoundException", ecs.list_tasks, serviceName="nothing")
d = ecs.describe_services(services=["web", "nothing"], include=["TAGS"])
assert d["failures"][0]["reason"] == "MISSING" and d["services"][0]["tags"] == wish["tags"], d
assert any("has started 2 tasks: (task " in e["message"] for e in d["services"][0]["events"]), d
assert ecs.describe_clusters()["clusters"][0]["activeServicesCount"] == 1
ecs.tag_resource(resourceArn=web["serviceArn"], tags=[{"key": "s2", "value": "2"}])
ecs.untag_resource(resourceArn=web["serviceArn"], tagKeys=["s"])
assert ecs.list_tags_for_resource(resourceArn=web["serviceArn"])["tags"] == [{"key": "s2", "value": "2"}]
agents = ecs.create_service(serviceName="agents", taskDefinition="web:1", schedulingStrategy="DAEMON")["service"]
wait(ecs, "services_stable", services=["agents", "web"])
assert ecs.describe_services(services=["agents"])["services"][0]["runningCount"] == 2
refused("InvalidParameterException", ecs.update_service, service="agents", desiredCount=3)
arns = [a for p in ecs.get_paginator("list_services").paginate(PaginationConfig={"PageSize": 1}) for a in p["serviceArns"]]
assert arns == [agents["serviceArn"], web["serviceArn"]], arns
assert ecs.list_services(schedulingStrategy="DAEMON")["serviceArns"] == [agents["serviceArn"]]

guarded = ecs.list_tasks(serviceName="web")["taskArns"][0]
p = ecs.update_task_protection(cluster="default", tasks=[guarded, task["taskArn"], "0" * 32], protectionEnabled=True, expiresInMinutes=5)
assert p["protectedTasks"][0]["protectionEnabled"] and [f["reason"] for f in p["failures"]] == ["TASK_NOT_VALID", "MISSING"], p
assert [t["taskArn"] for t in ecs.get_task_protection(cluster="default")["protectedTasks"]] == [guarded]
refused("InvalidParameterException", ecs.update_task_protection, cluster="default", tasks=[guarded], protectionEnabled=True,
    expiresInMinutes=2881)
ecs.update_service(service="web", desiredCount=1)
wait(ecs, "services_stable", services=["web"])
assert ecs.list_tasks(serviceName="web")["taskArns"] == [guarded]
ecs.update_task_protection(cluster="default", tasks=[guarded], protectionEnabled=False)
assert not ecs.get_task_protection(cluster="default", tasks=[guarded])["protectedTasks"][0]["protectionEnabled"]

new = ecs.update_service(service="web", forceNewDeployment=True)["service"]
assert [x["status"] for x in new["deployments"]] == ["PRIMARY", "ACTIVE"], new
wait(ecs, "services_stable", services=["web"])
assert guarded not in ecs.list_tasks(serviceName="web")["taskArns"]
rolls = [x for p in ecs.get_paginator("list_service_deployments").paginate(service="web", PaginationConfig={"PageSize": 1})
    for x in p["serviceDeployments"]] \
    if ecs.can_paginate("list_service_deployments") else ecs.list_service_deployments(service="web")["serviceDeployments"]
assert len(rolls) == 2 and rolls[0]["serviceDeploymentArn"] == new["currentServiceDeployment"], rolls
assert rolls[1]["status"] in ("SUCCESSFUL", "STOPPED"), rolls
roll = ecs.describe_service_deployments(serviceDeploymentArns=[rolls[0]["serviceDeploymentArn"], "arn:none"])
assert roll["failures"][0]["reason"] == "MISSING" and roll["serviceDeployments"][0]["deploymentCircuitBreaker"]["threshold"] == 3, roll
refused("ConflictException", ecs.stop_service_deployment, serviceDeploymentArn=rolls[1]["serviceDeploymentArn"])
revision = ecs.describe_service_revisions(serviceRevisionArns=[rolls[0]["targetServiceRevisionArn"]])["serviceRevisions"][0]
assert revision["taskDefinition"].endswith("web:1") and revision["containerImages"][0]["image"] == "i", revision
paused = ecs.update_service(service="web", forceNewDeployment=True, deploymentConfiguration={"strategy": "BLUE_GREEN", "bakeTimeInMinutes": 0,
    "lifecycleHooks": [{"targetType": "PAUSE", "lifecycleStages": ["PRE_SCALE_UP"], "timeoutConfiguration": {"timeoutInMinutes": 5}}]})["service"]
paused = [paused["currentServiceDeployment"]]
hooks = []
while not hooks:
    hooks = ecs.describe_service_deployments(serviceDeploymentArns=paused)["serviceDeployments"][0].get("lifecycleHookDetails", [])
assert hooks[0]["status"] == "AWAITING_ACTION" and hooks[0]["timeoutAction"] == "ROLLBACK", hooks
refused("InvalidParameterException", ecs.continue_service_deployment, serviceDeploymentArn=paused[0], hookId="none")
assert ecs.continue_service_deployment(serviceDeploymentArn=paused[0], hookId=hooks[0]["hookId"])["serviceDeploymentArn"] == paused[0]
wait(ecs, "services_stable", services=["web"])
roll = ecs.describe_service_deployments(serviceDeploymentArns=paused)["serviceDeployments"][0]
assert roll["status"] == "SUCCESSFUL" and roll["lifecycleStage"] == "CLEAN_UP", roll
refused("ServiceNotFoundException", ecs.update_service, service="nothing", desiredCount=1)
refused("InvalidParameterException", ecs.delete_service, service="web")
for name in ("web", "agents"):
    assert ecs.delete_service(service=name, force=True)["service"]["status"] == "DRAINING"
wait(ecs, "services_inactive", services=["web", "agents"])
refused("ServiceNotFoundException", ecs.delete_service, service="web")
assert ecs.list_services()["serviceArns"] == []

# Task sets
x = ecs.create_service(serviceName="x", desiredCount=2, deploymentController={"type": "EXTERNAL"})["service"]
assert x["deployments"] == [] and "taskDefinition" not in x and x["deploymentController"]["type"] == "EXTERNAL", x
where = dict(cluster="default", service="x")
blue = ecs.create_task_set(**where, taskDefinition="web:1", scale={"value": 100, "unit": "PERCENT"}, externalId="b", clientToken="blue",
    tags=[{"key": "k", "value": "v"}])["taskSet"]
assert blue["status"] == "ACTIVE" and blue["computedDesiredCount"] == 2 and blue["launchType"] == "EC2" and blue["externalId"] == "b", blue
again = ecs.create_task_set(**where, taskDefinition="web:1", scale={"value": 100, "unit": "PERCENT"}, externalId="b", clientToken="blue",
    tags=[{"key": "k", "value": "v"}])["taskSet"]
assert again["id"] == blue["id"] and blue["taskSetArn"].endswith("task-set/default/x/" + blue["id"]), again
green = ecs.create_task_set(**where, taskDefinition="web:1")["taskSet"]
assert green["scale"]["value"] == 0 and green["computedDesiredCount"] == 0, green
green = ecs.update_task_set(**where, taskSet=green["id"], scale={"value": 10, "unit": "PERCENT"})["taskSet"]
assert green["computedDesiredCount"] == 1 and green["stabilityStatus"] == "STABILIZING", green
assert ecs.update_service_primary_task_set(**where, primaryTaskSet=blue["taskSetArn"])["taskSet"]["status"] == "PRIMARY"
d = until(lambda d: all(t["stabilityStatus"] == "STEADY_STATE" for t in d["taskSets"]),
          lambda: ecs.describe_task_sets(**where, taskSets=[blue["id"], green["taskSetArn"], "none"], include=["TAGS"]))
assert [(t["runningCount"], t["pendingCount"]) for t in d["taskSets"]] == [(2, 0), (1, 0)] and d["failures"][0]["reason"] == "MISSING", d
assert d["taskSets"][0]["tags"] == [{"key": "k", "value": "v"}], d
assert len(ecs.list_tasks(startedBy=blue["id"])["taskArns"]) == 2
x = ecs.describe_services(services=["x"])["services"][0]
assert x["taskDefinition"].endswith("web:1") and x["runningCount"] == 3 and [t["status"] for t in x["taskSets"]] == ["PRIMARY", "ACTIVE"], x
refused("InvalidParameterException", ecs.update_service, service="x", taskDefinition="web:1")
refused("TaskSetNotFoundException", ecs.delete_task_set, **where, taskSet="none")
refused("InvalidParameterException", ecs.delete_task_set, **where, taskSet=green["id"])
assert ecs.delete_task_set(**where, taskSet=green["id"], force=True)["taskSet"]["status"] == "DRAINING"
ecs.delete_service(service="x", force=True)
wait(ecs, "services_inactive", services=["x"])

# Capacity providers
refused("ClientException", ecs.create_capacity_provider, name="gpus", autoScalingGroupProvider={"autoScalingGroupArn": "g",
    "managedScaling": {"status": "ENABLED"}})
ec2.create_launch_template(LaunchTemplateName="scaled", LaunchTemplateData={"ImageId": "ami-00000000", "InstanceType": "g4dn.xlarge"})
asg.create_auto_scaling_group(AutoScalingGroupName="g", MinSize=0, MaxSize=0, LaunchTemplate={"LaunchTemplateName": "scaled"},
    AvailabilityZones=["us-east-1a"])
refused("ClientException", ecs.create_capacity_provider, name="gpus", autoScalingGroupProvider={"autoScalingGroupArn": "g",
    "managedScaling": {"status": "ENABLED"}, "managedTerminationProtection": "ENABLED"})
asg.update_auto_scaling_group(AutoScalingGroupName="g", NewInstancesProtectedFromScaleIn=True)
p = ecs.create_capacity_provider(name="gpus", autoScalingGroupProvider={"autoScalingGroupArn": "g", "managedScaling": {"status": "ENABLED",
    "targetCapacity": 90}, "managedTerminationProtection": "ENABLED"},
                                 tags=[{"key": "k", "value": "v"}])["capacityProvider"]
assert p["status"] == "ACTIVE" and p["autoScalingGroupProvider"]["managedScaling"] == {
    "status": "ENABLED", "targetCapacity": 90, "minimumScalingStepSize": 1, "maximumScalingStepSize": 10000, "instanceWarmupPeriod": 300}, p
refused("ClientException", ecs.create_capacity_provider, name="gpus", autoScalingGroupProvider={"autoScalingGroupArn": "g2"})
refused("ClientException", ecs.create_capacity_provider, name="gpus2", autoScalingGroupProvider={"autoScalingGroupArn": "g"})
p = ecs.update_capacity_provider(name="gpus", autoScalingGroupProvider={"managedScaling": {"targetCapacity": 80},
    "managedDraining": "DISABLED"})["capacityProvider"]
assert (p["autoScalingGroupProvider"]["managedScaling"]["status"] == "ENABLED"
        and p["autoScalingGroupProvider"]["managedDraining"] == "DISABLED" and p["updateStatus"] == "UPDATE_COMPLETE"), p
ecs.tag_resource(resourceArn=p["capacityProviderArn"], tags=[{"key": "k2", "value": "v2"}])
d = ecs.describe_capacity_providers(capacityProviders=["gpus", "FARGATE", "none"], include=["TAGS"])
assert [q["name"] for q in d["capacityProviders"]] == ["gpus", "FARGATE"] and d["failures"][0]["reason"] == "MISSING" and len(
    d["capacityProviders"][0]["tags"]) == 2, d
d = ecs.describe_capacity_providers(maxResults=1)
assert [q["name"] for q in d["capacityProviders"]] == ["FARGATE"] and d["nextToken"], d
ecs.put_cluster_capacity_providers(cluster="other", capacityProviders=["gpus"],
    defaultCapacityProviderStrategy=[{"capacityProvider": "gpus", "base": 1, "weight": 1}])
assert [q["name"] for q in ecs.describe_capacity_providers(cluster="other")["capacityProviders"]] == ["gpus"]
p = ecs.delete_capacity_provider(capacityProvider="gpus")["capacityProvider"]
assert p["updateStatus"] == "DELETE_FAILED" and "other" in p["updateStatusReason"], p
one = ecs.register_container_instance(cluster="other", totalResources=[{"name": "CPU", "type": "INTEGER", "integerValue": 1024},
    {"name": "MEMORY", "type": "INTEGER", "integerValue": 1024}],
                                      attributes=[{"name": "pintle.capacity-provider",
                                          "value": "gpus"}])["containerInstance"]["containerInstanceArn"]
assert ecs.describe_container_instances(cluster="other",
    containerInstances=[one])["containerInstances"][0]["capacityProviderName"] == "gpus"
refused("InvalidParameterException", ecs.run_task, cluster="default", taskDefinition="web:1",
    capacityProviderStrategy=[{"capacityProvider": "gpus", "weight": 1}])
refused("InvalidParameterException", ecs.run_task, cluster="other", taskDefinition="web:1",
    capacityProviderStrategy=[{"capacityProvider": "gpus", "weight": 0}])
refused("NamespaceNotFoundException", ecs.create_service, cluster="other", serviceName="w", taskDefinition="web:1", desiredCount=0,
    serviceConnectConfiguration={"enabled": True, "namespace": "n"})
ns = ecs.update_cluster(cluster="other", serviceConnectDefaults={"namespace": "n"})["cluster"]["serviceConnectDefaults"]["namespace"]
w = ecs.create_service(cluster="other", serviceName="w", taskDefinition="web:1", desiredCount=0,
    serviceConnectConfiguration={"enabled": True, "namespace": "n"})["service"]
assert w["capacityProviderStrategy"] == [{"capacityProvider": "gpus", "base": 1, "weight": 1}] and "launchType" not in w, w
assert w["deployments"][0]["serviceConnectConfiguration"] == {"enabled": True, "namespace": "n"}, w
assert ecs.list_services_by_namespace(namespace="n")["serviceArns"] == [w["serviceArn"]]
assert ecs.list_services_by_namespace(namespace=ns)["serviceArns"] == [w["serviceArn"]]
refused("NamespaceNotFoundException", ecs.list_services_by_namespace, namespace="m")
refused("ResourceInUseException", ecs.put_cluster_capacity_providers, cluster="other", capacityProviders=[],
    defaultCapacityProviderStrategy=[])
ecs.delete_service(cluster="other", service="w")
wait(ecs, "services_inactive", cluster="other", services=["w"])
ecs.put_cluster_capacity_providers(cluster="other", capacityProviders=[], defaultCapacityProviderStrategy=[])
assert "serviceConnectDefaults" not in ecs.update_cluster(cluster="other", serviceConnectDefaults={"namespace": ""})["cluster"]
client("servicediscovery").delete_namespace(Id=ns.rsplit("/")[-1])
ecs.deregister_container_instance(cluster="other", containerInstance=one)
assert ecs.delete_capacity_provider(capacityProvider=p["capacityProviderArn"])["capacityProvider"]["status"] == "INACTIVE"
assert ecs.describe_capacity_providers(capacityProviders=["gpus"])["failures"][0]["reason"] == "MISSING"
asg.delete_auto_scaling_group(AutoScalingGroupName="g")
ec2.delete_launch_template(LaunchTemplateName="scaled")

# What nodes call
assert ecs.discover_poll_endpoint(containerInstance=instances[0])["endpoint"].endswith("/acs")
mine = ecs.register_container_instance(cluster="other", totalResources=[{"name": "CPU", "type": "INTEGER", "integerValue": 1024},
    {"name": "MEMORY", "type": "INTEGER", "integerValue": 1024}],
                                       attributes=[{"name": "echo", "value": "me"}])["containerInstance"]
assert {"name": "echo", "value": "me"} in mine["attributes"], mine
off = ecs.run_task(cluster="other", taskDefinition="everything:1")
assert off["failures"][0]["reason"] == "AGENT", off
refused("InvalidParameterException", ecs.submit_task_state_change, cluster="default", task="0" * 32, status="RUNNING")
ecs.submit_task_state_change(task=task["taskArn"], status="RUNNING")  # late: changes nothing
ecs.submit_container_state_change(task=task["taskArn"], containerName="main", status="RUNNING")
ecs.submit_attachment_state_changes(attachments=[{"attachmentArn": "a", "status": "ATTACHED"}])
assert ecs.describe_tasks(tasks=[task["taskArn"]])["tasks"][0]["lastStatus"] == "STOPPED"
refused("ClusterContainsContainerInstancesException", ecs.delete_cluster, cluster="other")
ecs.deregister_container_instance(cluster="other", containerInstance=mine["containerInstanceArn"])
ecs.delete_attributes(attributes=[{"name": "rack", "targetId": instances[0]}])
assert ecs.delete_cluster(cluster="other")["cluster"]["status"] == "INACTIVE"

# Logs
logs.create_log_group(logGroupName="/g", tags={"a": "b"})
refused("ResourceAlreadyExistsException", logs.create_log_group, logGroupName="/g")
logs.create_log_stream(logGroupName="/g", logStreamName="s1")
logs.create_log_stream(logGroupName="/g", logStreamName="s2")
now = int(time.time() * 1000)
logs.put_log_events(logGroupName="/g", logStreamName="s1", logEvents=[{"timestamp": now + i, "message": f"line {i}"} for i in range(25)])
r = logs.put_log_events(logGroupName="/g", logStreamName="s2", logEvents=[{"timestamp": now - 20 * 86400 * 1000, "message": "old"}])
assert r["rejectedLogEventsInfo"]["tooOldLogEventEndIndex"] == 1, r
logs.put_log_events(logGroupName="/g", logStreamName="s2", logEvents=[{"timestamp": now + 3, "message": "ERROR {x}"}])
got = logs.get_log_events(logGroupName="/g", logStreamName="s1", startFromHead=True, limit=10)
assert [e["message"] for e in got["events"]] == [f"line {i}" for i in range(10)], got
more = logs.get_log_events(logGroupName="/g", logStreamName="s1", nextToken=got["nextForwardToken"])
assert len(more["events"]) == 15 and more["events"][0]["message"] == "line 10", more
end = logs.get_log_events(logGroupName="/g", logStreamName="s1", nextToken=more["nextForwardToken"])
assert end["events"] == [] and end["nextForwardToken"] == more["nextForwardToken"], end
assert logs.get_log_events(logGroupName="/g", logStreamName="s1", endTime=1)["events"] == []
last = logs.get_log_events(logGroupName="/g", logStreamName="s1", limit=5)
assert [e["message"] for e in last["events"]] == [f"line {i}" for i in range(20, 25)], last
events = [e for p in logs.get_paginator("filter_log_events").paginate(logGroupName="/g", PaginationConfig={"PageSize": 7})
    for e in p["events"]]
assert len(events) == 26 and len({e["eventId"] for e in events}) == 26, len(events)
assert [e["timestamp"] for e in events] == sorted(e["timestamp"] for e in events)
assert [e["message"] for e in logs.filter_log_events(logGroupName="/g", filterPattern="ERROR")["events"]] == ["ERROR {x}"]
assert logs.filter_log_events(logGroupName="/g", logStreamNamePrefix="s2")["events"][0]["logStreamName"] == "s2"
streams = [s for p in logs.get_paginator("describe_log_streams").paginate(logGroupName="/g", PaginationConfig={"PageSize": 1})
    for s in p["logStreams"]]
assert [s["logStreamName"] for s in streams] == ["s1", "s2"] and streams[0]["lastEventTimestamp"] == now + 24, streams
groups = [g for p in logs.get_paginator("describe_log_groups").paginate(PaginationConfig={"PageSize": 1}) for g in p["logGroups"]]
assert {"/g", "made-for-you"} <= {g["logGroupName"] for g in groups}, groups
assert "out" in [e["message"] for e in logs.filter_log_events(logGroupName="made-for-you")["events"]]
logs.put_retention_policy(logGroupName="/g", retentionInDays=7)
assert logs.describe_log_groups(logGroupNamePrefix="/g")["logGroups"][0]["retentionInDays"] == 7
logs.delete_retention_policy(logGroupName="/g")
refused("InvalidParameterException", logs.put_retention_policy, logGroupName="/g", retentionInDays=2)
arn = logs.describe_log_groups(logGroupNamePrefix="/g")["logGroups"][0]["logGroupArn"]
logs.tag_resource(resourceArn=arn, tags={"c": "d"})
logs.untag_resource(resourceArn=arn, tagKeys=["a"])
assert logs.list_tags_for_resource(resourceArn=arn)["tags"] == {"c": "d"}
assert len(logs.test_metric_filter(filterPattern="{ $.a = 1 }", logEventMessages=['{"a":1}', '{"a":2}'])["matches"]) == 1
refused("ResourceNotFoundException", logs.get_log_events, logGroupName="/none", logStreamName="s")
refused("InvalidParameterException", logs.put_log_events, logGroupName="/g", logStreamName="s1",
    logEvents=[{"timestamp": now + 1, "message": "b"}, {"timestamp": now, "message": "a"}])
# Logs Insights
def insights(query, **more):
    about = {"logGroupName": "/g", "startTime": now // 1000 - 60, "endTime": now // 1000 + 60, **more}
    query_id = logs.start_query(queryString=query, **about)["queryId"]
    return query_id, until(
        lambda r: r["status"] not in ("Scheduled", "Running"), lambda: logs.get_query_results(queryId=query_id))


def rows(result):
    return [{f["field"]: f["value"] for f in row} for row in result["results"]]


logs.put_log_events(logGroupName="/g", logStreamName="s2", logEvents=[
    {"timestamp": now - 100 + i, "message": json.dumps({"level": "WARN" if i % 4 else "INFO", "took": {"ms": i}})} for i in range(20)])
query_id, done = insights("fields took.ms as ms | filter level = 'INFO' | sort ms desc", limit=2)
assert [r["ms"] for r in rows(done)] == ["16", "12"], done
assert done["statistics"]["recordsMatched"] == 5 and done["statistics"]["recordsScanned"] == 46, done
record = logs.get_log_record(logRecordPointer=rows(done)[0]["@ptr"])["logRecord"]
assert record["took.ms"] == "16" and record["@logStream"] == "s2", record
_, done = insights("filter ispresent(level) | stats count(*) as n, max(took.ms) as most by level | sort n")
assert rows(done) == [{"level": "INFO", "n": "5", "most": "16"}, {"level": "WARN", "n": "15", "most": "19"}], done
_, done = insights("parse @message /line (?<n>[0-9]+)/ | filter n >= 23 | display n")
assert [r["n"] for r in rows(done)] == ["24", "23"], done
first = logs.get_query_results(queryId=query_id, maxItems=1)
assert rows(logs.get_query_results(queryId=query_id, nextToken=first["nextToken"]))[0]["ms"] == "12", first
assert query_id in [q["queryId"] for q in logs.describe_queries(logGroupName="/g", status="Complete")["queries"]]
refused("InvalidParameterException", logs.stop_query, queryId=query_id)
refused("ResourceNotFoundException", logs.get_query_results, queryId="none")
r = refused("MalformedQueryException", logs.start_query, logGroupName="/g", startTime=0, endTime=1, queryString="fields a | pattern a")
where = r.get("queryCompileError", {}).get("location")  # which the CLI doesn't show
assert where in (None, {"startCharOffset": 11, "endCharOffset": 18}), r
fields = {f["name"]: f["percent"] for f in logs.get_log_group_fields(logGroupName="/g")["logGroupFields"]}
assert fields["@message"] == 100 and 0 < fields["took.ms"] < 100, fields
saved = logs.put_query_definition(name="mine", queryString="limit 5", logGroupNames=["/g"])["queryDefinitionId"]
assert [d["queryString"] for d in logs.describe_query_definitions(queryDefinitionNamePrefix="mi")["queryDefinitions"]] == ["limit 5"]
assert logs.delete_query_definition(queryDefinitionId=saved)["success"]
logs.delete_log_stream(logGroupName="/g", logStreamName="s2")
logs.delete_log_group(logGroupName="/g")

# CloudWatch: metrics
now = datetime.datetime.now(datetime.timezone.utc).replace(second=0, microsecond=0)
minute = datetime.timedelta(minutes=1)


def ago(minutes=0, seconds=0, days=0):
    return (now - datetime.timedelta(minutes=minutes, days=days, seconds=-seconds)).isoformat()


dims = [{"Name": "ServiceName", "Value": "s"}, {"Name": "ClusterName", "Value": "c"}]
cw.put_metric_data(Namespace="Test/GPU", MetricData=[
    {"MetricName": "util", "Dimensions": dims, "Timestamp": ago(1), "Value": 75.0, "Unit": "Percent"},
    {"MetricName": "util", "Dimensions": dims[::-1], "Timestamp": ago(1, seconds=30), "Values": [10.0, 20.0], "Counts": [1.0, 2.0],
        "Unit": "Percent"},
    {"MetricName": "util", "Dimensions": dims, "Timestamp": ago(2), "StatisticValues": {"SampleCount": 4.0, "Sum": 10.0, "Minimum": 1.0,
        "Maximum": 4.0}, "Unit": "Percent"},
    {"MetricName": "fine", "Timestamp": ago(1), "Value": 1.0, "StorageResolution": 1},
    {"MetricName": "fine", "Timestamp": ago(1, seconds=1), "Value": 2.0, "StorageResolution": 1},
    {"MetricName": "old", "Timestamp": ago(days=13), "Value": 7.0},
])
cw.put_metric_data(Namespace="Test/Many", MetricData=[{"MetricName": f"m{i:04}", "Dimensions": [{"Name": "n", "Value": "v" * 5}],
    "Value": float(i)} for i in range(1000)])
stats = cw.get_metric_statistics(Namespace="Test/GPU", MetricName="util", Dimensions=dims, StartTime=ago(5), EndTime=ago(), Period=60,
                                 Statistics=["Average", "Sum", "Minimum", "Maximum", "SampleCount"],
                                 ExtendedStatistics=["p50", "p99", "tm90"])
a, b = sorted(stats["Datapoints"], key=lambda d: when(d["Timestamp"]))
assert (a["Sum"], a["SampleCount"], a["Average"], a["Minimum"], a["Maximum"]) == (10, 4, 2.5, 1, 4) and "ExtendedStatistics" not in a, a
assert (b["Sum"], b["SampleCount"], b["Minimum"], b["Maximum"], b["Unit"]) == (125, 4, 10, 75,
    "Percent") and when(b["Timestamp"]) == now - minute, b
assert b["ExtendedStatistics"]["p50"] == 20 and b["ExtendedStatistics"]["p99"] == 75, b
assert stats["Label"] == "util", stats
assert cw.get_metric_statistics(Namespace="Test/GPU", MetricName="util", Dimensions=dims, Unit="Count", StartTime=ago(5), EndTime=ago(),
    Period=60, Statistics=["Sum"])["Datapoints"] == []
assert len(cw.get_metric_statistics(Namespace="Test/GPU", MetricName="fine", StartTime=ago(1), EndTime=ago(), Period=1,
    Statistics=["Sum"])["Datapoints"]) == 2
old = cw.get_metric_statistics(Namespace="Test/GPU", MetricName="old", StartTime=ago(days=14), EndTime=ago(), Period=3600,
    Statistics=["Sum"])["Datapoints"]
assert [d["Sum"] for d in old] == [7], old
stat = {"Metric": {"Namespace": "Test/GPU", "MetricName": "util", "Dimensions": dims}, "Period": 60, "Stat": "Sum"}
queries = [{"Id": "m1", "MetricStat": stat}, {"Id": "m2", "MetricStat": {**stat, "Stat": "SampleCount"}, "ReturnData": False},
    {"Id": "e1", "Expression": "m1 / m2", "Label": "mean"}]
data = cw.get_metric_data(MetricDataQueries=queries, StartTime=ago(5), EndTime=ago())["MetricDataResults"]
assert [(d["Id"], d["Label"], d["Values"], d["StatusCode"]) for d in data] == [("m1", "util", [125, 10], "Complete"),
    ("e1", "mean", [31.25, 2.5], "Complete")], data
assert [when(t) for t in data[0]["Timestamps"]] == [now - minute, now - 2 * minute], data
pages = list(cw.get_paginator("get_metric_data").paginate(MetricDataQueries=queries, StartTime=ago(5), EndTime=ago(),
    ScanBy="TimestampAscending", PaginationConfig={"PageSize": 3}))
assert [(r["Id"], r["Values"], r["StatusCode"]) for p in pages for r in p["MetricDataResults"]] == [
    ("m1", [10, 125], "Complete"), ("e1", [2.5], "PartialData"), ("e1", [31.25], "Complete")], pages
refused("ValidationError", cw.get_metric_data, MetricDataQueries=[{"Id": "e1", "Expression": "m1 +"}], StartTime=ago(1), EndTime=ago())
refused("ValidationError", cw.get_metric_data, MetricDataQueries=[queries[0], {"Id": "e1", "Expression": "nothing * 2"}], StartTime=ago(1),
    EndTime=ago())
listed = [m for p in cw.get_paginator("list_metrics").paginate() for m in p["Metrics"]]
# the nodes' own, and the queues'
listed = [m for m in listed if m["Namespace"] not in ("AWS/EC2", "AWS/ECS", "AWS/ECS/ManagedScaling", "AWS/SQS", "ECS/ContainerInsights",
    "ECS/ContainerInsights/Prometheus", "Pintle/ECS", "Pintle/Usage")]
assert len(listed) == 1003, len(listed)
assert [m["MetricName"] for m in cw.list_metrics(Namespace="Test/GPU", Dimensions=[{"Name": "ServiceName"}])["Metrics"]] == ["util"]
assert cw.list_metrics(Namespace="Test/GPU", Dimensions=[{"Name": "ServiceName", "Value": "t"}])["Metrics"] == []
assert {m["MetricName"] for m in cw.list_metrics(Namespace="Test/GPU", RecentlyActive="PT3H")["Metrics"]} == {"util", "fine"}
refused("InvalidParameterValue", cw.put_metric_data, Namespace="AWS/ECS", MetricData=[{"MetricName": "m", "Value": 1.0}])
refused("InvalidParameterValue", cw.put_metric_data, Namespace="n", MetricData=[{"MetricName": "m", "Value": float("nan")}])
refused("InvalidParameterCombination", cw.put_metric_data, Namespace="n", MetricData=[{"MetricName": "m", "Value": 1.0, "Values": [1.0]}])
refused("MissingParameter", cw.put_metric_data, Namespace="n", MetricData=[{"MetricName": "m"}])
refused("InvalidParameterValue", cw.put_metric_data, Namespace="n", MetricData=[{"MetricName": "good", "Value": 1.0},
    {"MetricName": "m", "Value": 1.0, "Timestamp": ago(days=15)}])
assert cw.list_metrics(Namespace="n")["Metrics"] == []
refused("InvalidParameterCombination", cw.get_metric_statistics, Namespace="n", MetricName="m", StartTime=ago(days=2), EndTime=ago(),
    Period=60, Statistics=["Sum"])

# CloudWatch: searches, and anomaly detection
got = cw.get_metric_data(StartTime=ago(10), EndTime=ago(),
    MetricDataQueries=[{"Id": "s1",
        "Expression": "SEARCH('{Test/GPU,ClusterName,ServiceName} MetricName=\"util\"', 'Maximum', 60)"}])["MetricDataResults"]
assert [r["Label"] for r in got] == ["util"], got
detected = dict(Namespace="Test/GPU", MetricName="util", Dimensions=dims, Stat="Average")
cw.put_anomaly_detector(SingleMetricAnomalyDetector=detected, Configuration={"MetricTimezone": "Europe/Berlin",
    "ExcludedTimeRanges": [{"StartTime": ago(60), "EndTime": ago(59)}]})
cw.put_anomaly_detector(**{**detected, "Stat": "p90"})
got = [d for p in cw.get_paginator("describe_anomaly_detectors").paginate(Namespace="Test/GPU", PaginationConfig={"PageSize": 1})
    for d in p["AnomalyDetectors"]]
assert [(d["Stat"], d["StateValue"]) for d in got] == [("Average", "TRAINED_INSUFFICIENT_DATA"), ("p90", "TRAINED_INSUFFICIENT_DATA")], got
assert got[0]["Configuration"]["MetricTimezone"] == "Europe/Berlin" and got[0]["SingleMetricAnomalyDetector"] == detected, got
cw.put_metric_alarm(AlarmName="odd", EvaluationPeriods=1, ComparisonOperator="GreaterThanUpperThreshold", ThresholdMetricId="band",
    Metrics=[
    {"Id": "m1", "MetricStat": {"Metric": {k: detected[k] for k in ("Namespace", "MetricName", "Dimensions")}, "Period": 60,
        "Stat": "Average"}}, {"Id": "band", "Expression": "ANOMALY_DETECTION_BAND(m1, 2)"}])
got = cw.describe_alarms(AlarmNames=["odd"])["MetricAlarms"][0]
assert got["ThresholdMetricId"] == "band" and "Threshold" not in got, got
cw.delete_alarms(AlarmNames=["odd"])
cw.delete_anomaly_detector(SingleMetricAnomalyDetector=detected)
refused("ResourceNotFoundException", cw.delete_anomaly_detector, SingleMetricAnomalyDetector=detected)
refused("InvalidParameterValue", cw.put_anomaly_detector, **{**detected, "Stat": "Mean"})

# CloudWatch: dashboards
cw.put_dashboard(DashboardName="d", DashboardBody='{"widgets": []}', Tags=[{"Key": "a", "Value": "b"}])
assert cw.get_dashboard(DashboardName="d")["DashboardBody"] == '{"widgets": []}'
entries = [e for p in cw.get_paginator("list_dashboards").paginate(DashboardNamePrefix="d") for e in p["DashboardEntries"]]
assert [(e["DashboardName"], e["Size"]) for e in entries] == [("d", 15)], entries
assert cw.list_tags_for_resource(ResourceARN=entries[0]["DashboardArn"])["Tags"] == [{"Key": "a", "Value": "b"}]
bad = refused("InvalidParameterInput", cw.put_dashboard, DashboardName="d", DashboardBody="{")
assert bad.get("dashboardValidationMessages") or sys.argv[1:], bad
refused("ResourceNotFound", cw.delete_dashboards, DashboardNames=["d", "none"])
cw.delete_dashboards(DashboardNames=["d"])
refused("ResourceNotFound", cw.get_dashboard, DashboardName="d")

# CloudWatch: alarms. Their metrics are never reported, so they keep the state they are set to.
alarm = dict(AlarmName="high", Namespace="Test/None", MetricName="util", Dimensions=dims, Statistic="Average", Period=60,
    EvaluationPeriods=3, DatapointsToAlarm=2,
             Threshold=75.0, ComparisonOperator="GreaterThanThreshold", TreatMissingData="ignore",
             AlarmActions=["arn:aws:sns:us-east-1:000000000000:t"])
cw.put_metric_alarm(**alarm, Tags=[{"Key": "a", "Value": "b"}])
got = cw.describe_alarms(AlarmNames=["high"])["MetricAlarms"][0]
for k, v in alarm.items():
    assert got[k] == v, (k, got[k], v)
assert (got["StateValue"], got["ActionsEnabled"], got["OKActions"]) == ("INSUFFICIENT_DATA", True, []), got
cw.put_metric_alarm(AlarmName="math", EvaluationPeriods=1, Threshold=1.0, ComparisonOperator="LessThanThreshold", TreatMissingData="ignore",
    Metrics=[
    {"Id": "m1", "MetricStat": {**stat, "Metric": {"Namespace": "Test/None", "MetricName": "x"}}, "ReturnData": False},
    {"Id": "e1", "Expression": "m1 * 2"}])
cw.put_composite_alarm(AlarmName="both", AlarmRule='ALARM("high") AND NOT ALARM(math)')
arn = got["AlarmArn"]
cw.tag_resource(ResourceARN=arn, Tags=[{"Key": "c", "Value": "d"}])
cw.untag_resource(ResourceARN=arn, TagKeys=["a"])
assert cw.list_tags_for_resource(ResourceARN=arn)["Tags"] == [{"Key": "c", "Value": "d"}]
cw.disable_alarm_actions(AlarmNames=["high"])
assert not cw.describe_alarms(AlarmNames=["high"])["MetricAlarms"][0]["ActionsEnabled"]
cw.enable_alarm_actions(AlarmNames=["high"])
cw.set_alarm_state(AlarmName="high", StateValue="ALARM", StateReason="a test", StateReasonData='{"x": 1}')
got = cw.describe_alarms(StateValue="ALARM")["MetricAlarms"][0]
assert (got["AlarmName"], got["StateReason"]) == ("high", "a test"), got
history = cw.describe_alarm_history(AlarmName="high", HistoryItemType="StateUpdate")["AlarmHistoryItems"]
assert history[0]["HistorySummary"] == "Alarm updated from INSUFFICIENT_DATA to ALARM", history
items = [h for p in cw.get_paginator("describe_alarm_history").paginate(AlarmName="high", PaginationConfig={"PageSize": 2})
    for h in p["AlarmHistoryItems"]]
assert len([h for h in items if h["HistoryItemType"] == "ConfigurationUpdate"]) == 3, items
names = [m["AlarmName"] for p in cw.get_paginator("describe_alarms").paginate(PaginationConfig={"PageSize": 1}) for m in p["MetricAlarms"]]
assert names == ["high", "math"], names
assert [m["AlarmName"] for m in cw.describe_alarms(AlarmTypes=["CompositeAlarm"])["CompositeAlarms"]] == ["both"]
assert [m["AlarmName"] for m in cw.describe_alarms(ChildrenOfAlarmName="both")["MetricAlarms"]] == ["high", "math"]
assert [m["AlarmName"] for m in cw.describe_alarms(ParentsOfAlarmName="high")["CompositeAlarms"]] == ["both"]
assert [m["AlarmName"] for m in cw.describe_alarms_for_metric(Namespace="Test/None", MetricName="util",
    Dimensions=dims)["MetricAlarms"]] == ["high"]
wait(cw, "alarm_exists", AlarmNames=["high"])
refused("ValidationError", cw.put_metric_alarm, **{**alarm, "DatapointsToAlarm": 4})
refused("ValidationError", cw.put_metric_alarm, **{**alarm, "Period": 45})
refused("MissingParameter", cw.put_metric_alarm, AlarmName="x")
refused("ValidationError", cw.put_composite_alarm, AlarmName="c", AlarmRule="ALARM(nowhere)")
refused("ResourceNotFound", cw.set_alarm_state, AlarmName="none", StateValue="OK", StateReason="r")
refused("InvalidFormat", cw.set_alarm_state, AlarmName="high", StateValue="OK", StateReason="r", StateReasonData="{")
refused("InvalidNextToken", cw.describe_alarms, NextToken="%%%")
refused("ValidationError", cw.delete_alarms, AlarmNames=["high"])
cw.delete_alarms(AlarmNames=["both"])
cw.delete_alarms(AlarmNames=["high", "math", "none"])
assert cw.describe_alarms()["MetricAlarms"] == []

# Metrics in logs, in the embedded metric format
logs.create_log_group(logGroupName="/emf")
logs.create_log_stream(logGroupName="/emf", logStreamName="s")
ms = int((now - minute).timestamp() * 1000)
logs.put_log_events(logGroupName="/emf", logStreamName="s", logEvents=[{"timestamp": ms, "message": m} for m in [
    json.dumps({"_aws": {"Timestamp": ms, "CloudWatchMetrics": [{"Namespace": "ECS/ContainerInsights/Prometheus",
        "Dimensions": [["ClusterName", "ServiceName"]], "Metrics": [{"Name": "DCGM_FI_DEV_GPU_UTIL"}]}]},
                "ClusterName": "c", "ServiceName": "s", "DCGM_FI_DEV_GPU_UTIL": [70, 90]}),
    '{"_aws": {"CloudWatchMetrics": "none"}}',
]])
got = until(lambda got: got["Datapoints"], lambda: cw.get_metric_statistics(Namespace="ECS/ContainerInsights/Prometheus",
    MetricName="DCGM_FI_DEV_GPU_UTIL", Dimensions=dims, StartTime=ago(5), EndTime=ago(), Period=60, Statistics=["Average"]))
assert [d["Average"] for d in got["Datapoints"]] == [80], got
assert len(logs.get_log_events(logGroupName="/emf", logStreamName="s")["events"]) == 2

# Filters of log groups, and what is kept of policies and exports
g = {"logGroupName": "/filters"}
logs.create_log_group(**g, deletionProtectionEnabled=True)
logs.create_log_stream(**g, logStreamName="s/1")
refused("ValidationException", logs.delete_log_group, **g)
logs.put_log_group_deletion_protection(logGroupIdentifier="/filters", deletionProtectionEnabled=False)
for name, pattern, to in (
    ("errors", "ERROR", {"metricName": "Errors", "metricNamespace": "App", "metricValue": "1", "unit": "Count"}),
    ("latency", "{ $.ms = * }", {"metricName": "Ms", "metricNamespace": "App", "metricValue": "$.ms", "dimensions": {"path": "$.path"}}),
):
    logs.put_metric_filter(**g, filterName=name, filterPattern=pattern, metricTransformations=[to])
refused("InvalidParameterException", logs.put_metric_filter, **g, filterName="f", filterPattern="x", applyOnTransformedLogs=True,
    metricTransformations=[{"metricName": "m", "metricNamespace": "n", "metricValue": "1"}])
filters = [f for p in logs.get_paginator("describe_metric_filters").paginate(**g, PaginationConfig={"PageSize": 1}) for f in p["metricFilters"]]
assert [f["filterName"] for f in filters] == ["errors", "latency"], filters
assert filters[1]["metricTransformations"][0]["dimensions"] == {"path": "$.path"}, filters
named = logs.describe_metric_filters(metricName="Errors", metricNamespace="App")["metricFilters"]
assert [f["filterName"] for f in named] == ["errors"], named
assert logs.describe_log_groups(logGroupNamePrefix="/filters")["logGroups"][0]["metricFilterCount"] == 2
queue = sqs.create_queue(QueueName="log-events")["QueueUrl"]
queue_arn = sqs.get_queue_attributes(QueueUrl=queue, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
refused("InvalidParameterException", logs.put_subscription_filter, **g, filterName="k", filterPattern="",
    destinationArn="arn:aws:kinesis:us-east-1:000000000000:stream/s")
logs.put_subscription_filter(**g, filterName="all", filterPattern="", destinationArn=queue_arn)
(subscription,) = [f for p in logs.get_paginator("describe_subscription_filters").paginate(**g) for f in p["subscriptionFilters"]]
assert (subscription["destinationArn"], subscription["distribution"]) == (queue_arn, "ByLogStream"), subscription
logs.put_log_events(**g, logStreamName="s/1", logEvents=[{"timestamp": ms, "message": m} for m in ("ERROR", '{"ms": 7, "path": "/x"}')])
got = until(lambda got: got["Datapoints"], lambda: cw.get_metric_statistics(Namespace="App", MetricName="Ms",
    Dimensions=[{"Name": "path", "Value": "/x"}], StartTime=ago(5), EndTime=ago(), Period=60, Statistics=["Sum"]))
assert [d["Sum"] for d in got["Datapoints"]] == [7], got
assert len(until(lambda got: len(got) == 2, lambda: [0] * int(sqs.get_queue_attributes(
    QueueUrl=queue, AttributeNames=["ApproximateNumberOfMessages"])["Attributes"]["ApproximateNumberOfMessages"]))) == 2
logs.delete_subscription_filter(**g, filterName="all")
refused("ResourceNotFoundException", logs.delete_subscription_filter, **g, filterName="all")
logs.delete_metric_filter(**g, filterName="errors")
refused("ResourceNotFoundException", logs.delete_metric_filter, **g, filterName="errors")
logs.tag_log_group(**g, tags={"a": "b", "c": "d"})
logs.untag_log_group(**g, tags=["a"])
assert logs.list_tags_log_group(**g)["tags"] == {"c": "d"}
policy = json.dumps({"Version": "2012-10-17", "Statement": []})
for i in range(10):
    logs.put_resource_policy(policyName=f"p{i}", policyDocument=policy)
refused("LimitExceededException", logs.put_resource_policy, policyName="more", policyDocument=policy)
refused("InvalidParameterException", logs.put_resource_policy, policyName="p1", policyDocument="{")
policies = [r for p in logs.get_paginator("describe_resource_policies").paginate(PaginationConfig={"PageSize": 3}) for r in p["resourcePolicies"]]
assert [p["policyName"] for p in policies] == [f"p{i}" for i in range(10)] and policies[0]["policyDocument"] == policy, policies
logs.delete_resource_policy(policyName="p1")
refused("ResourceNotFoundException", logs.delete_resource_policy, policyName="p1")
assert logs.describe_account_policies(policyType="DATA_PROTECTION_POLICY")["accountPolicies"] == []
assert "policyDocument" not in logs.get_data_protection_policy(logGroupIdentifier="/filters")
buckets = boto3.client("s3", endpoint_url=endpoint)  # s3.py tests S3
buckets.create_bucket(Bucket="exported")
span = {"from": ms - 1000, "to": ms + 10 ** 6}
refused("InvalidParameterException", logs.create_export_task, **g, **span, destination="no-such-bucket")
task = logs.create_export_task(**g, **span, destination="exported", taskName="t")["taskId"]
(done,) = until(lambda got: got[0]["status"]["code"] == "COMPLETED",
    lambda: [t for p in logs.get_paginator("describe_export_tasks").paginate(taskId=task) for t in p["exportTasks"]])
assert done["taskName"] == "t" and done["executionInfo"]["completionTime"], done
lines = gzip.decompress(buckets.get_object(Bucket="exported", Key=f"exportedlogs/{task}/s-1/000000.gz")["Body"].read())
assert [line.split(b" ", 1)[1] for line in lines.splitlines()] == [b"ERROR", b'{"ms": 7, "path": "/x"}'], lines
assert buckets.get_object(Bucket="exported", Key="aws-logs-write-test")["Body"].read()
refused("InvalidOperationException", logs.cancel_export_task, taskId=task)
refused("ResourceNotFoundException", logs.cancel_export_task, taskId="none")
logs.delete_log_group(**g)
assert logs.describe_metric_filters()["metricFilters"] == []

# Application Auto Scaling
for name in ("web", "other"):
    ecs.create_service(serviceName=name, taskDefinition="everything:1", desiredCount=0)
web = dict(ServiceNamespace="ecs", ScalableDimension="ecs:service:DesiredCount", ResourceId="service/default/web")
refused("ObjectNotFoundException", scaling.deregister_scalable_target, **web)
refused("ValidationException", scaling.register_scalable_target, **{**web, "ServiceNamespace": "dynamodb",
    "ScalableDimension": "dynamodb:table:ReadCapacityUnits"}, MinCapacity=1, MaxCapacity=2)
refused("ValidationException", scaling.register_scalable_target, **web, MinCapacity=3, MaxCapacity=2)
arn = scaling.register_scalable_target(**web, MinCapacity=0, MaxCapacity=8, Tags={"a": "b"})["ScalableTargetARN"]
scaling.register_scalable_target(**web, MaxCapacity=9, SuspendedState={"DynamicScalingInSuspended": True})
scaling.register_scalable_target(**{**web, "ResourceId": "service/default/other"}, MinCapacity=0, MaxCapacity=1)
targets = [t for p in scaling.get_paginator("describe_scalable_targets").paginate(ServiceNamespace="ecs", PaginationConfig={"PageSize": 1})
    for t in p["ScalableTargets"]]
assert [t["ResourceId"] for t in targets] == ["service/default/other", "service/default/web"], targets
assert (targets[1]["MinCapacity"], targets[1]["MaxCapacity"], targets[1]["ScalableTargetARN"]) == (0, 9, arn), targets
assert targets[1]["SuspendedState"] == {"DynamicScalingInSuspended": True, "DynamicScalingOutSuspended": False,
    "ScheduledScalingSuspended": False}, targets
scaling.tag_resource(ResourceARN=arn, Tags={"c": "d"})
scaling.untag_resource(ResourceARN=arn, TagKeys=["a"])
assert scaling.list_tags_for_resource(ResourceARN=arn)["Tags"] == {"c": "d"}
refused("ResourceNotFoundException", scaling.tag_resource, ResourceARN=arn[:-1] + "-", Tags={"c": "d"})
tracking = {
    "TargetValue": 75.0, "ScaleInCooldown": 60, "ScaleOutCooldown": 60, "DisableScaleIn": False,
    "CustomizedMetricSpecification": {"Namespace": "ECS/ContainerInsights/Prometheus", "MetricName": "DCGM_FI_DEV_GPU_UTIL",
        "Statistic": "Average", "Unit": "Percent",
                                      "Dimensions": [{"Name": "ClusterName", "Value": "default"}, {"Name": "ServiceName", "Value": "web"}]},
}
policy = scaling.put_scaling_policy(**web, PolicyName="gpu75", PolicyType="TargetTrackingScaling",
    TargetTrackingScalingPolicyConfiguration=tracking)
assert ":policyName/gpu75" in policy["PolicyARN"] and [a["AlarmName"].split("-")[2] for a in policy["Alarms"]] == ["AlarmHigh",
    "AlarmLow"], policy
step = {"AdjustmentType": "PercentChangeInCapacity", "MinAdjustmentMagnitude": 1, "Cooldown": 60, "MetricAggregationType": "Average",
        "StepAdjustments": [{"MetricIntervalLowerBound": 0.0, "MetricIntervalUpperBound": 10.0, "ScalingAdjustment": 10},
            {"MetricIntervalLowerBound": 10.0, "ScalingAdjustment": 30}]}
scaling.put_scaling_policy(**web, PolicyName="steps", PolicyType="StepScaling", StepScalingPolicyConfiguration=step)
step["StepAdjustments"][1]["MetricIntervalLowerBound"] = 20.0
assert "gap" in refused("ValidationException", scaling.put_scaling_policy, **web, PolicyName="gap", PolicyType="StepScaling",
    StepScalingPolicyConfiguration=step)["Error"]["Message"]
policies = [p for page in scaling.get_paginator("describe_scaling_policies").paginate(**web, PaginationConfig={"PageSize": 1})
    for p in page["ScalingPolicies"]]
assert [p["PolicyName"] for p in policies] == ["gpu75", "steps"], policies
assert policies[0]["TargetTrackingScalingPolicyConfiguration"] == tracking and policies[0]["Alarms"] == policy["Alarms"], policies[0]
assert policies[1]["StepScalingPolicyConfiguration"]["MinAdjustmentMagnitude"] == 1 and policies[1]["Alarms"] == [], policies[1]
scaling.delete_scaling_policy(**web, PolicyName="steps")
refused("ObjectNotFoundException", scaling.delete_scaling_policy, **web, PolicyName="steps")
scaling.put_scheduled_action(**web, ScheduledActionName="mornings", Schedule="cron(0 8 ? * MON-FRI 2035)", Timezone="Europe/Zurich",
    ScalableTargetAction={"MinCapacity": 4})
scaling.put_scheduled_action(**web, ScheduledActionName="once", Schedule="at(2035-01-01T00:00:00)", ScalableTargetAction={"MinCapacity": 0,
    "MaxCapacity": 0})
refused("ValidationException", scaling.put_scheduled_action, **web, ScheduledActionName="bad", Schedule="cron(0 8 * * * *)",
    ScalableTargetAction={"MinCapacity": 4})
actions = [a for p in scaling.get_paginator("describe_scheduled_actions").paginate(**web, PaginationConfig={"PageSize": 1})
    for a in p["ScheduledActions"]]
assert [a["ScheduledActionName"] for a in actions] == ["mornings", "once"] and actions[0]["Timezone"] == "Europe/Zurich", actions
assert actions[1]["ScalableTargetAction"] == {"MinCapacity": 0, "MaxCapacity": 0}, actions
scaling.delete_scheduled_action(**web, ScheduledActionName="once")
assert [a for p in scaling.get_paginator("describe_scaling_activities").paginate(**web, IncludeNotScaledActivities=True)
    for a in p["ScalingActivities"]] == []
refused("NotImplementedException", scaling.get_predictive_scaling_forecast, **web, PolicyName="gpu75", StartTime=0, EndTime=1)
called.discard("application-autoscaling:GetPredictiveScalingForecast")
scaling.deregister_scalable_target(**web)
assert scaling.describe_scaling_policies(ServiceNamespace="ecs")["ScalingPolicies"] == []
assert scaling.describe_scheduled_actions(ServiceNamespace="ecs")["ScheduledActions"] == []

# EC2: the machines under container instances
nodes = ecs.describe_container_instances(containerInstances=ecs.list_container_instances()["containerInstanceArns"])["containerInstances"]
ids = sorted(n["ec2InstanceId"] for n in nodes)
pages = ec2.get_paginator("describe_instances").paginate(PaginationConfig={"PageSize": 5}, Filters=[
    {"Name": "instance-state-name", "Values": ["running"]}, {"Name": "tag:Name", "Values": ["node-?"]},
    {"Name": "instance-id", "Values": ids}])
machines = [i for p in pages for r in p["Reservations"] for i in r["Instances"]]
assert [m["InstanceId"] for m in machines] == ids and len(ids) == 2, (machines, ids)
assert {m["InstanceType"] for m in machines} == {"g4dn.xlarge"} and {m["PrivateIpAddress"] for m in machines} == {"127.0.0.1"}, machines
assert ec2.describe_instances(InstanceIds=ids[:1])["Reservations"][0]["Instances"] == machines[:1]
wait(ec2, "instance_running", InstanceIds=ids)
wait(ec2, "instance_status_ok", InstanceIds=ids)
wait(ec2, "system_status_ok", InstanceIds=ids)
assert [s["InstanceId"] for s in ec2.describe_instance_status(InstanceIds=ids, IncludeAllInstances=True)["InstanceStatuses"]] == ids
refused("InvalidInstanceID.NotFound", ec2.describe_instances, InstanceIds=["i-00000000000000000"])
refused("InvalidInstanceID.Malformed", ec2.describe_instances, InstanceIds=["mine"])
refused("InvalidParameterValue", ec2.describe_instances, Filters=[{"Name": "colour", "Values": ["red"]}])
refused("DryRunOperation", ec2.describe_instances, DryRun=True)
kind = ec2.describe_instance_types(InstanceTypes=["g4dn.xlarge"])["InstanceTypes"][0]
assert (kind["VCpuInfo"]["DefaultVCpus"], kind["MemoryInfo"]["SizeInMiB"], kind["GpuInfo"]["Gpus"][0]["Name"]) == (4, 16384, "T4"), kind
kinds = [t["InstanceType"] for p in ec2.get_paginator("describe_instance_types").paginate(PaginationConfig={"PageSize": 50})
    for t in p["InstanceTypes"]]
assert len(kinds) > 100 and len(set(kinds)) == len(kinds), kinds
refused("InvalidInstanceType", ec2.describe_instance_types, InstanceTypes=["z9.huge"])
refused("UnsupportedOperation", ec2.describe_spot_instance_requests)
called.discard("ec2:DescribeSpotInstanceRequests")


def network():
    """EC2's network."""
    zones = ["us-east-1a", "us-east-1b", "us-east-1c"]
    default = ec2.describe_vpcs(Filters=[{"Name": "is-default", "Values": ["true"]}])["Vpcs"][0]
    assert default["CidrBlock"] == "172.31.0.0/16", default
    found = ec2.describe_subnets(Filters=[{"Name": "vpc-id", "Values": [default["VpcId"]]}])["Subnets"]
    assert sorted(s["AvailabilityZone"] for s in found if s["DefaultForAz"]) == zones, found
    refused("DefaultVpcAlreadyExists", ec2.create_default_vpc)
    refused("DefaultSubnetAlreadyExistsInAvailabilityZone", ec2.create_default_subnet, AvailabilityZone=zones[0])
    tags = lambda kind: [{"ResourceType": kind, "Tags": [{"Key": "Name", "Value": "net"}]}]
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=tags("vpc"))["Vpc"]["VpcId"]
    inside = [{"Name": "vpc-id", "Values": [vpc]}]
    wait(ec2, "vpc_available", VpcIds=[vpc])
    refused("InvalidVpc.Range", ec2.create_vpc, CidrBlock="10.0.0.0/8")
    refused("InvalidVpcID.NotFound", ec2.describe_vpcs, VpcIds=["vpc-00000000000000000"])
    assert len(ec2.describe_security_groups(Filters=inside)["SecurityGroups"]) == 1
    main = ec2.describe_route_tables(Filters=inside + [{"Name": "association.main", "Values": ["true"]}])["RouteTables"]
    assert [r["GatewayId"] for r in main[0]["Routes"]] == ["local"], main
    ec2.modify_vpc_attribute(VpcId=vpc, EnableDnsHostnames={"Value": True})
    assert ec2.describe_vpc_attribute(VpcId=vpc, Attribute="enableDnsHostnames")["EnableDnsHostnames"]["Value"]
    more = ec2.associate_vpc_cidr_block(VpcId=vpc, CidrBlock="10.1.0.0/16")["CidrBlockAssociation"]["AssociationId"]
    ec2.disassociate_vpc_cidr_block(AssociationId=more)
    options = ec2.create_dhcp_options(DhcpConfigurations=[{"Key": "domain-name", "Values": ["gpu.internal"]}])["DhcpOptions"]["DhcpOptionsId"]
    ec2.associate_dhcp_options(DhcpOptionsId=options, VpcId=vpc)
    refused("DependencyViolation", ec2.delete_dhcp_options, DhcpOptionsId=options)
    ec2.associate_dhcp_options(DhcpOptionsId="default", VpcId=vpc)
    assert len(ec2.describe_dhcp_options(DhcpOptionsIds=[options])["DhcpOptions"]) == 1
    ec2.delete_dhcp_options(DhcpOptionsId=options)

    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.1.0/24", AvailabilityZone=zones[1])["Subnet"]
    assert subnet["AvailableIpAddressCount"] == 251, subnet
    subnet = subnet["SubnetId"]
    wait(ec2, "subnet_available", SubnetIds=[subnet])
    refused("InvalidSubnet.Conflict", ec2.create_subnet, VpcId=vpc, CidrBlock="10.0.1.128/25")
    refused("InvalidSubnet.Range", ec2.create_subnet, VpcId=vpc, CidrBlock="10.2.0.0/24")
    ec2.modify_subnet_attribute(SubnetId=subnet, MapPublicIpOnLaunch={"Value": True})
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    assert ec2.describe_internet_gateways(InternetGatewayIds=[gateway])["InternetGateways"][0]["Attachments"][0]["State"] == "available"
    outward = ec2.create_egress_only_internet_gateway(VpcId=vpc)["EgressOnlyInternetGateway"]["EgressOnlyInternetGatewayId"]
    assert len(ec2.describe_egress_only_internet_gateways(EgressOnlyInternetGatewayIds=[outward])["EgressOnlyInternetGateways"]) == 1
    ec2.delete_egress_only_internet_gateway(EgressOnlyInternetGatewayId=outward)
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    ec2.create_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    refused("RouteAlreadyExists", ec2.create_route, RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", GatewayId=gateway)
    refused("DependencyViolation", ec2.delete_vpc, VpcId=vpc)
    followed = ec2.associate_route_table(RouteTableId=table, SubnetId=subnet)["AssociationId"]
    other = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    followed = ec2.replace_route_table_association(AssociationId=followed, RouteTableId=other)["NewAssociationId"]
    refused("DependencyViolation", ec2.delete_route_table, RouteTableId=other)
    ec2.disassociate_route_table(AssociationId=followed)
    ec2.delete_route_table(RouteTableId=other)

    public = ec2.allocate_address(Domain="vpc")["AllocationId"]
    assert ec2.describe_addresses_attribute(AllocationIds=[public], Attribute="domain-name")["Addresses"] == []
    nat = ec2.create_nat_gateway(SubnetId=subnet, AllocationId=public)["NatGateway"]["NatGatewayId"]
    wait(ec2, "nat_gateway_available", NatGatewayIds=[nat])
    ec2.replace_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0", NatGatewayId=nat)
    refused("InvalidIPAddress.InUse", ec2.release_address, AllocationId=public)
    ec2.delete_nat_gateway(NatGatewayId=nat)
    assert ec2.describe_nat_gateways(NatGatewayIds=[nat])["NatGateways"][0]["State"] == "deleted"
    assert [r["State"] for r in ec2.describe_route_tables(RouteTableIds=[table])["RouteTables"][0]["Routes"]] == ["active", "blackhole"]
    ec2.delete_route(RouteTableId=table, DestinationCidrBlock="0.0.0.0/0")

    group = ec2.create_security_group(GroupName="web", Description="web", VpcId=vpc, TagSpecifications=tags("security-group"))["GroupId"]
    refused("InvalidGroup.Duplicate", ec2.create_security_group, GroupName="web", Description="web", VpcId=vpc)
    https = [{"IpProtocol": "tcp", "FromPort": 443, "ToPort": 443, "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
    rules = ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=https)["SecurityGroupRules"]
    refused("InvalidPermission.Duplicate", ec2.authorize_security_group_ingress, GroupId=group, IpPermissions=https)
    assert rules[0]["CidrIpv4"] == "0.0.0.0/0" and rules[0]["FromPort"] == 443, rules
    everywhere = [{"IpProtocol": "-1", "IpRanges": [{"CidrIp": "0.0.0.0/0"}]}]
    ec2.revoke_security_group_egress(GroupId=group, IpPermissions=everywhere)
    refused("InvalidPermission.NotFound", ec2.revoke_security_group_egress, GroupId=group, IpPermissions=everywhere)
    ec2.authorize_security_group_egress(GroupId=group, IpPermissions=everywhere)
    ec2.update_security_group_rule_descriptions_ingress(GroupId=group, IpPermissions=[
        dict(https[0], IpRanges=[{"CidrIp": "0.0.0.0/0", "Description": "all"}])])
    ec2.update_security_group_rule_descriptions_egress(GroupId=group, IpPermissions=everywhere)
    ec2.modify_security_group_rules(GroupId=group, SecurityGroupRules=[{"SecurityGroupRuleId": rules[0]["SecurityGroupRuleId"],
        "SecurityGroupRule": {"IpProtocol": "tcp", "FromPort": 80, "ToPort": 80, "CidrIpv4": "10.0.0.0/8"}}])
    found = ec2.describe_security_group_rules(SecurityGroupRuleIds=[rules[0]["SecurityGroupRuleId"]])["SecurityGroupRules"]
    assert found[0]["ToPort"] == 80, found
    shown = ec2.describe_security_groups(GroupIds=[group])["SecurityGroups"][0]["IpPermissions"]
    assert shown[0]["IpRanges"] == [{"CidrIp": "10.0.0.0/8"}], shown
    ec2.revoke_security_group_ingress(GroupId=group, SecurityGroupRuleIds=[rules[0]["SecurityGroupRuleId"]])

    acl = ec2.create_network_acl(VpcId=vpc)["NetworkAcl"]["NetworkAclId"]
    entry = dict(NetworkAclId=acl, RuleNumber=100, Egress=False)
    ec2.create_network_acl_entry(**entry, Protocol="6", RuleAction="allow", CidrBlock="0.0.0.0/0", PortRange={"From": 22, "To": 22})
    ec2.replace_network_acl_entry(**entry, Protocol="-1", RuleAction="allow", CidrBlock="0.0.0.0/0")
    mine = ec2.describe_network_acls(Filters=[{"Name": "association.subnet-id", "Values": [subnet]}])["NetworkAcls"][0]
    had = next(a["NetworkAclAssociationId"] for a in mine["Associations"] if a["SubnetId"] == subnet)
    now = ec2.replace_network_acl_association(AssociationId=had, NetworkAclId=acl)["NewAssociationId"]
    ec2.replace_network_acl_association(AssociationId=now, NetworkAclId=mine["NetworkAclId"])
    ec2.delete_network_acl_entry(**entry)
    ec2.delete_network_acl(NetworkAclId=acl)

    card = ec2.create_network_interface(SubnetId=subnet, Groups=[group], Description="mine")["NetworkInterface"]["NetworkInterfaceId"]
    wait(ec2, "network_interface_available", NetworkInterfaceIds=[card])
    refused("DependencyViolation", ec2.delete_security_group, GroupId=group)
    refused("DependencyViolation", ec2.delete_subnet, SubnetId=subnet)
    ec2.modify_network_interface_attribute(NetworkInterfaceId=card, Description={"Value": "yours"})
    given = ec2.associate_address(AllocationId=public, NetworkInterfaceId=card)["AssociationId"]
    assert ec2.describe_addresses(AllocationIds=[public])["Addresses"][0]["NetworkInterfaceId"] == card
    refused("DependencyViolation", ec2.detach_internet_gateway, InternetGatewayId=gateway, VpcId=vpc)
    ec2.disassociate_address(AssociationId=given)
    ec2.release_address(AllocationId=public)
    ec2.delete_network_interface(NetworkInterfaceId=card)
    refused("InvalidNetworkInterfaceID.NotFound", ec2.describe_network_interfaces, NetworkInterfaceIds=[card])

    lists = ec2.describe_managed_prefix_lists(Filters=[{"Name": "prefix-list-name", "Values": ["com.amazonaws.us-east-1.s3"]}])["PrefixLists"]
    assert len(ec2.describe_prefix_lists(PrefixListIds=[lists[0]["PrefixListId"]])["PrefixLists"][0]["Cidrs"]) == 1
    assert len(ec2.get_managed_prefix_list_entries(PrefixListId=lists[0]["PrefixListId"])["Entries"]) == 1
    end = ec2.create_vpc_endpoint(VpcId=vpc, ServiceName="com.amazonaws.us-east-1.s3", RouteTableIds=[table])["VpcEndpoint"]["VpcEndpointId"]
    ec2.modify_vpc_endpoint(VpcEndpointId=end, RemoveRouteTableIds=[table])
    assert ec2.describe_vpc_endpoints(VpcEndpointIds=[end])["VpcEndpoints"][0]["State"] == "available"
    assert ec2.delete_vpc_endpoints(VpcEndpointIds=[end])["Unsuccessful"] == []
    assert ec2.describe_vpc_peering_connections()["VpcPeeringConnections"] == []

    for kind in "rsa", "ed25519":
        assert "PRIVATE KEY" in ec2.create_key_pair(KeyName=kind, KeyType=kind)["KeyMaterial"]
    wait(ec2, "key_pair_exists", KeyNames=["rsa"])
    public = ec2.describe_key_pairs(KeyNames=["ed25519"], IncludePublicKey=True)["KeyPairs"][0]
    again = ec2.import_key_pair(KeyName="again", PublicKeyMaterial=public["PublicKey"])
    assert again["KeyFingerprint"] == public["KeyFingerprint"], (again, public)
    refused("InvalidKeyPair.Duplicate", ec2.create_key_pair, KeyName="rsa")
    for name in "rsa", "ed25519", "again":
        ec2.delete_key_pair(KeyName=name)
    refused("InvalidKeyPair.NotFound", ec2.describe_key_pairs, KeyNames=["rsa"])
    ec2.create_placement_group(GroupName="near", Strategy="cluster")
    assert ec2.describe_placement_groups(GroupNames=["near"])["PlacementGroups"][0]["Strategy"] == "cluster"
    ec2.delete_placement_group(GroupName="near")

    ec2.delete_security_group(GroupId=group)
    ec2.delete_route_table(RouteTableId=table)
    ec2.detach_internet_gateway(InternetGatewayId=gateway, VpcId=vpc)
    ec2.delete_internet_gateway(InternetGatewayId=gateway)
    ec2.delete_subnet(SubnetId=subnet)
    ec2.delete_vpc(VpcId=vpc)


network()

# SQS
q = sqs.create_queue(QueueName="work", Attributes={"VisibilityTimeout": "1", "DelaySeconds": "0"}, tags={"team": "ml"})["QueueUrl"]
assert sqs.create_queue(QueueName="work", Attributes={"VisibilityTimeout": "1"})["QueueUrl"] == q
refused("QueueAlreadyExists", sqs.create_queue, QueueName="work", Attributes={"VisibilityTimeout": "2"})
refused("InvalidParameterValue", sqs.create_queue, QueueName="no spaces")
assert sqs.get_queue_url(QueueName="work")["QueueUrl"] == q
refused("AWS.SimpleQueueService.NonExistentQueue", sqs.get_queue_url, QueueName="nope")
sqs.create_queue(QueueName="work-dead")
urls = [u for p in sqs.get_paginator("list_queues").paginate(QueueNamePrefix="work", PaginationConfig={"PageSize": 1})
    for u in p["QueueUrls"]]
assert urls == [q, q + "-dead"], urls
arn = sqs.get_queue_attributes(QueueUrl=q, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
sqs.set_queue_attributes(QueueUrl=q, Attributes={"RedrivePolicy": json.dumps({"deadLetterTargetArn": arn + "-dead", "maxReceiveCount": 2})})
refused("InvalidParameterValue", sqs.set_queue_attributes, QueueUrl=q,
    Attributes={"RedrivePolicy": json.dumps({"deadLetterTargetArn": arn + "-none", "maxReceiveCount": 2})})
refused("InvalidAttributeName", sqs.set_queue_attributes, QueueUrl=q, Attributes={"Color": "red"})
sources = [u for p in sqs.get_paginator("list_dead_letter_source_queues").paginate(QueueUrl=q + "-dead") for u in p["queueUrls"]]
assert sources == [q], sources
sqs.tag_queue(QueueUrl=q, Tags={"env": "test"})
sqs.untag_queue(QueueUrl=q, TagKeys=["team"])
assert sqs.list_queue_tags(QueueUrl=q)["Tags"] == {"env": "test"}
sqs.add_permission(QueueUrl=q, Label="s3", AWSAccountIds=["123456789012"], Actions=["SendMessage"])
policy = json.loads(sqs.get_queue_attributes(QueueUrl=q, AttributeNames=["Policy"])["Attributes"]["Policy"])
assert policy["Statement"][0]["Sid"] == "s3" and policy["Statement"][0]["Action"] == "SQS:SendMessage", policy
sqs.remove_permission(QueueUrl=q, Label="s3")
assert "Policy" not in sqs.get_queue_attributes(QueueUrl=q, AttributeNames=["Policy"]).get("Attributes", {})
# boto3 checks the MD5s
sent = sqs.send_message(QueueUrl=q, MessageBody="one", MessageAttributes={"n": {"DataType": "Number", "StringValue": "1"}})
batch = sqs.send_message_batch(QueueUrl=q, Entries=[{"Id": "a", "MessageBody": "two"},
    {"Id": "b", "MessageBody": "three", "DelaySeconds": 900}, {"Id": "c", "MessageBody": "x", "DelaySeconds": 901}])
assert [e["Id"] for e in batch["Successful"]] == ["a", "b"] and [(e["Id"], e["Code"])
    for e in batch["Failed"]] == [("c", "InvalidParameterValue")], batch
got = sqs.receive_message(QueueUrl=q, MaxNumberOfMessages=10, WaitTimeSeconds=1, VisibilityTimeout=30, MessageAttributeNames=["All"],
    MessageSystemAttributeNames=["All"])["Messages"]
assert [m["Body"] for m in got] == ["one", "two"] and got[0]["MessageId"] == sent["MessageId"], got
assert got[0]["MessageAttributes"]["n"]["StringValue"] == "1" and got[0]["Attributes"]["ApproximateReceiveCount"] == "1", got
counts = sqs.get_queue_attributes(QueueUrl=q, AttributeNames=["All"])["Attributes"]
assert [counts["ApproximateNumberOfMessages" + s] for s in ("", "NotVisible", "Delayed")] == ["0", "2", "1"], counts
sqs.delete_message(QueueUrl=q, ReceiptHandle=got[1]["ReceiptHandle"])
sqs.change_message_visibility(QueueUrl=q, ReceiptHandle=got[0]["ReceiptHandle"], VisibilityTimeout=0)
sqs.change_message_visibility(QueueUrl=q, ReceiptHandle=got[0]["ReceiptHandle"], VisibilityTimeout=0)  # late, as AWS takes it
refused("ReceiptHandleIsInvalid", sqs.change_message_visibility, QueueUrl=q, ReceiptHandle="junk", VisibilityTimeout=5)
refused("ReceiptHandleIsInvalid", sqs.delete_message, QueueUrl=q, ReceiptHandle="junk")
got = sqs.receive_message(QueueUrl=q, VisibilityTimeout=60)["Messages"]
changed = sqs.change_message_visibility_batch(QueueUrl=q,
    Entries=[{"Id": "a", "ReceiptHandle": got[0]["ReceiptHandle"], "VisibilityTimeout": 0}, {"Id": "b", "ReceiptHandle": "junk",
        "VisibilityTimeout": 0}])
assert [e["Id"] for e in changed["Successful"]] == ["a"] and [e["Code"] for e in changed["Failed"]] == ["ReceiptHandleIsInvalid"], changed
assert "Messages" not in sqs.receive_message(QueueUrl=q)  # it went to the dead-letter queue
dead = sqs.receive_message(QueueUrl=q + "-dead", VisibilityTimeout=0,
    MessageSystemAttributeNames=["DeadLetterQueueSourceArn"])["Messages"][0]
assert dead["Body"] == "one" and dead["Attributes"] == {"DeadLetterQueueSourceArn": arn}, dead
task = sqs.start_message_move_task(SourceArn=arn + "-dead")["TaskHandle"]
moved = until(bool, lambda: sqs.receive_message(QueueUrl=q, WaitTimeSeconds=5).get("Messages"))
assert moved[0]["Body"] == "one" and moved[0]["MessageId"] != dead["MessageId"], moved
tasks = until(lambda tasks: tasks[0]["Status"] == "COMPLETED", lambda: sqs.list_message_move_tasks(SourceArn=arn + "-dead")["Results"])
assert (tasks[0]["Status"], tasks[0]["ApproximateNumberOfMessagesMoved"]) == ("COMPLETED", 1), tasks
refused("ResourceNotFoundException", sqs.cancel_message_move_task, TaskHandle=task)
gone = sqs.delete_message_batch(QueueUrl=q, Entries=[{"Id": "a", "ReceiptHandle": moved[0]["ReceiptHandle"]}])
assert [e["Id"] for e in gone["Successful"]] == ["a"], gone
sqs.purge_queue(QueueUrl=q)
refused("AWS.SimpleQueueService.PurgeQueueInProgress", sqs.purge_queue, QueueUrl=q)
fifo = sqs.create_queue(QueueName="order.fifo", Attributes={"FifoQueue": "true", "ContentBasedDeduplication": "true"})["QueueUrl"]
numbers = [sqs.send_message(QueueUrl=fifo, MessageBody=b, MessageGroupId="g")["SequenceNumber"] for b in ("a", "b", "a")]
assert numbers[0] == numbers[2] < numbers[1], numbers
assert [m["Body"] for m in sqs.receive_message(QueueUrl=fifo, MaxNumberOfMessages=1)["Messages"]] == ["a"]
assert "Messages" not in sqs.receive_message(QueueUrl=fifo)  # the group waits for its first message
refused("MissingParameter", sqs.send_message, QueueUrl=fifo, MessageBody="a")
for url in (fifo, q + "-dead"):
    sqs.delete_queue(QueueUrl=url)
refused("AWS.SimpleQueueService.NonExistentQueue", sqs.send_message, QueueUrl=fifo, MessageBody="a", MessageGroupId="g")
dims = [{"Name": "QueueName", "Value": "work"}]
counted = lambda got: sum(d["Sum"] for d in got["Datapoints"]) == 3
got = until(counted, lambda: cw.get_metric_statistics(Namespace="AWS/SQS", MetricName="NumberOfMessagesSent", Dimensions=dims,
    StartTime=ago(5), EndTime=ago(-60), Period=60, Statistics=["Sum"]))
assert counted(got), got

# EC2: launch templates, and instances made from them
image = "resolve:ssm:/aws/service/ecs/optimized-ami/amazon-linux-2/gpu/recommended/image_id"
lt = ec2.create_launch_template(LaunchTemplateName="gpu", VersionDescription="first", LaunchTemplateData={"ImageId": image,
    "InstanceType": "g4dn.xlarge"},
                                TagSpecifications=[{"ResourceType": "launch-template",
                                    "Tags": [{"Key": "k", "Value": "v"}]}])["LaunchTemplate"]
assert (lt["LatestVersionNumber"], lt["DefaultVersionNumber"], lt["Tags"]) == (1, 1, [{"Key": "k", "Value": "v"}]), lt
refused("InvalidLaunchTemplateName.AlreadyExistsException", ec2.create_launch_template, LaunchTemplateName="gpu",
    LaunchTemplateData={"InstanceType": "g4dn.xlarge"})
two = ec2.create_launch_template_version(LaunchTemplateName="gpu", SourceVersion="1",
    LaunchTemplateData={"InstanceType": "c5.large"})["LaunchTemplateVersion"]
assert (two["VersionNumber"], two["LaunchTemplateData"]) == (2, {"ImageId": image, "InstanceType": "c5.large"}), two
assert ec2.modify_launch_template(LaunchTemplateId=lt["LaunchTemplateId"],
    DefaultVersion="2")["LaunchTemplate"]["DefaultVersionNumber"] == 2
versions = ec2.describe_launch_template_versions(LaunchTemplateName="gpu", Versions=["$Default", "1"])["LaunchTemplateVersions"]
assert [(v["VersionNumber"], v["DefaultVersion"]) for v in versions] == [(2, True), (1, False)], versions
gone = ec2.delete_launch_template_versions(LaunchTemplateName="gpu", Versions=["1", "9"])
assert len(gone["SuccessfullyDeletedLaunchTemplateVersions"]) == len(gone["UnsuccessfullyDeletedLaunchTemplateVersions"]) == 1, gone
assert [t["LaunchTemplateName"] for t in ec2.describe_launch_templates(LaunchTemplateNames=["gpu"])["LaunchTemplates"]] == ["gpu"]
refused("InvalidLaunchTemplateName.NotFoundException", ec2.describe_launch_templates, LaunchTemplateNames=["none"])
refused("InvalidLaunchTemplateId.VersionNotFound", ec2.run_instances, LaunchTemplate={"LaunchTemplateName": "gpu", "Version": "7"},
    MinCount=1, MaxCount=1)
zones = ec2.describe_availability_zones(Filters=[{"Name": "state", "Values": ["available"]}])["AvailabilityZones"]
assert [(z["ZoneName"], z["ZoneId"]) for z in zones][:2] == [("us-east-1a", "use1-az1"), ("us-east-1b", "use1-az2")], zones
assert [r["RegionName"] for r in ec2.describe_regions()["Regions"]] == ["us-east-1"]
images = ec2.describe_images(Owners=["amazon"], Filters=[{"Name": "name", "Values": ["*gpu*"]}])["Images"]
assert len(images) == 2 and ec2.describe_images(ImageIds=[images[0]["ImageId"]])["Images"] == images[:1], images
refused("InvalidAMIID.NotFound", ec2.describe_images, ImageIds=["ami-00000000"])
refused("InvalidAMIID.Malformed", ec2.describe_images, ImageIds=["resolve:ssm:/aws/service/ecs/optimized-ami/amazon-linux-2/recommended/image_id"])
assert list(ec2.get_paginator("describe_snapshots").paginate(OwnerIds=["self"]))[0]["Snapshots"] == []
refused("InvalidSnapshot.NotFound", ec2.describe_snapshots, SnapshotIds=["snap-12345678"])
assert ec2.describe_vpn_gateways(Filters=[{"Name": "attachment.vpc-id", "Values": ["vpc-12345678"]}])["VpnGateways"] == []
refused("InvalidVpnGatewayID.NotFound", ec2.describe_vpn_gateways, VpnGatewayIds=["vgw-12345678"])
run = dict(LaunchTemplate={"LaunchTemplateName": "gpu"}, MinCount=1, MaxCount=1, ClientToken="once",
    TagSpecifications=[{"ResourceType": "instance", "Tags": [{"Key": "Name", "Value": "mine"}]}])
mine = ec2.run_instances(**run)["Instances"][0]
assert (mine["State"]["Name"], mine["InstanceType"]) == ("pending", "c5.large"), mine
tags = {t["Key"]: t["Value"] for t in mine["Tags"]}
assert tags.pop("Name") == "mine" and tags.keys() == {"aws:ec2launchtemplate:id", "aws:ec2launchtemplate:version"}, mine
assert ec2.run_instances(**run)["Instances"][0]["InstanceId"] == mine["InstanceId"]
wait(ec2, "instance_running", InstanceIds=[mine["InstanceId"]])
ec2.create_tags(Resources=[mine["InstanceId"]], Tags=[{"Key": "a", "Value": "b"}])
ec2.delete_tags(Resources=[mine["InstanceId"]], Tags=[{"Key": "Name"}])
tags = {t["Key"]: t["Value"] for t in ec2.describe_tags(Filters=[{"Name": "resource-id", "Values": [mine["InstanceId"]]}])["Tags"]}
assert tags["a"] == "b" and "Name" not in tags, tags
assert ec2.describe_instance_attribute(InstanceId=mine["InstanceId"], Attribute="instanceType")["InstanceType"]["Value"] == "c5.large"
disk = ec2.create_volume(AvailabilityZone=mine["Placement"]["AvailabilityZone"], Size=10, VolumeType="gp3")["VolumeId"]
wait(ec2, "volume_available", VolumeIds=[disk])
ec2.attach_volume(VolumeId=disk, InstanceId=mine["InstanceId"], Device="/dev/sdf")
wait(ec2, "volume_in_use", VolumeIds=[disk])
assert ec2.describe_volumes(VolumeIds=[disk])["Volumes"][0]["Attachments"][0]["Device"] == "/dev/sdf"
refused("VolumeInUse", ec2.delete_volume, VolumeId=disk)
assert ec2.modify_volume(VolumeId=disk, Size=20)["VolumeModification"]["ModificationState"] == "completed"
assert ec2.describe_volumes_modifications(VolumeIds=[disk])["VolumesModifications"][0]["TargetSize"] == 20
devices = ec2.describe_instances(InstanceIds=[mine["InstanceId"]])["Reservations"][0]["Instances"][0]["BlockDeviceMappings"]
assert [d["DeviceName"] for d in devices] == ["/dev/xvda", "/dev/sdf"], devices
ec2.detach_volume(VolumeId=disk)
ec2.delete_volume(VolumeId=disk)
wait(ec2, "volume_deleted", VolumeIds=[disk])
refused("UnsupportedOperation", ec2.terminate_instances, InstanceIds=ids[:1])
refused("InvalidParameterValue", ec2.run_instances, ImageId="ami-00000000", InstanceType="z9.huge", MinCount=1, MaxCount=1)
assert ec2.terminate_instances(InstanceIds=[mine["InstanceId"]])["TerminatingInstances"][0]["CurrentState"]["Name"] == "shutting-down"
wait(ec2, "instance_terminated", InstanceIds=[mine["InstanceId"]])

# EC2 Auto Scaling: groups with everything that belongs to them
g = dict(AutoScalingGroupName="grp")
asg.create_launch_configuration(LaunchConfigurationName="old", ImageId="ami-00000000", InstanceType="c5.large")
assert asg.describe_launch_configurations()["LaunchConfigurations"][0]["InstanceType"] == "c5.large"
asg.create_auto_scaling_group(AutoScalingGroupName="of-old", MinSize=0, MaxSize=1, AvailabilityZones=["us-east-1a"], LaunchConfigurationName="old")
refused("ResourceInUse", asg.delete_launch_configuration, LaunchConfigurationName="old")
asg.delete_auto_scaling_group(AutoScalingGroupName="of-old")
asg.delete_launch_configuration(LaunchConfigurationName="old")
asg.create_auto_scaling_group(**g, MinSize=0, MaxSize=2, DesiredCapacity=1, LaunchTemplate={"LaunchTemplateName": "gpu"},
    AvailabilityZones=["us-east-1a"], DefaultInstanceWarmup=0,
                                 Tags=[{"Key": "team", "Value": "ml", "PropagateAtLaunch": True}],
                                 LifecycleHookSpecificationList=[{"LifecycleHookName": "up",
                                     "LifecycleTransition": "autoscaling:EC2_INSTANCE_LAUNCHING", "DefaultResult": "CONTINUE"}])
refused("AlreadyExists", asg.create_auto_scaling_group, **g, MinSize=0, MaxSize=2, LaunchTemplate={"LaunchTemplateName": "gpu"},
    AvailabilityZones=["us-east-1a"])
refused("ValidationError", asg.create_auto_scaling_group, AutoScalingGroupName="other", MinSize=3, MaxSize=2,
    LaunchTemplate={"LaunchTemplateName": "gpu"}, AvailabilityZones=["us-east-1a"])


def members(state):
    """The group's instances, once they are all in a state."""
    there = lambda got: {i["LifecycleState"] for i in got} == {state}
    got = until(there, lambda: [i for p in asg.get_paginator("describe_auto_scaling_groups").paginate(AutoScalingGroupNames=["grp"])
        for i in p["AutoScalingGroups"][0]["Instances"]])
    assert there(got), (state, got)
    return [i["InstanceId"] for i in got]


(first,) = members("Pending:Wait")
asg.record_lifecycle_action_heartbeat(**g, LifecycleHookName="up", InstanceId=first)
asg.complete_lifecycle_action(**g, LifecycleHookName="up", InstanceId=first, LifecycleActionResult="CONTINUE")
assert members("InService") == [first]
refused("ValidationError", asg.complete_lifecycle_action, **g, LifecycleHookName="up", InstanceId=first, LifecycleActionResult="CONTINUE")
asg.put_lifecycle_hook(**g, LifecycleHookName="down", LifecycleTransition="autoscaling:EC2_INSTANCE_TERMINATING", HeartbeatTimeout=60)
assert sorted(h["LifecycleHookName"] for h in asg.describe_lifecycle_hooks(**g)["LifecycleHooks"]) == ["down", "up"]
for name in ("up", "down"):
    asg.delete_lifecycle_hook(**g, LifecycleHookName=name)
mine = asg.describe_auto_scaling_instances(InstanceIds=[first])["AutoScalingInstances"][0]
assert (mine["AutoScalingGroupName"], mine["LifecycleState"], mine["HealthStatus"], mine["LaunchTemplate"]["Version"]) == ("grp",
    "InService", "HEALTHY", "2"), mine
assert {"Key": "team", "Value": "ml"} in ec2.describe_instances(InstanceIds=[first])["Reservations"][0]["Instances"][0]["Tags"]
asg.set_instance_protection(**g, InstanceIds=[first], ProtectedFromScaleIn=True)
asg.set_instance_health(InstanceId=first, HealthStatus="Healthy")
asg.suspend_processes(**g, ScalingProcesses=["AlarmNotification"])
asg.resume_processes(**g)
refused("ValidationError", asg.suspend_processes, **g, ScalingProcesses=["Breathe"])
asg.enable_metrics_collection(**g, Granularity="1Minute", Metrics=["GroupInServiceInstances", "GroupMaxSize"])
asg.disable_metrics_collection(**g, Metrics=["GroupMaxSize"])
assert [m["Metric"] for m in asg.describe_auto_scaling_groups()["AutoScalingGroups"][0]["EnabledMetrics"]] == ["GroupInServiceInstances"]
assert {"Metric": "GroupInServiceInstances"} in asg.describe_metric_collection_types()["Metrics"]
refused("ValidationError", asg.enable_metrics_collection, **g, Granularity="5Minute")
asg.update_auto_scaling_group(**g, MaxSize=3, TerminationPolicies=["OldestInstance"])
asg.set_desired_capacity(**g, DesiredCapacity=0)
refused("ValidationError", asg.set_desired_capacity, **g, DesiredCapacity=4)
time.sleep(1.5)
assert members("InService") == [first]  # it is protected
asg.set_desired_capacity(**g, DesiredCapacity=1)
activity = asg.terminate_instance_in_auto_scaling_group(InstanceId=first, ShouldDecrementDesiredCapacity=True)["Activity"]
assert activity["Description"] == "Terminating EC2 instance: " + first, activity
activities = [a for p in asg.get_paginator("describe_scaling_activities").paginate(**g, PaginationConfig={"PageSize": 1})
    for a in p["Activities"]]
assert [a["Description"] for a in activities] == ["Terminating EC2 instance: " + first,
    "Launching a new EC2 instance: " + first] and "changing the desired capacity from 0 to 1" in activities[1]["Cause"], activities
asg.create_or_update_tags(Tags=[{"ResourceId": "grp", "ResourceType": "auto-scaling-group", "Key": "k", "Value": "v",
    "PropagateAtLaunch": False}])
asg.delete_tags(Tags=[{"ResourceId": "grp", "ResourceType": "auto-scaling-group", "Key": "team"}])
assert [t["Key"] for t in asg.describe_tags(Filters=[{"Name": "auto-scaling-group", "Values": ["grp"]}])["Tags"]] == ["k"]
steps = [{"MetricIntervalLowerBound": 0.0, "MetricIntervalUpperBound": 100.0, "ScalingAdjustment": 1},
    {"MetricIntervalLowerBound": 100.0, "ScalingAdjustment": 2}]
policy = asg.put_scaling_policy(**g, PolicyName="steps", PolicyType="StepScaling", AdjustmentType="ExactCapacity", StepAdjustments=steps)
assert policy["PolicyARN"].endswith(":autoScalingGroupName/grp:policyName/steps"), policy
asg.put_scaling_policy(**g, PolicyName="simple", AdjustmentType="ChangeInCapacity", ScalingAdjustment=-1, Cooldown=60)
tracking = {"TargetValue": 50.0, "CustomizedMetricSpecification": {"Namespace": "Queue", "MetricName": "Backlog", "Statistic": "Average"}}
policy = asg.put_scaling_policy(**g, PolicyName="tracking", PolicyType="TargetTrackingScaling", TargetTrackingConfiguration=tracking)
assert [a["AlarmName"].split("-")[2] for a in policy["Alarms"]] == ["AlarmHigh", "AlarmLow"], policy
assert len(cw.describe_alarms(AlarmNames=[a["AlarmName"] for a in policy["Alarms"]])["MetricAlarms"]) == 2
refused("ValidationError", asg.put_scaling_policy, **g, PolicyName="bad", PolicyType="StepScaling", AdjustmentType="Slowly",
    StepAdjustments=steps)
policies = [p for page in asg.get_paginator("describe_policies").paginate(**g, PaginationConfig={"PageSize": 2})
    for p in page["ScalingPolicies"]]
assert [p["PolicyName"] for p in policies] == ["simple", "steps", "tracking"] and policies[1]["StepAdjustments"] == steps, policies
asg.delete_policy(**g, PolicyName="tracking")
assert cw.describe_alarms(AlarmNames=[a["AlarmName"] for a in policy["Alarms"]])["MetricAlarms"] == []
asg.put_scheduled_update_group_action(**g, ScheduledActionName="night", Recurrence="0 20 * * 1-5", TimeZone="Europe/Zurich",
    DesiredCapacity=0)
refused("ValidationError", asg.put_scheduled_update_group_action, **g, ScheduledActionName="bad", Recurrence="0 20 * *", DesiredCapacity=0)
assert asg.describe_scheduled_actions(**g)["ScheduledUpdateGroupActions"][0]["Recurrence"] == "0 20 * * 1-5"
asg.delete_scheduled_action(**g, ScheduledActionName="night")
failed = asg.batch_put_scheduled_update_group_action(**g,
    ScheduledUpdateGroupActions=[{"ScheduledActionName": "a", "Recurrence": "0 8 * * *", "MinSize": 0},
        {"ScheduledActionName": "b", "Recurrence": "x", "MinSize": 0}])
assert [(f["ScheduledActionName"], f["ErrorCode"]) for f in failed["FailedScheduledUpdateGroupActions"]] == [("b",
    "ValidationError")], failed
failed = asg.batch_delete_scheduled_action(**g, ScheduledActionNames=["a", "b"])
assert [f["ScheduledActionName"] for f in failed["FailedScheduledActions"]] == ["b"], failed
assert "ExactCapacity" in [t["AdjustmentType"] for t in asg.describe_adjustment_types()["AdjustmentTypes"]]
assert "autoscaling:EC2_INSTANCE_LAUNCHING" in asg.describe_lifecycle_hook_types()["LifecycleHookTypes"]
assert "AZRebalance" in [p["ProcessName"] for p in asg.describe_scaling_process_types()["Processes"]]
assert "OldestInstance" in asg.describe_termination_policy_types()["TerminationPolicyTypes"]
assert asg.describe_account_limits()["NumberOfAutoScalingGroups"] == 1
asg.execute_policy(**g, PolicyName="steps", MetricValue=60.0, BreachThreshold=50.0)
(second,) = members("InService")
moved = asg.enter_standby(**g, InstanceIds=[second], ShouldDecrementDesiredCapacity=True)["Activities"][0]
assert (moved["Description"], moved["StatusCode"]) == ("Moving EC2 instance to Standby: " + second, "InProgress"), moved
assert members("Standby") == [second]
moved = asg.exit_standby(**g, InstanceIds=[second])["Activities"][0]
assert (moved["Description"], moved["StatusCode"]) == ("Moving EC2 instance out of Standby: " + second, "PreInService"), moved
assert members("InService") == [second]
moved = asg.detach_instances(**g, InstanceIds=[second], ShouldDecrementDesiredCapacity=True)["Activities"][0]
assert moved["Description"] == "Detaching EC2 instance: " + second, moved
assert until(lambda left: not left, lambda: asg.describe_auto_scaling_instances(InstanceIds=[second])["AutoScalingInstances"]) == []
asg.attach_instances(**g, InstanceIds=[second])
assert members("InService") == [second]
refused("ActiveInstanceRefreshNotFound", asg.cancel_instance_refresh, **g)
asg.set_instance_protection(**g, InstanceIds=[second], ProtectedFromScaleIn=True)  # makes the refresh wait
refresh = asg.start_instance_refresh(**g, Preferences={"MinHealthyPercentage": 50, "InstanceWarmup": 1})["InstanceRefreshId"]
refused("InstanceRefreshInProgress", asg.start_instance_refresh, **g)
assert asg.cancel_instance_refresh(**g)["InstanceRefreshId"] == refresh
(cancelled,) = asg.describe_instance_refreshes(**g)["InstanceRefreshes"]
assert cancelled["Status"] in ("Cancelling", "Cancelled") and cancelled["Preferences"]["MaxHealthyPercentage"] == 100, cancelled
asg.delete_auto_scaling_group(**g, ForceDelete=True)
wait(ec2, "instance_terminated", InstanceIds=[first, second])
assert until(lambda left: not left, lambda: asg.describe_auto_scaling_groups()["AutoScalingGroups"]) == []
refused("ValidationError", asg.set_desired_capacity, **g, DesiredCapacity=0)

# A warm pool: an instance is launched ahead, stopped, and comes into service as it is
g = dict(AutoScalingGroupName="warm")
asg.create_auto_scaling_group(**g, MinSize=0, MaxSize=1, LaunchTemplate={"LaunchTemplateName": "gpu"}, AvailabilityZones=["us-east-1a"])
asg.put_warm_pool(**g, PoolState="Stopped")
pooled = lambda: [(i["InstanceId"], i["LifecycleState"]) for i in asg.describe_warm_pool(**g)["Instances"]]
((first, state),) = until(lambda got: [s for _, s in got] == ["Warmed:Stopped"], pooled)
assert state == "Warmed:Stopped", state
wait(ec2, "instance_stopped", InstanceIds=[first])
assert [g["WarmPoolSize"] for g in asg.describe_auto_scaling_groups(AutoScalingGroupNames=["warm"])["AutoScalingGroups"]] == [1]
asg.set_desired_capacity(**g, DesiredCapacity=1)
serving = lambda: [(i["InstanceId"], i["LifecycleState"]) for i in
    asg.describe_auto_scaling_groups(AutoScalingGroupNames=["warm"])["AutoScalingGroups"][0]["Instances"]]
assert until(lambda got: got == [(first, "InService")], serving) == [(first, "InService")]
wait(ec2, "instance_running", InstanceIds=[first])
asg.delete_warm_pool(**g, ForceDelete=True)
refused("ValidationError", asg.delete_warm_pool, **g)
asg.delete_auto_scaling_group(**g, ForceDelete=True)
wait(ec2, "instance_terminated", InstanceIds=[first])
ec2.delete_launch_template(LaunchTemplateName="gpu")

# Parameter Store
first = ssm.put_parameter(Name="/app/db/password", Value="hunter2", Type="SecureString", Tags=[{"Key": "k", "Value": "v"}])
assert (first["Version"], first["Tier"]) == (1, "Standard"), first
refused("ParameterAlreadyExists", ssm.put_parameter, Name="/app/db/password", Value="x", Type="SecureString")
assert "hunter2" not in str(refused("InvalidKeyId", ssm.put_parameter, Name="/app/x", Value="hunter2", Type="SecureString", KeyId="alias/own"))
assert ssm.put_parameter(Name="/app/db/password", Value="hunter3", Overwrite=True)["Version"] == 2
ssm.put_parameter(Name="/app/hosts", Value="a,b", Type="StringList")
assert ssm.label_parameter_version(Name="/app/db/password", ParameterVersion=1, Labels=["old", "1x"])["InvalidLabels"] == ["1x"]
got = ssm.get_parameter(Name="/app/db/password:old", WithDecryption=True)["Parameter"]
assert (got["Value"], got["Selector"], got["Version"]) == ("hunter2", ":old", 1), got
assert "hunter" not in ssm.get_parameter(Name="/app/db/password")["Parameter"]["Value"]
got = ssm.get_parameters(Names=["/app/hosts", "/none", got["ARN"]], WithDecryption=True)
assert [p["Value"] for p in got["Parameters"]] == ["a,b", "hunter3"] and got["InvalidParameters"] == ["/none"], got
pages = ssm.get_paginator("get_parameters_by_path").paginate(Path="/app", Recursive=True, PaginationConfig={"PageSize": 1})
assert [p["Name"] for page in pages for p in page["Parameters"]] == ["/app/db/password", "/app/hosts"]
history = [h["Version"] for page in ssm.get_paginator("get_parameter_history").paginate(Name="/app/db/password",
    PaginationConfig={"PageSize": 1}) for h in page["Parameters"]]
assert history == [1, 2], history
described = ssm.describe_parameters(ParameterFilters=[{"Key": "tag:k", "Values": ["v"]}])["Parameters"]
assert [(p["Name"], p["KeyId"]) for p in described] == [("/app/db/password", "alias/aws/ssm")], described
assert ssm.unlabel_parameter_version(Name="/app/db/password", ParameterVersion=1, Labels=["old"])["RemovedLabels"] == ["old"]
parameter = {"ResourceType": "Parameter", "ResourceId": "/app/db/password"}
ssm.add_tags_to_resource(**parameter, Tags=[{"Key": "k2", "Value": "v2"}])
ssm.remove_tags_from_resource(**parameter, TagKeys=["k"])
assert ssm.list_tags_for_resource(**parameter)["TagList"] == [{"Key": "k2", "Value": "v2"}]
image = ssm.get_parameter(Name="/aws/service/ecs/optimized-ami/amazon-linux-2/gpu/recommended/image_id")["Parameter"]["Value"]
assert ec2.describe_images(ImageIds=[image])["Images"][0]["ImageId"] == image
ssm.delete_parameter(Name="/app/hosts")
refused("ParameterNotFound", ssm.get_parameter, Name="/app/hosts")
assert ssm.delete_parameters(Names=["/app/db/password", "/none"])["DeletedParameters"] == ["/app/db/password"]

# Secrets Manager
first = secrets.create_secret(Name="app/db", SecretString='{"user": "me"}', Description="of the database", Tags=[{"Key": "k", "Value": "v"}])
assert first["ARN"][:-6].endswith(":secret:app/db-") and len(first["VersionId"]) >= 32, first
refused("ResourceExistsException", secrets.create_secret, Name="app/db", SecretString="x")
assert "hunter" not in str(refused("EncryptionFailure", secrets.create_secret, Name="x", SecretString="hunter2", KmsKeyId="alias/own"))
second = secrets.put_secret_value(SecretId="app/db", SecretString="hunter2")
assert second["VersionStages"] == ["AWSCURRENT"], second
third = secrets.put_secret_value(SecretId=first["ARN"], SecretString="hunter3", VersionStages=["AWSPENDING"])["VersionId"]
secrets.update_secret_version_stage(
    SecretId="app/db", VersionStage="AWSCURRENT", RemoveFromVersionId=second["VersionId"], MoveToVersionId=third)
got = secrets.get_secret_value(SecretId=first["ARN"][:-7])
assert (got["SecretString"], got["VersionStages"], got["VersionId"]) == ("hunter3", ["AWSCURRENT", "AWSPENDING"], third), got
assert secrets.get_secret_value(SecretId="app/db", VersionStage="AWSPREVIOUS")["SecretString"] == "hunter2"
got = ssm.get_parameter(Name="/aws/reference/secretsmanager/app/db:AWSPREVIOUS", WithDecryption=True)["Parameter"]
assert (got["Value"], got["ARN"], got["Type"], got["Version"]) == ("hunter2", first["ARN"], "SecureString", 0), got
refused("ResourceNotFoundException", secrets.get_secret_value, SecretId="app/db", VersionStage="none")
assert len(secrets.list_secret_version_ids(SecretId="app/db", IncludeDeprecated=True)["Versions"]) == 3
page = secrets.list_secret_version_ids(SecretId="app/db", MaxResults=1)
assert len(page["Versions"]) == 1 and secrets.list_secret_version_ids(SecretId="app/db", NextToken=page["NextToken"])["Versions"], page
assert "VersionId" not in secrets.update_secret(SecretId="app/db", Description="of nothing")
secrets.tag_resource(SecretId="app/db", Tags=[{"Key": "k2", "Value": "v2"}])
secrets.untag_resource(SecretId="app/db", TagKeys=["k"])
described = secrets.describe_secret(SecretId="app/db")
assert (described["Description"], described["Tags"]) == ("of nothing", [{"Key": "k2", "Value": "v2"}]), described
secrets.create_secret(Name="binary", SecretString="b")
pages = secrets.get_paginator("list_secrets").paginate(SortBy="name", PaginationConfig={"PageSize": 1})
assert [s["Name"] for page in pages for s in page["SecretList"]] == ["app/db", "binary"]
assert [s["Name"] for s in secrets.list_secrets(Filters=[{"Key": "description", "Values": ["nothing"]}])["SecretList"]] == ["app/db"]
got = secrets.batch_get_secret_value(SecretIdList=["app/db", "none"])
assert [v["SecretString"] for v in got["SecretValues"]] == ["hunter3"], got
assert [e["ErrorCode"] for e in got["Errors"]] == ["ResourceNotFoundException"], got
assert len(secrets.get_random_password(PasswordLength=40, ExcludePunctuation=True)["RandomPassword"]) == 40
policy = json.dumps({"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Principal": "*", "Action": "secretsmanager:GetSecretValue", "Resource": "*"}]})
assert not secrets.validate_resource_policy(ResourcePolicy=policy)["PolicyValidationPassed"]
refused("PublicPolicyException", secrets.put_resource_policy, SecretId="app/db", ResourcePolicy=policy, BlockPublicPolicy=True)
refused("MalformedPolicyDocumentException", secrets.put_resource_policy, SecretId="app/db", ResourcePolicy="{}")
secrets.put_resource_policy(SecretId="app/db", ResourcePolicy=policy)
assert secrets.get_resource_policy(SecretId="app/db")["ResourcePolicy"] == policy
secrets.delete_resource_policy(SecretId="app/db")
assert "Lambda" in refused("InvalidRequestException", secrets.rotate_secret, SecretId="app/db")["Error"]["Message"]
assert secrets.delete_secret(SecretId="app/db", RecoveryWindowInDays=7)["DeletionDate"]
refused("InvalidRequestException", secrets.get_secret_value, SecretId="app/db")
secrets.restore_secret(SecretId="app/db")
for name in "app/db", "binary":
    secrets.delete_secret(SecretId=name, ForceDeleteWithoutRecovery=True)
refused("ResourceNotFoundException", secrets.describe_secret, SecretId="app/db")

# IAM
def allow(*actions, **more):
    return json.dumps({"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": list(actions), **({"Resource": "*"} | more)}]})


trust = json.dumps({"Version": "2012-10-17", "Statement": {"Effect": "Allow", "Action": "sts:AssumeRole",
    "Principal": {"Service": "ecs-tasks.amazonaws.com"}}})
role = iam.create_role(RoleName="worker", Path="/app/", AssumeRolePolicyDocument=trust, Tags=[{"Key": "k", "Value": "v"}])["Role"]
assert role["Arn"] == "arn:aws:iam::000000000000:role/app/worker" and role["RoleId"].startswith("AROA"), role
refused("EntityAlreadyExists", iam.create_role, RoleName="Worker", AssumeRolePolicyDocument=trust)
refused("MalformedPolicyDocument", iam.create_role, RoleName="bad", AssumeRolePolicyDocument=allow("sts:AssumeRole"))
wait(iam, "role_exists", RoleName="worker")
got = iam.get_role(RoleName="worker")["Role"]
assert (got["MaxSessionDuration"], got["AssumeRolePolicyDocument"]["Statement"]["Action"]) == (3600, "sts:AssumeRole"), got
iam.update_role(RoleName="worker", Description="works", MaxSessionDuration=7200)
assert iam.update_role_description(RoleName="worker", Description="still works")["Role"]["Description"] == "still works"
iam.update_assume_role_policy(RoleName="worker", PolicyDocument=trust)
iam.tag_role(RoleName="worker", Tags=[{"Key": "K", "Value": "v2"}])
assert iam.list_role_tags(RoleName="worker")["Tags"] == [{"Key": "K", "Value": "v2"}]
iam.untag_role(RoleName="worker", TagKeys=["k"])
assert "worker" in [r["RoleName"] for p in iam.get_paginator("list_roles").paginate(PathPrefix="/app/") for r in p["Roles"]]
ecs_policy = "arn:aws:iam::aws:policy/service-role/AmazonEC2ContainerServiceforEC2Role"
made = iam.create_policy(PolicyName="frames", PolicyDocument=allow("s3:GetObject", Resource="arn:aws:s3:::frames/*"), Description="d")["Policy"]
assert made["DefaultVersionId"] == "v1" and made["PolicyId"].startswith("ANPA"), made
frames = {"PolicyArn": made["Arn"]}
wait(iam, "policy_exists", **frames)
second = iam.create_policy_version(**frames, PolicyDocument=allow("s3:*"), SetAsDefault=False)["PolicyVersion"]
assert (second["VersionId"], second["IsDefaultVersion"]) == ("v2", False), second
iam.set_default_policy_version(**frames, VersionId="v2")
assert iam.get_policy_version(**frames, VersionId="v2")["PolicyVersion"]["Document"]["Statement"][0]["Action"] == ["s3:*"]
assert [v["VersionId"] for v in iam.list_policy_versions(**frames)["Versions"]] == ["v2", "v1"]
pages = list(iam.get_paginator("list_policy_versions").paginate(**frames, PaginationConfig={"PageSize": 1}))
assert [v["VersionId"] for page in pages for v in page["Versions"]] == ["v2", "v1"], pages
iam.delete_policy_version(**frames, VersionId="v1")
iam.tag_policy(**frames, Tags=[{"Key": "a", "Value": "b"}, {"Key": "c", "Value": "d"}])
iam.untag_policy(**frames, TagKeys=["a"])
assert iam.list_policy_tags(**frames)["Tags"] == [{"Key": "c", "Value": "d"}]
assert [p["PolicyName"] for page in iam.get_paginator("list_policies").paginate(Scope="Local") for p in page["Policies"]] == ["frames"]
assert len(iam.list_policies(Scope="AWS", PathPrefix="/service-role/")["Policies"]) > 10
iam.create_user(UserName="ann", Tags=[{"Key": "team", "Value": "x"}])
wait(iam, "user_exists", UserName="ann")
iam.create_group(GroupName="artists")
iam.add_user_to_group(GroupName="artists", UserName="ann")
for what, name, known in (("user", "ann", iam.list_user_policies), ("group", "artists", iam.list_group_policies),
        ("role", "worker", iam.list_role_policies)):
    named = {what.title() + "Name": name}
    each = lambda verb: getattr(iam, verb.format(what))
    each("put_{}_policy")(**named, PolicyName="own", PolicyDocument=allow("sqs:SendMessage"))
    assert known(**named)["PolicyNames"] == ["own"]
    assert each("get_{}_policy")(**named, PolicyName="own")["PolicyDocument"]["Version"] == "2012-10-17"
    each("attach_{}_policy")(**named, PolicyArn=ecs_policy)
    each("attach_{}_policy")(**named, **frames)
    attached = each("list_attached_{}_policies")(**named)["AttachedPolicies"]
    assert [p["PolicyName"] for p in attached] == ["frames", "AmazonEC2ContainerServiceforEC2Role"], attached
    if what != "group":
        each("put_{}_permissions_boundary")(**named, PermissionsBoundary=made["Arn"])
        boundary = each("get_{}")(**named)[what.title()]["PermissionsBoundary"]
        assert boundary["PermissionsBoundaryArn"] == made["Arn"], boundary
assert iam.get_policy(**frames)["Policy"]["AttachmentCount"] == 3
entities = iam.list_entities_for_policy(**frames, PolicyUsageFilter="PermissionsPolicy")
assert [entities[k][0][n] for k, n in (("PolicyUsers", "UserName"), ("PolicyGroups", "GroupName"), ("PolicyRoles", "RoleName"))] == [
    "ann", "artists", "worker"], entities
decide = lambda results: {r["EvalActionName"]: r["EvalDecision"] for r in results["EvaluationResults"]}
got = iam.simulate_principal_policy(PolicySourceArn="arn:aws:iam::000000000000:user/ann", ActionNames=["sqs:SendMessage", "s3:GetObject"])
assert decide(got) == {"sqs:SendMessage": "implicitDeny", "s3:GetObject": "allowed"}, got
got = iam.simulate_custom_policy(PolicyInputList=[allow("ecs:RunTask", Condition={"StringEquals": {"ecs:cluster": "c"}})],
    ActionNames=["ecs:RunTask"])["EvaluationResults"][0]
assert (got["EvalDecision"], got["MissingContextValues"]) == ("implicitDeny", ["ecs:cluster"]), got
keys = iam.get_context_keys_for_custom_policy(PolicyInputList=[allow("s3:*", Resource="arn:aws:s3:::${aws:username}")])
assert keys["ContextKeyNames"] == ["aws:username"], keys
assert iam.get_context_keys_for_principal_policy(PolicySourceArn=role["Arn"])["ContextKeyNames"] == []
assert [u["UserName"] for u in iam.get_group(GroupName="artists")["Users"]] == ["ann"]
iam.update_group(GroupName="artists", NewGroupName="painters")
assert [g["GroupName"] for g in iam.list_groups_for_user(UserName="ann")["Groups"]] == ["painters"] == [
    g["GroupName"] for g in iam.list_groups()["Groups"]]
key = iam.create_access_key(UserName="ann")["AccessKey"]
assert key["AccessKeyId"].startswith("AKIA") and len(key["SecretAccessKey"]) == 40
iam.update_access_key(UserName="ann", AccessKeyId=key["AccessKeyId"], Status="Inactive")
(listed,) = iam.list_access_keys(UserName="ann")["AccessKeyMetadata"]
assert listed["Status"] == "Inactive" and "SecretAccessKey" not in listed, listed
iam.update_user(UserName="ann", NewUserName="anne")
assert [u["UserName"] for u in iam.list_users()["Users"]] == ["anne"]
iam.tag_user(UserName="anne", Tags=[{"Key": "a", "Value": "b"}])
iam.untag_user(UserName="anne", TagKeys=["team"])
assert iam.list_user_tags(UserName="anne")["Tags"] == [{"Key": "a", "Value": "b"}]
assert iam.get_user()["User"]["Arn"] == "arn:aws:iam::000000000000:root"
profile = iam.create_instance_profile(InstanceProfileName="gpu")["InstanceProfile"]
assert profile["InstanceProfileId"].startswith("AIPA"), profile
wait(iam, "instance_profile_exists", InstanceProfileName="gpu")
iam.add_role_to_instance_profile(InstanceProfileName="gpu", RoleName="worker")
refused("LimitExceeded", iam.add_role_to_instance_profile, InstanceProfileName="gpu", RoleName="worker")
iam.tag_instance_profile(InstanceProfileName="gpu", Tags=[{"Key": "a", "Value": "b"}])
assert iam.list_instance_profile_tags(InstanceProfileName="gpu")["Tags"] == [{"Key": "a", "Value": "b"}]
iam.untag_instance_profile(InstanceProfileName="gpu", TagKeys=["a"])
assert iam.get_instance_profile(InstanceProfileName="gpu")["InstanceProfile"]["Roles"][0]["RoleName"] == "worker"
assert [p["InstanceProfileName"] for p in iam.list_instance_profiles_for_role(RoleName="worker")["InstanceProfiles"]] == ["gpu"]
assert [p["InstanceProfileName"] for p in iam.list_instance_profiles()["InstanceProfiles"]] == ["gpu"]
linked = iam.create_service_linked_role(AWSServiceName="ecs.amazonaws.com")["Role"]
assert linked["Path"] == "/aws-service-role/ecs.amazonaws.com/", linked
refused("UnmodifiableEntity", iam.delete_role, RoleName=linked["RoleName"])
task = iam.delete_service_linked_role(RoleName=linked["RoleName"])["DeletionTaskId"]
assert iam.get_service_linked_role_deletion_status(DeletionTaskId=task)["Status"] == "SUCCEEDED"
summary = iam.get_account_summary()["SummaryMap"]
assert (summary["Users"], summary["Roles"], summary["Policies"]) == (1, 1, 1), summary
details = [page for page in iam.get_paginator("get_account_authorization_details").paginate(PaginationConfig={"PageSize": 2})]
assert [u["UserName"] for page in details for u in page.get("UserDetailList", [])] == ["anne"], details
assert iam.list_account_aliases()["AccountAliases"] == []
assert iam.list_virtual_mfa_devices(AssignmentStatus="Assigned")["VirtualMFADevices"] == []
assert [iam.list_mfa_devices(UserName="anne")["MFADevices"], iam.list_ssh_public_keys(UserName="anne")["SSHPublicKeys"],
    iam.list_signing_certificates(UserName="anne")["Certificates"],
    iam.list_service_specific_credentials(UserName="anne")["ServiceSpecificCredentials"]] == [[]] * 4
refused("NoSuchEntity", iam.get_login_profile, UserName="anne")
refused("NoSuchEntity", iam.delete_login_profile, UserName="anne")
got = sts.assume_role(RoleArn=role["Arn"], RoleSessionName="me", DurationSeconds=7200)
assert got["AssumedRoleUser"]["Arn"] == "arn:aws:sts::000000000000:assumed-role/worker/me", got
assert got["AssumedRoleUser"]["AssumedRoleId"] == role["RoleId"] + ":me" and got["Credentials"]["AccessKeyId"].startswith("ASIA")
refused("ValidationError", sts.assume_role, RoleArn=role["Arn"], RoleSessionName="me", DurationSeconds=7201)
refused("DeleteConflict", iam.delete_role, RoleName="worker")
refused("DeleteConflict", iam.delete_policy, **frames)
for what, name in (("user", "anne"), ("group", "painters"), ("role", "worker")):
    named = {what.title() + "Name": name}
    each = lambda verb: getattr(iam, verb.format(what))
    each("delete_{}_policy")(**named, PolicyName="own")
    each("detach_{}_policy")(**named, PolicyArn=ecs_policy)
    each("detach_{}_policy")(**named, **frames)
    if what != "group":
        each("delete_{}_permissions_boundary")(**named)
iam.remove_role_from_instance_profile(InstanceProfileName="gpu", RoleName="worker")
iam.delete_instance_profile(InstanceProfileName="gpu")
iam.delete_role(RoleName="worker")
refused("NoSuchEntity", iam.get_role, RoleName="worker")
refused("DeleteConflict", iam.delete_group, GroupName="painters")
iam.remove_user_from_group(GroupName="painters", UserName="anne")
iam.delete_group(GroupName="painters")
refused("DeleteConflict", iam.delete_user, UserName="anne")
iam.delete_access_key(UserName="anne", AccessKeyId=key["AccessKeyId"])
iam.delete_user(UserName="anne")
iam.delete_policy(**frames)

# ECR
ecr = client("ecr")
image_host = "000000000000.dkr.ecr.us-east-1.amazonaws.com"
made = ecr.create_repository(repositoryName="team/app", imageTagMutability="IMMUTABLE", tags=[{"Key": "k", "Value": "v"}])["repository"]
assert made["repositoryUri"] == image_host + "/team/app" and made["repositoryArn"].endswith(":repository/team/app"), made
refused("RepositoryAlreadyExistsException", ecr.create_repository, repositoryName="team/app")
refused("InvalidParameterException", ecr.create_repository, repositoryName="Bad_Name")
refused("KmsException", ecr.create_repository, repositoryName="keyed", encryptionConfiguration={"encryptionType": "KMS"})
ecr.create_repository(repositoryName="other")
pages = ecr.get_paginator("describe_repositories").paginate(PaginationConfig={"PageSize": 1})
assert [r["repositoryName"] for page in pages for r in page["repositories"]] == ["other", "team/app"]
refused("RepositoryNotFoundException", ecr.describe_repositories, repositoryNames=["none"])
ecr.put_image_tag_mutability(repositoryName="team/app", imageTagMutability="MUTABLE")
ecr.put_image_scanning_configuration(repositoryName="team/app", imageScanningConfiguration={"scanOnPush": True})
described = ecr.describe_repositories(repositoryNames=["team/app"])["repositories"][0]
assert (described["imageTagMutability"], described["imageScanningConfiguration"]) == ("MUTABLE", {"scanOnPush": True}), described
expiring = json.dumps({"rules": [{"rulePriority": 1, "description": "keep a few", "selection": {
    "tagStatus": "untagged", "countType": "imageCountMoreThan", "countNumber": 3}, "action": {"type": "expire"}}]})
refused("LifecyclePolicyNotFoundException", ecr.get_lifecycle_policy, repositoryName="team/app")
refused("InvalidParameterException", ecr.put_lifecycle_policy, repositoryName="team/app", lifecyclePolicyText="{}" + " " * 100)
ecr.put_lifecycle_policy(repositoryName="team/app", lifecyclePolicyText=expiring)
assert ecr.get_lifecycle_policy(repositoryName="team/app")["lifecyclePolicyText"] == expiring
assert ecr.delete_lifecycle_policy(repositoryName="team/app")["lifecyclePolicyText"] == expiring
pulling = json.dumps({"Version": "2012-10-17", "Statement": [
    {"Sid": "pull", "Effect": "Allow", "Principal": "*", "Action": ["ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"]}]})
refused("RepositoryPolicyNotFoundException", ecr.get_repository_policy, repositoryName="team/app")
refused("InvalidParameterException", ecr.set_repository_policy, repositoryName="team/app", policyText="{}")
ecr.set_repository_policy(repositoryName="team/app", policyText=pulling)
assert ecr.get_repository_policy(repositoryName="team/app")["policyText"] == pulling
assert ecr.delete_repository_policy(repositoryName="team/app")["policyText"] == pulling
ecr.tag_resource(resourceArn=made["repositoryArn"], tags=[{"Key": "k2", "Value": "v2"}])
ecr.untag_resource(resourceArn=made["repositoryArn"], tagKeys=["k"])
assert ecr.list_tags_for_resource(resourceArn=made["repositoryArn"])["tags"] == [{"Key": "k2", "Value": "v2"}]
token = ecr.get_authorization_token()["authorizationData"][0]
assert base64.b64decode(token["authorizationToken"]).startswith(b"AWS:") and token["proxyEndpoint"] == "https://" + image_host, token["proxyEndpoint"]
layer_digests = []
for layer in b"{}", b"a layer":
    upload = ecr.initiate_layer_upload(repositoryName="other")["uploadId"]
    refused("InvalidLayerPartException", ecr.upload_layer_part, repositoryName="other", uploadId=upload, partFirstByte=1, partLastByte=len(layer), layerPartBlob=layer)
    part = ecr.upload_layer_part(repositoryName="other", uploadId=upload, partFirstByte=0, partLastByte=len(layer) - 1, layerPartBlob=layer)
    assert part["lastByteReceived"] == len(layer) - 1, part
    layer_digests.append("sha256:" + hashlib.sha256(layer).hexdigest())
    refused("InvalidLayerException", ecr.complete_layer_upload, repositoryName="other", uploadId=upload, layerDigests=["sha256:" + 64 * "0"])
    assert ecr.complete_layer_upload(repositoryName="other", uploadId=upload, layerDigests=layer_digests[-1:])["layerDigest"] == layer_digests[-1]
    refused("UploadNotFoundException", ecr.complete_layer_upload, repositoryName="other", uploadId=upload, layerDigests=layer_digests[-1:])
checked = ecr.batch_check_layer_availability(repositoryName="other", layerDigests=layer_digests + ["bad"])
assert [(l["layerAvailability"], l["layerSize"]) for l in checked["layers"]] == [("AVAILABLE", 2), ("AVAILABLE", 7)], checked
assert [f["failureCode"] for f in checked["failures"]] == ["InvalidLayerDigest"], checked
url = ecr.get_download_url_for_layer(repositoryName="other", layerDigest=layer_digests[1])["downloadUrl"]
assert urllib.request.urlopen(url).read() == b"a layer", url
manifest_type = "application/vnd.oci.image.manifest.v1+json"
manifest = json.dumps({"schemaVersion": 2, "mediaType": manifest_type, "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": layer_digests[0], "size": 2},
                       "layers": [{"mediaType": "application/vnd.oci.image.layer.v1.tar", "digest": layer_digests[1], "size": 7}]})
refused("LayersNotFoundException", ecr.put_image, repositoryName="team/app", imageManifest=manifest)
put = ecr.put_image(repositoryName="other", imageManifest=manifest, imageTag="v1")["image"]
refused("ImageAlreadyExistsException", ecr.put_image, repositoryName="other", imageManifest=manifest, imageTag="v1")
assert put["imageId"] == {"imageDigest": "sha256:" + hashlib.sha256(manifest.encode()).hexdigest(), "imageTag": "v1"}, put
assert ecr.list_images(repositoryName="other")["imageIds"] == [put["imageId"]]
detail = ecr.describe_images(repositoryName="other", imageIds=[{"imageTag": "v1"}])["imageDetails"][0]
assert (detail["imageTags"], detail["imageManifestMediaType"]) == (["v1"], manifest_type) and detail["imageSizeInBytes"] > 9, detail
refused("ImageNotFoundException", ecr.describe_images, repositoryName="other", imageIds=[{"imageTag": "v2"}])
got = ecr.batch_get_image(repositoryName="other", imageIds=[{"imageTag": "v1"}, {"imageTag": "v2"}])
assert [i["imageManifest"] for i in got["images"]] == [manifest] and [f["failureCode"] for f in got["failures"]] == ["ImageNotFound"], got
refused("RepositoryNotEmptyException", ecr.delete_repository, repositoryName="other")
gone = ecr.batch_delete_image(repositoryName="other", imageIds=[{"imageTag": "v1"}, {"imageDigest": "bad"}])
assert gone["imageIds"] == [put["imageId"]] and [f["failureCode"] for f in gone["failures"]] == ["InvalidImageDigest"], gone
for name in "team/app", "other":
    ecr.delete_repository(repositoryName=name, force=True)
refused("RepositoryNotFoundException", ecr.delete_repository, repositoryName="other")
rule = dict(ecrRepositoryPrefix="quay")
assert ecr.create_pull_through_cache_rule(**rule, upstreamRegistryUrl="quay.io")["upstreamRegistry"] == "quay"
refused("PullThroughCacheRuleAlreadyExistsException", ecr.create_pull_through_cache_rule, **rule, upstreamRegistryUrl="quay.io")
refused("UnsupportedUpstreamRegistryException", ecr.create_pull_through_cache_rule, ecrRepositoryPrefix="own", upstreamRegistryUrl="registry.example.com")
refused("InvalidParameterException", ecr.update_pull_through_cache_rule, **rule, credentialArn="arn:aws:secretsmanager:us-east-1:000000000000:secret:other")
secret = secrets.create_secret(Name="ecr-pullthroughcache/quay", SecretString='{"username": "me", "accessToken": "token"}')["ARN"]
assert ecr.update_pull_through_cache_rule(**rule, credentialArn=secret)["credentialArn"] == secret
listed = [r for p in ecr.get_paginator("describe_pull_through_cache_rules").paginate() for r in p["pullThroughCacheRules"]]
assert [(r["ecrRepositoryPrefix"], r["credentialArn"]) for r in listed] == [("quay", secret)], listed
ecr.delete_pull_through_cache_rule(**rule)
refused("PullThroughCacheRuleNotFoundException", ecr.validate_pull_through_cache_rule, **rule)

# SNS
sns = client("sns")
topic = sns.create_topic(Name="news", Attributes={"DisplayName": "News"}, Tags=[{"Key": "team", "Value": "ml"}])["TopicArn"]
assert sns.create_topic(Name="news")["TopicArn"] == topic
refused("InvalidParameter", sns.create_topic, Name="news", Attributes={"DisplayName": "Olds"})
refused("InvalidParameter", sns.create_topic, Name="no spaces")
assert topic in [t["TopicArn"] for p in sns.get_paginator("list_topics").paginate() for t in p["Topics"]]
sns.set_topic_attributes(TopicArn=topic, AttributeName="SignatureVersion", AttributeValue="2")
attributes = sns.get_topic_attributes(TopicArn=topic)["Attributes"]
assert (attributes["DisplayName"], attributes["SignatureVersion"]) == ("News", "2"), attributes
assert json.loads(attributes["EffectiveDeliveryPolicy"])["http"]["defaultHealthyRetryPolicy"]["numRetries"] == 3, attributes
refused("NotFound", sns.get_topic_attributes, TopicArn=topic + "-gone")
sns.tag_resource(ResourceArn=topic, Tags=[{"Key": "env", "Value": "test"}])
sns.untag_resource(ResourceArn=topic, TagKeys=["team"])
assert sns.list_tags_for_resource(ResourceArn=topic)["Tags"] == [{"Key": "env", "Value": "test"}]
sns.add_permission(TopicArn=topic, Label="others", AWSAccountId=["123456789012"], ActionName=["Publish"])
assert "others" in sns.get_topic_attributes(TopicArn=topic)["Attributes"]["Policy"]
sns.remove_permission(TopicArn=topic, Label="others")
assert "others" not in sns.get_topic_attributes(TopicArn=topic)["Attributes"]["Policy"]
q = sqs.create_queue(QueueName="readers")["QueueUrl"]
arn = sqs.get_queue_attributes(QueueUrl=q, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
sub = sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=arn, Attributes={"FilterPolicy": '{"kind":["big"]}'})["SubscriptionArn"]
refused("InvalidParameter", sns.subscribe, TopicArn=topic, Protocol="sms", Endpoint="+15550100")
refused("InvalidParameter", sns.set_subscription_attributes, SubscriptionArn=sub, AttributeName="FilterPolicy", AttributeValue='{"a":[]}')
sns.set_subscription_attributes(SubscriptionArn=sub, AttributeName="RawMessageDelivery", AttributeValue="true")
attributes = sns.get_subscription_attributes(SubscriptionArn=sub)["Attributes"]
assert (attributes["RawMessageDelivery"], attributes["FilterPolicyScope"]) == ("true", "MessageAttributes"), attributes
assert [s["SubscriptionArn"] for p in sns.get_paginator("list_subscriptions_by_topic").paginate(TopicArn=topic) for s in p["Subscriptions"]] == [sub]
assert sub in [s["SubscriptionArn"] for p in sns.get_paginator("list_subscriptions").paginate() for s in p["Subscriptions"]]
kind = {"kind": {"DataType": "String", "StringValue": "big"}}
assert sns.publish(TopicArn=topic, Message="small")["MessageId"]
sns.publish(TopicArn=topic, Message="one", Subject="s", MessageAttributes=kind)
batch = sns.publish_batch(TopicArn=topic, PublishBatchRequestEntries=[{"Id": "a", "Message": "two", "MessageAttributes": kind}, {"Id": "b", "Message": "no"}])
assert [e["Id"] for e in batch["Successful"]] == ["a", "b"], batch
got = {}
until(lambda got: set(got) == {"one", "two"}, lambda: got.update({m["Body"]: m for m in sqs.receive_message(
    QueueUrl=q, MaxNumberOfMessages=10, WaitTimeSeconds=1, MessageAttributeNames=["All"]).get("Messages", [])}) or got)
assert got["one"]["MessageAttributes"]["kind"] == {"StringValue": "big", "DataType": "String"}, got
refused("InvalidParameter", sns.confirm_subscription, TopicArn=topic, Token="0" * 128)
sns.unsubscribe(SubscriptionArn=sub)
asg.create_launch_configuration(LaunchConfigurationName="telling", ImageId="ami-1", InstanceType="g4dn.xlarge")
asg.create_auto_scaling_group(AutoScalingGroupName="telling", LaunchConfigurationName="telling", MinSize=0, MaxSize=1, AvailabilityZones=["us-east-1a"])
launched = "autoscaling:EC2_INSTANCE_LAUNCH"
assert launched in asg.describe_auto_scaling_notification_types()["AutoScalingNotificationTypes"]
asg.put_notification_configuration(AutoScalingGroupName="telling", TopicARN=topic, NotificationTypes=[launched])
refused("ValidationError", asg.put_notification_configuration, AutoScalingGroupName="telling", TopicARN=topic + "-gone", NotificationTypes=[launched])
told = [c for p in asg.get_paginator("describe_notification_configurations").paginate(AutoScalingGroupNames=["telling"]) for c in p["NotificationConfigurations"]]
assert told == [{"AutoScalingGroupName": "telling", "TopicARN": topic, "NotificationType": launched}], told
asg.delete_notification_configuration(AutoScalingGroupName="telling", TopicARN=topic)
asg.delete_auto_scaling_group(AutoScalingGroupName="telling", ForceDelete=True)
refused("NotFound", sns.get_subscription_attributes, SubscriptionArn=sub)
assert "CreatePlatformApplication" in refused("NotImplemented", sns.create_platform_application, Name="a", Platform="GCM", Attributes={})["Error"]["Message"]
called.discard("sns:CreatePlatformApplication")
sns.delete_topic(TopicArn=topic)
refused("ResourceNotFound", sns.list_tags_for_resource, ResourceArn=topic)

# EventBridge
events = client("events")
bus = events.create_event_bus(Name="orders", Description="o", Tags=[{"Key": "team", "Value": "ml"}])["EventBusArn"]
refused("ResourceAlreadyExistsException", events.create_event_bus, Name="orders")
assert events.update_event_bus(Name="orders", Description="all")["Description"] == "all"
assert events.describe_event_bus(Name=bus)["Description"] == "all"
assert [b["Name"] for b in events.list_event_buses()["EventBuses"]] == ["default", "orders"]
events.put_permission(EventBusName="orders", StatementId="others", Action="events:PutEvents", Principal="123456789012")
assert "others" in events.describe_event_bus(Name="orders")["Policy"]
events.remove_permission(EventBusName="orders", StatementId="others")
assert "Policy" not in events.describe_event_bus(Name="orders")
refused("InvalidEventPatternException", events.put_rule, Name="bad", EventPattern='{"source": "mine"}')
on_bus = dict(EventBusName="orders")
rule = events.put_rule(Name="all", **on_bus, EventPattern='{"source": [{"prefix": "mine"}]}')["RuleArn"]
events.tag_resource(ResourceARN=rule, Tags=[{"Key": "a", "Value": "1"}, {"Key": "b", "Value": "2"}])
events.untag_resource(ResourceARN=rule, TagKeys=["a"])
assert events.list_tags_for_resource(ResourceARN=rule)["Tags"] == [{"Key": "b", "Value": "2"}]
q = sqs.create_queue(QueueName="ordered")["QueueUrl"]
arn = sqs.get_queue_attributes(QueueUrl=q, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
target = {"Id": "q", "Arn": arn, "InputTransformer": {"InputPathsMap": {"n": "$.detail.n"}, "InputTemplate": '{"number": <n>}'}}
assert events.put_targets(Rule="all", **on_bus, Targets=[target])["FailedEntryCount"] == 0
assert events.list_targets_by_rule(Rule="all", **on_bus)["Targets"] == [target]
assert [n for p in events.get_paginator("list_rule_names_by_target").paginate(TargetArn=arn, **on_bus) for n in p["RuleNames"]] == ["all"]
events.disable_rule(Name="all", **on_bus)
assert events.describe_rule(Name="all", **on_bus)["State"] == "DISABLED"
events.enable_rule(Name="all", **on_bus)
assert [r["State"] for p in events.get_paginator("list_rules").paginate(**on_bus) for r in p["Rules"]] == ["ENABLED"]
event = {"id": "1", "account": "1", "source": "mine", "time": "2026-01-01T00:00:00Z", "region": "us-east-1", "resources": [], "detail-type": "x"}
assert events.test_event_pattern(Event=json.dumps(event), EventPattern='{"source": [{"anything-but": "aws"}]}')["Result"]
put = events.put_events(Entries=[{"Source": "mine.own", "DetailType": "x", "Detail": '{"n": 7}', "EventBusName": bus},
                                 {"Source": "aws.s3", "DetailType": "x", "Detail": "{}"}])
assert (put["FailedEntryCount"], put["Entries"][1]["ErrorCode"]) == (1, "NotAuthorizedForSource"), put
got = until(lambda got: got, lambda: sqs.receive_message(QueueUrl=q, WaitTimeSeconds=1).get("Messages"))
assert json.loads(got[0]["Body"]) == {"number": 7}, got
refused("ValidationException", events.delete_rule, Name="all", **on_bus)
assert events.remove_targets(Rule="all", **on_bus, Ids=["q"])["FailedEntryCount"] == 0
events.delete_rule(Name="all", **on_bus)
refused("ResourceNotFoundException", events.describe_rule, Name="all", **on_bus)
events.delete_event_bus(Name="orders")
assert "CreateArchive" in refused("NotImplementedException", events.create_archive, ArchiveName="a", EventSourceArn=bus)["Error"]["Message"]
called.discard("events:CreateArchive")

# EventBridge Scheduler
scheduler = client("scheduler")
group = scheduler.create_schedule_group(Name="night", Tags=[{"Key": "a", "Value": "1"}])["ScheduleGroupArn"]
refused("ConflictException", scheduler.create_schedule_group, Name="night")
scheduler.tag_resource(ResourceArn=group, Tags=[{"Key": "b", "Value": "2"}])
scheduler.untag_resource(ResourceArn=group, TagKeys=["a"])
assert scheduler.list_tags_for_resource(ResourceArn=group)["Tags"] == [{"Key": "b", "Value": "2"}]
assert scheduler.get_schedule_group(Name="night")["State"] == "ACTIVE"
assert [g["Name"] for p in scheduler.get_paginator("list_schedule_groups").paginate() for g in p["ScheduleGroups"]] == ["default", "night"]
made = dict(Name="often", GroupName="night", FlexibleTimeWindow={"Mode": "FLEXIBLE", "MaximumWindowInMinutes": 5}, ScheduleExpression="cron(0 3 ? * MON-FRI *)",
            ScheduleExpressionTimezone="Europe/Berlin", Target={"Arn": arn, "RoleArn": "arn:aws:iam::000000000000:role/sender", "Input": "{}"})
schedule = scheduler.create_schedule(**made)["ScheduleArn"]
assert schedule.endswith(":schedule/night/often"), schedule
refused("ConflictException", scheduler.create_schedule, **made)
refused("ValidationException", scheduler.create_schedule, **{**made, "Name": "bad", "ScheduleExpression": "cron(0 1 * * * *)"})
got = scheduler.get_schedule(Name="often", GroupName="night")
assert (got["State"], got["ActionAfterCompletion"], got["Target"]["RetryPolicy"]["MaximumRetryAttempts"]) == ("ENABLED", "NONE", 185), got
scheduler.update_schedule(**{**made, "State": "DISABLED"})
assert [s["State"] for p in scheduler.get_paginator("list_schedules").paginate(GroupName="night") for s in p["Schedules"]] == ["DISABLED"]
scheduler.delete_schedule(Name="often", GroupName="night")
refused("ResourceNotFoundException", scheduler.get_schedule, Name="often", GroupName="night")
scheduler.delete_schedule_group(Name="night")

# EFS
efs = client("efs")
system = efs.create_file_system(CreationToken="t", Encrypted=True, Backup=True, Tags=[{"Key": "Name", "Value": "shared"}])
assert system["Name"] == "shared" and system["LifeCycleState"] == "available", system
fs = system["FileSystemId"]
refused("FileSystemAlreadyExists", efs.create_file_system, CreationToken="t")
assert efs.describe_file_systems(CreationToken="t")["FileSystems"][0]["Encrypted"]
assert efs.update_file_system(FileSystemId=fs, ThroughputMode="elastic")["ThroughputMode"] == "elastic"
policies = [{"TransitionToIA": "AFTER_30_DAYS"}]
assert efs.put_lifecycle_configuration(FileSystemId=fs, LifecyclePolicies=policies)["LifecyclePolicies"] == policies
assert efs.describe_lifecycle_configuration(FileSystemId=fs)["LifecyclePolicies"] == policies
assert efs.describe_backup_policy(FileSystemId=fs)["BackupPolicy"]["Status"] == "ENABLED"
efs.put_backup_policy(FileSystemId=fs, BackupPolicy={"Status": "DISABLED"})
refused("PolicyNotFound", efs.describe_file_system_policy, FileSystemId=fs)
refused("BadRequest", efs.update_file_system_protection, FileSystemId=fs, ReplicationOverwriteProtection="REPLICATING")
efs.update_file_system_protection(FileSystemId=fs, ReplicationOverwriteProtection="DISABLED")
assert efs.describe_file_systems(FileSystemId=fs)["FileSystems"][0]["FileSystemProtection"]["ReplicationOverwriteProtection"] == "DISABLED"
point = efs.create_access_point(
    FileSystemId=system["FileSystemArn"], ClientToken="p", PosixUser={"Uid": 1000, "Gid": 1000},
    RootDirectory={"Path": "/app", "CreationInfo": {"OwnerUid": 1000, "OwnerGid": 1000, "Permissions": "750"}})["AccessPointId"]
assert efs.describe_access_points(FileSystemId=fs)["AccessPoints"][0]["RootDirectory"]["Path"] == "/app"
subnet = client("ec2").describe_subnets()["Subnets"][0]["SubnetId"]
target = efs.create_mount_target(FileSystemId=fs, SubnetId=subnet)["MountTargetId"]
assert efs.describe_mount_targets(FileSystemId=fs)["MountTargets"][0]["SubnetId"] == subnet
groups = efs.describe_mount_target_security_groups(MountTargetId=target)["SecurityGroups"]
efs.modify_mount_target_security_groups(MountTargetId=target, SecurityGroups=groups)
efs.tag_resource(ResourceId=fs, Tags=[{"Key": "a", "Value": "1"}])
efs.untag_resource(ResourceId=fs, TagKeys=["Name"])
assert efs.list_tags_for_resource(ResourceId=fs)["Tags"] == [{"Key": "a", "Value": "1"}]
refused("FileSystemInUse", efs.delete_file_system, FileSystemId=fs)
efs.delete_mount_target(MountTargetId=target)
efs.delete_access_point(AccessPointId=point)
efs.delete_file_system(FileSystemId=fs)
refused("FileSystemNotFound", efs.describe_file_systems, FileSystemId=fs)

# ACM
acm, elb = client("acm"), client("elbv2")
pems = {name: open(os.path.join(os.environ["CERTIFICATE"], name + ".pem"), "rb").read() for name in ("certificate", "key")}
certificate = acm.import_certificate(Certificate=pems["certificate"], PrivateKey=pems["key"])["CertificateArn"]
acm.add_tags_to_certificate(CertificateArn=certificate, Tags=[{"Key": "a", "Value": "1"}, {"Key": "b"}])
acm.remove_tags_from_certificate(CertificateArn=certificate, Tags=[{"Key": "b"}])
assert acm.list_tags_for_certificate(CertificateArn=certificate)["Tags"] == [{"Key": "a", "Value": "1"}]
described = acm.describe_certificate(CertificateArn=certificate)["Certificate"]
assert (described["DomainName"], described["Type"], described["Status"]) == ("example.com", "IMPORTED", "ISSUED"), described
assert acm.get_certificate(CertificateArn=certificate)["Certificate"].encode() == pems["certificate"]
assert [c["CertificateArn"] for c in acm.list_certificates()["CertificateSummaryList"]] == [certificate]
refused("InvalidParameterException", acm.request_certificate, DomainName="example.com")

# Elastic Load Balancing
subnets = [s["SubnetId"] for s in ec2.describe_subnets()["Subnets"][:2]]
vpc = ec2.describe_vpcs()["Vpcs"][0]["VpcId"]
balancer = elb.create_load_balancer(Name="web", Subnets=subnets, Tags=[{"Key": "a", "Value": "1"}])["LoadBalancers"][0]
lb = {"LoadBalancerArn": balancer["LoadBalancerArn"]}
assert balancer["State"]["Code"] == "provisioning" and balancer["DNSName"].endswith(".elb.localhost"), balancer
wait(elb, "load_balancer_available", LoadBalancerArns=[balancer["LoadBalancerArn"]])
assert [b["LoadBalancerName"] for b in elb.describe_load_balancers(Names=["web"])["LoadBalancers"]] == ["web"]
refused("LoadBalancerNotFound", elb.describe_load_balancers, Names=["none"])
elb.modify_load_balancer_attributes(**lb, Attributes=[{"Key": "idle_timeout.timeout_seconds", "Value": "30"}])
assert {"Key": "idle_timeout.timeout_seconds", "Value": "30"} in elb.describe_load_balancer_attributes(**lb)["Attributes"]
elb.set_subnets(**lb, Subnets=subnets)
elb.set_security_groups(**lb, SecurityGroups=balancer["SecurityGroups"])
elb.set_ip_address_type(**lb, IpAddressType="ipv4")
refused("InvalidConfigurationRequest", elb.set_ip_address_type, **lb, IpAddressType="dualstack")
target_group = elb.create_target_group(Name="models", Protocol="HTTP", Port=80, VpcId=vpc, TargetType="ip", HealthCheckIntervalSeconds=5,
                                       HealthCheckTimeoutSeconds=2)["TargetGroups"][0]
tg = {"TargetGroupArn": target_group["TargetGroupArn"]}
assert elb.modify_target_group(**tg, HealthCheckPath="/pintle/health")["TargetGroups"][0]["HealthCheckPath"] == "/pintle/health"
assert elb.describe_target_groups(Names=["models"])["TargetGroups"][0]["LoadBalancerArns"] == []
elb.modify_target_group_attributes(**tg, Attributes=[{"Key": "deregistration_delay.timeout_seconds", "Value": "5"}])
assert {"Key": "deregistration_delay.timeout_seconds", "Value": "5"} in elb.describe_target_group_attributes(**tg)["Attributes"]
forward = [{"Type": "forward", **tg}]
listener = elb.create_listener(**lb, Protocol="HTTP", Port=80, DefaultActions=forward)["Listeners"][0]
refused("DuplicateListener", elb.create_listener, **lb, Protocol="HTTP", Port=80, DefaultActions=[
    {"Type": "fixed-response", "FixedResponseConfig": {"StatusCode": "404"}}])
secure = elb.create_listener(**lb, Protocol="HTTPS", Port=443, DefaultActions=forward, Certificates=[{"CertificateArn": certificate}])["Listeners"][0]
refused("ResourceInUseException", acm.delete_certificate, CertificateArn=certificate)
ls = {"ListenerArn": secure["ListenerArn"]}
elb.modify_listener(**ls, Port=8443)
assert sorted(l["Port"] for l in elb.describe_listeners(**lb)["Listeners"]) == [80, 8443]
elb.add_listener_certificates(**ls, Certificates=[{"CertificateArn": certificate}])
assert [c["IsDefault"] for c in elb.describe_listener_certificates(**ls)["Certificates"]] == [True, False]
elb.remove_listener_certificates(**ls, Certificates=[{"CertificateArn": certificate}])
elb.modify_listener_attributes(**ls, Attributes=[{"Key": "routing.http.response.server.enabled", "Value": "true"}])
assert elb.describe_listener_attributes(**ls)["Attributes"]
fixed = [{"Type": "fixed-response", "FixedResponseConfig": {"StatusCode": "200", "MessageBody": "fixed"}}]
rule = elb.create_rule(ListenerArn=listener["ListenerArn"], Priority=1, Actions=fixed,
                       Conditions=[{"Field": "path-pattern", "Values": ["/fixed"]}])["Rules"][0]
refused("PriorityInUse", elb.create_rule, ListenerArn=listener["ListenerArn"], Priority=1, Actions=fixed,
        Conditions=[{"Field": "path-pattern", "Values": ["/other"]}])
assert elb.modify_rule(RuleArn=rule["RuleArn"], Actions=forward)["Rules"][0]["Actions"][0]["Type"] == "forward"
assert elb.set_rule_priorities(RulePriorities=[{"RuleArn": rule["RuleArn"], "Priority": 7}])["Rules"][0]["Priority"] == "7"
assert [r["Priority"] for r in elb.describe_rules(ListenerArn=listener["ListenerArn"])["Rules"]] == ["7", "default"]
port = int(endpoint.rsplit(":", 1)[1])
elb.register_targets(**tg, Targets=[{"Id": "127.0.0.1", "Port": port}])
wait(elb, "target_in_service", **tg)
elb.deregister_targets(**tg, Targets=[{"Id": "127.0.0.1", "Port": port}])
wait(elb, "target_deregistered", **tg, Targets=[{"Id": "127.0.0.1", "Port": port}])
assert elb.describe_target_health(**tg)["TargetHealthDescriptions"] == []
elb.add_tags(ResourceArns=[rule["RuleArn"]], Tags=[{"Key": "b", "Value": "2"}, {"Key": "c"}])
elb.remove_tags(ResourceArns=[rule["RuleArn"]], TagKeys=["c"])
got = elb.describe_tags(ResourceArns=[balancer["LoadBalancerArn"], rule["RuleArn"]])["TagDescriptions"]
assert [d["Tags"] for d in got] == [[{"Key": "a", "Value": "1"}], [{"Key": "b", "Value": "2"}]], got
assert "MinimumLoadBalancerCapacity" not in elb.describe_capacity_reservation(**lb)
assert {"Name": "target-groups", "Max": "3000"} in elb.describe_account_limits()["Limits"]
assert elb.describe_ssl_policies(Names=["ELBSecurityPolicy-2016-08"])["SslPolicies"][0]["SslProtocols"][0] == "TLSv1.2"

# An Auto Scaling group behind a target group
behind = elb.create_target_group(Name="behind", Protocol="HTTP", Port=80, VpcId=vpc)["TargetGroups"][0]["TargetGroupArn"]
g = dict(AutoScalingGroupName="behind")
asg.create_launch_configuration(LaunchConfigurationName="behind", ImageId="ami-1", InstanceType="c5.large")
asg.create_auto_scaling_group(**g, MinSize=0, MaxSize=1, LaunchConfigurationName="behind", AvailabilityZones=["us-east-1a"], HealthCheckType="ELB")
refused("ValidationError", asg.attach_load_balancer_target_groups, **g, TargetGroupARNs=[behind, tg["TargetGroupArn"]])  # one of addresses
asg.attach_load_balancer_target_groups(**g, TargetGroupARNs=[behind])
assert asg.describe_load_balancer_target_groups(**g)["LoadBalancerTargetGroups"] == [{"LoadBalancerTargetGroupARN": behind, "State": "Added"}]
assert asg.describe_auto_scaling_groups(AutoScalingGroupNames=["behind"])["AutoScalingGroups"][0]["TargetGroupARNs"] == [behind]
asg.detach_load_balancer_target_groups(**g, TargetGroupARNs=[behind])
asg.attach_traffic_sources(**g, TrafficSources=[{"Identifier": behind, "Type": "elbv2"}])
assert asg.describe_traffic_sources(**g)["TrafficSources"] == [{"Identifier": behind, "TrafficSource": behind, "Type": "elbv2", "State": "Added"}]
asg.detach_traffic_sources(**g, TrafficSources=[{"Identifier": behind}])
refused("ValidationError", asg.detach_traffic_sources, **g, TrafficSources=[{"Identifier": behind}])
asg.delete_auto_scaling_group(**g)
asg.delete_launch_configuration(LaunchConfigurationName="behind")
elb.delete_target_group(TargetGroupArn=behind)

refused("ResourceInUse", elb.delete_target_group, **tg)
elb.delete_rule(RuleArn=rule["RuleArn"])
elb.delete_listener(**ls)
elb.delete_load_balancer(**lb)
elb.delete_target_group(**tg)
acm.delete_certificate(CertificateArn=certificate)
wait(elb, "load_balancers_deleted", LoadBalancerArns=[balancer["LoadBalancerArn"]])

# Cloud Map
cloudmap = client("servicediscovery")
def operated(out):
    operation = cloudmap.get_operation(OperationId=out["OperationId"])["Operation"]
    assert operation["Status"] == "SUCCESS", operation
    return operation["Targets"]
names = operated(cloudmap.create_private_dns_namespace(Name="corp.local", Vpc="vpc-1", Tags=[{"Key": "a", "Value": "1"}]))["NAMESPACE"]
plain = operated(cloudmap.create_http_namespace(Name="plain"))["NAMESPACE"]
taken = refused("NamespaceAlreadyExists", cloudmap.create_http_namespace, Name="plain")
assert taken.get("NamespaceId", plain) == plain, taken  # the CLI shows an error's message alone
refused("InvalidInput", cloudmap.create_public_dns_namespace, Name="example.com")
operated(cloudmap.update_private_dns_namespace(Id=names, Namespace={"Properties": {"DnsProperties": {"SOA": {"TTL": 30}}}}))
operated(cloudmap.update_http_namespace(Id=plain, Namespace={"Description": "d"}))
refused("InvalidInput", cloudmap.update_public_dns_namespace, Id=names, Namespace={"Description": "d"})
described = cloudmap.get_namespace(Id=names)["Namespace"]
assert described["Properties"]["DnsProperties"]["SOA"] == {"TTL": 30}, described
got = [n["Id"] for p in cloudmap.get_paginator("list_namespaces").paginate(Filters=[{"Name": "TYPE", "Values": ["HTTP"]}]) for n in p["Namespaces"]]
assert got == [plain], got
web = cloudmap.create_service(Name="web", NamespaceId=names, DnsConfig={"DnsRecords": [{"Type": "A", "TTL": 10}]}, HealthCheckCustomConfig={})["Service"]
assert (web["Type"], web["DnsConfig"]["RoutingPolicy"]) == ("DNS_HTTP", "MULTIVALUE"), web
taken = refused("ServiceAlreadyExists", cloudmap.create_service, Name="web", NamespaceId=names)
assert taken.get("ServiceId", web["Id"]) == web["Id"], taken
operated(cloudmap.update_service(Id=web["Id"], Service={"Description": "d", "DnsConfig": {"DnsRecords": [{"Type": "A", "TTL": 20}]}}))
assert cloudmap.get_service(Id=web["Arn"])["Service"]["Description"] == "d"
got = [s["Name"] for p in cloudmap.get_paginator("list_services").paginate(Filters=[{"Name": "NAMESPACE_ID", "Values": [names]}]) for s in p["Services"]]
assert got == ["web"], got
cloudmap.update_service_attributes(ServiceId=web["Id"], Attributes={"a": "1", "b": "2"})
cloudmap.delete_service_attributes(ServiceId=web["Id"], Attributes=["a"])
assert cloudmap.get_service_attributes(ServiceId=web["Id"])["ServiceAttributes"]["Attributes"] == {"b": "2"}
cloudmap.tag_resource(ResourceARN=web["Arn"], Tags=[{"Key": "b", "Value": "2"}, {"Key": "c", "Value": ""}])
cloudmap.untag_resource(ResourceARN=web["Arn"], TagKeys=["c"])
assert cloudmap.list_tags_for_resource(ResourceARN=web["Arn"])["Tags"] == [{"Key": "b", "Value": "2"}]
operated(cloudmap.register_instance(ServiceId=web["Id"], InstanceId="i", Attributes={"AWS_INSTANCE_IPV4": "10.0.0.1", "color": "red"}))
assert cloudmap.get_instance(ServiceId=web["Id"], InstanceId="i")["Instance"]["Attributes"]["color"] == "red"
assert [i["Id"] for p in cloudmap.get_paginator("list_instances").paginate(ServiceId=web["Id"]) for i in p["Instances"]] == ["i"]
cloudmap.update_instance_custom_health_status(ServiceId=web["Id"], InstanceId="i", Status="UNHEALTHY")
assert cloudmap.get_instances_health_status(ServiceId=web["Id"])["Status"] == {"i": "UNHEALTHY"}
by_name = {"NamespaceName": "corp.local", "ServiceName": "web"}
assert cloudmap.discover_instances(**by_name, HealthStatus="HEALTHY")["Instances"] == []
found = cloudmap.discover_instances(**by_name, QueryParameters={"color": "red"})
assert [i["InstanceId"] for i in found["Instances"]] == ["i"], found
assert cloudmap.discover_instances_revision(**by_name)["InstancesRevision"] == found["InstancesRevision"]
refused("ServiceNotFound", cloudmap.discover_instances, NamespaceName="corp.local", ServiceName="none")
refused("ResourceInUse", cloudmap.delete_service, Id=web["Id"])
operated(cloudmap.deregister_instance(ServiceId=web["Id"], InstanceId="i"))
got = [o["Id"] for p in cloudmap.get_paginator("list_operations").paginate(Filters=[{"Name": "SERVICE_ID", "Values": [web["Id"]]}]) for o in p["Operations"]]
assert len(got) == 3, got
cloudmap.delete_service(Id=web["Id"])
operated(cloudmap.delete_namespace(Id=names))
operated(cloudmap.delete_namespace(Id=plain))
refused("NamespaceNotFound", cloudmap.get_namespace, Id=names)

# Lambda
def zipped(name, text):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as z:
        z.writestr(name, text)
    return out.getvalue()


functions, direct = client("lambda"), boto3.client("lambda", endpoint_url=endpoint)  # the CLI takes zip files and answers as files
boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket="code")


def stored(name, text):
    boto3.client("s3", endpoint_url=endpoint).put_object(Bucket="code", Key="code.zip", Body=zipped(name, text))
    return {"S3Bucket": "code", "S3Key": "code.zip"}


layer = functions.publish_layer_version(LayerName="l", Content=stored("python/l.py", ""), CompatibleRuntimes=["python3.12"])
assert functions.get_layer_version(LayerName="l", VersionNumber=1)["LayerVersionArn"] == layer["LayerVersionArn"]
assert functions.get_layer_version_by_arn(Arn=layer["LayerVersionArn"])["Version"] == 1
assert [v["Version"] for v in functions.list_layer_versions(LayerName="l", CompatibleRuntime="python3.12")["LayerVersions"]] == [1]
assert [v["LayerName"] for v in functions.list_layers()["Layers"]] == ["l"]
made = functions.create_function(FunctionName="f", Runtime="python3.12", Role="arn:aws:iam::000000000000:role/f", Handler="index.handler",
                                 Code=stored("index.py", ""), Layers=[layer["LayerVersionArn"]], Tags={"a": "1"})
direct.get_waiter("function_active_v2").wait(FunctionName="f")
refused("ResourceConflictException", functions.create_function, FunctionName="f", Runtime="python3.12", Role=made["Role"], Handler="h.h",
        Code=stored("index.py", ""))
assert functions.get_function(FunctionName="f")["Tags"] == {"a": "1"}
assert functions.get_function_configuration(FunctionName=made["FunctionArn"])["State"] == "Active"
assert functions.update_function_configuration(FunctionName="f", Timeout=9)["Timeout"] == 9
direct.get_waiter("function_updated_v2").wait(FunctionName="f")
assert functions.update_function_code(FunctionName="f", **stored("index.py", "#"))["CodeSha256"] != made["CodeSha256"]
assert functions.publish_version(FunctionName="f")["Version"] == "1"
assert [v["Version"] for v in functions.list_versions_by_function(FunctionName="f")["Versions"]] == ["$LATEST", "1"]
functions.create_alias(FunctionName="f", Name="live", FunctionVersion="1")
functions.update_alias(FunctionName="f", Name="live", Description="d")
assert functions.get_alias(FunctionName="f", Name="live")["Description"] == "d"
assert [a["Name"] for a in functions.list_aliases(FunctionName="f")["Aliases"]] == ["live"]
functions.delete_alias(FunctionName="f", Name="live")
functions.add_permission(FunctionName="f", StatementId="s", Action="lambda:InvokeFunction", Principal="sns.amazonaws.com")
assert json.loads(functions.get_policy(FunctionName="f")["Policy"])["Statement"][0]["Principal"] == {"Service": "sns.amazonaws.com"}
functions.remove_permission(FunctionName="f", StatementId="s")
refused("ResourceNotFoundException", functions.get_policy, FunctionName="f")
functions.put_function_concurrency(FunctionName="f", ReservedConcurrentExecutions=0)
assert "CodeSigningConfigArn" not in functions.get_function_code_signing_config(FunctionName="f")
assert functions.get_function_concurrency(FunctionName="f")["ReservedConcurrentExecutions"] == 0
refused("TooManyRequestsException", direct.invoke, FunctionName="f")
functions.delete_function_concurrency(FunctionName="f")
assert direct.invoke(FunctionName="f", InvocationType="DryRun")["StatusCode"] == 204
called.add("lambda:Invoke")
functions.put_function_event_invoke_config(FunctionName="f", MaximumRetryAttempts=0)
functions.update_function_event_invoke_config(FunctionName="f", MaximumEventAgeInSeconds=60)
assert functions.get_function_event_invoke_config(FunctionName="f")["MaximumRetryAttempts"] == 0
assert len(functions.list_function_event_invoke_configs(FunctionName="f")["FunctionEventInvokeConfigs"]) == 1
functions.delete_function_event_invoke_config(FunctionName="f")
source = sqs.get_queue_attributes(QueueUrl=sqs.create_queue(QueueName="source")["QueueUrl"], AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
mapping = functions.create_event_source_mapping(FunctionName="f", EventSourceArn=source, Enabled=False)["UUID"]
assert functions.get_event_source_mapping(UUID=mapping)["State"] == "Disabled"
assert functions.update_event_source_mapping(UUID=mapping, BatchSize=3)["BatchSize"] == 3
assert len(functions.list_event_source_mappings(FunctionName="f")["EventSourceMappings"]) == 1
functions.delete_event_source_mapping(UUID=mapping)
functions.tag_resource(Resource=made["FunctionArn"], Tags={"b": "2"})
functions.untag_resource(Resource=made["FunctionArn"], TagKeys=["a"])
assert functions.list_tags(Resource=made["FunctionArn"])["Tags"] == {"b": "2"}
assert [f["FunctionName"] for f in functions.list_functions()["Functions"]] == ["f"]
assert functions.get_account_settings()["AccountUsage"]["FunctionCount"] == 1
functions.delete_function(FunctionName="f")
functions.delete_layer_version(LayerName="l", VersionNumber=1)
refused("ResourceNotFoundException", functions.get_function, FunctionName="f")

# An unimplemented operation says so
assert "ListDaemons" in refused("NotImplementedException", ecs.list_daemons)["Error"]["Message"]
called.discard("ecs:ListDaemons")

print("\n".join(sorted(called)))
sys.exit(0)
