package acs

// Functions of AWS Lambda run in tasks whose node serves them the Lambda Runtime API and passes what they say on to the control plane. It's
// Pintle's own.

// FunctionDriver is the driver of volumes that have a function's code, or its layers. Only Lambda's own task definitions have it. A task with
// such a volume is an execution environment.
const FunctionDriver = "pintle-lambda"

// The options of such volumes. FunctionRuntime is a runtime's name, or FunctionImage for a function that is an image; FunctionCode is the SHA-256
// of a zip file, and FunctionLayers those of several, with commas. FunctionStorage is how many MiB the volume has that is the environment's /tmp.
const (
	FunctionRuntime = "runtime"
	FunctionImage   = "image"
	FunctionCode    = "code"
	FunctionLayers  = "layers"
	FunctionStorage = "storage"
)

// FunctionPath is where nodes reach the control plane for the environments on them.
const FunctionPath = "/pintle/functions/"

// FunctionTail is a header: an invocation that has it wants the end of the log, and its answer has that, in Base64.
const FunctionTail = "Pintle-Log-Tail"

// FunctionStream is the environment variable with the name of an environment's log stream.
const FunctionStream = "AWS_LAMBDA_LOG_STREAM_NAME"
