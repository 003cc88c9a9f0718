"""A service's deployments, one of which fails and is rolled back, a task that doesn't start, one without room, a scheduled one, and a machine that is lost, as
a rule's queue hears of them: each task's events in order and against DescribeTasks, and each event's members against the documented ones. With the argument
again: what was acknowledged before a SIGKILL."""

import json
import os
import re
import sys
import time
import datetime

import boto3

endpoint = os.environ["AWS_ENDPOINT_URL"]
ecs, events, iam, scheduler, sqs = [boto3.client(s, endpoint_url=endpoint) for s in ("ecs", "events", "iam", "scheduler", "sqs")]
PATIENCE = 120  # for each thing that is waited for


def queue(name):
    url = sqs.create_queue(QueueName=name)["QueueUrl"]
    return url, sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]


def receive(url, enough):
    """Takes messages until enough says that they are."""
    got, end = [], time.time() + PATIENCE
    while not enough(got):
        assert time.time() < end, got
        for m in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1).get("Messages", []):
            got.append(json.loads(m["Body"]))
            sqs.delete_message(QueueUrl=url, ReceiptHandle=m["ReceiptHandle"])
    return got


def until(what, call):
    end = time.time() + PATIENCE
    while not (value := call()):
        assert time.time() < end, what
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


def definition(command, gpus="1"):
    return ecs.register_task_definition(family="app", containerDefinitions=[
        {"name": "main", "image": "i", "memory": 64, "memoryReservation": 32, "command": command, "portMappings": [{"containerPort": 80}],
         "resourceRequirements": [{"type": "GPU", "value": gpus}]}])["taskDefinition"]["taskDefinitionArn"]


def deployment_is(state):
    return ecs.describe_services(services=["app"])["services"][0]["deployments"][0]["rolloutState"] == state


bad, good = definition(["sh", "-c", "exit 3"]), definition(["sleep", "600"])
none, large = definition(["/no/such/program"]), definition(["sleep", "600"], gpus="5")
ecs.create_service(serviceName="app", taskDefinition=good, desiredCount=1)
until("the service is steady", lambda: deployment_is("COMPLETED"))
ecs.update_service(service="app", taskDefinition=bad, deploymentConfiguration={"deploymentCircuitBreaker": {"enable": True, "rollback": True}})
until("it's rolled back", lambda: ecs.describe_services(services=["app"])["services"][0]["taskDefinition"] == good and deployment_is("COMPLETED"))
ecs.update_service(service="app", desiredCount=2)
ecs.run_task(taskDefinition=none)
ecs.create_service(serviceName="large", taskDefinition=large, desiredCount=1)
until("a task finds no room", lambda: any("unable to place" in e["message"] for e in ecs.describe_services(services=["large"])["services"][0]["events"]))
ecs.delete_service(service="large", force=True)
until("two tasks run", lambda: ecs.describe_services(services=["app"])["services"][0]["runningCount"] == 2)
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
    assert versions == list(range(versions[0], versions[0] + len(versions))), f"{arn}: {versions}"  # a standard queue may mix them up, but doesn't here
    states = [order.index(e["detail"]["lastStatus"]) for e in all_of_it]
    assert states == sorted(states) and states[0] < order.index("RUNNING"), all_of_it
    assert states.count(order.index("STOPPED")) == 1, all_of_it
    last, task = all_of_it[-1], tasks[arn]
    detail = dict(last["detail"])
    assert last["resources"] == [arn] and detail.pop("updatedAt"), last
    del task["tags"], task["healthStatus"]
    detail["containers"] = [dict(c, healthStatus="UNKNOWN") for c in detail["containers"]]
    for name, value in list(task.items()):
        if isinstance(value, datetime.datetime):
            assert datetime.datetime.fromisoformat(detail.pop(name).replace("Z", "+00:00")) - value < datetime.timedelta(milliseconds=1), name
            del task[name]
    assert detail == task, f"{detail}\n{task}"
ends = {(t["stopCode"], t["containers"][0].get("exitCode")) for t in tasks.values()}
assert ends >= {("EssentialContainerExited", 3), ("TaskFailedToStart", None)} and any(code == "ServiceSchedulerInitiated" for code, _ in ends), ends


def of_service(got, name, detail_type):
    return [e["detail"] for e in got if e["detail-type"] == detail_type and e["resources"] == [f"arn:aws:ecs:us-east-1:000000000000:service/default/{name}"]]


deployments = [(e["eventName"].removeprefix("SERVICE_DEPLOYMENT_"), e["deploymentId"]) for e in of_service(got, "app", "ECS Deployment State Change")]
first, second = deployments[0][1], deployments[2][1]
assert first != second and deployments == [("IN_PROGRESS", first), ("COMPLETED", first), ("IN_PROGRESS", second), ("FAILED", second),
                                           ("IN_PROGRESS", first), ("COMPLETED", first)], deployments
reasons = [e["reason"] for e in of_service(got, "app", "ECS Deployment State Change")]
assert "circuit breaker: rolling back to deploymentId " + first in reasons[4] and "circuit breaker: " in reasons[3], reasons
actions = [e["eventName"] for e in of_service(got, "app", "ECS Service Action")]
assert actions[0] == "SERVICE_STEADY_STATE" and set(actions) == {"SERVICE_STEADY_STATE", "SERVICE_TASK_START_IMPAIRED", "TASKS_STOPPED"}, actions
assert actions.count("SERVICE_TASK_START_IMPAIRED") == 1, actions
failure = of_service(got, "large", "ECS Service Action")[0]
instances = ecs.list_container_instances()["containerInstanceArns"]
assert failure["reason"] == "RESOURCE:GPU" and failure["containerInstanceArns"] == instances, failure

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
scheduled = receive(heard, lambda got: any(e["detail"].get("startedBy") == "chronos-schedule/may" and e["detail"]["lastStatus"] == "STOPPED"
                                           for e in got))
run = [e["detail"] for e in scheduled if e["detail"].get("startedBy") == "chronos-schedule/may"][-1]
assert run["containers"][0]["exitCode"] == 0 and run["overrides"]["containerOverrides"][0]["command"] == ["true"], run
receive(dead, lambda got: len(got) == 1)
assert scheduler.list_schedules()["Schedules"] == []

# a machine that is lost: its task ends, and its DAEMON service wants one fewer
ecs.create_service(serviceName="daemon", taskDefinition=good, schedulingStrategy="DAEMON")
lost = until("the daemon runs", lambda: (a := ecs.list_tasks(serviceName="daemon")["taskArns"]) and
             ecs.describe_tasks(tasks=a)["tasks"][0]["lastStatus"] == "RUNNING" and a[0])
ecs.deregister_container_instance(containerInstance=instances[0], force=True)
late = receive(heard, lambda got: any(e["detail"].get("status") == "INACTIVE" for e in got) and
               any(e["eventName"] == "SERVICE_DESIRED_COUNT_UPDATED" for e in of_service(got, "daemon", "ECS Service Action")))
assert of_tasks(late)[lost][-1]["detail"]["stopCode"] == "TerminationNotice", late
got += scheduled + late

# Each event has the members that AWS documents, and no others.
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"
ARN = r"arn:aws:ecs:us-east-1:000000000000:"
ID = r"[0-9a-f]{32}"
CONTAINER = {
    "containerArn": ARN + r"container/.+", "cpu": r"\d+", "exitCode": int, "gpuIds": list, "image": "i", "lastStatus": r"[A-Z]+", "memory": "64",
    "memoryReservation": "32", "name": "main", "networkBindings": list, "networkInterfaces": list, "reason": str, "runtimeId": r".+",
    "taskArn": ARN + "task/default/" + ID,
}
TASK = {
    "attachments": list, "attributes": list, "availabilityZone": r"us-east-1[a-f]", "clusterArn": ARN + "cluster/default", "connectivity": "CONNECTED",
    "connectivityAt": TIME, "containerInstanceArn": ARN + "container-instance/default/" + ID, "containers": list, "cpu": r"\d+", "createdAt": TIME,
    "desiredStatus": "RUNNING|STOPPED", "enableExecuteCommand": bool, "executionStoppedAt": TIME, "group": "(service|family):.+",
    "lastStatus": "|".join(order), "launchType": "EC2", "memory": r"\d+", "overrides": dict, "pullStartedAt": TIME, "pullStoppedAt": TIME,
    "startedAt": TIME, "startedBy": str, "stopCode": str, "stoppedAt": TIME, "stoppedReason": str, "stoppingAt": TIME, "taskArn": ARN + "task/default/" + ID,
    "taskDefinitionArn": ARN + r"task-definition/app:\d+", "updatedAt": TIME, "version": int,
}
INSTANCE = {
    "agentConnected": bool, "attachments": list, "attributes": list, "clusterArn": ARN + "cluster/default",
    "containerInstanceArn": ARN + "container-instance/default/" + ID, "ec2InstanceId": "i-[0-9a-f]+", "pendingTasksCount": int, "registeredAt": TIME,
    "registeredResources": list, "remainingResources": list, "runningTasksCount": int, "status": "ACTIVE|DRAINING|INACTIVE", "updatedAt": TIME,
    "version": int, "versionInfo": dict,
}
ACTION = {"eventType": "INFO|WARN|ERROR", "eventName": r"[A-Z_]+", "clusterArn": ARN + "cluster/default", "createdAt": TIME}
OWN = {  # of actions, besides those
    "SERVICE_STEADY_STATE": {}, "SERVICE_TASK_START_IMPAIRED": {}, "SERVICE_DESIRED_COUNT_UPDATED": {"desiredCount": int},
    "TASKS_STOPPED": {"taskArns": list}, "SERVICE_TASK_PLACEMENT_FAILURE": {"containerInstanceArns": list, "reason": r"RESOURCE:[A-Z]+"},
}
DEPLOYMENT = {"eventType": "INFO|ERROR", "eventName": "SERVICE_DEPLOYMENT_(IN_PROGRESS|COMPLETED|FAILED)", "deploymentId": r"ecs-svc/\d+", "updatedAt": TIME,
              "reason": "ECS deployment .+"}
ENVELOPE = {"version": "0", "id": r"[0-9a-f-]{36}", "detail-type": "ECS .+", "source": r"aws\.ecs", "account": "000000000000",
            "time": TIME.replace(r"\.\d{3}", ""), "region": "us-east-1", "resources": list, "detail": dict}
HEALTH = {"capacityProviderName", "clusterArn", "containerInstanceArn", "ec2InstanceId", "overallStatus", "healthChecks"}

# What AWS documents and no event here has, and why. What does come is no longer of this list.
NOT_HEARD = {
    "ECS Task State Change": {
        "platformVersion": "Fargate's alone", "capacityProviderName": "these tasks have none", "ephemeralStorage": "Fargate's alone",
        "platformFamily": "Fargate's alone",
        "healthStatus": "AWS doesn't tell it either",
    },
    "container": {"imageDigest": "images of processes have none", "managedAgents": "execute-command isn't enabled"},
    "ECS Container Instance State Change": {
        "accountType": "no API has it, and nothing says what it means",
        "agentUpdateStatus": "agents aren't updated by UpdateContainerAgent",
        "statusReason": "only a failed registration has one, of which Pintle keeps no row", "capacityProviderName": "the machine is of no group",
    },
    "action": {
        "TASKSET_STEADY_STATE": "no task sets here: internal/events/ecs_test.go", "CAPACITY_PROVIDER_STEADY_STATE": "likewise",
        "SERVICE_DEPLOYMENT_IN_PROGRESS": "told as ECS Deployment State Change", "SERVICE_DEPLOYMENT_COMPLETED": "likewise",
        "SERVICE_DEPLOYMENT_FAILED": "likewise",
        "SERVICE_DISCOVERY_INSTANCE_UNHEALTHY": "an unhealthy task is stopped, which is told",
        "VPC_LATTICE_TARGET_UNHEALTHY": "there is no VPC Lattice",
        "SERVICE_DAEMON_PLACEMENT_CONSTRAINT_VIOLATED": "the task is stopped, which is told",
        "ECS_OPERATION_THROTTLED": "the scheduler isn't throttled", "SERVICE_DISCOVERY_OPERATION_THROTTLED": "likewise",
        "SERVICE_TASK_CONFIGURATION_FAILURE": "such a task starts and fails, which is told",
        "SERVICE_HEALTH_UNKNOWN": "health is never unknown to the scheduler",
    },
    "detail type": {
        "ECS Hook State Change": "no lifecycle hooks here: internal/events/ecs_test.go",
        "ECS Daemon Deployment State Change": "Pintle has no daemons", "ECS Daemon Service Action": "likewise",
    },
}
seen = {}


def compare(kind, value, members, always):
    """A value has these members and no others, of these types, and always some of them."""
    assert set(value) <= set(members), f"{kind}: {sorted(set(value) - set(members))} in {value}"
    assert set(value) >= set(always), f"{kind}: no {sorted(set(always) - set(value))} in {value}"
    for name, member in value.items():
        want = members[name]
        ok = isinstance(member, want) if isinstance(want, type) else isinstance(member, str) and re.fullmatch(want, member)
        assert ok and not (want is int and isinstance(member, bool)), f"{kind}: {name} is {member!r}, want {want}"
    seen.setdefault(kind, set()).update(value)


def compare_task(t):
    always = {"attachments", "attributes", "availabilityZone", "clusterArn", "containerInstanceArn", "containers", "cpu", "createdAt", "desiredStatus", "group",
              "lastStatus", "launchType", "memory", "overrides", "taskArn", "taskDefinitionArn", "updatedAt", "version", "enableExecuteCommand"}
    if t["lastStatus"] == "RUNNING":
        always |= {"connectivity", "connectivityAt", "pullStartedAt", "pullStoppedAt", "startedAt"}
    if t["lastStatus"] == "STOPPED":
        always |= {"executionStoppedAt", "stopCode", "stoppedAt", "stoppedReason", "stoppingAt"}
    if t["group"].startswith("service:"):
        always |= {"startedBy"}
    compare("ECS Task State Change", t, TASK, always)
    for c in t["containers"]:
        own = {"containerArn", "cpu", "gpuIds", "image", "lastStatus", "memory", "memoryReservation", "name", "networkInterfaces", "taskArn"}
        compare("container", c, CONTAINER, own | ({"networkBindings", "runtimeId"} if t["lastStatus"] == "RUNNING" else set()))
        assert len(c["gpuIds"]) == 1, c


for e in got:
    compare("envelope", e, ENVELOPE, ENVELOPE)
    seen.setdefault("detail type", set()).add(e["detail-type"])
    detail = e["detail"]
    if e["detail-type"] == "ECS Task State Change":
        compare_task(detail)
    elif e["detail-type"] == "ECS Container Instance State Change":
        assert e["resources"] == [detail["containerInstanceArn"]], e
        compare(e["detail-type"], detail, INSTANCE, INSTANCE)
    elif e["detail-type"] == "ECS Container Instance Health Change":
        assert set(detail) == HEALTH, detail
    elif e["detail-type"] == "ECS Service Action":
        seen.setdefault("action", set()).add(detail["eventName"])
        members = ACTION | OWN[detail["eventName"]]
        compare(detail["eventName"], detail, members, members)
    else:
        compare(e["detail-type"], detail, DEPLOYMENT, DEPLOYMENT)
sent = {"ECS Task State Change": TASK, "container": CONTAINER, "ECS Container Instance State Change": INSTANCE, "action": OWN}
for kind, members in sent.items():
    assert seen[kind] >= set(members), f"{kind}: no event has {sorted(set(members) - seen[kind])}"
for kind, absent in NOT_HEARD.items():
    assert not seen[kind] & set(absent), f"{kind}: {sorted(seen[kind] & set(absent))} came"
versions = [e["detail"]["version"] for e in got if e["detail-type"] == "ECS Container Instance State Change"]
assert versions == list(range(versions[0], versions[0] + len(versions))) and len(versions) > 10, versions
kept = ecs.describe_container_instances(containerInstances=instances)["containerInstances"][0]
assert kept["version"] == versions[-1], (kept, versions)

# what is acknowledged is on the disk
events.put_rule(Name="mine", EventPattern=json.dumps({"source": ["mine"]}))
events.put_targets(Rule="mine", Targets=[{"Id": "q", "Arn": mine_arn}])
for first in 0, 10:
    assert events.put_events(Entries=[{"Source": "mine", "DetailType": "n", "Detail": json.dumps({"n": first + i})} for i in range(10)])["FailedEntryCount"] == 0
