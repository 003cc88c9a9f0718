"""Runs functions through boto3: waited for and not, failing, too slow, crashing, and on a queue with a poison message."""

import base64
import io
import json
import os
import time
import zipfile

import boto3

endpoint = os.environ["AWS_ENDPOINT_URL"]
functions = boto3.client("lambda", endpoint_url=endpoint)
sqs = boto3.client("sqs", endpoint_url=endpoint)
logs = boto3.client("logs", endpoint_url=endpoint)

code = '''
import json, os, time
import boto3

def handler(event, context):
    print("asked for", json.dumps(event))
    if event.get("fail"):
        raise ValueError("as asked")
    if event.get("sleep"):
        time.sleep(event["sleep"])
    if event.get("exit"):
        os._exit(3)
    if event.get("tell"):
        boto3.client("sqs").send_message(QueueUrl=event["tell"], MessageBody=context.aws_request_id)
    return {"event": event, "colour": os.environ["COLOUR"], "stream": context.log_stream_name, "pid": os.getpid()}

def batch(event, context):
    failed = [r["messageId"] for r in event["Records"] if r["body"] == "poison"]
    return {"batchItemFailures": [{"itemIdentifier": i} for i in failed]}
'''


def zipped(text):
    b = io.BytesIO()
    with zipfile.ZipFile(b, "w") as z:
        z.writestr("app.py", text)
    return b.getvalue()


def make(name, handler, **more):
    functions.create_function(FunctionName=name, Runtime="python3.12", Role="arn:aws:iam::000000000000:role/functions", Handler=handler,
                              Code={"ZipFile": zipped(code)}, Environment={"Variables": {"COLOUR": "blue"}}, **more)
    functions.get_waiter("function_active_v2").wait(FunctionName=name)


def invoke(event, **more):
    got = functions.invoke(FunctionName="app", Payload=json.dumps(event), **more)
    return got, json.loads(got["Payload"].read() or "null")


def queue(name, **attributes):
    url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return url, sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]


def receive(url, n):
    got, end = [], time.time() + 120
    while len(got) < n and time.time() < end:
        for m in sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=5).get("Messages", []):
            got.append(m["Body"])
            sqs.delete_message(QueueUrl=url, ReceiptHandle=m["ReceiptHandle"])
    assert len(got) == n, got
    return got


make("app", "app.handler", Timeout=2)
got, answer = invoke({"n": 1}, LogType="Tail")
tail = base64.b64decode(got["LogResult"]).decode()
assert (got["StatusCode"], got["ExecutedVersion"], "FunctionError" in got) == (200, "$LATEST", False), got
assert (answer["event"], answer["colour"]) == ({"n": 1}, "blue"), answer
assert 'asked for {"n": 1}' in tail and "START RequestId: " in tail and "Init Duration: " in tail, tail
_, again = invoke({"n": 2})
assert again["pid"] == answer["pid"], "a warm environment is used again"

got, answer = invoke({"fail": True})
assert got["FunctionError"] == "Unhandled" and (answer["errorType"], answer["errorMessage"]) == ("ValueError", "as asked"), answer
got, answer = invoke({"exit": True})
assert got["FunctionError"] == "Unhandled" and answer["errorType"] == "Runtime.ExitError" and "exit status 3" in answer["errorMessage"], answer
got, answer = invoke({"sleep": 30})
assert got["FunctionError"] == "Unhandled" and "Task timed out after 2.00 seconds" in answer["errorMessage"], answer

told, _ = queue("told")
got, _ = invoke({"tell": told}, InvocationType="Event")
assert got["StatusCode"] == 202, got
assert receive(told, 1) == [got["ResponseMetadata"]["RequestId"]]

dead, dead_arn = queue("dead")
# A second try is for what a busy machine keeps longer than the queue waits.
url, arn = queue("jobs", VisibilityTimeout="4", RedrivePolicy=json.dumps({"deadLetterTargetArn": dead_arn, "maxReceiveCount": "2"}))
make("batch", "app.batch", Timeout=2)
mapping = functions.create_event_source_mapping(FunctionName="batch", EventSourceArn=arn, FunctionResponseTypes=["ReportBatchItemFailures"])
for body in ["good", "poison", "fine"]:
    sqs.send_message(QueueUrl=url, MessageBody=body)
assert receive(dead, 1) == ["poison"]
names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
left = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
assert set(left.values()) == {"0"}, left
functions.delete_event_source_mapping(UUID=mapping["UUID"])

text = "".join(e["message"] for e in logs.filter_log_events(logGroupName="/aws/lambda/app")["events"])
assert "Task timed out after 2.00 seconds" in text and "REPORT RequestId: " in text, text
