"""Publishes through boto3 to two queues with filters, one raw and one with envelopes, and checks what each gets."""

import json
import os
import time
import urllib.request

import boto3

sns = boto3.client("sns", endpoint_url=os.environ["AWS_ENDPOINT_URL"])
sqs = boto3.client("sqs", endpoint_url=os.environ["AWS_ENDPOINT_URL"])


def queue(name, **attributes):
    url = sqs.create_queue(QueueName=name, Attributes=attributes)["QueueUrl"]
    return url, sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]["QueueArn"]


def receive(url, n):
    """Waits for n messages, and a moment for more."""
    got, end = [], time.time() + 120
    while time.time() < end:
        some = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, WaitTimeSeconds=1, MessageAttributeNames=["All"],
                                   AttributeNames=["All"]).get("Messages", [])
        got += some
        for m in some:
            sqs.delete_message(QueueUrl=url, ReceiptHandle=m["ReceiptHandle"])
        if len(got) >= n and not some:
            return got
    raise AssertionError(f"{len(got)} of {n} messages: {got}")


topic = sns.create_topic(Name="papers")["TopicArn"]
raw, raw_arn = queue("papers-raw")
wrapped, wrapped_arn = queue("papers-wrapped")
sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=raw_arn,
              Attributes={"RawMessageDelivery": "true", "FilterPolicy": json.dumps({"pages": [{"numeric": [">=", 10]}]})})
sns.subscribe(TopicArn=topic, Protocol="sqs", Endpoint=wrapped_arn, Attributes={
    "FilterPolicyScope": "MessageBody", "FilterPolicy": json.dumps({"title": [{"prefix": "GPU"}, {"suffix": "!"}], "old": [{"exists": False}]})})
for n in range(20):
    sns.publish(TopicArn=topic, Subject=f"paper {n}", Message=json.dumps({"title": "GPU" if n % 2 else "CPU", "n": n, **({"old": 1} if n == 7 else {})}),
                MessageAttributes={"pages": {"DataType": "Number", "StringValue": str(n)}})
got = {json.loads(m["Body"])["n"]: m for m in receive(raw, 10)}
assert sorted(got) == list(range(10, 20)), sorted(got)
assert got[12]["MessageAttributes"]["pages"] == {"StringValue": "12", "DataType": "Number"}, got[12]
envelopes = [json.loads(m["Body"]) for m in receive(wrapped, 9)]
assert sorted(json.loads(e["Message"])["n"] for e in envelopes) == [n for n in range(1, 20, 2) if n != 7], envelopes
one = envelopes[0]
assert (one["Type"], one["TopicArn"], one["SignatureVersion"]) == ("Notification", topic, "1") and one["MessageAttributes"]["pages"]["Type"] == "Number", one
assert b"BEGIN CERTIFICATE" in urllib.request.urlopen(one["SigningCertURL"]).read()

ordered = sns.create_topic(Name="papers.fifo", Attributes={"FifoTopic": "true"})["TopicArn"]
line, line_arn = queue("papers.fifo", FifoQueue="true")
sns.subscribe(TopicArn=ordered, Protocol="sqs", Endpoint=line_arn, Attributes={"RawMessageDelivery": "true"})
told = [sns.publish(TopicArn=ordered, Message=str(n), MessageGroupId="g", MessageDeduplicationId=str(n // 2 * 2)) for n in range(20)]
assert [m["MessageId"] for m in told[::2]] == [m["MessageId"] for m in told[1::2]], told
assert [m["SequenceNumber"] for m in told] == sorted(m["SequenceNumber"] for m in told), told
assert [m["Body"] for m in receive(line, 10)] == [str(n) for n in range(0, 20, 2)]
