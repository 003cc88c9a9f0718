"""Uploads objects by forms that boto3 has signed (generate_presigned_post), as a web page does: with both versions of signatures, with
keys of users and of roles, and against their policies."""

import json
import os
import re
import urllib.error
import urllib.request

import boto3
from botocore.config import Config

endpoint = os.environ["AWS_ENDPOINT_URL"]
B = "forms"


def client(service, version=None, **keys):
    return boto3.client(service, endpoint_url=endpoint, config=Config(signature_version=version, s3={"addressing_style": "path"}), **keys)


def post(form, content, name="cat.jpg", **more):
    """Posts a form, and returns the answer's status, headers and body."""
    lines = []
    for field, value in {**form["fields"], **more}.items():
        lines += ["--xYx", f'Content-Disposition: form-data; name="{field}"', "", value]
    head = "\r\n".join(lines + ["--xYx", f'Content-Disposition: form-data; name="file"; filename="{name}"', "Content-Type: image/jpeg", "", ""])
    body = head.encode() + content + b"\r\n--xYx--\r\n"
    request = urllib.request.Request(form["url"], data=body, headers={"Content-Type": "multipart/form-data; boundary=xYx"})
    try:
        with urllib.request.urlopen(request) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as e:
        return e.code, e.headers, e.read().decode()


def refused(code, message, *arguments, **more):
    status, _, body = post(*arguments, **more)
    assert status >= 400 and f"<Code>{code}</Code>" in body and message in body, (status, body)


s3 = client("s3")
s3.create_bucket(Bucket=B)

for version in (None, "s3", "s3v4"):
    fields = {"x-amz-meta-owner": "me", "Content-Type": "image/jpeg", "success_action_status": "201", "acl": "private", "x-amz-server-side-encryption": "AES256",
        "tagging": "<Tagging><TagSet><Tag><Key>a b</Key><Value>c=d+1</Value></Tag></TagSet></Tagging>"}
    form = client("s3", version).generate_presigned_post(B, "in/${filename}", Fields=fields,
        Conditions=[{name: value} for name, value in fields.items()] + [["starts-with", "$key", "in/"], ["content-length-range", 1, 1 << 20]])
    status, headers, body = post(form, b"miau")
    assert status == 201 and "<Key>in/cat.jpg</Key>" in body and headers["ETag"] in body, (status, body)
    got = s3.get_object(Bucket=B, Key="in/cat.jpg")
    assert (got["Body"].read() == b"miau" and got["ContentType"] == "image/jpeg" and got["Metadata"] == {"owner": "me"}
            and got["ServerSideEncryption"] == "AES256"), got
    assert s3.get_object_tagging(Bucket=B, Key="in/cat.jpg")["TagSet"] == [{"Key": "a b", "Value": "c=d+1"}]
    s3.delete_object(Bucket=B, Key="in/cat.jpg")
    refused("EntityTooLarge", "<MaxSizeAllowed>1048576</MaxSizeAllowed>", form, b"x" * (1 << 20) + b"x")
    refused("EntityTooSmall", "<MinSizeAllowed>1</MinSizeAllowed>", form, b"")
    refused("AccessDenied", "Policy Condition failed", form, b"miau", key="out/x")
    refused("AccessDenied", "Extra input fields: x-amz-meta-other", form, b"miau", **{"x-amz-meta-other": "1"})
    refused("SignatureDoesNotMatch", "", form, b"miau", policy="AAAA" + form["fields"]["policy"])
    expired = client("s3", version).generate_presigned_post(B, "in/x", ExpiresIn=-1)
    refused("AccessDenied", "Invalid according to Policy: Policy expired.", expired, b"miau")
    assert "Contents" not in s3.list_objects_v2(Bucket=B)

refused("AccessDenied", "", {"url": f"{endpoint}/{B}", "fields": {"key": "x"}}, b"miau")
refused("NoSuchBucket", "", s3.generate_presigned_post("nowhere", "x"), b"miau")

# A user and a role may put by forms where they may put.
iam = client("iam")
may = {"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "s3:PutObject", "Resource": f"arn:aws:s3:::{B}/may/*"}]}
iam.create_user(UserName="painter")
iam.put_user_policy(UserName="painter", PolicyName="may", PolicyDocument=json.dumps(may))
key = iam.create_access_key(UserName="painter")["AccessKey"]
role = iam.create_role(RoleName="gallery", AssumeRolePolicyDocument=json.dumps({"Version": "2012-10-17", "Statement": [
    {"Effect": "Allow", "Principal": {"AWS": "*"}, "Action": "sts:AssumeRole"}]}))["Role"]
iam.put_role_policy(RoleName="gallery", PolicyName="may", PolicyDocument=json.dumps(may))
session = client("sts").assume_role(RoleArn=role["Arn"], RoleSessionName="visit")["Credentials"]
for keys in (
    dict(aws_access_key_id=key["AccessKeyId"], aws_secret_access_key=key["SecretAccessKey"]),
    dict(aws_access_key_id=session["AccessKeyId"], aws_secret_access_key=session["SecretAccessKey"], aws_session_token=session["SessionToken"]),
):
    for version in ("s3", "s3v4"):
        theirs = client("s3", version, **keys)
        status, headers, body = post(theirs.generate_presigned_post(B, "may/x"), b"miau")
        assert status == 204 and headers["Location"] == f"{endpoint}/{B}/may%2Fx", (status, body)
        refused("AccessDenied", "s3:PutObject", theirs.generate_presigned_post(B, "maynot/x"), b"miau")
        refused("AccessDenied", "s3:PutObject", {"url": f"{endpoint}/{B}", "fields": theirs.generate_presigned_post(B, "maynot/x")["fields"]}, b"miau")
assert [o["Key"] for o in s3.list_objects_v2(Bucket=B)["Contents"]] == ["may/x"]

# A large file isn't held in memory.
status = open(f"/proc/{os.environ['PINTLE_PID']}/status").read
large = s3.generate_presigned_post(B, "large")
assert post(large, b"x" * (300 << 20))[0] == 204
peak = int(re.search(r"VmHWM:\s+(\d+) kB", status())[1])
assert peak < 250 << 10, peak
assert s3.head_object(Bucket=B, Key="large")["ContentLength"] == 300 << 20
