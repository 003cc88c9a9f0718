# Answers requests of CloudFormation's custom resources, for functions whose code is in a template.
import json
import urllib.request

SUCCESS = "SUCCESS"
FAILED = "FAILED"


def send(event, context, responseStatus, responseData, physicalResourceId=None, noEcho=False, reason=None):
    answer = json.dumps({
        "Status": responseStatus,
        "Reason": reason or "See the details in CloudWatch Log Stream: " + context.log_stream_name,
        "PhysicalResourceId": physicalResourceId or context.log_stream_name,
        "StackId": event["StackId"],
        "RequestId": event["RequestId"],
        "LogicalResourceId": event["LogicalResourceId"],
        "NoEcho": noEcho,
        "Data": responseData,
    }).encode()
    print("Response body:", answer.decode())
    request = urllib.request.Request(event["ResponseURL"], answer, {"Content-Type": ""}, method="PUT")
    with urllib.request.urlopen(request, timeout=30) as got:
        print("Status code:", got.status)
