"""Runs in a task. Tries what makes a role that reads one bucket the whole cluster, and prints what each try gets."""

import os
import urllib.error
import urllib.parse
import urllib.request

import boto3
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import ClientError

endpoint = os.environ["AWS_ENDPOINT_URL"]
session = boto3.Session()
ecs = session.client("ecs", endpoint_url=endpoint)
role = "arn:aws:iam::000000000000:role/"
container = {"name": "main", "image": "i", "memory": 64, "command": ["true"]}
node = os.environ["NODE"]
victim = os.environ["VICTIM"]


def attempt(name, call, **arguments):
    try:
        call(**arguments)
        print(name, "allowed", flush=True)
    except ClientError as e:
        print(name, e.response["Error"]["Code"], flush=True)


def upgrade(path, **query):
    url = f"{endpoint}{path}?{urllib.parse.urlencode(query)}"
    request = AWSRequest("GET", url, headers={"Upgrade": "websocket", "Connection": "Upgrade"})
    SigV4Auth(session.get_credentials().get_frozen_credentials(), "ecs", "us-east-1").add_auth(request)
    try:
        urllib.request.urlopen(urllib.request.Request(url, headers=dict(request.headers)))
        print(path, "allowed", flush=True)
    except urllib.error.HTTPError as e:
        print(path, "AccessDeniedException" if e.code == 403 and b"AccessDeniedException" in e.read() else e.code, flush=True)


attempt("list-clusters", ecs.list_clusters)
attempt("register-task-definition", ecs.register_task_definition, family="own", containerDefinitions=[container])
attempt("privileged", ecs.register_task_definition, family="p", containerDefinitions=[{**container, "privileged": True}])
attempt("host-files", ecs.register_task_definition, family="p", containerDefinitions=[container],
        volumes=[{"name": "v", "host": {"sourcePath": "/"}}])
attempt("admin", ecs.register_task_definition, family="p", containerDefinitions=[container], taskRoleArn=role + "admin")
attempt("override", ecs.run_task, taskDefinition="plain", overrides={"taskRoleArn": role + "admin"})
attempt("run-admin", ecs.run_task, taskDefinition="admin")
attempt("register", ecs.register_container_instance, cluster="default")
attempt("deregister", ecs.deregister_container_instance, containerInstance=node, force=True)
attempt("discover", ecs.discover_poll_endpoint, containerInstance=node)
attempt("update-agent", ecs.update_container_agent, containerInstance=node)
attempt("task-stopped", ecs.submit_task_state_change, cluster="default", task=victim, status="STOPPED")
attempt("container-stopped", ecs.submit_container_state_change, cluster="default", task=victim, containerName="main", status="STOPPED")
attempt("attachment", ecs.submit_attachment_state_changes, attachments=[{"attachmentArn": "a", "status": "DETACHED"}])
upgrade("/acs/ws", clusterArn="default", containerInstanceArn=node)
upgrade("/tcs/ws", cluster="default", containerInstance=node)
key = session.get_credentials().get_frozen_credentials()
print("key", key.access_key, key.secret_key, key.token, flush=True)
