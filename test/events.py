"""A service's deployment, first with tasks that fail, then with ones that run, as a rule's queue hears of it; each task's events against
DescribeTasks. A scheduled task. With the argument again: what was acknowledged before a SIGKILL."""

import json
import os
import sys
import time
import datetime

import boto3

endpoint = os.environ["AWS_ENDPOINT_URL"]
ecs, events, iam, scheduler, sqs = [boto3.client(s, endpoint_url=endpoint) for s in ("ecs", "events", "iam", "scheduler", "sqs")]
DEADLINE = time.time() + 120


def queue(name):
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    return url, sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]


def receive(url, enough):
    """Takes messages until enough says that they are."""
    got = []
    while not enough(got):
        assert time.time() < DEADLINE, got
        for m in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1).get("Messages", []):
            got.append(json.loads(m["Body"]))
            sqs.delete_message(QueueUrl=url, ReceiptHandle=m["ReceiptHandle"])
    return got


def until(what, call):
    while not (value := call()):
        assert time.time() < DEADLINE, what
        time.sleep(0.1)
    return value


mine, mine_arn = queue("mine")
if sys.argv[1:] == ["again"]:
    got = receive(mine, lambda got: len(got) >= 20)
    assert {e["detail"]["n"] for e in got} == set(range(20)), got
    sys.exit()

heard, heard_arn = queue("heard")
events.put_rule(Name="ecs", EventPattern=json.dumps({"source": ["aws.ecs"], "detail": {"clusterArn": [{"suffix": "cluster/default"}, {"exists": False}]}}))
assert events.put_targets(Rule="ecs", Targets=[{"Id": "q", "Arn": heard_arn}])["FailedEntryCount"] == 0


def definition(command):
    return ecs.register_task_definition(family="app", containerDefinitions=[
        {"name": "main", "image": "i", "memory": 64, "command": ["sh", "-c", command]}])["taskDefinition"]["taskDefinitionArn"]


bad, good = definition("exit 3"), definition("exec sleep 600")
ecs.create_service(serviceName="app", taskDefinition=bad, desiredCount=1)
until("three tasks fail", lambda: len(ecs.list_tasks(desiredStatus="STOPPED")["taskArns"]) >= 3)
ecs.update_service(service="app", taskDefinition=good, desiredCount=2)
until("the service is steady", lambda: ecs.describe_services(services=["app"])["services"][0]["deployments"][0]["rolloutState"] == "COMPLETED")
ecs.update_service(service="app", desiredCount=0)
arns = until("all tasks end", lambda: not ecs.list_tasks()["taskArns"] and (s := ecs.list_tasks(desiredStatus="STOPPED")["taskArns"]) and
             all(t["lastStatus"] == "STOPPED" for t in ecs.describe_tasks(tasks=s)["tasks"]) and s)
tasks = {t["taskArn"]: t for t in ecs.describe_tasks(tasks=arns)["tasks"]}


def of_tasks(got):
    by_task = {}
    for e in got:
        if e["detail-type"] == "ECS Task State Change":
            by_task.setdefault(e["detail"]["taskArn"], []).append(e)
    return by_task


def is_complete(got):
    ended = {arn for arn, of in of_tasks(got).items() if any(e["detail"]["lastStatus"] == "STOPPED" for e in of)}
    return ended >= set(tasks)


got = receive(heard, is_complete)
order = ["PROVISIONING", "PENDING", "ACTIVATING", "RUNNING", "DEACTIVATING", "STOPPING", "DEPROVISIONING", "STOPPED"]
for arn, all_of_it in of_tasks(got).items():
    versions = [e["detail"]["version"] for e in all_of_it]
    assert versions == sorted(set(versions)), f"{arn}: {versions}"  # a standard queue may mix them up, but doesn't here
    states = [order.index(e["detail"]["lastStatus"]) for e in all_of_it]
    assert states == sorted(states) and states[0] < order.index("RUNNING"), all_of_it
    last, task = all_of_it[-1], tasks[arn]
    assert last["resources"] == [arn] and last["source"] == "aws.ecs" and last["account"] == "000000000000" and last["version"] == "0", last
    detail = last["detail"]
    assert detail.pop("updatedAt")
    assert detail["version"] <= task.pop("version"), (detail, task)  # that its service has noted its end is no event
    del detail["version"], task["tags"]
    for name, value in list(task.items()):
        if isinstance(value, datetime.datetime):
            assert datetime.datetime.fromisoformat(detail.pop(name).replace("Z", "+00:00")) - value < datetime.timedelta(milliseconds=1), name
            del task[name]
    assert detail == task, f"{detail}\n{task}"
assert any(t["containers"][0].get("exitCode") == 3 and t["stopCode"] == "EssentialContainerExited" for t in tasks.values()), tasks

service = [e for e in got if e["resources"][0].endswith(":service/default/app")]
deployments = [(e["detail"]["eventName"], e["detail"]["deploymentId"]) for e in service if e["detail-type"] == "ECS Deployment State Change"]
first, second = deployments[0][1], deployments[-1][1]
assert deployments == [("SERVICE_DEPLOYMENT_IN_PROGRESS", first), ("SERVICE_DEPLOYMENT_IN_PROGRESS", second), ("SERVICE_DEPLOYMENT_COMPLETED", second)], deployments
actions = [e["detail"] for e in service if e["detail-type"] == "ECS Service Action"]
assert {"SERVICE_DESIRED_COUNT_UPDATED", "SERVICE_STEADY_STATE"} <= {a["eventName"] for a in actions}, actions
assert all(a["clusterArn"].endswith(":cluster/default") and a["createdAt"] and a["eventType"] for a in actions), actions

# a task of a schedule, as a role that may run it and no other
trust = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "sts:AssumeRole", "Principal": {"Service": "scheduler.amazonaws.com"}}]}
role = iam.create_role(RoleName="runner", AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
iam.put_role_policy(RoleName="runner", PolicyName="run", PolicyDocument=json.dumps(
    {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "ecs:RunTask", "Resource": good}]}))
soon = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=2)).strftime("at(%Y-%m-%dT%H:%M:%S)")
dead, dead_arn = queue("dead")
for name, task in ("may", good), ("maynot", bad):
    scheduler.create_schedule(Name=name, ScheduleExpression=soon, FlexibleTimeWindow={"Mode": "OFF"}, ActionAfterCompletion="DELETE", Target={
        "Arn": "arn:aws:ecs:us-east-1:000000000000:cluster/default", "RoleArn": role, "EcsParameters": {"TaskDefinitionArn": task, "TaskCount": 1},
        "Input": json.dumps({"containerOverrides": [{"name": "main", "command": ["true"]}]}), "DeadLetterConfig": {"Arn": dead_arn}})
run = receive(heard, lambda got: any(e["detail"].get("startedBy") == "chronos-schedule/may" and e["detail"]["lastStatus"] == "STOPPED" for e in got))[-1]["detail"]
assert run["containers"][0]["exitCode"] == 0 and run["overrides"]["containerOverrides"][0]["command"] == ["true"], run
receive(dead, lambda got: len(got) == 1)
assert scheduler.list_schedules()["Schedules"] == []

# what is acknowledged is on the disk
events.put_rule(Name="mine", EventPattern=json.dumps({"source": ["mine"]}))
events.put_targets(Rule="mine", Targets=[{"Id": "q", "Arn": mine_arn}])
for first in 0, 10:
    assert events.put_events(Entries=[{"Source": "mine", "DetailType": "n", "Detail": json.dumps({"n": first + i})} for i in range(10)])["FailedEntryCount"] == 0
