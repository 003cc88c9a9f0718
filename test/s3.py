"""Calls every implemented S3 operation at least once, with their waiters and paginators, and checks the answers: through
boto3, or with the argument aws through the AWS CLI's s3api. Prints the operations that it called, one a line. It's separate
from operations.py because the CLI takes bodies as files."""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
import urllib.request

import boto3
from botocore.exceptions import ClientError

called = set()
endpoint = os.environ["AWS_ENDPOINT_URL"]
boto = boto3.client("s3", endpoint_url=endpoint)
boto.meta.events.register("before-call", lambda model, **_: called.add(f"s3:{model.name}"))
cli = sys.argv[1:] == ["aws"]
os.chdir(tempfile.mkdtemp())


def call(method, **arguments):
    """Makes one call. Body is bytes in both the arguments and the answer."""
    if not cli:
        out = getattr(boto, method)(**arguments)
        if "Body" in out:
            out["Body"] = out["Body"].read()
        return out
    command = ["aws", "--endpoint-url", endpoint, "--output", "json", "s3api", method.replace("_", "-")]
    if "Body" in arguments:
        open("body", "wb").write(arguments.pop("Body"))
        command += ["--body", "body"]
    if method == "get_object":  # its file argument rules out JSON input
        command += [word for name, value in arguments.items() for word in ("--" + re.sub("(?<=[a-z])(?=[A-Z])|(?<=SSE)", "-", name).lower(), value)] + ["got"]
    else:
        command += ["--cli-input-json", json.dumps(arguments)]
    p = subprocess.run(command, capture_output=True, text=True)
    called.add("s3:" + boto.meta.method_to_api_mapping[method])
    if p.returncode == 0:
        out = json.loads(p.stdout or "{}")
        if method == "get_object":
            out["Body"] = open("got", "rb").read()
        return out
    said = re.search(r"An error occurred \((\w+)\) when calling the (\w+) operation.*?: (.*)", p.stderr, re.S)
    assert said, p.stderr
    raise ClientError({"Error": {"Code": said[1], "Message": said[3].strip()}}, said[2])


def refused(code, method, **arguments):
    try:
        call(method, **arguments)
    except ClientError as e:
        assert e.response["Error"]["Code"] == code, (code, e.response)
        return
    raise AssertionError(f"{method} was not refused with {code}")


B = dict(Bucket="operations")
K = dict(B, Key="a b/ü+%.txt")

# Buckets
refused("InvalidBucketName", "create_bucket", Bucket="No_name")
call("create_bucket", **B)
call("head_bucket", **B)
assert [b["Name"] for b in call("list_buckets")["Buckets"]] == ["operations"]
assert not call("get_bucket_location", **B).get("LocationConstraint")
refused("404", "head_bucket", Bucket="nowhere")
refused("NoSuchBucket", "list_objects_v2", Bucket="nowhere")

# Settings of a bucket
for name, code, setting in [
    ("bucket_tagging", "NoSuchTagSet", {"Tagging": {"TagSet": [{"Key": "k", "Value": "v"}]}}),
    ("bucket_policy", "NoSuchBucketPolicy", {"Policy": '{"Version": "2012-10-17", "Statement": []}'}),
    ("public_access_block", "NoSuchPublicAccessBlockConfiguration",
        {"PublicAccessBlockConfiguration": {"BlockPublicAcls": True, "IgnorePublicAcls": True, "BlockPublicPolicy": True,
            "RestrictPublicBuckets": False}}),
    ("bucket_ownership_controls", "OwnershipControlsNotFoundError",
        {"OwnershipControls": {"Rules": [{"ObjectOwnership": "BucketOwnerEnforced"}]}}),
    ("bucket_cors", "NoSuchCORSConfiguration",
        {"CORSConfiguration": {"CORSRules": [{"AllowedMethods": ["GET", "PUT"], "AllowedOrigins": ["*"], "MaxAgeSeconds": 5}]}}),
]:
    if name in ("public_access_block", "bucket_ownership_controls"):  # set on every new bucket
        call("delete_" + name, **B)
    refused(code, "get_" + name, **B)
    call("put_" + name, **B, **setting)
    out = call("get_" + name, **B)
    for member, value in setting.items():
        assert out.get(member, {k: out.get(k) for k in value} if isinstance(value, dict) else None) == value, (name, out)
    if name == "bucket_policy":
        assert call("get_bucket_policy_status", **B)["PolicyStatus"]["IsPublic"] is False
    call("delete_" + name, **B)
    refused(code, "get_" + name, **B)
encrypted = {"Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}, "BucketKeyEnabled": False}]}
assert call("get_bucket_encryption", **B)["ServerSideEncryptionConfiguration"] == encrypted
call("put_bucket_encryption", **B, ServerSideEncryptionConfiguration=encrypted)
call("delete_bucket_encryption", **B)
refused("NoSuchLifecycleConfiguration", "get_bucket_lifecycle_configuration", **B)
rules = [
    {"ID": "r", "Status": "Enabled", "Filter": {"And": {"Prefix": "tmp/", "Tags": [{"Key": "a", "Value": "b"}]}},
        "Expiration": {"Days": 3}},
    {"ID": "u", "Status": "Enabled", "Filter": {"Prefix": "tmp/"}, "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}},
]
both = {**rules[0], "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}}
refused("InvalidRequest", "put_bucket_lifecycle_configuration", **B, LifecycleConfiguration={"Rules": [both]})  # uploads have no tags
call("put_bucket_lifecycle_configuration", **B, LifecycleConfiguration={"Rules": rules})
got = call("get_bucket_lifecycle_configuration", **B)
assert got["Rules"] == rules and got["TransitionDefaultMinimumObjectSize"] == "all_storage_classes_128K", got
call("delete_bucket_lifecycle", **B)
refused("NoSuchLifecycleConfiguration", "get_bucket_lifecycle_configuration", **B)
assert "Status" not in call("get_bucket_versioning", **B)
assert call("get_bucket_acl", **B)["Grants"][0]["Permission"] == "FULL_CONTROL"
call("put_bucket_acl", **B, ACL="private")
refused("AccessControlListNotSupported", "put_bucket_acl", **B, ACL="public-read")
call("put_bucket_request_payment", **B, RequestPaymentConfiguration={"Payer": "BucketOwner"})
refused("NotImplemented", "put_bucket_request_payment", **B, RequestPaymentConfiguration={"Payer": "Requester"})
refused("MalformedXML", "put_bucket_request_payment", **B, RequestPaymentConfiguration={"Payer": "Nobody"})
assert call("get_bucket_request_payment", **B)["Payer"] == "BucketOwner"
call("get_bucket_accelerate_configuration", **B)
call("get_bucket_logging", **B)
refused("ReplicationConfigurationNotFoundError", "get_bucket_replication", **B)
refused("NoSuchWebsiteConfiguration", "get_bucket_website", **B)
refused("ObjectLockConfigurationNotFoundError", "get_object_lock_configuration", **B)

# Notifications
sent = {"Id": "i", "QueueArn": "arn:aws:sqs:us-east-1:000000000000:q", "Events": ["s3:ObjectCreated:*"],
    "Filter": {"Key": {"FilterRules": [{"Name": "Prefix", "Value": "in/"}]}}}
call("put_bucket_notification_configuration", **B, NotificationConfiguration={"QueueConfigurations": [sent]},
    SkipDestinationValidation=True)
assert call("get_bucket_notification_configuration", **B)["QueueConfigurations"] == [sent]
call("put_bucket_notification_configuration", **B, NotificationConfiguration={"EventBridgeConfiguration": {}})
kept = call("get_bucket_notification_configuration", **B)
assert kept["EventBridgeConfiguration"] == {} and "QueueConfigurations" not in kept, kept
refused("InvalidArgument", "put_bucket_notification_configuration", **B,
    NotificationConfiguration={"TopicConfigurations": [{"TopicArn": "arn:aws:sns:us-east-1:000000000000:t",
        "Events": ["s3:ObjectCreated:*"]}]})
refused("InvalidArgument", "put_bucket_notification_configuration", **B,
    NotificationConfiguration={"LambdaFunctionConfigurations": [{
        "LambdaFunctionArn": "arn:aws:lambda:us-east-1:000000000000:function:f", "Events": ["s3:ObjectCreated:*"]}]})

# Objects
etag = call("put_object", **K, Body=b"hello", ContentType="text/plain", Metadata={"k": "v"}, Tagging="a=b")["ETag"]
got = call("get_object", **K)
assert (got["Body"] == b"hello" and got["ContentType"] == "text/plain" and got["Metadata"] == {"k": "v"}
        and got["ETag"] == etag and got["TagCount"] == 1), got
assert call("get_object", **K, Range="bytes=1-2")["Body"] == b"el"
assert call("head_object", **K)["ContentLength"] == 5
refused("304", "head_object", **K, IfNoneMatch=etag)
refused("PreconditionFailed", "put_object", **K, Body=b"", IfNoneMatch="*")
refused("InvalidRange", "get_object", **K, Range="bytes=9-")
refused("NoSuchKey", "get_object", **B, Key="nothing")
refused("KeyTooLongError", "put_object", **B, Key="k" * 1025, Body=b"")
assert call("get_object_attributes", **K, ObjectAttributes=["ETag", "ObjectSize"])["ObjectSize"] == 5
assert call("get_object_acl", **K)["Owner"]["ID"]
call("put_object_acl", **K, ACL="bucket-owner-full-control")
refused("AccessControlListNotSupported", "put_object_acl", **K, ACL="public-read")
call("put_object_tagging", **K, Tagging={"TagSet": [{"Key": "c", "Value": "d"}]})
assert call("get_object_tagging", **K)["TagSet"] == [{"Key": "c", "Value": "d"}]
call("delete_object_tagging", **K)
call("copy_object", **B, Key="copy", CopySource="operations/" + K["Key"])
assert call("get_object", **B, Key="copy")["Metadata"] == {"k": "v"}
page = call("list_objects_v2", **B, Delimiter="/")
assert [o["Key"] for o in page["Contents"]] == ["copy"] and page["CommonPrefixes"] == [{"Prefix": "a b/"}], page
assert [o["Key"] for o in call("list_objects", **B)["Contents"]] == [K["Key"], "copy"]
assert call("list_object_versions", **B)["Versions"][0]["VersionId"] == "null"

# Multipart uploads
M = dict(B, Key="whole")
U = dict(M, UploadId=call("create_multipart_upload", **M)["UploadId"])
parts = [{"PartNumber": 1, "ETag": call("upload_part", **U, PartNumber=1, Body=b"x" * (5 << 20))["ETag"]},
         {"PartNumber": 2, "ETag": call("upload_part_copy", **U, PartNumber=2, CopySource="operations/copy")["CopyPartResult"]["ETag"]}]
assert [p["Size"] for p in call("list_parts", **U)["Parts"]] == [5 << 20, 5]
assert call("list_multipart_uploads", **B)["Uploads"][0]["UploadId"] == U["UploadId"]
refused("InvalidRequest", "upload_part_copy", **U, PartNumber=3, CopySource="operations/copy", CopySourceRange="bytes=5-9")
for bad in ("bytes=0-5", "bytes=0-", "bytes=3-2"):
    refused("InvalidArgument", "upload_part_copy", **U, PartNumber=3, CopySource="operations/copy", CopySourceRange=bad)
refused("InvalidPartOrder", "complete_multipart_upload", **U, MultipartUpload={"Parts": parts[::-1]})
assert call("complete_multipart_upload", **U, MultipartUpload={"Parts": parts})["ETag"].endswith('-2"')
assert call("head_object", **M)["ContentLength"] == (5 << 20) + 5
U["UploadId"] = call("create_multipart_upload", **M, ChecksumAlgorithm="SHA256")["UploadId"]
part = call("upload_part", **U, PartNumber=1, Body=b"x", ChecksumAlgorithm="SHA256")
parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"], "ChecksumSHA256": part["ChecksumSHA256"]}]}
composite = base64.b64encode(hashlib.sha256(hashlib.sha256(b"x").digest()).digest()).decode()
refused("BadDigest", "complete_multipart_upload", **U, MultipartUpload=parts, ChecksumSHA256=part["ChecksumSHA256"])
assert call("complete_multipart_upload", **U, MultipartUpload=parts, ChecksumSHA256=composite)["ChecksumSHA256"] == composite + "-1"
U["UploadId"] = call("create_multipart_upload", **M)["UploadId"]
call("abort_multipart_upload", **U)
refused("NoSuchUpload", "list_parts", **U)

# Versions
V = dict(Bucket="versions", Key="k")
call("create_bucket", Bucket="versions")
call("put_bucket_versioning", Bucket="versions", VersioningConfiguration={"Status": "Enabled"})
assert call("get_bucket_versioning", Bucket="versions")["Status"] == "Enabled"
first, second = (call("put_object", **V, Body=body)["VersionId"] for body in (b"1", b"2"))
marker = call("delete_object", **V)
assert marker["DeleteMarker"], marker
refused("NoSuchKey", "get_object", **V)
refused("405", "head_object", **V, VersionId=marker["VersionId"])
assert call("get_object", **V, VersionId=first)["Body"] == b"1"
call("put_object_tagging", **V, VersionId=first, Tagging={"TagSet": [{"Key": "c", "Value": "d"}]})
assert call("copy_object", **V, CopySource=f"versions/k?versionId={first}")["CopySourceVersionId"] == first
assert call("get_object", **V)["Body"] == b"1" and call("get_object_tagging", **V)["TagSet"]
listed = call("list_object_versions", Bucket="versions")
assert [v["VersionId"] for v in listed["Versions"]][1:] == [second, first] and len(listed["DeleteMarkers"]) == 1, listed
gone = [{"Key": "k", "VersionId": v["VersionId"]} for v in listed["Versions"] + listed["DeleteMarkers"]]
assert len(call("delete_objects", Bucket="versions", Delete={"Objects": gone})["Deleted"]) == 4
call("delete_bucket", Bucket="versions")

# A customer's key
E = dict(SSECustomerAlgorithm="AES256", SSECustomerKey="k" * 32)
S = dict(B, Key="sealed")
call("put_object", **S, **E, Body=b"secret")
assert call("get_object", **S, **E, Range="bytes=1-3")["Body"] == b"ecr"
refused("AccessDenied", "get_object", **S, SSECustomerAlgorithm="AES256", SSECustomerKey="x" * 32)
refused("InvalidRequest", "get_object", **S)
call("delete_object", **S)

# Presigned URLs, used without a client: a put and a get
url = boto.generate_presigned_url("put_object", Params=dict(B, Key="presigned"))
urllib.request.urlopen(urllib.request.Request(url, data=b"by url", method="PUT", headers={"Content-Type": ""}))
url = boto.generate_presigned_url("get_object", Params=dict(B, Key="presigned"))
assert urllib.request.urlopen(url).read() == b"by url"

# The end
refused("BucketNotEmpty", "delete_bucket", **B)
call("delete_object", **B, Key="presigned")
deleted = call("delete_objects", **B, Delete={"Objects": [{"Key": K["Key"]}, {"Key": "copy"}, {"Key": "whole"}]})
assert len(deleted["Deleted"]) == 3, deleted
call("delete_bucket", **B)

print("\n".join(sorted(called)))
