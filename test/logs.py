"""Filters of a log group and an export, as a client of boto3 sees them. With "before", makes all and puts events; with "after", checks what
came of them. Pintle may be killed in between."""

import base64
import datetime
import gzip
import json
import os
import sys
import time

import boto3

endpoint = os.environ["AWS_ENDPOINT_URL"]
logs, cw, sqs, s3 = (boto3.client(service, endpoint_url=endpoint) for service in ("logs", "cloudwatch", "sqs", "s3"))
group = {"logGroupName": "/app"}


def until(ok, call):
    end = time.time() + 180
    while not ok(got := call()) and time.time() < end:
        time.sleep(0.2)
    assert ok(got), got
    return got


def before():
    logs.create_log_group(**group)
    logs.create_log_stream(**group, logStreamName="s")
    logs.put_metric_filter(**group, filterName="errors", filterPattern="ERROR",
        metricTransformations=[{"metricName": "Errors", "metricNamespace": "App", "metricValue": "1"}])
    cw.put_metric_alarm(AlarmName="errors", Namespace="App", MetricName="Errors", Statistic="Sum", Period=60, EvaluationPeriods=1,
        DatapointsToAlarm=1, Threshold=0, ComparisonOperator="GreaterThanThreshold", TreatMissingData="ignore")
    url = sqs.create_queue(QueueName="q")["QueueUrl"]
    arn = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]
    logs.put_subscription_filter(**group, filterName="errors", filterPattern="ERROR", destinationArn=arn)
    s3.create_bucket(Bucket="exported")
    now = int(time.time() * 1000)
    logs.put_log_events(**group, logStreamName="s", logEvents=[
        {"timestamp": now, "message": "ERROR 1"}, {"timestamp": now, "message": "fine"}, {"timestamp": now, "message": "ERROR 2"}])
    logs.create_export_task(**group, fromTime=0, to=now + 60000, destination="exported", destinationPrefix="logs")


def received(url):
    out = []
    for m in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, VisibilityTimeout=0).get("Messages", []):
        out.append(json.loads(gzip.decompress(base64.b64decode(m["Body"]))))
    return out


def after():
    assert [f["filterName"] for f in logs.describe_metric_filters(**group)["metricFilters"]] == ["errors"]
    url = sqs.get_queue_url(QueueName="q")["QueueUrl"]
    data = until(lambda got: got, lambda: [m for m in received(url) if m["messageType"] == "DATA_MESSAGE"])
    assert [e["message"] for e in data[0]["logEvents"]] == ["ERROR 1", "ERROR 2"], data
    assert (data[0]["logGroup"], data[0]["logStream"], data[0]["subscriptionFilters"]) == ("/app", "s", ["errors"]), data
    (task,) = until(lambda got: got[0]["status"]["code"] == "COMPLETED", lambda: logs.describe_export_tasks()["exportTasks"])
    body = s3.get_object(Bucket="exported", Key=f"logs/{task['taskId']}/s/000000.gz")["Body"].read()
    assert [line.split(" ", 1)[1] for line in gzip.decompress(body).decode().splitlines()] == ["ERROR 1", "fine", "ERROR 2"]
    until(lambda got: got == "ALARM", lambda: cw.describe_alarms(AlarmNames=["errors"])["MetricAlarms"][0]["StateValue"])
    end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(minutes=1)
    points = cw.get_metric_statistics(Namespace="App", MetricName="Errors", StartTime=end - datetime.timedelta(hours=1), EndTime=end,
        Period=60, Statistics=["Sum"])["Datapoints"]
    assert sum(p["Sum"] for p in points) >= 2, points  # a kill may tell twice what was told as it came


globals()[sys.argv[1]]()
