#!/usr/bin/env python3
"""Puts the load of a service's GPUs into CloudWatch, through its logs.

It finds the service's tasks and the machines that they run on, scrapes the dcgm-exporter on each machine, and writes what it
says of the tasks' GPUs to a log group in the embedded metric format, of which CloudWatch Logs makes metrics by cluster and
service. This is how a CloudWatch agent with ECS service discovery does it. It needs boto3 and nothing else, and runs on AWS
as on Pintle:

    python3 collector.py --cluster default --service gpu-service
"""

import argparse
import json
import re
import signal
import sys
import threading
import time
import urllib.request

import boto3

PORT_LABEL = "ECS_PROMETHEUS_EXPORTER_PORT"  # of a container: where its exporter listens, if not at 9400
UNITS = {"DCGM_FI_DEV_GPU_UTIL": "Percent", "DCGM_FI_DEV_FB_USED": "Megabytes"}
SAMPLE = re.compile(r'^(\w+)\{(.*)\}\s+(\S+)')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


class Collector:
    def __init__(self, options):
        self.options = options
        self.ecs, self.ec2, self.logs = (boto3.client(s) for s in ("ecs", "ec2", "logs"))
        self.group = f"/aws/ecs/containerinsights/{options.cluster}/prometheus"

    def tasks(self):
        """The service's running tasks."""
        cluster, service = self.options.cluster, self.options.service
        found = self.ecs.describe_services(cluster=cluster, services=[service])["services"]
        if not found or found[0]["status"] != "ACTIVE":
            return
        for page in self.ecs.get_paginator("list_tasks").paginate(cluster=cluster, serviceName=service):
            if page["taskArns"]:
                for task in self.ecs.describe_tasks(cluster=cluster, tasks=page["taskArns"])["tasks"]:
                    if task["lastStatus"] == "RUNNING":
                        yield task

    def machines(self, tasks):
        """The addresses of the tasks' machines, by container instance."""
        arns = sorted({t["containerInstanceArn"] for t in tasks})
        address = {}
        for i in range(0, len(arns), 100):
            nodes = self.ecs.describe_container_instances(cluster=self.options.cluster, containerInstances=arns[i:i + 100])["containerInstances"]
            by_id = {n["ec2InstanceId"]: n["containerInstanceArn"] for n in nodes if n.get("ec2InstanceId")}
            for reservation in self.ec2.describe_instances(InstanceIds=list(by_id))["Reservations"] if by_id else []:
                for machine in reservation["Instances"]:
                    address[by_id[machine["InstanceId"]]] = machine["PrivateIpAddress"]
        return address

    def port(self, task, definitions):
        """Where a task's exporter listens: what a label says, on the machine's port where that is another one."""
        arn = task["taskDefinitionArn"]
        if arn not in definitions:
            definitions[arn] = self.ecs.describe_task_definition(taskDefinition=arn)["taskDefinition"]
        ports = [c["dockerLabels"][PORT_LABEL] for c in definitions[arn]["containerDefinitions"] if PORT_LABEL in c.get("dockerLabels", {})]
        port = int(ports[0]) if ports else 9400
        bound = {b["containerPort"]: b["hostPort"] for c in task["containers"] for b in c.get("networkBindings", [])}
        return bound.get(port, port)

    def samples(self, url, gpus):
        """The values of each metric for some GPUs."""
        values = {}
        with urllib.request.urlopen(url, timeout=5) as answer:
            for line in answer.read().decode().splitlines():
                sample = SAMPLE.match(line)
                if sample and sample[1] in self.options.metrics and dict(LABEL.findall(sample[2])).get("UUID") in gpus:
                    values.setdefault(sample[1], []).append(float(sample[3]))
        return values

    def lines(self):
        """A line for each task, in the embedded metric format."""
        tasks, definitions = list(self.tasks()), {}
        address = self.machines(tasks)
        for task in tasks:
            gpus = {g for c in task["containers"] for g in c.get("gpuIds", [])}
            ip = address.get(task["containerInstanceArn"])
            if not gpus or not ip:
                continue
            url = f"http://{ip}:{self.port(task, definitions)}/metrics"
            try:
                values = self.samples(url, gpus)
            except OSError as e:
                print(f"cannot scrape {url}: {e}", file=sys.stderr)
                continue
            yield self.line(task["taskArn"].split("/")[-1], values)

    def line(self, task, values):
        metrics = [{"Name": name, "Unit": UNITS.get(name, "None"), "StorageResolution": 1 if self.options.interval < 60 else 60} for name in values]
        directive = {"Namespace": self.options.namespace, "Dimensions": [["ClusterName", "ServiceName"]], "Metrics": metrics}
        return json.dumps({
            "_aws": {"Timestamp": int(time.time() * 1000), "CloudWatchMetrics": [directive]},
            "ClusterName": self.options.cluster, "ServiceName": self.options.service, "TaskId": task, **values,
        })

    def put(self):
        events = [{"timestamp": int(time.time() * 1000), "message": line} for line in self.lines()]
        if events:
            self.logs.put_log_events(logGroupName=self.group, logStreamName=self.options.service, logEvents=events)

    def prepare(self):
        for make in (lambda: self.logs.create_log_group(logGroupName=self.group),
                     lambda: self.logs.create_log_stream(logGroupName=self.group, logStreamName=self.options.service)):
            try:
                make()
            except self.logs.exceptions.ResourceAlreadyExistsException:
                pass


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--cluster", default="default")
    p.add_argument("--service", default="gpu-service")
    p.add_argument("--namespace", default="ECS/ContainerInsights/Prometheus")
    p.add_argument("--interval", type=float, default=60, help="seconds from one look to the next")
    p.add_argument("--metric", dest="metrics", action="append", help="default DCGM_FI_DEV_GPU_UTIL; repeat for more")
    options = p.parse_args()
    options.metrics = options.metrics or ["DCGM_FI_DEV_GPU_UTIL"]

    stopped = threading.Event()
    for s in (signal.SIGINT, signal.SIGTERM):
        signal.signal(s, lambda *_: stopped.set())
    collector = Collector(options)
    collector.prepare()
    while True:
        began = time.monotonic()
        try:
            collector.put()
        except Exception as e:  # the next look may do better
            print(e, file=sys.stderr)
        if stopped.wait(max(0, options.interval - (time.monotonic() - began))):
            return


if __name__ == "__main__":
    main()
