# Runs a function of AWS Lambda by the Lambda Runtime API, for nodes whose containers are plain processes with the machine's own Python.
import base64, http.client, importlib, json, os, sys, time, traceback

VERSION = "/2018-06-01/runtime/"


def call(method, path, body=None, headers={}):
    for tries in range(100):  # the node's agent may be restarting
        api = http.client.HTTPConnection(os.environ["AWS_LAMBDA_RUNTIME_API"])
        try:
            api.request(method, VERSION + path, body, headers)
            answer = api.getresponse()
            return answer, answer.read()
        except OSError:
            if tries == 99:
                raise
            time.sleep(0.1)
        finally:
            api.close()


class Identity:
    cognito_identity_id = None
    cognito_identity_pool_id = None


class Client:
    def __init__(self, given):
        for name in ("installation_id", "app_title", "app_version_name", "app_version_code", "app_package_name"):
            setattr(self, name, given.get(name))


class ClientContext:
    def __init__(self, given):
        self.custom = given.get("custom")
        self.env = given.get("env")
        self.client = Client(given["client"]) if given.get("client") else None


class Context:
    def __init__(self, headers):
        self.aws_request_id = headers.get("Lambda-Runtime-Aws-Request-Id")
        self.invoked_function_arn = headers.get("Lambda-Runtime-Invoked-Function-Arn")
        self.function_name = os.environ.get("AWS_LAMBDA_FUNCTION_NAME")
        self.function_version = os.environ.get("AWS_LAMBDA_FUNCTION_VERSION")
        self.memory_limit_in_mb = os.environ.get("AWS_LAMBDA_FUNCTION_MEMORY_SIZE")
        self.log_group_name = os.environ.get("AWS_LAMBDA_LOG_GROUP_NAME")
        self.log_stream_name = os.environ.get("AWS_LAMBDA_LOG_STREAM_NAME")
        self.identity = Identity()
        given = headers.get("Lambda-Runtime-Client-Context")
        self.client_context = ClientContext(json.loads(given)) if given else None
        self._deadline = int(headers.get("Lambda-Runtime-Deadline-Ms", "0"))

    def get_remaining_time_in_millis(self):
        return max(0, self._deadline - int(time.time() * 1000))

    def log(self, message):
        sys.stdout.write(str(message))


def now(at=None):
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at))


def described(error, request=None):
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename == __file__:
        trace = trace.tb_next
    told = {
        "errorMessage": str(error),
        "errorType": type(error).__name__,
        "requestId": request or "",
        "stackTrace": traceback.format_list(traceback.extract_tb(trace)),
    }
    if os.environ.get("AWS_LAMBDA_LOG_FORMAT") == "JSON":
        print(json.dumps({"timestamp": now(), "log_level": "ERROR", **told}), flush=True)
        return told
    print("[ERROR] %s: %s\nTraceback (most recent call last):\n%s" % (
        told["errorType"], told["errorMessage"], "".join(told["stackTrace"])), flush=True)
    return told


def tell(path, told):
    call("POST", path, json.dumps(told), {"Lambda-Runtime-Function-Error-Type": told["errorType"]})


def load():
    name = os.environ["_HANDLER"]
    if "." not in name:
        raise HandlerError("Runtime.MalformedHandlerName", "Bad handler '%s': not enough values to unpack (expected 2, got 1)" % name)
    module, function = name.rsplit(".", 1)
    try:
        loaded = importlib.import_module(module.replace("/", "."))
    except SyntaxError as e:
        raise HandlerError("Runtime.UserCodeSyntaxError", "Syntax error in module '%s': %s" % (module, e))
    except ImportError as e:
        raise HandlerError("Runtime.ImportModuleError", "Unable to import module '%s': %s" % (module, e))
    if not hasattr(loaded, function):
        raise HandlerError("Runtime.HandlerNotFound", "Handler '%s' missing on module '%s'" % (function, module))
    return getattr(loaded, function)


class HandlerError(Exception):
    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


def simple(value):
    if type(value).__name__ == "Decimal":
        return float(value) if value % 1 else int(value)
    raise TypeError("Object of type %s is not JSON serializable" % type(value).__name__)


def answer(handler, event, headers):
    request = headers["Lambda-Runtime-Aws-Request-Id"]
    if headers.get("Lambda-Runtime-Trace-Id"):
        os.environ["_X_AMZN_TRACE_ID"] = headers["Lambda-Runtime-Trace-Id"]
    try:
        result = handler(json.loads(event), Context(headers))
        try:
            body = json.dumps(result, default=simple, ensure_ascii=False).encode()
        except (TypeError, ValueError) as e:
            raise HandlerError("Runtime.MarshalError", "Unable to marshal response: %s" % e)
    except SystemExit:
        raise
    except BaseException as e:
        told = described(e, request)
        told["errorType"] = getattr(e, "kind", told["errorType"])
        sys.stdout.flush()
        sys.stderr.flush()
        tell("invocation/%s/error" % request, told)
        return
    sys.stdout.flush()
    sys.stderr.flush()
    call("POST", "invocation/%s/response" % request, body, {"Content-Type": "application/json"})


def log_as_lambda_does():
    import logging

    in_json = os.environ.get("AWS_LAMBDA_LOG_FORMAT") == "JSON"

    class Formatter(logging.Formatter):
        converter = time.gmtime

        def format(self, record):
            record.aws_request_id = Formatter.request
            return as_json(record) if in_json else super().format(record)

    def as_json(record):
        line = {"timestamp": now(record.created), "level": record.levelname, "message": record.getMessage(), "logger": record.name}
        if Formatter.request:
            line["requestId"] = Formatter.request
        if record.exc_info:
            line["errorType"], line["errorMessage"] = record.exc_info[0].__name__, str(record.exc_info[1])
            line["stackTrace"] = traceback.format_tb(record.exc_info[2])
        return json.dumps(line)

    Formatter.request = ""
    out = logging.StreamHandler(sys.stdout)
    out.setFormatter(Formatter("[%(levelname)s]\t%(asctime)s.%(msecs)03dZ\t%(aws_request_id)s\t%(message)s", "%Y-%m-%dT%H:%M:%S"))
    logging.getLogger().addHandler(out)
    if in_json:  # levels are named as Python's are, but for TRACE
        level = os.environ.get("AWS_LAMBDA_LOG_LEVEL", "INFO")
        logging.getLogger().setLevel(logging.NOTSET if level == "TRACE" else level)
    return Formatter


def main():
    root, opt = os.environ["LAMBDA_TASK_ROOT"], os.environ.get("PINTLE_LAYERS")
    sys.path[0:1] = [root] + ([opt + "/python", opt + "/python/lib/python%d.%d/site-packages" % sys.version_info[:2]] if opt else [])
    formatter = log_as_lambda_does()
    try:
        handler = load()
    except SystemExit:
        raise
    except BaseException as e:
        told = described(e)
        told["errorType"] = getattr(e, "kind", told["errorType"])
        sys.stdout.flush()
        tell("init/error", told)
        sys.exit(1)
    while True:
        got, event = call("GET", "invocation/next")
        if got.status != 200:
            sys.exit(1)
        formatter.request = got.headers["Lambda-Runtime-Aws-Request-Id"]
        answer(handler, event, got.headers)


main()
