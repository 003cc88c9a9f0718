"""Deploys a stack with a service whose blue/green deployments ask a function, which looks at the new tasks by the test traffic's listener: a version
that it likes, and one that it doesn't."""

import json
import os
import sys
import time
import urllib.request

import boto3

endpoint = os.environ["AWS_ENDPOINT_URL"]
stacks, ecs, logs, events, sqs = (boto3.client(s, endpoint_url=endpoint) for s in ("cloudformation", "ecs", "logs", "events", "sqs"))
production, testing, *ports = sys.argv[1:]

code = """
import json, urllib.request

def handler(event, context):
    print("asked", json.dumps(event))
    details = event["hookDetails"]
    if event["lifecycleStage"] != "POST_TEST_TRAFFIC_SHIFT":
        return {"hookStatus": "SUCCEEDED"}
    if "seen" not in details:
        seen = urllib.request.urlopen(details["url"], timeout=10).read().decode()
        return {"hookStatus": "IN_PROGRESS", "callBackDelay": 1, "hookDetails": {"seen": seen}}
    return {"hookStatus": "FAILED" if details["seen"] == "bad" else "SUCCEEDED"}
"""

server = """
import http.server, sys

class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(sys.argv[2].encode())

http.server.ThreadingHTTPServer(("", int(sys.argv[1])), Handler).serve_forever()
"""


def group():
    return {"Type": "AWS::ElasticLoadBalancingV2::TargetGroup", "Properties": {
        "Protocol": "HTTP", "Port": 80, "VpcId": {"Ref": "Vpc"}, "HealthCheckIntervalSeconds": 5, "HealthCheckTimeoutSeconds": 2,
        "HealthyThresholdCount": 2, "TargetGroupAttributes": [{"Key": "deregistration_delay.timeout_seconds", "Value": "1"}]}}


def listener(port):
    return {"Type": "AWS::ElasticLoadBalancingV2::Listener", "Properties": {
        "LoadBalancerArn": {"Ref": "Balancer"}, "Protocol": "HTTP", "Port": int(port),
        "DefaultActions": [{"Type": "fixed-response", "FixedResponseConfig": {"StatusCode": "404"}}]}}


def rule(of):
    return {"Type": "AWS::ElasticLoadBalancingV2::ListenerRule", "Properties": {
        "ListenerArn": {"Ref": of}, "Priority": 1, "Conditions": [{"Field": "path-pattern", "Values": ["/*"]}],
        "Actions": [{"Type": "forward", "ForwardConfig": {"TargetGroups": [
            {"TargetGroupArn": {"Ref": "Blue"}, "Weight": 1}, {"TargetGroupArn": {"Ref": "Green"}, "Weight": 0}]}}]}}


def role(service, action):
    return {"Type": "AWS::IAM::Role", "Properties": {
        "AssumeRolePolicyDocument": {"Version": "2012-10-17", "Statement": {
            "Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}},
        "Policies": [{"PolicyName": "own", "PolicyDocument": {"Version": "2012-10-17", "Statement": {
            "Effect": "Allow", "Action": action, "Resource": "*"}}}]}}


subnets = boto3.client("ec2", endpoint_url=endpoint).describe_subnets()["Subnets"][:2]
template = {
    "Parameters": {"Vpc": {"Type": "String"}, "Version": {"Type": "String"}, "Port": {"Type": "Number"}},
    "Resources": {
        "Balancer": {"Type": "AWS::ElasticLoadBalancingV2::LoadBalancer", "Properties": {"Subnets": [s["SubnetId"] for s in subnets]}},
        "Blue": group(), "Green": group(),
        "Listener": listener(production), "TestListener": listener(testing),
        "Rule": rule("Listener"), "TestRule": rule("TestListener"),
        "FunctionRole": role("lambda.amazonaws.com", "logs:*"),
        "HookRole": role("ecs.amazonaws.com", ["lambda:InvokeFunction", "elasticloadbalancing:Modify*"]),
        "Check": {"Type": "AWS::Lambda::Function", "Properties": {
            "FunctionName": "check", "Runtime": "python3.12", "Handler": "index.handler", "Timeout": 60, "Code": {"ZipFile": code},
            "Role": {"Fn::GetAtt": ["FunctionRole", "Arn"]}}},
        "Definition": {"Type": "AWS::ECS::TaskDefinition", "Properties": {
            "Family": "web", "NetworkMode": "host", "ContainerDefinitions": [{
                "Name": "main", "Image": "python", "Memory": 64, "Command": [sys.executable, "-c", server, {"Ref": "Port"}, {"Ref": "Version"}],
                "PortMappings": [{"ContainerPort": {"Ref": "Port"}}]}]}},
        "Service": {"Type": "AWS::ECS::Service", "DependsOn": ["Rule", "TestRule"], "Properties": {
            "ServiceName": "web", "TaskDefinition": {"Ref": "Definition"}, "DesiredCount": 1, "DeploymentConfiguration": {
                "Strategy": "BLUE_GREEN", "BakeTimeInMinutes": 0, "LifecycleHooks": [{
                    "HookTargetArn": {"Fn::GetAtt": ["Check", "Arn"]}, "RoleArn": {"Fn::GetAtt": ["HookRole", "Arn"]},
                    "LifecycleStages": ["PRE_SCALE_UP", "POST_TEST_TRAFFIC_SHIFT", "TEST_TRAFFIC_SHIFT"],
                    "HookDetails": {"url": f"http://127.0.0.1:{testing}/"}}]},
            "LoadBalancers": [{"ContainerName": "main", "ContainerPort": {"Ref": "Port"}, "TargetGroupArn": {"Ref": "Blue"}, "AdvancedConfiguration": {
                "AlternateTargetGroupArn": {"Ref": "Green"}, "ProductionListenerRule": {"Ref": "Rule"}, "TestListenerRule": {"Ref": "TestRule"},
                "RoleArn": {"Fn::GetAtt": ["HookRole", "Arn"]}}}]}},
    },
}


def deploy(how, version, port):
    values = {"Vpc": subnets[0]["VpcId"], "Version": version, "Port": port}
    getattr(stacks, how + "_stack")(StackName="web", TemplateBody=json.dumps(template), Capabilities=["CAPABILITY_IAM"], Parameters=[
        {"ParameterKey": k, "ParameterValue": v} for k, v in values.items()])
    end = time.time() + 300
    while time.time() < end:
        status = stacks.describe_stacks(StackName="web")["Stacks"][0]["StackStatus"]
        if not status.endswith("_IN_PROGRESS"):
            return status
        time.sleep(0.5)
    tasks = ecs.list_tasks()["taskArns"]
    raise TimeoutError(json.dumps([ecs.describe_services(services=["web"])["services"][0]["events"][:9], tasks and ecs.describe_tasks(tasks=tasks)["tasks"]],
                                  default=str))


def answers():
    return urllib.request.urlopen(f"http://127.0.0.1:{production}/", timeout=10).read().decode()


def deployment(n):
    """The service's n-th deployment, from 0."""
    arns = [d["serviceDeploymentArn"] for d in ecs.list_service_deployments(service="web")["serviceDeployments"]]
    found = ecs.describe_service_deployments(serviceDeploymentArns=arns)["serviceDeployments"]
    return sorted(found, key=lambda d: d["createdAt"])[n]


def asked():
    text = [e["message"] for e in logs.filter_log_events(logGroupName="/aws/lambda/check")["events"]]
    return [json.loads(m[len("asked "):]) for m in text if m.startswith("asked ")]


heard = sqs.create_queue(QueueName="heard")["QueueUrl"]
events.put_rule(Name="hooks", EventPattern=json.dumps({"source": ["aws.ecs"], "detail-type": ["ECS Hook State Change"]}))
assert events.put_targets(Rule="hooks", Targets=[{"Id": "q", "Arn": "arn:aws:sqs:us-east-1:000000000000:heard"}])["FailedEntryCount"] == 0


def told(enough):
    """What the queue has heard of the hooks, once enough says that it's enough."""
    got, end = [], time.time() + 60
    while not enough(got):
        assert time.time() < end, got
        for m in sqs.receive_message(QueueUrl=heard, MaxNumberOfMessages=10, WaitTimeSeconds=1).get("Messages", []):
            got.append(json.loads(m["Body"])["detail"])
            sqs.delete_message(QueueUrl=heard, ReceiptHandle=m["ReceiptHandle"])
    return got


assert deploy("create", "good", ports[0]) == "CREATE_COMPLETE"
assert answers() == "good", answers()
assert deploy("update", "better", ports[1]) == "UPDATE_COMPLETE"
assert answers() == "better", answers()
done = deployment(1)
assert done["status"] == "SUCCESSFUL", done
assert [h["status"] for h in done["lifecycleHookDetails"]] == ["SUCCEEDED"] * 3, done["lifecycleHookDetails"]
calls = [e for e in asked() if e["resourceArn"] == done["serviceDeploymentArn"]]
assert [e["lifecycleStage"] for e in calls] == ["PRE_SCALE_UP", "TEST_TRAFFIC_SHIFT"] + ["POST_TEST_TRAFFIC_SHIFT"] * 2, calls
target, source = done["targetServiceRevision"]["arn"], done["sourceServiceRevisions"][0]["arn"]
assert calls[1]["executionDetails"] == {
    "serviceArn": done["serviceArn"], "targetServiceRevisionArn": target, "testTrafficWeights": {target: 100, source: 0}, "productionTrafficWeights": {},
}, calls[1]
assert calls[3]["hookDetails"] == {"url": f"http://127.0.0.1:{testing}/", "seen": "better"}, calls[3]
assert [e["executionId"] for e in calls[2:]] == [done["lifecycleHookDetails"][2]["hookId"]] * 2, calls

ended = deploy("update", "bad", ports[0])
assert ended == "UPDATE_ROLLBACK_COMPLETE", [ended] + [e.get("ResourceStatusReason") for e in stacks.describe_stack_events(StackName="web")["StackEvents"]][:12]
assert answers() == "better", answers()
failed = deployment(2)
assert failed["status"] == "ROLLBACK_SUCCESSFUL", failed
back = [e for e in asked() if e["resourceArn"] == failed["serviceDeploymentArn"]][-1]
refused = failed["targetServiceRevision"]["arn"]
assert (back["lifecycleStage"], back["executionDetails"]["testTrafficWeights"]) == ("TEST_TRAFFIC_SHIFT", {refused: 0, target: 100}), back
assert any("the function returned FAILED" in e["message"] for e in ecs.describe_services(services=["web"])["services"][0]["events"])

# The bus hears of each hook at the stage at which the deployment came to it, and once of each of its states, of those of the way back too.
hooks = [h["hookId"] for h in failed["lifecycleHookDetails"]]
of_failed = [e for e in told(lambda got: any(e["hookId"] == hooks[-1] and e["eventName"] == "HOOK_SUCCEEDED" for e in got))
             if e["serviceDeploymentArn"] == failed["serviceDeploymentArn"]]
stages = ["PRE_SCALE_UP", "TEST_TRAFFIC_SHIFT", "POST_TEST_TRAFFIC_SHIFT", "TEST_TRAFFIC_SHIFT"]
ends = ["HOOK_SUCCEEDED", "HOOK_SUCCEEDED", "HOOK_FAILED", "HOOK_SUCCEEDED"]
assert [(e["hookId"], e["lifecycleStage"], e["eventName"]) for e in of_failed] == [
    (h, s, name) for h, s, end in zip(hooks, stages, ends, strict=True) for name in ("HOOK_IN_PROGRESS", end)], of_failed
